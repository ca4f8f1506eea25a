"""Objects of classes, enums and named tuples, exceptions, and what a program switches on for some of its lines.

A class is known by a word, see `word_of`; an object of a class that this process does not have is a plain `Object`.
"""

import builtins
import collections
import functools
import sys
import weakref

from tinygrad_ext.core.call.modes import get_modes, is_grad_enabled, set_modes
from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data.random import Generator, default_generator
from tinygrad_ext.core.data.tensor import Tensor

from ..types import Type
from .table import primitive

_classes = weakref.WeakValueDictionary()  # word -> class
_words = weakref.WeakKeyDictionary()
_functions = {}  # word -> Python function that a graph calls
_function_words = {}


class Error(RuntimeError):
    """What goes wrong in a graph by the program's own will: it raised, or an assertion failed."""


class Object:
    """An object whose class is not there: attributes only."""


def word_of(cls):
    """The word that stands for a class in types and nodes; two classes never share one."""
    word = _words.get(cls) or vars(cls).get(_STANDS_FOR)
    if word is None:
        word, number = cls.__name__, 1
        while word in _classes or word in _RESERVED:
            word, number = f"{cls.__name__}_{number}", number + 1
        _words[cls], _classes[word] = word, cls
    return word


_STANDS_FOR = "_tgx_stands_for"  # attribute of a class that is here for one that is not: the other's word
_RESERVED = {"Tensor", "List", "Dict", "Tuple", "Optional", "Union", "Any", "Scalar", "Device", "Generator"}


def class_of(word):
    """The class of a word, or None."""
    return _classes.get(word)


def keep_function(function):
    """The word under which graphs of this process call a Python function, which is kept until the process ends."""
    word = _function_words.get(function)
    if word is None:
        word = _function_words[function] = f"{function.__qualname__}.{len(_functions)}"
        _functions[word] = function
    return word


def call_function(word, *args):
    if word not in _functions:
        raise LookupError(f"the graph calls the Python function {word}, which this process does not have")
    return _functions[word](*args)


@functools.lru_cache(1000)
def _stand_in(word):
    return type(word, (Object,), {_STANDS_FOR: word})


_callers = []


def keep_caller(function):
    """Decorator: function(object, name, args) is how a graph calls a method of an object that is no module."""
    _callers.append(function)
    return function


def _call_method(name, owner, *args):
    """A compiled method of what a graph was given: nothing that is not compiled is called."""
    module = getattr(owner, "_tgx_call", None)
    return module(name, args) if module is not None else call_method_of(owner, _plain(name), args)


def call_method_of(owner, name, args):
    """A method of an object that is no module, compiled."""
    return _callers[0](owner, name, args)


def _new(word):
    cls = class_of(word) or _stand_in(word)
    return cls.__new__(cls)


def plain_object(word):
    """An object without attributes of the class that a word stands for, where making and dropping it runs nothing."""
    cls = class_of(word)
    if cls is None or hasattr(cls, "__del__"):
        cls = _stand_in(word)
    return object.__new__(cls)


def _plain(name):
    """A graph may come from a file: it reads no attributes of Python's own."""
    if name.startswith("__"):
        raise AttributeError(f"a graph has no access to the attribute '{name}'")
    return name


@functools.lru_cache(1000)
def _fields_alone(word, fields):
    made = collections.namedtuple(word, fields)
    setattr(made, _STANDS_FOR, word)
    return made


def made_named(word, fields, *values):
    cls = class_of(word) or _fields_alone(word, fields)
    return tuple.__new__(cls, values)


class Member(collections.namedtuple("Member", "enum name value")):
    """A member of an enum that is not there: its name and value."""

    def __str__(self):
        return f"{self.enum}.{self.name}"


def made_member(word, name, *value):
    cls = class_of(word)
    if cls is not None:
        return cls[name]
    if not value:
        raise LookupError(f"the enum {word} is not there: import the module that defines it")
    return _members.setdefault((word, name, *value), Member(word, name, *value))


_members = {}  # one of each, for they are compared by identity too


@functools.cache
def _also(cls):
    """A class whose instances are `Error`s, and instances of cls."""
    try:
        return type(cls.__name__, (Error, cls), {"__module__": cls.__module__, "__str__": _told_with_kind})
    except TypeError:
        return Error


def _told_with_kind(error):
    """The text of an error with the name of its class in front, "KeyError: 'x'", since it is caught as an `Error`, and
    the place in the program behind."""
    cls = type(error)
    name = cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"
    own = super(Error, error) if cls.__module__ == "builtins" else super(Exception, error)
    told = ", ".join(map(str, error.args)) if len(error.args) > 1 else own.__str__()
    shown = getattr(error, "shown", "")
    return f"{name}: {told}" + (f"\n{shown}" if shown else "")


PYTHONS = (ArithmeticError, LookupError, TypeError, ValueError)  # what `also_error` is asked about


def also_error(error):
    """An exception of Python's that a compiled program met as one that is an `Error` too."""
    cls = _also(type(error))
    if isinstance(error, Error) or type(error).__module__ != "builtins" or cls is Error:
        return error
    made = cls(*error.args).with_traceback(error.__traceback__)
    made.__dict__.update(vars(error))  # its notes, and the place in the program
    return made


def _raise(word, *args):
    cls = class_of(word) or getattr(builtins, word, None)
    if isinstance(cls, type) and issubclass(cls, Exception):
        raise _also(cls)(*args)
    raise Error(*args)


_PLAIN = {
    "Tensor": Tensor, "int": int, "float": float, "bool": bool, "complex": complex, "str": str,
    "Device": dtypes.device, "ScalarType": dtypes.dtype,
}  # fmt: skip


def fits(value, type):
    """Whether a Python value is one of a type."""
    word, args = type.word, type.args
    if word == "Any":
        return True
    if word == "NoneType" or value is None:
        return value is None and type.is_optional
    if word in _PLAIN:
        return isinstance(value, _PLAIN[word]) and (word != "int" or not isinstance(value, bool))
    if word == "Scalar":
        return isinstance(value, (int, float, bool, complex))
    if word in ("Optional", "Union"):
        return any(fits(value, t) for t in args)
    if word == "List":
        return isinstance(value, list) and all(fits(v, args[0]) for v in value)
    if word == "Dict":
        return isinstance(value, dict) and all(fits(k, args[0]) and fits(v, args[1]) for k, v in value.items())
    if word == "Tuple":
        return isinstance(value, tuple) and len(value) == len(args) and all(map(fits, value, args))
    cls = class_of(word)
    if cls is None:
        return vars(type(value)).get(_STANDS_FOR) == word
    asked = getattr(cls, "_tgx_fits", None)
    return isinstance(value, cls) if asked is None else asked(value)


def _set_grad_mode(mode):
    was, *others = get_modes()
    set_modes(mode, *others)
    return was


def _manual_seed(seed):
    default_generator.manual_seed(seed)
    return seed


def _is_tracing():
    tracing = sys.modules.get("tinygrad_ext.jit.tracing")  # who has not loaded it does not trace
    return tracing is not None and tracing.is_tracing()


@functools.lru_cache(256)
def _type(text):
    return Type.parse(text)


def _expect(value, text, where):
    """The value, if it is one of a type: what comes from Python may be anything."""
    type = _type(text)
    if fits(value, type):
        return value
    if text == "float" and isinstance(value, int):
        return float(value)
    raise RuntimeError(
        f"{where}: expected a value of type {text} but instead got value of type {value.__class__.__name__}\n"
        f"Value: {value!r:.200}"
    )


primitive("expect", "Any str str", None, _expect)
primitive("hash", "Any", "int", hash)
primitive("id", "Any", "int", id)
primitive("manual_seed", "int", "int", _manual_seed, effect=True)


def _advance(generator, to):
    """Let a generator that others may hold go on where a node left its copy."""
    if generator is not None:
        generator.set_state(to.get_state())


primitive("generator.seeded", "int", "Generator", lambda seed: Generator().manual_seed(seed))
primitive("generator.state", "Generator", "Tensor", lambda generator: generator.get_state())
# of generators that others may hold, in the order of the program
for _name, _takes, _gives in (
    ("manual_seed", "int", ""), ("seed", "", "int"), ("initial_seed", "", "int"), ("get_state", "", "Tensor"),
    ("set_state", "Tensor", ""), ("clone_state", "", "Generator"),
):  # fmt: skip
    _run = functools.partial(lambda name, generator, *row: getattr(generator, name)(*row), _name)
    primitive(f"generator.{_name}", f"Generator {_takes}", _gives, _run, effect=True)
primitive("generator.made", "Any", "Generator", lambda device: Generator(device), effect=True)
primitive("generator.advance", "Any Any", "", lambda generator, to: _advance(generator, to), effect=True)
primitive("generator.from_state", "Tensor", "Generator", lambda state: Generator().set_state(state))
primitive("is_tracing", "", "bool", _is_tracing)
primitive("python", "str ...", None, call_function, effect=True)
primitive("call_method", "str Any ...", None, _call_method, effect=True)
primitive("new", "str", None, _new)
primitive("getattr", "Any str", None, lambda value, name: getattr(value, _plain(name)))
primitive("setattr", "Any str Any", "", lambda value, name, new: setattr(value, _plain(name), new), effect=True)
primitive("named_tuple", "str str ...", None, made_named)
primitive("enum", "str str ...", None, made_member)
primitive("isinstance", "Any str", "bool", lambda value, text: fits(value, _type(text)))
primitive("raise", "str ...", "", _raise, effect="order")
primitive("set_grad_enabled", "bool", "bool", _set_grad_mode, effect=True)
primitive("grad_enabled", "", "bool", is_grad_enabled)
