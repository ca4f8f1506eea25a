/* Tiny and integer products. The sum over k runs in order for every element, whatever the steps, so an element has
 * the same bits however its operands lie in memory. */
#include "product.h"
#include <string.h>

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

enum { DEPTH = 64, COLUMNS = 512 }; /* a block of B that stays in the first cache levels */

#define INTEGERS(T, name)                                                                                          \
    static void name##_scale(const tgx_shape *s, T beta, T *c) {                                                   \
        for (ptrdiff_t i = 0; i < s->m; i++)                                                                       \
            for (ptrdiff_t j = 0; j < s->n; j++) {                                                                 \
                T *out = c + i * s->c_row + j * s->c_col;                                                          \
                *out = beta ? (T)(beta * *out) : 0;                                                                \
            }                                                                                                      \
    }                                                                                                              \
    static void name##_row(const tgx_shape *s, T factor, const T *restrict y, T *restrict out, ptrdiff_t n) {      \
        if (s->b_col == 1 && s->c_col == 1)                                                                        \
            for (ptrdiff_t j = 0; j < n; j++) out[j] += (T)(factor * y[j]);                                        \
        else                                                                                                       \
            for (ptrdiff_t j = 0; j < n; j++) out[j * s->c_col] += (T)(factor * y[j * s->b_col]);                  \
    }                                                                                                              \
    static void name(const tgx_shape *s, T alpha, const T *a, const T *b, T beta, T *c) {                          \
        name##_scale(s, beta, c);                                                                                  \
        for (ptrdiff_t p0 = 0; p0 < s->k; p0 += DEPTH)                                                             \
            for (ptrdiff_t j = 0; j < s->n; j += COLUMNS)                                                          \
                for (ptrdiff_t i = 0; i < s->m; i++)                                                               \
                    for (ptrdiff_t p = p0; p < s->k && p < p0 + DEPTH; p++)                                        \
                        name##_row(s, (T)(alpha * a[i * s->a_row + p * s->a_col]), b + p * s->b_row + j * s->b_col, \
                                   c + i * s->c_row + j * s->c_col, s->n - j < COLUMNS ? s->n - j : COLUMNS);      \
    }

/* The narrow types are computed in 32 bits, where their products cannot overflow. */
INTEGERS(uint8_t, product_8)
INTEGERS(uint32_t, product_32)
INTEGERS(uint64_t, product_64)
/* uint16_t * uint16_t would be a signed int and could overflow; int16_t squares fit. */
INTEGERS(int16_t, product_16)

void tgx_integer_product(const tgx_shape *s, int size, int64_t alpha, const void *a, const void *b, int64_t beta, void *c) {
    if (size == 1) product_8(s, (uint8_t)alpha, a, b, (uint8_t)beta, c);
    else if (size == 2) product_16(s, (int16_t)alpha, a, b, (int16_t)beta, c);
    else if (size == 4) product_32(s, (uint32_t)alpha, a, b, (uint32_t)beta, c);
    else product_64(s, (uint64_t)alpha, a, b, (uint64_t)beta, c);
}
