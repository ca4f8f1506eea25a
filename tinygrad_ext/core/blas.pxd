"""Matrix products by the BLAS found at run time, in the argument order of CBLAS. See blas.pyx.

Call ensure_blas() first (it may take the GIL). Before it, and where no BLAS exists, the plain C products of
kernels/gemm.c run. As CBLAS demands, ld* is at least the row length (column length in BLAS_COL_MAJOR), at least 1,
and an increment is not 0. Complex numbers are pointers, also alpha and beta. Inside a chunk of parallel_for
the library runs on one thread.
"""
from libc.stdint cimport int64_t
from tinygrad_ext.core.parallel cimport set_blas_threads, get_blas_threads

cdef enum:
    BLAS_ROW_MAJOR = 101
    BLAS_COL_MAJOR = 102
    BLAS_NO_TRANS = 111
    BLAS_TRANS = 112
    BLAS_CONJ_TRANS = 113

cdef int ensure_blas() except -1 nogil
cdef bint have_blas() noexcept nogil

cdef void sgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                float beta, float *c, int64_t ldc) noexcept nogil
cdef void dgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                double beta, double *c, int64_t ldc) noexcept nogil
cdef void cgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                const void *beta, void *c, int64_t ldc) noexcept nogil
cdef void zgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                const void *beta, void *c, int64_t ldc) noexcept nogil

# y = alpha op(A) x + beta y, A of m rows and n columns.
cdef void sgemv(int order, int trans, int64_t m, int64_t n, float alpha, const float *a, int64_t lda,
                const float *x, int64_t inc_x, float beta, float *y, int64_t inc_y) noexcept nogil
cdef void dgemv(int order, int trans, int64_t m, int64_t n, double alpha, const double *a, int64_t lda,
                const double *x, int64_t inc_x, double beta, double *y, int64_t inc_y) noexcept nogil

cdef float sdot(int64_t n, const float *x, int64_t inc_x, const float *y, int64_t inc_y) noexcept nogil
cdef double ddot(int64_t n, const double *x, int64_t inc_x, const double *y, int64_t inc_y) noexcept nogil
