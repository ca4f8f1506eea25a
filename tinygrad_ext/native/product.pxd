"""Products of matrices and of batches of them, by the loops that suit their size and dtype. Knows no op."""
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport TGX_MAX_DIMS, int64_t, tgx_scalar

cdef extern from "product.h" nogil:
    ctypedef struct tgx_shape:
        ptrdiff_t m, n, k
        ptrdiff_t a_row, a_col, b_row, b_col, c_row, c_col

cdef struct Product:            # C = alpha A B + beta C, for every item of the batch
    tgx_shape s                 # steps in elements
    int tid
    char *a
    char *b
    char *c
    tgx_scalar alpha
    tgx_scalar beta
    int ndim                    # dimensions of the batch, and their sizes and steps in bytes
    int64_t batches
    int64_t[TGX_MAX_DIMS] sizes
    int64_t[TGX_MAX_DIMS] a_step
    int64_t[TGX_MAX_DIMS] b_step
    int64_t[TGX_MAX_DIMS] c_step
    # filled by run_product
    int how
    bint whole                  # items are not cut
    int order
    int a_trans
    int b_trans
    int64_t lda
    int64_t ldb
    int64_t ldc

cdef int64_t processors            # of the machine, not those that may be used now: what is cut for

cdef void begin_product(Product *p, int tid) noexcept              # alpha 1, beta 0, no batch
cdef bint blas_takes(int64_t rows, int64_t cols, int64_t row, int64_t col) noexcept nogil
cdef int run_product(Product *p) except -1                          # operands must satisfy blas_takes; lets go of the GIL
