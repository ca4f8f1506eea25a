"""Primitives: what a graph does that is no op. Numbers, containers, sizes, control flow.

Each row says what a primitive takes and gives in types and how it is computed; control flow (`prim::If`, `prim::Loop`,
`prim::Function`) is computed by whoever runs the graph, see interpret.py. A letter stands for any one type, the same at
each place; "..." as the last argument for any number of further ones. The result of those with `None` is what the node
says.
"""

import math
import operator
from collections import namedtuple

from .types import Type

# args, returns: texts of types; run: a Python function; effect: it is done for what it does, and keeps its place
Primitive = namedtuple("Primitive", "name args returns run effect")

CONTROL = {"prim::If", "prim::Loop", "prim::Function"}
TABLE = {}


def primitive(name, args, returns, run, effect=False):
    """Add a row; `args` and `returns` are texts of types parted by blanks, returns None where the node says it."""
    TABLE[f"prim::{name}"] = Primitive(
        f"prim::{name}", args.split(), None if returns is None else returns.split(), run, effect
    )


# ---- tensors -------------------------------------------------------------------------------------------------------

primitive("size", "Tensor int", "int", lambda t, dim: int(t.shape[dim]))
primitive("shape", "Tensor", "List[int]", lambda t: [int(n) for n in t.shape])
primitive("rank", "Tensor", "int", lambda t: t.dim())
primitive("numel", "Tensor", "int", lambda t: t.numel())
primitive("dtype", "Tensor", "ScalarType", lambda t: t.dtype)
primitive("device", "Tensor", "Device", lambda t: t.device)
primitive("item", "Tensor", None, lambda t: t.item())

# ---- numbers -------------------------------------------------------------------------------------------------------

for _name, _function in {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "max": max,
    "min": min,
}.items():
    primitive(_name, "Scalar Scalar", None, _function)
primitive("truediv", "Scalar Scalar", None, operator.truediv)
primitive("neg", "Scalar", None, operator.neg)
primitive("abs", "Scalar", None, abs)
primitive("round", "Scalar", None, round)
for _name in ("lt", "le", "gt", "ge"):
    primitive(_name, "Any Any", "bool", getattr(operator, _name))
for _name in ("eq", "ne"):
    primitive(_name, "Any Any", "bool", getattr(operator, _name))
primitive("not", "Any", "bool", operator.not_)
primitive("is", "Any Any", "bool", operator.is_)
primitive("isnot", "Any Any", "bool", operator.is_not)
for _name in ("and", "or", "xor", "lshift", "rshift"):
    primitive(
        f"bit{_name}" if _name in ("and", "or", "xor") else _name,
        "int int",
        None,
        getattr(operator, f"{_name}_" if _name in ("and", "or") else _name),
    )
primitive("invert", "int", "int", operator.invert)
primitive("int", "Any", "int", int)
primitive("float", "Any", "float", float)
primitive("bool", "Any", "bool", bool)
primitive("complex", "Scalar Scalar", "complex", complex)
primitive("str", "Any", "str", str)
for _name in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil"):
    primitive(f"math.{_name}", "Scalar", "int" if _name in ("floor", "ceil") else "float", getattr(math, _name))


def _guard(given, expected, place):
    """What a captured program decided by must be what it was then."""
    if given != expected:
        raise GuardFailed(f"the graph was captured with {expected}, not {given}, where {place} depends on it")


class GuardFailed(RuntimeError):
    """A graph does not hold for these inputs: what Python decided while it was captured would be decided otherwise."""


primitive("guard", "Any Any str", "", _guard, effect=True)

# ---- containers ----------------------------------------------------------------------------------------------------

primitive("list", "...", None, lambda *items: list(items))
primitive("tuple", "...", None, lambda *items: tuple(items))
primitive("dict", "...", None, lambda *items: dict(zip(items[::2], items[1::2])))
primitive("unpack", "Any", None, lambda items: tuple(items))
primitive("getitem", "Any Any", None, operator.getitem)
primitive("len", "Any", "int", len)
primitive("cast", "Any", None, lambda value: value)  # the same value, of a type that is known by now


def instantiated(text, bound):
    """A type of a row, its letters replaced by what they are bound to."""
    return bound.get(text) or Type.parse(text)
