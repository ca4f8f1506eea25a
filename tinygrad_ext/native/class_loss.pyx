# cython: language_level=3
"""Losses of classes: negative log likelihood and cross entropy, each with its derivative.

They see their input as (outer, classes, inner) and their targets as (outer, inner); a target equal to ignore_index
counts nothing.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport cast, contiguous, zero
from tinygrad_ext.core.dispatch cimport Op, as_float, as_int, as_ints, call_op, register_kernel
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text
from tinygrad_ext.core.types cimport TGX_F32, TGX_I64, TGX_MAX_DIMS, TGX_U8, int64_t
from tinygrad_ext.native.loss cimport MEAN, NONE, number, reduction_of
from tinygrad_ext.native.softmax cimport require_float, row_lse, scaled_softmax
from tinygrad_ext.core.op_tables import ops
from tinygrad_ext.ops.class_loss import cross_entropy

cdef extern from "once.h" nogil:
    int64_t tgx_once(const int64_t *p)

ctypedef fused real:
    float
    double

cdef Op _cross_entropy = None


cdef struct Classes:
    int64_t outer, classes, inner
    int64_t ignore
    const int64_t *target
    const char *weight          # NULL: all one


cdef Tensor open_target(Tensor target):
    if target.tid == TGX_U8:
        target = cast(target, TGX_I64)
    if target.tid != TGX_I64:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {dtype_title(target.tid)}: targets are "
                           "class numbers; convert them with target.long()")
    return contiguous(target)


cdef object open_weight(object weight, int64_t classes, int dtype):
    cdef Tensor w
    if weight is None:
        return None
    w = <Tensor>weight
    if w.rank != 1 or w.sizes[0] != classes:
        raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but got "
                           f"weight tensor of shape: {shape_text(w)}")
    if w.tid != dtype:
        raise RuntimeError(f"expected scalar type {dtype_title(dtype)} but found {dtype_title(w.tid)} for weight: "
                           "convert it to the input's dtype")
    return contiguous(w)


cdef int layout(Classes *c, const int64_t *sizes, int rank, Tensor target) except -1:
    """Fill the sizes of c, and compare target's shape with the input's."""
    cdef int i
    cdef int64_t n
    cdef bint fits = target.rank == rank - 1
    if rank == 0:
        raise ValueError("Expected 1 or more dimensions (got 0): the input needs a dimension of classes")
    c.outer, c.inner = 1, 1
    c.classes = sizes[0] if rank == 1 else sizes[1]
    if rank == 1:
        if target.count != 1 or target.rank > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported: an input of shape "
                               f"({sizes[0]},) has one target, got shape {shape_text(target)}")
        return 0
    c.outer = sizes[0]
    n = target.sizes[0] if target.rank else 1
    if n != sizes[0]:
        raise ValueError(f"Expected input batch_size ({sizes[0]}) to match target batch_size ({n}).")
    if rank == 2 and target.rank > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: got a target of shape "
                           f"{shape_text(target)}")
    for i in range(2, rank):
        c.inner *= sizes[i]
        fits = fits and target.sizes[i - 1] == sizes[i]
    if rank > 2 and not fits:
        raise RuntimeError(f"Expected target size {[sizes[i] for i in range(rank) if i != 1]}, got "
                           f"{shape_text(target)}")
    return 0


cdef int check_targets(Classes *c) except -1:
    cdef int64_t i, t
    for i in range(c.outer * c.inner):
        t = tgx_once(c.target + i)
        if t != c.ignore and not 0 <= t < c.classes:
            raise IndexError(f"Target {t} is out of bounds. Targets are class numbers from 0 to "
                             f"{c.classes - 1}, or ignore_index, which is {c.ignore}")
    return 0


cdef inline int64_t target_at(const Classes *c, int64_t i) noexcept nogil:
    """The class of target i, or -1 for one that does not count: ignored, or overwritten since it was checked."""
    cdef int64_t t = tgx_once(c.target + i)
    return t if t != c.ignore and 0 <= t < c.classes else -1


cdef tuple opened(Classes *c, const int64_t *sizes, int rank, int dtype, PyObject *target, PyObject *weight,
                  PyObject *ignore):
    """Fill c for an input of these sizes; the tensors it points into, which the caller keeps."""
    cdef Tensor t = <Tensor><object>target
    layout(c, sizes, rank, t)
    t = open_target(t)
    w = open_weight(<object>weight, c.classes, dtype)
    c.target, c.ignore = <const int64_t *>t.data, as_int(ignore)
    c.weight = NULL if w is None else (<Tensor>w).data
    check_targets(c)
    return t, w


cdef double total_weight(Classes *c, real *_type) noexcept:
    """Weight of the targets that count."""
    cdef const real *w = <const real *>c.weight
    cdef double total = 0
    cdef int64_t i, t
    for i in range(c.outer * c.inner):
        t = target_at(c, i)
        if t >= 0:
            total += w[t] if w != NULL else 1
    return total


cdef object picked(Classes *c, Tensor x, const real *lse, int how, Tensor target):
    """weight * (lse - x[target]) for each target, reduced."""
    cdef const real *w = <const real *>c.weight
    cdef const real *from_ = <const real *>x.data
    cdef int64_t o, k, i = 0, t
    cdef double total = 0
    cdef Tensor out = empty(target.sizes, target.rank, x.tid) if how == NONE else None
    cdef real *to = <real *>out.data if how == NONE else NULL
    cdef real v
    for o in range(c.outer):
        for k in range(c.inner):
            t = target_at(c, i)
            v = 0
            if t >= 0:
                v = -from_[(o * c.classes + t) * c.inner + k]
                if lse != NULL:
                    v += lse[i]
                if w != NULL:
                    v *= w[t]
            if to != NULL:
                to[i] = v
            total += v
            i += 1
    if how == NONE:
        return out
    if how == MEAN:
        total /= total_weight(c, <real *>NULL)
    return number(total, x.tid)


cdef int scales(Classes *c, Tensor g, int how, real *to) except -1:
    """Factor of each target's row in the derivative: gradient times weight, divided by the total for a mean."""
    cdef const real *w = <const real *>c.weight
    cdef const real *from_ = <const real *>g.data
    cdef real k = 0
    cdef int64_t i, t
    if how != NONE:
        k = from_[0] / <real>total_weight(c, <real *>NULL) if how == MEAN else from_[0]
    for i in range(c.outer * c.inner):
        t = target_at(c, i)
        if t < 0:
            to[i] = 0
            continue
        to[i] = from_[i] if how == NONE else k
        if w != NULL:
            to[i] *= w[t]
    return 0


cdef int subtract(Classes *c, Tensor out, const real *scale) noexcept:
    """out[target] -= scale."""
    cdef real *to = <real *>out.data
    cdef int64_t o, k, t, i = 0
    for o in range(c.outer):
        for k in range(c.inner):
            t = target_at(c, i)
            if t >= 0:
                to[(o * c.classes + t) * c.inner + k] -= scale[i]
            i += 1
    return 0


cdef int subtract_in(Classes *c, Tensor out, Tensor scale) noexcept:
    if out.tid == TGX_F32:
        return subtract(c, out, <float *>scale.data)
    return subtract(c, out, <double *>scale.data)


cdef object picked_in(Classes *c, Tensor x, Tensor lse, int how, Tensor target):
    if x.tid == TGX_F32:
        return picked(c, x, <float *>(lse.data if lse is not None else NULL), how, target)
    return picked(c, x, <double *>(lse.data if lse is not None else NULL), how, target)


cdef Tensor scales_in(Classes *c, Tensor g, int how, Tensor target):
    """The factors as a tensor of target's shape."""
    cdef Tensor out = empty(target.sizes, target.rank, g.tid)
    g = contiguous(g)
    if g.count != (target.count if how == NONE else 1):
        raise RuntimeError(f"grad_output of shape {shape_text(g)} does not fit a loss over targets of shape "
                           f"{shape_text(target)}")
    if g.tid == TGX_F32:
        scales(c, g, how, <float *>out.data)
    else:
        scales(c, g, how, <double *>out.data)
    return out


cdef object k_nll_loss(PyObject **a):
    """_nll_loss(self, target, weight, reduction, ignore_index)."""
    cdef Tensor x = <Tensor><object>a[0]
    cdef Classes c
    cdef int how = reduction_of(a[3])
    kept = opened(&c, x.sizes, x.rank, x.tid, a[1], a[2], a[4])
    require_float(x, "nll_loss")
    return picked_in(&c, contiguous(x), None, how, kept[0])


cdef object k_nll_loss_backward(PyObject **a):
    """_nll_loss_backward(grad_output, target, weight, sizes, reduction, ignore_index)."""
    cdef Tensor g = <Tensor><object>a[0], out
    cdef int64_t sizes[TGX_MAX_DIMS]
    cdef int rank = as_ints(a[3], sizes, TGX_MAX_DIMS, 1)
    cdef Classes c
    require_float(g, "_nll_loss_backward")
    kept = opened(&c, sizes, rank, g.tid, a[1], a[2], a[5])
    scale = scales_in(&c, g, reduction_of(a[4]), kept[0])
    out = empty(sizes, rank, g.tid)
    zero(out)
    subtract_in(&c, out, scale)
    return out


cdef object k_cross_entropy(PyObject **a):
    """_cross_entropy(self, target, weight, reduction, ignore_index) -> (loss, log of the sum of exponentials)."""
    cdef Tensor x = <Tensor><object>a[0], lse
    cdef Classes c
    cdef int how = reduction_of(a[3])
    kept = opened(&c, x.sizes, x.rank, x.tid, a[1], a[2], a[4])
    require_float(x, "cross_entropy")
    x = contiguous(x)
    lse = row_lse(x, 0 if x.rank == 1 else 1)
    return picked_in(&c, x, lse, how, kept[0]), lse


cdef object k_cross_entropy_backward(PyObject **a):
    """_cross_entropy_backward(grad_output, self, lse, target, weight, reduction, ignore_index)."""
    cdef Tensor g = <Tensor><object>a[0], x = contiguous(<Tensor><object>a[1]), out
    cdef Tensor lse = contiguous(<Tensor><object>a[2])
    cdef Classes c
    require_float(x, "_cross_entropy_backward")
    kept = opened(&c, x.sizes, x.rank, x.tid, a[3], a[4], a[6])
    if lse.tid != x.tid or lse.count != c.outer * c.inner:
        raise RuntimeError(f"_cross_entropy_backward: lse of shape {shape_text(lse)} does not belong to input "
                           f"{shape_text(x)}")
    scale = scales_in(&c, cast(g, x.tid), reduction_of(a[5]), kept[0])
    out = scaled_softmax(x, lse, scale, 0 if x.rank == 1 else 1)
    subtract_in(&c, out, scale)
    return out


cdef object k_class_scale(PyObject **a):
    """_class_scale(grad_output, self, target, weight, reduction, ignore_index): see scales()."""
    cdef Tensor g = <Tensor><object>a[0], x = <Tensor><object>a[1]
    cdef Classes c
    require_float(g, "_class_scale")
    kept = opened(&c, x.sizes, x.rank, g.tid, a[2], a[3], a[5])
    return scales_in(&c, g, reduction_of(a[4]), kept[0])


cdef object k_cross_entropy_public(PyObject **a):
    """cross_entropy(self, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)."""
    global _cross_entropy
    cdef PyObject *args[5]
    cdef PyObject *none = <PyObject *>None
    cdef Tensor x = <Tensor><object>a[0], t = <Tensor><object>a[1]
    cdef bint plain = a[2] == none and a[3] == none and a[5] == none and as_float(a[7]) == 0
    if not plain or t.tid != TGX_I64 or t.rank >= max(x.rank, 1):
        return cross_entropy(x, t, <object>a[2], <object>a[3], <object>a[4], <object>a[5], <object>a[6], <object>a[7])
    if _cross_entropy is None:
        _cross_entropy = ops["aten::_cross_entropy"]
    args[0], args[1], args[2], args[3], args[4] = a[0], a[1], none, a[6], a[4]
    return call_op(_cross_entropy, args)[0]


register_kernel("nll_loss", k_nll_loss)
register_kernel("nll_loss_backward", k_nll_loss_backward)
register_kernel("cross_entropy", k_cross_entropy)
register_kernel("cross_entropy_backward", k_cross_entropy_backward)
register_kernel("class_scale", k_class_scale)
register_kernel("cross_entropy_public", k_cross_entropy_public)
