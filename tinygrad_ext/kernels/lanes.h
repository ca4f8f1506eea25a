/* Small matrices of a batch side by side: a vector holds one element of as many matrices as it has lanes.
 *
 * What a library makes of an 8 x 8 matrix is mostly its own checks, and the loops over its rows are too short for vectors
 * along them. Across the batch every operation is one of vectors, whatever the sizes. Each lane is computed as if it were
 * alone: where matrices go separate ways (pivots, converged or not), a lane keeps what it has. So neither the place in the
 * batch nor the neighbours change a bit. Rejected: vectors within a matrix, which are half empty below 16 x 16.
 *
 * A group of matrices is `taken` row by row (element e of lane l at e * lanes + l), worked on in place, and `given` back. */
#ifndef TGX_LANES_H
#define TGX_LANES_H
#include "lapack.h"

enum {
    TGX_LANES_ORDER = 16,  /* the largest matrices that are worked on side by side; larger ones are LAPACK's */
    TGX_LANES_BYTES = 128, /* at most so many for an element of all lanes */
};

typedef struct tgx_lane_ops {
    int64_t lanes;
    void (*take)(char *to, const char *const *from, int64_t each, int64_t count);
    void (*give)(char *const *to, const char *from, int64_t each, int64_t count);
    /* m x n; pivots as LAPACK's, as numbers of lanes for `solve`, and in rows of min(m, n) for `count` matrices from pivots_out on. */
    void (*lu)(char *a, int64_t m, int64_t n, char *pivots, int32_t *pivots_out, int32_t *info, int64_t count);
    void (*solve)(const char *lu, const char *pivots, char *b, int64_t n, int64_t k);
    void (*triangle)(const char *a, char *b, int64_t n, int64_t k, int upper, int unit);
    void (*identity)(char *b, int64_t m, int64_t n);
    /* The factor in the triangle that is read; the other one becomes zero. */
    void (*cholesky)(char *a, int64_t n, int upper, int32_t *info, int64_t count);
    /* As LAPACK's geqrf: R above, reflectors below the diagonal. */
    void (*reflectors)(char *a, int64_t m, int64_t n, char *tau);
    /* The first `wide` columns of the product of k reflectors in a's columns (a has n). */
    void (*product)(const char *a, int64_t m, int64_t n, int64_t k, const char *tau, char *q, int64_t wide);
    /* R from what `reflectors` made, n columns and so many rows, in its place. */
    void (*above)(char *a, int64_t rows, int64_t n);
    /* The X of least norm of A X - B in the first n rows of b (m x k), m >= n; room for n x n. Where the condition of A times `limit`
     * may not lie below one half, the lane's bit of what is returned is set, and X is not to be used. */
    uint32_t (*least)(char *a, int64_t m, int64_t n, char *b, int64_t k, char *room, double limit, int64_t count);
    /* Ascending eigenvalues, which are real, of a Hermitian matrix, of which one triangle is read, and vectors (columns) unless that
     * is NULL. Returns a bit for each lane that did not end. */
    uint32_t (*eigenvalues)(char *a, int64_t n, int upper, char *values, char *vectors, int64_t count);
    /* Descending singular values. Unless `other` is NULL, a becomes U and other Vh, or where m < n a becomes Vh and other U, of
     * min(m, n) vectors. Returns a bit for each lane that did not end, or has a value without a vector. */
    uint32_t (*singular)(char *a, int64_t m, int64_t n, char *values, char *other, int64_t count);
} tgx_lane_ops;

typedef struct { tgx_lane_ops f32, f64, c64, c128; } tgx_lane_table;
extern const tgx_lane_table tgx_lanes_base, tgx_lanes_avx2, tgx_lanes_avx512;

/* The ops for matrices of such sizes, or NULL where there are none, or they are large. One matrix alone goes the same
 * way as in a batch, to the same bits: its lanes are all but one empty, but the sizes are small. */
const tgx_lane_ops *tgx_lanes_for(int64_t count, int64_t m, int64_t n, int dtype);
/* Scratch for so many elements of matrices. */
static inline int64_t tgx_lanes_bytes(int64_t elements) { return elements * TGX_LANES_BYTES; }
/* Matrices i to i + count of a tensor's, each of so many bytes: where they start. */
void tgx_lanes_places(const char **to, const char *data, int64_t i, int64_t count, int64_t bytes);
void tgx_lanes_take(const tgx_lane_ops *lanes, char *to, const char *data, int64_t i, int64_t count, int64_t each, int dtype);
void tgx_lanes_give(const tgx_lane_ops *lanes, char *data, const char *from, int64_t i, int64_t count, int64_t each, int dtype);
#endif
