# cython: language_level=3
"""The functions of the table on tensors, ranges, threads and random numbers."""
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from tinygrad_ext.core.data.dtype cimport CODED, CPU, FLIPPED, META, device_for
from tinygrad_ext.core.data.geometry cimport LARGEST_MEMORY, reach
from tinygrad_ext.core.data.random cimport Generator, as_generator, draw
from tinygrad_ext.core.data.storage cimport borrow_storage
from tinygrad_ext.core.data.tensor cimport (
    READONLY, Carried, Tensor, blank, empty, empty_like, finish, view,
)
from tinygrad_ext.core.data.types cimport ITEMSIZE, TGX_MAX_DIMS, int32_t, int64_t, is_complex, uint64_t
from tinygrad_ext.core.loops.copy cimport contiguous
from tinygrad_ext.core.loops.parallel cimport parallel_for, range_fn
from tinygrad_ext.extension.public cimport *
from tinygrad_ext.extension.values cimport dtype_codes, number_of, tensor_of


cdef bint unlocked(tgx_ctx *c) noexcept:
    """Whether the kernel runs without the interpreter's lock, which whoever asks needs; says so then."""
    if c == NULL or not c.unlocked:
        return False
    tgx_api_fail(c, b"RuntimeError", b"the kernel is flagged TGX_UNLOCKED and called a function of the table that wants the "
                 b"interpreter's lock")
    return True


# ---- reading -------------------------------------------------------------------------------------------------------

cdef inline bint is_host(Tensor t) noexcept:
    """Whether its memory can be read here; that of a plugin's dtype by who knows its codes."""
    return t.device_id == CPU or t.device_id == CODED


cdef inline int _describe(Tensor t, tgx_view *v) noexcept:
    v.device_type = TGX_CPU if t.device_id == CPU or t.device_id >= FLIPPED else ON_META if t.device_id == META else TGX_EXTERNAL
    v.device_id = 0 if t.device_id <= META or t.device_id >= FLIPPED else t.device_id
    v.ndim, v.dtype, v.shape, v.strides, v.byte_offset = t.rank, dtype_codes[t.tid], t.sizes, t.strides, 0
    return 0


cdef int _refuse(tgx_ctx *c, PyObject *t, bint write) noexcept:
    """Say why the elements cannot be had. Without the lock too: nothing of Python is touched."""
    if t == NULL:
        return tgx_api_fail(c, b"RuntimeError", b"%s of NULL: the argument is None, or a function that makes a tensor failed",
                            b"view_mut" if write else b"view")
    if type(<object>t) is Carried:
        return tgx_api_fail(c, b"RuntimeError", b"a transform or a graph that is being captured stands for the values of a tensor, so "
                            b"there is no memory to read. Compute by tgx->call, or make what is computed on memory an op of its own, "
                            b"which is called so")
    if (<Tensor>t).device_id >= FLIPPED and (<Tensor>t).device_id != CODED:
        return tgx_api_fail(c, b"RuntimeError", b"a tensor with the conjugate or the negative bit shows other numbers than its memory "
                            b"holds: call resolve_conj or resolve_neg, and read what they return")
    if not is_host(<Tensor>t):
        return tgx_api_fail(c, b"RuntimeError", b"a tensor on the device 'meta' or on one of a plugin has no elements to be read here; "
                            b"geometry gives its sizes")
    return tgx_api_fail(c, b"RuntimeError", b"the memory of a tensor is read-only: write to a tensor that the kernel made")


cdef int api_view(tgx_ctx *c, PyObject *t, tgx_view *v) noexcept:
    if t == NULL or not is_host(<Tensor>t) or type(<object>t) is Carried:
        return _refuse(c, t, False)
    v.data = (<Tensor>t).data
    return _describe(<Tensor>t, v)


cdef int api_view_mut(tgx_ctx *c, PyObject *t, tgx_view *v) noexcept:
    if t == NULL or not is_host(<Tensor>t) or type(<object>t) is Carried or (<Tensor>t).bits & READONLY:
        return _refuse(c, t, True)
    v.data = (<Tensor>t).data
    return _describe(<Tensor>t, v)


cdef int api_geometry(tgx_ctx *c, PyObject *t, tgx_view *v) noexcept:
    if t == NULL:
        return tgx_api_fail(c, b"RuntimeError", b"geometry of NULL: the argument is None, or a function that makes a tensor failed")
    v.data = NULL
    return _describe(<Tensor>t, v)


# ---- making --------------------------------------------------------------------------------------------------------

cdef inline tensor_t *_out(Tensor t) noexcept:
    Py_INCREF(t)
    return <tensor_t *><PyObject *>t


cdef tensor_t *api_empty(tgx_ctx *c, tgx_dtype dt, int32_t ndim, const int64_t *sizes, tensor_t *beside) except NULL:
    cdef int where = CPU, dtype
    if unlocked(c):
        return NULL
    if not 0 <= ndim <= TGX_MAX_DIMS:
        raise RuntimeError(f"empty: {ndim} dimensions; from 0 to {TGX_MAX_DIMS} are possible")
    if beside != NULL:
        where = tensor_of(beside, "empty: beside").device_id
    dtype = number_of(dt)
    return _out(empty(sizes, ndim, dtype, device_for(dtype, where)))


cdef tensor_t *api_empty_like(tgx_ctx *c, tensor_t *t, tgx_dtype dt) except NULL:
    cdef Tensor like, made
    if unlocked(c):
        return NULL
    if t == NULL:
        raise TypeError("empty_like of NULL")
    like = <Tensor><PyObject *>t
    made = empty_like(like, like.tid if dt == 0 else number_of(dt))
    made.device_id = device_for(made.tid, made.device_id)
    return _out(made)


cdef tensor_t *api_contiguous(tgx_ctx *c, tensor_t *t) except NULL:
    if unlocked(c):
        return NULL
    if t == NULL or not is_host(<Tensor><PyObject *>t) or type(<object><PyObject *>t) is Carried:
        _refuse(c, <PyObject *>t, False)
        raise RuntimeError((<bytes>c.text).decode())
    return _out(contiguous(<Tensor><PyObject *>t))


cdef tensor_t *api_strided(tgx_ctx *c, tensor_t *t, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                           int64_t offset) except NULL:
    cdef Tensor like
    cdef int64_t start
    if unlocked(c):
        return NULL
    like = tensor_of(t, "strided")
    if not 0 <= ndim <= TGX_MAX_DIMS:
        raise RuntimeError(f"strided: {ndim} dimensions; from 0 to {TGX_MAX_DIMS} are possible")
    if like.storage is None:
        raise RuntimeError("strided: the tensor has no memory")
    start = (like.data - like.storage.data) // ITEMSIZE[like.tid]
    if offset < -start or offset > LARGEST_MEMORY:
        raise RuntimeError(f"strided: the offset {offset} lies before the memory of the tensor, or behind any")
    reach(sizes, strides, ndim, start + offset, ITEMSIZE[like.tid], like.storage.nbytes, "strided")
    return _out(view(like, sizes, strides, ndim, offset))


cdef class Lent:
    """Memory of an extension; gives it back when the last tensor on it goes."""

    cdef tgx_release forget
    cdef void *owner

    def __dealloc__(self):
        if self.forget != NULL:
            self.forget(self.owner)


cdef tensor_t *api_wrap(tgx_ctx *c, const tgx_view *v, tgx_release forget, void *owner) except NULL:
    cdef Tensor t
    cdef Lent lent
    cdef int64_t nbytes, step = 1
    cdef int i, tid, unit
    if unlocked(c):
        return NULL
    if v == NULL or not 0 <= v.ndim <= TGX_MAX_DIMS or (v.ndim and v.shape == NULL) or v.device_type != TGX_CPU:
        raise RuntimeError(f"wrap: the view must be on the cpu and have from 0 to {TGX_MAX_DIMS} dimensions with their sizes")
    if v.byte_offset > <uint64_t>LARGEST_MEMORY:
        raise RuntimeError("wrap: the byte_offset is larger than any memory")
    tid = number_of(v.dtype)
    nbytes = reach(v.shape, v.strides, v.ndim, 0, ITEMSIZE[tid], LARGEST_MEMORY, "wrap")
    unit = ITEMSIZE[tid] // 2 if is_complex(tid) else ITEMSIZE[tid]
    t = blank(v.ndim)
    t.tid, t.device_id = tid, device_for(tid, CPU)
    for i in range(v.ndim - 1, -1, -1):
        t.sizes[i] = v.shape[i]
        t.strides[i] = step if v.strides == NULL else v.strides[i]
        step *= max(v.shape[i], 1)
    finish(t)
    t.data = <char *>v.data + v.byte_offset if v.data != NULL else NULL
    if t.count and t.data == NULL:
        raise RuntimeError("wrap: the view has elements but no memory")
    if <size_t>t.data % unit:
        raise RuntimeError(f"wrap: the memory is not aligned to {unit} bytes")
    lent = Lent.__new__(Lent)
    t.storage = borrow_storage(t.data, nbytes, lent, False)
    lent.forget, lent.owner = forget, owner         # from here on it is ours to give back
    return _out(t)


cdef PyObject *api_retain(PyObject *t) noexcept:
    if t != NULL:
        Py_INCREF(<object>t)
    return t


cdef void api_release(PyObject *t) noexcept:
    if t != NULL:
        Py_DECREF(<object>t)


cdef void *api_memory(tgx_ctx *c, size_t nbytes) except NULL:
    cdef void *found
    if unlocked(c):
        return NULL
    found = tgx_room(c, nbytes)
    if found == NULL:
        raise MemoryError(f"{<object>c.who}: no memory for {nbytes} bytes")
    return found


# ---- work ----------------------------------------------------------------------------------------------------------

cdef int api_parallel_for(tgx_ctx *c, range_fn run, void *arg, int64_t count, int64_t grain) noexcept:
    """Nothing of Python is touched: it may be called without the lock."""
    cdef int code
    if run == NULL or count < 0:
        return tgx_api_fail(c, b"RuntimeError", b"parallel_for: there is nothing to run, or the count is negative")
    if c != NULL and c.unlocked:
        return parallel_for(run, arg, count, grain if grain > 0 else 1)
    with nogil:
        code = parallel_for(run, arg, count, grain if grain > 0 else 1)
    return code


cdef int api_interrupted(tgx_ctx *c) except -1:
    if unlocked(c):
        return -1
    PyErr_CheckSignals()
    return 0


cdef Generator _generator(PyObject *g):
    if g == NULL:
        return as_generator(None)
    if not isinstance(<object>g, Generator):
        raise TypeError("expected a generator as an argument of the op gave it, or NULL for the default one")
    return <Generator>g


cdef int api_random_bits(tgx_ctx *c, PyObject *g, uint64_t *out, int64_t n) except -1:
    if unlocked(c):
        return -1
    return draw(_generator(g), out, NULL, NULL, n)


cdef int api_random_uniform(tgx_ctx *c, PyObject *g, double *out, int64_t n) except -1:
    if unlocked(c):
        return -1
    return draw(_generator(g), NULL, out, NULL, n)


cdef int api_random_normal(tgx_ctx *c, PyObject *g, double *out, int64_t n) except -1:
    if unlocked(c):
        return -1
    return draw(_generator(g), NULL, NULL, out, n)
