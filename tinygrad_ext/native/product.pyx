# cython: language_level=3
"""How a product is computed: own loops where a BLAS call would cost more than the work, BLAS otherwise.

A large product is cut along its rows or columns for our own threads, with BLAS on one thread in each call: below
n = 512 that is faster than OpenBLAS's own threads. A BLAS may sum an element in another order when it stands elsewhere
in a call, so the cuts are those of the shape and of the processor. One thread makes the same calls as four, one after
the other, which costs it 1 to 5 in a hundred; cuts that all kernels of a BLAS treat alike could not be found.
"""
from libc.string cimport memset
from tinygrad_ext.core.blas cimport (
    BLAS_COL_MAJOR, BLAS_NO_TRANS, BLAS_ROW_MAJOR, BLAS_TRANS, cgemm, ddot, dgemm, dgemv, ensure_blas, sdot, sgemm, sgemv,
    zgemm,
)
from tinygrad_ext.core.parallel cimport mark_region, parallel_for
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_C64, TGX_F32, TGX_F64, is_complex, is_float, is_integral

cdef extern from "unistd.h" nogil:
    long sysconf(int)
    int _SC_NPROCESSORS_CONF

cdef extern from "product.h" nogil:
    void tgx_tiny_f32(const tgx_shape *s, float alpha, const float *a, const float *b, float beta, float *c)
    void tgx_tiny_f64(const tgx_shape *s, double alpha, const double *a, const double *b, double beta, double *c)
    void tgx_integer_product(const tgx_shape *s, int size, int64_t alpha, const void *a, const void *b, int64_t beta, void *c)

cdef enum How:
    TINY, INTEGER, DOT, MATRIX_VECTOR, VECTOR_MATRIX, GEMM

cdef enum:
    TINY_WORK = 1024            # multiplications below which our loop beats a BLAS call
    QUIET_WORK = 65536          # work below which letting go of the GIL costs more than it gives
    LONE_VECTOR = 8192          # work up to which BLAS libraries use one thread anyway
    LONE_MATRIX = 131072
    STEP = 32                   # cuts fall on multiples of it, as micro-kernels take 4 to 32 rows at a time
    SHORTEST = 128              # rows or columns of a piece: shorter ones make BLAS pack the other operand too often
    MIN_WORK = 2 << 20          # multiplications of a piece

processors = sysconf(_SC_NPROCESSORS_CONF)


cdef void begin_product(Product *p, int tid) noexcept:
    p.tid = tid
    p.alpha.f, p.alpha.im, p.alpha.i = 1, 0, 1
    p.beta.f, p.beta.im, p.beta.i = 0, 0, 0
    p.ndim, p.batches = 0, 1


cdef bint blas_takes(int64_t rows, int64_t cols, int64_t row, int64_t col) noexcept nogil:
    """Whether BLAS can read a matrix with these steps without a copy."""
    return ((col == 1 or cols <= 1) and (row >= cols or rows <= 1)) or ((row == 1 or rows <= 1) and (col >= rows or cols <= 1))


cdef inline int _layout(int order, int64_t rows, int64_t cols, int64_t row, int64_t col, int64_t *ld) noexcept nogil:
    """BLAS's name for the layout of a matrix, and its leading dimension."""
    cdef bint by_rows = (col == 1 or cols <= 1) and (row >= cols or rows <= 1)
    if by_rows:
        ld[0] = max(cols, 1) if rows <= 1 else row
    else:
        ld[0] = max(rows, 1) if cols <= 1 else col
    return BLAS_NO_TRANS if by_rows == (order == BLAS_ROW_MAJOR) else BLAS_TRANS


cdef int _plan(Product *p) noexcept:
    cdef tgx_shape *s = &p.s
    cdef double work = <double>s.m * <double>s.n * <double>s.k
    if is_integral(p.tid):
        p.how = INTEGER
    elif is_float(p.tid) and work <= TINY_WORK:
        p.how = TINY
    elif is_float(p.tid) and s.n == 1 and s.m == 1:
        p.how = DOT
    elif is_float(p.tid) and s.n == 1:
        p.how = MATRIX_VECTOR
    elif is_float(p.tid) and s.m == 1:
        p.how = VECTOR_MATRIX
    else:
        p.how = GEMM
    p.order = BLAS_ROW_MAJOR if (s.c_col == 1 or s.n == 1) and (s.c_row >= s.n or s.m == 1) else BLAS_COL_MAJOR
    if p.order == BLAS_ROW_MAJOR:
        p.ldc = s.n if s.m == 1 else s.c_row
    else:
        p.ldc = s.m if s.n == 1 else s.c_col
    p.a_trans = _layout(p.order, s.m, s.k, s.a_row, s.a_col, &p.lda)
    p.b_trans = _layout(p.order, s.k, s.n, s.b_row, s.b_col, &p.ldb)
    return 0


# ---- one matrix ----------------------------------------------------------------------------------------------------

cdef void _gemm(const Product *p, char *a, char *b, char *c, int64_t m, int64_t n) noexcept nogil:
    cdef float[2] af
    cdef float[2] bf
    cdef double[2] ad
    cdef double[2] bd
    cdef int64_t k = p.s.k
    if p.tid == TGX_F32:
        sgemm(p.order, p.a_trans, p.b_trans, m, n, k, <float>p.alpha.f, <float *>a, p.lda, <float *>b, p.ldb,
              <float>p.beta.f, <float *>c, p.ldc)
    elif p.tid == TGX_F64:
        dgemm(p.order, p.a_trans, p.b_trans, m, n, k, p.alpha.f, <double *>a, p.lda, <double *>b, p.ldb, p.beta.f,
              <double *>c, p.ldc)
    elif p.tid == TGX_C64:
        af[0], af[1], bf[0], bf[1] = <float>p.alpha.f, <float>p.alpha.im, <float>p.beta.f, <float>p.beta.im
        cgemm(p.order, p.a_trans, p.b_trans, m, n, k, af, a, p.lda, b, p.ldb, bf, c, p.ldc)
    else:
        ad[0], ad[1], bd[0], bd[1] = p.alpha.f, p.alpha.im, p.beta.f, p.beta.im
        zgemm(p.order, p.a_trans, p.b_trans, m, n, k, ad, a, p.lda, b, p.ldb, bd, c, p.ldc)


cdef void _gemv(int tid, int order, int trans, int64_t rows, int64_t cols, double alpha, char *a, int64_t lda,
                char *x, int64_t x_step, double beta, char *y, int64_t y_step) noexcept nogil:
    """y = alpha op(A) x + beta y with op(A) of (rows, cols). y is cleared here: BLAS libraries differ in 0 * nan."""
    cdef int64_t i, m = rows if trans == BLAS_NO_TRANS else cols, n = cols if trans == BLAS_NO_TRANS else rows
    if beta == 0:
        for i in range(rows):
            memset(y + i * y_step * ITEMSIZE[tid], 0, ITEMSIZE[tid])
        beta = 1
    if tid == TGX_F32:
        sgemv(order, trans, m, n, <float>alpha, <float *>a, lda, <float *>x, x_step, <float>beta, <float *>y, y_step)
    else:
        dgemv(order, trans, m, n, alpha, <double *>a, lda, <double *>x, x_step, beta, <double *>y, y_step)


cdef void _dot(const Product *p, char *a, char *b, char *c) noexcept nogil:
    cdef int64_t k = p.s.k
    cdef double old = 0
    if p.tid == TGX_F32:
        old = (<float *>c)[0] * p.beta.f if p.beta.f != 0 else 0
        (<float *>c)[0] = <float>(p.alpha.f * sdot(k, <float *>a, p.s.a_col, <float *>b, p.s.b_row) + old)
    else:
        old = (<double *>c)[0] * p.beta.f if p.beta.f != 0 else 0
        (<double *>c)[0] = p.alpha.f * ddot(k, <double *>a, p.s.a_col, <double *>b, p.s.b_row) + old


cdef void _one(const Product *p, char *a, char *b, char *c, int64_t m, int64_t n) noexcept nogil:
    """The product of one item, or of m rows and n columns of it."""
    cdef tgx_shape part
    if p.how == TINY and p.tid == TGX_F32:
        tgx_tiny_f32(&p.s, <float>p.alpha.f, <float *>a, <float *>b, <float>p.beta.f, <float *>c)
    elif p.how == TINY:
        tgx_tiny_f64(&p.s, p.alpha.f, <double *>a, <double *>b, p.beta.f, <double *>c)
    elif p.how == INTEGER:
        part = p.s
        part.m, part.n = m, n
        tgx_integer_product(&part, ITEMSIZE[p.tid], p.alpha.i, a, b, p.beta.i, c)
    elif p.how == DOT:
        _dot(p, a, b, c)
    elif p.how == MATRIX_VECTOR:
        _gemv(p.tid, p.order, p.a_trans, m, p.s.k, p.alpha.f, a, p.lda, b, p.s.b_row, p.beta.f, c, p.s.c_row)
    elif p.how == VECTOR_MATRIX:
        _gemv(p.tid, p.order, BLAS_TRANS if p.b_trans == BLAS_NO_TRANS else BLAS_NO_TRANS, n, p.s.k, p.alpha.f, b, p.ldb,
              a, p.s.a_col, p.beta.f, c, p.s.c_col)
    else:
        _gemm(p, a, b, c, m, n)


# ---- cutting -------------------------------------------------------------------------------------------------------

cdef struct Cut:
    const Product *p
    char *a
    char *b
    char *c
    bint rows
    int64_t pieces


cdef int64_t _piece_count(const Product *p, double work) noexcept nogil:
    """Into how many calls an item is cut. Nothing that changes between two runs may come in here."""
    cdef int64_t pieces = min(processors, max(p.s.m, p.s.n) // SHORTEST)
    return max(min(pieces, <int64_t>(work / MIN_WORK)), 1)


cdef int _run_pieces(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    """Some pieces of one item, each by a call of its own; the last takes what is no whole step."""
    cdef Cut *cut = <Cut *>ctx
    cdef int64_t all_of = cut.p.s.m if cut.rows else cut.p.s.n, steps = all_of // STEP, piece, first, last
    cdef int before = mark_region(1)
    for piece in range(lo, hi):
        first = piece * steps // cut.pieces * STEP
        last = all_of if piece + 1 == cut.pieces else (piece + 1) * steps // cut.pieces * STEP
        _run_range(cut, first, last)
    mark_region(before)
    return 0


cdef void _run_range(Cut *cut, int64_t first, int64_t last) noexcept nogil:
    cdef const Product *p = cut.p
    cdef int64_t size = ITEMSIZE[p.tid]
    if cut.rows:
        _one(p, cut.a + first * p.s.a_row * size, cut.b, cut.c + first * p.s.c_row * size, last - first, p.s.n)
    else:
        _one(p, cut.a, cut.b + first * p.s.b_col * size, cut.c + first * p.s.c_col * size, p.s.m, last - first)


cdef int64_t _lone_work(const Product *p) noexcept nogil:
    """Work up to which a call needs no word about threads."""
    cdef int64_t lone = LONE_MATRIX if p.how == GEMM and min(p.s.m, p.s.n) > 1 else LONE_VECTOR    # a thin matrix is a vector
    return lone // 4 if is_complex(p.tid) else lone                                # a complex multiplication is four


cdef int _item(const Product *p, int64_t index) noexcept nogil:
    """Item number `index` of the batch, on as many threads as pay."""
    cdef Cut cut
    cdef int d
    cdef int64_t at
    cdef double work
    cut.p, cut.a, cut.b, cut.c = p, p.a, p.b, p.c
    for d in range(p.ndim - 1, -1, -1):
        at = index % p.sizes[d]
        index //= p.sizes[d]
        cut.a += at * p.a_step[d]
        cut.b += at * p.b_step[d]
        cut.c += at * p.c_step[d]
    work = <double>p.s.m * <double>p.s.n * <double>p.s.k
    if p.how == TINY or work <= _lone_work(p):
        _one(p, cut.a, cut.b, cut.c, p.s.m, p.s.n)
        return 0
    cut.rows = p.s.m >= p.s.n
    cut.pieces = 1 if p.whole else _piece_count(p, work)
    return parallel_for(_run_pieces, &cut, cut.pieces, 1)


cdef int _run_items(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    cdef const Product *p = <const Product *>ctx
    cdef ptrdiff_t i
    for i in range(lo, hi):
        _item(p, i)
    return 0


cdef int run_product(Product *p) except -1:
    cdef double work
    if p.s.m == 0 or p.s.n == 0 or p.batches == 0:
        return 0
    _plan(p)
    work = <double>p.s.m * <double>p.s.n * <double>p.s.k
    if p.how > INTEGER:
        ensure_blas()
    p.whole = False
    if work * p.batches <= QUIET_WORK:
        _run_items(p, 0, p.batches)
        return 0
    with nogil:
        # few large items: each is cut; many: they are dealt out whole
        p.whole = p.batches >= 4 and (work < 4.0 * MIN_WORK or p.batches >= 4 * processors)
        if p.whole:
            parallel_for(_run_items, p, p.batches, <ptrdiff_t>(MIN_WORK / (work + 1)) + 1)
        else:
            _run_items(p, 0, p.batches)
    return 0
