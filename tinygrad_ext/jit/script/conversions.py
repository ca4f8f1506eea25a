"""Numbers that a program declares where it has something else."""

from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.types import FLOAT, INT, NONE, TENSOR

from .types import parts_of
from .values import type_of

_TAKE_ELEMENTS = ("a value to return", "an index", "a key", "a dimension")


def as_declared(c, operand, wanted, what=None):
    """The operand; a power or a rounded number is a float where the program declares one, and a tensor of one element
    that element where a number is returned or looks something up."""
    if what in _TAKE_ELEMENTS and type_of(operand) is TENSOR:
        number = number_of(wanted)
        return operand if number is None else element(c, operand, number, what)
    made = operand.node.op if isinstance(operand, Value) and operand.node is not None else None
    whole = wanted is FLOAT and made in ("prim::pow", "prim::round") and operand.type is INT
    return c.emit("prim::float", (operand,), FLOAT) if whole else operand


def number_of(wanted):
    """int or float where a type is that, or may be None besides; else None."""
    found = [part for part in parts_of(wanted) if part is not NONE] if wanted is not None else []
    return found[0] if len(found) == 1 and found[0] in (INT, FLOAT) else None


def element(c, tensor, number, what):
    """The only element of a tensor; what: it is for, in words."""
    if number is FLOAT:  # who asks whether it requires grad would see an effect there, which no plan has
        return c.emit("prim::float", (tensor,), FLOAT)
    return c.emit("prim::tensor.int", (tensor, what), INT)
