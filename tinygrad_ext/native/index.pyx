# cython: language_level=3
"""Tensor[index] and Tensor[index] = value.

An index of ints, slices, None and Ellipsis is a window on the tensor's memory: one view op. Anything else
is split in two: the window of those parts, and then the index tensors, which stand for dimensions of the window
(aten::index, aten::index_put_). Rejected: one op for both parts. Its kernel would look an index up for every element of
a slice, and its derivative could not be that of a view.
"""
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_Check
from cpython.tuple cimport PyTuple_CheckExact
from tinygrad_ext.core.call.construct cimport tensor_of
from tinygrad_ext.core.loops.copy cimport bring_beside, cast, fill, rounded
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op, call_op, register_kernel
from tinygrad_ext.core.data.dtype cimport CPU
from tinygrad_ext.core.call.elsewhere cimport class_name, how_to_convert, must_convert
from tinygrad_ext.core.call.inplace cimport call_inplace
from tinygrad_ext.core.data.tensor cimport Carried, Tensor, dtype_title, empty
from tinygrad_ext.core.data.table import DTYPES
from tinygrad_ext.core.data.types cimport (
    ITEMSIZE, TGX_BOOL, TGX_I32, TGX_I64, TGX_U64, TGX_U8, int64_t, is_complex, is_integer, is_integral, is_mask, is_signed,
)

from tinygrad_ext.native.carried_numbers import as_copied, beside

cdef extern from "Python.h":
    int PySequence_Check(object o)
    ctypedef struct CSlice "PySliceObject":
        PyObject *start
        PyObject *stop
        PyObject *step

cdef enum:
    SELECT, SLICE, UNSQUEEZE, ALIAS     # the view ops that a window is recorded as, see VIEWS
    NOT_BASIC

VIEWS = ("aten::_select", "aten::_slice", "aten::_unsqueeze", "aten::_alias")
cdef tuple _views = ()
cdef Op _index, _index_put, _copy, _fill, _masked_fill, _masked_fill_number


def bind_ops(ops):
    """Take the ops that indexing is made of from the table of all ops."""
    global _views, _index, _index_put, _copy, _fill, _masked_fill, _masked_fill_number
    _views = tuple([ops[name] for name in VIEWS])
    _copy, _fill = ops["aten::copy"], ops["aten::fill.Scalar"]
    _index, _index_put = ops["aten::index.Tensor"], ops["aten::index_put"]
    _masked_fill, _masked_fill_number = ops["aten::masked_fill.Tensor"], ops["aten::masked_fill.Scalar"]


# ---- what kind of index --------------------------------------------------------------------------------------------

cdef inline bint _plain(PyObject *o) noexcept:
    return o == <PyObject *>None or PyLong_CheckExact(<object>o)


cdef inline bint _is_everything(object o) noexcept:
    """Whether o is the slice `:`."""
    cdef CSlice *s = <CSlice *><PyObject *>o
    return PySlice_Check(o) and s.start == s.stop == s.step == <PyObject *>None


cdef inline int _kind_of_part(object o) except -1:
    cdef CSlice *s
    if PyLong_CheckExact(o):
        return SELECT
    if PySlice_Check(o):
        s = <CSlice *><PyObject *>o
        return SLICE if _plain(s.start) and _plain(s.stop) and _plain(s.step) else NOT_BASIC
    if o is None:
        return UNSQUEEZE
    return ALIAS if o is Ellipsis else NOT_BASIC


cdef int _kind_of(object index) except -1:
    """Which view op serves this index: that of its last step, as a chain of PyTorch's views would end."""
    cdef int last = ALIAS, k
    if not PyTuple_CheckExact(index):
        return _kind_of_part(index)
    for part in <tuple>index:
        k = _kind_of_part(part)
        if k == NOT_BASIC:
            return NOT_BASIC
        if k != ALIAS and not _is_everything(part):
            last = k
    return last


cdef object _everything = slice(None)
cdef object _no = False         # a literal False would be cast as the C number 0


cdef Tensor _window(Tensor t, object index, int kind):
    cdef PyObject *args[MAX_ARGS + 1]
    args[0], args[1] = <PyObject *>t, <PyObject *>index
    return call_op(<Op>_views[kind], args)


# ---- splitting a mixed index ---------------------------------------------------------------------------------------

cdef bint _is_tuple_like(object o) except -1:
    """A short list is read as a tuple when something in it is not a plain number: PyTorch's rule."""
    if isinstance(o, tuple):
        return True
    if not isinstance(o, list) or len(o) >= 32:
        return False
    for item in <list>o:
        if item is None or item is Ellipsis or isinstance(item, (Tensor, slice, list, tuple)) or _is_array(item):
            return True
    return False


cdef bint _is_array(object o):
    return PySequence_Check(o) and not isinstance(o, (str, bytes)) and getattr(o, "ndim", 1) > 0


cdef object _as_int(object o):
    """The int of a 0-dim integer tensor, a NumPy integer or another type with __index__; None for the rest."""
    cdef int tid
    if type(o) is Carried:      # a level may have one number for each sample: carried_numbers.py
        return None
    if isinstance(o, Tensor):
        tid = (<Tensor>o).tid
        return int(o) if (<Tensor>o).rank == 0 and is_integral(tid) and not is_mask(tid) else None
    if isinstance(o, (list, tuple, bool, str, bytes)) or type(o).__name__ == "bool":
        return None
    if not hasattr(type(o), "__index__"):
        return None
    if getattr(o, "ndim", 0) != 0:
        return None
    return int(o.__index__())


cdef Tensor _as_index_tensor(object o):
    """Index tensor of a sequence or array; numbers of a list are cut to integers."""
    cdef Tensor t
    if isinstance(o, Tensor):
        t = <Tensor>o
        if type(o) is Carried and t.rank == 0 and is_integral(t.tid) and not is_mask(t.tid):
            return t.long()
        if not is_mask(t.tid) and t.tid != TGX_I32 and t.tid != TGX_I64:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors, got "
                             f"{dtype_title(t.tid)}. Convert it with .long().")
        return t
    if must_convert(o):
        raise TypeError(f"an index must be a Tensor or an int, a slice, None, Ellipsis or a sequence of these, not "
                        f"{class_name(o)}{how_to_convert(o)}")
    if not PySequence_Check(o) and not hasattr(o, "__array_interface__"):
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
                         f"indices (got {type(o).__name__})")
    if isinstance(o, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(o).__name__}': an index is an int, a slice, None, Ellipsis, "
                        "or a tensor or sequence of ints or bools")
    t = tensor_of(o, -1, 0)
    return cast(t, t.tid if t.tid == TGX_BOOL or t.tid == TGX_U8 else TGX_I64)


cdef Tensor _truth(bint value):
    """Index of a lone True (its one element) or False (none) along a dimension of size 1."""
    cdef int64_t n = 1 if value else 0
    cdef Tensor t = empty(&n, 1, TGX_I64, CPU)
    if value:
        (<int64_t *>t.data)[0] = 0
    return t


cdef int _lone_bool(object o) except -2:
    """1 or 0 for a truth value that is no dimension's mask, -1 for anything else."""
    if isinstance(o, bool):
        return o is True
    if isinstance(o, Tensor):
        return bool(o) if (<Tensor>o).rank == 0 and is_mask((<Tensor>o).tid) else -1
    if isinstance(o, (list, tuple)):
        return -1
    if getattr(o, "ndim", -1) == 0 and type(o).__name__ == "ndarray" and o.dtype.kind == "b":
        return bool(o)
    return -1


cdef object _clean_slice(object o):
    """A slice of ints and None; TypeError for bounds that are no integers."""
    parts = []
    for v in (o.start, o.stop, o.step):
        if v is not None and not PyLong_CheckExact(v):
            if not hasattr(type(v), "__index__") or isinstance(v, Tensor) and (<Tensor>v).count != 1:
                raise TypeError("slice indices must be integers or None or have an __index__ method, got " + type(v).__name__)
            v = int(v.__index__())
        parts.append(v)
    return slice(*parts)


cdef int _dims_of(object o) except -1:
    """Dimensions of the tensor that one converted part stands for."""
    if o is None or o is Ellipsis:
        return 0
    if isinstance(o, Tensor):
        return (<Tensor>o).rank if is_mask((<Tensor>o).tid) else 1
    return 1


cdef list _converted(object index):
    """The parts as ints, slices, None, Ellipsis, index tensors, and True/False."""
    cdef list parts = []
    for o in (index if _is_tuple_like(index) else (index,)):
        if o is None or o is Ellipsis or PyLong_CheckExact(o):
            parts.append(o)
        elif PySlice_Check(o):
            parts.append(_clean_slice(o))
        elif _lone_bool(o) >= 0:
            parts.append(_lone_bool(o) == 1)
        else:
            number = _as_int(o)
            parts.append(_as_index_tensor(o) if number is None else number)
    return parts


cdef object _split(Tensor t, object index, list tensors):
    """Cut an index into a window, which is returned, and the index tensor of each dimension of that window."""
    cdef list parts, clean = []
    cdef int rest = t.rank, _k
    if isinstance(index, Tensor) and (<Tensor>index).rank:
        tensors.append(_as_index_tensor(index))
        return (Ellipsis,)
    parts = _converted(index)
    for o in parts:
        rest -= 0 if isinstance(o, bool) else _dims_of(o)
    if rest < 0:
        raise IndexError(f"too many indices for tensor of dimension {t.rank}")
    for o in parts:
        if isinstance(o, bool):
            clean.append(None)
            tensors.append(_truth(o))
        elif isinstance(o, Tensor):
            tensors.append(o)
            for _k in range(_dims_of(o)):
                clean.append(_everything)
        elif o is Ellipsis:
            clean.append(o)
            for _k in range(rest):
                tensors.append(None)
            rest = 0
        else:
            clean.append(o)
            if not PyLong_CheckExact(o):
                tensors.append(None)
    while tensors and tensors[len(tensors) - 1] is None:
        tensors.pop()
    return tuple(clean)


cdef bint _is_whole(object clean) except -1:
    for o in clean:
        if o is not Ellipsis and not _is_everything(o):
            return False
    return True


# ---- reading -------------------------------------------------------------------------------------------------------

cdef object c_getitem(PyObject **a):
    """self[index]."""
    cdef PyObject *args[MAX_ARGS + 1]
    cdef object index = <object>a[1]
    cdef Tensor t = <Tensor><object>a[0]
    cdef list tensors
    cdef int kind = _kind_of(index)
    if kind != NOT_BASIC:
        return call_op(<Op>_views[kind], a)
    tensors = []
    index = _split(t, index, tensors)
    bring_beside(t, tensors)
    if not tensors or not _is_whole(index):
        t = _window(t, index, _kind_of(index))
    if not tensors:
        return t
    t = beside(t, tensors)
    args[0], args[1] = <PyObject *>t, <PyObject *>tensors
    return call_op(_index, args)


# ---- writing -------------------------------------------------------------------------------------------------------

_C_NAMES = ["bool" if row.name == "bool" else f"c10::{row.title}" if row.kind == "half" else row.computed for row in DTYPES]


cdef object _number_for(object value, Tensor t):
    """Check a number that is to be written into t; NumPy's scalars come as Python's."""
    cdef int64_t low, high
    if not isinstance(value, (bool, int, float, complex)):
        if not hasattr(value, "item") or getattr(value, "ndim", 1) != 0:
            raise TypeError(f"can't assign a {class_name(value)} to a torch.{dtype_title(t.tid)}Tensor"
                            + (how_to_convert(value) or ": give a number or a tensor, such as tinygrad_ext.as_tensor(value)"))
        value = value.item()
    if isinstance(value, complex) and not is_complex(t.tid):
        if value.imag != 0:
            raise RuntimeError(f"value cannot be converted to type {_C_NAMES[t.tid]} without overflow")
        value = value.real
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < (1 << 63):
        raise ValueError(f"Overflow when unpacking long long: {value} does not fit 64 bits")
    if is_integer(t.tid):
        # PyTorch lets negative numbers wrap into what is unsigned
        high = (<int64_t>1 << (8 * ITEMSIZE[t.tid] - (1 if is_signed(t.tid) else 0))) - 1 if ITEMSIZE[t.tid] < 8 else 0
        low = -high - 1 if is_signed(t.tid) else -high
        if t.tid == TGX_I64 or t.tid == TGX_U64:
            if isinstance(value, float) and not -9.3e18 < value < 9.2e18:
                raise RuntimeError(f"value cannot be converted to type int64_t without overflow: {value}")
        elif not low <= value <= high:
            raise RuntimeError(f"value cannot be converted to type {_C_NAMES[t.tid]} without overflow: {value}")
    return rounded(value, t.tid)


cdef Tensor _without_leading_ones(Tensor value, int rank):
    """Value with dimensions of size 1 taken off in front until it has at most `rank`."""
    cdef int n = 0
    while value.rank - n > rank and value.sizes[n] == 1:
        n += 1
    return value if n == 0 else _window(value, (0,) * n, SELECT)


cdef int _assign(Tensor target, object value) except -1:
    cdef PyObject *args[MAX_ARGS + 1]
    args[0] = <PyObject *>target
    if isinstance(value, Tensor):
        value = _without_leading_ones(<Tensor>value, target.rank)
        args[1], args[2] = <PyObject *>value, <PyObject *>_no
        call_inplace(_copy, args)
        return 0
    args[1] = <PyObject *>value
    call_inplace(_fill, args)
    return 0


cdef Tensor _lone_mask(Tensor target, list tensors):
    """The bool mask when it is the only index tensor, shaped to broadcast against target; else None."""
    cdef Tensor m = <Tensor>tensors[len(tensors) - 1]
    cdef int behind = target.rank - (len(tensors) - 1) - m.rank, i
    if not is_mask(m.tid) or m.rank == 0:
        return None
    for t in tensors[:len(tensors) - 1]:
        if t is not None:
            return None
    for i in range(m.rank):
        if m.sizes[i] != target.sizes[len(tensors) - 1 + i]:
            return None
    m = m.bool() if type(m) is Carried else cast(m, TGX_BOOL)
    return m if behind == 0 else _window(m, (Ellipsis,) + (None,) * behind, UNSQUEEZE)


cdef int _assign_indexed(Tensor target, list tensors, object value) except -1:
    """target.index_put_(tensors, value); one number under one mask is masked_fill_, which takes any dtype."""
    cdef PyObject *args[MAX_ARGS + 1]
    cdef Tensor mask, v = <Tensor>value if isinstance(value, Tensor) else None
    args[0] = <PyObject *>target
    mask = _lone_mask(target, tensors) if v is None or v.count == 1 else None
    if mask is not None:
        if v is not None and v.rank:
            value = _window(v, (0,) * v.rank, SELECT)
        args[1], args[2] = <PyObject *>mask, <PyObject *>value
        call_inplace(_masked_fill if v is not None else _masked_fill_number, args)
        return 0
    if v is None:
        v = empty(NULL, 0, target.tid, CPU)
        fill(v, value)
    value = _without_leading_ones(v, 0)
    args[1], args[2], args[3] = <PyObject *>tensors, <PyObject *>value, <PyObject *>_no
    call_inplace(_index_put, args)
    return 0


cdef object c_setitem(PyObject **a):
    """self[index] = value."""
    cdef Tensor t = <Tensor><object>a[0]
    cdef object index = <object>a[1], value = <object>a[2]
    cdef list tensors
    cdef int kind
    if not isinstance(value, Tensor):
        value = _number_for(value, t)
    if index is False:
        return None
    if index is True:
        index = None
    kind = _kind_of(index)
    if kind != NOT_BASIC:
        _assign(t if kind == ALIAS else _window(t, index, kind), value)
        return None
    tensors = []
    index = _split(t, index, tensors)
    bring_beside(t, tensors)
    if not _is_whole(index):
        t = _window(t, index, _kind_of(index))
    if tensors:
        _assign_indexed(beside(t, tensors), tensors, as_copied(t, tensors, value))
    else:
        _assign(t, value)
    return None


register_kernel("getitem", c_getitem)
register_kernel("setitem", c_setitem)
