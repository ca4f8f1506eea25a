# cython: language_level=3
"""Kernels that draw random numbers, over the fills of core/random.

A fill writes contiguous memory. A strided tensor is drawn into dense memory with the same order of dimensions and
then copied, which gives the order in which PyTorch walks it. Meta tensors draw nothing.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport copy_into
from tinygrad_ext.core.dispatch cimport as_float, as_int, register_kernel
from tinygrad_ext.core.dtype cimport default_id
from tinygrad_ext.core.random cimport (
    Generator, as_generator, fill_integers, fill_normal, fill_permutation, fill_uniform, last_integer,
)
from tinygrad_ext.core.tensor cimport CONTIGUOUS, Tensor, dtype_title, empty, empty_like
from tinygrad_ext.core.types cimport TGX_I64, int64_t, is_complex
from tinygrad_ext.native.create cimport Options, finished, like_format, options, shaped, sized


cdef Tensor _dense(Tensor t):
    return t if t.bits & CONTIGUOUS else empty_like(t, t.tid)


cdef Tensor _drawn(Tensor t, Tensor dense):
    if dense is not t:
        copy_into(t, dense)
    return t


# ---- factories -----------------------------------------------------------------------------------------------------

cdef Tensor _uniform(Tensor t, PyObject *generator, double low, double high):
    cdef Tensor dense
    cdef Generator g = as_generator(<object>generator)
    if t.device_id != 0:
        return t
    dense = _dense(t)
    fill_uniform(g, t.tid, dense.data, t.count, low, high)
    return _drawn(t, dense)


cdef Tensor _normal(Tensor t, PyObject *generator, double mean, double std):
    cdef Tensor dense
    cdef Generator g = as_generator(<object>generator)
    if t.device_id != 0:
        return t
    dense = _dense(t)
    fill_normal(g, t.tid, dense.data, t.count, mean, std, dense is not t)
    return _drawn(t, dense)


cdef Tensor _integers(Tensor t, PyObject *generator, int64_t low, int64_t last):
    cdef Tensor dense
    cdef Generator g = as_generator(<object>generator)
    if t.device_id != 0:
        return t
    dense = _dense(t)
    fill_integers(g, t.tid, dense.data, t.count, low, last)
    return _drawn(t, dense)


cdef object k_rand(PyObject **a):
    """rand(size, generator, options)."""
    cdef Options o = options(a + 2)
    return finished(_uniform(sized(a[0], default_id(), &o, a[7]), a[1], 0, 1), &o)


cdef object k_randn(PyObject **a):
    cdef Options o = options(a + 2)
    return finished(_normal(sized(a[0], default_id(), &o, a[7]), a[1], 0, 1), &o)


cdef object k_normal_size(PyObject **a):
    """normal(mean, std, size, generator, options)."""
    cdef Options o = options(a + 4)
    return finished(_normal(sized(a[2], default_id(), &o, a[9]), a[3], as_float(a[0]), as_float(a[1])), &o)


cdef int64_t _last(int64_t low, int64_t high) except? -1:
    """The greatest integer below `high`; RuntimeError unless low is below high."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}: the upper "
                           f"bound is "
                           "left out of the range")
    return high - 1


cdef object k_randint(PyObject **a):
    """randint(high, size, generator, options)."""
    cdef Options o = options(a + 3)
    cdef int64_t last = _last(0, as_int(a[0]))
    return finished(_integers(sized(a[1], TGX_I64, &o, a[8]), a[2], 0, last), &o)


cdef object k_randint_low(PyObject **a):
    """randint(low, high, size, generator, options)."""
    cdef Options o = options(a + 4)
    cdef int64_t low = as_int(a[0]), last = _last(low, as_int(a[1]))
    return finished(_integers(sized(a[2], TGX_I64, &o, a[9]), a[3], low, last), &o)


cdef object k_randperm(PyObject **a):
    """randperm(n, generator, options)."""
    cdef Options o = options(a + 2)
    cdef int64_t n = as_int(a[0])
    cdef Generator g = as_generator(<object>a[1])
    cdef Tensor t, order
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}: randperm takes the number of elements to shuffle")
    t = shaped(&n, 1, TGX_I64, &o, a[7])
    if t.device_id != 0:
        return finished(t, &o)
    if is_complex(t.tid) or n - 1 > last_integer(t.tid):
        raise RuntimeError(f"n is too large for result tensor type: '{dtype_title(t.tid)}' cannot hold {n - 1}; use "
                           f"int64")
    order = t if t.tid == TGX_I64 and t.bits & CONTIGUOUS else empty(&n, 1, TGX_I64)
    fill_permutation(g, <int64_t *>order.data, n)
    return finished(_drawn(t, order), &o)


cdef Tensor _like(PyObject **a, Options *o, PyObject *format):
    cdef Tensor t = <Tensor><object>a[0]
    return like_format(t, o.dtype if o.dtype >= 0 else t.tid, o.device, format)


cdef object k_rand_like(PyObject **a):
    """rand_like(self, options, memory_format, generator)."""
    cdef Options o = options(a + 1)
    return finished(_uniform(_like(a, &o, a[6]), a[7], 0, 1), &o)


cdef object k_randn_like(PyObject **a):
    cdef Options o = options(a + 1)
    return finished(_normal(_like(a, &o, a[6]), a[7], 0, 1), &o)


cdef object k_randint_like(PyObject **a):
    """randint_like(self, high, options, memory_format, generator)."""
    cdef Options o = options(a + 2)
    cdef int64_t last = _last(0, as_int(a[1]))
    return finished(_integers(_like(a, &o, a[7]), a[8], 0, last), &o)


cdef object k_randint_like_low(PyObject **a):
    """randint_like(self, low, high, options, memory_format, generator)."""
    cdef Options o = options(a + 3)
    cdef int64_t low = as_int(a[1]), last = _last(low, as_int(a[2]))
    return finished(_integers(_like(a, &o, a[8]), a[9], low, last), &o)


register_kernel("rand", k_rand)
register_kernel("randn", k_randn)
register_kernel("normal_size", k_normal_size)
register_kernel("randint", k_randint)
register_kernel("randint_low", k_randint_low)
register_kernel("randperm", k_randperm)
register_kernel("rand_like", k_rand_like)
register_kernel("randn_like", k_randn_like)
register_kernel("randint_like", k_randint_like)
register_kernel("randint_like_low", k_randint_like_low)
