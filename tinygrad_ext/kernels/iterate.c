/* See iterate.h. The pointers of all possible operands are moved from row to row, used or not: of a loop over those in use
 * gcc made vector code, and each row cost 45 ns besides its elements. */
#include "iterate.h"
#include <stdlib.h>

/* Operands that lie the other way than the output are turned tile by tile into lines of their own, so that a loop gets rows that
 * lie side by side, COLUMNS at a time. Rejected: squares of 16 x 16 walked where they lie, a call of the loop for each 16 elements
 * and a load for each of them, which takes 2 to 5 times as long. What has to stay in its place is walked so still: 16 floats are a
 * line of the cache, and few lines collide when a stride is a power of two. */
enum { TILE = 16, ROWS = 64, COLUMNS = 128, FEW = 64, ROOM = 1 << 16, SHORT_ROW = 32, SHARED_ROW = 256,
       STRETCH = 1024 };

void tgx_iter_begin(tgx_iter *it, const int64_t *shape, int ndim) {
    it->nop = 0;
    it->ndim = ndim;
    it->tiled = it->pure = 0;
    it->stays = 1;
    it->turned = it->spread = 0;
    it->plane = NULL;
    it->numel = 1;
    for (int d = 0; d < ndim; d++) {
        it->shape[d] = shape[ndim - 1 - d];
        it->numel *= shape[d];
    }
}

void tgx_iter_add(tgx_iter *it, char *data, const int64_t *shape, const int64_t *strides, int ndim, int itemsize) {
    ptrdiff_t *out = it->strides[it->nop];
    it->size[it->nop] = itemsize;
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

/* The dimension in which operand k lies closest, if that is another than the innermost one. */
static int closest(const tgx_iter *it, int k) {
    int best = 0;
    if (!it->strides[k][0]) return 0;
    for (int d = 1; d < it->ndim; d++)
        if (absolute(it->strides[k][d]) < absolute(it->strides[k][best]) && it->strides[k][d]) best = d;
    return best;
}

/* Make the dimension in which an operand lies closest the second one, so that a plane is the whole of a transposition. */
static void make_second(tgx_iter *it, int best) {
    for (; best > 1; best--) swap_dims(it, best, best - 1);
}

/* Which operands lie the other way in the plane of the two innermost dimensions. */
static void plan_tiles(tgx_iter *it) {
    int best = 0;
    for (int k = 1; k < it->nop && !best; k++) best = closest(it, k);
    if (!best || it->shape[0] < TILE || it->shape[best] < TILE) return;
    make_second(it, best);
    it->tiled = 1;
    for (int k = 1; k < it->nop; k++)
        if (it->strides[k][1] && absolute(it->strides[k][0]) > absolute(it->strides[k][1])) it->turned |= 1u << k;
}

/* Which operands lie at every second place, as the real parts of complex numbers do: brought together, a loop takes them in vectors.
 * Beyond the caches that is slower, up to twice, for large elements: the stretch of one operand after the other waits for memory. A
 * million floats still take half the time of one by one, the root of them a quarter. Two doubles that are added are as near. */
static void plan_lines(tgx_iter *it) {
    if (it->numel < FEW) return;
    for (int k = 1; k < it->nop; k++) {
        const int size = it->size[k];
        const int64_t most = size > 4 ? (it->nop == 3 ? 0 : 1 << 16) : size > 2 ? 1 << 20 : INT64_MAX;
        if (it->strides[k][0] == 2 * size && size && it->numel <= most) it->spread |= 1u << k;
    }
    it->spread &= ~(it->stays | it->turned);
    if (!it->spread) return;
    it->tiled = 1;
    if (it->ndim > 1) return;
    it->ndim = 2, it->shape[1] = 1;
    for (int k = 0; k < it->nop; k++) it->strides[k][1] = 0;
}

/* Short rows that lie behind each other, beside an operand that has one element for each row, or one row for all: that one is
 * written out for a stretch of rows, so that a loop has some hundred elements a call instead of 8 or 20. A row for all is written
 * once, which pays for longer ones as well. */
static void plan_short_rows(tgx_iter *it) {
    unsigned written = 0;
    int64_t most = SHARED_ROW;
    if (it->tiled || it->stays != 1 || it->shape[0] > SHARED_ROW || it->numel < 4 * it->shape[0] || it->numel < 4 * SHORT_ROW) return;
    for (int k = 0; k < it->nop; k++) {
        const ptrdiff_t step = it->strides[k][0];
        if (step == it->size[k] && it->strides[k][1] == it->shape[0] * step) continue;
        if (!k || (step && step != it->size[k])) return;
        if (!step || it->strides[k][1]) most = SHORT_ROW - 1;
        written |= 1u << k;
    }
    if (it->shape[0] > most) return;
    it->spread = written;
    it->tiled = written != 0;
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
        make_second(it, closest(it, 1));
        return;
    }
    /* a short inner row costs a call each few elements: put the longer of the two innermost inside */
    if (it->ndim > 1 && it->shape[0] < 8 && it->shape[1] > 4 * it->shape[0]) swap_dims(it, 0, 1);
    if (it->ndim > 1) plan_tiles(it);
    plan_lines(it);
    if (it->ndim > 1) plan_short_rows(it);
}

/* ---- running ---- */

enum { REPEATED = 16, AT_ONCE = 512 }; /* shorter rows take no longer element by element */

/* Whether each row is one element again and again: relu of a column that was expanded. */
static int repeats(const tgx_iter *it) {
    if (!it->pure || it->plane || it->shape[0] < REPEATED || it->strides[0][0] != it->size[0]) return 0;
    for (int k = 1; k < it->nop; k++)
        if (it->strides[k][0]) return 0;
    return 1;
}

/* The column of what the rows hold, in one call, and then the rows. */
static int run_repeated(const tgx_iter *it, char *const *data, tgx_loop loop, const tgx_scalar *aux, const ptrdiff_t *outer,
                        int64_t rows) {
    char room[AT_ONCE * sizeof(tgx_c128)] __attribute__((aligned(64))), *at[TGX_MAX_OPERANDS];
    ptrdiff_t down[TGX_MAX_OPERANDS];
    memcpy(down, outer, sizeof down);
    down[0] = it->size[0];
    for (int64_t j = 0; j < rows; j += AT_ONCE) {
        const int64_t n = rows - j < AT_ONCE ? rows - j : AT_ONCE;
        for (int k = 0; k < TGX_MAX_OPERANDS; k++) at[k] = data[k] + j * outer[k];
        char *both[] = {at[0], room};
        const ptrdiff_t inner[] = {it->size[0], 0}, next[] = {outer[0], it->size[0]};
        at[0] = room;
        int code = loop(at, down, n, aux);
        if (code) return code;
        tgx_copy_plane(it->size[0])(both, inner, next, it->shape[0], n);
    }
    return 0;
}

static int run_rows(char *const *data, tgx_loop loop, const tgx_scalar *aux, const ptrdiff_t *inner,
                    const ptrdiff_t *outer, int64_t n, int64_t rows) {
    char *at[TGX_MAX_OPERANDS], *row[TGX_MAX_OPERANDS];
    int code = 0;
    memcpy(at, data, sizeof at);
    for (int64_t j = 0; j < rows && !code; j++) {
        memcpy(row, at, sizeof row);
        code = loop(row, inner, n, aux);
        for (int k = 0; k < TGX_MAX_OPERANDS; k++) at[k] += outer[k];
    }
    return code;
}

/* run_rows of four operands or fewer, whose places stay in registers: the next row does not wait for them to be written. */
static int run_rows_of_few(char *const *data, tgx_loop loop, const tgx_scalar *aux, const ptrdiff_t *inner,
                           const ptrdiff_t *outer, int64_t n, int64_t rows) {
    char *o = data[0], *x = data[1], *y = data[2], *z = data[3];
    const ptrdiff_t os = outer[0], xs = outer[1], ys = outer[2], zs = outer[3];
    int code = 0;
    for (; rows && !code; rows--, o += os, x += xs, y += ys, z += zs) {
        char *row[] = {o, x, y, z};
        code = loop(row, inner, n, aux);
    }
    return code;
}

static int64_t at_most(int64_t n, int64_t most) { return n < most ? n : most; }

/* One tile at data, n1 <= rows rows of n0 elements: run_rows, over lines of `room` where operands lie the other way. What is the
 * same for all rows stands there already where the tile is not the first. */
static int run_tile(const tgx_iter *it, char *const *data, tgx_loop loop, const tgx_scalar *aux, char *room, int64_t n0, int64_t n1,
                    int64_t rows, int first) {
    char *at[TGX_MAX_OPERANDS] = {0};
    ptrdiff_t inner[TGX_MAX_OPERANDS], outer[TGX_MAX_OPERANDS] = {0};
    const unsigned brought = (it->turned | it->spread) & ~it->stays;
    int whole = 1;          /* the rows lie behind each other in all operands */
    for (int k = 0; k < it->nop; k++) {
        at[k] = data[k], inner[k] = it->strides[k][0], outer[k] = it->strides[k][1];
        if (brought >> k & 1) {
            char *both[] = {room, data[k]};
            const ptrdiff_t steps[] = {it->size[k], inner[k]}, lines[] = {n0 * it->size[k], outer[k]};
            if (first || outer[k]) tgx_copy_plane(it->size[k])(both, steps, lines, n0, n1);
            at[k] = room, inner[k] = steps[0], outer[k] = lines[0];
            room += rows * lines[0];
        }
        whole = whole && outer[k] == n0 * inner[k];
    }
    return whole ? loop(at, inner, n0 * n1, aux) : run_rows(at, loop, aux, inner, outer, n0, n1);
}

static int run_tiles(const tgx_iter *it, char *const *data, tgx_loop loop, const tgx_scalar *aux) {
    char room[ROOM] __attribute__((aligned(64))), *at[TGX_MAX_OPERANDS];
    int64_t rows = ROWS, columns = COLUMNS, bytes = 0;
    if (it->turned & it->stays) rows = columns = TILE;
    else if (!it->turned && it->shape[0] <= SHARED_ROW) columns = it->shape[0], rows = STRETCH / columns;
    else if (!it->turned) rows /= 8, columns *= 8;
    for (int k = 1; k < it->nop; k++)
        if ((it->turned | it->spread) >> k & 1) bytes += it->size[k];
    for (; rows * columns * bytes > ROOM;) *(rows > 1 ? &rows : &columns) /= 2;
    for (int64_t j = 0; j < it->shape[1]; j += rows)
        for (int64_t i = 0; i < it->shape[0]; i += columns) {
            for (int k = 0; k < it->nop; k++) at[k] = data[k] + i * it->strides[k][0] + j * it->strides[k][1];
            const int64_t n0 = at_most(it->shape[0] - i, columns), n1 = at_most(it->shape[1] - j, rows);
            int code = run_tile(it, at, loop, aux, room, n0, n1, rows, !j || columns < it->shape[0]);
            if (code) return code;
        }
    return 0;
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
    const int repeated = repeats(it);
    if (it->ndim == 1 && it->plane && inner[1] == 2 * it->size[1]) { /* which the loop copies one by one */
        it->plane(data, inner, outer, it->shape[0], 1);
        return 0;
    }
    if (it->ndim == 1 && !repeated) return loop(data, inner, it->shape[0], aux);
    for (int d = 2; d < it->ndim; d++) index[d] = 0;
    for (;;) {
        int code = 0;
        if (repeated) code = run_repeated(it, data, loop, aux, outer, it->ndim > 1 ? it->shape[1] : 1);
        else if (it->plane) it->plane(data, inner, outer, it->shape[0], it->shape[1]);
        else if (it->tiled) code = run_tiles(it, data, loop, aux);
        else code = (it->nop > 4 ? run_rows : run_rows_of_few)(data, loop, aux, inner, outer, it->shape[0], it->shape[1]);
        if (code) return code;
        int d = 2;
        for (; d < it->ndim; d++) {
            for (int k = 0; k < it->nop; k++) data[k] += it->strides[k][d];
            if (++index[d] < it->shape[d]) break;
            for (int k = 0; k < it->nop; k++) data[k] -= it->strides[k][d] * it->shape[d];
            index[d] = 0;
        }
        if (d >= it->ndim) return 0;
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
