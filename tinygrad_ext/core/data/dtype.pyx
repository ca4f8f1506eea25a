# cython: language_level=3
"""dtypes, devices and sizes: the small value types of the API.

What a dtype is, and what two promote to, stands in table.py. `float16` with `bfloat16` gives float32; a float with a
complex of less precision gives the complex of that float's precision. Rejected: NumPy's dtypes, which have no bfloat16 and
would load NumPy with the package.
"""
from cpython.object cimport PyObject, PyTypeObject
from cpython.long cimport PyLong_FromLongLong
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM
from tinygrad_ext.core.data.sizes import new_size, product
from tinygrad_ext.core.data.table import CODED_EACH, CODED_SIZES, DTYPES as ROWS, PAIR
from tinygrad_ext.core.data.types cimport (
    TGX_BOOL, TGX_C128, TGX_C32, TGX_C64, TGX_CODED, TGX_F16, TGX_F32, TGX_F64, TGX_I64, is_coded, is_complex, is_float,
    is_inexact, is_integral, is_natural, is_signed, promote,
)


cdef class dtype:
    """Type of a tensor's elements, such as ``tinygrad_ext.float32``."""

    def __init__(self):
        raise TypeError("cannot create 'tinygrad_ext.dtype' instances: use the ones in the package, such as float32")

    def __repr__(self):
        return "torch." + self.name

    def __reduce__(self):
        return _dtype_by_name, (self.name,)

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self is other

    def to_complex(self):
        """The complex dtype of this precision."""
        if self.is_complex:
            return self
        if not self.is_floating_point:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.name}: it has no complex dtype of its precision")
        return dtype_of(complex_of(self.id))

    def to_real(self):
        """The real dtype of this precision."""
        return dtype_of(real_of(self.id)) if self.is_complex else self


by_name = {}


def _make_dtypes():
    cdef dtype d
    for i, row in [*enumerate(ROWS), (<int>TGX_C32, PAIR)]:
        d = dtype.__new__(dtype)
        d.name, d.id, d.itemsize, d.typecode = row.name, i, row.itemsize, row.typecode
        d.is_floating_point, d.is_complex, d.is_signed = is_float(i), is_complex(i), is_signed(i)
        DTYPES[i] = <PyObject *>d
        Py_INCREF(d)
        for name in (row.name, *row.aliases):
            by_name[name] = d


def _dtype_by_name(name):
    if name not in by_name:
        raise RuntimeError(f"there is no dtype '{name}': a plugin brought it where this was pickled. Load the plugin first")
    return by_name[name]


_make_dtypes()


cdef extern from *:
    """
    static int tgx_default_dtype = TGX_F32;
    static __thread int tgx_thread_default = -1;     /* inside overrides.default_dtype; -1: as everywhere */
    """
    int tgx_default_dtype, tgx_thread_default


cdef int default_id() noexcept nogil:
    return tgx_thread_default if tgx_thread_default >= 0 else tgx_default_dtype


cdef int dtype_id(object d) except -1:
    if type(d) is dtype:
        return (<dtype>d).id
    if d is float:
        return TGX_F64
    if d is int:
        return TGX_I64
    if d is bool:
        return TGX_BOOL
    if d is complex:
        return TGX_C128
    raise TypeError(f"dtype must be a tinygrad_ext.dtype such as float32, not {type(d).__name__}")


cdef object dtype_of(int id):
    return <object>DTYPES[id]


cdef int complex_of(int real) noexcept:
    """The complex dtype of a floating one's precision."""
    return TGX_C128 if real == TGX_F64 else TGX_C32 if real == TGX_F16 else TGX_C64


cdef int real_of(int pair) noexcept:
    """The floating dtype of a complex one's parts."""
    return TGX_F64 if pair == TGX_C128 else TGX_F16 if pair == TGX_C32 else TGX_F32


cdef str _title(int id):
    return ROWS[id].title if id < TGX_CODED else PAIR.title if id == TGX_C32 else dtype_of(id).name


cdef int promoted(int a, int b) except -2:
    """The dtype that holds both; RuntimeError where none does."""
    cdef int to = promote(a, b)
    if to < 0 or (is_complex(to) and (is_natural(a) or is_natural(b))):
        raise RuntimeError("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
                           f"{_title(a)} and {_title(b)}: convert one of them first")
    return to


def promote_types(type1, type2):
    """Smallest dtype to which both convert without loss of kind. TypeError for what is no dtype, RuntimeError for two whole
    numbers of which one is uint16, uint32 or uint64: PyTorch promotes these with none but themselves."""
    return dtype_of(promoted(dtype_id(type1), dtype_id(type2)))


def can_cast(from_, to):
    """Whether a conversion keeps the kind of number (no float to integer, no complex to real, nothing to bool)."""
    cdef int a = dtype_id(from_), b = dtype_id(to)
    if b == TGX_BOOL or is_complex(a):
        return a == b or is_complex(b)
    return is_inexact(b) or is_integral(a)


def set_default_dtype(d):
    """Set the dtype that Python floats become. Raises TypeError unless it is a floating dtype."""
    global tgx_default_dtype
    tgx_default_dtype = _floating_id(d)


cdef int _floating_id(d) except -1:
    cdef int id = dtype_id(d)
    if not is_float(id) or is_coded(id):
        raise TypeError("only floating-point types are supported as the default type, not " + repr(d))
    return id


def set_thread_default(d):
    """Let a dtype be the default of this thread alone (None: no longer); returns what was set before."""
    global tgx_thread_default
    was = None if tgx_thread_default < 0 else dtype_of(tgx_thread_default)
    tgx_thread_default = -1 if d is None else _floating_id(d)
    return was


def get_default_dtype():
    """The dtype that Python floats become (float32 unless set)."""
    return dtype_of(default_id())


include "device.pxi"


class _Named:
    """A constant with a name at the top of the package, and PyTorch's number for it."""

    def __init__(self, name, number):
        self.name, self.number = name, number

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


class layout(_Named):
    """Memory layout of a tensor. All tensors of this package are `strided`; the others have names, so that programs can ask."""


strided = layout("strided", 0)
sparse_coo = layout("sparse_coo", 1)
sparse_csr = layout("sparse_csr", 2)
sparse_csc = layout("sparse_csc", 4)
sparse_bsr = layout("sparse_bsr", 5)
sparse_bsc = layout("sparse_bsc", 6)
jagged = layout("jagged", 7)


class memory_format(_Named):
    """Order of dimensions in memory."""


contiguous_format = memory_format("contiguous_format", 0)
preserve_format = memory_format("preserve_format", 1)
channels_last, channels_last_3d = memory_format("channels_last", 2), memory_format("channels_last_3d", 3)


# ---- sizes ---------------------------------------------------------------------------------------------------------

include "dtype_sizes.pxi"
include "dtype_limits.pxi"
include "dtype_brought.pxi"
