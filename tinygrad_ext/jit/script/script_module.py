"""ScriptModule: a module whose methods are compiled. Users see a module: parameters, state_dict, train, attributes."""

import copy
import inspect
import io
import sys
import types as python_types
import weakref
from types import SimpleNamespace

from tinygrad_ext import nn
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.graph.check import GraphError
from tinygrad_ext.graph.versions import refuse_python
from tinygrad_ext.nn.module import REGISTRIES

from .. import _state
from ..tracing import TracedModule
from .checking import check_constants, check_made
from .entry import compile_entry
from .errors import Error
from .expressions import KINDS
from .functions import FunctionValue
from .interfaces import check_fitting
from .markers import MODIFIER, Attribute
from .module_hooks import hooks_of
from .modules import ModuleValue, class_of_module
from .script_function import ScriptFunction
from .sequences import give_magic
from .source import functions_of

_compiled = weakref.WeakKeyDictionary()  # module -> {method: Entry}; apart, so that copies compile anew
_BLANK = set(nn.Module().__dict__)
_HOOKS = {"_live_hooks", "_tgx_hooks"}


class ScriptMethod:
    """A compiled method of a module. Attributes: graph, code, schema, name."""

    def __init__(self, owner, name, entry):
        self.owner, self.name, self.__name__, self._entry = owner, name, name, entry
        self.__doc__ = entry.doc

    def __call__(self, *args, **kwargs):
        return self._entry(args, kwargs)

    @property
    def graph(self):
        return self._entry.graph

    inlined_graph, graph_for = graph, ScriptFunction.graph_for

    @property
    def code(self):
        return self.graph.code

    @property
    def schema(self):
        return self._entry.declaration

    def constants(self):
        """The tensors that are constants of the graph."""
        return [getattr(owner, name) for s, owner, name in self._entry.accessors if s.kind == "constant"]

    def __repr__(self):
        return f"<ScriptMethod {self.schema}>"


def methods_of(module):
    """The compiled methods of a module: name -> Entry."""
    found = _compiled.get(module, {})
    compile_methods(module, [name for name, entry in found.items() if entry is None])
    return found


def compile_methods(module, names):
    """Compile methods of a module, where they are not yet; "__call__" is forward with its hooks."""
    for name in names:
        if name not in STATE_METHODS:
            called(module) if name == "__call__" else module._method(name)


def methods_of_part(module):
    """The compiled methods of a module below one that is saved: name -> Entry. What compiles with the whole only, calls
    Python or gives modules is left out."""
    found = {}
    for name in {**dict.fromkeys(_compiled.get(module, ())), **dict.fromkeys(_names_to_compile(module))}:
        try:
            compile_methods(module, [name])
            entry = _compiled[module][name]
            refuse_python(entry.graph)
        except (Error, GraphError):
            continue
        if not any(isinstance(getattr(owner, attribute), nn.Module) for _, owner, attribute in entry.accessors):
            found[name] = entry
    return found


def _names_to_compile(module):
    """The methods of a module that are there for others: forward, with its hooks, and what is marked `export`."""
    cls = class_of_module(module)
    forward = inspect.getattr_static(cls, "forward")
    if forward is not inspect.getattr_static(nn.Module, "forward") and getattr(forward, MODIFIER, None) is None:
        yield "forward"
        if getattr(module, "_tgx_hooks", None) is not None:
            yield "__call__"
    for base in cls.__mro__:
        for name, value in vars(base).items():
            if getattr(value, MODIFIER, None) == "export" and name not in STATE_METHODS:
                yield name


def is_frozen(module):
    """Whether `freeze` gave a module: what its parts had is in its own graphs."""
    return module.__dict__.get("_tgx_kept") is not None


def _forget_all():
    """A module has another child now: whatever was compiled is compiled again when it is needed."""
    for entries in _compiled.values():
        entries.update(dict.fromkeys(entries))


class script_method:
    """Decorator: compile this method of a ScriptModule subclass when it is first called."""

    def __new__(cls, fn):
        return super().__new__(cls) if _state.enabled() else fn

    def __init__(self, fn):
        self._fn, self.__name__, self.__doc__ = fn, fn.__name__, fn.__doc__

    def __get__(self, module, cls=None):
        return self if module is None else method_of(module, self.__name__, self._fn)


def method_of(module, name, function, examples=None):
    """The ScriptMethod of a module, compiled when first asked for."""
    entries = _compiled.setdefault(module, {})
    entry = entries.get(name)
    if entry is None:
        entry = entries[name] = compile_entry(function, bound=(ModuleValue(module, ""),), examples=examples)
    return ScriptMethod(module, name, entry)


STATE_METHODS = ("__getstate__", "__setstate__")


def marked_states(cls):
    """(__getstate__, __setstate__) of a class that marks both to be compiled, else None."""
    found = [inspect.getattr_static(cls, name, None) for name in STATE_METHODS]
    marked = [isinstance(f, script_method) or getattr(f, MODIFIER, None) == "export" for f in found]
    if any(marked) and not all(marked):
        has, lacks = STATE_METHODS if marked[0] else STATE_METHODS[::-1]
        raise RuntimeError(
            f"{cls.__name__} marks {has} to be compiled, and no {lacks}: what is saved is what the one gives and the "
            f"other takes. Write {lacks} with jit.export, or leave {has} out"
        )
    return [getattr(f, "_fn", f) for f in found] if all(marked) else None


def state_methods(module):
    """The two of a module, compiled; None where they are not marked.

    What the second takes, where it does not say, is what the first gives.
    """
    marked = marked_states(class_of_module(module))
    if marked is None:
        return None
    given = method_of(module, STATE_METHODS[0], marked[0])
    return given, method_of(module, STATE_METHODS[1], marked[1], [given._entry.returns])


def called(module):
    """The ScriptMethod that a call of a module with hooks is: the hooks are compiled with forward."""
    entries = _compiled.setdefault(module, {})
    if entries.get("__call__") is None:
        forward = inspect.getattr_static(class_of_module(module), "forward")
        owner = ModuleValue(module, "")
        entries["__call__"] = compile_entry(forward, "__call__", (owner,), body=owner.call)
    return ScriptMethod(module, "__call__", entries["__call__"])


class CompiledForward:
    """`module.forward`, the compiled method, for a class that has no other."""

    def __get__(self, module, cls=None):
        return self if module is None else module._method("forward")


class _Making(type):
    """Modules with methods marked `script_method` are compiled when their __init__ is done: errors come there."""

    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        check_made(made)
        if not issubclass(cls, RecursiveScriptModule):
            check_constants(made)
            made.compile_all()
            made.__dict__["_tgx_compiled"] = True
        return made

    def __instancecheck__(cls, module):
        """Traced modules count as ScriptModules; `issubclass(type(m), ScriptModule)` asks for compiled ones alone."""
        return super().__instancecheck__(module) or (cls is ScriptModule and isinstance(module, TracedModule))


@boundary
class ScriptModule(nn.Module, metaclass=_Making):
    """Base of compiled modules; `jit.script(module)` makes one. Own subclasses mark methods `script_method`, which are
    compiled when the __init__ is done."""

    def __setattr__(self, name, value):
        if isinstance(value, Attribute):
            self.__dict__.setdefault("_tgx_types", {})[name] = value.type
            value = value.value
        if "_tgx_compiled" in self.__dict__ and name in getattr(class_of_module(self), "__constants__", ()):
            raise RuntimeError(f"Can't set constant '{name}', which is compiled in with {getattr(self, name, None)!r}")
        if isinstance(value, nn.Module) and value is not self.__dict__.get("_modules", {}).get(name):
            if name in self._modules:
                check_fitting(class_of_module(self), name, value)
                _forget_all()
            value = wrap(value)
        super().__setattr__(name, value)

    @property
    def graph(self):
        return self._method("forward").graph

    inlined_graph, graph_for = graph, ScriptFunction.graph_for

    @property
    def code(self):
        return self._method("forward").code

    @property
    def code_with_constants(self):
        """(the code of forward, the tensors that are constants of it as c0, c1, ...)."""
        method = self._method("forward")
        return method.code, SimpleNamespace(**{f"c{i}": held for i, held in enumerate(method.constants())})

    @property
    def original_name(self):
        """Name of the class that the module was made of."""
        return class_of_module(self).__name__

    def save(self, f, _extra_files=None, **more):
        """See `jit.save`."""
        from tinygrad_ext import jit  # lazy: save stands above, for it knows all that can be saved

        jit.save(self, f, _extra_files, **more)

    def save_to_buffer(self, _extra_files=None, **more):
        """What `save` would write, as bytes."""
        file = io.BytesIO()
        self.save(file, _extra_files, **more)
        return file.getvalue()

    def define(self, src):
        """Add the methods of a text: ``self.define("def forward(self, x): return x + self.bias")``."""
        frame = sys._getframe(1)
        found = functions_of(src, {**frame.f_globals, **frame.f_locals})
        own = self.__dict__
        own.setdefault("_tgx_defined", {}).update(found)
        for name, function in found.items():
            own[name] = method_of(self, name, function)

    def compile_all(self):
        """Compile the methods that are marked `script_method`."""
        for name in dir(type(self)):
            found = inspect.getattr_static(type(self), name, None)
            if isinstance(found, script_method) and name not in STATE_METHODS:
                method_of(self, name, found._fn)

    def __copy__(self):
        """Another module of the same parameters, buffers, attributes and children."""
        made = type(self).__new__(type(self))
        nn.Module.__setstate__(made, {k: copy.copy(v) if isinstance(v, dict) else v for k, v in vars(self).items()})
        return made

    def __deepcopy__(self, memo):
        """A copy of all it has, whatever its own `__getstate__` says is saved."""
        made = memo[id(self)] = type(self).__new__(type(self))
        nn.Module.__setstate__(made, copy.deepcopy(self.__dict__, memo))
        return made

    def _method(self, name):
        found = getattr(self, name)
        if not isinstance(found, ScriptMethod):
            raise AttributeError(f"{self.original_name}.{name} is not compiled")
        return found

    def _tgx_call(self, name, args):
        """What a graph gets that calls a method of this module: compiled ones only."""
        return self(*args) if name == "__call__" else self._method(name)(*args)


class RecursiveScriptModule(ScriptModule):
    """What `jit.script(module)` gives: the tensors of the module, copies of its attributes, its children scripted."""

    def __init__(self, module, made=None, anew=False):
        """anew: make new modules of children that are scripted already."""
        super().__init__()
        made = {} if made is None else made
        made[id(module)] = self
        own = self.__dict__
        own["_tgx_class"] = class_of_module(module)
        own["_tgx_hooks"] = hooks_of(module)
        for name, parameter in module._parameters.items():
            self.register_parameter(name, parameter)
        for name, buffer in module._buffers.items():
            self.register_buffer(name, buffer, persistent=name not in module._non_persistent_buffers_set)
        parts = {name for registry in REGISTRIES for name in getattr(module, registry)} | _HOOKS
        for name, value in module.__dict__.items():
            if name not in _BLANK and name not in parts:
                if isinstance(value, Attribute):
                    own.setdefault("_tgx_types", {})[name] = value.type
                    value = value.value
                own[name] = value
        own["training"] = module.training
        own["_tgx_compiled"] = True
        check_constants(self)
        marked_states(own["_tgx_class"])
        for name, child in module._modules.items():
            self.add_module(name, child if child is None else made.get(id(child)) or wrap(child, made, anew))

    def __call__(self, *args, **kwargs):
        if self._tgx_hooks is not None:
            return called(self)(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    forward = CompiledForward()

    def _method(self, name):
        found = inspect.getattr_static(self.__dict__["_tgx_class"], name)
        return method_of(self, name, getattr(found, "_fn", found))

    def __getattr__(self, name):
        cls = self.__dict__.get("_tgx_class")
        found = None if cls is None else inspect.getattr_static(cls, name, None)
        if found is None:
            return super().__getattr__(name)
        if isinstance(found, property):
            if name in getattr(cls, "__jit_unused_properties__", ()):
                raise AttributeError(f"'{cls.__name__}' has no attribute '{name}': it is an unused property")
            return found.fget(self)
        if isinstance(found, python_types.FunctionType):
            if getattr(found, MODIFIER, None) in ("ignore", "unused") or cls.__module__.startswith("tinygrad_ext.nn"):
                return python_types.MethodType(found, self)
            return method_of(self, name, found)
        if cls.__module__.startswith("tinygrad_ext.nn") and callable(found) and not inspect.isclass(found):
            return python_types.MethodType(found, self)
        return getattr(cls, name)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        self._by_own_method("_save_to_state_dict", destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict, prefix, *more):
        self._by_own_method("_load_from_state_dict", state_dict, prefix, *more)

    def _by_own_method(self, name, *args):
        """What a class marks `export` of how state is told and taken is compiled; else it is as for any module."""
        own = inspect.getattr_static(self.__dict__["_tgx_class"], name)
        marked = getattr(own, MODIFIER, None) == "export"
        (method_of(self, name, own) if marked else getattr(super(), name))(*args)

    def extra_repr(self):
        return f"original_name={self.original_name}"

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self.__dict__["_tgx_class"])})


give_magic(RecursiveScriptModule)


def wrap(module, made=None, anew=False):
    """The scripted form of a module, nothing compiled yet."""
    if isinstance(module, ScriptModule) and not (anew and isinstance(module, RecursiveScriptModule)):
        return module
    check_made(module)
    prepare = getattr(module, "__prepare_scriptable__", None)
    return RecursiveScriptModule(module if prepare is None else prepare(), made, anew)


def script_module(module):
    """The scripted form of a module, with `forward` and what is marked `export` compiled."""
    scripted = wrap(module)
    compile_methods(scripted, _names_to_compile(scripted))
    return scripted


def _bound_method(c, value, name):
    owner = value.__self__
    if isinstance(owner, nn.Module):
        return FunctionValue(value.__func__, name, (ModuleValue(owner, name.rpartition(".")[0]),))
    return None


KINDS.insert(0, (python_types.MethodType, _bound_method))
