"""autograd.Function: one's own forward and backward, in the three styles of PyTorch's extension notes.

forward(ctx, ...) + backward(ctx, ...)                 static methods
forward(...) + setup_context(ctx, inputs, output)      static methods; forward knows no ctx
forward(self, ...) + backward(self, ...)               legacy: Function(*options)(x); each call has a node of its own
"""

import copy
import functools
import inspect
import warnings

from tinygrad_ext.core.function import FunctionNode, prepare, run
from tinygrad_ext.core.node import get_slot
from tinygrad_ext.core.overridable import overridable_classmethod
from tinygrad_ext.core.tensor import Tensor

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class FunctionCtx(FunctionNode):
    """What forward, setup_context and backward get as ctx; also the node of the graph."""


class BackwardCFunction(FunctionCtx):
    """Base of the node classes, one for each Function: MyCubeBackward for MyCube."""

    def _backward(self, *grads):
        cls = self._forward_cls
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp and cls.backward is not cls.vjp:
            raise RuntimeError(
                f"Implementing both 'backward' and 'vjp' for a custom Function is not allowed: {cls.__name__} "
                "should have one of them. They mean the same."
            )
        rule = cls.vjp if cls.vjp is not Function.vjp else cls.backward
        return rule(self, *grads)


class FunctionMeta(type):
    """Gives each Function its node class and reads its forward's signature once."""

    def __init__(cls, name, bases, attrs):
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls})
        cls._separate_context = any(
            "setup_context" in vars(c) for c in cls.__mro__ if c.__name__ != "Function" or c.__module__ != __name__
        )
        cls._legacy = not isinstance(inspect.getattr_static(cls, "forward", None), (staticmethod, classmethod))
        cls._signature = None


def _signature_of(cls):
    """(parameters of forward without ctx, whether every call is simply positional)."""
    if cls._signature is None:
        parameters = list(inspect.signature(cls.forward).parameters.values())
        if not cls._separate_context and parameters and parameters[0].kind in _POSITIONAL:
            parameters = parameters[1:]
        plain = all(p.kind in _POSITIONAL and p.default is p.empty for p in parameters)
        cls._signature = (parameters, plain, tuple(p.name for p in parameters))
    return cls._signature


def _bind(cls, args, kwargs):
    """(flat arguments, positional part, keyword part, names) of a call, defaults filled in."""
    parameters, plain, names = _signature_of(cls)
    if not kwargs and plain and len(args) == len(parameters):
        return args, args, {}, names
    bound = inspect.Signature(parameters).bind(*args, **kwargs)
    bound.apply_defaults()
    flat, positional, keywords, labels = [], [], {}, []
    for p in parameters:
        value = bound.arguments.get(p.name)
        if p.kind is p.VAR_POSITIONAL:
            flat += value
            positional += value
            labels += [f"{p.name}[{i}]" for i in range(len(value))]
        elif p.kind is p.VAR_KEYWORD:
            flat += value.values()
            keywords.update(value)
            labels += value
        else:
            flat.append(value)
            labels.append(p.name)
            if p.kind is p.KEYWORD_ONLY:
                keywords[p.name] = value
            else:
                positional.append(value)
    return tuple(flat), tuple(positional), keywords, tuple(labels)


def _check_nested(cls, flat):
    """Tensors inside lists or dicts are not seen by autograd: say so instead of losing their gradients."""
    for a in flat:
        inner = a.values() if isinstance(a, dict) else a
        if isinstance(a, (list, tuple, dict)) and any(isinstance(t, Tensor) and t.requires_grad for t in inner):
            raise TypeError(
                f"{cls.__name__}.apply(): a {type(a).__name__} argument holds a tensor that requires grad, and its "
                "gradient would be lost. Pass tensors as arguments of their own: apply(*tensors)."
            )


class Function(metaclass=FunctionMeta):
    """Base of one's own differentiable functions: give forward and backward, call `apply`.

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad):
            (result,) = ctx.saved_tensors
            return grad * result
    """

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs; grad mode is off inside."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep on ctx what backward needs, when forward takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """One gradient for each argument of forward, as a tuple or a dict by argument name."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use "
            "it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Forward-mode derivative."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        """Batched form."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @overridable_classmethod
    def apply(cls, *args, **kwargs):
        """Call forward and record this Function as one step of the graph."""
        flat, positional, keywords, names = _bind(cls, args, kwargs)
        _check_nested(cls, flat)
        ctx = prepare(cls._backward_cls(), cls.clear_saved_tensors_on_access, None)
        if cls._separate_context:
            return run(ctx, flat, cls.forward, positional, keywords, cls.setup_context, names)
        return run(ctx, flat, cls.forward, (ctx, *positional), keywords, None, names)

    # ---- legacy style: the instance carries the options, a copy of it is the self of one call

    def __call__(self, *args, **kwargs):
        cls = type(self)
        if not cls._legacy:
            warnings.warn(
                f"{cls.__name__} should not be instantiated: its forward is static. Use {cls.__name__}.apply(...).",
                DeprecationWarning,
                stacklevel=2,
            )
            return cls.apply(*args, **kwargs)
        flat, positional, keywords, names = _bind(cls, args, kwargs)
        _check_nested(cls, flat)
        this = copy.copy(self)
        ctx = this._ctx = cls._backward_cls()
        prepare(ctx, cls.clear_saved_tensors_on_access, functools.partial(_legacy_backward, this.__dict__, cls))
        try:
            return run(ctx, flat, this.forward, positional, keywords, None, names)
        finally:
            del this._ctx  # the node holds the state, and the state must not hold the node

    def _context(self):
        ctx = self.__dict__.get("_ctx")
        if ctx is None:
            raise RuntimeError(f"{type(self).__name__}: this works inside forward and backward only")
        return ctx

    def save_for_backward(self, *tensors):
        """Keep tensors for backward (legacy style)."""
        self._context().save_for_backward(*tensors)

    def mark_dirty(self, *tensors):
        """Name the inputs that forward wrote to (legacy style)."""
        self._context().mark_dirty(*tensors)

    def mark_non_differentiable(self, *tensors):
        """Name the outputs that carry no gradient (legacy style)."""
        self._context().mark_non_differentiable(*tensors)

    def set_materialize_grads(self, value):
        """Zeros or None for missing gradients (legacy style)."""
        self._context().set_materialize_grads(value)

    @property
    def saved_tensors(self):
        """What save_for_backward was given (legacy style)."""
        return self._context().saved_tensors

    @property
    def needs_input_grad(self):
        """For each argument of forward, whether it needs a gradient (legacy style)."""
        return self._context().needs_input_grad


def _legacy_backward(state, cls, ctx, *grads):
    """Run an instance-style backward on an object with the attributes that forward left."""
    this = cls.__new__(cls)
    this.__dict__.update(state)
    this._ctx = ctx
    return this.backward(*grads)


class _OnceNode(BackwardCFunction):
    """A node that refuses to be differentiated again."""

    def _backward(self, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(fn):
    """Decorator of a backward that is not differentiable itself: a second derivative raises RuntimeError."""

    @functools.wraps(fn)
    def wrapper(ctx, *grads):
        from tinygrad_ext.autograd.modes import is_grad_enabled, no_grad

        recording = is_grad_enabled()
        with no_grad():
            outputs = fn(ctx, *grads)
        if not recording:
            return outputs
        node = ctx._context() if isinstance(ctx, Function) else ctx
        # what the result depends on: the incoming gradients and the real inputs of the forward
        sources = [g for g in grads if isinstance(g, Tensor) and g.requires_grad]
        sources += [t for t in node.saved_tensors if isinstance(t, Tensor) and t.requires_grad]
        if not sources and not any(node.needs_input_grad):
            return outputs
        single = not isinstance(outputs, tuple)
        row = (outputs,) if single else outputs
        marked = _mark_once(row, sources)
        return marked[0] if single else marked

    return wrapper


def _mark_once(row, sources):
    """The gradients as outputs of a node that refuses to be differentiated."""
    tensors = tuple(t for t in row if isinstance(t, Tensor))
    if not sources and tensors:
        # nothing that the gradients depend on is at hand, but the inputs need gradients: a stand-in keeps the node
        sources = [get_slot("zeros")((), tensors[0].dtype, tensors[0].device).requires_grad_()]
    fresh = iter(run(_OnceNode(), tuple(sources), lambda *_: tensors, tuple(sources), {}, None, None))
    return tuple(next(fresh) if isinstance(t, Tensor) else t for t in row)


class InplaceFunction(Function):
    """Function with an `inplace` option (legacy)."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace
