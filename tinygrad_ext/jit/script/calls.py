"""Calls and attributes: whom they go to, by what the operand is."""

import ast

from tinygrad_ext.graph.types import ANY, COMPLEX, DEVICE, DTYPE, FLOAT, GENERATOR, INT, SCALAR, STR, TENSOR, Type

from .compiler import expression, hook
from .errors import NotSupportedError
from .types import NUMBERS
from .values import DictLiteral, ListLiteral, Static, type_of


@expression(ast.Call)
def _call(c, node):
    operand = c.expression(node.func)
    if not isinstance(operand, Static):
        args, kwargs = arguments(c, node)
        made = c.call_magic("__call__", operand, args, kwargs)
        if made is None:
            way_out = (
                "A module in whose place a method puts another is called by what its class says that forward gives: "
                "write def forward(...) -> Tensor, or annotate the attribute with a jit.interface."
            )
            given = type_of(operand)
            c.fault(f"cannot call a value of type {given}: it has no __call__", way_out if given is ANY else "")
        return made
    whole = getattr(operand, "call_node", None)
    if whole is not None:
        found = whole(c, node)
        if found is not NotImplemented:
            return found
    args, kwargs = arguments(c, node)
    return operand.call(c, args, kwargs)


@hook
def arguments(c, node):
    """(operands by position, by keyword) of a call."""
    args, kwargs = [], {}
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            args += c.unpacked(c.expression(arg.value), None)
        else:
            args.append(c.expression(arg))
    for keyword in node.keywords:
        operand = c.expression(keyword.value)
        if keyword.arg is not None:
            kwargs[keyword.arg] = operand
        elif isinstance(operand, DictLiteral) and all(isinstance(k, str) for k in operand.keys):
            kwargs.update(zip(operand.keys, operand.values))
        else:
            c.fault(
                "keyword-arg expansion is not supported but of a dict written in the program; name each argument",
                kind=NotSupportedError,
            )
    return args, kwargs


# ---- attributes ----------------------------------------------------------------------------------------------------

_OF_DTYPE = {
    "is_floating_point": ("prim::dtype.is_floating_point", Type("bool")),
    "is_complex": ("prim::dtype.is_complex", Type("bool")),
    "is_signed": ("prim::dtype.is_signed", Type("bool")),
    "itemsize": ("prim::dtype.itemsize", INT),
}
_OF_DEVICE = {"type": ("prim::device.type", STR), "index": ("prim::device.index", Type("Optional", (INT,)))}


@hook
def attribute(c, operand, name):
    """operand.name"""
    if isinstance(operand, (ListLiteral, DictLiteral)):
        operand = c.value(operand)
    if isinstance(operand, Static):
        return operand.attribute(c, name)
    type = type_of(operand)
    if type is TENSOR:
        return c.tensor_attribute(operand, name)
    if type is STR or type.word in ("List", "Dict"):
        return c.container_attribute(operand, name)
    if type is GENERATOR:
        return c.generator_attribute(operand, name)
    if type is DTYPE and name in _OF_DTYPE:
        return c.emit(_OF_DTYPE[name][0], (operand,), _OF_DTYPE[name][1])
    if type is DEVICE and name in _OF_DEVICE:
        return c.emit(_OF_DEVICE[name][0], (operand,), _OF_DEVICE[name][1])
    if type in NUMBERS:
        return _of_number(c, operand, type, name)
    if type.is_optional or type.word == "Union":
        c.fault(
            f"'{type}' object has no attribute or method '{name}'",
            "Check `is not None` or isinstance before, on a local variable.",
        )
    return c.object_attribute(operand, name)


def _of_number(c, operand, type, name):
    if name in ("real", "imag"):
        return c.emit(f"prim::{name}", (operand,), FLOAT if type in (COMPLEX, FLOAT, SCALAR) else INT)
    return c.fault(f"'{type}' object has no attribute or method '{name}' in script")


@hook
def set_attribute(c, operand, name, value):
    """operand.name = value"""
    if isinstance(operand, Static):
        setter = getattr(operand, "set", None)
        if setter is None:
            c.fault(f"{operand.told()} has no attribute that can be set")
        setter(c, name, value)
    elif type_of(operand) is TENSOR:
        c.set_tensor_attribute(operand, name, value)
    else:
        c.set_object_attribute(operand, name, value)


@hook
def empty(c, value):
    """The operand of an empty list or dict."""
    return ListLiteral([]) if isinstance(value, list) else DictLiteral([], [])
