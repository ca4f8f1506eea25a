/* Chooses the conversion loop of two dtypes, or the copy of one, row by row or by planes, and converts pairs of halves. */
#include "casts.h"

static const tgx_casts *in_use; /* set before the first kernel runs */

void tgx_use_casts(const tgx_casts *casts) { in_use = casts; }
const tgx_casts *tgx_casts_in_use(void) { return in_use; }

tgx_loop tgx_cast_loop(int from, int to) { return from == to ? in_use->copies[to] : in_use->between[from][to]; }
tgx_plane tgx_copy_plane(int size) { return in_use->planes[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4]; }

/* Pairs that lie side by side are twice as many numbers. */
int tgx_pairs_widen(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {
    static const ptrdiff_t parts[] = {4, 2};
    if (strides[0] == 8 && strides[1] == 4) return tgx_cast_loop(TGX_F16, TGX_F32)(data, parts, 2 * n, aux);
    for (int64_t i = 0; i < n; i++) {
        uint16_t pair[2];
        memcpy(pair, data[1] + i * strides[1], sizeof pair);
        float both[2] = {tgx_f16_to_f32(pair[0]), tgx_f16_to_f32(pair[1])};
        memcpy(data[0] + i * strides[0], both, sizeof both);
    }
    return 0;
}

int tgx_pairs_narrow(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {
    static const ptrdiff_t parts[] = {2, 4};
    if (strides[0] == 4 && strides[1] == 8) return tgx_cast_loop(TGX_F32, TGX_F16)(data, parts, 2 * n, aux);
    for (int64_t i = 0; i < n; i++) {
        float both[2];
        memcpy(both, data[1] + i * strides[1], sizeof both);
        uint16_t pair[2] = {tgx_f32_to_f16(both[0]), tgx_f32_to_f16(both[1])};
        memcpy(data[0] + i * strides[0], pair, sizeof pair);
    }
    return 0;
}
