# cython: language_level=3
"""dtypes, devices and sizes: the small value types of the API.

What a dtype is, and what two promote to, stands in table.py. `float16` with `bfloat16` gives float32; a float with a
complex of less precision gives the complex of that float's precision. Rejected: NumPy's dtypes, which have no bfloat16 and
would load NumPy with the package.
"""
from cpython.object cimport PyObject, PyTypeObject
from cpython.long cimport PyLong_FromLongLong
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
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


# ---- devices -------------------------------------------------------------------------------------------------------

cdef dict _numbers = {"cpu": CPU, "meta": META}         # of the devices that memory can be asked for on
cdef list _devices = []                                 # by number, those that are gone too
_ELSEWHERE = ("cuda", "mps", "xpu", "hip", "xla", "ipu", "vulkan", "mkldnn", "opengl", "opencl", "ideep", "ve",
              "fpga", "maia", "lazy", "mtia", "hpu", "privateuseone")


cdef tuple _parted(str text):
    """"cuda:1" as ("cuda", 1)."""
    type, _, number = text.partition(":")
    if not (number.isascii() and number.isdigit()) or (len(number) > 1 and number[0] == "0"):
        raise RuntimeError(f"Invalid device string: '{text}'")
    return type, int(number)


cdef dict _contexts = {}        # what `with device(...)` does: filled by a layer above


def set_device_context(enter, leave):
    """Hand in what entering and leaving `with device(...)` does."""
    _contexts["enter"], _contexts["exit"] = enter, leave


cdef class device:
    """Where a tensor lives: ``device("cpu")`` holds data, ``device("meta")`` holds shape and dtype only.

    The devices of other machines, ``device("cuda:1")``, are objects too: what asks for memory on one raises.
    """

    def __init__(self, type=None, index=None, *, device=None):
        type, given = (device, type) if type is None and index is None else (type, device)
        if type is None or given is not None:
            raise TypeError("device(): expected a type, as in device('cpu', 0), or the keyword argument 'device' alone")
        if isinstance(type, self.__class__) and index is None:
            type, index = type.type, type.index
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {type.__class__.__name__}")
        if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
            raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
        if ":" in type:
            if index is not None:
                raise RuntimeError(f"device(): type (string) must not include an index because index was passed explicitly: {type}")
            type, index = _parted(type)
        if index is not None and index < 0:
            raise RuntimeError(f"device(): Device index must not be negative, got {index}")
        if type not in _numbers and type not in _ELSEWHERE:
            _find(type)
        self.type, self.index, self.id = type, index, _numbers.get(type, -1)

    def __repr__(self):
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return self.type == (<device>other).type and self.index == (<device>other).index

    def __hash__(self):
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, (self.type, self.index)

    def __enter__(self):
        _contexts["enter"](self)
        return self

    def __exit__(self, *exc):
        _contexts["exit"](self)


cdef device _cpu = device("cpu"), _meta = device("meta")
_devices += [_cpu, _meta]


# ---- devices that plugins bring ------------------------------------------------------------------------------------

cdef int _find(str type) except -1:
    """Let what brings a device be loaded; RuntimeError when nothing does."""
    why = _contexts["find"](type) if "find" in _contexts else ""
    if type not in _numbers:
        names = ", ".join((*_numbers, *_ELSEWHERE))
        raise RuntimeError(f"Expected one of {names} device type at start of device string: {type}{why}")
    return 0


def set_device_finder(find):
    """Hand in find(name), which loads what brings a device of that name, and returns why it is not there."""
    _contexts["find"] = find


def add_device(str name):
    """The number of a new device; of one that comes back, the number that it had. RuntimeError for a taken name."""
    if name in _numbers or name in _ELSEWHERE:
        raise RuntimeError(f"there is a device '{name}' already: choose another name")
    number = next((i for i, known in enumerate(_devices) if (<device>known).type == name), len(_devices))
    if number >= FLIPPED:
        raise RuntimeError(f"device '{name}': at most {FLIPPED - 2} devices can be brought in one process")
    _numbers[name] = number
    if number == len(_devices):
        _devices.append(device(name, 0))
    return number


def drop_device(str name):
    """Let a device be gone; returns the number, which stays its own."""
    return _numbers.pop(name)


cdef int device_id(object d) except -1:
    """The number of a device that memory is asked for on; those of other machines have none."""
    if isinstance(d, str):
        d = device(d)
    if type(d) is not device:
        raise TypeError(f"device must be str or device, not {type(d).__name__}")
    if (<device>d).id < 0:
        _refuse_elsewhere((<device>d).type)
    if (<device>d).id > META and (<device>d).index:
        raise RuntimeError(f"device {d}: there is one device '{(<device>d).type}', whose index is 0")
    return (<device>d).id


cdef int _refuse_elsewhere(str type) except -1:
    kind = AssertionError if type in ("cuda", "xpu", "mtia") else NotImplementedError
    raise kind(f"tinygrad_ext is not compiled with {type.upper()} enabled: this build holds tensors on cpu and meta. Use "
               f"device='cpu'; tinygrad_ext.cuda.is_available() tells which machine a program runs on.")


cdef object device_of(int id):
    return _cpu if is_host(id) else _devices[id]


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

class Size(tuple):
    """Shape of a tensor: a tuple of ints."""

    __slots__ = ()

    __new__ = new_size

    def numel(self):
        """Number of elements of a tensor of this shape."""
        return product(self)

    def __repr__(self):
        return "torch.Size([" + ", ".join([str(s) for s in self]) + "])"

    __str__ = __repr__

    def __getitem__(self, index):
        got = tuple.__getitem__(self, index)
        return Size(got) if isinstance(index, slice) else got

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other))) if isinstance(other, (tuple, list)) else NotImplemented

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, n):
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)


cdef object _Size = Size

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject *o) noexcept
    ctypedef PyObject *(*allocfunc)(PyTypeObject *, Py_ssize_t)
    cdef struct _PyTypeAlloc "_typeobject":
        allocfunc tp_alloc


cdef object make_size(int64_t *shape, int ndim):
    cdef object size = <object>(<_PyTypeAlloc *>_Size).tp_alloc(<PyTypeObject *>_Size, ndim)
    # tp_alloc gave one reference and the cast another
    Py_DECREF(size)
    cdef int i
    cdef object n
    for i in range(ndim):
        n = PyLong_FromLongLong(shape[i])
        Py_INCREF(n)
        PyTuple_SET_ITEM(size, i, n)
    PyObject_GC_UnTrack(<PyObject *>size)       # ints close no circle
    return size


include "dtype_limits.pxi"
include "dtype_brought.pxi"
