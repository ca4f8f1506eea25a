/* Tiny and integer products. The sum over k runs in order for every element, whatever the steps, so an element has
 * the same bits however its operands lie in memory. */
#include "isa.h"
#include "product.h"

enum { WIDTH = 16 }; /* columns whose sums are kept in registers */

/* One row of C, `w` columns of it. With w and the step known, the compiler unrolls and uses vectors. */
#define TINY_ROW(T, w, step)                                                             \
    do {                                                                                 \
        T sum[WIDTH] = {0};                                                              \
        const T *x = a + i * s->a_row, *y = b + j * s->b_col;                            \
        for (ptrdiff_t p = 0; p < s->k; p++, x += s->a_col, y += s->b_row)               \
            for (ptrdiff_t q = 0; q < (w); q++) sum[q] += *x * y[q * (step)];            \
        T *out = c + i * s->c_row + j * s->c_col;                                        \
        if (beta == 0)                                                                   \
            for (ptrdiff_t q = 0; q < (w); q++) out[q * s->c_col] = alpha * sum[q];      \
        else                                                                             \
            for (ptrdiff_t q = 0; q < (w); q++) {                                        \
                T *o = out + q * s->c_col;                                               \
                *o = alpha * sum[q] + beta * *o;                                         \
            }                                                                            \
    } while (0)

#define TINY(T, name)                                                                    \
    void name(const tgx_shape *s, T alpha, const T *a, const T *b, T beta, T *c) {       \
        for (ptrdiff_t i = 0; i < s->m; i++)                                             \
            for (ptrdiff_t j = 0; j < s->n;) {                                           \
                ptrdiff_t left = s->n - j;                                               \
                if (left >= 16 && s->b_col == 1) { TINY_ROW(T, 16, 1); j += 16; }        \
                else if (left >= 8 && s->b_col == 1) { TINY_ROW(T, 8, 1); j += 8; }      \
                else if (left >= 4 && s->b_col == 1) { TINY_ROW(T, 4, 1); j += 4; }      \
                else if (left >= 4) { TINY_ROW(T, 4, s->b_col); j += 4; }                \
                else { TINY_ROW(T, 1, 1); j += 1; }                                      \
            }                                                                            \
    }

TINY(float, tgx_tiny_f32)
TINY(double, tgx_tiny_f64)

void tgx_integer_product_base(const tgx_shape *, int, int64_t, const void *, const void *, int64_t, void *);
void tgx_integer_product_avx2(const tgx_shape *, int, int64_t, const void *, const void *, int64_t, void *);
void tgx_integer_product_avx512(const tgx_shape *, int, int64_t, const void *, const void *, int64_t, void *);

void tgx_integer_product(const tgx_shape *s, int size, int64_t alpha, const void *a, const void *b, int64_t beta, void *c) {
    static void (*found)(const tgx_shape *, int, int64_t, const void *, const void *, int64_t, void *);
    if (!found) found = TGX_PICK(tgx_integer_product);
    found(s, size, alpha, a, b, beta, c);
}
