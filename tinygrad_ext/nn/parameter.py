"""What a module registers on plain assignment: Parameter and Buffer."""

import tinygrad_ext as tg

from ..core.data.tensor import Carried, Parameter, Tensor
from ..tensor.copying import is_carried_parameter

__all__ = ["Buffer", "Parameter"]


def is_parameter(value):
    """Whether a value is a Parameter, or what stands for one while a program is written down as a graph."""
    return isinstance(value, Parameter) or (type(value) is Carried and is_carried_parameter(value))


class _BufferType(type):
    """Answers ``isinstance(x, Buffer)`` by the mark, since a buffer is an ordinary tensor."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(metaclass=_BufferType):
    """Mark a tensor so that ``module.name = Buffer(tensor)`` registers it as a buffer.

    Args:
        data: the tensor; an empty one by default.
        persistent: whether ``state_dict`` contains it.

    The result is a plain tensor (``type(Buffer(t)) is Tensor``) that shares memory with
    ``data``: ops on buffers then keep the fast path of exact tensors.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = tg.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
