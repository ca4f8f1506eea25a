# cython: language_level=3
"""Kernels of variance, standard deviation and vector norms, over the reducers of kernels/reduce_moment.h and others."""
from cpython.object cimport PyObject
from libc.math cimport INFINITY
from tinygrad_ext.core.copy cimport cast
from tinygrad_ext.core.dispatch cimport as_float, register_kernel
from tinygrad_ext.core.dtype cimport dtype_id
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, shape_text
from tinygrad_ext.core.types cimport is_complex, is_integral, promote, tgx_scalar, uint64_t
from tinygrad_ext.native.reduce cimport (
    TGX_ABSMAX, TGX_ABSMIN, TGX_NORM0, TGX_NORM1, TGX_NORM2, TGX_NORMP, TGX_VAR, dim_mask, reduce_into, reduced,
)

# ---- variance ------------------------------------------------------------------------------------------------------

cdef enum Want:
    STD = 1
    MEAN = 2


cdef object _var(str title, int want, Tensor t, PyObject *dim, double correction, bint keepdim):
    """var, std, or (var, mean), (std, mean)."""
    cdef tgx_scalar[2] aux
    cdef uint64_t mask
    cdef Tensor out, mean = None
    if is_integral(t.tid):
        raise RuntimeError(f"{title}(): std and var only support floating point and complex dtypes, got {dtype_title(t.tid)}: "
                           "convert the tensor with .float()")
    mask = dim_mask(dim, t)
    out = reduced(t, mask, keepdim, t.tid)
    if want & MEAN:
        mean = reduced(t, mask, keepdim, t.tid)
    aux[0].f, aux[1].i = correction, want & STD
    if out.count and t.count // out.count <= correction:
        _warn_freedom(title)
    reduce_into(title, TGX_VAR, t, mask, out, mean, aux)
    return (out, mean) if want & MEAN else out


cdef int _warn_freedom(str title) except -1:
    import warnings
    warnings.warn(f"{title}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
                  "numel divided by output numel); the result is NaN or infinite.", UserWarning, stacklevel=2)
    return 0


cdef inline double _unbiased(PyObject *o):
    return 1.0 if <object>o is not False else 0.0


cdef inline double _correction(PyObject *o) except? -1e308:
    return 1.0 if o == <PyObject *>None else as_float(o)


cdef object k_var(PyObject **a):
    return _var("var", 0, <Tensor><object>a[0], <PyObject *>None, _unbiased(a[1]), False)


cdef object k_var_dim(PyObject **a):
    return _var("var", 0, <Tensor><object>a[0], a[1], _unbiased(a[2]), <object>a[3] is True)


cdef object k_var_correction(PyObject **a):
    return _var("var", 0, <Tensor><object>a[0], a[1], _correction(a[2]), <object>a[3] is True)


cdef object k_std(PyObject **a):
    return _var("std", STD, <Tensor><object>a[0], <PyObject *>None, _unbiased(a[1]), False)


cdef object k_std_dim(PyObject **a):
    return _var("std", STD, <Tensor><object>a[0], a[1], _unbiased(a[2]), <object>a[3] is True)


cdef object k_std_correction(PyObject **a):
    return _var("std", STD, <Tensor><object>a[0], a[1], _correction(a[2]), <object>a[3] is True)


cdef object k_var_mean(PyObject **a):
    return _var("var_mean", MEAN, <Tensor><object>a[0], <PyObject *>None, _unbiased(a[1]), False)


cdef object k_var_mean_dim(PyObject **a):
    return _var("var_mean", MEAN, <Tensor><object>a[0], a[1], _unbiased(a[2]), <object>a[3] is True)


cdef object k_var_mean_correction(PyObject **a):
    return _var("var_mean", MEAN, <Tensor><object>a[0], a[1], _correction(a[2]), <object>a[3] is True)


cdef object k_std_mean(PyObject **a):
    return _var("std_mean", STD | MEAN, <Tensor><object>a[0], <PyObject *>None, _unbiased(a[1]), False)


cdef object k_std_mean_dim(PyObject **a):
    return _var("std_mean", STD | MEAN, <Tensor><object>a[0], a[1], _unbiased(a[2]), <object>a[3] is True)


cdef object k_std_mean_correction(PyObject **a):
    return _var("std_mean", STD | MEAN, <Tensor><object>a[0], a[1], _correction(a[2]), <object>a[3] is True)


# ---- norms ---------------------------------------------------------------------------------------------------------

cdef int _norm_op(double p) noexcept:
    if p == 2:
        return TGX_NORM2
    if p == 1:
        return TGX_NORM1
    if p == 0:
        return TGX_NORM0
    if p == INFINITY:
        return TGX_ABSMAX
    return TGX_ABSMIN if p == -INFINITY else TGX_NORMP


cdef bint _reduces_nothing(Tensor t, uint64_t mask) noexcept:
    cdef int i
    for i in range(t.rank):
        if mask >> i & 1 and t.sizes[i] == 0:
            return True
    return False


cdef int _norm_dtype(int own, int wanted) except -1:
    """The dtype asked for; an error where it is none of the kind of the tensor's own, or cannot hold it."""
    cdef str title = dtype_title(wanted)
    if is_integral(wanted):
        raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex, but got {title}")
    if is_complex(own) != is_complex(wanted):
        kind = "complex" if is_complex(own) else "real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {title}")
    if promote(own, wanted) != wanted:
        raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({dtype_title(own)}) should be convertible without "
                           f"narrowing to the specified dtype ({title}): convert the result instead")
    return wanted


cdef object k_vector_norm(PyObject **a):
    """linalg.vector_norm(self, ord, dim, keepdim, dtype)."""
    cdef Tensor t = <Tensor><object>a[0], out
    cdef double p = as_float(a[1])
    cdef uint64_t mask
    cdef tgx_scalar aux
    if is_integral(t.tid):
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                           f"{dtype_title(t.tid)}: convert it with .float()")
    if a[4] != <PyObject *>None:
        t = cast(t, _norm_dtype(t.tid, dtype_id(<object>a[4])))
    mask = dim_mask(a[2], t)
    out = reduced(t, mask, <object>a[3] is True, t.tid)
    if (p < 0 or p == INFINITY) and _reduces_nothing(t, mask):
        raise RuntimeError(f"linalg.vector_norm cannot compute the {p:g} norm on an empty tensor because the operation "
                           f"does not have an identity: self has shape {shape_text(t)}")
    aux.f = p
    reduce_into("linalg.vector_norm", _norm_op(p), t, mask, out, None, &aux)
    return out


register_kernel("var", k_var)
register_kernel("var_dim", k_var_dim)
register_kernel("var_correction", k_var_correction)
register_kernel("std", k_std)
register_kernel("std_dim", k_std_dim)
register_kernel("std_correction", k_std_correction)
register_kernel("var_mean", k_var_mean)
register_kernel("var_mean_dim", k_var_mean_dim)
register_kernel("var_mean_correction", k_var_mean_correction)
register_kernel("std_mean", k_std_mean)
register_kernel("std_mean_dim", k_std_mean_dim)
register_kernel("std_mean_correction", k_std_mean_correction)
register_kernel("vector_norm", k_vector_norm)
