"""ScriptModule: a module whose methods are compiled. Users see a module: parameters, state_dict, train, attributes."""

import inspect
import types as python_types
import weakref

from tinygrad_ext import nn
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.nn.module import REGISTRIES

from ..tracing import TracedModule
from .entry import compile_entry
from .expressions import KINDS
from .functions import FunctionValue
from .markers import MODIFIER, Attribute
from .modules import ModuleValue, class_of_module

_compiled = weakref.WeakKeyDictionary()  # module -> {method: Entry}; apart, so that copies compile anew
_BLANK = set(nn.Module().__dict__)


class ScriptMethod:
    """A compiled method of a module. Attributes: graph, code, schema, name."""

    def __init__(self, owner, name, entry):
        self.owner, self.name, self.__name__, self._entry = owner, name, name, entry

    def __call__(self, *args, **kwargs):
        return self._entry(args, kwargs)

    @property
    def graph(self):
        return self._entry.graph

    inlined_graph = graph

    @property
    def code(self):
        return self.graph.code

    @property
    def schema(self):
        return self._entry.declaration

    def __repr__(self):
        return f"<ScriptMethod {self.schema}>"


def methods_of(module):
    """The compiled methods of a module: name -> Entry."""
    return _compiled.get(module, {})


class script_method:
    """Decorator: compile this method of a ScriptModule subclass when it is first called."""

    def __init__(self, fn):
        self._fn, self.__name__, self.__doc__ = fn, fn.__name__, fn.__doc__

    def __get__(self, module, cls=None):
        return self if module is None else method_of(module, self.__name__, self._fn)


def method_of(module, name, function):
    """The ScriptMethod of a module, compiled when first asked for."""
    entries = _compiled.setdefault(module, {})
    entry = entries.get(name)
    if entry is None:
        entry = entries[name] = compile_entry(function, bound=(ModuleValue(module, ""),))
    return ScriptMethod(module, name, entry)


@boundary
class ScriptModule(nn.Module):
    """Base of compiled modules; `jit.script(module)` makes one. Own subclasses mark methods `script_method`."""

    @property
    def graph(self):
        return self._method("forward").graph

    inlined_graph = graph

    @property
    def code(self):
        return self._method("forward").code

    @property
    def original_name(self):
        """Name of the class that the module was made of."""
        return class_of_module(self).__name__

    def save(self, f, _extra_files=None, **more):
        """See `jit.save`."""
        from tinygrad_ext import jit  # lazy: save stands above, for it knows all that can be saved

        jit.save(self, f, _extra_files, **more)

    def _method(self, name):
        found = getattr(self, name)
        if not isinstance(found, ScriptMethod):
            raise AttributeError(f"{self.original_name}.{name} is not compiled")
        return found


class RecursiveScriptModule(ScriptModule):
    """What `jit.script(module)` gives: the tensors of the module, copies of its attributes, its children scripted."""

    def __init__(self, module, made=None):
        super().__init__()
        made = {} if made is None else made
        made[id(module)] = self
        own = self.__dict__
        own["_tgx_class"] = class_of_module(module)
        if module._live_hooks:
            raise RuntimeError(
                f"jit.script(): {type(module).__name__} has hooks, which script does not run. Remove them, or call "
                "what they do in forward."
            )
        for name, parameter in module._parameters.items():
            self.register_parameter(name, parameter)
        for name, buffer in module._buffers.items():
            self.register_buffer(name, buffer, persistent=name not in module._non_persistent_buffers_set)
        parts = {name for registry in REGISTRIES for name in getattr(module, registry)}
        for name, value in module.__dict__.items():
            if name not in _BLANK and name not in parts:
                own[name] = value.value if isinstance(value, Attribute) else value
        own["training"] = module.training
        for name, child in module._modules.items():
            self.add_module(name, child if child is None else made.get(id(child)) or wrap(child, made))

    def forward(self, *args, **kwargs):
        return self._method("forward")(*args, **kwargs)

    def _method(self, name):
        return method_of(self, name, inspect.getattr_static(self.__dict__["_tgx_class"], name))

    def __getattr__(self, name):
        cls = self.__dict__.get("_tgx_class")
        found = None if cls is None else inspect.getattr_static(cls, name, None)
        if found is None:
            return super().__getattr__(name)
        if isinstance(found, property):
            return found.fget(self)
        if isinstance(found, python_types.FunctionType):
            if getattr(found, MODIFIER, None) in ("ignore", "unused") or cls.__module__.startswith("tinygrad_ext.nn"):
                return python_types.MethodType(found, self)
            return method_of(self, name, found)
        return getattr(cls, name)

    def extra_repr(self):
        return f"original_name={self.original_name}"

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self.__dict__["_tgx_class"])})


def _magic(name):
    def run(self, *args):
        found = getattr(self.__dict__["_tgx_class"], name, None)
        if found is None:
            raise TypeError(f"'{self.original_name}' object has no {name}")
        return found(self, *args)

    run.__name__ = name
    return run


for _name in ("__len__", "__iter__", "__getitem__", "__contains__"):
    setattr(RecursiveScriptModule, _name, _magic(_name))
RecursiveScriptModule.__bool__ = lambda self: True


def wrap(module, made=None):
    """The scripted form of a module, nothing compiled yet."""
    return module if isinstance(module, (ScriptModule, TracedModule)) else RecursiveScriptModule(module, made)


def script_module(module):
    """The scripted form of a module, with `forward` and what is marked `export` compiled."""
    scripted = wrap(module)
    cls = class_of_module(scripted)
    forward = inspect.getattr_static(cls, "forward")
    if forward is not inspect.getattr_static(nn.Module, "forward") and getattr(forward, MODIFIER, None) is None:
        method_of(scripted, "forward", getattr(forward, "_fn", forward))
    for base in cls.__mro__:
        for name, value in vars(base).items():
            if getattr(value, MODIFIER, None) == "export":
                method_of(scripted, name, value)
    return scripted


def _bound_method(c, value, name):
    owner = value.__self__
    if isinstance(owner, nn.Module):
        return FunctionValue(value.__func__, name, (ModuleValue(owner, name.rpartition(".")[0]),))
    return None


KINDS.insert(0, (python_types.MethodType, _bound_method))
