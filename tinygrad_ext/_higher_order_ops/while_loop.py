"""`while_loop`: a function again and again, while another one says so."""

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph import interpret
from tinygrad_ext.graph.capture import CaptureError
from tinygrad_ext.graph.ir import Block, Node, Value, outer_values
from tinygrad_ext.graph.loop_backward import LoopEntry
from tinygrad_ext.graph.types import GENERATOR, INT, TENSOR
from tinygrad_ext.utils._pytree import tree_flatten, tree_unflatten

from .blocks import capture_under_way, check_call, check_single, lent, own_block, shown, truth, yielded


@boundary
def while_loop(cond_fn, body_fn, carried_inputs):
    """What body_fn has made of carried_inputs when cond_fn says no: `while cond_fn(*c): c = body_fn(*c)`.

    Args:
        cond_fn: function of what is carried; gives a truth value or a tensor of one element.
        body_fn: function of what is carried; gives as much of it, of the same structure and dtypes. It may draw random
            numbers.
        carried_inputs: tuple or list of tensors, in containers too.

    In a graph that is captured this is one loop, of as many turns as the numbers ask for each time it runs, and a
    gradient goes back through all of them. What is carried are tensors there (`tensor(0)` for a count).

    Raises RuntimeError for a condition of several elements and for a body that returns another structure, and
    CaptureError, a RuntimeError, for what a loop of a graph cannot hold.

    >>> import tinygrad_ext as tg
    >>> tg.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (tg.tensor(0), tg.ones(2)))
    (tensor(3), tensor([8., 8.]))
    """
    check_call("while_loop", {"cond_fn": cond_fn, "body_fn": body_fn}, carried_inputs, "carried_inputs")
    level = capture_under_way()
    if level is None:
        return _repeated(cond_fn, body_fn, carried_inputs)
    return _Loop(level, cond_fn, body_fn, carried_inputs).written()


def _repeated(cond_fn, body_fn, carried):
    leaves, spec = tree_flatten(tuple(carried))
    if not _goes_on(cond_fn(*carried)):
        return tree_unflatten([a.clone() if isinstance(a, Tensor) else a for a in leaves], tree_flatten(carried)[1])
    carried = _as_before(spec, body_fn(*carried))
    while _goes_on(cond_fn(*carried)):
        carried = _as_before(spec, body_fn(*carried))
    return carried


def _goes_on(answer):
    if isinstance(answer, Tensor):
        check_single(answer, "while_loop", "cond_fn to return")
    return bool(answer)


def _as_before(spec, result):
    given = tree_flatten(tuple(result) if isinstance(result, list) else result)[1]
    if given != spec:
        raise RuntimeError(
            f"while_loop: body_fn gives {given}, but what is carried is {spec}; return all of it, as tuple"
        )
    return result


class _Loop:
    """The loop as it is written to a capture."""

    def __init__(self, level, cond_fn, body_fn, carried):
        self.level, self.cond_fn, self.body_fn = level, cond_fn, body_fn
        leaves, self.structure = tree_flatten(carried)
        self.given, self.spec = leaves, tree_flatten(tuple(carried))[1]
        for i, leaf in enumerate(leaves):
            if not isinstance(leaf, Tensor):
                raise CaptureError(
                    f"while_loop: entry {i} of carried_inputs is {type(leaf).__name__}, and a loop of a graph carries "
                    "tensors; pass tensor(...) of it"
                )
        self.starts, _ = yielded(level, leaves)
        self.generators = []  # that a turn draws from, whose states are carried behind the tensors
        self.first = truth(level, cond_fn(*carried), "while_loop", "cond_fn to return")

    def written(self):
        level = self.level
        needing = [id(a) in level.needs for a in self.starts]
        while True:  # until what a turn hands on needs a gradient only where what it got did, and it draws from those
            block, tape, drawn = self.turn(needing)
            seen = [before or id(a) in level.needs for before, a in zip(needing, block.outputs[1:])]
            if seen == needing and len(drawn) == len(self.generators):
                break
            needing, self.generators = seen, list(drawn)
        block.outputs += drawn.values()
        states = [level.generator_state(g)[1] for g in drawn]
        node = Node("prim::Loop", (None, self.first, *self.starts, *states), (block,))
        node.outputs = tuple([level.graph.value(a.type, node) for a in block.inputs[1:]])
        for value, end, needed in zip(node.outputs, self.ends(node), needing):
            value.hint = end
            if needed:
                level.needs.add(id(value))
        LoopEntry(node, tape).note(level)
        level.block.nodes.append(node)
        for generator, value in zip(drawn, node.outputs[len(self.starts) :]):
            level.advance(generator, value)
        for start in self.given if any(self.shared) else ():
            level.traced(start).root.lent = "while_loop"
        rows = [shown(level, value, "while_loop" if s else None) for value, s in zip(node.outputs, self.shared)]
        return tree_unflatten(rows, self.structure)

    def turn(self, needing):
        """(block, tape, generator -> what the turn leaves it at) of one turn."""
        level, drawn = self.level, {}
        outside = {generator: level.generator_state(generator)[1] for generator in self.generators}
        inside = {generator: level.graph.value(GENERATOR) for generator in outside}
        for generator, value in inside.items():
            level.advance(generator, value)
        with own_block(level, "while_loop", "body_fn", drawn) as (block, tape):
            block.inputs = [level.graph.value(INT, None, 0)]
            for start, needed in zip(self.starts, needing):
                value = level.graph.value(TENSOR, None, start.hint)
                block.inputs.append(value)
                if needed:
                    level.needs.add(id(value))
            carried = tree_unflatten([shown(level, value) for value in block.inputs[1:]], self.structure)
            result = _as_before(self.spec, self.body_fn(*carried))
            ends, _ = yielded(level, result)
            self.shared = lent(level, block, result, "while_loop")
            for i, (start, end) in enumerate(zip(self.starts, ends)):
                _check_alike(i, start, end)
            goes_on = truth(level, self.cond_fn(*result), "while_loop", "cond_fn to return")
            block.outputs = [goes_on, *ends]
            block.inputs += inside.values()
        for generator, value in outside.items():
            level.advance(generator, value)
        return block, tape, {**inside, **drawn}

    def ends(self, node):
        """What the loop gives for the example."""
        outside = {id(v): v.hint for v in outer_values(Block((), [node]))}
        for generator in self.generators:
            _, value, example, _ = self.level.generator_state(generator)
            outside[id(value)] = example._copy()
        with no_grad():
            return self.level.suspend(interpret.run_block, Block((), [node], node.outputs), outside)


def _check_alike(i, start, end):
    before = start.hint
    if not isinstance(end, Value) or not isinstance(end.hint, Tensor):
        raise CaptureError(f"while_loop: body_fn gives {type(end).__name__} for entry {i}, which was a tensor")
    after = end.hint
    if (before.dtype, before.dim()) != (after.dtype, after.dim()):
        raise CaptureError(
            f"while_loop: entry {i} is {before.dtype} of {before.dim()} dimensions before a turn and {after.dtype} of "
            f"{after.dim()} after it; a graph carries one kind"
        )
