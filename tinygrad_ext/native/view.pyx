# cython: language_level=3
"""Kernels of views: new geometry over the same memory. Nothing here copies."""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport contiguous, copy_into
from tinygrad_ext.core.dispatch cimport as_int, as_ints, register_kernel
from tinygrad_ext.core.dtype cimport dtype_id
from tinygrad_ext.core.tensor cimport (
    Tensor, checked_numel, dtype_title, empty_strided, shape_text, view, wrap_dim_c,
)
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_MAX_DIMS, int64_t, uint64_t


cdef int infer_size(Tensor t, int64_t *shape, int ndim) except -1:
    """Replace a -1 in shape; RuntimeError when the element counts do not agree."""
    cdef int i, unknown = -1
    cdef int64_t known
    for i in range(ndim):
        if shape[i] == -1:
            if unknown >= 0:
                raise RuntimeError("only one dimension can be inferred: the shape has -1 twice")
            unknown = i
            shape[i] = 1
        elif shape[i] < 0:
            raise RuntimeError(f"invalid shape dimension {shape[i]}: sizes are not negative, but for one -1 to be "
                               f"inferred")
    known = checked_numel(shape, ndim, "view")      # a product that wraps around could equal the count
    if unknown < 0:
        if known != t.count:
            raise RuntimeError(f"shape '{list_text(shape, ndim)}' is invalid for input of size {t.count}")
        return 0
    shape[unknown] = -1
    if known == 0 and t.count == 0:
        raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list_text(shape, ndim)} because the "
                           f"unspecified "
                           "dimension size -1 can be any value and is ambiguous")
    if known == 0 or t.count % known:
        raise RuntimeError(f"shape '{list_text(shape, ndim)}' is invalid for input of size {t.count}")
    shape[unknown] = t.count // known
    return 0


cdef str list_text(const int64_t *values, int n):
    return str([values[i] for i in range(n)])


cdef bint view_strides(Tensor t, const int64_t *shape, int ndim, int64_t *strides) noexcept:
    """Strides that show t's memory in another shape; False when no such strides exist."""
    cdef int i, d = ndim - 1
    cdef int64_t chunk = 1, filled = 1, base
    if t.count == 0:
        base = 1
        for i in range(ndim - 1, -1, -1):
            strides[i] = base
            base *= shape[i] if shape[i] > 1 else 1
        return True
    if t.rank == 0:
        for i in range(ndim):
            strides[i] = 1
        return True
    base = t.strides[t.rank - 1]
    for i in range(t.rank - 1, -1, -1):
        chunk *= t.sizes[i]
        # the end of a run of dimensions that lie behind each other
        if i == 0 or (t.sizes[i - 1] != 1 and t.strides[i - 1] != chunk * base):
            while d >= 0 and (filled < chunk or shape[d] == 1):
                strides[d] = filled * base
                filled *= shape[d]
                d -= 1
            if filled != chunk:
                return False
            if i > 0:
                base = t.strides[i - 1]
                chunk = filled = 1
    return d == -1


cdef int read_sizes(PyObject *o, int64_t *shape) except -1:
    """Sizes from a list, or those of a tensor (view_as and the like); how many there are."""
    cdef Tensor other
    cdef int i
    if not isinstance(<object>o, Tensor):
        return as_ints(o, shape, TGX_MAX_DIMS, 1)
    other = <Tensor><object>o
    for i in range(other.rank):
        shape[i] = other.sizes[i]
    return other.rank


cdef object k_view(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int ndim = read_sizes(a[1], shape)
    infer_size(t, shape, ndim)
    if not view_strides(t, shape, ndim, strides):
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension "
                           "spans across "
                           "two contiguous subspaces). Use .reshape(...) instead.")
    return view(t, shape, strides, ndim, 0)


cdef Tensor shaped(Tensor t, const int64_t *shape, int ndim):
    """t in another shape of as many elements: a view where the strides allow it, else a view of a copy."""
    cdef int64_t strides[TGX_MAX_DIMS]
    if not view_strides(t, shape, ndim, strides):
        t = contiguous(t)
        view_strides(t, shape, ndim, strides)
    return view(t, shape, strides, ndim, 0)


cdef object k_reshape(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int ndim = read_sizes(a[1], shape)
    infer_size(t, shape, ndim)
    return shaped(t, shape, ndim)


cdef object k_expand(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i, k, ndim = read_sizes(a[1], shape)
    if ndim < t.rank:
        raise RuntimeError(f"expand({shape_text(t)}, size={[shape[i] for i in range(ndim)]}): the number of sizes "
                           f"provided ({ndim}) "
                           f"must be greater or equal to the number of dimensions in the tensor ({t.rank})")
    for i in range(ndim):
        k = i - (ndim - t.rank)
        if k < 0:
            if shape[i] < 0:
                raise RuntimeError(f"The expanded size of the tensor ({shape[i]}) isn't allowed in a leading, "
                                   f"non-existing "
                                   f"dimension {i}")
            strides[i] = 0
            continue
        if shape[i] == -1:
            shape[i] = t.sizes[k]
        if t.sizes[k] == shape[i]:
            strides[i] = t.strides[k]
        elif t.sizes[k] == 1:
            strides[i] = 0
        else:
            raise RuntimeError(f"The expanded size of the tensor ({shape[i]}) must match the existing size "
                               f"({t.sizes[k]}) at "
                               f"non-singleton dimension {i}. Target sizes: {[shape[j] for j in range(ndim)]}. Tensor "
                               f"sizes: "
                               f"{shape_text(t)}")
    checked_numel(shape, ndim, "expand")
    return view(t, shape, strides, ndim, 0)


cdef object k_permute(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t dims[TGX_MAX_DIMS]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i, d, n = as_ints(a[1], dims, TGX_MAX_DIMS, 1)
    cdef unsigned long long seen = 0
    if n != t.rank:
        raise RuntimeError(f"permute(): number of dimensions in the tensor input does not match the length of the "
                           f"desired "
                           f"ordering of dimensions i.e. input.dim() = {t.rank} is not equal to len(dims) = {n}")
    for i in range(n):
        d = wrap_dim_c(dims[i], t.rank)
        if seen & (1ULL << d):
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        seen |= 1ULL << d
        shape[i], strides[i] = t.sizes[d], t.strides[d]
    return view(t, shape, strides, n, 0)


cdef object k_transpose(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0], v
    cdef int d0 = wrap_dim_c(as_int(a[1]), t.rank), d1 = wrap_dim_c(as_int(a[2]), t.rank)
    v = view(t, t.sizes, t.strides, t.rank, 0)
    if t.rank == 0 or d0 == d1:
        return v
    return swapped(t, d0, d1)


cdef Tensor swapped(Tensor t, int d0, int d1):
    """t with two dimensions exchanged."""
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i
    for i in range(t.rank):
        shape[i], strides[i] = t.sizes[i], t.strides[i]
    shape[d0], strides[d0], shape[d1], strides[d1] = shape[d1], strides[d1], shape[d0], strides[d0]
    return view(t, shape, strides, t.rank, 0)


cdef object k_t(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    if t.rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {t.rank}D. Use .mT or "
                           f".transpose(dim0, dim1).")
    return view(t, t.sizes, t.strides, t.rank, 0) if t.rank < 2 else swapped(t, 0, 1)


cdef Tensor squeezed(Tensor t, uint64_t dims):
    """t without those of its dimensions in the mask that have size 1."""
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i, n = 0
    for i in range(t.rank):
        if t.sizes[i] != 1 or not dims & (<uint64_t>1 << i):
            shape[n], strides[n] = t.sizes[i], t.strides[i]
            n += 1
    return view(t, shape, strides, n, 0)


cdef object k_squeeze(PyObject **a):
    return squeezed(<Tensor><object>a[0], ~<uint64_t>0)


cdef object k_squeeze_dims(PyObject **a):
    """squeeze(self, dim), squeeze(self, dims)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t dims[TGX_MAX_DIMS]
    cdef int i, d, n = as_ints(a[1], dims, TGX_MAX_DIMS, 1)
    cdef uint64_t mask = 0
    for i in range(n):
        d = wrap_dim_c(dims[i], t.rank)
        if mask & (<uint64_t>1 << d):
            raise RuntimeError(f"squeeze(): dim {d} appears multiple times in the list of dims "
                               f"{[dims[k] for k in range(n)]}")
        mask |= <uint64_t>1 << d
    return squeezed(t, mask)


cdef object k_unsqueeze(PyObject **a):
    """unsqueeze(self, dim)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int i, k, d = wrap_dim_c(as_int(a[1]), t.rank + 1)
    if t.rank == TGX_MAX_DIMS:
        raise RuntimeError(f"unsqueeze(): a tensor has at most {TGX_MAX_DIMS} dimensions, and self has them all")
    for i in range(t.rank):
        k = i + (i >= d)
        shape[k], strides[k] = t.sizes[i], t.strides[i]
    shape[d] = 1
    # the stride that a contiguous tensor has here, so that flattening around the new dimension stays a view
    strides[d] = t.sizes[d] * t.strides[d] if d < t.rank else 1
    return view(t, shape, strides, t.rank + 1, 0)


cdef object k_flatten(PyObject **a):
    """flatten(self, start_dim, end_dim)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int i, n, first = wrap_dim_c(as_int(a[1]), t.rank), last = wrap_dim_c(as_int(a[2]), t.rank)
    if first > last:
        raise RuntimeError(f"flatten() has invalid args: start_dim cannot come after end_dim, got {first} and {last}")
    for i in range(first):
        shape[i] = t.sizes[i]
    shape[first], n = 1, first + 1
    for i in range(first, last + 1 if t.rank else 0):
        shape[first] *= t.sizes[i]
    for i in range(last + 1, t.rank):
        shape[n] = t.sizes[i]
        n += 1
    return shaped(t, shape, n)


cdef object k_ravel(PyObject **a):
    cdef Tensor t = <Tensor><object>a[0]
    return shaped(t, &t.count, 1)


cdef object k_unflatten(PyObject **a):
    """unflatten(self, dim, sizes)"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t known = 1
    cdef int i, unknown = -1, dim = wrap_dim_c(as_int(a[1]), t.rank), n = as_ints(a[2], sizes, TGX_MAX_DIMS, 1)
    if n == 0:
        raise RuntimeError("unflatten: sizes must be non-empty; give the sizes that the dimension is taken apart into")
    if t.rank == 0 or t.rank - 1 + n > TGX_MAX_DIMS:
        raise RuntimeError(f"unflatten got an unexpected error: a tensor of {t.rank} dimensions cannot have one taken "
                           f"apart into {n}")
    for i in range(n):
        if sizes[i] < -1 or sizes[i] == -1 and unknown >= 0:
            raise RuntimeError(f"unflatten got an unexpected error: sizes {list_text(sizes, n)} may hold one -1 and "
                               f"nothing below it")
        if sizes[i] == -1:
            unknown, sizes[i] = i, 1
    known = checked_numel(sizes, n, "unflatten")
    if unknown >= 0 and known == 0:
        raise RuntimeError("unflatten got an unexpected error: beside a size 0 the one that is -1 can be anything")
    if known != t.sizes[dim] if unknown < 0 else t.sizes[dim] % known:
        if unknown >= 0:
            sizes[unknown] = -1
        raise RuntimeError(f"unflatten: Provided sizes {list_text(sizes, n)} don't multiply up to the size of dim "
                           f"{dim} "
                           f"({t.sizes[dim]}) in the input tensor")
    if unknown >= 0:
        sizes[unknown] = t.sizes[dim] // known
    for i in range(t.rank):
        shape[i if i < dim else i + n - 1] = t.sizes[i]
    for i in range(n):
        shape[dim + i] = sizes[i]
    return shaped(t, shape, t.rank - 1 + n)


cdef object k_contiguous(PyObject **a):
    """contiguous(self, memory_format): self itself where it is so already"""
    cdef Tensor t = <Tensor><object>a[0], out
    cdef int i, k
    cdef int order[4]
    cdef int64_t strides[4]
    cdef int64_t step = 1
    cdef bint same = True
    if a[1] == <PyObject *>None or (<object>a[1]).name != "channels_last":
        return contiguous(t)
    if t.rank != 4:
        raise RuntimeError(f"required rank 4 tensor to use channels_last format: this one has {t.rank} dimensions")
    order[0], order[1], order[2], order[3] = 1, 3, 2, 0
    for k in range(4):
        i = order[k]
        strides[i] = step
        same = same and (t.sizes[i] == 1 or t.strides[i] == step)
        step *= t.sizes[i]
    if same or t.count == 0:
        return t
    out = empty_strided(t.sizes, strides, 4, t.tid, t.device_id)
    copy_into(out, t)
    return out


cdef object k_movedim(PyObject **a):
    """movedim(self, source, destination): ints or lists of them"""
    cdef Tensor t = <Tensor><object>a[0]
    cdef int64_t source[TGX_MAX_DIMS]
    cdef int64_t destination[TGX_MAX_DIMS]
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int order[TGX_MAX_DIMS]
    cdef int i, k = 0, n = as_ints(a[1], source, TGX_MAX_DIMS, 1), m = as_ints(a[2], destination, TGX_MAX_DIMS, 1)
    cdef uint64_t taken, filled
    if n != m:
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list_text(source, n)} dims) should "
                           f"contain the same "
                           f"number of dims as destination ({list_text(destination, m)} dims)")
    taken, filled = distinct(source, n, t.rank, "source"), distinct(destination, m, t.rank, "destination")
    for i in range(n):
        order[destination[i]] = source[i]
    for i in range(t.rank):
        if not filled & (<uint64_t>1 << i):
            while taken & (<uint64_t>1 << k):
                k += 1
            order[i] = k
            k += 1
        shape[i], strides[i] = t.sizes[order[i]], t.strides[order[i]]
    return view(t, shape, strides, t.rank, 0)


cdef uint64_t distinct(int64_t *dims, int n, int rank, str name) except? 0:
    """Wrap the dims in place; their mask. RuntimeError when one comes twice."""
    cdef uint64_t mask = 0
    cdef int i
    cdef object given = [dims[i] for i in range(n)]
    for i in range(n):
        dims[i] = wrap_dim_c(dims[i], rank)
        if mask & (<uint64_t>1 << dims[i]):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({given})")
        mask |= <uint64_t>1 << dims[i]
    return mask


# ---- another dtype over the same bytes -----------------------------------------------------------------------------

cdef int check_bytes(Tensor t, str what, int64_t value, int64_t ratio, int dtype) except -1:
    if value % ratio:
        raise RuntimeError(f"self.{what} must be divisible by {ratio} to view {dtype_title(t.tid)} as "
                           f"{dtype_title(dtype)} (different "
                           f"element sizes), but got {value}")
    return 0


cdef object k_view_dtype(PyObject **a):
    """view(self, dtype)"""
    cdef Tensor t = <Tensor><object>a[0], v
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t strides[TGX_MAX_DIMS]
    cdef int dtype = dtype_id(<object>a[1]), i, last = t.rank - 1
    cdef int64_t old = ITEMSIZE[t.tid], new = ITEMSIZE[dtype], ratio
    for i in range(t.rank):
        shape[i], strides[i] = t.sizes[i], t.strides[i]
    if old != new:
        titles = f"to view {dtype_title(t.tid)} as {dtype_title(dtype)} (different element sizes)"
        if t.rank == 0:
            raise RuntimeError(f"self.dim() cannot be 0 {titles}")
        if t.strides[last] != 1 and (old > new or t.sizes[last] % (new // old) == 0):
            raise RuntimeError(f"self.stride(-1) must be 1 {titles}, but got {t.strides[last]}")
        if old > new:
            ratio = old // new
            for i in range(last):
                strides[i] *= ratio
            shape[last] *= ratio
        else:
            ratio = new // old
            check_bytes(t, "size(-1)", t.sizes[last], ratio, dtype)
            check_bytes(t, "storage_offset()", t.storage_offset(), ratio, dtype)
            for i in range(last):
                check_bytes(t, f"stride({i})", t.strides[i], ratio, dtype)
                strides[i] //= ratio
            shape[last] //= ratio
    v = view(t, shape, strides, t.rank, 0)
    v.tid = dtype
    return v


register_kernel("flatten", k_flatten)
register_kernel("ravel", k_ravel)
register_kernel("unflatten", k_unflatten)
register_kernel("contiguous", k_contiguous)
register_kernel("movedim", k_movedim)
register_kernel("view_dtype", k_view_dtype)
register_kernel("squeeze", k_squeeze)
register_kernel("squeeze_dims", k_squeeze_dims)
register_kernel("unsqueeze", k_unsqueeze)
register_kernel("reshape", k_reshape)
register_kernel("view", k_view)
register_kernel("expand", k_expand)
register_kernel("permute", k_permute)
register_kernel("transpose", k_transpose)
register_kernel("t", k_t)
