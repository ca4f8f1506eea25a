"""`Tracer` and `symbolic_trace`: a function or a module is run once on Proxies, and what it does becomes a graph."""

import builtins
import contextlib
import functools
import inspect
import itertools
import math
import sys
import types
from collections import Counter

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.nn.module import Module, speed_up
from tinygrad_ext.nn.parameter import Parameter
from tinygrad_ext.overrides import is_tensor_method_or_property
from tinygrad_ext.tensor.asked import _assert
from tinygrad_ext.utils._pytree import tree_map

from .codegen import PyTreeCodeGen
from .graph import Graph
from .graph_module import GraphModule
from .node import has_side_effect
from .proxy import ParameterProxy, Proxy, TracerBase


class PHBase:
    """Stands in `concrete_args` for a leaf that stays open."""

    def __repr__(self):
        return "PH"


PH = PHBase()
_wrapped = {}  # (id of a module's globals, name) -> the globals


def symbolic_trace(root, concrete_args=None):
    """Record a Module or a function as a GraphModule.

    Args:
        root: it is called once, with Proxies for all arguments. What does not depend on them is done while recording.
        concrete_args: dict of an argument's name -> value that it has for good. In nested tuples, lists and dicts PH
            stands for what stays open; the code then takes arguments that are nested like them.

    Raises TraceError where the program decides by a value, NotImplementedError for arguments that no graph can hold.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext import fx
    >>> print(fx.symbolic_trace(lambda x: tg.relu(x) + 1).graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=tinygrad_ext.relu](args = (%x,), kwargs = {})
        %add : [num_users=1] = call_function[target=operator.add](args = (%relu, 1), kwargs = {})
        return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def wrap(fn_or_name):
    """Let calls of a function of this module be recorded as they are, instead of what they do. At module level only.

    Takes the function, also as a decorator, or its name.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


@has_side_effect
def _assert_is_none(value, msg):
    if value is not None:
        raise AssertionError(msg)


has_side_effect(_assert)


class Tracer(TracerBase):
    """Records a root. Subclasses say what is a leaf (`is_leaf_module`), and how calls and arguments become nodes.

    Args:
        autowrap_modules: modules whose functions are recorded as they are. autowrap_functions: further functions.
        param_shapes_constant: the shapes of parameters are constants.
    """

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        super().__init__()
        self._wrapped_ids = {id(f) for m in autowrap_modules for n, f in vars(m).items() if callable(f) and n[0] != "_"}
        self._wrapped_ids.update(map(id, autowrap_functions))
        self._searched = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.traced_func_name, self._calls = "forward", Counter()  # path -> how often that module was called
        self.root = None

    # ---- what subclasses may replace ------------------------------------------------------------------------------

    def is_leaf_module(self, m, module_qualified_name):
        """Whether calls of a module are nodes; else its forward is recorded. Leaves are those of nn, but Sequential."""
        return type(m).__module__.startswith("tinygrad_ext.nn") and type(m).__name__ != "Sequential"

    def path_of_module(self, mod):
        """The path of a module in the root. NameError where it is no part of it."""
        for path, module in self.root.named_modules():
            if module is mod:
                return path
        raise NameError("module is not installed as a submodule")

    def call_module(self, m, forward, args, kwargs):
        """What calling a module does."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What reading a parameter or a buffer of a module gives."""
        if isinstance(attr_val, Parameter):
            found = dict(self.root.named_parameters())
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            found = dict(self.root.named_buffers())
        else:
            return attr_val
        for name, value in found.items():
            if value is attr_val:
                if name not in parameter_proxy_cache:
                    made = None
                    if self.param_shapes_constant and isinstance(value, Parameter):
                        made = functools.partial(self._parameter, name, value)
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=made)
                return parameter_proxy_cache[name]
        return attr_val

    def _parameter(self, name, value, node):
        return ParameterProxy(self, node, name, value)

    def _create_leaf(self, a):
        if isinstance(a, Tensor):
            name = self._path_of_tensor(a)
            if name is not None:
                return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a, "_tensor_constant"), (), {})
        if isinstance(a, Module):
            with contextlib.suppress(NameError):
                return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super()._create_leaf(a)

    def _path_of_tensor(self, tensor):
        """The path of a parameter, a buffer, or a plain attribute of a module; None for another tensor."""
        for prefix, module in self.root.named_modules():
            for name, value in vars(module).items():
                if value is tensor and not name.startswith("_tensor_constant"):
                    return f"{prefix}.{name}" if prefix else name
        return None

    def _constant(self, value, prefix):
        """The name of an attribute of the root that holds a value."""
        for name, held in vars(self.root).items():
            if name.startswith(prefix) and held is value:
                return name
        name = self.get_fresh_qualname(prefix)
        setattr(self.root, name, value)
        return name

    def get_fresh_qualname(self, prefix):
        """A name that the root has not."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # ---- recording ------------------------------------------------------------------------------------------------

    def trace(self, root, concrete_args=None):
        """Record a Module or a function; returns the Graph."""
        if isinstance(root, Module):
            self.root, function = root, getattr(type(root), self.traced_func_name)
        else:
            self.root, function = Module(), root
        self.graph, self._calls = Graph(tracer_cls=type(self)), Counter()
        function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        if any(map(_is_nested, (concrete_args or {}).values())):
            self._nest(function, isinstance(root, Module), concrete_args)
        with self._patched(function.__globals__):
            result = function(*args)
        self.create_node(
            "output", "output", (self.create_arg(result),), {}, type_expr=function.__annotations__.get("return")
        )
        return self.graph

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """(the function, Proxies for its arguments). *args and **kwargs are one Proxy each."""
        function = inspect.unwrap(root_fn)
        function = getattr(function, "__func__", function)
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:count])
        defaults = inspect.signature(function).parameters
        args = [self.root] if is_module else []
        if is_module and not names:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        for name in names[is_module:]:
            args.append(self._argument(function, name, defaults, concrete_args or {}))
        stars = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        extra = list(code.co_varnames[count:])
        if code.co_flags & inspect.CO_VARARGS:
            args.append(self.create_proxy("placeholder", f"*{extra.pop(0)}", (), {}))
        if code.co_flags & inspect.CO_VARKEYWORDS:
            args.append(self.create_proxy("placeholder", f"**{extra.pop(0)}", (), {}))
        if stars or code.co_kwonlyargcount:
            code = code.replace(
                co_flags=code.co_flags & ~stars, co_argcount=len(args), co_posonlyargcount=0, co_kwonlyargcount=0
            )
            made = types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
            made.__annotations__ = function.__annotations__
            function = made
        return function, args

    def _nest(self, function, is_module, concrete):
        """Let the code take arguments that are nested like the concrete ones."""
        code = function.__code__
        if any(node.target.startswith("*") for node in self.graph.find_nodes(op="placeholder")):
            raise NotImplementedError("nested concrete_args beside *args or **kwargs: name each argument instead")
        names = code.co_varnames[is_module : code.co_argcount]
        self.graph.set_codegen(PyTreeCodeGen(names, [concrete.get(name, PH) for name in names]))

    def _leaves(self, name, tree, default, kind):
        """A nested concrete argument with Proxies for what is open in it."""
        count = itertools.count(1)

        def leaf(value):
            given = self.create_proxy("placeholder", f"{name}_{next(count)}", default, {}, type_expr=kind)
            return given if isinstance(value, PHBase) else self._settled(given, name, value)

        return tree_map(leaf, tree)

    def _argument(self, function, name, defaults, concrete):
        declared = defaults[name].default
        default = () if declared is inspect.Parameter.empty else (declared,)
        kind = function.__annotations__.get(name)
        if name not in concrete:
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        if _is_nested(concrete[name]):
            return self._leaves(name, concrete[name], default, kind)
        given = self.create_proxy("placeholder", f"{name}_1", default, {}, type_expr=kind)
        return self._settled(given, name, concrete[name])

    def _settled(self, given, name, value):
        """A value for good; the graph says where it is given another one."""
        said = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (given, said), {})
        elif isinstance(value, (bool, int, float, str)):
            self.create_proxy("call_function", _assert, (given == value, said), {})
        return value

    @contextlib.contextmanager
    def _within(self, module):
        """Nodes tell by meta["nn_module_stack"] which calls of modules they are made in; further calls of one module
        have @ and a number behind the path."""
        before = self.module_stack or {}
        with contextlib.suppress(NameError):  # of a module that is no part, which call_module tells
            path = self.path_of_module(module)
            key = f"{path}@{self._calls[path]}" if self._calls[path] else path
            self._calls[path] += 1
            self.module_stack = {**before, key: (path, type(module))}
        try:
            yield
        finally:
            self.module_stack = before

    @contextlib.contextmanager
    def _patched(self, names):
        """While recording, calls and attributes of modules come here, and wrapped functions make nodes."""
        cache = {}
        call, undo = Module.__call__, []
        is_tensor_method_or_property(len)  # the first question loads rooms: before functions are replaced

        def module_call(module, *args, **kwargs):
            with self._within(module):
                return self.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        def module_getattribute(module, name):
            value = object.__getattribute__(module, name)
            return self.getattr(name, value, cache) if isinstance(value, Tensor) else value

        def replace(table, name, function):
            undo.append((table, name, table.get(name, undo)))
            table[name] = _recording(function)

        Module.__call__, Module.__getattribute__ = module_call, module_getattribute
        try:
            for table in [names, *map(vars, self._searched)]:
                for name, value in list(table.items()):
                    if id(value) in self._wrapped_ids and callable(value):
                        replace(table, name, value)
            for (_, name), table in _wrapped.items():
                function = table.get(name, getattr(builtins, name, None))
                if function is not None:
                    replace(table, name, function)
            yield
        finally:
            for table, name, before in reversed(undo):
                if before is undo:
                    del table[name]
                else:
                    table[name] = before
            del Module.__getattribute__
            Module.__call__ = call
            _quick_again(Module)


def _is_nested(value):
    return isinstance(value, (tuple, list, dict, PHBase))


def _quick_again(cls):
    """Give the modules their compiled call back, which a class loses when its methods are replaced."""
    for derived in cls.__subclasses__():
        speed_up(derived, Module)
        _quick_again(derived)


def _recording(function):
    """The function; with a Proxy among its arguments, a node that calls it."""

    @functools.wraps(function)
    def record(*args, **kwargs):
        for a in (*args, *kwargs.values()):
            if isinstance(a, Proxy):
                return a.tracer.create_proxy("call_function", function, args, kwargs)
        return function(*args, **kwargs)

    return record
