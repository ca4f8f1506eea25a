"""Expressions: constants, names, containers written down, f-strings, attributes."""

import ast
import functools
import numbers
import types as python_types

from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.futures import Future
from tinygrad_ext.graph.types import ANY, STR
from tinygrad_ext.registry.op_namespace import Namespace

from ..annotations import LISTS, broadcast_of
from .compiler import expression, hook
from .environment import ABSENT
from .errors import AnnotationError, NotSupportedError
from .types import TYPING, NoType, type_from
from .values import DictLiteral, ListLiteral, Method, Static, TupleValue, Unbound, as_list, type_of

LARGEST = (1 << 63) - 1
_CONSTANT = (dtypes.dtype, dtypes.device, dtypes.layout, dtypes.memory_format)


@expression(ast.Constant)
def _constant(c, node):
    if isinstance(node.value, bytes):
        c.fault("bytes aren't supported in script; use a str or a tensor", kind=NotSupportedError)
    if type(node.value) is int and node.value > LARGEST:
        c.fault(
            f"the number {node.value} is out of range, or out of bounds: an int has 64 bits", "Write a float: 1e20."
        )
    return node.value


@expression(ast.Name)
def _name(c, node):
    found = c.scope.find(node.id)
    if found is ABSENT:
        return c.python_name(node.id)
    if isinstance(found, Unbound):
        c.fault(found.reason)
    return found


@hook
def python_name(c, name):
    """What a name stands for outside of the function."""
    try:
        value = c.frame.lookup(name)
    except LookupError:
        c.fault(f"undefined value {name}")
    return c.python(value, name)


@hook
def python(c, value, name):
    """The operand that a Python object is. KINDS has what no constant is."""
    if value is None or type(value) in (bool, int, float, complex, str) or isinstance(value, _CONSTANT):
        return value
    if value is Ellipsis:
        return value
    if isinstance(value, (tuple, list)) and type(value) in (tuple, dtypes.Size):
        return TupleValue([python(c, v, f"{name}[{i}]") for i, v in enumerate(value)])
    for kinds, make in KINDS:
        if isinstance(value, kinds):
            found = make(c, value, name)
            if found is not None:
                return found
    told = type(value).__name__
    return c.fault(
        f"python value of type '{told}' cannot be used as a value: {name} stands outside of the function, and it "
        f"failed to convert Python type '{told}' to one of script",
        "Pass it as an argument, or make it an attribute of the module (a buffer, where it is a tensor).",
    )


KINDS = []  # (classes, function(c, value, name) -> operand or None), the first that answers


def kind(*classes):
    """Decorator: how a Python object of these classes is an operand."""
    return lambda function: KINDS.append((classes, function)) or function


@kind(functools.partial)
def _partial(c, value, name):
    """A function with some of its arguments given: these are constants."""
    function = python(c, value.func, name)
    given = [python(c, v, f"{name}.args[{i}]") for i, v in enumerate(value.args)]
    named = {key: python(c, v, f"{name}.keywords[{key!r}]") for key, v in value.keywords.items()}
    return Method(name, lambda c, args, kwargs: function.call(c, [*given, *args], {**named, **kwargs}))


class PythonModule(Static):
    """A Python module, or any namespace whose attributes are Python objects."""

    kind = "a Python module"

    def __init__(self, python, name):
        self.python, self.name = python, name

    def told(self):
        return f"the module {self.name}"

    def attribute(self, c, name):
        try:
            value = getattr(self.python, name)
        except AttributeError as error:
            c.fault(
                f"{self.told()} has no '{name}': {error}; object has no attribute {name}. This op may not exist or "
                "may not be "
                "currently supported in TorchScript"
            )
        return c.python(value, f"{self.name}.{name}")


@kind(python_types.ModuleType, Namespace)
def _module(c, value, name):
    return PythonModule(value, name)


@expression(ast.Attribute)
def _attribute(c, node):
    return c.attribute(c.expression(node.value), node.attr)


@expression(ast.Tuple)
def _tuple(c, node):
    return TupleValue(_items(c, node.elts))


@expression(ast.List)
def _list(c, node):
    return ListLiteral(_items(c, node.elts))


def _items(c, nodes):
    found = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            found += c.unpacked(c.expression(node.value), None)
        else:
            found.append(c.expression(node))
    return found


@expression(ast.Dict)
def _dict(c, node):
    keys, values = [], []
    for key, value in zip(node.keys, node.values):
        if key is None:
            inner = c.expression(value)
            if not isinstance(inner, DictLiteral):
                c.fault("Dict expansion by ** takes only a dict written there; use update()", kind=NotSupportedError)
            keys += inner.keys
            values += inner.values
        else:
            keys.append(c.expression(key))
            values.append(c.expression(value))
    return DictLiteral(keys, values)


@expression(ast.JoinedStr)
def _f_string(c, node):
    template, args = _template(c, node.values)
    if not args:
        return template.replace("{{", "{").replace("}}", "}")
    return c.emit("prim::format", (template, *args), STR)


@hook
def for_text(c, operand):
    """An operand that goes into a text, as a value."""
    text = operand.as_text() if isinstance(operand, Static) else None
    return c.value(operand) if text is None else text


def _template(c, parts):
    text, args = "", []
    for part in parts:
        if isinstance(part, ast.Constant):
            text += part.value.replace("{", "{{").replace("}", "}}")
            continue
        args.append(c.for_text(c.expression(part.value)))
        conversion = "" if part.conversion == -1 else "!" + chr(part.conversion)
        spec = ""
        if part.format_spec is not None:
            inner, more = _template(c, part.format_spec.values)
            spec, args = ":" + inner, args + more
        text += "{" + conversion + spec + "}"
    return text, args


@expression(ast.GeneratorExp)
def _generator(c, node):
    return c.comprehension(node.generators, lambda: c.expression(node.elt))


# ---- annotations ---------------------------------------------------------------------------------------------------


@hook
def type_of_annotation(c, node):
    """The type that an annotation in the source stands for."""
    with c.at(node):
        _check_written(c, node)
        try:
            told = evaluate(c, ast.unparse(node))
            c.broadcasts[node] = broadcast_of(told)
            return type_from(told, lambda text: evaluate(c, text))
        except NoType as error:
            return c.fault(str(error), kind=AnnotationError)


def _check_written(c, node):
    """Raise for an expression that is no type, wherever it stands in an annotation."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and not isinstance(part.op, ast.BitOr):
            sign = ast.unparse(ast.BinOp(ast.Name("a"), part.op, ast.Name("b")))[2:-2]
            c.fault(f"Expression of type {sign} cannot be used in a type expression", kind=AnnotationError)
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Subscript):
            c.fault(f"Subscripted type must be a type identifier: {ast.unparse(part)}", kind=AnnotationError)


# names that annotations may use without an import, as comments do
# as PyTorch's own layers say a size: one number, or one for each dimension
_SIZES = {f"_size_{count}_t": LISTS[f"BroadcastingList{count}"][int] for count in range(1, 7)}
ALWAYS = {**LISTS, **TYPING, "Tensor": Tensor, "number": numbers.Number, "Device": dtypes.device, "Future": Future,
    "Generator": Generator,
}  # fmt: skip


def evaluate(c, text):
    """What a text names where the function stands: an annotation, in quotes or not."""
    lookup = c.frame.lookup

    class Names(dict):
        def __missing__(self, name):
            if name in _SIZES:
                return _SIZES[name]
            try:
                return lookup(name)
            except LookupError:
                return ALWAYS[name]

    try:
        return eval(text, {"__builtins__": {}}, Names())
    except Exception as error:
        told = f"the annotation {text} cannot be read: {type(error).__name__}: {error}"
        if isinstance(error, NameError) and str(error.name).startswith("BroadcastingList"):
            told = f"The count behind BroadcastingList must be a positive integer: {told}"
        elif isinstance(error, TypeError) and "[" in text:
            told = f"Unknown type constructor {text.partition('[')[0]}: {told}"
        if isinstance(error, (NameError, LookupError)):
            told = f"Unknown type name '{getattr(error, 'name', None) or error.args[0]}': {told}"
        return c.fault(told, kind=AnnotationError)


@hook
def unpacked(c, operand, count=None):
    """The items of an operand: a list of operands. count: how many are wanted, or None where that is not said."""
    items = operand.items(c) if isinstance(operand, Static) else None
    if items is None and isinstance(operand, ListLiteral):
        items = operand.values
    if (
        items is None
        and isinstance(operand, Static)
        and type_of(as_list(operand)) is None
        and not isinstance(operand, DictLiteral)
    ):
        c.fault(f"{operand.told()} cannot be used as a tuple")
    if items is None:
        items = _unpacked_value(c, c.value(as_list(operand)), count)
    items = list(items)
    if count is not None and len(items) != count:
        few = len(items) < count
        untold = not items or type_of(operand).args == (ANY,)
        if untold and not isinstance(operand, Static):
            c.fault("Provided tuple is not fully defined/refined: its items have no types", _TUPLE_TOLD)
        many = "" if few else "too many values to unpack: "
        c.fault(
            f"{many}need {count} {'values to unpack, ' if few else ''}but found {'only ' if few else ''}{len(items)}",
            "List of iterables is not supported currently as rows of a loop: write zip(a, b)."
            if _listed(operand)
            else "",
        )
    return items


def _listed(operand):
    return isinstance(operand, ListLiteral)


_TUPLE_TOLD = "Ask by jit.isinstance(x, Tuple[int, int]), say, which tells them."


@hook
def is_tuple(c, operand):
    """Whether an operand is a tuple, made or not."""
    type = type_of(operand)
    return isinstance(operand, TupleValue) or (type is not None and type.word == "Tuple")


def _unpacked_value(c, value, count):
    type = type_of(value)
    types = c.tuple_types(type)
    if types is not None:
        return c.node("prim::unpack", (value,), types).outputs
    if type.word == "List":
        if count is None:
            c.fault("how many items a list has is not known while compiling; use a tuple")
        return c.node("prim::unpack_list", (value, count), [type.args[0]] * count).outputs
    if type.word == "Tensor" and count is not None:
        made = c.op("aten::unbind.int", (value, 0))
        return _unpacked_value(c, made, count)
    return c.fault(f"a value of type {type} cannot be used as a tuple: it cannot be unpacked")
