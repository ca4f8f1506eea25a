"""Threads: split a range over cores; keep the BLAS library's threads in step. See kernels/parallel.h."""

ctypedef int (*range_fn)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil

# Code of the lowest failing chunk, or 0. Release the GIL first when fn may ask for it.
cdef int parallel_for(range_fn fn, void *ctx, ptrdiff_t n, ptrdiff_t grain) noexcept nogil
cdef bint in_parallel() noexcept nogil
cdef int mark_region(int inside) noexcept nogil         # BLAS on one thread while marked; returns the old mark
cdef int num_threads() noexcept nogil
cdef int processors                 # of the machine, not those that may be used now: what a product is cut for
cdef int count_processors() noexcept nogil

# For core/loops/blas.pyx; set_blas_threads has no effect before a BLAS was found.
cdef void attach_blas_threads(void (*set_threads)(int) noexcept nogil,
                              int (*get_threads)() noexcept nogil) noexcept nogil
cdef int enter_blas() noexcept nogil
cdef void leave_blas(int entered) noexcept nogil
cdef void set_blas_threads(int n) noexcept nogil
cdef int get_blas_threads() noexcept nogil
