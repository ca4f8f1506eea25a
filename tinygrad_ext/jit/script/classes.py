"""Classes: objects with attributes and methods, dataclasses, named tuples, enums."""

import dataclasses
import enum
import inspect
import types as python_types
import weakref

from tinygrad_ext.graph.primitives.objects import class_of, fits, word_of
from tinygrad_ext.graph.types import BOOL, FLOAT, STR, TENSOR, Type, accepts

from .compiler import Compiler, Frame, hook
from .errors import AnnotationError, FrontendError
from .expressions import kind
from .fields import fields_given, named_tuple
from .functions import FunctionValue, lookup_of
from .interfaces import interface_of
from .iteration import Iteration
from .markers import MODIFIER
from .source import source_of
from .types import (
    NoType,
    annotations_of,
    fields_of,
    is_kept,
    is_named_tuple,
    rest_of_fields,
    type_from,
    unify,
    union,
)
from .values import Static, TupleValue, Unbound, is_constant, type_of

_attributes = weakref.WeakKeyDictionary()  # class -> {attribute: type}


class ClassValue(Static):
    """A class; calling it makes an object."""

    kind = "a class"

    def __init__(self, python, name):
        self.python = self.cls = python
        self.name = name

    def told(self):
        return f"the class {self.python.__name__}"

    def as_text(self):
        return str(self.python)

    def as_value(self, c):
        c.fault(
            f"python value of type 'type' cannot be used as a value: {self.told()}; failed to convert Python type",
            "Write isinstance(x, ...) to ask for a type, or str(type(x)) for its name.",
        )

    def attribute(self, c, name):
        cls = self.python
        if name in ("__name__", "__qualname__", "__module__"):
            return getattr(cls, name)
        if issubclass(cls, enum.Enum) and name in cls.__members__:
            return c.python(cls[name], name)
        found = inspect.getattr_static(cls, name, None)
        if isinstance(found, staticmethod):
            return FunctionValue(found.__func__, name)
        if isinstance(found, classmethod):
            return FunctionValue(found.__func__, name, (self,))
        if isinstance(found, python_types.FunctionType):
            return FunctionValue(found, name)
        if found is None:
            c.fault(f"{self.told()} has no attribute '{name}'")
        if not hasattr(cls, name):
            c.fault(f"{self.told()} has no attribute '{name}': its objects have")
        return c.python(getattr(cls, name), f"{self.name}.{name}")

    def items(self, c):
        if issubclass(self.python, enum.Enum):
            return [c.python(m, m.name) for m in self.python]
        return None

    def call(self, c, args, kwargs):
        cls = self.python
        if vars(cls).get(MODIFIER) in ("ignore", "unused"):
            c.fault(
                f"Cannot instantiate class '{cls.__name__}' in a script function: it is marked {vars(cls)[MODIFIER]}",
                kind=FrontendError,
            )
        if issubclass(cls, enum.Enum):
            return _member_of(c, cls, args)
        if is_named_tuple(cls):
            return named_tuple(c, cls, args, kwargs)
        if issubclass(cls, BaseException):
            c.fault("an exception cannot be used as a value: it is made where it is raised, raise ValueError('...')")
        return _object(c, cls, args, kwargs)


@kind(enum.Enum)
def _member(c, value, name):
    word, known = word_of(type(value)), type(value.value) in (int, float, bool, str)
    return c.emit("prim::enum", (word, value.name, *([value.value] if known else [])), Type(word))


def _member_of(c, cls, args):
    if len(args) != 1 or not is_constant(args[0]):
        c.fault(f"{cls.__name__}(...) takes a value that is known while compiling")
    try:
        return c.python(cls(args[0]), cls.__name__)
    except ValueError as error:
        return c.fault(str(error))


def _object(c, cls, args, kwargs):
    made = c.emit("prim::new", (word_of(cls),), Type(word_of(cls)))
    attributes_of(c, cls)
    init = inspect.getattr_static(cls, "__init__", None)
    if dataclasses.is_dataclass(cls) and not hasattr(init, "__wrapped__") and not has_source(init):
        extra = []
        for (name, _, _), value in zip(fields_of(cls), fields_given(c, cls, args, kwargs)):
            if is_kept(cls, name):
                c.effect("prim::setattr", made, name, value)
            else:
                extra.append(value)
        for name, type, default in rest_of_fields(cls):
            if default is not inspect.Parameter.empty:
                value = default() if callable(default) and not isinstance(default, enum.Enum) else default
                c.effect("prim::setattr", made, name, c.value(c.default(value, name), type, f"'{name}'"))
        if hasattr(cls, "__post_init__"):
            c.inline(cls.__post_init__, extra, {}, (made,))
        return made
    if isinstance(init, python_types.FunctionType):
        c.inline(init, args, kwargs, (made,))
    elif args or kwargs:
        c.fault(f"{cls.__name__}() takes no arguments")
    return made


def has_source(function):
    return isinstance(function, python_types.FunctionType) and not function.__code__.co_filename.startswith("<string>")


def attributes_of(c, cls):
    """{attribute: type} of the objects of a class: by its annotations, and by what __init__ sets."""
    found = _attributes.get(cls)
    if found is None:
        found = _attributes[cls] = {}
        try:
            _learn(cls, found)
        except NoType as error:
            del _attributes[cls]
            raise AnnotationError(f"an annotation of the class {cls.__module__}.{cls.__name__}: {error}") from None
        except BaseException:
            del _attributes[cls]
            raise
    return found


def learn_attributes(c, type):
    """Let the attributes of the class that a type is be known, if it is one with attributes."""
    cls = class_of(type.word)
    if cls is not None and interface_of(type) is None and not is_named_tuple(cls) and not issubclass(cls, enum.Enum):
        attributes_of(c, cls)


def misfit(value, type):
    """What is wrong with an object that is given for a class, in one of its fields or attributes; else ""."""
    cls = class_of(type.word)
    if cls is None:
        return ""
    if is_named_tuple(cls):
        told = f" (aka NamedTuple({', '.join(cls._fields)}))"
        try:
            known = {name: wanted for name, wanted, _ in fields_of(cls)}
        except NoType:
            return ""
    else:
        told, known = "", _attributes.get(cls, {})
    for name, wanted in known.items():
        if not hasattr(value, name):
            return f"{cls.__name__} has no attribute '{name}' though its class says so"
        given = getattr(value, name)
        if not fits(given, wanted) and not (wanted is FLOAT and isinstance(given, int)):
            return (
                f"Could not cast attribute '{name}' to type {wanted}: {cls.__name__}{told} says so, but it is "
                f"{given!r:.100} of type {given.__class__.__name__}"
            )
    return ""


def missing(value, type):
    """The first attribute of a class that something which is given for its object has not; else ""."""
    cls = class_of(type.word)
    names = _attributes.get(cls, {}) if cls is not None else {}
    lacks = next((name for name in names if not hasattr(value, name)), None)
    return "" if lacks is None else f"\n{type} is not what came: missing attribute {lacks}"


def _learn(cls, found):
    init = inspect.getattr_static(cls, "__init__", None)
    if dataclasses.is_dataclass(cls):
        told = [*fields_of(cls), *rest_of_fields(cls)]
        found.update((name, type) for name, type, _ in told if is_kept(cls, name))
        if has_source(init) or not hasattr(cls, "__post_init__"):
            return
    if not has_source(init):
        return
    lookup = lookup_of(init)
    for base in reversed(cls.__mro__):
        for name, annotation in annotations_of(base).items():
            found[name] = type_from(annotation, lambda text: eval(text, {}, _Names(lookup)))
    trial = Compiler(cls.__name__)
    frame = Frame(source_of(init), lookup)
    trial.frames.append(frame)
    with trial.at(frame.source.tree):
        spec = frame.source.tree.args
        made = trial.emit("prim::new", (word_of(cls),), Type(word_of(cls)))
        args = []
        for arg in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs][1:]:
            type = TENSOR if arg.annotation is None else trial.type_of_annotation(arg.annotation)
            args.append(trial.emit("prim::undefined", (), type))
        count = len(spec.posonlyargs) + len(spec.args) - 1
        named = {a.arg: v for a, v in zip(spec.kwonlyargs, args[count:])}
        trial.inline(init, args[:count], named, (made,))


class _Names(dict):
    def __init__(self, lookup):
        self.lookup = lookup

    def __missing__(self, name):
        try:
            return self.lookup(name)
        except LookupError:
            raise KeyError(name) from None


# ---- objects -------------------------------------------------------------------------------------------------------


@hook
def object_attribute(c, value, name):
    """Attribute, property or method of an object."""
    type = type_of(value)
    cls = class_of(type.word)
    if cls is None:
        return c.future_attribute(value, name) or c.fault(f"'{type}' object has no attribute or method '{name}'")
    if interface_of(type) is not None:
        return c.interface_attribute(value, cls, name)
    if issubclass(cls, enum.Enum):
        return _of_member(c, value, cls, name)
    if is_named_tuple(cls):
        for field, field_type, _ in fields_of(cls):
            if field == name:
                return c.emit("prim::getattr", (value, name), field_type)
    known = {} if is_named_tuple(cls) else attributes_of(c, cls)
    if name in known:
        return c.emit("prim::getattr", (value, name), known[name])
    found = inspect.getattr_static(cls, name, None)
    if isinstance(found, property):
        return c.inline(found.fget, [], {}, (value,))
    if isinstance(found, python_types.FunctionType):
        return FunctionValue(found, name, (value,))
    if found is None:
        c.fault(
            f"'{cls.__name__}' object has no attribute or method '{name}'",
            f"Set self.{name} in __init__: its type is learnt there." if not is_named_tuple(cls) else "",
        )
    return ClassValue(cls, cls.__name__).attribute(c, name)


def _of_member(c, value, cls, name):
    if name == "name":
        return c.emit("prim::getattr", (value, "name"), STR)
    if name == "value":
        types = {type_of(m.value) for m in cls}
        if len(types) != 1:
            c.fault(f"the values of {cls.__name__} have several types, so .value has none")
        return c.emit("prim::getattr", (value, "value"), types.pop())
    return c.fault(f"a member of an enum has .name and .value, not '{name}'")


@hook
def has_object_attribute(c, value, name):
    """Whether an object has an attribute, as far as its class says."""
    cls = class_of(type_of(value).word)
    return cls is not None and (name in attributes_of(c, cls) or hasattr(cls, name))


@hook
def declare_attribute(c, value, name, type):
    """An annotation in __init__ gives an attribute its type."""
    cls = None if isinstance(value, Static) else class_of(type_of(value).word)
    if cls is not None and c.frame.source.name == "__init__":
        attributes_of(c, cls).setdefault(name, type)


@hook
def set_object_attribute(c, value, name, operand):
    """object.name = operand; in __init__ this is where the attribute gets its type."""
    type = type_of(value)
    cls = class_of(type.word)
    if cls is None or issubclass(cls, enum.Enum) or is_named_tuple(cls):
        c.fault(f"an attribute of a value of type {type} cannot be set")
    known = attributes_of(c, cls)
    if name not in known:
        if c.frame.source.name != "__init__":
            found = inspect.getattr_static(cls, name, None)
            if isinstance(found, property) and found.fset is not None:
                c.inline(found.fset, [operand], {}, (value,))
                return
            c.fault(
                f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?",
                f"{cls.__name__} has no attribute '{name}'; set self.{name} in __init__ first.",
            )
        operand = c.value(operand)
        known[name] = type_of(operand)
    given, wanted = type_of(operand), known[name]
    if given is not None and not isinstance(operand, Static) and not accepts(wanted, given):
        c.fault(
            f"Wrong type for attribute assignment. Expected {wanted} for '{name}' of {cls.__name__} but got {given}",
            f"Annotate it in __init__: self.{name}: {unify(wanted, given) or union([wanted, given])} = ...",
        )
    if c.frame.source.name == "__init__":
        c.scope.bound[f"self.{name}"] = True
        c.frame.set_at.setdefault(name, c.nodes[-1])
    c.effect("prim::setattr", value, name, c.value(operand, wanted, f"'{name}'"))


@hook
def check_set(c):
    """At the end of an __init__: an attribute is there whatever way it took."""
    for name, node in c.frame.set_at.items():
        if isinstance(c.scope.find(f"self.{name}"), Unbound):
            c.fault(
                f"self.{name} is not set on all ways through __init__",
                "The first assignment cannot be in a control-flow block, or has to be in both branches.",
                node=node,
            )


@hook
def tuple_types(c, type):
    """Types of the items of a tuple type, named or not; None for other types."""
    if type.word == "Tuple":
        return type.args
    cls = class_of(type.word)
    return [t for _, t, _ in fields_of(cls)] if cls is not None and is_named_tuple(cls) else None


@hook
def call_magic(c, name, operand, args, kwargs=None, returns=True):
    """What the method of this name gives, of an object whose class has it; else None."""
    type = type_of(operand)
    cls = type and class_of(type.word)
    if cls is None or is_named_tuple(cls) or issubclass(cls, enum.Enum):
        return None
    if name == "__call__" and interface_of(type) is not None:
        return c.interface_attribute(operand, cls, name).call(c, args, kwargs or {})
    found = inspect.getattr_static(cls, name, None)
    if not isinstance(found, python_types.FunctionType) or (name == "__eq__" and dataclasses.is_dataclass(cls)):
        return None
    if name in _ORDER and dataclasses.is_dataclass(cls) and not has_source(found):
        row = [_in_order(c, cls, o) for o in (operand, *args)]
        return c.emit(f"prim::{name.strip('_')}", row, BOOL)
    made = c.inline(found, args, kwargs or {}, (operand,))
    return made if returns else True


_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")


def _in_order(c, cls, operand):
    """The fields by which a dataclass made with `order=True` is compared, as a tuple."""
    names = [f.name for f in dataclasses.fields(cls) if f.compare]
    return c.value(TupleValue([c.attribute(operand, name) for name in names]))


@hook
def iterate_object(c, value):
    """An Iteration over an object with __len__ and __getitem__."""
    length = call_magic(c, "__len__", value, [])
    if length is None:
        return None
    return Iteration(lambda c: length, lambda c, i: call_magic(c, "__getitem__", value, [i]))


@kind(type)
def _class(c, value, name):
    return ClassValue(value, name)
