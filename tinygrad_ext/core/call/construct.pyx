# cython: language_level=3
"""Tensors from Python data: nested sequences, numbers, buffers, arrays.

A sequence is walked three times: for the sizes, along the first elements; for the dtype that its numbers promote to; and to
write them into memory that is allocated once. Foreign sequences may answer differently each time, so the last walk
counts again. Rejected: handing lists to NumPy, which took 1.6 times as long for 100 x 100 floats and 1.7 times for three of
them, makes float64 of floats, and would have to be loaded for `tensor([1.0])`.
"""
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_SIMPLE, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_Check
from tinygrad_ext.core.loops.copy cimport cast, checked_scalar, clone, copy_into
from tinygrad_ext.core.data.boxed cimport as_int
from tinygrad_ext.core.data.memory_error import AllocationError
from tinygrad_ext.core.call.dispatch cimport state
from tinygrad_ext.core.data.dtype cimport CPU, META, complex_of, default_id, device_id, dtype as DType, dtype_of, promoted
from tinygrad_ext.core.data.geometry cimport LARGEST_MEMORY, reach
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.storage cimport Storage, borrow_storage
from tinygrad_ext.core.data.tensor cimport DERIVED, READONLY, Tensor, blank, empty, finish, write_scalar
from tinygrad_ext.core.data.types cimport (
    ITEMSIZE, TGX_BOOL, TGX_C128, TGX_C64, TGX_F16, TGX_F32, TGX_F64, TGX_I16, TGX_I32, TGX_I64, TGX_I8, TGX_MAX_DIMS,
    TGX_U16, TGX_U32, TGX_U64, TGX_U8, is_coded, is_complex, is_integral, tgx_scalar, uint64_t, wide_of,
)


# ---- nested sequences ----------------------------------------------------------------------------------------------

cdef int _shape_of(object data, int64_t *shape) except -1:
    """Sizes along the first elements; the fill checks that the others agree."""
    cdef int rank = 0
    while True:
        if isinstance(data, (list, tuple)):
            shape[rank] = len(data)
        elif isinstance(data, (Tensor, float, int, complex, str, bytes)) or not _is_sequence(data):
            return rank
        else:
            shape[rank] = len(data)
        rank += 1
        if rank > TGX_MAX_DIMS:
            raise ValueError(f"too many dimensions ({rank}); at most {TGX_MAX_DIMS} are possible")
        if shape[rank - 1] == 0:
            return rank
        data = data[0]


cdef bint _is_sequence(object o):
    return PySequence_Check(o) and hasattr(o, "__len__") and getattr(o, "ndim", 1) != 0


cdef int _kind_of(object data, int seen, int depth=0) except -2:
    """Widest dtype needed by the numbers below `data`: bool, int64, the default float, complex."""
    cdef int k
    cdef int64_t n
    if depth > TGX_MAX_DIMS:        # a list may hold itself
        raise ValueError(f"too many dimensions: the data is nested more than {TGX_MAX_DIMS} deep, or holds itself")
    if isinstance(data, (list, tuple)):
        for item in data:
            seen = _kind_of(item, seen, depth + 1)
        return seen
    if isinstance(data, bool):
        k = TGX_BOOL
    elif isinstance(data, range) and data:
        k = TGX_I64             # unread: it may be endless, and memory for its numbers is asked for later
    elif isinstance(data, float):
        k = default_id() if type(data) is float or not hasattr(data, "dtype") else _numpy_kind(data.dtype)
    elif isinstance(data, int):
        k = TGX_I64
    elif isinstance(data, complex):
        k = complex_of(default_id()) if type(data) is complex or not hasattr(data, "dtype") else _numpy_kind(data.dtype)
    elif isinstance(data, Tensor):
        k = (<Tensor>data).tid
    elif isinstance(data, (str, bytes)) or data is None or isinstance(data, (dict, set)):
        if isinstance(data, str):
            raise TypeError("new(): invalid data type 'str'; tensor() takes numbers, nested lists of them, and arrays")
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}; tensor() takes numbers, nested lists of "
                           f"them, "
                           "and arrays")
    elif hasattr(data, "dtype") and getattr(data, "ndim", 1) == 0:
        k = _numpy_kind(data.dtype)
    elif _is_sequence(data):
        if hasattr(data, "dtype"):
            k = _numpy_kind(data.dtype)
        else:
            n = len(data)
            if n > (<int64_t>1 << 40):
                raise AllocationError(f"cannot allocate a tensor for a sequence of {n} items")
            for item in data:       # at most as many as it says, since some never end
                if n <= 0:
                    break
                n -= 1
                seen = _kind_of(item, seen, depth + 1)
            return seen
    elif hasattr(data, "__float__"):
        k = default_id()
    elif hasattr(data, "__index__"):
        k = TGX_I64
    else:
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}; tensor() takes numbers, nested lists of "
                           f"them, "
                           "and arrays")
    return k if seen < 0 else promoted(seen, k)


cdef int _numpy_kind(object d) except -2:
    return _tid_of_code(d.char, d.itemsize)


cdef char *_fill(object data, char *at, int dtype, const int64_t *shape, int dim, int rank) except NULL:
    """Write the numbers below `data` row by row; ValueError where a sequence has another length than its neighbours."""
    cdef int64_t n
    cdef int over = 0
    if dim == rank:
        if isinstance(data, float) and dtype == TGX_F32:
            (<float *>at)[0] = data
        elif type(data) is int and dtype == TGX_I64:
            (<int64_t *>at)[0] = PyLong_AsLongLongAndOverflow(data, &over)
            if over:
                _fill_number(data, at, dtype)       # which says what is wrong
        else:
            _fill_number(data, at, dtype)
        return at + ITEMSIZE[dtype]
    if not _is_sequence(data) or isinstance(data, (str, bytes)):
        raise TypeError(f"expected a sequence of length {shape[dim]} at dim {dim}, got {type(data).__name__}")
    n = len(data)
    if n == shape[dim]:
        n = 0
        for item in data:       # counted, since a length may lie and a list may change while its numbers are read
            n += 1
            if n > shape[dim]:
                break
            at = _fill(item, at, dtype, shape, dim + 1, rank)
    if n != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {n})")
    return at


cdef int _fill_number(object data, char *at, int dtype) except -1:
    cdef tgx_scalar s
    if isinstance(data, (list, tuple)):
        raise TypeError(f"'{type(data).__name__}' object cannot be interpreted as a number: the nesting is deeper "
                        f"here than at the "
                        "start")
    if isinstance(data, (str, bytes)) or data is None:
        raise TypeError(f"must be real number, not {type(data).__name__}")
    if isinstance(data, Tensor) and (<Tensor>data).count != 1:
        raise ValueError("only one element tensors can be converted to Python scalars: use stack() to join tensors")
    if isinstance(data, complex) and dtype == TGX_BOOL:
        data = data != 0
    if isinstance(data, complex) and not is_complex(dtype):
        raise TypeError(f"must be real number, not complex: {dtype_of(dtype)} cannot hold {data}; give a complex dtype")
    if not isinstance(data, (int, float, complex, Tensor)) and not hasattr(data, "item"):
        if hasattr(data, "__index__"):
            data = data.__index__()
        elif hasattr(data, "__float__"):
            data = float(data)
        else:
            raise TypeError(f"must be real number, not {type(data).__name__}")
    if dtype == TGX_U64 and isinstance(data, (int, float, Tensor)):
        if not isinstance(data, int):
            raise TypeError(f"an integer is required for an element of uint64, got {type(data).__name__}: convert a tensor of it "
                            "with .to(uint64)")
        if data < 0:
            raise OverflowError(f"can't convert negative int to unsigned: {data} for an element of uint64")
        if data > 0xffffffffffffffff:
            raise OverflowError(f"int too big to convert: uint64 ends below {data}")
        (<uint64_t *>at)[0] = data
        return 0
    if isinstance(data, int) and not -0x8000000000000000 <= data <= 0x7fffffffffffffff:
        if dtype == TGX_BOOL:
            data = 1
        elif is_integral(dtype):
            raise ValueError(f"Overflow when unpacking long long: {data} does not fit into 64 bits; use a floating "
                             f"dtype")
        else:
            data = float(data)
    s = checked_scalar(data, dtype)
    write_scalar(at, dtype, s.f, s.im, s.i)
    return 0


cdef Tensor scalar_tensor(object value, int dtype):
    cdef Tensor t
    if dtype < 0:
        dtype = _kind_of(value, -1)
    t = empty(NULL, 0, dtype, CPU)
    _fill_number(value, t.data, dtype)
    return t


cdef Tensor _from_outside(Tensor t):
    """In a Function's forward nobody knows what another library computed its memory from."""
    if state().in_forward:
        t.bits |= DERIVED
    return t


cdef Tensor tensor_of(object data, int dtype, int device):
    """A fresh tensor holding a copy of `data`."""
    cdef int64_t shape[TGX_MAX_DIMS + 1]
    cdef int rank
    cdef Tensor t, source
    if is_coded(dtype):
        return cast(tensor_of(data, wide_of(dtype), device), dtype)
    if device > META:
        source = tensor_of(data, dtype, CPU)
        t = empty(source.sizes, source.rank, source.tid, device)
        copy_into(t, source)
        return t
    if isinstance(data, Tensor):
        t = <Tensor>data
        if device:
            return empty(t.sizes, t.rank, t.tid if dtype < 0 else dtype, device)
        t = clone(t)
        return t if dtype < 0 else cast(t, dtype)
    if not isinstance(data, (list, tuple, float, int, complex, str)):
        shown = getattr(data, "_shown_as", None)        # a storage: its memory as numbers of a dtype
        if shown is not None:
            t = clone(<Tensor?>shown(None if dtype < 0 else dtype_of(dtype)))
            return tensor_of(t, dtype, device)
        if hasattr(data, "__array_interface__") or PyObject_CheckBuffer(data) and not isinstance(data,
                                                                                                 (bytes, bytearray)):
            t = from_buffer(data, True)
            if device:
                return tensor_of(t, dtype, device)
            t = clone(t)
            return _from_outside(t if dtype < 0 else cast(t, dtype))
        # a table is a sequence of its columns' names; what it holds is the array
        if hasattr(data, "__array__") and (not _is_sequence(data) or getattr(data, "ndim", 1) > 1):
            return tensor_of(data.__array__(), dtype, device)
        if hasattr(data, "__dlpack__"):
            return tensor_of(slot("from_dlpack")(data), dtype, device)
    rank = _shape_of(data, shape)
    if dtype < 0:
        dtype = _kind_of(data, -1)
        if dtype < 0:
            dtype = default_id()
    t = empty(shape, rank, dtype, device)
    if device == 0:
        if rank == 0:
            _fill_number(data, t.data, dtype)
        elif t.count:
            _fill(data, t.data, dtype, shape, 0, rank)
        else:
            _check_empty(data, shape, 0, rank)
    return t


cdef int _check_empty(object data, const int64_t *shape, int dim, int rank) except -1:
    if dim == rank:
        return 0
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    for item in data:
        _check_empty(item, shape, dim + 1, rank)
    return 0


cdef int read_shape(object size, int64_t *shape) except -1:
    """Sizes of a shape argument (ints, or one int); RuntimeError for negative ones."""
    cdef int i, n
    if not isinstance(size, (tuple, list)):
        size = (size,)
    n = len(size)
    if n > TGX_MAX_DIMS:
        raise RuntimeError(f"tensor has too many (>{TGX_MAX_DIMS}) dims: {n}")
    for i in range(n):
        item = size[i]
        shape[i] = item if type(item) is int else as_int(<PyObject *>item)
        if shape[i] < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {shape[i]}: {list(size)}")
    return n


include "construct_buffers.pxi"


# ---- what the constructors share ----------------------------------------------------------------------------------

cpdef int warn_of_copy(object data, str call) except -1:
    """What is copied by tensor() and new_tensor() loses its history."""
    if isinstance(data, Tensor):
        import warnings
        warnings.warn("To copy construct from a tensor, it is recommended to use t.detach().clone() or "
                      f"t.detach().clone().requires_grad_(True), rather than {call}.", UserWarning, stacklevel=1)
    return 0


def make_tensor(data, dt, dev):
    """A copy of data with an optional dtype and device."""
    return tensor_of(data, -1 if dt is None else (<DType?>dt).id, 0 if dev is None else device_id(dev))
