/* Blocked matrix products. The file includes itself once for float and once for double.
 *
 * Both operands are packed into panels on the stack, so the inner loop sees unit strides whatever the caller's,
 * needs no allocation and cannot fail. The tile is ROWS x COLS numbers, 8 accumulators of 16 bytes that every x86-64 holds in
 * registers. Rejected: 4 of 32 bytes, which gcc keeps in memory where registers have 16, and which took 2.1 times as long (n =
 * 256 and 1024); and rows of B added up without packing, 1.2 times at n = 1024, which a transposed B does not have. */
#ifndef T
#include "gemm.h"
#include <string.h>

#define ROWS 4
#define COLS ((int)(32 / sizeof(T)))
#define DEPTH 128     /* a packed panel of B (4 KiB) stays in L1 */
#define BLOCK_ROWS 64 /* a packed block of A (32 or 64 KiB) stays in L2 */
#define MIN(x, y) ((x) < (y) ? (x) : (y))

#define T float
#define REAL(base) tgx_s##base
#define COMPLEX(base) tgx_c##base
#include "gemm.c"
#undef T
#undef REAL
#undef COMPLEX

#define T double
#define REAL(base) tgx_d##base
#define COMPLEX(base) tgx_z##base
#include "gemm.c"

#else

typedef T REAL(vec) __attribute__((vector_size(16)));

/* Panels of `width` rows, each stored step by step along the depth; missing rows are zeros. */
static void REAL(pack)(T *to, int width, const T *from, ptrdiff_t rows, ptrdiff_t depth, ptrdiff_t row, ptrdiff_t col) {
    for (ptrdiff_t i = 0; i < rows; i += width)
        for (ptrdiff_t p = 0; p < depth; p++)
            for (int r = 0; r < width; r++) *to++ = i + r < rows ? from[(i + r) * row + p * col] : 0;
}

/* tile = the product of one panel of A and one panel of B. */
static void REAL(tile)(T *tile, ptrdiff_t depth, const T *a, const T *b) {
    REAL(vec) sum[ROWS][2] = {{{0}}}, line[2];
    for (ptrdiff_t p = 0; p < depth; p++, a += ROWS, b += COLS) {
        memcpy(line, b, sizeof line);
        for (int r = 0; r < ROWS; r++) sum[r][0] += a[r] * line[0], sum[r][1] += a[r] * line[1];
    }
    memcpy(tile, sum, sizeof sum);
}

static void REAL(store)(const T *tile, int rows, int cols, T alpha, T beta, T *c, ptrdiff_t c_row, ptrdiff_t c_col) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            T *out = c + i * c_row + j * c_col, value = alpha * tile[i * COLS + j];
            *out = beta == 0 ? value : value + beta * *out;
        }
}

void REAL(gemm)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
               T alpha, const T *a, ptrdiff_t a_row, ptrdiff_t a_col,
               const T *b, ptrdiff_t b_row, ptrdiff_t b_col,
               T beta, T *c, ptrdiff_t c_row, ptrdiff_t c_col) {
    _Alignas(32) T block[BLOCK_ROWS * DEPTH], panel[(32 / sizeof(T)) * DEPTH], tile[ROWS * (32 / sizeof(T))];
    ptrdiff_t p = 0;
    if (alpha == 0) k = 0;
    do { /* once even when k is 0, to scale C */
        ptrdiff_t depth = MIN(k - p, DEPTH);
        for (ptrdiff_t i = 0; i < m; i += BLOCK_ROWS) {
            ptrdiff_t rows = MIN(m - i, BLOCK_ROWS);
            REAL(pack)(block, ROWS, a + i * a_row + p * a_col, rows, depth, a_row, a_col);
            for (ptrdiff_t j = 0; j < n; j += COLS) {
                int cols = (int)MIN(n - j, COLS);
                REAL(pack)(panel, COLS, b + p * b_row + j * b_col, cols, depth, b_col, b_row);
                for (ptrdiff_t r = 0; r < rows; r += ROWS) {
                    REAL(tile)(tile, depth, block + r * depth, panel);
                    REAL(store)(tile, (int)MIN(rows - r, ROWS), cols, alpha, p ? 1 : beta,
                               c + (i + r) * c_row + j * c_col, c_row, c_col);
                }
            }
        }
        p += DEPTH;
    } while (p < k);
}

static void COMPLEX(scale)(ptrdiff_t m, ptrdiff_t n, const T *beta, T *c, ptrdiff_t c_row, ptrdiff_t c_col) {
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            T *out = c + 2 * (i * c_row + j * c_col), real = 0, imag = 0;
            if (beta[0] != 0 || beta[1] != 0) {
                real = beta[0] * out[0] - beta[1] * out[1];
                imag = beta[0] * out[1] + beta[1] * out[0];
            }
            out[0] = real;
            out[1] = imag;
        }
}

/* Four real products, real and imaginary parts being matrices with doubled strides; `factor` is
 * alpha i^(number of imaginary parts), and conjugation turns the sign of an imaginary part. */
void COMPLEX(gemm)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                   const T *alpha, const T *a, ptrdiff_t a_row, ptrdiff_t a_col, int conj_a,
                   const T *b, ptrdiff_t b_row, ptrdiff_t b_col, int conj_b,
                   const T *beta, T *c, ptrdiff_t c_row, ptrdiff_t c_col) {
    COMPLEX(scale)(m, n, beta, c, c_row, c_col);
    for (int parts = 0; parts < 4; parts++) {
        int im_a = parts & 1, im_b = parts >> 1, turns = im_a + im_b;
        T sign = (im_a && conj_a) != (im_b && conj_b) ? -1 : 1;
        T factor[2] = {sign * alpha[0], sign * alpha[1]};
        for (; turns; turns--) {
            T real = factor[0];
            factor[0] = -factor[1];
            factor[1] = real;
        }
        for (int part = 0; part < 2; part++)
            if (factor[part] != 0)
                REAL(gemm)(m, n, k, factor[part], a + im_a, 2 * a_row, 2 * a_col, b + im_b, 2 * b_row, 2 * b_col,
                          1, c + part, 2 * c_row, 2 * c_col);
    }
}

/* Eight partial sums, joined pairwise: the error grows an eighth as fast as in a plain loop. */
T REAL(dot)(ptrdiff_t n, const T *x, ptrdiff_t x_step, const T *y, ptrdiff_t y_step) {
    T sum[8] = {0};
    for (ptrdiff_t i = 0; i < n; i++) sum[i & 7] += x[i * x_step] * y[i * y_step];
    for (int width = 4; width; width /= 2)
        for (int i = 0; i < width; i++) sum[i] += sum[i + width];
    return sum[0];
}
#endif
