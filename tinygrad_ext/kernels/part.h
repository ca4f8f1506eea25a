/* Windows on tensors, for kernels whose work is copies between them. */
#ifndef TGX_PART_H
#define TGX_PART_H
#include "tgx.h"

typedef struct {
    tgx_tensor t;
    int64_t dims[2 * TGX_MAX_DIMS];
} tgx_part;

/* All of a tensor. Bounds of what is done to it afterwards are the caller's business. */
static inline tgx_tensor *tgx_part_of(tgx_part *p, const tgx_tensor *t) {
    p->t = *t, p->t.sizes = p->dims, p->t.strides = p->dims + TGX_MAX_DIMS;
    memcpy(p->t.sizes, t->sizes, (size_t)t->rank * sizeof(int64_t));
    memcpy(p->t.strides, t->strides, (size_t)t->rank * sizeof(int64_t));
    return &p->t;
}
/* `length` elements of a dimension, from `start` on. */
static inline tgx_tensor *tgx_part_cut(tgx_part *p, int dim, int64_t start, int64_t length) {
    tgx_tensor *t = &p->t;
    if (t->sizes[dim]) t->count = t->count / t->sizes[dim] * length;
    if (length) t->data += start * t->strides[dim] * tgx_itemsize[t->dtype];
    t->sizes[dim] = length, t->flags = 0;
    return t;
}
/* A dimension of size 1 before number `dim`. */
static inline tgx_tensor *tgx_part_insert(tgx_part *p, int dim) {
    tgx_tensor *t = &p->t;
    for (int i = t->rank++; i > dim; i--) t->sizes[i] = t->sizes[i - 1], t->strides[i] = t->strides[i - 1];
    t->sizes[dim] = 1, t->strides[dim] = 0;
    return t;
}
/* Two dimensions change places. */
static inline tgx_tensor *tgx_part_swap(tgx_part *p, int a, int b) {
    tgx_tensor *t = &p->t;
    int64_t size = t->sizes[a], stride = t->strides[a];
    t->sizes[a] = t->sizes[b], t->strides[a] = t->strides[b], t->sizes[b] = size, t->strides[b] = stride;
    t->flags = 0;
    return t;
}
/* Row-major memory at `data` of as many elements as t has, in t's sizes. */
static inline tgx_tensor *tgx_part_dense(tgx_part *p, const tgx_tensor *t, void *data) {
    tgx_part_of(p, t);
    p->t.data = data, p->t.flags = TGX_CONTIGUOUS;
    int64_t n = 1;
    for (int i = t->rank - 1; i >= 0; i--) p->t.strides[i] = n, n *= t->sizes[i];
    return &p->t;
}
/* Whether elements lie behind each other in row-major order. */
static inline int tgx_is_dense(const tgx_tensor *t) {
    int64_t n = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->sizes[i] != 1 && t->strides[i] != n) return t->count == 0;
        n *= t->sizes[i];
    }
    return 1;
}
#endif
