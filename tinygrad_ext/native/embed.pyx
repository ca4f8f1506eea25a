# cython: language_level=3
"""Kernels that look up rows, count classes, and draw dropout's factors."""
from cpython.object cimport PyObject
from libc.math cimport fabs, pow
from libc.string cimport memcpy
from tinygrad_ext.core.copy cimport cast, contiguous, copy_into, zero
from tinygrad_ext.core.dispatch cimport Op, as_float, as_int, call_op, register_kernel
from tinygrad_ext.core.random cimport as_generator, fill_bernoulli
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, empty_like, shape_text
from tinygrad_ext.core.types cimport (
    ITEMSIZE, TGX_C64, TGX_F32, TGX_I32, TGX_I64, TGX_MAX_DIMS, int64_t, is_complex, is_half,
)
from tinygrad_ext.native.softmax cimport require_float
from tinygrad_ext.core.op_tables import ops
from tinygrad_ext.ops.embed import embedding

cdef extern from "once.h" nogil:
    int64_t tgx_once(const int64_t *p)

ctypedef fused real:
    float
    double

cdef Op _embedding = None
cdef object _no_padding = -1


# ---- embedding -----------------------------------------------------------------------------------------------------

cdef Tensor open_indices(Tensor t):
    if t.tid != TGX_I64 and t.tid != TGX_I32:
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
                           "Int; but got "
                           f"{dtype_title(t.tid)} instead (while checking arguments for embedding). Convert it with "
                           ".long().")
    return contiguous(cast(t, TGX_I64))


cdef inline int64_t row_at(const int64_t *at, int64_t i, int64_t rows) except -1:
    """The row that index i names, read once: another thread may be writing to the indices."""
    cdef int64_t row = tgx_once(at + i)
    if not 0 <= row < rows:
        raise IndexError(f"index out of range in self: embedding has rows 0 to {rows - 1}, but indices hold {row}")
    return row


cdef Tensor rows_of(Tensor weight, Tensor indices):
    """weight[indices], with the shape of indices plus the row."""
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef const int64_t *at
    cdef int64_t i, row, from_
    cdef Tensor out
    if weight.rank != 2:
        raise RuntimeError(f"'weight' must be 2-D: (rows, size of a row), but has shape {shape_text(weight)}")
    indices = open_indices(indices)
    weight = contiguous(weight)
    for i in range(indices.rank):
        shape[i] = indices.sizes[i]
    if indices.rank >= TGX_MAX_DIMS:
        raise RuntimeError("embedding: indices have too many dimensions")
    shape[indices.rank] = weight.sizes[1]
    out = empty(shape, indices.rank + 1, weight.tid)
    at = <const int64_t *>indices.data
    row = weight.sizes[1] * ITEMSIZE[weight.tid]
    for i in range(indices.count):
        from_ = row_at(at, i, weight.sizes[0])
        memcpy(out.data + i * row, weight.data + from_ * row, row)
    return out


cdef object k_embedding(PyObject **a):
    """embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)."""
    if <object>a[4] is True:
        raise NotImplementedError("embedding: sparse gradients are not supported; leave sparse=False, the gradient is "
                                  "dense")
    return rows_of(<Tensor><object>a[0], <Tensor><object>a[1])


cdef object k_embedding_functional(PyObject **a):
    """nn.functional.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)."""
    global _embedding
    cdef PyObject *args[5]
    if a[2] != <PyObject *>None or a[3] != <PyObject *>None:
        return embedding(<object>a[0], <object>a[1], <object>a[2], <object>a[3], <object>a[4], <object>a[5],
            <object>a[6])
    if _embedding is None:
        _embedding = ops["aten::embedding"]
    args[0], args[1], args[2], args[3], args[4] = a[1], a[0], <PyObject *>_no_padding, a[5], a[6]
    return call_op(_embedding, args)


cdef int add_rows(const real *g, const int64_t *at, int64_t n, int64_t width, int64_t padding, const int64_t *often,
                  real *out, int64_t rows) except -1:
    cdef int64_t i, k, row
    cdef real scale
    cdef real *to
    for i in range(n):
        row = row_at(at, i, rows)
        if row == padding:
            continue
        to = out + row * width
        if often != NULL:
            scale = <real>1 / often[row]
            for k in range(width):
                to[k] += g[i * width + k] * scale
        else:
            for k in range(width):
                to[k] += g[i * width + k]
    return 0


cdef object k_embedding_backward(PyObject **a):
    """embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)."""
    cdef Tensor g = contiguous(<Tensor><object>a[0]), indices = open_indices(<Tensor><object>a[1]), out, counts
    cdef int64_t shape[2]
    cdef int64_t padding = as_int(a[3]), i
    cdef int64_t *often = NULL
    cdef const int64_t *at = <const int64_t *>indices.data
    cdef int given = g.tid
    cdef int64_t reals = 2 if is_complex(g.tid) else 1       # a complex number adds up like two real ones
    if is_half(given):
        g = cast(g, TGX_F32)
    elif reals == 1:
        require_float(g, "embedding_dense_backward")
    shape[0], shape[1] = as_int(a[2]), g.sizes[g.rank - 1] if g.rank else 0
    if shape[0] < 0 or g.rank == 0 or g.count != indices.count * shape[1]:
        raise RuntimeError(f"embedding_dense_backward: grad_output of shape {shape_text(g)} does not fit indices "
                           f"{shape_text(indices)}")
    out = empty(shape, 2, g.tid)
    zero(out)
    if <object>a[4] is True:
        counts = empty(shape, 1, TGX_I64)
        zero(counts)
        often = <int64_t *>counts.data
        for i in range(indices.count):
            often[row_at(at, i, shape[0])] += 1
    if g.tid == TGX_F32 or g.tid == TGX_C64:
        add_rows(<const float *>g.data, at, indices.count, shape[1] * reals, padding, often, <float *>out.data, shape[0])
    else:
        add_rows(<const double *>g.data, at, indices.count, shape[1] * reals, padding, often, <double *>out.data, shape[0])
    return cast(out, given)


cdef double length(const real *row, int64_t n, double p) noexcept:
    """p-norm of a row."""
    cdef double total = 0, v
    cdef int64_t k
    for k in range(n):
        v = fabs(<double>row[k])
        if p == 2:
            total += v * v
        elif p == 1:
            total += v
        elif p == float("inf"):
            total = max(total, v)
        else:
            total += pow(v, p)
    return total if p == 1 or p == float("inf") else pow(total, 1 / p)


cdef int shorten(real *data, const int64_t *at, int64_t n, int64_t rows, int64_t width, double most, double p) except -1:
    cdef int64_t i, k
    cdef double norm
    cdef real scale
    cdef real *row
    for i in range(n):
        row = data + row_at(at, i, rows) * width
        norm = length(row, width, p)
        if norm > most:
            scale = <real>(most / (norm + 1e-7))
            for k in range(width):
                row[k] *= scale
    return 0


cdef object k_embedding_renorm(PyObject **a):
    """_embedding_renorm(self, indices, max_norm, norm_type): the named rows get at most the length max_norm."""
    cdef Tensor self = <Tensor><object>a[0], indices = open_indices(<Tensor><object>a[1]), t
    cdef double most = as_float(a[2]), p = as_float(a[3])
    require_float(self, "_embedding_renorm")
    if self.rank != 2:
        raise RuntimeError(f"'self' must be 2-D: (rows, size of a row), but has shape {shape_text(self)}")
    t = empty(self.sizes, 2, self.tid)
    copy_into(t, self)
    if t.tid == TGX_F32:
        shorten(<float *>t.data, <const int64_t *>indices.data, indices.count, t.sizes[0], t.sizes[1], most, p)
    else:
        shorten(<double *>t.data, <const int64_t *>indices.data, indices.count, t.sizes[0], t.sizes[1], most, p)
    return t


# ---- one_hot -------------------------------------------------------------------------------------------------------

cdef object k_one_hot(PyObject **a):
    """one_hot(self, num_classes)."""
    cdef Tensor self = <Tensor><object>a[0], out
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int64_t classes = as_int(a[1]), i, k, most = -1
    cdef const int64_t *at
    if self.tid != TGX_I64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor. Got "
                           f"{dtype_title(self.tid)}; convert it with .long().")
    self = contiguous(self)
    at = <const int64_t *>self.data
    for i in range(self.count):
        k = tgx_once(at + i)
        if k < 0:
            raise RuntimeError(f"Class values must be non-negative. Got {k}")
        most = max(most, k)
    if classes == -1:
        if self.count == 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor. Give num_classes.")
        classes = most + 1
    elif self.count == 0 and classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor. Give a positive num_classes, not "
                           f"{classes}.")
    if most >= classes:
        raise RuntimeError(f"Class values must be smaller than num_classes. Got {most} with num_classes={classes}")
    if self.rank >= TGX_MAX_DIMS:
        raise RuntimeError("one_hot: the input has too many dimensions")
    for i in range(self.rank):
        shape[i] = self.sizes[i]
    shape[self.rank] = classes
    out = empty(shape, self.rank + 1, TGX_I64)
    zero(out)
    for i in range(self.count):
        k = tgx_once(at + i)
        if not 0 <= k < classes:        # it was smaller a moment ago: another thread writes to self
            raise RuntimeError(f"Class values must be smaller than num_classes. Got {k} with num_classes={classes}")
        (<int64_t *>out.data)[i * classes + k] = 1
    return out


# ---- dropout -------------------------------------------------------------------------------------------------------

cdef void divide(real *data, int64_t n, double by) noexcept:
    cdef int64_t i
    for i in range(n):
        data[i] = data[i] / <real>by


cdef object k_dropout_noise(PyObject **a):
    """_dropout_noise(self, p, channels): zero with probability p, else 1 / (1 - p); one for each element or channel."""
    cdef Tensor self = <Tensor><object>a[0], out
    cdef double keep = 1 - as_float(a[1])
    cdef int64_t shape[TGX_MAX_DIMS]
    cdef int i
    require_float(self, "dropout")
    if <object>a[2] is True:
        for i in range(self.rank):
            shape[i] = self.sizes[i] if i < 2 else 1
        out = empty(shape, self.rank, self.tid)
    else:
        out = empty_like(self, self.tid)
    fill_bernoulli(as_generator(None), out.tid, out.data, out.count, keep)
    if keep > 0:
        if out.tid == TGX_F32:
            divide(<float *>out.data, out.count, keep)
        else:
            divide(<double *>out.data, out.count, keep)
    return out


register_kernel("embedding", k_embedding)
register_kernel("embedding_functional", k_embedding_functional)
register_kernel("embedding_backward", k_embedding_backward)
register_kernel("embedding_renorm", k_embedding_renorm)
register_kernel("one_hot", k_one_hot)
register_kernel("dropout_noise", k_dropout_noise)
