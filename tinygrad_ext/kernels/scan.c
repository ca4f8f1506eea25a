/* Which lines a scan runs along, and which of them it takes together. See scan.h.
 *
 * Rejected: elements that lie apart one by one. cumsum of 1000 x 1000 floats that lie turned took 3100 us that way along the first
 * dimension and 1600 along the second, where lines side by side, turned before or after, take 650 and 770. And one sum after the other
 * along a line, 0.8 ns an element, which four at a time halve. */
#include "casts.h"
#include "scan.h"

void tgx_plan_scan(tgx_scan_plan *p, const int64_t *sizes, const int64_t *strides, int ndim, int dim, int itemsize) {
    ptrdiff_t step = 1;
    int64_t lines = 1;
    p->ndim = ndim ? ndim - 1 : 0;
    p->itemsize = itemsize;
    p->n = 1;
    p->along = p->out_along = 0;
    for (int d = ndim - 1, k = ndim - 2; d >= 0; d--) {
        if (d == dim) {
            p->n = sizes[d];
            p->along = strides[d] * itemsize;
            p->out_along = step;
        } else {
            p->sizes[k] = sizes[d];
            p->strides[k] = strides[d] * itemsize;
            p->out_strides[k--] = step;
            lines *= sizes[d];
        }
        step *= sizes[d];
    }
    p->ntiles = lines;
    if (p->ndim && lines) {
        int64_t width = p->sizes[p->ndim - 1];
        p->ntiles = lines / width * ((width + TGX_SCAN_TILE - 1) / TGX_SCAN_TILE);
    }
}

/* Where a tile begins: its lines, the bytes from one to the next, and elements of the output. */
typedef struct { const char *x; char *out, *out2; ptrdiff_t across, out_across; int w; } tile_place;

static tile_place place_of(const tgx_scan_plan *p, int64_t tile) {
    tile_place at = {p->x, p->out, p->out2, 0, 0, 1};
    if (p->ndim) {
        int last = p->ndim - 1;
        int64_t per = (p->sizes[last] + TGX_SCAN_TILE - 1) / TGX_SCAN_TILE, first = tile % per * TGX_SCAN_TILE;
        tile /= per;
        at.w = p->sizes[last] - first < TGX_SCAN_TILE ? (int)(p->sizes[last] - first) : TGX_SCAN_TILE;
        at.across = p->strides[last];
        at.out_across = p->out_strides[last];
        ptrdiff_t out = first * at.out_across;
        at.x += first * at.across;
        for (int d = last - 1; d >= 0; d--, tile /= p->sizes[d + 1]) {
            at.x += tile % p->sizes[d] * p->strides[d];
            out += tile % p->sizes[d] * p->out_strides[d];
        }
        at.out += out * p->osize;
        if (at.out2) at.out2 += out * (ptrdiff_t)sizeof(int64_t);
    }
    return at;
}

enum { ROOM = 1 << 15 }; /* bytes of a piece that is turned */
enum { ENOUGH = 8 };     /* lines */

/* From rows of w results to lines that lie `across` elements apart. */
static void put_lines(char *out, const char *rows, ptrdiff_t across, int w, int64_t n, int size) {
    char *both[] = {out, (char *)rows};
    tgx_copy_plane(size)(both, (ptrdiff_t[]){size, w * size}, (ptrdiff_t[]){across * size, size}, n, w);
}

/* Lines side by side, piece by piece: rows of what is read are brought together, and of what is written taken apart, where they
 * do not lie so. */
static void scan_together(const tgx_scan_plan *p, const tile_place *at, tgx_lines *some) {
    _Alignas(64) char read[ROOM], made[ROOM], places[ROOM];
    const int w = at->w, size = p->itemsize, osize = p->osize, most = size > osize ? size : osize;
    const int gathers = w > 1 && at->across != size, turns = p->out_along == 1;
    const int64_t piece = gathers || turns ? ROOM / (w * (most > 8 ? most : 8)) & -4 : p->n;
    some->out_along = turns ? w : p->out_along;
    for (int64_t n; (n = p->n - some->first) > 0; some->first += piece) {
        if (n > piece) n = piece;
        const ptrdiff_t out = some->first * p->out_along;
        char *to = at->out + out * osize, *to2 = at->out2 ? at->out2 + out * (ptrdiff_t)sizeof(int64_t) : NULL;
        some->x = at->x + some->first * p->along, some->along = p->along;
        if (gathers) {
            char *both[] = {read, (char *)some->x};
            tgx_copy_plane(size)(both, (ptrdiff_t[]){size, at->across}, (ptrdiff_t[]){w * size, p->along}, w, n);
            some->x = read, some->along = w * size;
        }
        some->out = turns ? made : to, some->out2 = turns ? places : to2;
        p->scan(some, w, n);
        if (turns) put_lines(to, made, at->out_across, w, n, osize);
        if (turns && to2) put_lines(to2, places, at->out_across, w, n, sizeof(int64_t));
    }
}

static void scan_tile(const tgx_scan_plan *p, tile_place at) {
    _Alignas(64) char run[TGX_SCAN_TILE * sizeof(tgx_c128)];
    int64_t places[TGX_SCAN_TILE];
    tgx_lines some = {at.x, at.out, at.out2, p->along, at.across, p->out_along, at.out_across, run, places, 0, 0};
    const int reads = at.w > 1 && at.across == p->itemsize, writes = at.w > 1 && at.out_across == 1;
    /* to turn some pays for enough lines and one result */
    some.together = (reads && writes) || (at.w >= ENOUGH && !p->out2 && (reads || writes));
    if (some.together) scan_together(p, &at, &some);
    else p->scan(&some, at.w, p->n);
}

#define LINEAR(NAME, T) \
static void NAME(const T *x, const T *decay, T *h, int64_t n, int64_t inner) { \
    for (int64_t i = 0; i < inner && n; i++) h[i] = x[i]; \
    for (int64_t i = inner; i < n * inner; i++) h[i] = x[i] + decay[i] * h[i - inner]; }
LINEAR(linear_f32, float)
LINEAR(linear_f64, double)
LINEAR(linear_c64, tgx_c64)
LINEAR(linear_c128, tgx_c128)

void tgx_linear_scan(const char *x, const char *decay, char *h, int64_t n, int64_t inner, int64_t lo, int64_t hi, int dtype) {
    for (int64_t i = lo * n * inner; i < hi * n * inner; i += n * inner) {
        switch (dtype) {
        case TGX_F32: linear_f32((const float *)x + i, (const float *)decay + i, (float *)h + i, n, inner); break;
        case TGX_F64: linear_f64((const double *)x + i, (const double *)decay + i, (double *)h + i, n, inner); break;
        case TGX_C64: linear_c64((const tgx_c64 *)x + i, (const tgx_c64 *)decay + i, (tgx_c64 *)h + i, n, inner); break;
        default: linear_c128((const tgx_c128 *)x + i, (const tgx_c128 *)decay + i, (tgx_c128 *)h + i, n, inner);
        }
    }
}

#define TOGETHER 8 /* lines that lie apart: enough to hide the latency of an addition, few enough for the cache */

/* What lies in front of an element, then times what lies behind it: no division, so zeros do no harm. And the derivative
 * by an element of that: the sum over the other places of their weight times the product of all but the two. A place is in
 * front or behind, so what is summed so far goes on as the product does.
 *
 * w lines of n elements, with `along` from element to element and `across` from line to line; room for n times w. */
#define OTHERS(T, OTHERS, PAIRS, LINES) \
static inline void OTHERS(const T *x, T *out, int64_t n, int64_t along, int64_t across, int w) { \
    T product[TGX_SCAN_TILE]; \
    for (int j = 0; j < w; j++) product[j] = 1; \
    for (int64_t k = 0; k < n * along; k += along) \
        for (int j = 0; j < w; j++) out[k + j * across] = product[j], product[j] *= x[k + j * across]; \
    for (int j = 0; j < w; j++) product[j] = 1; \
    for (int64_t k = (n - 1) * along; k >= 0; k -= along) \
        for (int j = 0; j < w; j++) out[k + j * across] *= product[j], product[j] *= x[k + j * across]; \
} \
/* Of one line both products at once, from its ends: each multiplication waits for the one before. */ \
static void OTHERS##_line(const T *x, T *out, int64_t n, int64_t along) { \
    T front = 1, behind = 1; \
    int64_t k = 0, l = (n - 1) * along; \
    for (; k < l; k += along, l -= along) out[k] = front, front *= x[k], out[l] = behind, behind *= x[l]; \
    if (k == l) out[k] = front * behind, front *= x[k], behind *= x[k], k += along, l -= along; \
    for (; l >= 0; k += along, l -= along) out[k] *= front, front *= x[k], out[l] *= behind, behind *= x[l]; \
} \
static inline void PAIRS(const T *weight, const T *x, T *out, T *fronts, int64_t n, int64_t along, int64_t across, int w) { \
    T product[TGX_SCAN_TILE], sum[TGX_SCAN_TILE]; \
    for (int j = 0; j < w; j++) product[j] = 1, sum[j] = 0; \
    for (int64_t k = 0; k < n * along; k += along, fronts += w) \
        for (int j = 0; j < w; j++) { \
            int64_t i = k + j * across; \
            out[i] = sum[j], fronts[j] = product[j]; \
            sum[j] = sum[j] * x[i] + weight[i] * product[j], product[j] *= x[i]; \
        } \
    for (int j = 0; j < w; j++) product[j] = 1, sum[j] = 0; \
    for (int64_t k = (n - 1) * along; k >= 0; k -= along) { \
        fronts -= w; \
        for (int j = 0; j < w; j++) { \
            int64_t i = k + j * across; \
            out[i] = out[i] * product[j] + fronts[j] * sum[j]; \
            sum[j] = sum[j] * x[i] + weight[i] * product[j], product[j] *= x[i]; \
        } \
    } \
} \
static void LINES(const T *weight, const T *x, T *out, void *room, int64_t n, int64_t inner, int64_t outer) { \
    if (inner < TOGETHER) { /* lines far apart; the same place of several of them at once */ \
        for (int64_t first = 0; first < outer; first += TOGETHER) { \
            int w = outer - first < TOGETHER ? (int)(outer - first) : TOGETHER; \
            for (int64_t i = first * n * inner; i < first * n * inner + inner; i++) { \
                if (weight) PAIRS(weight + i, x + i, out + i, room, n, inner, n * inner, w); \
                else if (w == TOGETHER) OTHERS(x + i, out + i, n, inner, n * inner, TOGETHER); \
                else if (w == 1) OTHERS##_line(x + i, out + i, n, inner); \
                else OTHERS(x + i, out + i, n, inner, n * inner, w); \
            } \
        } \
        return; \
    } \
    for (int64_t line = 0; line < outer; line++) \
        for (int64_t first = 0; first < inner; first += TGX_SCAN_TILE) { \
            int64_t i = line * n * inner + first; \
            int w = inner - first < TGX_SCAN_TILE ? (int)(inner - first) : TGX_SCAN_TILE; \
            if (weight) PAIRS(weight + i, x + i, out + i, room, n, inner, 1, w); \
            else OTHERS(x + i, out + i, n, inner, 1, w); \
        } \
}
OTHERS(float, others_f32, pairs_f32, lines_f32)
OTHERS(double, others_f64, pairs_f64, lines_f64)
OTHERS(tgx_c64, others_c64, pairs_c64, lines_c64)
OTHERS(tgx_c128, others_c128, pairs_c128, lines_c128)

int64_t tgx_prod_room(int64_t n, int64_t inner, int64_t outer) {
    if (inner < TOGETHER) return n * (outer < TOGETHER ? outer : TOGETHER);
    return n * (inner < TGX_SCAN_TILE ? inner : TGX_SCAN_TILE);
}

void tgx_prod_others(const char *weight, const char *x, char *out, void *room, int64_t n, int64_t inner, int64_t outer, int dtype) {
    switch (dtype) {
    case TGX_F32: lines_f32((const float *)weight, (const float *)x, (float *)out, room, n, inner, outer); break;
    case TGX_F64: lines_f64((const double *)weight, (const double *)x, (double *)out, room, n, inner, outer); break;
    case TGX_C64: lines_c64((const tgx_c64 *)weight, (const tgx_c64 *)x, (tgx_c64 *)out, room, n, inner, outer); break;
    default: lines_c128((const tgx_c128 *)weight, (const tgx_c128 *)x, (tgx_c128 *)out, room, n, inner, outer);
    }
}

void tgx_scan_tiles(const tgx_scan_plan *p, int64_t lo, int64_t hi) {
    for (int64_t tile = lo; tile < hi; tile++) scan_tile(p, place_of(p, tile));
}
