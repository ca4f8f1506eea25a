"""What a module registers on plain assignment: Parameter and Buffer, and both before their shape is known."""

import tinygrad_ext as tg

from ..core.data.tensor import Carried, Parameter, Tensor
from ..tensor.copying import is_carried_parameter

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


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


_NOT_YET = "Call `forward` with a batch first, which makes the parameters."
# What a module does to convert and to copy itself; reading attributes is allowed besides.
_ALLOWED = frozenset(
    getattr(Tensor, name)
    for name in (
        *("size", "copy_", "is_complex", "is_floating_point", "get_device", "requires_grad_", "to", "cuda", "cpu"),
        *("half", "float", "double", "bfloat16", "char", "short", "int", "long"),
    )
)


class UninitializedTensorMixin:
    """A tensor without a shape, which becomes an ordinary one when `materialize` gives it one."""

    __slots__ = ()
    cls_to_become = Tensor

    def __init__(self, *args, **kwargs):
        """All is done in ``__new__``."""

    def materialize(self, shape, device=None, dtype=None):
        """Give this tensor memory, uninitialised, and make it one of ``cls_to_become``; it stays the same object.

        Args:
            shape: its sizes.
            device, dtype: those of the tensor unless given.
        """
        self.data = tg.empty(
            shape, device=self.device if device is None else device, dtype=self.dtype if dtype is None else dtype
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            f"{type(self).__name__}: Can't access the shape of an uninitialized parameter or buffer: it has no shape, "
            f"and cannot be loaded into one that has. {_NOT_YET}"
        )

    def share_memory_(self):
        raise RuntimeError(f"Can't share memory on an uninitialized parameter or buffer. {_NOT_YET}")

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def _made_of(self):
        return self.requires_grad, self.device, self.dtype

    def __reduce_ex__(self, protocol):
        return type(self), self._made_of()

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self._made_of())
        return memo[id(self)]

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in _ALLOWED or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter or buffer in {func}: it has no shape. {_NOT_YET}"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape is not known yet, as the lazy layers have them.

    Args:
        requires_grad, device, dtype: those of the parameter to be.

        >>> import tinygrad_ext as tg
        >>> weight = tg.nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', torch.Size([2, 3]))
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, tg.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A Buffer whose shape is not known yet.

    Args:
        requires_grad, device, dtype: those of the buffer to be.
        persistent: whether ``state_dict`` contains it.
    """

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = Tensor._make_subclass(cls, tg.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def _made_of(self):
        return (*super()._made_of(), self.persistent)


def is_lazy(value):
    """Whether a value is a parameter or buffer without a shape."""
    return isinstance(value, UninitializedTensorMixin)


def refuse_lazy(module):
    """Raise where a parameter or buffer of a module tree, which is to be traced or scripted, has no shape."""
    for name, part in (*module.named_parameters(), *module.named_buffers()):
        if is_lazy(part):
            raise RuntimeError(
                f"{type(module).__name__} has uninitialized parameters: {name} has no shape: run a forward pass. "
                f"{_NOT_YET}"
            )


def refuse_lazy_weight(what, weight):
    """Raise where a parameter that a norm is to be put on has no shape."""
    if is_lazy(weight):
        raise ValueError(f"The module passed to `{what}` can't have uninitialized parameters. {_NOT_YET}")
