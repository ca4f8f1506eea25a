"""Interfaces: what a class says of the methods of modules and objects, where which one it is shows when it runs.

A value of an interface is a value of the graph, and a call of its method a node: `prim::call_method`. Where the modules
are known, and only which of them is not, as for `self.layers[i]`, the value is a `Choice`, and a call of its method
branches.
"""

import inspect
import weakref

from tinygrad_ext import nn
from tinygrad_ext.graph.primitives.objects import class_of, word_of
from tinygrad_ext.graph.types import ANY, NONE, TENSOR, Type, accepts

from .compiler import Compiler, Frame, hook
from .functions import Parameters, lookup_of
from .markers import MODIFIER
from .source import source_of
from .types import annotations_of, parts_of
from .values import ListLiteral, Method, Static, TupleValue, type_of

_SELF = 1  # arguments of a method that are not written down in a call


def interface(obj):
    """Decorator: a class whose methods, all but their bodies, say what a module or object has, for annotations.

    A compiled function takes compiled modules where a parameter is annotated with it; one that is a subclass of
    `nn.Module` takes modules only. ``layer: Layer = self.layers[i]`` picks a module when the program runs.
    """
    if issubclass(obj, nn.Module) and obj.__bases__ != (nn.Module,):
        raise RuntimeError(
            f"the interface {obj.__name__} inherits from {obj.__bases__[0].__name__}: jit.interface does not support "
            "inheritance yet. Please directly inherit from nn.Module"
        )
    obj._tgx_script_interface = True
    obj._tgx_fits = classmethod(lambda cls, value: not lacking(value, cls))
    return obj


def interface_of(type):
    """The interface that a type is, or None."""
    cls = class_of(type.word)
    return cls if is_interface(cls) else None


def is_interface(cls):
    """Whether a class is marked as an interface itself."""
    return inspect.isclass(cls) and "_tgx_script_interface" in vars(cls)


class Signature:
    """What a method takes besides self, and gives. Attributes: parameters, types (by name), returns (None: unsaid)."""

    def __init__(self, function):
        c = Compiler(function.__name__)
        frame = Frame(source_of(function), lookup_of(function))
        c.frames.append(frame)
        with c.at(frame.source.tree):
            self.parameters = Parameters(c, function, frame.source, _SELF)
            told = self.parameters.annotations
            names = self.parameters.names[_SELF:]
            self.types = {n: TENSOR if told[n] is None else c.type_of_annotation(told[n]) for n in names}
            returns = self.parameters.returns
            self.returns = None if returns is None else c.type_of_annotation(returns)


_signatures = weakref.WeakKeyDictionary()


def _signature(function):
    if function not in _signatures:
        _signatures[function] = Signature(function)
    return _signatures[function]


def methods_of_interface(cls):
    """{name: function} of what an interface asks for."""
    found = {}
    for base in reversed(cls.__mro__):
        if base not in (object, nn.Module) and not base.__module__.startswith("tinygrad_ext."):
            found.update((n, f) for n, f in vars(base).items() if inspect.isfunction(f))
    return found


def lacking(value, cls):
    """Why a Python value, a module or object, is not of an interface; "" where it is."""
    if isinstance(value, nn.Module):
        if not hasattr(value, "_tgx_call"):
            return (
                f"cannot set an attribute of a ScriptModule with non-scripted module: {type(value).__name__} is not "
                "compiled: pass jit.script(module)"
            )
    elif issubclass(cls, nn.Module):
        return f"only modules, not {type(value).__name__}: a ScriptModule class can be subtype of module interface"
    names = vars(cls).get("_tgx_names")
    if names is not None:  # of an archive
        return "".join(f"it has no method '{n}'" for n in names if not callable(getattr(value, n, None)))
    return _lacking_methods(getattr(value, "_tgx_class", None) or type(value), cls, value)


def type_name(value):
    return getattr(value, "original_name", type(value).__name__)


def why_not(value, type):
    """Why a Python value is not of a type that has interfaces in it; "" where that is not the reason."""
    cls = interface_of(type)
    if cls is not None:
        why = lacking(value, cls)
        return why and f"{why}: {type_name(value)} is not compatible with interface {cls.__name__}"
    values = value if isinstance(value, (list, tuple)) else (value,)
    return next(filter(None, (why_not(v, t) for t in type.args for v in values)), "")


def _lacking_methods(given, cls, value):
    for name, wanted in methods_of_interface(cls).items():
        loaded = getattr(value, "_stored", None)  # its class is not here
        if loaded is not None:
            entry = loaded(name)
            if entry is None:
                return f"{value.original_name} does not have method '{name}' that is scripted"
            types, returns = list(entry.types.values()), entry.returns
        else:
            found = inspect.getattr_static(given, name, None)
            found = getattr(found, "_fn", found)
            if not inspect.isfunction(found):
                return f"{given.__name__} does not have method '{name}'"
            told = _signature(found)
            types, returns = list(told.types.values()), told.returns
        wanted = _signature(wanted)
        asked = list(wanted.types.values())
        if len(types) != len(asked) or not all(map(accepts, types, asked)):
            return f"{name} of {given.__name__} takes other arguments than {cls.__name__} says"
        if returns is not None and wanted.returns is not None and not accepts(wanted.returns, returns):
            return f"{name} of {given.__name__} gives {returns}, but {cls.__name__} says {wanted.returns}"
    return ""


def interfaces_in(types):
    """{word: names of methods} of the interfaces in types, for an archive."""
    found = {}
    for type in types:
        cls = interface_of(type)
        found.update({type.word: list(methods_of_interface(cls) or cls._tgx_names)} if cls is not None else {})
        found.update(interfaces_in(type.args))
    return found


def interface_of_archive(word, names):
    """The interface of a word, where this process has none: modules with methods of these names. None where it has."""
    if class_of(word) is not None:
        return None
    made = interface(type(word, (nn.Module,), {"_tgx_names": tuple(names)}))
    word_of(made)
    return made


def check_fitting(cls, name, value):
    """RuntimeError where the interface of a child of a class forbids that a module takes its place."""
    told = next((a[name] for a in map(annotations_of, cls.__mro__) if name in a), None)
    why = lacking(value, told) if is_interface(told) else ""
    if why:
        owner = f"{cls.__name__} has the interface {told.__name__}"
        raise RuntimeError(f"{why}; it is not compatible with interface {told.__name__}: {name} of {owner}")


_implied = weakref.WeakKeyDictionary()  # class of modules -> the interface that its methods are


def implied_interface(cls):
    """The interface that the methods of a module's class are, those that tell what they give; None without forward."""
    if cls not in _implied:
        told = {n: f for n, f in methods_of_interface(cls).items() if not n.startswith("__") and _tells(f)}
        space = {**told, "__module__": cls.__module__}
        _implied[cls] = interface(type(cls.__name__, (nn.Module,), space)) if "forward" in told else None
    return _implied[cls]


def _tells(function):
    """Whether a function can be asked of a module that is not known: it is Python, and says what it gives."""
    return getattr(function, MODIFIER, None) is None and "return" in getattr(function, "__annotations__", ())


# ---- values of an interface ----------------------------------------------------------------------------------------


@hook
def interface_attribute(c, value, cls, name):
    """The method of a value of an interface."""
    signature = _asked(c, cls, name)
    return Method(name, lambda c, args, kwargs: _called(c, value, name, signature, args, kwargs))


def _asked(c, cls, name):
    wanted = methods_of_interface(cls).get("forward" if name == "__call__" else name)
    if wanted is None:
        known = ", ".join(methods_of_interface(cls))
        c.fault(
            f"Could not compile this: '{cls.__name__}' object has no attribute or method '{name}'; the interface "
            f"says {known}"
        )
    return _signature(wanted)


def _called(c, value, name, signature, args, kwargs):
    row = _bound(c, signature, args, kwargs)
    made = c.emit("prim::call_method", (name, value, *row), signature.returns or TENSOR)
    return None if signature.returns is NONE else made


def _bound(c, signature, args, kwargs):
    found = signature.parameters.bind(c, args, kwargs)
    return [c.value(found[name], type, f"'{name}'") for name, type in signature.types.items()]


# ---- one of several modules ----------------------------------------------------------------------------------------


class Choice(Static):
    """One of several modules, or one that is known by its interface alone.

    Attributes: which, an int of the graph; cls_told, the interface once an annotation has said it.
    """

    kind = "a module that is picked when the program runs"

    def __init__(self, modules, which, cls=None):
        self.modules, self.which, self.cls_told = modules, which, cls

    def _interface(self, c):
        if self.cls_told is None:
            c.fault(
                f"{self.kind} has no methods that are known while compiling",
                "Annotate it with an interface: `layer: Layer = self.layers[i]`, see jit.interface; or loop over them.",
            )
        return self.cls_told

    def attribute(self, c, name):
        signature = _asked(c, self._interface(c), name)
        return Method(name, lambda c, args, kwargs: self._branch(c, name, signature, args, kwargs))

    def call(self, c, args, kwargs):
        return self._branch(c, "__call__", _asked(c, self._interface(c), "__call__"), args, kwargs)

    def _branch(self, c, name, signature, args, kwargs):
        row = _bound(c, signature, args, kwargs)

        def one(module):
            made = module.call(c, row, {}) if name == "__call__" else module.attribute(c, name).call(c, row, {})
            if signature.returns is ANY:
                return c.emit("prim::cast", (c.value(made),), ANY)
            return made if signature.returns is NONE else c.value(made, signature.returns or TENSOR)

        return self._each(c, one)

    def as_value(self, c):
        return self._each(c, c.value)

    def _each(self, c, one):
        """What one(module) gives for the module that it is."""

        def among(first):
            if first == len(self.modules) - 1:
                return one(self.modules[first])
            here = c.emit("prim::eq", (self.which, first), Type("bool"))
            return c.choose(here, lambda: one(self.modules[first]), lambda: among(first + 1), result=True)

        return among(0)


@hook
def are_modules(c, operands):
    """Whether each of these operands is one module."""
    return all(hasattr(o, "path") for o in operands)


@hook
def choice(c, modules, which):
    """One of these modules, by an int of the graph."""
    return Choice(list(modules), which)


@hook
def chosen(c, keys, modules, key):
    """The Choice that a list or dict of modules gives for a key; it is out of range when the program runs."""
    numbers = list(range(len(modules)))
    table = c.list_of(numbers) if keys is None else c.dict_of(keys, numbers)
    return Choice(modules, c.emit("prim::getitem", (table, key), Type("int")))


@hook
def as_interface(c, operand, type):
    """An operand for an annotation: modules are judged by the interface in it, others stay as they are."""
    if type is None or not isinstance(operand, Static):
        return c.cast_to_interface(operand, type)
    inner = type.args[0] if type.word in ("List", "Optional") else None
    if isinstance(operand, (ListLiteral, TupleValue)) and inner is not None and interface_of(inner) is not None:
        return TupleValue([as_interface(c, o, inner) for o in operand.values])
    cls = next(filter(None, map(interface_of, parts_of(type))), None)
    if cls is None or not (isinstance(operand, Choice) or hasattr(operand, "module")):
        return operand
    modules = operand.modules if isinstance(operand, Choice) else [operand]
    for module in modules:
        why = _lacking_methods(module.cls, cls, module.module) if hasattr(module, "cls") else ""
        if why:
            told = module.path.rstrip(".")
            c.fault(f"Attribute {told.rpartition('.')[2]} is not of annotated type {cls.__name__}: {why}")
    return Choice(modules, getattr(operand, "which", 0), cls)


@hook
def cast_to_interface(c, operand, wanted):
    """An object, whose class has the methods of the wanted interface, as a value of it; others as they are."""
    given = type_of(operand)
    cls = next(filter(None, map(interface_of, parts_of(wanted))), None) if wanted is not None else None
    held = given and class_of(given.word)
    if cls is None or held is None or given is wanted:
        return operand
    why = f"{held.__name__} is no module" if issubclass(cls, nn.Module) and not issubclass(held, nn.Module) else ""
    why = why or _lacking_methods(held, cls, None)
    if why:
        c.fault(f"{held.__name__} is not compatible with interface {cls.__name__}: {why}")
    return c.emit("prim::cast", (operand,), wanted)
