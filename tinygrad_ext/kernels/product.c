/* How a product is computed: own loops where a BLAS call would cost more than the work, BLAS otherwise.
 *
 * A large product is cut along its rows or columns for our own threads, with BLAS on one thread in each call: below
 * n = 512 that is faster than OpenBLAS's own threads. A BLAS may sum an element in another order when it stands elsewhere
 * in a call, so the cuts are those of the shape and of the processor. One thread makes the same calls as four, one after
 * the other, which costs it 1 to 5 in a hundred; cuts that all kernels of a BLAS treat alike could not be found. */
#include "product.h"
#include "isa.h"
#include "product_blocks.h"

enum how { SMALL, WIDE, INTEGER, DOT, MATRIX_VECTOR, VECTOR_MATRIX, GEMM };

enum {
    QUIET_WORK = 65536,        /* work below which a batch is not dealt out */
    LONE_VECTOR = 8192,        /* work up to which BLAS libraries use one thread anyway */
    LONE_MATRIX = 131072,
    STEP = 32,                 /* cuts fall on multiples of it, as micro-kernels take 4 to 32 rows at a time */
    SHORTEST = 128,            /* rows or columns of a piece: shorter ones make BLAS pack the other operand too often */
    MIN_WORK = 1 << 20,        /* multiplications of a piece */
    OWN_WORK = 1 << 19,        /* the same of own loops, which prepare nothing: 9 us */
    MIN_VECTOR_WORK = 1 << 18, /* the same where each number of a matrix is read once */
};

/* ---- small and integer products ---------------------------------------------------------------------------------- */

void tgx_small_product_base(const tgx_small *, int);
void tgx_small_product_avx2(const tgx_small *, int);
void tgx_small_product_avx512(const tgx_small *, int);

void tgx_small_product(const tgx_small *p, int dtype) {
    static void (*found)(const tgx_small *, int);
    if (!found) found = TGX_PICK(tgx_small_product);
    found(p, dtype);
}

void tgx_small_sums_base(const tgx_small *, ptrdiff_t, const ptrdiff_t *, int);
void tgx_small_sums_avx2(const tgx_small *, ptrdiff_t, const ptrdiff_t *, int);
void tgx_small_sums_avx512(const tgx_small *, ptrdiff_t, const ptrdiff_t *, int);

static int64_t at_least(int64_t n, int64_t limit) { return n > limit ? n : limit; }
static int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }

/* A small product, or some of its columns, or rows. */
typedef struct { const tgx_small *p; int dtype, rows; int64_t pieces; } shared_t;

static int run_shared(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const shared_t *job = context;
    const int64_t all = job->rows ? job->p->s.m : job->p->s.n, steps = all / STEP, size = tgx_itemsize[job->dtype];
    const int64_t from = lo * steps / job->pieces * STEP, to = hi == job->pieces ? all : hi * steps / job->pieces * STEP;
    tgx_small part = *job->p;
    if (job->rows) part.s.m = to - from, part.a = (const char *)part.a + from * part.s.a_row * size;
    else part.s.n = to - from, part.b = (const char *)part.b + from * part.s.b_col * size;
    part.c = (char *)part.c + from * (job->rows ? part.s.c_row : part.s.c_col) * size;
    if (part.start) part.start = (const char *)part.start + from * (job->rows ? part.start_row : part.start_col) * size;
    tgx_small_product(&part, job->dtype);
    return 0;
}

/* Columns are shared, which each thread lays out for itself, or rows where these are few. An element has the same bits in any piece, so
 * the number of threads may say how many there are: one does not lay out twice. */
void tgx_middle_product(const tgx_services *services, const tgx_small *p, int dtype) {
    const double work = (double)p->s.m * (double)p->s.n * (double)p->s.k;
    shared_t job = {p, dtype, p->s.n < 2 * STEP, 1};
    const int64_t steps = (job.rows ? p->s.m : p->s.n) / STEP;
    if (work < 2.0 * OWN_WORK || steps < 2) {
        tgx_small_product(p, dtype);
        return;
    }
    job.pieces = at_most(at_most(services->num_threads(), steps), (int64_t)(work / OWN_WORK));
    services->parallel_for(run_shared, &job, job.pieces, 1);
}

extern tgx_row_product *const tgx_row_products_base[2], *const tgx_row_products_avx2[2], *const tgx_row_products_avx512[2];

tgx_row_product *const *tgx_row_products(void) {
    static tgx_row_product *const *found;
    if (!found) found = *TGX_PICK(tgx_row_products);
    return found;
}

extern const tgx_packed_products tgx_packed_base[2], tgx_packed_avx2[2], tgx_packed_avx512[2];

const tgx_packed_products *tgx_packed(int dtype) {
    static const tgx_packed_products *found;
    if (!found) found = *TGX_PICK(tgx_packed);
    return found + (dtype == TGX_F64);
}

enum {
    MIDDLE_WORK = 2 << 20,     /* multiplications up to which they beat a BLAS call */
    MIDDLE_ROWS = 16,          /* fewer do not pay for laying out the other operand */
    MIDDLE_COLUMNS = 24,       /* fewer leave vectors empty, but for eight and sixteen */
};

int tgx_is_middle(int64_t m, int64_t n, int64_t k) {
    static int level = -1;
    if (m < MIDDLE_ROWS || (n < MIDDLE_COLUMNS && (n % 8 || !n)) || k > TGX_MIDDLE_DEPTH || (m | n) >> 20 || m * n * k > MIDDLE_WORK) return 0;
    if (level < 0) level = tgx_cpu_level();
    return level > 0;
}

enum {
    WIDE_SIDE = 32,            /* rows and columns of what product_middle.h computes piece by piece, and of a piece */
    WIDE_RESULT = 3 << 19,     /* bytes of results through which the steps of TGX_MIDDLE_DEPTH may go */
    NEAR = 512 << 10,          /* bytes of rows that stay in the second cache while the columns pass */
};

/* Whether it is larger still, but these loops beat a BLAS call all the same: 105 to 110 of 118 GFLOP/s where OpenBLAS, which lays out
 * both operands, makes 89 to 103 on AMD's processors with AVX-512. */
static int is_wide(const tgx_shape *s, int dtype) {
    static int has = -1;
    const double steps = (double)((s->k + TGX_MIDDLE_DEPTH - 1) / TGX_MIDDLE_DEPTH);
    if (s->m < WIDE_SIDE || s->n < WIDE_SIDE || s->k < WIDE_SIDE) return 0;
    if ((double)s->m * (double)s->n * (double)tgx_itemsize[dtype] * steps > WIDE_RESULT) return 0;
#if defined(__x86_64__)
    if (has < 0) has = tgx_cpu_level() == 2 && __builtin_cpu_is("amd");
#endif
    return has > 0;
}

void tgx_integer_product_base(const tgx_shape *, int, int64_t, const void *, const void *, int64_t, void *);
void tgx_integer_product_avx2(const tgx_shape *, int, int64_t, const void *, const void *, int64_t, void *);
void tgx_integer_product_avx512(const tgx_shape *, int, int64_t, const void *, const void *, int64_t, void *);

void tgx_integer_product(const tgx_shape *s, int size, int64_t alpha, const void *a, const void *b, int64_t beta, void *c) {
    static void (*found)(const tgx_shape *, int, int64_t, const void *, const void *, int64_t, void *);
    if (!found) found = TGX_PICK(tgx_integer_product);
    found(s, size, alpha, a, b, beta, c);
}

/* ---- one matrix -------------------------------------------------------------------------------------------------- */

static double work_of(const tgx_shape *s) { return (double)s->m * (double)s->n * (double)s->k; }


static enum how choose(const tgx_product *p, double work) {
    const tgx_shape *s = &p->s;
    if (tgx_is_integral(p->dtype)) return INTEGER;
    if (tgx_is_small(s->m, s->n, s->k)) return SMALL;
    if (is_wide(s, p->dtype)) return WIDE;
    if (s->n == 1) return s->m == 1 ? DOT : MATRIX_VECTOR;
    return s->m == 1 ? VECTOR_MATRIX : GEMM;
}

/* BLAS's name for the layout of a matrix, and its leading dimension. */
static int layout(int order, int64_t rows, int64_t cols, int64_t row, int64_t col, int64_t *ld) {
    int by_rows = (col == 1 || cols <= 1) && (row >= cols || rows <= 1);
    if (by_rows) *ld = rows <= 1 ? at_least(cols, 1) : row;
    else *ld = cols <= 1 ? at_least(rows, 1) : col;
    return by_rows == (order == TGX_ROW_MAJOR) ? TGX_NO_TRANS : TGX_TRANS;
}

static void describe(tgx_product *p) {
    const tgx_shape *s = &p->s;
    p->order = (s->c_col == 1 || s->n == 1) && (s->c_row >= s->n || s->m == 1) ? TGX_ROW_MAJOR : TGX_COL_MAJOR;
    if (p->order == TGX_ROW_MAJOR) p->ldc = s->m == 1 ? s->n : s->c_row;
    else p->ldc = s->n == 1 ? s->m : s->c_col;
    p->a_trans = layout(p->order, s->m, s->k, s->a_row, s->a_col, &p->lda);
    p->b_trans = layout(p->order, s->k, s->n, s->b_row, s->b_col, &p->ldb);
}

static void gemm(const tgx_product *p, char *a, char *b, char *c, int64_t m, int64_t n) {
    const tgx_scalar *x = &p->alpha, *y = &p->beta;
    int64_t k = p->s.k;
    if (p->dtype == TGX_F32)
        p->blas->sgemm(p->order, p->a_trans, p->b_trans, m, n, k, (float)x->f, (float *)a, p->lda, (float *)b, p->ldb, (float)y->f,
                       (float *)c, p->ldc);
    else
        p->blas->dgemm(p->order, p->a_trans, p->b_trans, m, n, k, x->f, (double *)a, p->lda, (double *)b, p->ldb, y->f, (double *)c,
                       p->ldc);
}

/* y = alpha op(A) x + beta y with op(A) of (rows, cols). y is cleared here: BLAS libraries differ in 0 * nan. */
static void gemv(const tgx_product *p, int trans, int64_t rows, int64_t cols, char *a, int64_t lda, char *x, int64_t x_step, char *y,
                 int64_t y_step) {
    int64_t m = trans == TGX_NO_TRANS ? rows : cols, n = trans == TGX_NO_TRANS ? cols : rows, size = tgx_itemsize[p->dtype];
    double alpha = p->alpha.f, beta = p->beta.f;
    if (beta == 0) {
        for (int64_t i = 0; i < rows; i++) memset(y + i * y_step * size, 0, (size_t)size);
        beta = 1;
    }
    if (p->dtype == TGX_F32)
        p->blas->sgemv(p->order, trans, m, n, (float)alpha, (float *)a, lda, (float *)x, x_step, (float)beta, (float *)y, y_step);
    else p->blas->dgemv(p->order, trans, m, n, alpha, (double *)a, lda, (double *)x, x_step, beta, (double *)y, y_step);
}

/* A long sum is that of its parts, whose size depends on its length alone, so that threads may share them. */
enum { SUM_PART = 1 << 14, MOST_PARTS = 64 };
typedef struct { const tgx_product *p; const char *a, *b; int64_t part; double sums[MOST_PARTS]; } sums_t;

static int run_dots(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    sums_t *job = context;
    const tgx_shape *s = &job->p->s;
    const tgx_blas *blas = job->p->blas;
    const int before = job->p->services->mark_region(1);
    for (int64_t i = lo, from = lo * job->part; i < hi; i++, from += job->part) {
        const int64_t n = at_most(job->part, s->k - from), x = from * s->a_col, y = from * s->b_row;
        if (job->p->dtype == TGX_F32) job->sums[i] = blas->sdot(n, (const float *)job->a + x, s->a_col, (const float *)job->b + y, s->b_row);
        else job->sums[i] = blas->ddot(n, (const double *)job->a + x, s->a_col, (const double *)job->b + y, s->b_row);
    }
    job->p->services->mark_region(before);
    return 0;
}

static void dot(const tgx_product *p, char *a, char *b, char *c) {
    sums_t job = {.p = p, .a = a, .b = b, .part = at_least(SUM_PART, (p->s.k + MOST_PARTS - 1) / MOST_PARTS)};
    const int64_t parts = (p->s.k + job.part - 1) / job.part;
    double sum = 0, alpha = p->alpha.f, beta = p->beta.f;
    p->services->parallel_for(run_dots, &job, parts, 2);
    for (int64_t i = 0; i < parts; i++) sum += job.sums[i];
    if (p->dtype == TGX_F32) *(float *)c = (float)(alpha * sum + (beta != 0 ? *(float *)c * beta : 0));
    else *(double *)c = alpha * sum + (beta != 0 ? *(double *)c * beta : 0);
}

static void small(const tgx_product *p, char *a, char *b, char *c) {
    tgx_small t = {p->s, a, b, c, p->alpha.f, p->beta.f, p->beta.f == 0 ? NULL : c, p->s.c_row, p->s.c_col};
    if (p->whole) tgx_small_product(&t, p->dtype);
    else tgx_shared_product(p->services, &t, p->dtype);
}

/* The same for some rows and columns of a deep one: the sums of so many steps at a time, one after the other. */
static void deep(const tgx_product *p, const char *a, const char *b, char *c, int64_t m, int64_t n) {
    const int64_t k = p->s.k, parts = (k + TGX_MIDDLE_DEPTH - 1) / TGX_MIDDLE_DEPTH, size = tgx_itemsize[p->dtype];
    tgx_small t = {.s = p->s, .c = c, .alpha = p->alpha.f, .start_row = p->s.c_row, .start_col = p->s.c_col};
    t.s.m = m, t.s.n = n;
    for (int64_t part = 0; part < parts; part++) {
        const int64_t from = part * k / parts;
        t.s.k = (part + 1) * k / parts - from;
        t.a = a + from * p->s.a_col * size, t.b = b + from * p->s.b_row * size;
        t.beta = part ? 1 : p->beta.f, t.start = t.beta == 0 ? NULL : c;
        tgx_small_product(&t, p->dtype);
    }
}

/* The product of one item, or of m rows and n columns of it. */
static void one(const tgx_product *p, char *a, char *b, char *c, int64_t m, int64_t n) {
    const tgx_shape *s = &p->s;
    tgx_shape part = *s;
    switch ((enum how)p->how) {
    case SMALL: small(p, a, b, c); return;
    case WIDE: deep(p, a, b, c, m, n); return;
    case INTEGER:
        part.m = m, part.n = n;
        tgx_integer_product(&part, tgx_itemsize[p->dtype], p->alpha.i, a, b, p->beta.i, c);
        return;
    case DOT: dot(p, a, b, c); return;
    case MATRIX_VECTOR: gemv(p, p->a_trans, m, s->k, a, p->lda, b, s->b_row, c, s->c_row); return;
    case VECTOR_MATRIX:
        gemv(p, p->b_trans == TGX_NO_TRANS ? TGX_TRANS : TGX_NO_TRANS, n, s->k, b, p->ldb, a, s->a_col, c, s->c_col);
        return;
    case GEMM: gemm(p, a, b, c, m, n);
    }
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const tgx_product *p;
    char *a, *b, *c;
    int rows;
    int64_t pieces;
} cut_t;

/* Into how many calls an item is cut. Nothing that changes between two runs may come in here. */
static int64_t piece_count(const tgx_product *p, double work) {
    int64_t pieces = at_most(p->services->processors(), at_least(p->s.m, p->s.n) / SHORTEST);
    return at_least(at_most(pieces, (int64_t)(work / (p->how == GEMM ? MIN_WORK : MIN_VECTOR_WORK))), 1);
}

static void run_part(const cut_t *cut, int64_t first, int64_t last) {
    const tgx_product *p = cut->p;
    int64_t size = tgx_itemsize[p->dtype];
    if (cut->rows) one(p, cut->a + first * p->s.a_row * size, cut->b, cut->c + first * p->s.c_row * size, last - first, p->s.n);
    else one(p, cut->a, cut->b + first * p->s.b_col * size, cut->c + first * p->s.c_col * size, p->s.m, last - first);
}

/* Some pieces of one item, each by a call of its own; the last takes what is no whole step. */
static int run_pieces(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const cut_t *cut = context;
    int64_t all = cut->rows ? cut->p->s.m : cut->p->s.n, steps = all / STEP;
    int before = cut->p->services->mark_region(1);
    for (ptrdiff_t piece = lo; piece < hi; piece++)
        run_part(cut, piece * steps / cut->pieces * STEP, piece + 1 == cut->pieces ? all : (piece + 1) * steps / cut->pieces * STEP);
    cut->p->services->mark_region(before);
    return 0;
}

/* Some pieces of an item of WIDE: rows that stay near, or columns where these are more. An element has the same bits in any piece. */
static int run_wide(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const cut_t *cut = context;
    const int64_t all = cut->rows ? cut->p->s.m : cut->p->s.n;
    for (ptrdiff_t piece = lo; piece < hi; piece++) run_part(cut, piece * all / cut->pieces, (piece + 1) * all / cut->pieces);
    return 0;
}

static int wide(cut_t *cut, double work) {
    const tgx_product *p = cut->p;
    const int64_t all = cut->rows ? p->s.m : p->s.n, near = at_least(NEAR / (p->s.k * tgx_itemsize[p->dtype]), 3 * WIDE_SIDE);
    const int64_t threads = p->whole ? 1 : at_most(p->services->processors(), (int64_t)(work / MIN_WORK));
    cut->pieces = at_least(at_most(at_least((all + near - 1) / near, threads), all / WIDE_SIDE), 1);
    return p->services->parallel_for(run_wide, cut, cut->pieces, 1);
}

/* Work up to which a call needs no word about threads. */
static double lone_work(const tgx_product *p) {
    return p->how == GEMM && p->s.m > 1 && p->s.n > 1 ? LONE_MATRIX : LONE_VECTOR;    /* a thin matrix is a vector */
}

/* Item number `index` of the batch, on as many threads as pay. */
static int item(const tgx_product *p, int64_t index) {
    cut_t cut = {p, p->a, p->b, p->c, p->s.m >= p->s.n, 1};
    double work = work_of(&p->s);
    cut.a += tgx_item_place(p, p->a_step, index), cut.b += tgx_item_place(p, p->b_step, index), cut.c += tgx_item_place(p, p->c_step, index);
    if (p->how == WIDE) return wide(&cut, work);
    if (p->how == SMALL || p->how == DOT || work <= lone_work(p)) {
        one(p, cut.a, cut.b, cut.c, p->s.m, p->s.n);
        return 0;
    }
    if (!p->whole) cut.pieces = piece_count(p, work);
    return p->services->parallel_for(run_pieces, &cut, cut.pieces, 1);
}

static int run_items(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    int code = 0;
    for (ptrdiff_t i = lo; i < hi && !code; i++) code = item(context, i);
    return code;
}

/* The same where an item is one sum: those along the last dimension of the batch together. */
static int run_sums(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_product *p = context;
    const int64_t last = p->rank - 1, size = tgx_itemsize[p->dtype];
    const ptrdiff_t steps[3] = {p->a_step[last] / size, p->b_step[last] / size, p->c_step[last] / size};
    tgx_small t = {.s = p->s, .alpha = p->alpha.f};
    for (ptrdiff_t i = lo, n; i < hi; i += n) {
        n = at_most(p->sizes[last] - i % p->sizes[last], hi - i);
        t.a = p->a + tgx_item_place(p, p->a_step, i), t.b = p->b + tgx_item_place(p, p->b_step, i);
        t.c = p->c + tgx_item_place(p, p->c_step, i);
        TGX_PICK(tgx_small_sums)(&t, n, steps, p->dtype);
    }
    return 0;
}

int tgx_product_run(tgx_call *c, tgx_product *p) {
    double work = work_of(&p->s);
    p->how = choose(p, work), p->services = c->services, p->whole = 0;
    if (p->how == SMALL && p->batches == 1) {
        small(p, p->a, p->b, p->c);
        return 0;
    }
    if (p->s.m == 0 || p->s.n == 0 || p->batches == 0) return 0;
    if (p->how == GEMM && p->room && tgx_is_block_product(p->dtype, p->s.m, p->s.n, p->s.k)) return tgx_block_product_run(c->services, p);
    describe(p);
    if (p->how > INTEGER && !(p->blas = c->services->blas())) return TGX_FAILED;
    /* few large items: each is cut; many: they are dealt out whole */
    if (work * (double)p->batches > QUIET_WORK)
        p->whole = p->batches >= 4 && (work < 4.0 * MIN_WORK || p->batches >= 4 * c->services->processors());
    const double least = p->how < INTEGER ? OWN_WORK : MIN_WORK;
    const int sums = p->how == SMALL && p->s.m == 1 && p->s.n == 1 && p->rank && p->beta.f == 0 && tgx_is_tiny(1, 1, p->s.k);
    int (*run)(void *, ptrdiff_t, ptrdiff_t) = sums ? run_sums : run_items;
    if (p->whole) return c->services->parallel_for(run, p, p->batches, (ptrdiff_t)(least / (work + 1)) + 1);
    return run(p, 0, p->batches);
}
