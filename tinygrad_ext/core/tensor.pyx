# cython: language_level=3
"""Tensor: a strided window on a Storage, and its links into the autograd graph.

Shape and strides stand inline in the object up to six dimensions; a Tensor costs one allocation from a
freelist. Methods are not written here: they come from the op records (see registry) and from
tinygrad_ext/tensor_methods.py; this file holds what needs the C fields.
"""
cimport cython
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from tinygrad_ext.core.dtype cimport ITEMSIZE, device_of, dtype_of, make_size
from tinygrad_ext.core.storage cimport new_storage
from tinygrad_ext.core.types cimport (
    TGX_BF16, TGX_BOOL, TGX_C64, TGX_C128, TGX_F16, TGX_F32, TGX_F64, TGX_I8, TGX_I16, TGX_I32, TGX_I64, TGX_MAX_DIMS,
    TGX_U8, int16_t, int32_t, tgx_bf16_to_f32, tgx_f16_to_f32, tgx_f32_to_bf16, tgx_f32_to_f16, uint16_t,
)


cdef extern from "Python.h":
    char *PyBytes_AS_STRING(object b)

cdef extern from "instance_dict.h":
    Py_ssize_t TGX_DICT_OFFSET
    void TGX_START_NULL(object self)
    int tgx_give_dict(object type, Py_ssize_t offset) except -1
    void tgx_own_clear(object type, Py_ssize_t offset)


@cython.final
@cython.no_gc
cdef class VersionCounter:
    pass


# Functions of the layers above, filled in at import: core never imports upwards.
cdef dict _slots = {}


def set_slot(name, fn):
    """Fill a slot of the Tensor type: 'repr', 'new', 'grad_fn_of_view', ..."""
    _slots[name] = fn


def get_slot(name):
    """The function in a slot."""
    return _slots[name]


@cython.freelist(512)
cdef class Tensor:
    """An n-dimensional array of one dtype that can record how it was computed."""

    def __cinit__(self):
        self.sizes = self.dims
        self.strides = self.dims + INLINE_DIMS
        TGX_START_NULL(self)
        # a bare Tensor.__new__ leaves an empty vector, not something that could be read
        self.rank = 1
        self.tid = TGX_F32
        self.bits = CONTIGUOUS

    def __init__(self, *args, **kwargs):
        _slots["new"](self, args, kwargs)

    # ---- geometry

    @property
    def shape(self):
        return make_size(self.sizes, self.rank)

    @property
    def ndim(self):
        return self.rank

    @property
    def dtype(self):
        return dtype_of(self.tid)

    @property
    def device(self):
        return device_of(self.place)

    @property
    def itemsize(self):
        return ITEMSIZE[self.tid]

    @property
    def nbytes(self):
        return self.count * ITEMSIZE[self.tid]

    def dim(self):
        """Number of dimensions."""
        return self.rank

    def numel(self):
        """Number of elements."""
        return self.count

    def element_size(self):
        """Bytes of one element."""
        return ITEMSIZE[self.tid]

    def data_ptr(self):
        """Address of the first element; 0 for an empty or meta tensor."""
        return <size_t>self.data if self.count else 0

    def storage_offset(self):
        """Elements between the start of the storage and the first element."""
        return 0 if self.storage is None else (self.data - self.storage.data) // ITEMSIZE[self.tid]

    def size(self, dim=None):
        """Shape, or the size of one dimension."""
        if dim is None:
            return make_size(self.sizes, self.rank)
        return self.sizes[wrap_dim(dim, self.rank)]

    def stride(self, dim=None):
        """Strides in elements as a tuple, or the stride of one dimension."""
        if dim is None:
            return tuple([self.strides[i] for i in range(self.rank)])
        return self.strides[wrap_dim(dim, self.rank)]

    def is_contiguous(self, memory_format=None):
        """Whether the elements lie in memory without gaps, in row-major order or in that of memory_format."""
        cdef int64_t[4] order = [1, 3, 2, 0]
        cdef int64_t expected = 1
        if memory_format is None or memory_format.name != "channels_last":
            return (self.bits & CONTIGUOUS) != 0
        if self.rank != 4:
            return False
        for i in order:
            if self.sizes[i] != 1 and self.strides[i] != expected:
                return self.count == 0
            expected *= self.sizes[i]
        return True

    # ---- buffer protocol

    def __getbuffer__(self, Py_buffer *view, int flags):
        _export(self, view, flags)

    def __releasebuffer__(self, Py_buffer *view):
        Py_XDECREF((<PyObject **>view.internal)[0])
        free(view.internal)

    # ---- autograd links

    @property
    def _version(self):
        return version_of(self)

    @property
    def _base(self):
        return self.base if self.bits & DIFF_VIEW else None

    @property
    def is_leaf(self):
        return self.node is None

    @property
    def grad_fn(self):
        return _slots["grad_fn"](self) if self.bits & DIFF_VIEW else self.node

    @property
    def requires_grad(self):
        return needs_grad(self)

    @requires_grad.setter
    def requires_grad(self, bint value):
        if self.node is not None:
            if value:
                return
            raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed "
                               "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().")
        if value and self.tid < TGX_F16:
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients: this one is "
                               f"{dtype_of(self.tid)}. Convert it first, for example with .float().")
        if value:
            self.bits |= REQUIRES_GRAD
        else:
            self.bits &= ~REQUIRES_GRAD

    def requires_grad_(self, bint requires_grad=True):
        """Change whether gradients are recorded for this leaf; returns it."""
        self.requires_grad = requires_grad
        return self

    @property
    def grad(self):
        if self.grad_ is None and self.node is not None and not self.bits & RETAINS_GRAD:
            import warnings
            warnings.warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't "
                          "be populated during autograd.backward(). If you indeed want the .grad field to be populated for a "
                          "non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.", UserWarning, stacklevel=1)
        return self.grad_

    @grad.setter
    def grad(self, value):
        cdef Tensor g
        if value is None:
            self.grad_ = None
            return
        if not isinstance(value, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type \"{type(value).__name__}\"")
        g = <Tensor>value
        if g is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if g.tid != self.tid:
            raise RuntimeError(f"attempting to assign a gradient with dtype '{dtype_of(g.tid)}' to a tensor with dtype "
                               f"'{dtype_of(self.tid)}'. Please ensure that the gradient and the tensor have the same dtype.")
        if shape_text(g) != shape_text(self):
            raise RuntimeError(f"assigned grad has data of a different size: the tensor is {shape_text(self)}, the gradient "
                               f"{shape_text(g)}")
        self.grad_ = value

    @grad.deleter
    def grad(self):
        self.grad_ = None

    @property
    def data(self):
        cdef Tensor t = alias(self)
        if needs_grad(self):
            _slots["cut"](".data", (self,))
        t.counter = VersionCounter.__new__(VersionCounter)
        return t

    @data.setter
    def data(self, value):
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if (<Tensor>value).tid < TGX_F16 and needs_grad(self):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        set_geometry(self, <Tensor>value)
        self.counter = None

    def __reduce_ex__(self, protocol):
        return _slots["reduce"](self)

    def __deepcopy__(self, memo):
        return _slots["deepcopy"](self, memo)

    @property
    def retains_grad(self):
        return (self.bits & RETAINS_GRAD) != 0

    @property
    def name(self):
        return None if self.extra is None else self.extra.get("name")

    def is_inference(self):
        """Whether the tensor was made in inference mode."""
        return (self.bits & INFERENCE) != 0

    def _is_view(self):
        return (self.bits & DIFF_VIEW) != 0

    def __hash__(self):
        return <size_t><PyObject *>self >> 4

    def __len__(self):
        if self.rank == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.sizes[0]

    def __iter__(self):
        return _slots["iter"](self)

    def __contains__(self, item):
        return _slots["contains"](self, item)

    def __repr__(self):
        return _slots["repr"](self)

    def __bool__(self):
        return bool(self._only_element("Boolean value of Tensor"))

    def __int__(self):
        return int(self._only_element())

    def __float__(self):
        return float(self._only_element())

    def __complex__(self):
        return complex(self._only_element())

    def __index__(self):
        cdef object v = self._only_element()
        if self.tid > TGX_I64:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(v)

    def _only_element(self, what=None):
        if self.count != 1:
            if what is not None:
                raise RuntimeError(f"{what} with {'no' if self.count == 0 else 'more than one'} value"
                                   f"{'s' if self.count == 0 else ''} is ambiguous")
            raise RuntimeError(f"a Tensor with {self.count} elements cannot be converted to Scalar")
        if self.storage is None:
            raise RuntimeError("Tensor.item() cannot be called on meta tensors: they have no data")
        return read_scalar(self.data, self.tid)


cdef class Parameter(Tensor):
    """A Tensor that a Module lists among its parameters when it is assigned as an attribute."""

    def __init__(self, data=None, requires_grad=True):
        _slots["parameter"](self, data, requires_grad)


for _type in (Tensor, Parameter):
    tgx_give_dict(_type, TGX_DICT_OFFSET)
    tgx_own_clear(_type, TGX_DICT_OFFSET)


# ---- making tensors ------------------------------------------------------------------------------------------------

cdef Tensor blank(int ndim):
    cdef Tensor t = Tensor.__new__(Tensor)
    _reserve(t, ndim)
    return t


cdef int _reserve(Tensor t, int ndim) except -1:
    """Room for `ndim` dimensions."""
    if ndim > INLINE_DIMS:
        if ndim > TGX_MAX_DIMS:
            raise RuntimeError(f"tensor has too many (>{TGX_MAX_DIMS}) dims: {ndim}")
        t.room = bytes(2 * ndim * sizeof(int64_t))
        t.sizes = <int64_t *>PyBytes_AS_STRING(t.room)
        t.strides = t.sizes + ndim
    elif t.sizes != t.dims:
        t.sizes = t.dims
        t.strides = t.dims + INLINE_DIMS
        t.room = None
    t.rank = ndim
    return 0


cdef int finish(Tensor t) except -1:
    cdef int64_t n = 1
    cdef bint contiguous = True
    cdef int i
    for i in range(t.rank - 1, -1, -1):
        if t.sizes[i] != 1:
            if t.strides[i] != n:
                contiguous = False
            n *= t.sizes[i]
    t.count = n
    if contiguous or n == 0:
        t.bits |= CONTIGUOUS
    else:
        t.bits &= ~CONTIGUOUS
    return 0


cdef int64_t checked_numel(const int64_t *shape, int ndim, str what) except -1:
    """Product of sizes; RuntimeError for negative sizes and for a product beyond 63 bits."""
    cdef int64_t n = 1, product = 1
    cdef int i
    cdef bint overflow = False
    for i in range(ndim):
        if shape[i] < 0:
            raise RuntimeError(f"{what}: trying to create tensor with negative dimension {shape[i]}: "
                               f"{[shape[k] for k in range(ndim)]}")
        overflow |= mul_overflow(n, shape[i], &product)
        n = product
    if overflow and not any([shape[k] == 0 for k in range(ndim)]):
        raise RuntimeError(f"{what}: storage size calculation overflowed with sizes={[shape[k] for k in range(ndim)]}")
    return 0 if overflow else n


cdef extern from *:
    """
    static inline int tgx_mul_overflow(int64_t a, int64_t b, int64_t *out) {
        long long r;
        int bad = __builtin_mul_overflow((long long)a, (long long)b, &r);
        *out = r;
        return bad;
    }
    """
    bint mul_overflow "tgx_mul_overflow"(int64_t a, int64_t b, int64_t *out) nogil


cdef Tensor empty(const int64_t *shape, int ndim, int dtype, int device=0):
    cdef Tensor t = Tensor.__new__(Tensor)
    cdef int64_t n = 1
    cdef int i
    if ndim > INLINE_DIMS:
        _reserve(t, ndim)
    t.rank = ndim
    for i in range(ndim - 1, -1, -1):
        t.sizes[i] = shape[i]
        t.strides[i] = n
        if shape[i] > 1:
            if n > (1 << 30) or shape[i] > (1 << 30):
                checked_numel(shape, ndim, "empty")
            n *= shape[i]
        elif shape[i] <= 0:
            checked_numel(shape, ndim, "empty")
    for i in range(ndim):
        if shape[i] == 0:
            n = 0
    t.count = n
    t.tid = dtype
    t.place = device
    t.bits = CONTIGUOUS
    if device == 0:
        if n > (<int64_t>1 << 59):
            raise RuntimeError(f"empty: storage size calculation overflowed with sizes={shape_text(t)}")
        t.storage = new_storage(n * ITEMSIZE[dtype])
        t.data = t.storage.data
    return t


cdef Tensor empty_strided(const int64_t *shape, const int64_t *strides, int ndim, int dtype, int device):
    """Fresh memory with the given strides (non-negative, possibly with gaps)."""
    cdef Tensor t = blank(ndim)
    cdef int64_t last = 0
    cdef int i
    checked_numel(shape, ndim, "empty_strided")
    for i in range(ndim):
        t.sizes[i] = shape[i]
        t.strides[i] = strides[i]
        last += (shape[i] - 1) * strides[i]
    t.tid = dtype
    t.place = device
    finish(t)
    if device == 0:
        t.storage = new_storage((last + 1 if t.count else 0) * ITEMSIZE[dtype])
        t.data = t.storage.data
    return t


cdef Tensor empty_like(Tensor t, int dtype):
    """Fresh tensor of t's shape; a dense t's order of dimensions is kept, as preserve_format does."""
    cdef int[TGX_MAX_DIMS] order
    cdef int64_t[TGX_MAX_DIMS] strides
    cdef int i, j, k
    cdef int64_t n = 1
    if t.bits & CONTIGUOUS:
        return empty(t.sizes, t.rank, dtype, t.place)
    # insertion sort of dimensions by stride, innermost first, ties keep the later dimension inside
    for i in range(t.rank):
        k = t.rank - 1 - i
        j = i
        while j > 0 and t.strides[order[j - 1]] > t.strides[k]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
    for i in range(t.rank):
        if t.sizes[order[i]] != 1 and t.strides[order[i]] != n:
            if t.strides[order[i]] < n:      # expanded or overlapping: plain row-major
                return empty(t.sizes, t.rank, dtype, t.place)
        strides[order[i]] = n
        n *= t.sizes[order[i]]
    return empty_strided(t.sizes, strides, t.rank, dtype, t.place)


cdef Tensor view(Tensor t, const int64_t *shape, const int64_t *strides, int ndim, int64_t offset):
    """A window on t's memory, `offset` elements further; shares storage and version."""
    cdef Tensor v = blank(ndim)
    cdef int i
    for i in range(ndim):
        v.sizes[i] = shape[i]
        v.strides[i] = strides[i]
    v.storage = t.storage
    v.counter = t.counter
    v.data = t.data + offset * ITEMSIZE[t.tid] if t.data != NULL else NULL
    v.tid = t.tid
    v.place = t.place
    v.bits = t.bits & (INFERENCE | READONLY)
    finish(v)
    return v


cdef Tensor alias(Tensor t):
    return view(t, t.sizes, t.strides, t.rank, 0)


cdef int set_geometry(Tensor t, Tensor like) except -1:
    """Let t be what `like` is (memory, shape, dtype), keeping t's identity and autograd links."""
    if t is like:
        return 0
    _reserve(t, like.rank)
    memcpy(t.sizes, like.sizes, like.rank * sizeof(int64_t))
    memcpy(t.strides, like.strides, like.rank * sizeof(int64_t))
    t.storage = like.storage
    t.counter = like.counter
    t.data = like.data
    t.tid = like.tid
    t.place = like.place
    t.bits = (t.bits & ~(READONLY | INFERENCE)) | (like.bits & (READONLY | INFERENCE))
    return finish(t)


# ---- buffer protocol -----------------------------------------------------------------------------------------------

cdef char **_FORMATS = ["?", "B", "b", "h", "i", "q", "e", "", "f", "d", "Zf", "Zd"]      # in dtype order


cdef int _export(Tensor t, Py_buffer *view, int flags) except -1:
    """Lend t's memory. BufferError for what no other library may see or understand."""
    cdef PyObject **kept
    cdef Py_ssize_t *room
    cdef int i
    if needs_grad(t):
        raise BufferError("a tensor that requires grad does not lend its memory: use tensor.detach()")
    if t.storage is None:
        raise BufferError("a meta tensor has no memory to lend")
    if t.tid == TGX_BF16:
        raise BufferError("the buffer protocol knows no bfloat16: convert the tensor first, for example with .float()")
    if flags & PyBUF_WRITABLE and t.bits & READONLY:
        raise BufferError("the tensor is read-only: its memory was lent by another library that does not allow writing")
    if not t.bits & CONTIGUOUS and flags & PyBUF_STRIDES != PyBUF_STRIDES:
        raise BufferError("the tensor's elements do not lie in row-major order; call contiguous() first")
    # the storage, which the tensor may leave (`.data =`, resize_) while it is lent; then shape and strides
    kept = <PyObject **>malloc(sizeof(PyObject *) + 2 * t.rank * sizeof(Py_ssize_t))
    if kept == NULL:
        raise MemoryError
    kept[0] = <PyObject *>t.storage
    Py_INCREF(t.storage)
    room = <Py_ssize_t *>(kept + 1)
    for i in range(t.rank):
        room[i] = t.sizes[i]
        room[t.rank + i] = t.strides[i] * ITEMSIZE[t.tid]
    view.internal = kept
    view.obj = t
    view.buf = t.data
    view.itemsize = ITEMSIZE[t.tid]
    view.len = t.count * view.itemsize
    view.readonly = (t.bits & READONLY) != 0
    view.ndim = t.rank
    view.format = _FORMATS[t.tid] if flags & PyBUF_FORMAT else NULL
    view.shape = room if flags & PyBUF_ND else NULL
    view.strides = room + t.rank if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
    view.suboffsets = NULL
    return 0


# ---- small helpers of every op -------------------------------------------------------------------------------------

cdef int wrap_dim_c(int64_t dim, int ndim) except -100:
    """Dimension number in [0, ndim); IndexError outside [-ndim, ndim-1]. A 0-d tensor counts as one dimension."""
    cdef int n = ndim if ndim > 0 else 1
    if dim < -n or dim >= n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return <int>(dim + n if dim < 0 else dim)


cdef int wrap_dim(object dim, int ndim) except -100:
    return wrap_dim_c(<int64_t>dim, ndim)


_TITLES = ["Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double", "ComplexFloat",
           "ComplexDouble"]


cdef str dtype_title(int id):
    return _TITLES[id]


cdef str shape_text(Tensor t):
    return "[" + ", ".join([str(t.sizes[i]) for i in range(t.rank)]) + "]"


cdef Tensor as_tensor_arg(object t, str op, str name):
    if not isinstance(t, Tensor):
        raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(t).__name__}")
    return <Tensor>t


cdef bint may_overlap(Tensor t) noexcept:
    """True when two indices may address the same element (expanded dimensions, overlapping strides)."""
    cdef int i
    if t.bits & CONTIGUOUS:
        return False
    for i in range(t.rank):
        if t.strides[i] == 0 and t.sizes[i] > 1:
            return True
    return False


cdef int check_version_bounds(Tensor t) except -1:
    """The window lies inside its storage; a guard for as_strided and friends."""
    cdef int64_t lo = 0, hi = 0, room
    cdef int i
    if t.count == 0 or t.storage is None:
        return 0
    for i in range(t.rank):
        if t.strides[i] < 0:
            lo += (t.sizes[i] - 1) * t.strides[i]
        else:
            hi += (t.sizes[i] - 1) * t.strides[i]
    room = ITEMSIZE[t.tid]
    if t.data + lo * room < t.storage.data or t.data + (hi + 1) * room > t.storage.data + t.storage.nbytes:
        raise RuntimeError(f"setStorage: sizes {shape_text(t)}, strides {[t.strides[i] for i in range(t.rank)]} are "
                           f"out of bounds for storage of size {t.storage.nbytes} bytes")
    return 0


cdef void write_scalar(char *p, int dtype, double f, double im, int64_t i) noexcept:
    """Store one number: `f`, `im` for floating and complex dtypes, `i` for integers and bool."""
    if dtype == TGX_F32:
        (<float *>p)[0] = <float>f
    elif dtype == TGX_F64:
        (<double *>p)[0] = f
    elif dtype == TGX_I64:
        (<int64_t *>p)[0] = i
    elif dtype == TGX_BOOL:
        (<uint8_t *>p)[0] = i != 0
    elif dtype == TGX_I32:
        (<int32_t *>p)[0] = <int32_t>i
    elif dtype == TGX_U8:
        (<uint8_t *>p)[0] = <uint8_t>i
    elif dtype == TGX_I8:
        (<int8_t *>p)[0] = <int8_t>i
    elif dtype == TGX_I16:
        (<int16_t *>p)[0] = <int16_t>i
    elif dtype == TGX_F16:
        (<uint16_t *>p)[0] = tgx_f32_to_f16(<float>f)
    elif dtype == TGX_BF16:
        (<uint16_t *>p)[0] = tgx_f32_to_bf16(<float>f)
    elif dtype == TGX_C64:
        (<float *>p)[0] = <float>f
        (<float *>p)[1] = <float>im
    elif dtype == TGX_C128:
        (<double *>p)[0] = f
        (<double *>p)[1] = im


cdef object read_scalar(const char *p, int dtype):
    if dtype == TGX_F32:
        return (<float *>p)[0]
    if dtype == TGX_F64:
        return (<double *>p)[0]
    if dtype == TGX_I64:
        return (<int64_t *>p)[0]
    if dtype == TGX_BOOL:
        return (<uint8_t *>p)[0] != 0
    if dtype == TGX_I32:
        return (<int32_t *>p)[0]
    if dtype == TGX_U8:
        return (<uint8_t *>p)[0]
    if dtype == TGX_I8:
        return (<int8_t *>p)[0]
    if dtype == TGX_I16:
        return (<int16_t *>p)[0]
    if dtype == TGX_F16:
        return tgx_f16_to_f32((<uint16_t *>p)[0])
    if dtype == TGX_BF16:
        return tgx_bf16_to_f32((<uint16_t *>p)[0])
    if dtype == TGX_C64:
        return complex((<float *>p)[0], (<float *>p)[1])
    return complex((<double *>p)[0], (<double *>p)[1])
