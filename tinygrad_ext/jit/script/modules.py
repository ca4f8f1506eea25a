"""Modules: parameters and buffers as state, attributes as state or constants, children, methods."""

import inspect
import types as python_types
import typing

from tinygrad_ext import nn
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.primitives.objects import fits, word_of
from tinygrad_ext.graph.types import ANY, FLOAT, INT, NONE, STR, TENSOR, Type

from .attribute_types import attribute_type
from .classes import learn_attributes, misfit
from .environment import ABSENT
from .expressions import kind
from .functions import FunctionValue
from .interfaces import Choice, implied_interface, is_interface
from .markers import MODIFIER, Attribute
from .module_hooks import call_with_hooks, hooks_of
from .module_parts import OF_CONTAINERS, OF_MODULES, ModuleTable
from .traced import StoredMethod, traced
from .types import annotations_of, type_from, type_of_python
from .values import Method, Static, TupleValue, is_constant, type_of


class Thawed(Exception):
    """A method writes an attribute that was taken for a constant. Attributes: path, name."""

    def __init__(self, path, name):
        self.path, self.name = path, name


_LISTS = (nn.ModuleList, nn.Sequential, nn.ParameterList)
_DICTS = (nn.ModuleDict, nn.ParameterDict)
_OF_MODULES_ALONE = (nn.ModuleList, nn.Sequential, nn.ModuleDict)


def class_of_module(module):
    """The class whose methods a module has: of a scripted one, that of the module it was made of."""
    return module.__dict__.get("_tgx_class") or type(module)


class ModuleValue(Static):
    """A module; path: the prefix of its state's names, "" or "layers.0."."""

    kind = "a module"

    def __init__(self, module, path):
        self.module = self.python = module
        self.path, self.cls = path, class_of_module(module)

    def told(self):
        return f"the module {self.cls.__name__}"

    # ---- parts ----------------------------------------------------------------------------------------------------

    def child(self, name):
        found = self.module._modules[name]
        path = f"{self.path}{name}."
        return None if found is None else traced(found, path) or ModuleValue(found, path)

    def child_as_told(self, c, name):
        """A child by the interface that the class annotates it with, where it does."""
        found = self.child(name)
        told = [annotations_of(base)[name] for base in self.cls.__mro__ if name in annotations_of(base)]
        if found is None or not told or not (isinstance(told[0], str) or is_interface(told[0])):
            return found
        return c.as_interface(found, self._declared(c, name)[0])

    def has(self, c, name):
        own = self.module
        return name in own._modules or name in own._parameters or name in own._buffers or hasattr(own, name)

    def attribute(self, c, name):
        module = self.module
        if name in getattr(self.cls, "__jit_ignored_attributes__", ()):
            c.fault(f"Module '{self.cls.__name__}' has '{name}', but this attribute was ignored during compilation")
        if name in module._modules:
            replaced = c.fields.find((id(module), name))
            return self.child_as_told(c, name) if replaced is ABSENT else replaced
        if name == "_modules":
            return ModuleTable(self)
        for word, table in (("parameter", module._parameters), ("buffer", module._buffers)):
            if name in table and word == "buffer" and (type := self._declared(c, name)[0]) not in (None, TENSOR):
                return self._of_type(c, name, table[name], type)
            if name in table:
                return None if table[name] is None else c.field(module, name, self.path + name, word, TENSOR)
        if name in module.__dict__ and name not in module.__dict__.get("_tgx_defined", ()):
            return self._own(c, name, module.__dict__[name])
        return self._of_class(c, name)

    def _own(self, c, name, value):
        """An attribute that the instance has: what no value is, and constants, as they are; others are state."""
        declared, final = self._declared(c, name)
        if isinstance(value, Tensor) and (self._is_frozen(name) or declared is None or declared is TENSOR):
            word = "constant" if self._is_frozen(name) else "buffer"
            return c.field(self.module, name, self.path + name, word, TENSOR)
        if name in self.constants() or final:
            return c.python(tuple(value) if isinstance(value, list) else value, f"self.{name}")
        if self._is_frozen(name) and (value is None or isinstance(value, (bool, int, float, str))):
            return value
        type = declared
        if type is None:
            type = type_of_python(value)
        if isinstance(value, list) and any(isinstance(v, nn.Module) for v in value):
            told = "Could not infer type of list element: Cannot infer concrete type of torch.nn.Module"
            told = f"Module '{self.cls.__name__}' has no attribute '{name}' for script: {told}"
            c.fault(told, "Make it an nn.ModuleList.")
        if type is None or (isinstance(value, tuple) and name not in self._set_names()):
            return c.python(value, f"self.{name}")
        return self._of_type(c, name, value, type)

    def _of_type(self, c, name, value, type):
        """The state that an attribute of a type is; faults where it holds something else now."""
        learn_attributes(c, type)
        why = misfit(value, type)
        plain = value is None or isinstance(value, (Tensor, bool, int, float, str))
        if plain and not fits(value, type) and not (type is FLOAT and isinstance(value, int)):
            came = f"{value!r:.100} of type {value.__class__.__name__}"
            why = f"Could not cast attribute '{name}' to type {type}: the module's is {came}"
        if why:
            c.fault(f"self.{name}: {why}")
        return _as_shown(c, c.field(self.module, name, self.path + name, "attribute", type))

    def _is_frozen(self, name):
        """Whether an attribute is a constant of a frozen module."""
        kept = self.module.__dict__.get("_tgx_kept")
        return kept is not None and name not in kept

    def _declared(self, c, name):
        """(the type that the program gave an attribute, or None; whether it is Final)."""
        told = self.module.__dict__.get("_tgx_types", {}).get(name)
        if told is None:
            return attribute_type(c, self.cls, name, name not in self.module._buffers)
        return type_from(told, lambda text: eval(text, vars(typing))), False

    def constants(self):
        """Attributes that never change: those that the class says, and what a layer of the package is made with."""
        found = set(getattr(self.cls, "__constants__", ()))
        base = next(b for b in self.cls.__mro__ if b.__module__.startswith("tinygrad_ext.nn"))
        if base is not nn.Module:
            made = vars(self.module)
            found |= {n for n in made if n != "training" and _in_init(base, n)}
        return found

    def _set_names(self):
        return {
            t for f in vars(self.cls).values() if isinstance(f, python_types.FunctionType) for t in f.__code__.co_names
        }

    def _of_class(self, c, name):
        if name in self.module.__dict__.get("_tgx_defined", ()):
            return FunctionValue(self.module._tgx_defined[name], name, (self,))
        stored = getattr(self.module, "_stored", None)
        if stored is not None:
            return self._of_file(c, name, stored)
        if name in OF_CONTAINERS and issubclass(self.cls, (*_LISTS, *_DICTS)):
            return Method(name, lambda c, args, kwargs: OF_CONTAINERS[name](self, c))
        found = inspect.getattr_static(self.cls, name, None)
        if name in OF_MODULES and found is inspect.getattr_static(nn.Module, name):
            return Method(name, lambda c, args, kwargs: OF_MODULES[name](self, c))
        found = getattr(found, "_fn", found)  # of a script_method
        outside = getattr(found, MODIFIER, None) in ("ignore", "unused")  # of a wrapper: what it wraps is not looked at
        if hasattr(found, "__wrapped__") and not outside and not isinstance(found, (staticmethod, classmethod)):
            found = inspect.unwrap(found)
        if isinstance(found, property):
            return c.inline(found.fget, [], {}, (self,))
        if isinstance(found, staticmethod):
            return FunctionValue(found.__func__, name)
        if isinstance(found, classmethod):
            return FunctionValue(found.__func__, name, (self,))
        if isinstance(found, python_types.FunctionType):
            return FunctionValue(found, name, (self,))
        if found is None:
            c.fault(
                f"Module '{self.cls.__name__}' has no attribute '{name}'",
                f"Set self.{name} in __init__, before the module is scripted.",
            )
        return c.python(getattr(self.cls, name), f"self.{name}")

    def own_method(self, name):
        """The method of the user's class, where the package's would be asked else; or None."""
        found = inspect.getattr_static(self.cls, name, None)
        if isinstance(found, python_types.FunctionType) and not (found.__module__ or "").startswith("tinygrad_ext."):
            return FunctionValue(found, name, (self,))
        return None

    def _of_file(self, c, name, stored):
        """A method of a module that was loaded."""
        if name == "forward" and stored("__call__") is not None:  # with the hooks that it had
            name = "__call__"
        entry = stored(name)
        if entry is None:
            c.fault(
                f"{self.module.original_name} has no attribute '{name}': it was saved without a scripted method of "
                "this name"
            )
        return StoredMethod(self.module, name, entry, self.path)

    def set(self, c, name, operand):
        module = self.module
        if self._is_frozen(name):
            raise Thawed(self.path, name)
        if name in module._modules:
            self._replace(c, name, operand)
            return
        if name in module._parameters:
            c.fault(f"'{name}' is a parameter, which script does not replace; write into it with copy_()")
        if name in module._buffers:
            self.attribute(c, name)
            c.set_field((id(module), name), c.value(operand, self._declared(c, name)[0] or TENSOR, f"self.{name}"))
            return
        found = inspect.getattr_static(self.cls, name, None)
        if isinstance(found, property) and found.fset is not None:
            c.inline(found.fset, [operand], {}, (self,))
            return
        if name not in module.__dict__:
            c.fault(
                f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?",
            )
        declared, final = self._declared(c, name)
        if name in self.constants() or final:
            c.fault(f"self.{name} is a constant (Final or __constants__), which is not set")
        value = module.__dict__[name]
        type = declared or type_of_python(value)
        word = "buffer" if isinstance(value, Tensor) else "attribute"
        c.field(module, name, self.path + name, word, type)
        c.set_field((id(module), name), c.value(operand, type, f"self.{name}"))

    def _replace(self, c, name, operand):
        """self.child = operand: the other module is there when the method is done."""
        child = self.child_as_told(c, name)
        told = getattr(child, "cls_told", None) or (isinstance(child, ModuleValue) and implied_interface(child.cls))
        wanted = Type(word_of(told)) if told else None
        operand = c.as_interface(operand, wanted)
        if not isinstance(operand, (ModuleValue, Choice)) and type_of(operand) not in (ANY, wanted):
            c.fault(f"self.{name} is a module, which only a module takes the place of")
        c.field(self.module, name, self.path + name, "attribute", wanted or ANY)
        made = c.value(operand)
        c.set_field((id(self.module), name), made if wanted is None else c.emit("prim::cast", (made,), wanted))

    # ---- use ------------------------------------------------------------------------------------------------------

    def as_value(self, c):
        """The module as a value: state of the graph, that a method gives or puts somewhere."""
        kept = c.modules.setdefault(id(self.module), _Kept(self.module))
        return c.field(kept, "value", self.path.rstrip(".") or "self", "attribute", ANY)

    def call(self, c, args, kwargs):
        forward, hooks = self._of_class(c, "forward"), hooks_of(self.module)
        if hooks is not None:
            return call_with_hooks(c, self, hooks, forward, args, kwargs)
        return forward.call(c, args, kwargs)

    def items(self, c):
        if issubclass(self.cls, nn.ParameterList):
            return [self.attribute(c, name) for name in self.module._parameters]
        if issubclass(self.cls, _LISTS):
            return [self.child(name) for name in self.module._modules]
        if issubclass(self.cls, _DICTS):
            return list(self.table())
        return None

    def table(self):
        return self.module._parameters if issubclass(self.cls, nn.ParameterDict) else self.module._modules

    def index(self, c, key):
        if issubclass(self.cls, _DICTS) and isinstance(key, str):
            if key not in self.table():
                c.fault(
                    f"KeyError: Key Error, {key}: '{key}' is not in {self.told()}, which has {', '.join(self.table())}"
                )
            return self.attribute(c, key)
        found = self.items(c)
        if found is not None and type(key) is int and not -len(found) <= key < len(found):
            c.fault(f"Index {key} out of range of {self.told()}, which has {len(found)} items")
        if isinstance(key, Value) and issubclass(self.cls, _OF_MODULES_ALONE) and len(found):
            return self._picked(c, key)
        if found is None or not is_constant(key) or isinstance(key, str):
            c.fault(f"{self.told()} is indexed by a number or name that is known while compiling; loop over it instead")
        return TupleValue(found).index(c, key)

    def _picked(self, c, key):
        """One of the children, by a key that is known when the program runs."""
        keyed = issubclass(self.cls, _DICTS)
        key = c.value(key, STR if keyed else INT, "a key of modules")
        children = {name: self.child(name) for name in self.table()}
        return c.chosen(list(children) if keyed else None, list(children.values()), key)


def _as_shown(c, operand):
    """The value of an attribute with the type that conditions around have shown."""
    type = c.scope.shown_type(operand) if isinstance(operand, Value) else None
    if type is NONE:
        return None
    return operand if type is None or type is operand.type else c.emit("prim::cast", (operand,), type)


class _Kept:
    """Holds a module that is a value of a graph. Attributes: value."""

    def __init__(self, module):
        self.value = module


def _in_init(base, name):
    """Whether a layer of the package sets an attribute by itself: its sizes and options never change."""
    return any(
        name in vars(b)["__init__"].__code__.co_names or name in vars(b)["__init__"].__code__.co_varnames
        for b in base.__mro__
        if b is not nn.Module and "__init__" in vars(b) and hasattr(vars(b)["__init__"], "__code__")
    )


@kind(nn.Module)
def _module(c, value, name):
    return ModuleValue(value, "" if name == "self" else f"{name.removeprefix('self.')}.")


@kind(Attribute)
def _attribute(c, value, name):
    return c.value(c.python(value.value, name))
