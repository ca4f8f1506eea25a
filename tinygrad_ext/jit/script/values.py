"""What an expression is while it is compiled: a value of the graph, a constant, or one of these.

A tuple, and a list or dict that was just written down, stay apart in their items until somebody needs the whole: so
unpacking costs nothing, and an empty list gets its type from where it goes. Everything else here exists only while
compiling: functions, classes, modules. Where an operand is asked for an attribute, called or iterated, `Static` says
what is possible; each kind overrides what it can do.
"""

from tinygrad_ext.graph.check import type_of as type_of_constant
from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.types import ANY, INT, STR, TENSOR, Type, list_of

from .types import unify, union


class Static:
    """An operand that is no value of the graph."""

    kind = "an object"

    def attribute(self, c, name):
        c.fault(f"{self.told()} has no attribute '{name}' that script knows: object has no attribute or method")

    def call(self, c, args, kwargs):
        c.fault(f"{self.told()} cannot be called in script")

    def items(self, c):
        """What a for loop over it gives, known while compiling; None: it is no such thing."""
        return None

    def index(self, c, key):
        c.fault(f"{self.told()} cannot be indexed in script")

    def as_value(self, c):
        """What stands for it where it leaves the program, or goes into a tuple, list or dict that does."""
        c.fault(f"{self.told()} cannot be used as a value: a graph holds no such thing")

    def as_text(self):
        """What str() makes of it, where that is known while compiling; else None."""
        return None

    def told(self):
        return self.kind


class TupleValue(Static):
    """A tuple. names: of the fields, where the op or the class gives any."""

    kind = "a tuple"

    def __init__(self, values, names=()):
        self.values, self.names = list(values), tuple(names)

    def attribute(self, c, name):
        if name in self.names:
            return self.values[self.names.index(name)]
        return c.future_attribute(self, name) or super().attribute(c, name)

    def items(self, c):
        return self.values

    def index(self, c, key):
        if type(key) is not int:
            c.fault(
                "tuple index must be an integer that is known while compiling, because we cannot resolve the "
                "output type "
                "otherwise; use a list"
            )
        if not -len(self.values) <= key < len(self.values):
            c.fault(f"index {key} is out of range for a tuple of {len(self.values)} items")
        return self.values[key]


class ListLiteral(Static):
    """`[a, b]`, not yet made."""

    kind = "a list"

    def __init__(self, values):
        self.values = list(values)


class TupleOfList(Static):
    """`tuple(items)` of a list, whose length shows when the program runs. listed: a list of its own."""

    kind = "a tuple of as many items as a list has"

    def __init__(self, listed):
        self.listed = listed

    def index(self, c, key):
        return c.emit("prim::getitem", (self.listed, c.value(key, INT, "an index")), self.listed.type.args[0])

    def as_value(self, c):
        return c.emit("prim::to_tuple", (self.listed,), ANY)


def as_list(operand):
    """The list that a tuple was made of; other operands as they are."""
    return operand.listed if isinstance(operand, TupleOfList) else operand


class DictLiteral(Static):
    """`{a: b}`, not yet made; also what stands behind ** in a call."""

    kind = "a dict"

    def __init__(self, keys, values):
        self.keys, self.values = list(keys), list(values)


class Unbound(Static):
    """A name that has no value on some way to here."""

    def __init__(self, reason):
        self.reason = reason


class Method(Static):
    """A method of a value: `x.add`, `items.append`."""

    kind = "a method"

    def __init__(self, name, run):
        self.name, self.run = name, run

    def told(self):
        return f"the method {self.name}"

    def attribute(self, c, name):
        c.fault(f"attribute lookup is not defined on builtin: the method {self.name} has no '{name}'")

    def as_value(self, c):
        c.fault(f"builtin cannot be used as a value: call the method {self.name}")

    def call(self, c, args, kwargs):
        return self.run(c, args, kwargs)


def is_constant(operand):
    return not isinstance(operand, (Value, Static))


def type_of(operand):
    """The type of an operand; None for what no value of a graph can be."""
    if isinstance(operand, Value):
        return operand.type
    if isinstance(operand, TupleValue):
        inner = [type_of(v) for v in operand.values]
        return None if None in inner else Type("Tuple", inner)
    if isinstance(operand, ListLiteral):
        inner = common_type(operand.values)
        return inner and list_of(inner)
    if isinstance(operand, DictLiteral):
        key = common_type(operand.keys) if operand.keys else STR
        item = common_type(operand.values)
        return Type("Dict", (key, item)) if key and item else None
    if isinstance(operand, Static):
        return None
    return type_of_constant(operand)


def common_type(operands):
    """The type that all of these have; Tensor for none of them, None where they do not go together."""
    found = None
    for operand in operands:
        inner = type_of(operand)
        if inner is None:
            return None
        together = inner if found is None else unify(found, inner)
        found = union([found, inner]) if together is None else together
    return found or TENSOR
