/* The walk of a reduction: which elements make up a block, wherever they lie. See reduce.h. Tried and left out: a prefetch
 * of the elements to come, without which sums are quicker; and one running sum in double, whose additions wait for each
 * other: 600 µs for a million floats where 16 lanes take 45. */
#include "reduce.h"
#include <stdlib.h>
#include "casts.h"

/* ---- plan ---- */

static void add_dim(int64_t *size, ptrdiff_t *stride, int *n, int64_t s, ptrdiff_t st) {
    if (s == 1) return;
    if (*n && stride[*n - 1] == s * st) {
        size[*n - 1] *= s;
        stride[*n - 1] = st;
        return;
    }
    size[*n] = s;
    stride[*n] = st;
    ++*n;
}

/* Reduced dimensions by falling stride, where the order of elements is free; those that now meet are merged. No dimension repeats an
 * element: its result is repeated instead, if to take it again changes it. */
static void sort_reduced(tgx_reduction *p) {
    enum { MANY = 8 }; /* rows that are all of one output: to add fewer takes less than to count them */
    int n = 0;
    for (int i = 0; i < p->nred; i++) {
        if (p->count && !p->rstride[i] && (p->reducer->any_order > 1 || p->nred > 1 || p->rsize[i] >= MANY)) {
            p->count /= p->rsize[i];
            if (p->reducer->any_order == 1) p->times *= p->rsize[i];
            continue;
        }
        p->rsize[n] = p->rsize[i], p->rstride[n++] = p->rstride[i];
    }
    p->nred = 0;
    for (int i = 1; i < n; i++)
        for (int j = i; j && p->rstride[j - 1] < p->rstride[j]; j--) {
            int64_t s = p->rsize[j];
            ptrdiff_t st = p->rstride[j];
            p->rsize[j] = p->rsize[j - 1], p->rstride[j] = p->rstride[j - 1];
            p->rsize[j - 1] = s, p->rstride[j - 1] = st;
        }
    for (int i = 0; i < n; i++) add_dim(p->rsize, p->rstride, &p->nred, p->rsize[i], p->rstride[i]);
}

int tgx_reduction_scattered(const tgx_reduction *p) {
    return p->unit < 0 && p->nred > 1 && p->rstride[p->nred - 1] != p->itemsize && p->rsize[p->nred - 1] > 1;
}

int tgx_reduction_turned(const tgx_reduction *p) {
    enum { WIDEST = 1 << 14 };
    return !p->nkept && p->nred == 2 && p->rstride[0] == p->itemsize && p->nspans > 1 && p->rsize[1] <= WIDEST &&
           p->rsize[0] >= TGX_SPAN;
}

#define NARROW 8 /* tiles of fewer columns are slower than gathering each column */

/* A narrow matrix without gaps, and a reducer that takes many of its rows as one. */
static int packed(const tgx_reduction *p, int d) {
    return p->reducer->packs && p->nred == 1 && p->rstride[0] == p->ksize[d] * p->itemsize;
}

#define MOST_SKIPPED 4

/* The kept dimension along which outputs form tiles, or -1: the one whose neighbours lie behind each other, if going
 * along the reduced ones would be slower, or at most MOST_SKIPPED elements apart: whole rows are read then, which costs less than
 * to walk down each column; and for short reductions any, the columns are gathered then. */
static int unit_dim(tgx_reduction *p) {
    int last = p->nkept - 1, along = p->nred == 1 && p->rstride[0] == p->itemsize;
    if (along && p->count > p->reducer->tiled) return -1;
    if (last >= 0 && p->count * p->itemsize <= TGX_SHORT && p->ksize[last] >= NARROW) return last;
    if (along) return -1;
    for (int d = 0; d < p->nkept; d++)
        if (p->kstride[d] == p->itemsize) return p->ksize[d] >= NARROW || packed(p, d) ? d : -1;
    for (int d = 0; d < p->nkept; d++)
        if (p->kstride[d] > 0 && p->kstride[d] <= MOST_SKIPPED * p->itemsize && p->ksize[d] >= NARROW && p->nred &&
            p->kstride[d] < p->rstride[p->nred - 1]) {
            p->skip = (int)(p->kstride[d] / p->itemsize);
            return d;
        }
    return -1;
}

static int tile_width(const tgx_reduction *p) { return TGX_TILE / p->skip; }

void tgx_reduction_plan(tgx_reduction *p, const char *x, const int64_t *sizes, const int64_t *strides, int ndim,
                        uint64_t mask, int itemsize) {
    p->x = x;
    p->itemsize = itemsize;
    p->nkept = p->nred = 0;
    p->count = p->outputs = p->times = 1;
    for (int d = 0; d < ndim; d++) {
        if (mask >> d & 1) {
            p->count *= sizes[d];
            add_dim(p->rsize, p->rstride, &p->nred, sizes[d], strides[d] * itemsize);
        } else {
            p->outputs *= sizes[d];
            add_dim(p->ksize, p->kstride, &p->nkept, sizes[d], strides[d] * itemsize);
        }
    }
    if (p->reducer->any_order) sort_reduced(p);
    ptrdiff_t step = 1;
    for (int d = p->nkept - 1; d >= 0; d--) {
        p->kout[d] = step;
        step *= p->ksize[d];
    }
    if (!p->count) p->nred = 0; /* the neutral state of `block` is the result */
    p->skip = 1;
    p->unit = p->count ? unit_dim(p) : -1;
    p->ntiles = p->outputs;
    if (p->unit >= 0 && p->outputs) {
        int64_t width = p->ksize[p->unit];
        p->ntiles = p->outputs / width * ((width + tile_width(p) - 1) / tile_width(p));
    }
    p->nspans = (p->count + TGX_BLOCK * TGX_SPAN - 1) / (TGX_BLOCK * TGX_SPAN);
}

/* ---- a few elements without gaps, one block each ---- */

/* Neighbouring outputs, whose elements stand in rows behind each other. */
static void few_rows(const tgx_reduction *p, const char *x, int64_t n, int64_t w) {
    const char *rows[TGX_BLOCK];
    tgx_acc acc;
    ptrdiff_t row = w * p->itemsize;
    for (int64_t at = 0; at < w; at += TGX_TILE) {
        int width = w - at < TGX_TILE ? (int)(w - at) : TGX_TILE;
        for (int64_t r = 0; r < n; r++) rows[r] = x + r * row + at * p->itemsize;
        p->reducer->rows(rows, n, width, 0, p->aux, &acc);
        p->reducer->finish(&acc, width, n, p->aux, p->out ? p->out + at * p->osize : NULL, p->osize,
                           p->out2 ? p->out2 + at * p->osize2 : NULL, p->osize2);
    }
}

/* The state whose output 0 is output o of another one. */
static tgx_acc *from_output(tgx_acc *acc, int o) { return (tgx_acc *)(acc->a + o); }

/* Outputs [lo, hi) of n elements each behind each other, `step` bytes apart: written by tiles. */
static void few_blocks(const tgx_reduction *p, const char *x, int64_t n, ptrdiff_t step, int64_t lo, int64_t hi) {
    tgx_acc acc;
    for (int width; lo < hi; lo += width) {
        width = hi - lo < TGX_TILE ? (int)(hi - lo) : TGX_TILE;
        int o = p->reducer->several ? p->reducer->several(x + lo * step, n, step, width, &acc) : 0;
        for (; o < width; o++) p->reducer->block(x + (lo + o) * step, n, 0, p->aux, from_output(&acc, o));
        p->reducer->finish(&acc, width, n, p->aux, p->out ? p->out + lo * p->osize : NULL, p->osize,
                           p->out2 ? p->out2 + lo * p->osize2 : NULL, p->osize2);
    }
}

int tgx_reduction_at_once(const tgx_reduction *p, const char *x, const int64_t *sizes, int ndim, uint64_t mask) {
    int64_t n = 1, w = 1;
    int last = -1, changes = -1;
    for (int d = 0; d < ndim; d++) {
        int reduced = mask >> d & 1;
        if (sizes[d] == 1) continue;
        if (reduced) n *= sizes[d];
        else w *= sizes[d];
        changes += reduced != last;
        last = reduced;
    }
    if (changes > 1 || n > TGX_BLOCK || n < 1 || w < 1) return 0;
    if (!last) {                    /* outer ones are reduced, or none */
        if (w < NARROW && !p->reducer->packs) return 0;
        few_rows(p, x, n, w);
        return 1;
    }
    if (w >= NARROW && n * p->itemsize <= TGX_SHORT && n <= p->reducer->tiled) return 0; /* tiles are quicker */
    few_blocks(p, x, n, n * p->itemsize, 0, w);
    return 1;
}

/* ---- one block ---- */

typedef struct { const char *x; int64_t first; ptrdiff_t ostep; int w, read; } tile_place;

/* Where a tile begins in the operand and in the output, how wide it is, and how many elements of a row are read for it. */
static tile_place place_of(const tgx_reduction *p, int64_t tile) {
    tile_place at = {p->x, 0, 1, 1, 1};
    int64_t per = 1, inside = 0, rest = tile;
    if (p->nkept == 1 && p->unit < 0) { /* the usual case, without divisions */
        at.x += tile * p->kstride[0];
        at.first = tile;
        return at;
    }
    if (p->unit >= 0) {
        const int most = tile_width(p);
        per = (p->ksize[p->unit] + most - 1) / most;
        inside = tile % per * most;
        rest = tile / per;
        int64_t left = p->ksize[p->unit] - inside;
        at.w = left < most ? (int)left : most;
        at.read = left > most ? at.w * p->skip : (at.w - 1) * p->skip + 1;
        at.ostep = p->kout[p->unit];
    }
    for (int d = p->nkept - 1; d >= 0; d--) {
        int64_t i = inside;
        if (d != p->unit) {
            i = rest % p->ksize[d];
            rest /= p->ksize[d];
        }
        at.x += i * p->kstride[d];
        at.first += i * p->kout[d];
    }
    return at;
}

static void gather(char *to, const char *x, ptrdiff_t stride, int64_t n, int itemsize) {
    char *both[] = {to, (char *)x};
    const ptrdiff_t inner[] = {itemsize, stride}, outer[] = {0, 0};
    if (stride == itemsize) memcpy(to, x, (size_t)(n * itemsize));
    else tgx_copy_plane(itemsize)(both, inner, outer, n, 1);
}

/* Runs of the innermost reduced dimension that make up logical elements [start, start + n). */
typedef struct { int64_t index[TGX_MAX_DIMS]; const char *x; } cursor;

static void seek(const tgx_reduction *p, cursor *c, const char *x, int64_t start) {
    c->x = x;
    for (int d = p->nred - 1; d >= 0; d--) {
        c->index[d] = start % p->rsize[d];
        start /= p->rsize[d];
        c->x += c->index[d] * p->rstride[d];
    }
}

static void advance(const tgx_reduction *p, cursor *c, int64_t n) {
    int d = p->nred - 1;
    c->index[d] += n;
    c->x += n * p->rstride[d];
    while (d > 0 && c->index[d] == p->rsize[d]) {
        c->x += p->rstride[d - 1] - p->rsize[d] * p->rstride[d];
        c->index[d] = 0;
        c->index[--d]++;
    }
}

static void scattered_block(const tgx_reduction *p, const char *x, int64_t start, int64_t n, tgx_acc *acc) {
    _Alignas(64) char buffer[TGX_BLOCK * sizeof(tgx_c128)];
    int inner = p->nred - 1;
    cursor c;
    seek(p, &c, x, start);
    if (p->rstride[inner] == p->itemsize && p->rsize[inner] - c.index[inner] >= n) {
        p->reducer->block(c.x, n, start, p->aux, acc);
        return;
    }
    for (int64_t done = 0; done < n;) {
        int64_t run = p->rsize[inner] - c.index[inner];
        if (run > n - done) run = n - done;
        gather(buffer + done * p->itemsize, c.x, p->rstride[inner], run, p->itemsize);
        advance(p, &c, run);
        done += run;
    }
    p->reducer->block(buffer, n, start, p->aux, acc);
}

static void list_rows(const tgx_reduction *p, const char *x, int64_t start, int64_t n, const char **rows) {
    cursor c;
    rows[0] = x;
    if (p->nred <= 1) {
        for (int64_t r = 0; p->nred && r < n; r++) rows[r] = x + (start + r) * p->rstride[0];
        return;
    }
    seek(p, &c, x, start);
    for (int64_t r = 0; r < n; r++) {
        rows[r] = c.x;
        advance(p, &c, 1);
    }
}

/* Short reductions whose outputs do not lie behind each other: bring each row of the tile together. */
static void gathered_rows(const tgx_reduction *p, int w, int64_t n, const char **rows, char *buffer) {
    const ptrdiff_t row = (ptrdiff_t)w * p->itemsize;
    if (p->nred == 1 && p->rstride[0] == p->itemsize) {     /* a matrix that is turned */
        char *both[] = {buffer, (char *)rows[0]};
        const ptrdiff_t inner[] = {p->itemsize, p->kstride[p->unit]}, outer[] = {row, p->itemsize};
        tgx_copy_plane(p->itemsize)(both, inner, outer, w, n);
        for (int64_t r = 0; r < n; r++) rows[r] = buffer + r * row;
        return;
    }
    for (int64_t r = 0; r < n; r++) {
        gather(buffer + r * row, rows[r], p->kstride[p->unit], w, p->itemsize);
        rows[r] = buffer + r * row;
    }
}

/* What lay between the outputs of a tile is left out. */
static void draw_together(tgx_acc *acc, int skip, int w) {
    for (int c = 1; c < w; c++) {
        acc->a[c] = acc->a[c * skip], acc->b[c] = acc->b[c * skip];
        acc->i[c] = acc->i[c * skip], acc->at[c] = acc->at[c * skip];
    }
}

static void row_block(const tgx_reduction *p, const tile_place *at, int64_t start, int64_t n, tgx_acc *acc) {
    const char *rows[TGX_BLOCK];
    const int w = at->w;
    list_rows(p, at->x, start, n, rows);
    if (p->kstride[p->unit] == p->skip * p->itemsize) {
        p->reducer->rows(rows, n, at->read, start, p->aux, acc);
        if (p->skip > 1) draw_together(acc, p->skip, w);
    } else {
        _Alignas(64) char buffer[TGX_SHORT * TGX_TILE];
        gathered_rows(p, w, n, rows, buffer);
        p->reducer->rows(rows, n, w, start, p->aux, acc);
    }
}

static void one_block(const tgx_reduction *p, const tile_place *at, int64_t j, tgx_acc *acc) {
    int64_t start = j * TGX_BLOCK, n = p->count - start < TGX_BLOCK ? p->count - start : TGX_BLOCK;
    if (p->unit >= 0) row_block(p, at, start, n, acc);
    else if (!p->nred) p->reducer->block(at->x, n, start, p->aux, acc);
    else if (p->nred == 1 && p->rstride[0] == p->itemsize)
        p->reducer->block(at->x + start * p->itemsize, n, start, p->aux, acc);
    else scattered_block(p, at->x, start, n, acc);
}

/* ---- tiles ---- */

/* The blocks of one span, folded; a count of 0 gives the neutral state. */
static void one_span(const tgx_reduction *p, const tile_place *at, int64_t span, tgx_acc *acc) {
    tgx_acc part;
    int64_t j = span * TGX_SPAN, end = j + TGX_SPAN;
    one_block(p, at, j, acc);
    for (j++; j < end && j * TGX_BLOCK < p->count; j++) {
        one_block(p, at, j, &part);
        p->reducer->merge(acc, &part, at->w);
    }
}

/* As many times as elements are taken: halves of the number double what is folded. */
static void take_again(const tgx_reduction *p, tgx_acc *acc, int w) {
    tgx_acc once = *acc, doubled;
    int64_t bit = 1;
    while (bit <= p->times / 2) bit *= 2;
    for (bit /= 2; bit; bit /= 2) {
        doubled = *acc;
        p->reducer->merge(acc, &doubled, w);
        if (p->times & bit) p->reducer->merge(acc, &once, w);
    }
}

static void write_results(const tgx_reduction *p, const tile_place *at, const tgx_acc *acc) {
    p->reducer->finish(acc, at->w, p->count, p->aux,
                       p->out ? p->out + at->first * p->osize : NULL, at->ostep * p->osize,
                       p->out2 ? p->out2 + at->first * p->osize2 : NULL, at->ostep * p->osize2);
}

static void finish(const tgx_reduction *p, const tile_place *at, tgx_acc *acc) {
    if (p->times > 1) take_again(p, acc, at->w);
    write_results(p, at, acc);
}

#include "reduce_spans.h"

void tgx_reduction_tiles(const tgx_reduction *p, int64_t lo, int64_t hi) {
    tgx_acc acc, part;
    char *room = lo < hi && is_small_and_turned(p) ? malloc(turning_room(p)) : NULL;
    if (room) {
        const tile_place at = place_of(p, 0);
        turned_spans(p, 0, 1, room, &acc);
        finish(p, &at, &acc);
        free(room);
        return;
    }
    if (p->unit < 0 && p->nkept == 1 && p->nred == 1 && p->rstride[0] == p->itemsize && p->count <= TGX_BLOCK && p->times == 1) {
        few_blocks(p, p->x, p->count, p->kstride[0], lo, hi);
        return;
    }
    const char *before = NULL; /* one output of the same elements is finished */
    for (int64_t tile = lo; tile < hi; tile++) {
        tile_place at = place_of(p, tile);
        if (at.x == before) {
            write_results(p, &at, &acc);
            continue;
        }
        one_span(p, &at, 0, &acc);
        for (int64_t s = 1; s < p->nspans; s++) {
            one_span(p, &at, s, &part);
            p->reducer->merge(&acc, &part, at.w);
        }
        finish(p, &at, &acc);
        before = at.w == 1 && p->count ? at.x : NULL;
    }
}

void tgx_reduction_spans(const tgx_reduction *p, int64_t tile, int64_t lo, int64_t hi, tgx_acc *parts) {
    tile_place at = place_of(p, tile);
    const int turned = tgx_reduction_turned(p);
    char *room = turned || is_repeated(p) ? malloc(turned ? turning_room(p) : repeating_room(p)) : NULL;
    if (room) (turned ? turned_spans : repeated_spans)(p, lo, hi, room, parts);
    else for (int64_t s = lo; s < hi; s++) one_span(p, &at, s, &parts[s]);
    free(room);
}

void tgx_reduction_fold(const tgx_reduction *p, int64_t tile, tgx_acc *parts) {
    tile_place at = place_of(p, tile);
    for (int64_t s = 1; s < p->nspans; s++) p->reducer->merge(&parts[0], &parts[s], at.w);
    finish(p, &at, &parts[0]);
}
