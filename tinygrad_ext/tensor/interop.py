"""Tensors and other libraries' arrays: NumPy, DLPack, the buffer protocol."""

import operator

from tinygrad_ext.core.call import construct
from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.call.overridable import converting
from tinygrad_ext.core.data.dtype import device as _device
from tinygrad_ext.core.data.dtype import dtype as _dtype
from tinygrad_ext.core.data.dtype import get_default_dtype
from tinygrad_ext.core.data.slots import set_slot
from tinygrad_ext.core.data.tensor import Tensor

from_numpy = construct.from_numpy
_numpy_module = None


def _numpy():
    global _numpy_module
    if _numpy_module is None:
        import numpy as _numpy_module
    return _numpy_module


# ---- to NumPy ------------------------------------------------------------------------------------------------------


def _array(self, dtype=None, copy=None):
    """What numpy.asarray(tensor) and numpy.array(tensor) call."""
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"unable to avoid copy: converting {array.dtype} to {dtype} needs one")
        return array.astype(dtype)
    return array.copy() if copy else array


_OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}


def _array_ufunc(self, ufunc, method, *inputs, **kwargs):
    """What NumPy does when one of its functions, or an array on either side of an operator, meets a tensor.

    With NumPy scalars it is the tensor's own operator, dtype and gradient included. With arrays NumPy computes, by its
    rules of promotion, and the result becomes a tensor; a tensor that requires grad refuses.
    """
    generic = _numpy().generic
    plain = method == "__call__" and not kwargs and ufunc.__name__ in _OPERATORS and len(inputs) == 2
    if plain and all(isinstance(x, (Tensor, generic)) for x in inputs):
        return _OPERATORS[ufunc.__name__](*[x.item() if isinstance(x, generic) else x for x in inputs])
    out = kwargs.get("out")
    if out is not None:
        kwargs["out"] = tuple(_plain(x) for x in out)
    result = getattr(ufunc, method)(*[_plain(x) for x in inputs], **kwargs)
    if out is not None:
        return out[0] if len(out) == 1 else out
    return tuple(map(self.__array_wrap__, result)) if isinstance(result, tuple) else self.__array_wrap__(result)


def _plain(x):
    return x.numpy() if isinstance(x, Tensor) else x


def _array_wrap(self, array, context=None, return_scalar=False):
    """NumPy's result as a tensor, or as it is where no dtype of ours fits; a subclass of Tensor gives it its class."""
    try:
        return from_numpy(_numpy().asarray(array))
    except TypeError:
        return array


# ---- DLPack --------------------------------------------------------------------------------------------------------


@boundary
def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of another library's array.

    Args:
        ext_tensor: an object with ``__dlpack__``, or a capsule that it returned.
        device: only the cpu is possible. copy: True for memory of its own, False to refuse a copy.

    Raises BufferError for data that is not on the cpu or whose dtype has no match here. Where the lender says that
    the memory is read-only, so is the tensor.
    """
    if device is not None and _device(device).type != "cpu":
        raise BufferError(f"from_dlpack: device {device} cannot take the data; use device='cpu'")
    t = _core.exchanged(ext_tensor)
    if t is not None:
        return t.clone() if copy else t
    lend = getattr(ext_tensor, "__dlpack__", None)
    if lend is None:
        t = _core.import_dlpack(ext_tensor)
    else:
        where = getattr(ext_tensor, "__dlpack_device__", None)
        if where is not None and where()[0] != 1:
            raise BufferError(
                f"from_dlpack: the data is on a device of type {int(where()[0])}; only the cpu (type 1) can be read. "
                "Move it to the cpu in the library it comes from."
            )
        try:
            capsule = lend(max_version=(1, 0)) if copy is not False else lend(max_version=(1, 0), copy=False)
        except TypeError:  # a lender from before protocol 1.0 knows none of these arguments
            capsule = lend()
        t = _core.import_dlpack(capsule)
    return t.clone() if copy else t


set_slot("from_dlpack", from_dlpack)  # what `tensor` asks for objects that are no arrays


# ---- from anything -------------------------------------------------------------------------------------------------


def copied(data, dtype=None, device=None):
    """A copy of data; of lists and numbers through the op `tensor`, since a level may carry or note them."""
    if dtype is not None and not isinstance(dtype, _dtype):
        raise TypeError(f"tensor(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    if isinstance(data, (list, tuple, int, float, complex)):
        return functions["tensor"](data, dtype=dtype, device=device)
    return construct.make_tensor(data, dtype, device)


@converting
def as_tensor(data, dtype=None, device=None):
    """data as a tensor, sharing memory where that is possible: with arrays and tensors of that dtype."""
    t = _shared(data)
    if t is None and hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        t = from_dlpack(data)
    if t is None:
        return copied(data, dtype, device)
    return t if dtype is None and device is None else t.to(device=device, dtype=dtype)


@converting
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """obj as a tensor.

    Args:
        obj: a tensor, array, NumPy scalar, DLPack object or capsule, buffer (read as elements of dtype), or nested
            sequence.
        copy: True always copies; False raises ValueError where memory cannot be shared; None shares where it can.
        requires_grad: None is as obj does. A tensor with a history keeps it unless this is False.
    """
    t = _shared(obj)
    if t is None and (hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule"):
        t = from_dlpack(obj)
    if t is None and isinstance(obj, (bytes, bytearray, memoryview)):
        t = frombuffer(obj, dtype=dtype)
    if t is None:
        if copy is False and hasattr(obj, "dtype"):
            raise RuntimeError("can't alias NumPy scalars: leave copy=False out, or make an array of it")
        if copy is False:
            raise ValueError(
                "can't alias arbitrary sequence into a tensor: pass an array or tensor, or leave copy=False out"
            )
        t = copied(obj, dtype, device)
    else:
        same = (dtype is None or t.dtype == dtype) and (device is None or t.device == _device(device))
        if copy is False and not same:
            raise ValueError(
                f"can't alias tensor with dtype '{t.dtype}' into dtype '{dtype or t.dtype}' on device "
                f"'{device or t.device}': leave copy=False out"
            )
        moved = t if same else t.to(device=device, dtype=dtype)
        t = moved.clone() if copy and moved is t else moved
    if requires_grad is None or t.requires_grad == requires_grad:
        return t
    return t.requires_grad_() if requires_grad else t.detach()


def _shared(data):
    """A tensor over the memory of a tensor, array or NumPy scalar; None for anything else."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (list, tuple, int, float, complex)):
        return None
    numpy = _numpy()
    if isinstance(data, numpy.generic):
        data = numpy.asarray(data)
    return from_numpy(data) if isinstance(data, numpy.ndarray) else None


@boundary
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """One-dimensional tensor over the memory of a buffer.

    Args:
        dtype: of the elements (the default dtype for None). count: how many; -1 for all. offset: bytes to skip.

    Raises ValueError where count and offset do not fit the buffer, or where the memory is not aligned to the elements.
    """
    dtype = get_default_dtype() if dtype is None else dtype
    try:
        have, size = memoryview(buffer).nbytes, dtype.itemsize
    except TypeError:
        raise ValueError(
            f"frombuffer(): {type(buffer).__name__} object does not implement Python buffer protocol: pass bytes, an "
            "array or the like; tensor() takes lists"
        ) from None
    if have == 0 or count == 0:
        raise ValueError(f"both buffer length ({have}) and count ({count}) must not be 0")
    if not 0 <= offset < have:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({have} bytes) minus 1"
        )
    if count < 0 and (have - offset) % size:
        raise ValueError(
            f"buffer length ({have - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({size})"
        )
    count = (have - offset) // size if count < 0 else count
    if offset + count * size > have:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be "
            f"greater than actual buffer length ({have} bytes)"
        )
    t = construct.over_bytes(buffer, dtype, offset, count)
    return t.requires_grad_() if requires_grad else t


@boundary
def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False):
    """One-dimensional tensor over a file that is mapped into memory.

    Args:
        filename: of a file; with `shared` it is made, or made longer, where it has too few bytes.
        shared: whether writes reach the file, and others who map it. Else they stay in this process.
        size: how many elements, from the beginning of the file.
        dtype: of the elements, by default the default dtype.

    Raises:
        OSError: the file cannot be made or mapped.
        RuntimeError: there is no such file, or it is too short, and it is not shared.

        >>> import os, tempfile, tinygrad_ext as tg
        >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
        >>> written = tg.from_file(path, shared=True, size=3, dtype=tg.int32).copy_(tg.arange(3))
        >>> tg.from_file(path, size=2, dtype=tg.int32).tolist()
        [0, 1]
    """
    dtype = get_default_dtype() if dtype is None else dtype
    wanted = operator.index(size) * dtype.itemsize
    if wanted < 0:
        raise RuntimeError(f"from_file(): size must not be negative, got {size}")
    from tinygrad_ext.tensor.mapped_files import mapped_file  # lazy: most programs map no files

    mapped = mapped_file(filename, shared, wanted)
    return frombuffer(mapped, dtype=dtype) if wanted else functions["empty"]((0,), dtype=dtype)


METHODS = {
    "numpy": _core.numpy,
    "__array__": _array,
    "__array_priority__": 1000,
    "__array_ufunc__": _array_ufunc,
    "__array_wrap__": _array_wrap,
    "__dlpack__": _core.dlpack,
    "__dlpack_c_exchange_api__": _core.exchange_api,
    "__dlpack_device__": _core.dlpack_device,
}
