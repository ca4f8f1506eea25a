"""A function run under a capture within a block of its own."""

from contextlib import contextmanager

from tinygrad_ext.core.call.levels import Observer, active_levels
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.aliases import Root, Traced
from tinygrad_ext.graph.capture import Capture, CaptureError
from tinygrad_ext.graph.control_backward import on_tape
from tinygrad_ext.graph.symbols import Symbol
from tinygrad_ext.graph.types import BOOL
from tinygrad_ext.utils._pytree import tree_flatten


def capture_under_way():
    """The Capture that what is called now is written to; None without one, or where a level in front has tensors."""
    for level in reversed(active_levels()):
        if isinstance(level, Capture):
            return level
        if not isinstance(level, Observer):  # others, as autocast, look on
            break
    return None


def check_call(name, functions, operands, what):
    """Raise RuntimeError for arguments of other kinds. functions: argument -> function."""
    for argument, function in functions.items():
        if not callable(function):
            raise RuntimeError(f"{name}: {argument} must be callable, got {type(function).__name__}")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"{name}: {what} must be a tuple or a list of tensors, got {type(operands).__name__}")


@contextmanager
def own_block(level, name, part, drawn):
    """Write to a new block meanwhile: (block, tape). CaptureError for what a block cannot hold.

    drawn: a dict that gets generator -> the Value that the block leaves it at, for generators that were there before.
    """
    writes, before = level.frozen, _at(level)
    with on_tape(level) as (block, tape):
        level.frozen = block, f"{name}: {part}"
        try:
            yield block, tape
        finally:
            level.frozen = writes
    for key, found in level.generators.items():
        state, now, _, generator = found
        first = before.get(key, None if state is None else state.value)
        if now is first:
            continue
        if first is None:
            raise CaptureError(
                f"{name}: {part} draws random numbers from a generator that it made; make it before, and use it there"
            )
        drawn[generator] = now
        level.advance(generator, first)


def _at(level):
    """Which Value each generator is at."""
    return {key: found[1] for key, found in level.generators.items()}


def yielded(level, result):
    """(values and constants that a block gives for a result, its structure)."""
    leaves, spec = tree_flatten(result)
    lifted = [level.lift(leaf) for leaf in leaves]
    return lifted if is_grad_enabled() else [level.without_grad(a) for a in lifted], spec


def lent(level, block, result, name):
    """Whether each leaf shows memory that was there before the block, or that another leaf shows.

    Results of the node are tensors of their own, so such memory is not written to afterwards: that is refused.
    """
    roots = [level.traced(a).root if isinstance(a, Tensor) else None for a in tree_flatten(result)[0]]
    found = []
    for root in roots:
        found.append(root is not None and (root.value.node not in block.nodes or roots.count(root) > 1))
        if found[-1]:
            root.lent = name
    return found


def truth(level, value, name, what):
    """A tensor of one element, or a truth value, as a condition."""
    if not isinstance(value, Tensor):
        return bool(value)
    check_single(value, name, what)
    lifted = level.lift(value)
    return level.graph.make(level.block, "prim::bool", (lifted,), (BOOL,), (level.suspend(bool, lifted.hint),)).output


def check_single(value, name, what):
    """Raise RuntimeError for a tensor of more or fewer elements than one."""
    if value.numel() != 1:
        raise RuntimeError(
            f"{name}: Expected {what} to be bool or single-element tensor, but got a tensor of shape "
            f"{tuple(value.shape)}. Reduce it with all() or any()"
        )


def shown(level, value, lender=None):
    """A value as the program sees it. lender: what gave it, where its memory may be another's and is not written to."""
    if isinstance(value.hint, Tensor):
        root = Root(value, value.hint)
        root.lent = lender
        return level.show(Traced(root))
    return Symbol(level, value, value.hint, True)
