"""`Proxy`: stands for a value while a program is recorded; whatever is done with it becomes a node."""

import dis
import operator
import sys

from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.overrides import is_tensor_method_or_property

from .node import Node, map_aggregate


class TraceError(ValueError):
    """The program asks for something that is only known when it runs."""


class TracerBase:
    """Makes nodes of calls. `Tracer` adds modules; a subclass of this one may record anything else.

    Attributes: graph, what is recorded; record_stack_traces, whether nodes note where they come from.
    """

    record_stack_traces = False
    proxy_buffer_attributes = False
    trace_asserts = False
    module_stack = None  # path of each module whose call is recorded now -> (path, class), the outermost first

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """Add a node to the graph; args and kwargs hold Nodes."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node):
        """The Proxy of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """Add a node of arguments that hold Proxies, and return its Proxy."""
        args, kwargs = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        if self.record_stack_traces:
            node.stack_trace = _place()
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a):
        """An argument with Nodes in the place of Proxies. NotImplementedError for what no graph can hold."""
        return map_aggregate(_keys_checked(a), self._create_leaf)

    def _create_leaf(self, a):
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, range):
            return range(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if a is None or a is Ellipsis or isinstance(a, (Node, str, int, float, complex, bool, bytes)) or callable(a):
            return a
        if isinstance(a, (dtypes.dtype, dtypes.device, dtypes.layout, dtypes.memory_format)):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj):
        """What `if proxy` means; raises TraceError unless a subclass knows an answer."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """What iterating a proxy gives: its items where they are unpacked into names; else TraceError."""
        count = _unpacked(sys._getframe(2))
        if count:
            return (obj[i] for i in range(count))
        raise TraceError(
            "Proxy object cannot be iterated. How many items there are is known when the graph runs: unpack it into "
            "a fixed number of names, index it, or keep the loop in a function that torch.fx.wrap() leaves whole"
        )

    def keys(self, obj):
        """What `proxy.keys()` and `**proxy` see."""
        return Attribute(obj, "keys")()


def _keys_checked(a):
    """a, whose dicts have no node among their keys."""
    if isinstance(a, dict):
        for key in a:
            if isinstance(key, Proxy):
                raise RuntimeError(
                    f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key.node}"
                )
        return {key: _keys_checked(value) for key, value in a.items()}
    if type(a) in (list, tuple):
        return type(a)(map(_keys_checked, a))
    return a


def _unpacked(frame):
    """How many names the instruction that a frame stands at unpacks into; 0 where it does something else."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else 0
    return 0


def _place():
    """File and line of the innermost frame that is not of this room."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tinygrad_ext."):
        frame = frame.f_back
    return (
        "" if frame is None else f'File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}'
    )


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph that is there: for passes that write new steps as Python."""

    def __init__(self, graph):
        self.graph = graph


class Proxy:
    """Stands for the value of a node: operators, methods, attributes and functions of the package are recorded."""

    def __init__(self, node, tracer=None):
        self.tracer = tracer or GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):  # Python's own questions
            raise AttributeError(f"'Proxy' object has no attribute '{name}'")
        return Attribute(self, name)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __bool__(self):
        return self.tracer.to_bool(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def keys(self):
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tracer = _tracer_of((args, kwargs))
        if is_tensor_method_or_property(function):
            return tracer.create_proxy("call_method", function.__name__, args, kwargs)
        if len(args) == 2 and isinstance(args[1], (list, tuple)) and getattr(function, "__name__", "") == "einsum":
            args = (args[0], *args[1])  # one form for its readers, whichever the program used
        return tracer.create_proxy("call_function", function, args, kwargs)


def _tracer_of(values):
    found = []
    map_aggregate(values, lambda a: found.append(a.tracer) if isinstance(a, Proxy) else None)
    return found[0]


class Attribute(Proxy):
    """`proxy.name`: a call of the method where it is called, else the attribute, recorded when it is used."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer, self._node = root, attr, root.tracer, None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The Proxy of a parameter whose sizes are constants, for `Tracer(param_shapes_constant=True)`."""

    def __init__(self, tracer, node, name, param):
        """name: of the parameter in the root. param: the parameter itself."""
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    @property
    def ndim(self):
        return self.param.ndim

    def size(self, dim=None):
        """The shape of the parameter, or the size of one dimension."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self):
        """How many dimensions the parameter has."""
        return self.param.dim()

    def numel(self):
        """How many elements the parameter has."""
        return self.param.numel()

    nelement = numel


_OPERATORS = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift"
_COMPARISONS = "eq ne lt gt le ge getitem"


def _define():
    def forward(function):
        return lambda self, *args: self.tracer.create_proxy("call_function", function, (self, *args), {})

    def reflected(function):
        return lambda self, other: self.tracer.create_proxy("call_function", function, (other, self), {})

    for name in [*_OPERATORS.split(), *_COMPARISONS.split(), "neg", "invert", "pos"]:
        setattr(Proxy, f"__{name.strip('_')}__", forward(getattr(operator, name)))
    for name in _OPERATORS.split():
        setattr(Proxy, f"__r{name.strip('_')}__", reflected(getattr(operator, name)))
    Proxy.__hash__ = object.__hash__


_define()


class ProxyableClassMeta(type):
    """A metaclass of classes whose construction from Proxies is recorded as a call, with what is done to the object.

    What the methods do is recorded on the object's proxy, where they are called on it.
    """

    def __call__(cls, *args, **kwargs):
        found = []
        for a in (args, kwargs):
            map_aggregate(a, lambda x: found.append(x) if isinstance(x, Proxy) else x)
        if not found:
            return super().__call__(*args, **kwargs)
        return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
