# cython: language_level=3
"""Factors of dropout."""
from cpython.object cimport PyObject
from tinygrad_ext.core.dispatch cimport as_float, register_kernel
from tinygrad_ext.core.random cimport as_generator, fill_bernoulli
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, empty_like
from tinygrad_ext.core.types cimport TGX_F32, TGX_F64, TGX_MAX_DIMS, int64_t

ctypedef fused real:
    float
    double


cdef int require_float(Tensor t, str op) except -1:
    if t.tid != TGX_F32 and t.tid != TGX_F64:
        raise NotImplementedError(f"\"{op}\" not implemented for '{dtype_title(t.tid)}': convert the input to float32 or "
                                  "float64 first")
    return 0


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


register_kernel("dropout_noise", k_dropout_noise)
