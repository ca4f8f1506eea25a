/* Products of complex matrices, of own loops whatever their size: OpenBLAS' reach four fifths of what the processor can do. */
#ifndef TGX_PRODUCT_COMPLEX_H
#define TGX_PRODUCT_COMPLEX_H
#include "product.h"

enum {
    TGX_COMPLEX_DEPTH = 256,   /* of what is summed at a time */
    TGX_COMPLEX_ROWS = 12,     /* of what is multiplied at a time */
};

/* The sum of the products of n complex numbers, a_step and b_step numbers apart, of a's conjugates where `conjugated`. */
typedef void tgx_pair_dot(ptrdiff_t n, const void *a, ptrdiff_t a_step, const void *b, ptrdiff_t b_step, int conjugated, double *out);

/* Some rows of a product, at most TGX_COMPLEX_ROWS and TGX_COMPLEX_DEPTH deep, and how the columns of B are laid out for it, in panels
 * of so many. Where `b` is given, panels that are whole, or a whole half, are read there. For complex64 and complex128. */
typedef struct {
    tgx_shape s;               /* of this part */
    const void *a, *b, *packed;
    void *c;
    double alpha[2], beta[2];
} tgx_complex_rows;

typedef struct {
    int columns;
    void (*lay)(const tgx_shape *s, const void *b, void *packed);
    void (*times)(const tgx_complex_rows *p);
    tgx_pair_dot *dot;
} tgx_complex_kernels;
const tgx_complex_kernels *tgx_complex(int dtype);

/* The memory that a product of so many items needs, which may become one of all their rows, and such a product. */
int64_t tgx_complex_product_room(int64_t m, int64_t n, int64_t k, int64_t items, int size);
int tgx_complex_product_run(tgx_call *c, const tgx_product *p, void *room);
#endif
