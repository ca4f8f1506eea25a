"""Expressions whose type the program says: by the annotation of a name, or with `annotate`."""

import ast

from tinygrad_ext.graph.types import ANY, BOOL, COMPLEX, FLOAT, INT, TENSOR

from .compiler import hook
from .values import type_of

_TOLIST = (
    "tolist(): Output annotation list dimension and runtime tensor dimension must match, and Output annotation element "
    "type and runtime tensor element type must match for tolist()"
)


@hook
def hinted(c, node, type):
    """The operand of an expression that the program gives a type: whoever calls tolist() says what it gives."""
    if isinstance(node, ast.IfExp):
        return c.ternary(node, type)
    if isinstance(node, (ast.ListComp, ast.DictComp)):
        return c.comprehended(node, type)
    called = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else None
    if not isinstance(called, ast.Attribute) or called.attr != "tolist":
        return c.expression(node)
    tensor = c.expression(called.value)
    if type_of(tensor) is not TENSOR:
        return c.attribute(tensor, "tolist").call(c, [], {})
    inner = type
    while inner.word == "List":
        inner = inner.args[0]
    if inner not in (INT, FLOAT, BOOL, COMPLEX):
        c.fault(f"{inner} is not one of the supported element types for tolist: int, float, bool, complex", node=node)
    with c.at(node):
        made = c.emit("prim::tensor.tolist", (tensor,), ANY)
        return c.emit("prim::expect", (made, str(type), _TOLIST), type)
