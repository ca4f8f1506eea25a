"""autograd.Function: one's own forward and backward, in the three styles of PyTorch's extension notes.

forward(ctx, ...) + backward(ctx, ...)                 static methods
forward(...) + setup_context(ctx, inputs, output)      static methods; forward knows no ctx
forward(self, ...) + backward(self, ...)               legacy: Function(*options)(x); each call has a node of its own

The work is done in core/grad/plan (binding), core/grad/apply (forward) and core/grad/function (ctx and backward).
"""

import copy
import functools
import warnings

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.modes import get_modes, set_modes
from tinygrad_ext.core.call.overridable import overridable_classmethod
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.apply import apply, call_instance
from tinygrad_ext.core.grad.delayed import undifferentiable
from tinygrad_ext.core.grad.function import FunctionNode
from tinygrad_ext.core.grad.plan import set_base

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class FunctionCtx(FunctionNode):
    """What forward, setup_context and backward get as ctx; also the node of the graph."""


_ContextMethodMixin = FunctionCtx  # its old name, which old pickles know


class BackwardCFunction(FunctionCtx):
    """Base of the node classes, one for each Function: MyCubeBackward for MyCube."""


class FunctionMeta(type):
    """Gives each Function its node class: `<name>Backward`.

    Legacy Functions are recognised by a forward that is no static method. Their node is also the `self` of the
    call, so its class inherits from theirs.
    """

    def __init__(cls, name, bases, attrs):
        super().__init__(name, bases, attrs)
        if issubclass(cls, FunctionNode):
            return
        cls._plan = None
        cls._legacy = not isinstance(_static(cls, "forward"), (staticmethod, classmethod))
        bases = (cls, BackwardCFunction) if cls._legacy else (BackwardCFunction,)
        cls._backward_cls = type(f"{name}Backward", bases, {"_forward_cls": cls})


def _static(cls, name):
    """An attribute of a class as it stands in the class body."""
    return next(vars(c)[name] for c in cls.__mro__ if name in vars(c))


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
    clear_saved_tensors_on_access = False  # saved_tensors can be read once and lets go of them
    boxed_grads_call = False  # backward(ctx, grads) gets one list, whose entries it may drop early

    def __init__(self, *args, **kwargs):
        if not self._legacy:
            warnings.warn(
                f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, so "
                f"you should invoke them on the class itself: {type(self).__name__}.apply(...).",
                DeprecationWarning,
                stacklevel=2,
            )

    def __call__(self, *args, **kwargs):
        if not self._legacy:
            name = type(self).__name__
            raise RuntimeError(
                f"{name}: an instance is called, as in the legacy style, but its forward is static and would not see "
                f"the instance. Call {name}.apply(...), or make forward and backward plain methods."
            )
        return call_instance(self, *args, **kwargs)

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
            f"it with backward mode AD: {ctx.name()} has neither."
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

    apply = overridable_classmethod(apply)


set_base(Function)


@boundary
def once_differentiable(fn):
    """Decorator of a backward that is not differentiable itself: a second derivative raises RuntimeError."""

    @functools.wraps(fn)
    def wrapper(ctx, *grads):
        recording, inference, anomaly = get_modes()
        if not recording:
            return fn(ctx, *grads)
        seen = list(grads[0]) if isinstance(grads[0], list) else grads  # boxed_grads_call
        set_modes(False, inference, anomaly)
        try:
            got = fn(ctx, *grads)
        finally:
            set_modes(True, inference, anomaly)
        return undifferentiable(ctx, seen, got)

    wrapper.once = True  # which levels that write programs down ask for
    return wrapper


class InplaceFunction(Function):
    """Function with an `inplace` option (legacy)."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Function over nested lists, tuples and dicts of tensors (legacy).

    Give `forward_extended(self, *inputs)` and `backward_extended(self, *grads)`; both see the nested values, and
    backward_extended returns one gradient or None for each tensor among the inputs, nested as it likes.
    """

    def __call__(self, *inputs):
        tensors, outputs = [], []
        call = copy.copy(self)
        call._input_layout, call._output_layout = _unnest(inputs, tensors), outputs
        result = super(NestedIOFunction, call).__call__(*tensors)
        return _nest(outputs[0], iter(result))

    def forward(self, *tensors):
        result = self.forward_extended(*_nest(self._input_layout, iter(tensors)))
        flat = []
        self._output_layout.append(_unnest(result, flat))
        return tuple(flat)

    def backward(self, *grads):
        nested, flat = _nest(self._output_layout[0], iter(grads)), []
        row = nested if isinstance(nested, (list, tuple)) else (nested,)
        _unnest(self.backward_extended(*row), flat, True)
        return tuple(flat)

    def save_for_backward(self, *values):
        """Keep nested tensors for backward."""
        flat = []
        self._saved_layout = _unnest(values, flat)
        super().save_for_backward(*flat)

    @property
    def saved_tensors(self):
        """What save_for_backward was given."""
        return _nest(self._saved_layout, iter(super().saved_tensors))

    def forward_extended(self, *inputs):
        """Compute the outputs from nested inputs."""
        raise NotImplementedError("You must implement forward_extended for a NestedIOFunction.")

    def backward_extended(self, *grad_outputs):
        """The gradients from nested gradients of the outputs."""
        raise NotImplementedError("You must implement backward_extended for a NestedIOFunction.")


class _Gap:
    """Stands for a tensor in the layout of a nested value."""


def _unnest(value, flat, none_too=False):
    """Put the tensors of a nested value into `flat`; what is left is its layout."""
    if isinstance(value, Tensor) or (value is None and none_too):
        flat.append(value)
        return _Gap
    if isinstance(value, (list, tuple)):
        row = [_unnest(v, flat, none_too) for v in value]
        return type(value)(*row) if hasattr(value, "_fields") else type(value)(row)
    if isinstance(value, dict):
        return {k: _unnest(v, flat, none_too) for k, v in value.items()}
    return value


def _nest(layout, tensors):
    """The nested value again, with the next tensors in its gaps."""
    if layout is _Gap:
        return next(tensors)
    if isinstance(layout, (list, tuple)):
        row = [_nest(v, tensors) for v in layout]
        return type(layout)(*row) if hasattr(layout, "_fields") else type(layout)(row)
    if isinstance(layout, dict):
        return {k: _nest(v, tensors) for k, v in layout.items()}
    return layout
