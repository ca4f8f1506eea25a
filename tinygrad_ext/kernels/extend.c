/* Kernels of padding by what is there: mirrored without the edge, the edge repeated, or from the other end.
 *
 * Each padded dimension has a table of where its places come from, so that all modes and widths are one walk over rows: the middle
 * of a row by memcpy, its ends by the table. Images whose channels lie inside are the same with units of so many elements. The
 * gradient goes by tables of where a place went, each sum of its own in ascending order, of halves in float32, and is a copy where
 * a place went to one. Rejected: to add row after row into the result, which needs a row of float32 for halves; joining copies, a
 * pass for each dimension. */
#include "channels.h"
#include "types.h"

enum { MOST = 3, GRAIN = 65536, BLOCK = 64 };

/* What runs once for each call, and sums of halves, which are few: code that is short. */
#define SHORT __attribute__((optimize("Os")))
#define PLAIN __attribute__((optimize("O2", "no-tree-vectorize")))

/* A dimension of n places that become m, of which `length` from `to` on are those from `from` on. */
typedef struct { int64_t n, m, before, after, to, from, length, *source, *first, *at; } line_t;

typedef struct {
    line_t line[MOST];      /* the last ones padded */
    int64_t inner;          /* elements inside of them */
    int64_t *others, many;  /* places of the last line that did not go to one place of its run alone */
    char *to;
    const char *from;
    int size, mode;
} extend_t;

enum { REFLECT = 'f', REPLICATE = 'p', CIRCULAR = 'r' };     /* third letters */

/* Dimension -1 - i, of `size` places. */
SHORT static int line_of(tgx_call *c, int mode, int i, int64_t size, int64_t before, int64_t after, line_t *l) {
    const int64_t limit = (int64_t)1 << 48;
    int64_t front = before > 0 ? before : 0, back = after > 0 ? after : 0, widest = front > back ? front : back;
    if (before <= -limit || after <= -limit || widest >= limit)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "pad(): storage size calculation overflowed with a padding of %lld and %lld",
                        (long long)before, (long long)after);
    int64_t cut = front - before, rest = size - cut - (back - after), m = size + before + after;
    if (mode == CIRCULAR && rest >= 0 && widest > rest)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Padding value causes wrapping around more than once: %lld at dimension %d "
                        "of %lld places", (long long)widest, -1 - i, (long long)rest);
    if (mode == REFLECT && widest && widest >= size)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Padding size should be less than the corresponding input dimension, but got: padding "
                        "%lld at dimension %d of size %lld", (long long)widest, -1 - i, (long long)size);
    if (mode == CIRCULAR ? rest < 0 : m < 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "pad(): dimension %d of input (size: %lld) is too small. Calculated output size: %lld "
                        "by a padding of %lld and %lld", -1 - i, (long long)size, (long long)m, (long long)before, (long long)after);
    if (size == 0 && m)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "pad(): dimension %d has no places that could be repeated", -1 - i);
    *l = (line_t){size, m, before, after, 0, 0, 0, 0, 0, 0};
    if (rest > 0) l->length = rest, l->to = front, l->from = cut;
    return 0;
}

/* The geometry of padding t, whose padded dimensions have these sizes. 0 or TGX_FAILED. */
SHORT static int lay(tgx_call *c, const tgx_tensor *t, const int64_t *sizes, extend_t *e) {
    const tgx_value *pad = &c->args[c->nargs - 2];
    int n = pad->n / 2, k = MOST - n, inside = (int)c->notes[0];
    for (int i = 0; i < MOST; i++) e->line[i] = (line_t){1, 1, 0, 0, 0, 0, 1, 0, 0, 0};
    e->inner = 1, e->mode = c->args[c->nargs - 1].text[2];
    for (int p = 0; p < t->rank; p++) {
        int d = !inside || p == 0 ? p : p == t->rank - 1 ? 1 : p + 1, i = t->rank - 1 - d;
        if (i >= n) e->inner *= k > MOST - n ? t->sizes[d] : 1;
        else if (line_of(c, e->mode, i, sizes[n - 1 - i], pad->ints[2 * i], pad->ints[2 * i + 1], &e->line[k++])) return TGX_FAILED;
    }
    return 0;
}

/* What both ask for: t is padded, or was; sizes are those of its last dimensions without padding, NULL for its own. */
SHORT static int check(tgx_call *c, const tgx_tensor *t, const int64_t *sizes, extend_t *e) {
    const tgx_value *pad = &c->args[c->nargs - 2];
    const char *mode = c->args[c->nargs - 1].text;
    if (strcmp(mode, "reflect") && strcmp(mode, "replicate") && strcmp(mode, "circular"))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "Unrecognised padding mode %s: it may be reflect, replicate or circular", mode);
    if (pad->n % 2 || pad->n > 2 * MOST || pad->n > 2 * t->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): pad takes a pair for each of the last dimensions, of at most %d, got %d numbers "
                        "for a tensor of %d dimensions", c->title, MOST, pad->n, t->rank);
    /* padded channels are brought into order: sums go in one */
    c->notes[0] = !c->target && pad->n / 2 < t->rank - 1 && tgx_channels_dense(t);
    if (lay(c, t, sizes ? sizes : t->sizes + t->rank - pad->n / 2, e)) return TGX_FAILED;
    tgx_output *o = tgx_fresh(c, 0, t->rank, t->dtype);
    for (int i = 0; i < t->rank; i++) o->dims[i] = t->sizes[i];
    for (int k = 0; k < MOST; k++) c->scratch_bytes += 8 * (sizes ? 2 * e->line[k].m + 2 * e->line[k].n + 1 : e->line[k].m);
    if (!c->notes[0]) tgx_need_dense(c, 0);
    return 0;
}

/* The result's order, once its sizes are known. */
SHORT static int ordered(tgx_call *c, const tgx_tensor *t) {
    if (tgx_check_sizes(c, c->outputs[0].dims, t->rank, "pad")) return TGX_FAILED;
    return c->notes[0] ? tgx_keep_channels(c, t) : tgx_keep_channels_by_copy(c, t);
}

/* ---- forward: (self, pad, mode) ---------------------------------------------------------------------------------- */

SHORT static int extend_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const tgx_value *pad = &c->args[1];
    extend_t e;
    if (check(c, t, NULL, &e)) return TGX_FAILED;
    for (int i = 0; i < pad->n / 2; i++) c->outputs[0].dims[t->rank - 1 - i] += pad->ints[2 * i] + pad->ints[2 * i + 1];
    return ordered(c, t);
}

/* Where each place comes from. */
SHORT static int64_t *find_sources(line_t *l, int mode, int64_t *room) {
    int64_t n = l->n, low = 0, high = n;
    l->source = room;
    if (mode == CIRCULAR) low = l->before < 0 ? -l->before : 0, high += l->after < 0 ? l->after : 0;
    for (int64_t o = 0; o < l->m; o++) {
        int64_t s = o - l->before;
        if (s < low) s = mode == REFLECT ? -s : mode == REPLICATE ? 0 : s + (high - low);
        else if (s >= high) s = mode == REFLECT ? 2 * (n - 1) - s : mode == REPLICATE ? n - 1 : s - (high - low);
        l->source[o] = s;
    }
    return room + l->m;
}

/* The ends of a row, in units of a type. */
#define ENDS(T) do { \
    for (int64_t o = 0; o < l->to; o++) ((T *)to)[o] = ((const T *)from)[l->source[o]]; \
    for (int64_t o = l->to + l->length; o < l->m; o++) ((T *)to)[o] = ((const T *)from)[l->source[o]]; \
} while (0)

static int extend_rows(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const extend_t *e = context;
    const line_t *a = &e->line[0], *b = &e->line[1], *l = &e->line[2];
    size_t unit = (size_t)(e->inner * e->size);
    int64_t j = lo % b->m, i = lo / b->m % a->m, plane = lo / b->m / a->m;
    for (ptrdiff_t r = lo; r < hi; r++) {
        const char *from = e->from + ((plane * a->n + a->source[i]) * b->n + b->source[j]) * l->n * (int64_t)unit;
        char *to = e->to + r * l->m * (int64_t)unit;
        memcpy(to + l->to * (int64_t)unit, from + l->from * (int64_t)unit, (size_t)l->length * unit);
        if (unit == 4) ENDS(uint32_t);
        else if (unit == 2) ENDS(uint16_t);
        else if (unit == 8) ENDS(uint64_t);
        else if (unit == 1) ENDS(uint8_t);
        else
            for (int64_t o = 0; o < l->m; o++) {
                if (o == l->to) o += l->length;
                if (o < l->m) memcpy(to + o * (int64_t)unit, from + l->source[o] * (int64_t)unit, unit);
            }
        if (++j == b->m && (j = 0, ++i == a->m)) i = 0, plane++;
    }
    return 0;
}

SHORT static int extend_whole(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    int64_t *room = c->scratch;
    extend_t e;
    if (out->count == 0) return 0;
    if (lay(c, t, t->sizes + t->rank - c->args[1].n / 2, &e)) return TGX_FAILED;
    for (int k = 0; k < MOST; k++) room = find_sources(&e.line[k], e.mode, room);
    e.to = out->data, e.from = t->data, e.size = tgx_itemsize[t->dtype];
    int64_t row = e.line[2].m * e.inner;
    return tgx_range(c, extend_rows, &e, out->count / row, GRAIN / row + 1);
}
static int extend_run(tgx_call *c) { return c->notes[0] ? extend_whole(c) : tgx_run_rows(c, extend_whole); }
TGX_KERNEL(extend, extend_shape, extend_run, TGX_NATURAL)

/* ---- gradient: (grad_output, size, pad, mode), size of the padded dimensions --------------------------------------- */

SHORT static int extend_backward_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const tgx_value *size = &c->args[1], *pad = &c->args[2];
    int n = pad->n / 2, last = t->rank - n;
    extend_t e;
    for (int i = 0; i < size->n; i++)
        if (size->ints[i] < 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): size has the negative number %lld", c->title, (long long)size->ints[i]);
    if (size->n != n)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s(): size takes %d numbers, one for each pair of pad, got %d", c->title, n, size->n);
    if (check(c, t, size->ints, &e)) return TGX_FAILED;
    if (!tgx_is_inexact(t->dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': gradients are floating or complex", c->title,
                        tgx_dtype_title(t->dtype));
    for (int i = 0; i < n; i++) {
        int64_t wanted = size->ints[i] + pad->ints[2 * (n - 1 - i)] + pad->ints[2 * (n - 1 - i) + 1];
        if (t->sizes[last + i] != wanted)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "gradOutput is unexpectedly sized in dimension %d. Expected: %lld, Got: %lld",
                            last + i, (long long)wanted, (long long)t->sizes[last + i]);
        c->outputs[0].dims[last + i] = size->ints[i];
    }
    return ordered(c, t);
}

/* Where each place went, in ascending order. */
SHORT static int64_t *find_places(line_t *l, int64_t *room) {
    int64_t *first = l->first = room;
    l->at = room + l->n + 1;
    for (int64_t s = 0; s <= l->n; s++) first[s] = 0;
    for (int64_t o = 0; o < l->m; o++) first[l->source[o] + 1]++;
    for (int64_t s = 0; s < l->n; s++) first[s + 1] += first[s];
    for (int64_t o = 0; o < l->m; o++) l->at[first[l->source[o]]++] = o;
    for (int64_t s = l->n; s > 0; s--) first[s] = first[s - 1];
    first[0] = 0;
    return l->at + l->m;
}

/* The places of a line that place s went to. */
typedef struct { const int64_t *at; int64_t n; } places_t;
static inline places_t places(const line_t *l, int64_t s) { return (places_t){l->at + l->first[s], l->first[s + 1] - l->first[s]}; }

static inline float half_in(uint16_t h, int brain) { return brain ? tgx_bf16_to_f32(h) : tgx_f16_to_f32(h); }
static inline uint16_t half_out(float f, int brain) { return brain ? tgx_f32_to_bf16(f) : tgx_f32_to_f16(f); }

/* Sums for `width` elements from `to` on, of a plane's rows i x j at places k; the same for one; then rows of a result. A sum begins
 * with -0, which changes no other number. */
#define FOLDS(NAME, T, A, IN, OUT, HOW) \
HOW __attribute__((noinline, noclone)) static void add_##NAME(const extend_t *e, T *to, int64_t width, const T *from, places_t i, \
                                                              places_t j, places_t k) { \
    int64_t rows = e->line[1].m, row = e->line[2].m * e->inner; \
    int brain = e->size; \
    A sums[BLOCK], begin = i.n && j.n && k.n ? (A)-0.0 : 0; \
    (void)brain; \
    for (int64_t at = 0; at < width; at += BLOCK) { \
        int64_t n = width - at < BLOCK ? width - at : BLOCK; \
        for (int64_t x = 0; x < n; x++) sums[x] = begin; \
        for (int64_t u = 0; u < i.n; u++) \
            for (int64_t v = 0; v < j.n; v++) \
                for (int64_t w = 0; w < k.n; w++) { \
                    const T *g = from + (i.at[u] * rows + j.at[v]) * row + k.at[w] * e->inner + at; \
                    for (int64_t x = 0; x < n; x++) sums[x] += IN(g[x]); \
                } \
        for (int64_t x = 0; x < n; x++) to[at + x] = OUT(sums[x]); \
    } \
} \
HOW static T one_##NAME(const extend_t *e, const T *from, places_t i, places_t j, places_t k) { \
    A sum = i.n && j.n && k.n ? (A)-0.0 : 0; \
    int brain = e->size; \
    (void)brain; \
    for (int64_t u = 0; u < i.n; u++) \
        for (int64_t v = 0; v < j.n; v++) { \
            const T *g = from + (i.at[u] * e->line[1].m + j.at[v]) * e->line[2].m; \
            for (int64_t w = 0; w < k.n; w++) sum += IN(g[k.at[w]]); \
        } \
    return OUT(sum); \
} \
HOW static int rows_##NAME(void *context, ptrdiff_t lo, ptrdiff_t hi) { \
    const extend_t *e = context; \
    const line_t *a = &e->line[0], *b = &e->line[1], *l = &e->line[2]; \
    int64_t row = l->m * e->inner, inner = e->inner, y = lo % b->n, x = lo / b->n % a->n; \
    const T *from = (const T *)e->from + lo / b->n / a->n * a->m * b->m * row; \
    for (ptrdiff_t r = lo; r < hi; r++) { \
        places_t i = places(a, x), j = places(b, y), run = {&l->to, 1}; \
        T *to = (T *)e->to + r * l->n * inner, *middle = to + l->from * inner; \
        if (i.n * j.n == 1) \
            memcpy(middle, from + (*i.at * b->m + *j.at) * row + l->to * inner, sizeof(T) * (size_t)(l->length * inner)); \
        else add_##NAME(e, middle, l->length * inner, from, i, j, run); \
        for (int64_t s = 0; s < e->many; s++) { \
            int64_t o = e->others[s]; \
            if (inner == 1) to[o] = one_##NAME(e, from, i, j, places(l, o)); \
            else add_##NAME(e, to + o * inner, inner, from, i, j, places(l, o)); \
        } \
        if (++y == b->n && (y = 0, ++x == a->n)) x = 0, from += a->m * b->m * row; \
    } \
    return 0; \
}
#define AS_IT_IS(x) (x)
#define HALF_IN(x) half_in(x, brain)
#define HALF_OUT(x) half_out(x, brain)
FOLDS(f32, float, float, AS_IT_IS, AS_IT_IS, )
FOLDS(f64, double, double, AS_IT_IS, AS_IT_IS, )
FOLDS(half, uint16_t, float, HALF_IN, HALF_OUT, PLAIN)

SHORT static int extend_backward_whole(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *out = tgx_out(c, 0);
    int64_t *room = c->scratch;
    extend_t e;
    if (out->count == 0) return 0;
    if (lay(c, t, c->args[1].ints, &e)) return TGX_FAILED;
    for (int k = 0; k < MOST; k++) room = find_places(&e.line[k], find_sources(&e.line[k], e.mode, room));
    const line_t *l = &e.line[2];
    e.others = room, e.many = 0;
    for (int64_t s = 0; s < l->n; s++)
        if (places(l, s).n != 1 || s < l->from || s >= l->from + l->length) e.others[e.many++] = s;
    e.to = out->data, e.from = t->data, e.size = t->dtype == TGX_BF16;
    int64_t row = l->n * e.inner, rows = out->count / row;
    int wide = t->dtype == TGX_F64 || t->dtype == TGX_C128;
    if (tgx_is_complex(t->dtype)) e.inner *= 2;
    return tgx_range(c, wide ? rows_f64 : tgx_itemsize[t->dtype] == 2 ? rows_half : rows_f32, &e, rows, GRAIN / row + 1);
}
static int extend_backward_run(tgx_call *c) { return c->notes[0] ? extend_backward_whole(c) : tgx_run_rows(c, extend_backward_whole); }
TGX_KERNEL(extend_backward, extend_backward_shape, extend_backward_run, 0)
