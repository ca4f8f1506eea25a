"""Opens composites while a graph is planned: they run on values without elements, and what they call becomes steps.

A composite reads sizes and dtypes, which are known by then. One that reads elements, or calls what no plan can hold, is
not planned: the interpreter runs it.
"""

from tinygrad_ext.core.call.levels import Level, OpForm
from tinygrad_ext.core.data.random import default_generator

from .lowering import NotPlanned
from .signature import signature_of

# what can be said of a stand-in as of the tensor itself
_KNOWN = {"is_contiguous", "stride", "storage_offset"}
_ELEMENTS = {
    "item",
    "tolist",
    "__bool__",
    "__int__",
    "__float__",
    "__complex__",
    "__index__",
    "__array__",
    "__contains__",
    "numpy",
}


class Opening(Level):
    """Carries the stand-ins of a `Lowering` through Python code."""

    def __init__(self, lowering):
        self.lowering = lowering

    def process(self, operation, args):
        if operation.composite:
            return NotImplemented
        if type(operation) is not OpForm:
            raise NotPlanned(f"{operation.name} is a step of the host")
        args = self.taken(args)
        if operation.kind == "functional":
            return self.given(opened(self.lowering, operation.op, args))
        if operation.kind == "inplace":
            self.lowering.write(args[0], self.lowering.op(operation.op, args))
            return self.given(args[0])
        raise NotPlanned(f"{operation.name} writes to a tensor that it is given")

    def read(self, value, name, args):
        if name in _KNOWN:
            return getattr(value.value, name)(*args)
        if name in _ELEMENTS:
            raise NotPlanned(f"{name}() reads elements")
        return super().read(value, name, args)

    def given(self, o):
        """Stand-ins in a value, carried."""
        if isinstance(o, (list, tuple)):
            return type(o)([self.given(x) for x in o]) if type(o) in (list, tuple) else tuple(map(self.given, o))
        return self.carry(o, o.shape, o.dtype) if self.lowering.is_tensor(o) else o

    def taken(self, o):
        """The way back."""
        if isinstance(o, (list, tuple)):
            return type(o)([self.taken(x) for x in o]) if type(o) in (list, tuple) else tuple(map(self.taken, o))
        if type(o) is slice:
            return slice(self.taken(o.start), self.taken(o.stop), self.taken(o.step))
        if self.lowering.is_tensor(o):
            return o.value if getattr(o, "level", None) is self else self.lowering.constant(o)
        return o


def opened(lowering, op, args):
    """Results of an op, which is opened where it is written in others."""
    made = lowering.op(op, args)
    if made is not NotImplemented:
        return made
    function = lowering.written_in(op)
    before = default_generator.get_state() if signature_of(op.name).draws else None
    with Opening(lowering) as level:
        made = level.taken(function(*level.given(list(args))))
    if before is not None and not before.equal(default_generator.get_state()):
        default_generator.set_state(before)
        raise NotPlanned("it drew numbers while it was opened, which would be those of every run")
    return made
