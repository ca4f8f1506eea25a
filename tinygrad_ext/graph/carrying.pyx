# cython: language_level=3, boundscheck=True, wraparound=True
"""How a capture turns what a program holds into values of the graph and examples, and what it wrote down into carried
tensors. Compiled because each argument and each result of each op goes through it."""
from tinygrad_ext.core.call.levels cimport Observer, carry_like
from tinygrad_ext.core.data.tensor cimport REQUIRES_GRAD, Carried, Tensor

from tinygrad_ext.core.data.random import Generator

from .symbols import Symbol

cdef set _PLAIN = {int, float, bool, str, type(None)}


cdef class Carrier(Observer):
    """Needs of the class that derives from it: needs, outside(), replay_path(), generator_state()."""

    def owns(self, o):
        """Whether it carries a tensor."""
        return type(o) is Carried and (<Carried>o).level is self

    def traced(self, tensor):
        """The window behind a tensor, up to date."""
        found = (<Carried>tensor).value if type(tensor) is Carried and (<Carried>tensor).level is self else self.outside(tensor)
        if found.version != found.root.version:
            whole = self.replay_path(found)
            found.value, found.example, found.version = whole.value, whole.example, found.root.version
        return found

    def show(self, traced):
        """A window as the program sees it."""
        cdef Carried made = carry_like(self, traced, <Tensor?>traced.example)
        if id(traced.value) not in self.needs:
            made.bits &= ~REQUIRES_GRAD
        return made

    def both(self, args):
        """Arguments as a node has them, and as they are this time."""
        cdef list lifted = [], examples = []
        for a in args:
            if type(a) is Carried and (<Carried>a).level is self:
                window = (<Carried>a).value
                if window.version != window.root.version:
                    window = self.traced(a)
                lifted.append(window.value)
                examples.append(window.example)
            elif type(a) in _PLAIN:
                lifted.append(a)
                examples.append(a)
            else:
                lifted.append(self.lift(a))
                examples.append(self.example(a))
        return lifted, examples

    def lift(self, a):
        """An argument as a node has it."""
        if type(a) in _PLAIN:
            return a
        if isinstance(a, Tensor):
            return self.traced(a).value
        if type(a) is Symbol:
            return a.value
        if isinstance(a, (list, tuple)):
            return tuple([self.lift(x) for x in a])
        if type(a) is slice:
            return slice(self.lift(a.start), self.lift(a.stop), self.lift(a.step))
        if isinstance(a, Generator):
            return self.generator_state(a)[1]
        return a.item() if hasattr(a, "item") else a

    def example(self, a):
        """An argument as it is this time."""
        if type(a) in _PLAIN:
            return a
        if isinstance(a, Tensor):
            return self.traced(a).example
        if type(a) is Symbol:
            return a.hint
        if isinstance(a, (list, tuple)):
            return tuple([self.example(x) for x in a])
        if type(a) is slice:
            return slice(self.example(a.start), self.example(a.stop), self.example(a.step))
        return self.generator_state(a)[2] if isinstance(a, Generator) else a
