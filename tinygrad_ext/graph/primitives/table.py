"""The table of primitives, and how a row is added to it."""

from collections import namedtuple

from ..types import Type

# args, returns: texts of types; run: a Python function; effect: True where it changes what others may hold, "order"
# where it raises or speaks, "takes" where it takes its first argument over: each keeps its place; else False
Primitive = namedtuple("Primitive", "name args returns run effect")

CONTROL = {"prim::If", "prim::Loop", "prim::Function"}
TABLE = {}


def primitive(name, args, returns, run, effect=False):
    """Add a row; `args` and `returns` are texts of types parted by blanks, returns None where the node says it."""
    given = None if returns is None else returns.split() if returns.count("[") == 0 else [returns]
    TABLE[f"prim::{name}"] = Primitive(f"prim::{name}", args.split(), given, run, effect)


def instantiated(text, bound):
    """A type of a row, its letters replaced by what they are bound to."""
    return bound.get(text) or Type.parse(text)
