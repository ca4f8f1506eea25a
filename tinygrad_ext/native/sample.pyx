# cython: language_level=3
"""Kernels that draw random numbers, over the fills of core/random.

A fill writes contiguous memory. A strided tensor is drawn into dense memory with the same order of dimensions and
then copied, which gives the order in which PyTorch walks it. Meta tensors draw nothing.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport broadcasts, contiguous, copy_into
from tinygrad_ext.core.dispatch cimport as_float, as_int, register_kernel
from tinygrad_ext.core.dtype cimport default_id
from tinygrad_ext.core.copy cimport cast
from tinygrad_ext.core.outputs cimport check_writable
from tinygrad_ext.core.random cimport (
    Generator, as_generator, fill_bernoulli, fill_bernoulli_each, fill_cauchy, fill_exponential, fill_full,
    fill_geometric,
    fill_integers, fill_log_normal, fill_multinomial, fill_normal, fill_permutation, fill_uniform, last_integer,
)
from tinygrad_ext.core.tensor cimport CONTIGUOUS, Tensor, dtype_title, empty, empty_like, shape_text
from tinygrad_ext.core.types cimport TGX_F32, TGX_F64, TGX_I64, int64_t, is_complex, is_float, is_half
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


# ---- in place: (self, parameters, generator, target) ---------------------------------------------------------------

cdef Tensor _target(PyObject *self, PyObject *out, str op):
    cdef Tensor t = <Tensor><object>self
    if out != <PyObject *>None:
        t = <Tensor><object>out
        check_writable(t, op)
        return t
    return empty_like(t, t.tid)


cdef object k_uniform(PyObject **a):
    return _uniform(_target(a[0], a[4], "uniform_()"), a[3], as_float(a[1]), as_float(a[2]))


cdef object k_normal(PyObject **a):
    return _normal(_target(a[0], a[4], "normal_()"), a[3], as_float(a[1]), as_float(a[2]))


cdef object k_random(PyObject **a):
    """random_(): the whole range of the dtype."""
    cdef Tensor t = _target(a[0], a[2], "random_()"), dense
    cdef Generator g = as_generator(<object>a[1])
    if t.device_id != 0:
        return t
    dense = _dense(t)
    fill_full(g, t.tid, dense.data, t.count)
    return _drawn(t, dense)


cdef object k_random_to(PyObject **a):
    """random_(to)."""
    cdef int64_t last = _last(0, as_int(a[1]))
    return _integers(_target(a[0], a[3], "random_()"), a[2], 0, last)


cdef object k_random_from(PyObject **a):
    """random_(from, to)."""
    cdef Tensor t = _target(a[0], a[4], "random_()")
    cdef int64_t low = as_int(a[1])
    cdef int64_t last = last_integer(t.tid) if a[2] == <PyObject *>None else _last(low, as_int(a[2]))
    return _integers(t, a[3], low, last)


cdef object k_exponential(PyObject **a):
    cdef Tensor t = _target(a[0], a[3], "exponential_()"), dense = _dense(t)
    if t.device_id == 0:
        fill_exponential(as_generator(<object>a[2]), t.tid, dense.data, t.count, as_float(a[1]))
    return _drawn(t, dense)


cdef object k_geometric(PyObject **a):
    cdef Tensor t = _target(a[0], a[3], "geometric_()"), dense = _dense(t)
    if t.device_id == 0:
        fill_geometric(as_generator(<object>a[2]), t.tid, dense.data, t.count, as_float(a[1]))
    return _drawn(t, dense)


cdef object k_cauchy(PyObject **a):
    cdef Tensor t = _target(a[0], a[4], "cauchy_()"), dense = _dense(t)
    if t.device_id == 0:
        fill_cauchy(as_generator(<object>a[3]), t.tid, dense.data, t.count, as_float(a[1]), as_float(a[2]))
    return _drawn(t, dense)


cdef object k_log_normal(PyObject **a):
    cdef Tensor t = _target(a[0], a[4], "log_normal_()"), dense = _dense(t)
    if t.device_id == 0:
        fill_log_normal(as_generator(<object>a[3]), t.tid, dense.data, t.count, as_float(a[1]), as_float(a[2]))
    return _drawn(t, dense)


# ---- bernoulli -----------------------------------------------------------------------------------------------------

cdef Tensor _bernoulli(Tensor t, PyObject *generator, double p):
    cdef Tensor dense = _dense(t)
    if t.device_id == 0:
        fill_bernoulli(as_generator(<object>generator), t.tid, dense.data, t.count, p)
    return _drawn(t, dense)


cdef Tensor _bernoulli_each(Tensor t, PyObject *generator, Tensor p):
    """One probability for each element; p broadcasts to t."""
    cdef Tensor dense = _dense(t), chances
    if not is_float(p.tid):
        raise NotImplementedError(f'"bernoulli" not implemented for \'{dtype_title(p.tid)}\': expected probabilities '
                                  f'tensor to have '
                                  "floating type, or one number p")
    if not broadcasts(p, t):
        raise RuntimeError(f"output with shape {shape_text(t)} doesn't match the broadcast shape of p "
                           f"{shape_text(p)}: bernoulli_()")
    if t.device_id == 0:
        chances = empty_like(dense, TGX_F64 if p.tid == TGX_F64 else TGX_F32)
        copy_into(chances, p)
        fill_bernoulli_each(as_generator(<object>generator), t.tid, dense.data, t.count, chances.tid, chances.data)
    return _drawn(t, dense)


cdef object k_bernoulli(PyObject **a):
    """bernoulli(self, generator): self holds the probabilities."""
    cdef Tensor p = <Tensor><object>a[0], t
    cdef Options o
    if a[2] == <PyObject *>None:
        t = empty_like(p, p.tid)
    else:
        t = <Tensor><object>a[2]
        o.dtype = -1
        shaped(p.sizes, p.rank, t.tid, &o, a[2])
    return _bernoulli_each(t, a[1], p)


cdef object k_bernoulli_p(PyObject **a):
    """bernoulli(self, p, generator): shape and dtype of self."""
    return _bernoulli(_target(a[0], a[3], "bernoulli_()"), a[2], as_float(a[1]))


cdef object k_bernoulli_tensor(PyObject **a):
    """bernoulli_(self, p, generator) for a tensor p."""
    return _bernoulli_each(_target(a[0], a[3], "bernoulli_()"), a[2], <Tensor><object>a[1])


# ---- multinomial ---------------------------------------------------------------------------------------------------

cdef object k_multinomial(PyObject **a):
    """multinomial(self, num_samples, replacement, generator): indices, a row for each row of weights."""
    cdef Tensor t = <Tensor><object>a[0], weights, out
    cdef int64_t samples = as_int(a[1]), rows, categories
    cdef int64_t[2] shape
    cdef Generator g = as_generator(<object>a[3])
    if not is_float(t.tid):
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {dtype_title(t.tid)}. "
                           "Convert the weights with float().")
    if t.rank != 1 and t.rank != 2:
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, got {t.rank}: multinomial takes a vector of weights, or a "
                           f"matrix with "
                           "one distribution a row")
    categories = t.sizes[t.rank - 1]
    rows = t.sizes[0] if t.rank == 2 else 1
    if categories == 0 and rows > 0:
        raise RuntimeError(f"multinomial: input {shape_text(t)} has no categories to draw from")
    shape[0], shape[t.rank - 1] = rows, samples
    if samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples: multinomial got num_samples={samples}")
    out = empty(shape, t.rank, TGX_I64, t.device_id)
    if t.device_id != 0:
        return out
    weights = contiguous(cast(t, TGX_F32 if is_half(t.tid) else t.tid))
    fill_multinomial(g, weights.tid, weights.data, rows, categories, <int64_t *>out.data, samples, <object>a[2] is True)
    return out


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
register_kernel("uniform", k_uniform)
register_kernel("normal", k_normal)
register_kernel("random", k_random)
register_kernel("random_to", k_random_to)
register_kernel("random_from", k_random_from)
register_kernel("exponential", k_exponential)
register_kernel("geometric", k_geometric)
register_kernel("cauchy", k_cauchy)
register_kernel("log_normal", k_log_normal)
register_kernel("bernoulli", k_bernoulli)
register_kernel("bernoulli_p", k_bernoulli_p)
register_kernel("bernoulli_tensor", k_bernoulli_tensor)
register_kernel("multinomial", k_multinomial)
