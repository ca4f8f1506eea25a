# cython: language_level=3
"""Copies and conversions below autograd: how whoever runs a kernel brings operands into shape, to and from devices too.

One copy serves all layouts and dtypes: the walk over strided operands (iterate.pyx) with a conversion loop, by whole planes
where both dtypes are the same (casts.h). Source and target of one storage are taken to overlap, and the source is
copied first: whether two strided windows really meet is a search, and the case is rare. To and from devices go the bytes from
the first element to the end of the last, since a device need know nothing of strides; what lies between is read first.
"""
from libc.string cimport memset
from tinygrad_ext.core.data.boxed cimport as_wide_scalar
from tinygrad_ext.core.data.coded cimport Row, aux_of, row_of
from tinygrad_ext.core.data.devices cimport read_from, write_to
from tinygrad_ext.core.data.dtype cimport CODED, CPU, META, device_for, dtype_of, flips_of, is_host
from tinygrad_ext.core.data.geometry cimport ANY_ROOM, reach
from tinygrad_ext.core.loops.iterate cimport GRAIN, iter_add, iter_begin, iter_run, tgx_casts, tgx_iter, tgx_plane, use_casts
from tinygrad_ext.core.data.tensor cimport (
    CONTIGUOUS, Tensor, alias, empty, empty_like, empty_strided, shape_text, write_scalar,
)
from tinygrad_ext.core.data.types cimport (
    ITEMSIZE, TGX_ABOVE, TGX_BF16, TGX_BOOL, TGX_C32, TGX_C64, TGX_F16, TGX_F32, TGX_I16, TGX_I32, TGX_I8, TGX_U64, int64_t, is_coded,
    is_complex, is_integer, is_signed, tgx_loop, tgx_scalar, wide_of,
)

cdef extern from "flips.h" nogil:
    tgx_loop tgx_flip_loop(int dtype)

cdef extern from "coded.h" nogil:
    int tgx_coded_widen(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux)
    int tgx_coded_narrow(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux)

cdef extern from "casts.h" nogil:
    tgx_loop tgx_cast_loop(int src, int dst)
    tgx_plane tgx_copy_plane(int size)
    const tgx_casts *tgx_casts_in_use()
    int tgx_pairs_widen(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux)
    int tgx_pairs_narrow(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux)


cdef const tgx_casts *casts() noexcept:
    return tgx_casts_in_use()


use_casts(casts())


cdef tgx_loop cast_loop(int source, int target) noexcept:
    return tgx_cast_loop(source, target)


cdef bint broadcasts(Tensor src, Tensor dst) noexcept:
    """Whether src can be repeated to dst's shape."""
    cdef int i, k
    for i in range(src.rank):
        k = dst.rank - src.rank + i
        if k < 0:
            if src.sizes[i] != 1:
                return False
        elif src.sizes[i] != dst.sizes[k] and src.sizes[i] != 1:
            return False
    return True


cdef int copy_into(Tensor dst, Tensor src) except -1:
    cdef tgx_iter it
    cdef tgx_loop loop
    if dst.storage is src.storage and dst.count > 1 and src.count > 1 and dst.device_id == CPU:
        if same_window(dst, src):
            return 0
        dst, src = alias(dst), clone(src)       # while it is cloned, another thread may give dst memory that nobody checked
    if not broadcasts(src, dst):
        raise RuntimeError(f"output with shape {shape_text(dst)} doesn't match the broadcast shape {shape_text(src)}")
    if dst.device_id != CPU or src.device_id != CPU:
        if flips_of(dst.device_id) or flips_of(src.device_id):
            return _copy_flipped(dst, src)
        if dst.device_id == CODED or src.device_id == CODED:
            return _copy_coded(dst, src)
        return _copy_between(dst, src)
    loop = tgx_cast_loop(src.tid, dst.tid)
    iter_begin(&it, dst.sizes, dst.rank)
    it.pure = True
    if src.tid == dst.tid:
        it.plane = tgx_copy_plane(ITEMSIZE[dst.tid])
    iter_add(&it, dst.data, dst.sizes, dst.strides, dst.rank, ITEMSIZE[dst.tid])
    iter_add(&it, src.data, src.sizes, src.strides, src.rank, ITEMSIZE[src.tid])
    return _run(&it, loop, dst, src)


# ---- devices of plugins: by the bytes that their memory reads and writes --------------------------------------------

cdef int _copy_between(Tensor dst, Tensor src) except -1:
    """copy_into where one of both is elsewhere. Nothing is copied to or from meta."""
    cdef Tensor there
    if dst.device_id == META or src.device_id == META or dst.count == 0:
        return 0
    if src.device_id != CPU:
        src = _fetched(src)
    if dst.device_id == CPU:
        return copy_into(dst, src)
    there = empty(dst.sizes, dst.rank, dst.tid, CPU) if dst.bits & CONTIGUOUS else _fetched(dst)
    copy_into(there, src)
    return write_to(dst.storage, dst.data, there.storage, _reach(dst))


cdef int _fill_elsewhere(Tensor t, object value) except -1:
    cdef Tensor there = empty(NULL, 0, wide_of(t.tid) if is_coded(t.tid) else t.tid, CPU)
    if t.device_id == META:
        return 0
    fill(there, value)
    return copy_into(t, there)


cdef int bring_beside(Tensor t, list tensors) except -1:
    """Tensors of the cpu in a list of tensors and None become copies on the plugin's device that t is on."""
    cdef Tensor copy
    if t.device_id > META and not is_host(t.device_id):
        for i, o in enumerate(tensors):
            if isinstance(o, Tensor) and (<Tensor>o).device_id == CPU:
                copy = empty((<Tensor>o).sizes, (<Tensor>o).rank, (<Tensor>o).tid, t.device_id)
                copy_into(copy, <Tensor>o)
                tensors[i] = copy
    return 0


cdef Tensor _fetched(Tensor t):
    """t on the cpu, its elements as far apart as they are on its device."""
    cdef Tensor out = empty_strided(t.sizes, t.strides, t.rank, t.tid, CPU)
    read_from(t.storage, t.data, out.storage, _reach(t))
    return out


cdef int64_t _reach(Tensor t) except -1:
    """Bytes from the first element to the end of the last."""
    return reach(t.sizes, t.strides, t.rank, 0, ITEMSIZE[t.tid], ANY_ROOM, "copy")


include "copy_coded.pxi"
include "copy_flipped.pxi"


# ---- on the cpu ----------------------------------------------------------------------------------------------------

cdef inline int _run(tgx_iter *it, tgx_loop loop, Tensor dst, Tensor src) except -1:
    if it.numel > GRAIN:
        return _run_large(it, loop, dst, src)
    iter_run(it, loop, NULL)
    return 0


cdef int _run_large(tgx_iter *it, tgx_loop loop, Tensor dst, Tensor src) except -1:
    """Without the GIL; another thread may give the tensors other memory meanwhile."""
    _held = dst.storage, src.storage
    with nogil:
        iter_run(it, loop, NULL)
    return 0


cdef bint same_window(Tensor a, Tensor b) noexcept:
    """Whether both show the same elements in the same places."""
    cdef int i
    if a.data != b.data or a.rank != b.rank or a.tid != b.tid or a.device_id != b.device_id:
        return False
    for i in range(a.rank):
        if a.sizes[i] != b.sizes[i] or a.strides[i] != b.strides[i]:
            return False
    return True


cdef Tensor clone(Tensor t):
    cdef Tensor out = empty_like(t, t.tid)
    copy_into(out, t)
    return out


cdef Tensor contiguous(Tensor t):
    cdef Tensor out
    if t.bits & CONTIGUOUS:
        return t
    out = empty(t.sizes, t.rank, t.tid, t.device_id)
    copy_into(out, t)
    return out


cdef Tensor cast(Tensor t, int dtype):
    cdef Tensor out
    if t.tid == dtype:
        return t
    out = empty_like(t, dtype)
    out.device_id = device_for(dtype, out.device_id)
    copy_into(out, t)
    return out


cdef bint _holds(int dtype, const tgx_scalar *s) noexcept:
    """Whether an integer dtype can; a negative number may wrap in an unsigned one, as in PyTorch."""
    cdef int64_t most = 0x7fffffffffffffff >> (64 - 8 * ITEMSIZE[dtype])
    if dtype == TGX_U64:
        return s.given == TGX_ABOVE or -9.3e18 < s.f < 9.3e18
    if s.given == TGX_ABOVE:
        return False
    if not is_signed(dtype):
        most = 2 * most + 1
        return -most <= s.i <= most and -9.3e18 < s.f < 9.3e18
    return -most - 1 <= s.i <= most and -9.3e18 < s.f < 9.3e18


cdef bint near_enough(const tgx_scalar *s, int dtype) noexcept:
    """Whether a floating or complex dtype holds a number; infinities it does."""
    cdef double most = 3.4028234663852886e38, largest = 1.7976931348623157e308
    if dtype == TGX_F16 or dtype == TGX_C32:
        most = 65504.0
    elif dtype == TGX_BF16:
        most = 3.3895313892515355e38
    elif dtype != TGX_F32 and dtype != TGX_C64:
        return True
    return not most < abs(s.f) <= largest and not most < abs(s.im) <= largest


cdef object rounded(object value, int dtype):
    """A number for an element of a half: one that is too large becomes the largest, or infinite, as rounding makes it."""
    cdef double most = 65504.0 if dtype == TGX_F16 else 3.3895313892515355e38
    cdef double beyond = 65520.0 if dtype == TGX_F16 else 3.3961775292304957e38
    if (dtype != TGX_F16 and dtype != TGX_BF16) or not abs(value) > most:
        return value
    return (1.0 if value > 0 else -1.0) * (most if abs(value) < beyond else float("inf"))


cdef tgx_scalar checked_scalar(object value, int dtype) except *:
    """A number for one element of a dtype; RuntimeError when the dtype cannot hold it."""
    cdef tgx_scalar s = as_wide_scalar(value)
    if is_complex(dtype):
        return s
    if dtype == TGX_BOOL:
        s.i, s.im = s.f != 0 or s.im != 0, 0
        return s
    if s.im != 0:
        raise RuntimeError(f"value cannot be converted to type {dtype_of(dtype).name} without overflow: {value} has an imaginary part; "
                           "use a complex dtype")
    if is_integer(dtype) and not _holds(dtype, &s):
        raise RuntimeError(f"value cannot be converted to type {dtype_of(dtype).name} without overflow: {value}")
    return s


cdef int fill(Tensor t, object value) except -1:
    """Set every element to a number."""
    cdef char[16] buffer
    cdef int64_t stride = 0, one = 1
    cdef tgx_scalar s = checked_scalar(value, t.tid)
    if ITEMSIZE[t.tid] > 2 and not near_enough(&s, t.tid):
        raise RuntimeError(f"value cannot be converted to type {dtype_of(t.tid).name} without overflow: {value}")
    cdef tgx_iter it
    cdef tgx_loop loop
    if t.device_id != CPU:
        return _fill_elsewhere(t, value)
    loop = tgx_cast_loop(t.tid, t.tid)
    write_scalar(buffer, t.tid, s.f, s.im, s.i)
    iter_begin(&it, t.sizes, t.rank)
    iter_add(&it, t.data, t.sizes, t.strides, t.rank, ITEMSIZE[t.tid])
    iter_add(&it, buffer, &one, &stride, 1, ITEMSIZE[t.tid])
    return _run(&it, loop, t, t)


cdef Tensor single_one(Tensor t):
    """The gradient that a backward pass starts with: 1, like t, which has one element."""
    cdef Tensor one = empty(t.sizes, t.rank, t.tid, t.device_id)
    if one.device_id == CPU:
        write_scalar(one.data, one.tid, 1.0, 0.0, 1)
    else:
        fill(one, 1)
    return one


cdef int zero(Tensor t) except -1:
    if t.count == 0:
        return 0
    if t.bits & CONTIGUOUS and t.device_id == CPU:
        memset(t.data, 0, t.count * ITEMSIZE[t.tid])
        return 0
    return fill(t, 0)
