# cython: language_level=3
"""Kernels that copy elements to other places: flip, roll, repeat, tril, pad, diag_embed.

Most are one or a few strided copies between well-chosen windows of input and output, so the general copy does the work,
in threads where it pays.
"""
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset
from tinygrad_ext.core.copy cimport clone, contiguous, copy_into, fill, zero
from tinygrad_ext.core.dispatch cimport as_int, as_ints, register_kernel
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.parallel cimport parallel_for
from tinygrad_ext.core.outputs cimport check_writable, prepare_out
from tinygrad_ext.core.tensor cimport (
    CONTIGUOUS, Tensor, checked_numel, dtype_title, empty, empty_like, shape_text, view, wrap_dim_c,
)
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_I32, TGX_I64, TGX_MAX_DIMS, int32_t, int64_t, uint64_t
from tinygrad_ext.native.window cimport diagonal, part


# ---- flip and roll -------------------------------------------------------------------------------------------------

cdef object k_flip(PyObject **a):
    """flip(self, dims): a copy read through negative strides"""
    cdef Tensor t = <Tensor><object>a[0], out
    cdef int64_t dims[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int64_t start = 0
    cdef int i, d, n = as_ints(a[1], dims, TGX_MAX_DIMS, 1)
    cdef uint64_t seen = 0
    for i in range(t.rank):
        strides[i] = t.strides[i]
    for i in range(n):
        d = wrap_dim_c(dims[i], t.rank)
        if seen & (<uint64_t>1 << d):
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims {[dims[k] for k in range(n)]}: "
                               f"flip() takes "
                               "each dimension once")
        seen |= <uint64_t>1 << d
        if t.rank:
            start += (t.sizes[d] - 1) * t.strides[d]
            strides[d] = -t.strides[d]
    out = empty_like(t, t.tid)
    if t.count:
        copy_into(out, view(t, t.sizes, strides, t.rank, start))
    return out


cdef int roll_into(Tensor out, Tensor t, const int64_t *shifts, int dim) except -1:
    """Copy t to out, rolled in dimensions dim and up: each one that moves cuts the tensor in two."""
    cdef int64_t by, rest
    while dim < t.rank and shifts[dim] == 0:
        dim += 1
    if dim == t.rank:
        copy_into(out, t)
        return 0
    by, rest = shifts[dim], t.sizes[dim] - shifts[dim]
    roll_into(part(out, dim, by, rest, 1), part(t, dim, 0, rest, 1), shifts, dim + 1)
    roll_into(part(out, dim, 0, by, 1), part(t, dim, rest, by, 1), shifts, dim + 1)
    return 0


cdef inline int64_t modulo(int64_t v, int64_t n) noexcept:
    v = v % n
    return v + n if v < 0 else v


cdef Tensor rolled(Tensor t, const int64_t *shifts):
    cdef Tensor out = empty(t.sizes, t.rank, t.tid)
    roll_into(out, t, shifts, 0)
    return out


cdef object k_roll(PyObject **a):
    """roll(self, shifts, dims): without dims over the elements in row-major order"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t given[TGX_MAX_DIMS]
    cdef int64_t dims[TGX_MAX_DIMS]
    cdef int64_t shifts[TGX_MAX_DIMS]
    cdef int64_t one = 1
    cdef int i, d, nshifts = as_ints(a[1], given, TGX_MAX_DIMS, 1), ndims = as_ints(a[2], dims, TGX_MAX_DIMS, 1)
    if nshifts == 0:
        raise RuntimeError("roll(): `shifts` required: give at least one")
    if ndims != nshifts and not (ndims == 0 and nshifts == 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {nshifts}, dims:{ndims}")
    for i in range(ndims):
        if t.rank == 0:
            raise IndexError(f"Dimension specified as {dims[i]} but tensor has no dimensions")
        wrap_dim_c(dims[i], t.rank)
    if t.count == 0:
        return clone(t)
    if ndims == 0:
        t = contiguous(t)
        shifts[0] = modulo(given[0], t.count)
        return view(rolled(view(t, &t.count, &one, 1, 0), shifts), t.sizes, t.strides, t.rank, 0)
    for d in range(t.rank):
        shifts[d] = 0
    for i in range(ndims):
        d = wrap_dim_c(dims[i], t.rank)
        shifts[d] = modulo(shifts[d] + modulo(given[i], t.sizes[d]), t.sizes[d])
    return rolled(t, shifts)


# ---- repeat --------------------------------------------------------------------------------------------------------

cdef int64_t times(int64_t repeats, int64_t size, str name) except -1:
    cdef int64_t pair[2]
    pair[0], pair[1] = repeats, size
    if repeats < 0:
        raise RuntimeError(f"{name}: Trying to create tensor with negative dimension {repeats * size}: a number of "
                           f"repeats is {repeats}")
    return checked_numel(pair, 2, name)


cdef int copy_repeated(Tensor out, Tensor t, const int64_t *outer, const int64_t *inner) except -1:
    """Fill out, whose dimension i is outer[i] times t's size times inner[i]. The sizes, taken apart and without
    ones, are at most as many as out has bits in its count, so they fit."""
    cdef int64_t sizes[3 * TGX_MAX_DIMS]
    cdef int64_t to[3 * TGX_MAX_DIMS]
    cdef int64_t step[3 * TGX_MAX_DIMS]
    cdef int i, n = 0
    for i in range(out.rank):
        if outer[i] != 1:
            sizes[n], to[n], step[n] = outer[i], out.strides[i] * t.sizes[i] * inner[i], 0
            n += 1
        if t.sizes[i] != 1:
            sizes[n], to[n], step[n] = t.sizes[i], out.strides[i] * inner[i], t.strides[i]
            n += 1
        if inner[i] != 1:
            sizes[n], to[n], step[n] = inner[i], out.strides[i], 0
            n += 1
    return copy_into(view(out, sizes, to, n, 0), view(t, sizes, step, n, 0))


cdef object k_repeat(PyObject **a):
    """repeat(self, repeats)"""
    cdef Tensor t = <Tensor><object>a[0], out
    cdef int64_t outer[TGX_MAX_DIMS]
    cdef int64_t inner[TGX_MAX_DIMS]
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t wide[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i, k, n = as_ints(a[1], outer, TGX_MAX_DIMS, 1)
    if n < t.rank:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of "
                           "tensor: repeat() got "
                           f"{n} repeats for a tensor of {t.rank} dimensions")
    for i in range(n):
        k = i - (n - t.rank)
        wide[i], strides[i] = 1, 0
        if k >= 0:
            wide[i], strides[i] = t.sizes[k], t.strides[k]
        sizes[i], inner[i] = times(outer[i], wide[i], "repeat"), 1
    checked_numel(sizes, n, "repeat")
    out = empty(sizes, n, t.tid)
    if out.count:
        copy_repeated(out, view(t, wide, strides, n, 0), outer, inner)
    return out


cdef object k_repeat_each(PyObject **a):
    """_repeat_each(self, repeats, dim): every element of dim that many times in a row"""
    cdef Tensor t = <Tensor><object>a[0], out
    cdef int64_t ones[TGX_MAX_DIMS]
    cdef int64_t inner[TGX_MAX_DIMS]
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t repeats = as_int(a[1])
    cdef int i, d = wrap_dim_c(as_int(a[2]), t.rank)
    if repeats < 0:
        raise RuntimeError(f"Repeats must be non-negative: repeat_interleave() got {repeats}")
    if t.rank == 0:
        raise RuntimeError("_repeat_each() needs a dimension: a 0-dim tensor has none")
    for i in range(t.rank):
        ones[i] = inner[i] = 1
        sizes[i] = t.sizes[i]
    inner[d], sizes[d] = repeats, times(repeats, t.sizes[d], "repeat_interleave")
    checked_numel(sizes, t.rank, "repeat_interleave")
    out = empty(sizes, t.rank, t.tid)
    if out.count:
        copy_repeated(out, t, ones, inner)
    return out


cdef object k_repeat_counts(PyObject **a):
    """repeat_interleave(repeats, output_size): index i repeats[i] times"""
    cdef Tensor given = <Tensor><object>a[0], t, out
    cdef int64_t total = 0, i, k, at = 0, count
    if given.tid != TGX_I64 and given.tid != TGX_I32:
        raise NotImplementedError(f'"repeat_interleave_cpu" not implemented for \'{dtype_title(given.tid)}\': repeats '
                                  f'must be int32 or '
                                  'int64')
    if given.rank != 1:
        raise RuntimeError(f"repeat_interleave only accept 1D vector as repeat, got shape {shape_text(given)}")
    t = empty(given.sizes, 1, TGX_I64)      # a copy: what is counted must be what is written, whoever writes to repeats
    copy_into(t, given)
    for i in range(t.count):
        count = (<int64_t *>t.data)[i]
        if count < 0:
            raise RuntimeError(f"repeats can not be negative: repeat_interleave() got {count} at place {i}")
        if count > (<int64_t>1 << 60) - total:
            raise RuntimeError("repeat_interleave: storage size calculation overflowed with the sum of repeats")
        total += count
    if a[1] != <PyObject *>None and as_int(a[1]) != total:
        raise RuntimeError(f"allocated size does not match required size: output_size is {as_int(a[1])}, the repeats "
                           f"add up to {total}")
    out = empty(&total, 1, given.tid)
    for i in range(t.count):
        count = (<int64_t *>t.data)[i]
        for k in range(at, at + count):
            if out.tid == TGX_I64:
                (<int64_t *>out.data)[k] = i
            else:
                (<int32_t *>out.data)[k] = <int32_t>i
        at += count
    return out


# ---- triangles and diagonals ---------------------------------------------------------------------------------------

cdef struct Triangle:
    char *to
    const char *src
    int64_t rows, columns, diagonal, itemsize
    bint upper


cdef int triangle_rows(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    """Rows lo .. hi of all matrices: copy what belongs to the triangle (unless in place), zero the rest."""
    cdef Triangle *job = <Triangle *>ctx
    cdef int64_t k, cut, width = job.columns * job.itemsize
    for k in range(lo, hi):
        # the first column that is upper (triu) or no longer lower (tril)
        cut = k % job.rows + job.diagonal + (0 if job.upper else 1)
        cut = (0 if cut < 0 else job.columns if cut > job.columns else cut) * job.itemsize
        if job.upper:
            memset(job.to + k * width, 0, cut)
            if job.to != job.src:
                memcpy(job.to + k * width + cut, job.src + k * width + cut, width - cut)
        else:
            if job.to != job.src:
                memcpy(job.to + k * width, job.src + k * width, cut)
            memset(job.to + k * width + cut, 0, width - cut)
    return 0


cdef object triangle(PyObject **a, bint upper):
    cdef Tensor t = <Tensor><object>a[0], out
    name = "triu" if upper else "tril"
    if t.rank < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions, got shape {shape_text(t)}")
    if a[2] != <PyObject *>None:
        return triangle_into(a, <Tensor><object>a[2], name)
    t = contiguous(t)
    out = empty(t.sizes, t.rank, t.tid)
    run_triangle(a, out, t, upper)
    return out


cdef object triangle_into(PyObject **a, Tensor out, str name):
    """The forms that write to a tensor: in place only zeros are written."""
    cdef Tensor t = <Tensor><object>a[0]
    cdef bint upper = name == "triu"
    if out is not t:
        prepare_out(out, t.sizes, t.rank, t.tid)
    check_writable(out, name)
    if out is t and t.bits & CONTIGUOUS:
        run_triangle(a, t, t, upper)
    else:
        t = contiguous(t)
        result = empty(t.sizes, t.rank, t.tid)
        run_triangle(a, result, t, upper)
        copy_into(out, result)
    return out


cdef int run_triangle(PyObject **a, Tensor out, Tensor t, bint upper) except -1:
    """Fill out (contiguous, as t is) with a triangle of t; both may be the same tensor."""
    cdef Triangle job
    cdef int64_t limit = <int64_t>1 << 60
    job.to, job.src, job.upper, job.itemsize = out.data, t.data, upper, ITEMSIZE[t.tid]
    job.rows, job.columns = t.sizes[t.rank - 2], t.sizes[t.rank - 1]
    job.diagonal = max(min(as_int(a[1]), limit), -limit)
    if t.count > GRAIN:
        with nogil:
            parallel_for(triangle_rows, &job, t.count // job.columns, 1 + GRAIN // job.columns)
    elif t.count:
        triangle_rows(&job, 0, t.count // job.columns)
    return 0


cdef object k_tril(PyObject **a):
    return triangle(a, False)


cdef object k_triu(PyObject **a):
    return triangle(a, True)


cdef object k_diag_embed(PyObject **a):
    """diag_embed(self, offset, dim1, dim2): the last dimension becomes a diagonal among zeros"""
    cdef Tensor t = <Tensor><object>a[0], out
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t offset = as_int(a[1])
    cdef int i, k = 0, rank = t.rank + 1, d1, d2
    if rank > TGX_MAX_DIMS:
        raise RuntimeError(f"diag_embed(): a tensor has at most {TGX_MAX_DIMS} dimensions, and self has them all")
    d1, d2 = wrap_dim_c(as_int(a[2]), rank), wrap_dim_c(as_int(a[3]), rank)
    if t.rank == 0:
        raise IndexError("diag_embed(): self must have at least one dimension, which becomes the diagonal; it is 0-dim")
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {as_int(a[2])}, {as_int(a[3])}")
    if offset > (<int64_t>1 << 60) or offset < -(<int64_t>1 << 60):
        raise RuntimeError(f"diag_embed: storage size calculation overflowed with offset={offset}")
    for i in range(rank):
        if i == d1 or i == d2:
            sizes[i] = t.sizes[t.rank - 1] + (offset if offset >= 0 else -offset)
        else:
            sizes[i] = t.sizes[k]
            k += 1
    checked_numel(sizes, rank, "diag_embed")
    out = empty(sizes, rank, t.tid)
    zero(out)
    copy_into(diagonal(out, offset, d1, d2), t)
    return out


# ---- pad -----------------------------------------------------------------------------------------------------------

cdef object k_pad(PyObject **a):
    """constant_pad_nd(self, pad, value): pairs from the last dimension on; negative ones cut off"""
    cdef Tensor t = <Tensor><object>a[0], out, inside
    cdef int64_t pad[2 * TGX_MAX_DIMS]
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t limit = <int64_t>1 << 60, low, high
    cdef int i, d, n = as_ints(a[1], pad, 2 * TGX_MAX_DIMS, 1)
    if n % 2:
        raise RuntimeError(f"Padding length must be divisible by 2: each dimension takes a pair, got {n} numbers")
    if n > 2 * t.rank:
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but got "
                           "padding length "
                           f"{n} and input of dimension {t.rank}")
    for i in range(t.rank):
        sizes[i] = t.sizes[i]
    for i in range(n // 2):
        d, low, high = t.rank - 1 - i, pad[2 * i], pad[2 * i + 1]
        if not (-limit < low < limit and -limit < high < limit):
            raise RuntimeError(f"constant_pad_nd: storage size calculation overflowed with "
                               f"pad={[pad[k] for k in range(n)]}")
        sizes[d] += low + high
        # torch's narrow() refuses first to cut more than there is
        if sizes[d] < 0 or t.sizes[d] + min(low, 0) + min(high, 0) < 0:
            raise RuntimeError(f"constant_pad_nd(): the input size {t.sizes[d]}, plus negative padding {low} and "
                               f"{high}, resulted in a "
                               f"negative output size, which is invalid. Check dimension {d} of your input.")
    checked_numel(sizes, t.rank, "constant_pad_nd")
    out = empty(sizes, t.rank, t.tid)
    fill(out, <object>a[2])
    inside = out
    for i in range(n // 2):
        d, low, high = t.rank - 1 - i, pad[2 * i], pad[2 * i + 1]
        t = part(t, d, max(-low, 0), t.sizes[d] + min(low, 0) + min(high, 0), 1)
        inside = part(inside, d, max(low, 0), t.sizes[d], 1)
    copy_into(inside, t)
    return out


register_kernel("flip", k_flip)
register_kernel("roll", k_roll)
register_kernel("repeat", k_repeat)
register_kernel("repeat_each", k_repeat_each)
register_kernel("repeat_counts", k_repeat_counts)
register_kernel("tril", k_tril)
register_kernel("triu", k_triu)
register_kernel("diag_embed", k_diag_embed)
register_kernel("constant_pad", k_pad)
