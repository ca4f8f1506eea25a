"""Generators and the fills that draw from them; each fill checks its arguments and raises PyTorch's error types.

For compiled modules; kernels in C draw from the stream with the functions of kernels/random.h. All need the GIL,
which is what keeps two threads from sharing a draw. `out` is contiguous and holds n elements of dtype.
"""
from tinygrad_ext.core.types cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "random.h":
    ctypedef struct tgx_stream:
        uint64_t seed
        double spare_normal
        int32_t has_spare
        uint32_t position

cdef class Generator:
    cdef tgx_stream mt
    cdef object __weakref__

cdef Generator as_generator(object generator)      # None stands for the default one

# uniform and normal take complex dtypes too: real and imaginary parts in turn, the normal's variance split between them
cdef int fill_uniform(Generator g, int dtype, void *out, int64_t n, double low, double high) except -1
# serial: out will be scattered into a strided tensor, in memory order; PyTorch then draws otherwise from n = 16 on
cdef int fill_normal(Generator g, int dtype, void *out, int64_t n, double mean, double std, bint serial) except -1

# integers from low to last, both included; last_integer is the last of `random_(low, None)`
cdef int fill_integers(Generator g, int dtype, void *out, int64_t n, int64_t low, int64_t last) except -1
cdef int64_t last_integer(int dtype) except -1

cdef int fill_permutation(Generator g, int64_t *out, int64_t n) except -1
