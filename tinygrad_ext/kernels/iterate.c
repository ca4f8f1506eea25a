/* See iterate.h. The pointers of all possible operands are moved from row to row, used or not: of a loop over those in use
 * gcc made vector code, and each row cost 45 ns besides its elements. */
#include "iterate.h"
#include <stdlib.h>

enum { TILE = 16 };         /* a cache line of floats, so that few lines collide when a stride is a power of two */

void tgx_iter_begin(tgx_iter *it, const int64_t *shape, int ndim) {
    it->nop = 0;
    it->ndim = ndim;
    it->tiled = 0;
    it->plane = NULL;
    it->numel = 1;
    for (int d = 0; d < ndim; d++) {
        it->shape[d] = shape[ndim - 1 - d];
        it->numel *= shape[d];
    }
}

void tgx_iter_add(tgx_iter *it, char *data, const int64_t *shape, const int64_t *strides, int ndim, int itemsize) {
    ptrdiff_t *out = it->strides[it->nop];
    it->data[it->nop++] = data;
    for (int d = 0; d < it->ndim; d++) {
        int k = ndim - 1 - d;
        out[d] = (k < 0 || (shape[k] == 1 && it->shape[d] != 1)) ? 0 : strides[k] * itemsize;
    }
}

static void swap_dims(tgx_iter *it, int a, int b) {
    int64_t s = it->shape[a];
    it->shape[a] = it->shape[b];
    it->shape[b] = s;
    for (int k = 0; k < it->nop; k++) {
        ptrdiff_t t = it->strides[k][a];
        it->strides[k][a] = it->strides[k][b];
        it->strides[k][b] = t;
    }
}

static ptrdiff_t absolute(ptrdiff_t v) { return v < 0 ? -v : v; }

/* Whether dimension b belongs further inside than a: the first operand that has an opinion decides. */
static int inside(const tgx_iter *it, int a, int b) {
    for (int k = 0; k < it->nop; k++) {
        ptrdiff_t sa = absolute(it->strides[k][a]), sb = absolute(it->strides[k][b]);
        if (sa == 0 || sb == 0 || sa == sb) continue;
        return sb < sa;
    }
    return 0;
}

static int mergeable(const tgx_iter *it, int inner, int outer) {
    for (int k = 0; k < it->nop; k++)
        if (it->strides[k][outer] != it->strides[k][inner] * it->shape[inner]) return 0;
    return 1;
}

/* Make the dimension in which the input lies closest the second one, so that a plane is the whole of a transposition. */
static void second_by_input(tgx_iter *it) {
    int best = 0;
    for (int d = 1; d < it->ndim; d++)
        if (absolute(it->strides[1][d]) < absolute(it->strides[1][best]) && it->strides[1][d]) best = d;
    for (; best > 1; best--) swap_dims(it, best, best - 1);
}

void tgx_iter_plan(tgx_iter *it) {
    /* sizes of one say nothing: drop them */
    int n = 0;
    for (int d = 0; d < it->ndim; d++) {
        if (it->shape[d] == 1) continue;
        if (n != d) {
            it->shape[n] = it->shape[d];
            for (int k = 0; k < it->nop; k++) it->strides[k][n] = it->strides[k][d];
        }
        n++;
    }
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && inside(it, j - 1, j); j--) swap_dims(it, j - 1, j);
    int last = 0;
    for (int d = 1; d < n; d++) {
        if (mergeable(it, last, d)) {
            it->shape[last] *= it->shape[d];
        } else if (++last != d) {
            it->shape[last] = it->shape[d];
            for (int k = 0; k < it->nop; k++) it->strides[k][last] = it->strides[k][d];
        }
    }
    it->ndim = n == 0 ? 0 : last + 1;
    if (it->ndim == 0) {
        it->ndim = 1;
        it->shape[0] = 1;
        for (int k = 0; k < it->nop; k++) it->strides[k][0] = 0;
    }
    if (it->plane) {
        second_by_input(it);
        return;
    }
    /* a short inner row costs a call each few elements: put the longer of the two innermost inside */
    if (it->ndim > 1 && it->shape[0] < 8 && it->shape[1] > 4 * it->shape[0]) swap_dims(it, 0, 1);
    if (it->ndim > 1 && it->shape[0] >= TILE && it->shape[1] >= TILE)
        for (int k = 1; k < it->nop; k++)
            if (it->strides[k][1] && absolute(it->strides[k][0]) > absolute(it->strides[k][1])) it->tiled = 1;
}

/* ---- running ---- */

static int run_tiles(const tgx_iter *it, char **data, tgx_loop loop, const tgx_scalar *aux, const ptrdiff_t *inner) {
    char *at[TGX_MAX_OPERANDS];
    int64_t n0 = it->shape[0], n1 = it->shape[1];
    for (int64_t j = 0; j < n1; j += TILE) {
        int64_t jn = n1 - j < TILE ? n1 - j : TILE;
        for (int64_t i = 0; i < n0; i += TILE) {
            int64_t in = n0 - i < TILE ? n0 - i : TILE;
            for (int64_t jj = j; jj < j + jn; jj++) {
                for (int k = 0; k < it->nop; k++) at[k] = data[k] + i * inner[k] + jj * it->strides[k][1];
                int code = loop(at, inner, in, aux);
                if (code) return code;
            }
        }
    }
    return 0;
}

static int run_rows(const tgx_iter *it, char *const *data, tgx_loop loop, const tgx_scalar *aux, const ptrdiff_t *inner,
                    const ptrdiff_t *outer, int64_t rows) {
    char *at[TGX_MAX_OPERANDS], *row[TGX_MAX_OPERANDS];
    int code = 0;
    memcpy(at, data, sizeof at);
    for (int64_t j = 0; j < rows && !code; j++) {
        memcpy(row, at, sizeof row);
        code = loop(row, inner, it->shape[0], aux);
        for (int k = 0; k < TGX_MAX_OPERANDS; k++) at[k] += outer[k];
    }
    return code;
}

int tgx_iter_run(const tgx_iter *it, tgx_loop loop, const tgx_scalar *aux) {
    char *data[TGX_MAX_OPERANDS] = {0};
    ptrdiff_t inner[TGX_MAX_OPERANDS], outer[TGX_MAX_OPERANDS] = {0};
    int64_t index[TGX_MAX_DIMS];
    if (it->numel == 0) return 0;
    for (int k = 0; k < it->nop; k++) {
        data[k] = it->data[k];
        inner[k] = it->strides[k][0];
        outer[k] = it->ndim > 1 ? it->strides[k][1] : 0;
    }
    if (it->ndim == 1) return loop(data, inner, it->shape[0], aux);
    for (int d = 2; d < it->ndim; d++) index[d] = 0;
    for (;;) {
        int code = 0;
        if (it->plane) it->plane(data, inner, outer, it->shape[0], it->shape[1]);
        else if (it->tiled) code = run_tiles(it, data, loop, aux, inner);
        else code = run_rows(it, data, loop, aux, inner, outer, it->shape[1]);
        if (code) return code;
        int d = 2;
        for (; d < it->ndim; d++) {
            for (int k = 0; k < it->nop; k++) data[k] += it->strides[k][d];
            if (++index[d] < it->shape[d]) break;
            for (int k = 0; k < it->nop; k++) data[k] -= it->strides[k][d] * it->shape[d];
            index[d] = 0;
        }
        if (d == it->ndim) return 0;
    }
}

int tgx_iter_widest(const tgx_iter *it) {
    int best = it->ndim - 1;
    for (int d = it->ndim - 1; d >= 0; d--)
        if (it->shape[d] > it->shape[best]) best = d;
    return best;
}

void tgx_iter_slice(const tgx_iter *it, tgx_iter *out, int dim, int64_t lo, int64_t hi) {
    *out = *it;
    out->shape[dim] = hi - lo;
    out->numel = it->shape[dim] ? it->numel / it->shape[dim] * (hi - lo) : 0;
    for (int k = 0; k < it->nop; k++) out->data[k] += lo * it->strides[k][dim];
}
