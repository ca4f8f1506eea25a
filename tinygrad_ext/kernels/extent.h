/* Checked arithmetic over the numbers that describe a tensor: the only place that turns sizes, strides and an offset
   into the reach of a window. Numbers from elsewhere (files, other libraries, a caller's as_strided) go through it
   before anything is read, so no sum or product may wrap: each one is a builtin that tells of overflow. Clamping and
   128 bits were tried: a clamp hides which number was bad, and 64 products of two 63-bit numbers need 133 bits. */
#ifndef TGX_EXTENT_H
#define TGX_EXTENT_H
#include <stddef.h>
#include <stdint.h>

#define TGX_ANY_ROOM INT64_MAX                  /* for what has no memory: all that 63 bits can count */
#define TGX_LARGEST_MEMORY ((int64_t)1 << 46)   /* bytes; no machine has more, so no lender can have lent more */

typedef enum {
    TGX_FITS,
    TGX_NEGATIVE_SIZE,
    TGX_NEGATIVE_STRIDE,
    TGX_NEGATIVE_OFFSET,
    TGX_TOO_MANY,  /* more elements, or a farther reach, than 63 bits can count in bytes */
    TGX_OUTSIDE,   /* the reach is beyond the memory there is */
} tgx_verdict;

static inline int tgx_times(int64_t a, int64_t b, int64_t *out) {
    long long r;
    int bad = __builtin_mul_overflow((long long)a, (long long)b, &r);
    *out = r;
    return bad;
}

static inline int tgx_plus(int64_t a, int64_t b, int64_t *out) {
    long long r;
    int bad = __builtin_add_overflow((long long)a, (long long)b, &r);
    *out = r;
    return bad;
}

/* Product of sizes; 0 if one is 0, however large the others. */
static inline tgx_verdict tgx_count(const int64_t *sizes, int rank, int64_t *count) {
    int64_t n = 1;
    int wrapped = 0, none = 0;
    for (int i = 0; i < rank; i++) {
        if (sizes[i] < 0) return TGX_NEGATIVE_SIZE;
        none |= sizes[i] == 0;
        wrapped |= tgx_times(n, sizes[i], &n);
    }
    *count = none ? 0 : n;
    return wrapped && !none ? TGX_TOO_MANY : TGX_FITS;
}

/* Bytes from the start of the memory to the end of the last element (to the offset where there is none); strides of NULL: row-major ones. `offset` and
   strides are in elements, `room` in bytes. */
static inline tgx_verdict tgx_reach(const int64_t *sizes, const int64_t *strides, int rank, int64_t offset,
                                    int64_t itemsize, int64_t room, int64_t *reach) {
    int64_t last = offset, step = 1, count, part, bytes;
    tgx_verdict verdict = tgx_count(sizes, rank, &count);
    if (verdict != TGX_FITS) return verdict;
    if (offset < 0) return TGX_NEGATIVE_OFFSET;
    for (int i = rank - 1; i >= 0; i--) {
        int64_t stride = strides ? strides[i] : step;
        if (stride < 0) return TGX_NEGATIVE_STRIDE;
        if (tgx_times(stride, itemsize, &bytes)) return TGX_TOO_MANY; /* loops step by bytes, over one element too */
        if (!strides && sizes[i] && tgx_times(step, sizes[i], &step)) return TGX_TOO_MANY;
        if (count && (tgx_times(sizes[i] - 1, stride, &part) || tgx_plus(last, part, &last))) return TGX_TOO_MANY;
    }
    if ((count && tgx_plus(last, 1, &last)) || tgx_times(last, itemsize, reach)) return TGX_TOO_MANY;
    return *reach > room ? TGX_OUTSIDE : TGX_FITS;
}

/* The error for a verdict. */
void tgx_geometry_text(char *text, size_t room, tgx_verdict verdict, const int64_t *sizes, const int64_t *strides, int rank,
                       int64_t offset, int64_t nbytes, const char *what);

/* In a kernel: 0, or TGX_FAILED with the error noted. */
struct tgx_call;
int tgx_counted(struct tgx_call *c, const int64_t *sizes, int rank, int64_t *count, const char *what);
int tgx_inside(struct tgx_call *c, const int64_t *sizes, const int64_t *strides, int rank, int64_t offset, int dtype, int64_t room,
               const char *what);
#endif
