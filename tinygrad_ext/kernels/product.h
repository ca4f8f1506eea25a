/* Matrix products of one item or of a batch, by the loops that suit their size and dtype. Knows no op.
 *
 * C = alpha A B + beta C with A (m, k), B (k, n), C (m, n). C is not read when beta is 0. */
#ifndef TGX_PRODUCT_H
#define TGX_PRODUCT_H
#include "blas.h"
#include "tgx.h"

enum {
    TGX_TINY_WORK = 1024,      /* multiplications up to which our loops beat a BLAS call */
    TGX_TINY_MATRIX = 8192,    /* the same where they use vectors */
    TGX_TINY_DEPTH = 64,       /* and a sum in order is as good as any */
    TGX_TINY_PACKED = TGX_TINY_MATRIX / 4,
    TGX_MIDDLE_DEPTH = 256,    /* of products that product_middle.h computes */
};

/* Whether a product of floats has so little work. */
static inline int tgx_is_tiny(int64_t m, int64_t n, int64_t k) {
    if ((m | n | k) >> 20 && (double)m * (double)n * (double)k > TGX_TINY_MATRIX) return 0;    /* more than 63 bits may count */
    int64_t work = m * n * k;
    return work <= TGX_TINY_WORK || (work <= TGX_TINY_MATRIX && m >= 4 && n >= 8 && k <= TGX_TINY_DEPTH);
}

/* Whether it is larger, but own loops are still quicker than BLAS on this processor. */
int tgx_is_middle(int64_t m, int64_t n, int64_t k);
static inline int tgx_is_small(int64_t m, int64_t n, int64_t k) { return tgx_is_tiny(m, n, k) || tgx_is_middle(m, n, k); }

/* Steps of rows and columns are in elements and may be anything. */
typedef struct {
    ptrdiff_t m, n, k;
    ptrdiff_t a_row, a_col, b_row, b_col, c_row, c_col;
} tgx_shape;

typedef struct {
    tgx_shape s;               /* of one item; BLAS must be able to read and write all three matrices, see tgx_blas_takes */
    int dtype;
    char *a, *b, *c;
    tgx_scalar alpha, beta;
    int rank;                  /* dimensions of the batch, and their sizes and steps in bytes */
    int64_t batches;
    int64_t sizes[TGX_MAX_DIMS], a_step[TGX_MAX_DIMS], b_step[TGX_MAX_DIMS], c_step[TGX_MAX_DIMS];
    void *room;                /* see product_blocks.h; NULL: none */
    /* set by tgx_product_run */
    const tgx_services *services;
    const tgx_blas *blas;
    int how, whole;            /* whole: items are not cut */
    int order, a_trans, b_trans;
    int64_t lda, ldb, ldc;
} tgx_product;

/* Where item `index` of a batch begins, in bytes. */
static inline int64_t tgx_item_place(const tgx_product *p, const int64_t *step, int64_t index) {
    int64_t at = 0;
    for (int d = p->rank - 1; d >= 0; d--) at += index % p->sizes[d] * step[d], index /= p->sizes[d];
    return at;
}

/* C = alpha A B + beta S of float32 or float64 matrices where tgx_is_small; S may be C, or NULL. */
typedef struct {
    tgx_shape s;
    const void *a, *b;
    void *c;
    double alpha, beta;
    const void *start;
    ptrdiff_t start_row, start_col;
} tgx_small;
void tgx_small_product(const tgx_small *p, int dtype);
/* The same by as many threads as pay. */
void tgx_middle_product(const tgx_services *services, const tgx_small *p, int dtype);
static inline void tgx_shared_product(const tgx_services *services, const tgx_small *p, int dtype) {
    if (tgx_is_tiny(p->s.m, p->s.n, p->s.k)) tgx_small_product(p, dtype);
    else tgx_middle_product(services, p, dtype);
}

/* One row, of k numbers `step` apart, times a matrix of n columns, with the row `start` added, or NULL; c and start lie in one
 * piece. The same sums, without a question asked. The functions for float32 and float64. */
typedef void tgx_row_product(const void *x, ptrdiff_t step, const void *b, ptrdiff_t b_row, ptrdiff_t b_col, ptrdiff_t n, ptrdiff_t k,
                             const void *start, void *c);
tgx_row_product *const *tgx_row_products(void);

/* Products by a matrix B (k, n) that is laid out once, by `lay`, into tgx_packed_count numbers: C (m, n) = S + A B. Rows of S and C
 * lie in one piece each; S may be C, or NULL. The functions for float32 and float64. */
typedef struct {
    void (*lay)(const tgx_shape *s, const void *b, void *packed);      /* of s it takes n, k and the steps of B */
    void (*times)(const void *packed, ptrdiff_t n, ptrdiff_t k, ptrdiff_t m, const void *a, ptrdiff_t a_row, ptrdiff_t a_col,
                  const void *start, ptrdiff_t start_row, void *c, ptrdiff_t c_row);
} tgx_packed_products;
const tgx_packed_products *tgx_packed(int dtype);
static inline int64_t tgx_packed_count(int64_t n, int64_t k) { return (n + 31) / 32 * 32 * k; }

/* The same numbers as the product of the transposed matrices in the other order. */
static inline tgx_small tgx_flipped(const tgx_small *p) {
    const tgx_shape *s = &p->s;
    return (tgx_small){.s = {.m = s->n, .n = s->m, .k = s->k, .a_row = s->b_col, .a_col = s->b_row, .b_row = s->a_col,
                             .b_col = s->a_row, .c_row = s->c_col, .c_col = s->c_row},
                       .a = p->b, .b = p->a, .c = p->c, .alpha = p->alpha, .beta = p->beta, .start = p->start,
                       .start_row = p->start_col, .start_col = p->start_row};
}

/* 0, TGX_FAILED or a code of tgx_error. */
int tgx_product_run(tgx_call *c, tgx_product *p);

/* Whether BLAS can read a matrix with these steps without a copy. */
static inline int tgx_blas_takes(int64_t rows, int64_t cols, int64_t row, int64_t col) {
    return ((col == 1 || cols <= 1) && (row >= cols || rows <= 1)) || ((row == 1 || rows <= 1) && (col >= rows || cols <= 1));
}

/* Product of integers of `size` bytes, modulo 2^(8 size): sign does not matter. */
void tgx_integer_product(const tgx_shape *s, int size, int64_t alpha, const void *a, const void *b, int64_t beta, void *c);
#endif
