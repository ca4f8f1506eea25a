"""Generators. Kernels draw from their stream with the functions of kernels/random.h, under the interpreter's lock."""
from tinygrad_ext.core.data.types cimport int32_t, int64_t, uint32_t, uint64_t

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

cdef int draw(Generator g, uint64_t *bits, double *uniform, double *normal, int64_t n) noexcept    # n into the one that is given
