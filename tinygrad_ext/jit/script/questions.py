"""Questions about types that are answered while compiling where that can be: isinstance, hasattr, annotate, cast."""

import ast
import inspect
import types as python_types
import typing

import tinygrad_ext as tg
from tinygrad_ext.graph.primitives.objects import class_of
from tinygrad_ext.graph.types import ANY, BOOL, FLOAT, INT, TENSOR, Type

from .classes import ClassValue
from .compiler import hook
from .conditions import Condition
from .environment import ABSENT
from .expressions import KINDS, evaluate
from .forked import NODES as FORKS
from .functions import FunctionValue
from .markers import annotate, check_contained, is_scripting
from .markers import isinstance as jit_isinstance
from .types import NoType, hashable, type_from
from .values import DictLiteral, ListLiteral, Method, Static, is_constant, type_of


class Question(Static):
    """A function whose arguments are read off the source."""

    kind = "a question about types"

    def __init__(self, python, call_node):
        self.python, self._call_node = python, call_node

    def call_node(self, c, node):
        return self._call_node(c, node)


def _type_at(c, node):
    with c.at(node):
        return _type_of(c, evaluate(c, ast.unparse(node)))


def _type_of(c, named):
    try:
        return type_from(named, lambda text: evaluate(c, text))
    except NoType as error:
        return c.fault(str(error))


def _types_at(c, node):
    if isinstance(node, ast.Tuple):
        return [t for n in node.elts for t in _types_at(c, n)]
    named = evaluate(c, ast.unparse(node))
    if isinstance(named, tuple):
        return [_type_of(c, n) for n in named]
    kind = typing.get_origin(named) or named
    if kind in (list, dict, tuple) and not typing.get_args(named):
        word = kind.__name__.capitalize()
        return [Type(word, (ANY, ANY) if word == "Dict" else (ANY,))]
    return [_type_at(c, node)]


def _is_instance(c, node):
    if len(node.args) != 2:
        c.fault("isinstance() takes a value and a type")
    operand = c.expression(node.args[0])
    if isinstance(operand, Static) and not isinstance(operand, (ListLiteral, DictLiteral)) and type_of(operand) is None:
        python = getattr(operand, "module", getattr(operand, "python", None))
        return Condition(isinstance(python, evaluate(c, ast.unparse(node.args[1]))))
    return c.is_of_type(node.args[0], operand, _types_at(c, node.args[1]))


def _is_instance_of_contained(c, node):
    for target in node.args[1].elts if isinstance(node.args[-1], ast.Tuple) else node.args[1:2]:
        named = evaluate(c, ast.unparse(target))
        try:
            check_contained(named)
        except RuntimeError as error:
            c.fault(str(error), node=target)
    return _is_instance(c, node)


def _has_attribute(c, node):
    operand = c.expression(node.args[0])
    name = c.expression(node.args[1])
    if hasattr(operand, "has"):
        return Condition(operand.has(c, name))
    if isinstance(operand, Static):
        return Condition(hasattr(getattr(operand, "python", None), name))
    if type_of(operand) is TENSOR:
        return Condition(hasattr(tg.Tensor, name))
    return Condition(c.has_object_attribute(operand, name))


def _scripting(c, node):
    return Condition(True)


_CONDITIONS = {
    isinstance: _is_instance,
    jit_isinstance: _is_instance_of_contained,
    hasattr: _has_attribute,
    is_scripting: _scripting,
}


@hook
def type_question(c, node):
    """The Condition that a call is, or None: it is an ordinary call."""
    if not isinstance(node.func, (ast.Name, ast.Attribute)):
        return None
    operand = _asked(c, node.func)
    made = _CONDITIONS.get(operand) if callable(operand) and hashable(operand) else None
    return None if made is None else made(c, node)


def _asked(c, node):
    """The Python object that a dotted name stands for, where no local name hides it."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or c.scope.find(node.id) is not ABSENT:
        return None
    try:
        value = c.frame.lookup(node.id)
        for part in reversed(parts):
            value = getattr(value, part)
    except (LookupError, AttributeError):
        return None
    return value


def _annotate(c, node):
    if len(node.args) != 2:
        c.fault("annotate() takes a type and a value")
    type = _type_at(c, node.args[0])
    operand = c.hinted(node.args[1], type)
    if type_of(operand) is TENSOR and type in (INT, FLOAT, BOOL):
        return c.emit(f"prim::{type}", (operand,), type)
    operand = c.value(operand, type)
    if is_constant(operand) and type_of(operand) is not type:
        return c.emit("prim::cast", (operand,), type)
    return operand


def _cast(c, node):
    return c.emit("prim::cast", (c.value(c.expression(node.args[1])),), _type_at(c, node.args[0]))


def _get_attribute(c, node):
    operand, name = c.expression(node.args[0]), c.expression(node.args[1])
    if not isinstance(name, str):
        c.fault("getattr() takes a name that is known while compiling")
    if len(node.args) == 3 and not _has_attribute(c, node).operand:
        return c.expression(node.args[2])
    return c.attribute(operand, name)


def _class_of(c, node):
    operand = c.expression(node.args[0])
    cls, type = getattr(operand, "cls", None) if isinstance(operand, Static) else None, type_of(operand)
    if cls is None and type is not None:
        cls = class_of(type.word) or _CLASSES.get(type.word)
    if cls is None:
        told = operand.told() if type is None else f"a value of type {type}"
        way_out = "Write isinstance(x, ...) to ask for a type."
        c.fault(f"type() takes a module or a value of one type, not {told}", way_out)
    return ClassValue(cls, cls.__name__)


_CLASSES = {
    "Tensor": tg.Tensor, "int": int, "float": float, "bool": bool, "complex": complex, "str": str, "List": list,
    "Dict": dict, "Tuple": tuple, "NoneType": type(None),
}  # fmt: skip


class Super(Static):
    """`super()`: what stands behind a class in the order of bases of an object's class."""

    kind = "super()"

    def __init__(self, operand, bases):
        self.operand, self.bases = operand, bases

    def attribute(self, c, name):
        found = next((vars(base)[name] for base in self.bases if name in vars(base)), None)
        if isinstance(found, property):
            return c.inline(found.fget, [], {}, (self.operand,))
        if isinstance(found, staticmethod):
            return FunctionValue(found.__func__, name)
        if found is object.__init__:
            return Method(name, lambda c, args, kwargs: None)
        found = inspect.unwrap(found) if callable(found) else None
        if not isinstance(found, python_types.FunctionType):
            c.fault(f"super() has no method '{name}'")
        return FunctionValue(found, name, (self.operand,))


def _super(c, node):
    if node.args:
        c.fault("super() takes no arguments in script")
    try:
        cls = c.frame.lookup("__class__")
    except LookupError:
        c.fault("super() stands in a method of a class")
    operand = c.frame.root.find(c.frame.source.tree.args.args[0].arg)
    of = getattr(operand, "cls", None) if isinstance(operand, Static) else class_of(type_of(operand).word)
    if of is None or cls not in of.__mro__:
        c.fault("super() asks for self, but that name stands for something else here")
    return Super(operand, of.__mro__[of.__mro__.index(cls) + 1 :])


def _condition_value(c, node):
    return _CONDITIONS[_asked(c, node.func)](c, node).operand


_NODES = {
    **dict.fromkeys(_CONDITIONS, _condition_value),
    **FORKS,
    annotate: _annotate,
    typing.cast: _cast,
    getattr: _get_attribute,
    type: _class_of,
    super: _super,
}


def _known(c, value, name):
    return Question(value, _NODES[value]) if hashable(value) and value in _NODES else None


KINDS.insert(0, (object, _known))
