/* Products of bfloat16 matrices by an instruction that multiplies two pairs and adds both to a float (AVX512-BF16), or by one that
 * does so for tiles of matrices (AMX).
 *
 * Sums are float32 and rounded once. Both round once for each product, take subnormal operands as zero and give none, as they
 * do in other libraries. Where it is missing, or for less work, operands are widened instead. */
#ifndef TGX_PRODUCT_BF16_H
#define TGX_PRODUCT_BF16_H
#include "product.h"

/* Whether a product of these sizes is computed so; by shape and processor alone. */
int tgx_is_bf16_product(int64_t m, int64_t n, int64_t k);
/* Bytes of both operands as they are laid out: the left one of `left` items, the right one of `right`. */
int64_t tgx_bf16_product_room(int64_t m, int64_t n, int64_t k, int64_t left, int64_t right);
/* C = alpha A B + beta C with bfloat16 matrices and c->scratch of that room; one_b: the right operand is the same for all. */
int tgx_bf16_product_run(tgx_call *c, const tgx_product *p, int one_b);

/* The same loops for who lays out operands himself, some columns of the result at a time: sums = A B, or sums + A B.
 * A lies in rows, each pair after pair; of B a vector of pairs, one for each column, follows the other. */
typedef struct {
    const char *a;
    int64_t a_row;             /* bytes between rows; they can be read up to a multiple of TGX_BF16_ROWS */
    const uint32_t *b;
    int64_t rows, wide, pairs; /* of columns as many as whole vectors hold */
    float *sums;               /* for each row up to a multiple of `tall` as many as there are `columns` */
    int first;                 /* the sums begin with this */
} tgx_bf16_panel;

enum { TGX_BF16_LANES = 16, TGX_BF16_ROWS = 16 };

typedef struct {
    int64_t columns;           /* of a panel at most */
    int64_t tall, deep;        /* rows of sums and pairs of operands come in so many; pairs that are no more are zeros */
    int64_t strip, vector, row; /* floats between 16 rows, between 16 columns and between rows of the sums */
    void (*multiply)(const tgx_bf16_panel *x);
} tgx_bf16_panels;

/* NULL: the processor does not multiply bfloat16. */
const tgx_bf16_panels *tgx_bf16_panels_here(void);
static inline int64_t tgx_bf16_sums_count(const tgx_bf16_panels *w, int64_t rows) {
    return (rows + w->tall - 1) / w->tall * w->tall * w->columns;
}
#endif
