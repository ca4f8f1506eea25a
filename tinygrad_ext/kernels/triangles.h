/* Systems of a triangle with few sides, by rows. See triangles_isa.h. */
#ifndef TGX_TRIANGLES_H
#define TGX_TRIANGLES_H
#include <stddef.h>

enum { TGX_PANEL_BYTES = 64 };     /* sides that are solved at once */

/* L X = B for a lower triangle in B's place (n x k); steps, of which any may be negative, lead from row to row of both, `along` from
 * column to column of L. `room` for n panels. */
typedef struct {
    const void *a;
    ptrdiff_t down, along;
    void *b;
    ptrdiff_t step, n, k;
    int unit;                      /* the diagonal is not read */
    void *room;
} tgx_triangle;

typedef struct { void (*f32)(const tgx_triangle *t), (*f64)(const tgx_triangle *t); } tgx_triangle_table;
extern const tgx_triangle_table tgx_triangles_base, tgx_triangles_avx2, tgx_triangles_avx512;
#endif
