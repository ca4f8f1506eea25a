"""The Tensor object: geometry, storage and autograd links inline; everything rare in `extra`."""
from cpython.object cimport PyObject
from tinygrad_ext.core.data.storage cimport Storage
from tinygrad_ext.core.data.tracking cimport tgx_link, track, track_all
from tinygrad_ext.core.data.types cimport int8_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    FRESH = 1 << 30             # own references to a tensor that was just made: nobody else can have one

cdef enum:
    INLINE_DIMS = 6

cdef enum TensorBits:
    REQUIRES_GRAD = 1       # a leaf's own wish; a tensor with grad_fn requires grad anyway
    CONTIGUOUS = 2
    RETAINS_GRAD = 4
    DIFF_VIEW = 8           # a view that autograd tracks: base is its base
    INFERENCE = 16
    DETACHED_VIEW = 32      # view made in no_grad: in-place on it under grad mode is refused when base needs grad
    READONLY = 64
    DERIVED = 128           # made inside the forward of a Function from what needs gradients, unseen by autograd

cdef class VersionCounter:
    cdef uint32_t value

cdef class Tensor:
    cdef Storage storage            # None on meta
    cdef char *data
    cdef int64_t *sizes
    cdef int64_t *strides           # in elements
    cdef int64_t count
    cdef int rank
    cdef int8_t tid             # dtype number
    cdef uint8_t device_id      # CPU, META, or a plugin's
    cdef uint8_t bits
    cdef readonly int output_nr
    cdef uint32_t view_version      # version at which a view's grad_fn was right
    cdef object node                # Node or None
    cdef object base                # Tensor or None
    cdef object grad_               # Tensor or None
    cdef void *accumulator          # the leaf's AccumulateGrad node, which owns the leaf, or sleeps: see core/grad/edges.pyx
    cdef VersionCounter counter     # own counter of a `.data` alias, else None: the storage's
    cdef dict extra                 # hooks, name, view functions; None for nearly all
    cdef int64_t[2 * INLINE_DIMS] dims
    cdef object attributes          # the instance's __dict__; NULL until something is put there
    cdef bytes room                 # sizes and strides of more than INLINE_DIMS dimensions
    cdef tgx_link link              # of the tensors that the garbage collector does not know, see tracking.pyx
    cdef object __weakref__

cdef class Parameter(Tensor):
    pass

cdef class Carried(Tensor):         # stands for a value under a level; no memory, the shape that the level shows
    cdef readonly object level
    cdef readonly object value
    cdef object shown_device

cdef inline bint exact(object t) noexcept:
    """Whether `t` is a Tensor or Parameter itself, not of a subclass."""
    return type(t) is Tensor or type(t) is Parameter

cdef bint is_of_subclass(PyObject *o) noexcept                  # whether a Tensor of another type

cdef inline bint is_tensor(PyObject *o) noexcept:
    """isinstance(o, Tensor), where the usual answer takes two comparisons and no registers."""
    return exact(<object>o) or is_of_subclass(o)

cdef inline uint32_t version_of(Tensor t) noexcept:
    if t.counter is not None:
        return t.counter.value
    return 0 if t.storage is None else t.storage.version

cdef inline bint same_sizes(Tensor a, Tensor b) noexcept:
    cdef int i
    if a.rank != b.rank:
        return False
    for i in range(a.rank):
        if a.sizes[i] != b.sizes[i]:
            return False
    return True

cdef inline bint needs_grad(Tensor t) noexcept:
    return (t.bits & REQUIRES_GRAD) != 0 or t.node is not None or ((t.bits & DIFF_VIEW) != 0 and is_overtaken(t))

cdef inline bint is_overtaken(Tensor t) noexcept:
    """Whether a view without history shows memory that has got one: its base was written to since."""
    return (t.base is not None and t.view_version != version_of(t)
            and ((<Tensor>t.base).node is not None or (<Tensor>t.base).bits & REQUIRES_GRAD))

cdef inline void bump(Tensor t) noexcept:
    if t.counter is not None:
        t.counter.value += 1
    elif t.storage is not None:
        t.storage.version += 1

cdef inline void set_version(Tensor t, uint32_t version) noexcept:
    if t.counter is not None:
        t.counter.value = version
    elif t.storage is not None:
        t.storage.version = version

cdef inline void expose(Tensor t) noexcept:
    """Something that a circle could go through is about to hang on t, which anything may own."""
    if t.link.next != NULL:
        track_all()

cdef inline void let_know(Tensor t, Py_ssize_t own) noexcept:
    """The collector must know t. own: references to it that are the caller's; others may be those of untracked owners."""
    if t.link.next == NULL:
        pass
    elif (<PyObject *>t).ob_refcnt > own:
        track_all()
    else:
        track(<PyObject *>t, &t.link)

cdef bint settle(Tensor t) noexcept                             # take t out of the collector's lists if it may be; whether
cdef int set_grad(Tensor t, object grad) except -1              # a Tensor or None
cdef int set_base(Tensor t, Tensor base, Py_ssize_t own) except -1

cdef void (*leave_accumulator)(Tensor leaf) noexcept            # the next graph makes another; core/grad/edges.pyx fills it

cdef uint64_t geometry_changes         # how often the window of some tensor was changed since the start

cdef object shown_device(Tensor t)                              # where a wrapper says that what it wraps is, else where t is
cdef Carried blank_carried(int ndim)
cdef Tensor blank(int ndim)                                     # geometry to be filled, then finish()
cdef int finish(Tensor t) except -1                             # numel and contiguity from shape and strides
cdef Tensor empty(const int64_t *shape, int ndim, int dtype, int device)
cdef Tensor empty_strided(const int64_t *shape, const int64_t *strides, int ndim, int dtype, int device)
cdef Tensor empty_like(Tensor t, int dtype)                     # keeps the order of dimensions in memory
cdef Tensor view(Tensor t, const int64_t *shape, const int64_t *strides, int ndim, int64_t offset)
cdef Tensor alias(Tensor t)                                     # same memory and version, no autograd
cdef int set_geometry(Tensor t, Tensor like) except -1          # t takes over like's storage and geometry
cdef int64_t checked_numel(const int64_t *shape, int ndim, str what) except -1
cdef int wrap_dim(object dim, int ndim) except -100
cdef int wrap_dim_c(int64_t dim, int ndim) except -100
cdef str dtype_title(int id)                                    # 'Float', as PyTorch's messages say
cdef str shape_text(Tensor t)
cdef Tensor as_tensor_arg(object t, str op, str name)
cdef bint may_overlap(Tensor t) noexcept                        # two indices of t share memory
cdef int check_version_bounds(Tensor t) except -1
cdef void write_scalar(char *p, int dtype, double f, double im, int64_t i) noexcept
cdef object read_scalar(const char *p, int dtype)
cdef str flips_words(Tensor t)
