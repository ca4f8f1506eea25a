"""Matrix products by the BLAS found at run time; see kernels/blas.h for the functions."""
from tinygrad_ext.core.loops.parallel cimport set_blas_threads, get_blas_threads

cdef extern from "blas.h":
    ctypedef struct tgx_blas:
        pass

cdef const tgx_blas *find_blas() except NULL nogil      # may take the GIL, the first time
