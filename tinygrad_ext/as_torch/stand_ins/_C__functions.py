"""torch._C._functions: nodes of backward graphs that PyTorch's tests ask for."""

from tinygrad_ext.autograd import Function as _Function
from tinygrad_ext.core.grad.edges import AccumulateGrad  # noqa: F401 - a name there
from tinygrad_ext.core.grad.node import Node as _Node


class _Undefined(_Function):
    @staticmethod
    def forward(ctx, *tensors):
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return (None,) * len(grads)


class _Delayed(_Function):
    @staticmethod
    def forward(ctx, message, *tensors):
        ctx.message = message
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


def _one_or_all(found):
    return found[0] if len(found) == 1 else found


class UndefinedGrad(_Node):
    """Called with tensors gives them again; no gradient goes through."""

    def __call__(self, *tensors):
        return _one_or_all(_Undefined.apply(*tensors))


class DelayedError(_Node):
    """Called with tensors gives them again; a gradient that arrives is a RuntimeError with a message."""

    def __init__(self, msg, num_inputs):
        self._told = msg, num_inputs

    def __call__(self, *tensors):
        message, count = self._told
        if len(tensors) != count:
            raise RuntimeError(f"DelayedError: expected {count} tensors, got {len(tensors)}")
        return _one_or_all(_Delayed.apply(message, *tensors))
