# cython: language_level=3, boundscheck=True
"""One differentiation in reverse mode: its inputs are given a history of their own, and eager autograd runs behind them.

Compiled, because the gradient of a small function took less than what is around it.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport state
from tinygrad_ext.core.data.tensor cimport Carried, Tensor

from tinygrad_ext.autograd.engine import gradients as gradients_of
from tinygrad_ext.core.call.levels import active_levels
from tinygrad_ext.core.grad.reach import leads_elsewhere
from tinygrad_ext.utils._trees import flatten, unflatten

from .batch import Batch
from .nesting import bottoms, severed


cdef class Differentiation:
    """The inputs that were made for it, and what of its results anybody else may differentiate.

    Attributes:
        tracked: whether somebody outside wants derivatives too.
        outer: whether an input has a history that leads out.
        leaves: ids of the leaves that are its own.
    """

    cdef readonly bint tracked
    cdef bint outer
    cdef set leaves
    cdef list kept

    def __init__(self):
        self.tracked = not state().no_grad
        self.leaves, self.kept = set(), []

    def again(self):
        """Another one of the same inputs, for what is wanted by now."""
        cdef Differentiation made = Differentiation()
        made.leaves, made.kept, made.outer = self.leaves, self.kept, self.outer
        return made

    def fresh(self, x):
        """An input that only this pass knows, which looks like `x`."""
        return self._fresh(x, active_levels())

    cdef object _fresh(self, x, list levels):
        cdef Py_ssize_t i
        if not isinstance(x, Tensor):
            return x
        for i in range(len(levels) - 1, -1, -1):
            level = levels[i]
            if isinstance(level, Batch):
                return level.wrap(self._fresh(level.whole(x), levels[:i]))
            if type(x) is Carried and (<Carried>x).level is level and hasattr(level, "pair"):
                primal, tangent = level.parts(x)
                return level.pair(self._fresh(primal, levels[:i]), tangent)
        if x.requires_grad:
            self.outer = True
            made = x.view_as(x)
        else:
            made = (_copied(x, len(levels)) if x.is_inference() else x.detach()).requires_grad_()
            self.leaves.add(<size_t><PyObject *>made)
        self.kept.append(made)
        return made

    def arguments(self, func, argnums, args, who):
        """(inputs of the pass, their structure, arguments with them in their places)."""
        cdef list flat = [], inputs = [], given = list(args), chosen = positions(argnums, len(args))
        spec = flatten([args[i] for i in chosen], flat)
        levels = active_levels()
        for x in flat:
            inputs.append(self._fresh(checked_input(x, who), levels))
        for i, part in zip(chosen, unflatten(inputs, spec)):
            given[i] = part
        return inputs, spec, given

    def leads_out(self, list values not None):
        """Whether derivatives of the values by something else than this pass's inputs may be wanted."""
        cdef list roots = []
        if not self.tracked:
            return False
        if self.outer:
            return True
        for v in values:
            for b in bottoms(v):
                if type(b) is not Carried:
                    if b.grad_fn is not None:
                        roots.append(b.grad_fn)
                elif b.requires_grad and any([id(leaf) not in self.leaves for leaf in b.level.leaves.values()]):
                    return True  # a program that is written down: whatever needs a gradient there
        return leads_elsewhere(roots, self.leaves)

    def released(self, value):
        """A result without the history that is only this pass's."""
        if isinstance(value, Tensor) and value.requires_grad and not self.leads_out([value]):
            return severed(value)
        return value

    def gradients(self, list outputs not None, list inputs not None, list seeds=None, bint keep=False, create=None):
        """Gradients of outputs that may not hang on the inputs; zeros where nothing arrives.

        create: somebody else wants derivatives of them; None: it is found out.
        """
        cdef list got = [None] * len(inputs), roots = []
        cdef Py_ssize_t i
        if create is None:
            create = self.tracked and (
                self.leads_out(outputs) or (seeds is not None and any([s.requires_grad for s in seeds]))
            )
        for i in range(len(outputs)):
            if outputs[i].requires_grad:
                roots.append(i)
        if roots and inputs:
            if len(roots) < len(outputs):
                outputs, seeds = [outputs[i] for i in roots], None if seeds is None else [seeds[i] for i in roots]
            got = list(gradients_of(outputs, inputs, seeds, keep or create, create, True))
        for i in range(len(inputs)):
            if got[i] is None:
                got[i] = inputs[i].new_zeros(inputs[i].shape)
        return got


cdef _copied(x, Py_ssize_t below):
    """A copy that no level sees but those below a place in the stack."""
    levels = active_levels()
    return levels[below].suspend(x.clone) if below < len(levels) else x.clone()


def positions(argnums, count):
    """Which positional arguments to differentiate by."""
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    for i in chosen:
        if not isinstance(i, int):
            raise RuntimeError(f"argnum must be int, got: {type(i)}; argnums is an int or a tuple of them")
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")
    found = [i % count for i in chosen]
    if len(set(found)) < len(found):
        raise RuntimeError(f"argnums elements must be unique, got: {argnums}")
    return found


def checked_input(x, who):
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{who}(): expected the arguments to differentiate by to hold tensors, got {type(x).__name__}. Leave it out of "
            "argnums, or make a tensor of it"
        )
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"{who}(): only Tensors of floating point dtype can require gradients, got {x.dtype}")
    return x
