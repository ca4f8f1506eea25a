"""What tensors had before dtypes: `Tensor(3, 4)`, `FloatTensor([...])`, `t.type()`, `t.new()`; Python's protocols."""

import warnings

from tinygrad_ext.core.call import construct, unasked
from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.call import subclass as _subclass
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.elsewhere import how_to_convert
from tinygrad_ext.core.call.levels import calling_line
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.data import dtype as _dtype
from tinygrad_ext.core.data.dtype import Size, device
from tinygrad_ext.core.data.slots import get_slot, set_slot
from tinygrad_ext.core.data.table import NAMED
from tinygrad_ext.core.data.tensor import Carried, Parameter, Tensor
from tinygrad_ext.tensor.interop import copied
from tinygrad_ext.tensor.top import is_storage

_TITLES = {row.name: row.title for row in NAMED}
_CLASSES = {row.name: row.title for row in NAMED if row.kind not in ("natural", "pair")}  # as in PyTorch


# ---- constructors --------------------------------------------------------------------------------------------------


def _construct(args, kwargs, dtype=None):
    """The tensor of an old-style constructor: sizes as ints or Size, else data."""
    wanted = kwargs.pop("device", None)
    if "size" in kwargs:
        args = (*args, Size(kwargs.pop("size")))
    if "data" in kwargs or "other" in kwargs:
        args = (*args, kwargs.pop("data", None) if "data" in kwargs else kwargs.pop("other"))
    if kwargs:
        raise TypeError(
            f"new(): got an unexpected keyword argument '{next(iter(kwargs))}'; use tensor() for dtype "
            f"and requires_grad"
        )
    if wanted is not None and len(args) == 1 and isinstance(args[0], Tensor):
        raise RuntimeError(
            "Legacy tensor constructor of the form Tensor(tensor, device=device) is not supported: use tensor(...) or "
            "as_tensor(...), which take a device"
        )
    if wanted is not None and device(wanted).type != "cpu":
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {device(wanted).type} was "
            f"passed; use "
            "empty(..., device=...)"
        )
    if all(_is_size(a) for a in args):
        return _empty(args if args else (0,), dtype)
    if len(args) != 1:
        raise TypeError(
            f"new() takes sizes or one sequence, got ({', '.join(type(a).__name__ for a in args)}); use tensor()"
        )
    return _of_data(args[0], dtype)


def _unseen(*arguments):
    """The same, of which modes see nothing: a default device, for one, is for factories."""
    was = unasked.set_disabled(True, True)
    try:
        return _construct(*arguments)
    finally:
        unasked.set_disabled(*was)


def _is_size(a):
    """An int, NumPy's included, but no array or tensor, which answer __index__ too."""
    return type(a) is int or (hasattr(a, "__index__") and not hasattr(a, "__len__") and not isinstance(a, bool))


def _empty(size, dtype):
    return functions["empty"](size, dtype=dtype)


def _of_data(data, dtype):
    if isinstance(data, Size):
        return _empty(data, dtype)
    if isinstance(data, Tensor):
        if dtype is not None and data.dtype != dtype:
            raise TypeError(f"expected {_name(dtype)} (got {_name(data.dtype)}): convert it with to()")
        return data.detach()
    if is_storage(data):
        return _of_storage(data, dtype or _dtype.get_default_dtype())
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'; numbers are expected")
    if not hasattr(data, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__}); use tensor() for a number")
    return copied(data, dtype or _dtype.get_default_dtype())


def _of_storage(data, dtype):
    """The elements of a storage, in its memory."""
    own = getattr(data, "dtype", dtype)
    if own != dtype:
        raise RuntimeError(
            f"Expected a Storage of type {_TITLES[dtype.name]} or an UntypedStorage, but got type {_TITLES[own.name]} "
            f"for argument 1 'storage': a tensor of {own.name} shows it"
        )
    return _empty((0,), dtype).set_(data)


def _init(self, args, kwargs):
    """Tensor(...): the instance takes over what the constructor made, unless a subclass's `__new__` filled it."""
    if type(self).__new__ is not Tensor.__new__ and not isinstance(self, Parameter) and _subclass.is_filled(self):
        return
    made = _unseen(args, dict(kwargs))
    if isinstance(made, Carried):
        raise RuntimeError(
            "Tensor(...) of values that a transform or a capture carries has no memory to take over: use tensor(...), "
            f"which makes one of them ({calling_line()})"
        )
    _core.share_memory_from(self, made)


def _init_parameter(self, *args, **kwargs):
    """Parameter(...), unless a `__new__` made it before: of a subclass, whose arguments are given again here, or
    Parameter's own one where a subclass calls `super().__init__()`.
    """
    cls = type(self)
    if cls is not Parameter:
        own = cls.__new__ is not Parameter.__new__ and cls.__init__ is Parameter.__init__
        if (own or not (args or kwargs)) and _subclass.is_filled(self):
            return
    _fill(self, *args, **kwargs)


def _fill(self, data=None, requires_grad=True):
    get_slot("fill_parameter")(self, data, requires_grad)


_fill.__qualname__ = "Parameter.__init__"


def _new(self, *args, **kwargs):
    """A tensor of self's dtype, of the sizes given or with the data given."""
    return _construct(args, kwargs, self.dtype)


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """A copy of data in self's dtype and on its device, unless others are named."""
    construct.warn_of_copy(data, "t.new_tensor(t)")
    t = copied(data, dtype or self.dtype, device or self.device).detach()
    return t.requires_grad_() if requires_grad else t


class _TypedTensor(type):
    """Metaclass of FloatTensor and its kin: a call makes a Tensor, isinstance asks for the dtype."""

    def __call__(cls, *args, **kwargs):
        return _unseen(args, kwargs, cls.dtype)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype

    def __repr__(cls):
        return f"<class 'tinygrad_ext.{cls.__name__}'>"


def _typed(name):
    dtype = _dtype.by_name[name]
    title = _TITLES[name] + "Tensor"
    return _TypedTensor(title, (), {"dtype": dtype, "__doc__": f"Tensors of {name}.", "__module__": "tinygrad_ext"})


globals().update({f"{title}Tensor": _typed(name) for name, title in _CLASSES.items()})
LEGACY = {f"{title}Tensor": _dtype.by_name[name] for name, title in _CLASSES.items()}


@boundary
def set_default_tensor_type(t):
    """Make the dtype of a class such as DoubleTensor, or of its name, the default of floating numbers. Deprecated.

    Raises TypeError for a class of another kind, and for a name that is none of a class.
    """
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        stacklevel=2,
    )
    if isinstance(t, str):
        place, _, name = t.rpartition(".")
        if place not in ("torch", "tinygrad_ext") or name not in LEGACY:
            raise TypeError(
                f"invalid type: '{t}' is not available: the types are {', '.join('torch.' + n for n in LEGACY)}"
            )
        dtype = LEGACY[name]
    else:
        dtype = t.dtype if isinstance(t, _TypedTensor) else None
    if dtype is None or not dtype.is_floating_point:
        raise TypeError(
            f"only floating-point types are supported as the default type; set_default_tensor_type() got {t!r}. "
            "Use set_default_dtype() for a dtype"
        )
    _dtype.set_default_dtype(dtype)


# ---- type ----------------------------------------------------------------------------------------------------------


def _name(dtype):
    return f"torch.{_TITLES[dtype.name]}Tensor"


def _type(self, dtype=None, non_blocking=False):
    """Name of the old-style type, such as 'torch.FloatTensor'; with an argument, the tensor in that type or dtype."""
    if dtype is None:
        return _name(self.dtype)
    if isinstance(dtype, str):
        found = LEGACY.get(dtype.rpartition(".")[2])
        if found is None:
            raise ValueError(f"invalid type: '{dtype}': the types are {', '.join('torch.' + n for n in LEGACY)}")
        dtype = found
    elif isinstance(dtype, _TypedTensor):
        dtype = dtype.dtype
    elif dtype is Tensor:
        dtype = _dtype.get_default_dtype()
    return self.to(dtype)


def _cuda(self, device=None, non_blocking=False, memory_format=None):
    """Refused: there is no GPU in this build."""
    raise AssertionError(
        "tinygrad_ext is not compiled with CUDA enabled: tensors live on the cpu. Leave .cuda() out, "
        "or write "
        ".to(device) with a device that is 'cpu' here."
    )


# ---- Python's protocols --------------------------------------------------------------------------------------------


def _iter(t):
    if t.dim() == 0:
        raise TypeError("iteration over a 0-d tensor: take its number with item()")
    return iter(t.unbind(0))


def _contains(t, item):
    if not isinstance(item, (Tensor, int, float, complex)):
        hint = how_to_convert(item)
        raise (TypeError if hint else RuntimeError)(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(item)}{hint or '.'}"
        )
    return bool((t == item).any())


def _reversed(self):
    """What `reversed(t)` gives: a copy with the first dimension in the opposite order."""
    return self.flip(0) if self.dim() else self


def _format(self, spec):
    """A 0-d tensor is formatted as its number; any other takes no format."""
    if spec and self.dim() == 0 and not self.is_meta:
        return self.item().__format__(spec)
    if spec:
        return object.__format__(self, spec)
    return str(self.item()) if self.dim() == 0 and not self.is_meta and type(self) is Tensor else str(self)


METHODS = {
    "new": _new,
    "new_tensor": _new_tensor,
    "type": _type,
    "cuda": _cuda,
    "__format__": _format,
    "__reversed__": _reversed,
}


def fill_slots():
    """Hand the functions to the core."""
    set_slot("new", _init)
    set_slot("parameter", _init_parameter)
    set_slot("iter", _iter)
    set_slot("contains", _contains)
