/* One transform of a row: sixteen of its parts at a time, or by a chirp. */
#include "fft_row.h"
#include "casts.h"
#include "isa.h"

extern const tgx_fft_table tgx_fft_table_base, tgx_fft_table_avx2, tgx_fft_table_avx512;

const tgx_fft_loops *tgx_fft_loops_of(int dtype) {
    static const tgx_fft_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_fft_table);
    return dtype == TGX_F32 ? &chosen->f32 : &chosen->f64;
}

static inline int lanes_at(int64_t group, int64_t count) {
    int64_t left = count - group * TGX_FFT_LANES;
    return left < TGX_FFT_LANES ? (int)left : TGX_FFT_LANES;
}

/* Columns become columns of `middle`, or rows. */
static void columns(const tgx_fft_plan *plan, const void *from, void *middle, int swap, int rows, int64_t lo, int64_t hi, void *scratch) {
    int64_t first = plan->first->n, second = plan->second->n, size = 2 * tgx_itemsize[plan->dtype];
    for (int64_t g = lo; g < hi; g++) {
        tgx_fft_lanes at = {.from_lane = 1, .from_step = second, .to_lane = rows ? 1 : first, .to_step = rows ? second : 1, .scale = 1,
                            .swap_from = swap, .swap_to = rows && swap};
        at.from = (const char *)from + g * TGX_FFT_LANES * size, at.to = (char *)middle + g * TGX_FFT_LANES * (rows ? 1 : first) * size;
        at.count = lanes_at(g, second);
        if (plan->by_group) at.turn = (const char *)plan->by_group + g * first * size, at.by_lane = plan->by_lane;
        else at.by_lane = (const char *)plan->by_lane + g * first * TGX_FFT_LANES * size;
        tgx_fft_loops_of(plan->dtype)->lanes(plan->first, &at, scratch);
    }
}

void tgx_fft_columns(const tgx_fft_plan *plan, const void *from, void *middle, int swap, int64_t lo, int64_t hi, void *scratch) {
    columns(plan, from, middle, swap, 0, lo, hi, scratch);
}

void tgx_fft_rows(const tgx_fft_plan *plan, const void *middle, void *to, int swap, double scale, int64_t lo, int64_t hi, void *scratch) {
    int64_t first = plan->first->n, size = 2 * tgx_itemsize[plan->dtype];
    for (int64_t g = lo; g < hi; g++) {
        tgx_fft_lanes at = {.from_lane = 1, .from_step = first, .to_lane = 1, .to_step = first, .scale = scale, .swap_to = swap};
        at.from = (const char *)middle + g * TGX_FFT_LANES * size, at.to = (char *)to + g * TGX_FFT_LANES * size;
        at.count = lanes_at(g, first);
        tgx_fft_loops_of(plan->dtype)->lanes(plan->second, &at, scratch);
    }
}

/* x_j c_j, convolved with the conjugate of c, times c, where c_k = exp(-pi i k^2 / n). */
static void by_chirp(const tgx_fft_plan *plan, const char *from, char *to, int swap, double scale, char *scratch) {
    int64_t n = plan->n, m = plan->first->n, size = 2 * tgx_itemsize[plan->dtype];
    const tgx_fft_loops *loops = tgx_fft_loops_of(plan->dtype);
    char *a = scratch, *b = a + m * size, *rest = b + m * size;
    loops->times(n, from, plan->chirp, a, swap, 0, 1);
    memset(a + n * size, 0, (size_t)((m - n) * size));
    tgx_fft_row(plan->first, a, b, 0, 1, rest);
    loops->times(m, b, plan->spectrum, a, 0, 0, 1.0 / (double)m);
    tgx_fft_row(plan->first, a, b, 1, 1, rest);
    loops->times(n, b, plan->chirp, to, 0, swap, scale);
}

/* Columns of the small primes, and rows by chirps, which become columns. */
static void by_chirps(const tgx_fft_plan *plan, const char *from, char *to, int swap, double scale, char *scratch) {
    int64_t first = plan->first->n, second = plan->second->n, size = 2 * tgx_itemsize[plan->dtype];
    char *middle = scratch, *results = middle + tgx_fft_aligned(2 * plan->n) * size / 2, *rest = results + tgx_fft_aligned(2 * plan->n) * size / 2;
    columns(plan, from, middle, swap, 1, 0, tgx_fft_groups(second), results);
    for (int64_t k = 0; k < first; k++) tgx_fft_row(plan->second, middle + k * second * size, results + k * second * size, swap, scale, rest);
    char *both[2] = {to, results};
    const ptrdiff_t inner[2] = {size, second * size}, outer[2] = {first * size, size};
    tgx_copy_plane((int)size)(both, inner, outer, first, second);
}

void tgx_fft_row(const tgx_fft_plan *plan, const void *from, void *to, int swap, double scale, void *scratch) {
    if (plan->kind == TGX_FFT_CHIRPS) {
        by_chirps(plan, from, to, swap, scale, scratch);
    } else if (plan->kind == TGX_FFT_CHIRP) {
        by_chirp(plan, from, to, swap, scale, scratch);
    } else if (plan->kind == TGX_FFT_CUT) {
        char *rest = (char *)scratch + tgx_fft_aligned(2 * plan->n) * tgx_itemsize[plan->dtype];
        tgx_fft_columns(plan, from, scratch, swap, 0, tgx_fft_groups(plan->second->n), rest);
        tgx_fft_rows(plan, scratch, to, swap, scale, 0, tgx_fft_groups(plan->first->n), rest);
    } else {
        tgx_fft_lanes at = {from, to, .from_step = 1, .to_step = 1, .count = 1, .swap_from = swap, .swap_to = swap, .scale = scale};
        tgx_fft_loops_of(plan->dtype)->lanes(plan, &at, scratch);
    }
}
