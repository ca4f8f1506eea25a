/* segment_reduce: (data, reduce, lengths, indices, offsets, axis, unsafe, initial), of segments that follow one another along
 * axis. What a segment has is converted to doubles a piece at a time and met lane by lane: the lanes are columns, or eight
 * neighbours where there is one column, so that a sum does not wait for the one before.
 *
 * Rejected: scatter_reduce into one place a segment, where each element waits for the store before it (4.3 ns instead of 0.4). */
#include <math.h>
#include "casts.h"
#include "tgx.h"
#pragma GCC optimize("O2", "no-tree-vectorize") /* of the loops below one alone is worth vectors, and says so */

enum { DATA, REDUCE, LENGTHS, INDICES, OFFSETS, AXIS, UNSAFE, INITIAL };
enum { SUM, PROD, MAX, MIN, MEAN };
enum { LANES = 8, STRIP = 64, PIECE = 512, GRAIN = 4096 };

static int which(const char *word) {
    static const char *const words[] = {"sum", "prod", "max", "min", "mean"};
    for (int k = 0; k < 5; k++)
        if (!strcmp(word, words[k])) return k;
    return !strcmp(word, "amax") ? MAX : !strcmp(word, "amin") ? MIN : -1;
}

static int check_borders(tgx_call *c, int arg, const char *name) {
    const tgx_tensor *x = tgx_in(c, DATA), *given = tgx_in(c, arg);
    const int axis = (int)tgx_int(c, AXIS);
    if (given->dtype != TGX_I64 && given->dtype != TGX_I32)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "segment_reduce(): Expected %s to be int32 or int64, got %s", name,
                        tgx_dtype_title(given->dtype));
    int fits = given->rank == axis + 1;
    for (int i = 0; fits && i < axis; i++) fits = given->sizes[i] == x->sizes[i];
    if (!fits)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "segment_reduce(): Expected axis to be the last dimension of %s and the sizes before it "
                        "to be data's, but got axis %d, %s of %s and data of %s", name, axis, name, tgx_shape_text(given),
                        tgx_shape_text(x));
    if (arg == OFFSETS && !given->sizes[axis])
        return tgx_fail(c, TGX_RUNTIME_ERROR, "segment_reduce(): offsets must have at least one element, the end of the last segment");
    return 0;
}

/* Notes: elements along axis, segments, columns, whether offsets say them. */
static int segment_reduce_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, DATA);
    const int by_offsets = tgx_given(c, OFFSETS), arg = by_offsets ? OFFSETS : LENGTHS;
    if (tgx_given(c, INDICES))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "segment_reduce(): indices based reduction is not supported yet: pass lengths or "
                        "offsets");
    if (!by_offsets && !tgx_given(c, LENGTHS))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "segment_reduce(): Either lengths or offsets must be defined.");
    if (which(c->args[REDUCE].text) < 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "reduce argument must be either sum, prod, mean, amax or amin, got %s",
                        c->args[REDUCE].text);
    if (!tgx_is_native_float(x->dtype) && !tgx_is_half(x->dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"segment_reduce\" not implemented for '%s': convert data with .float()",
                        tgx_dtype_title(x->dtype));
    if (tgx_int(c, AXIS) < -x->rank || tgx_int(c, AXIS) >= x->rank)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "segment_reduce(): axis %lld is outside of the %d dimensions of data",
                        (long long)tgx_int(c, AXIS), x->rank);
    if (tgx_wrap_arg(c, AXIS, x->rank) || check_borders(c, arg, by_offsets ? "offsets" : "lengths")
        || (tgx_given(c, INITIAL) && tgx_refuse_complex(c, c->args[INITIAL].number, x->dtype)))
        return TGX_FAILED;
    const int axis = (int)tgx_int(c, AXIS);
    const int64_t count = tgx_in(c, arg)->sizes[axis] - by_offsets;
    tgx_output *o = tgx_fresh(c, 0, x->rank, x->dtype);
    memcpy(o->dims, x->sizes, (size_t)x->rank * sizeof *o->dims);
    o->dims[axis] = count;
    c->notes[0] = x->sizes[axis], c->notes[1] = count, c->notes[2] = 1, c->notes[3] = by_offsets;
    for (int i = axis + 1; i < x->rank; i++) c->notes[2] *= x->sizes[i];
    int64_t rows = 1;
    for (int i = 0; i < axis; i++) rows *= x->sizes[i];
    tgx_need_dense(c, DATA), tgx_need(c, arg, TGX_I64);
    if (tgx_check_sizes(c, o->dims, x->rank, "segment_reduce")) return TGX_FAILED;
    c->scratch_bytes = rows * (count + 1) * (int64_t)sizeof(int64_t);
    return 0;
}

/* Where the segments of a row begin and end; unsafe ones as far as they lie in the row. */
static int find_borders(tgx_call *c, const int64_t *given, int64_t *borders) {
    const int64_t n = c->notes[0], count = c->notes[1], unsafe = tgx_int(c, UNSAFE);
    int64_t bad = 0, less = 0;
    if (!c->notes[3]) {
        borders[0] = 0;
        for (int64_t k = 0; k < count; k++) {
            const int64_t m = given[k], room = n - borders[k];
            less |= m < 0, bad |= m > room;
            borders[k + 1] = borders[k] + (m < 0 ? 0 : m > room ? room : m);
        }
        bad |= borders[count] != n;
    } else
        for (int64_t k = 0; k <= count; k++) {
            const int64_t low = k ? borders[k - 1] : 0, at = given[k];
            bad |= at < low || at > n;
            borders[k] = at < low ? low : at > n ? n : at;
        }
    if (unsafe || !(bad | less)) return 0;
    if (less) return tgx_fail(c, TGX_RUNTIME_ERROR, "segment_reduce(): lengths contains negative value!");
    if (c->notes[3])
        return tgx_fail(c, TGX_RUNTIME_ERROR, "segment_reduce(): offsets must rise from 0 or later to at most %lld, the elements along "
                        "axis", (long long)n);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "segment_reduce(): Expected all rows of lengths along axis to sum to "
                    "data.size(lengths.dim()-1) when !unsafe, which is %lld", (long long)n);
}

/* Rows of `width` numbers, a multiple of LANES, met by what stands in acc. A nan stays. */
#define MEET(VALUE) \
    for (; rows--; b += width) \
        for (int64_t j = 0; j < width; j += LANES) { \
            double *at = acc + j; \
            _Pragma("omp simd") for (int l = 0; l < LANES; l++) { const double a = at[l], v = b[j + l]; at[l] = VALUE; } \
        }
static __attribute__((noinline, noclone)) void meet(int how, double *acc, const double *b, int64_t rows, int64_t width) {
    if (how == SUM || how == MEAN) MEET(a + v)
    else if (how == PROD) MEET(a * v)
    else if (how == MAX) MEET((a != a) | (a >= v) ? a : v)
    else MEET((a != a) | (a <= v) ? a : v)
}

static __attribute__((noinline)) double met(int how, double a, double v) {
    if (how == SUM || how == MEAN) return a + v;
    if (how == PROD) return a * v;
    return a != a || (how == MAX ? a >= v : a <= v) ? a : v;
}

static int segments(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    tgx_call *c = given;
    const tgx_tensor *x = tgx_in(c, DATA);
    const int64_t n = c->notes[0], count = c->notes[1], inner = c->notes[2], size = tgx_itemsize[x->dtype];
    const int how = which(c->args[REDUCE].text), own = tgx_given(c, INITIAL);
    const double neutral = how == PROD ? 1 : how == MAX ? -INFINITY : how == MIN ? INFINITY : 0;
    const double start = own ? c->args[INITIAL].number->f : neutral;
    const tgx_loop load = tgx_cast_loop(x->dtype, TGX_F64), store = tgx_cast_loop(TGX_F64, x->dtype);
    const ptrdiff_t in[] = {sizeof(double), size}, back[] = {size, sizeof(double)};
    double room[PIECE];
    for (ptrdiff_t s = lo; s < hi; s++) {
        const int64_t row = s / count, *border = (const int64_t *)c->scratch + row * (count + 1) + s % count;
        const int64_t m = border[1] - border[0];
        char *from = x->data + (row * n + border[0]) * inner * size, *to = tgx_out(c, 0)->data + s * inner * size;
        for (int64_t j = 0; j < inner; j += STRIP) {
            const int64_t columns = inner - j < STRIP ? inner - j : STRIP, width = (columns + LANES - 1) & -LANES;
            double acc[STRIP];
            for (int64_t l = 0; l < width; l++) acc[l] = neutral;
            if (inner == 1) {
                for (int64_t i = 0; i < m; i += PIECE) {
                    const int64_t piece = m - i < PIECE ? m - i : PIECE, whole = (piece + LANES - 1) & -LANES;
                    load((char *[]){(char *)room, from + i * size}, in, piece, NULL);
                    for (int64_t l = piece; l < whole; l++) room[l] = neutral;
                    meet(how, acc, room, whole / LANES, LANES);
                }
                for (int l = 1; l < LANES; l++) *acc = met(how, *acc, acc[l]);
            } else {
                memset(room, 0, sizeof room);
                for (int64_t i = 0; i < m; i++) {
                    load((char *[]){(char *)room, from + (i * inner + j) * size}, in, columns, NULL);
                    meet(how, acc, room, 1, width);
                }
            }
            for (int64_t l = 0; l < columns; l++) {
                const double v = met(how, start, acc[l]);
                acc[l] = how != MEAN ? v : m ? v / (double)m : own ? start : NAN;
            }
            store((char *[]){to + j * size, (char *)acc}, back, columns, NULL);
        }
    }
    return 0;
}

static int segment_reduce_run(tgx_call *c) {
    const int64_t count = c->notes[1], all = tgx_out(c, 0)->count;
    const tgx_tensor *given = tgx_in(c, c->notes[3] ? OFFSETS : LENGTHS);
    const int64_t per = count + c->notes[3], rows = per ? given->count / per : 0;
    int64_t *borders = c->scratch;
    for (int64_t r = 0; r < rows; r++)
        if (find_borders(c, (const int64_t *)given->data + r * per, borders + r * (count + 1))) return TGX_FAILED;
    if (!count && c->notes[0] && !c->notes[3] && !tgx_int(c, UNSAFE) && tgx_in(c, DATA)->count)
        return find_borders(c, NULL, (int64_t[1]){0});
    return all ? tgx_range(c, segments, c, rows * count, 1 + GRAIN * rows * count / (tgx_in(c, DATA)->count + 1)) : 0;
}
TGX_KERNEL(segment_reduce, segment_reduce_shape, segment_reduce_run, 0)
