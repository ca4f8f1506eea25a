/* Transforms of sixteen lanes in one type T; included by fft_isa.h. Real and imaginary parts are apart, lanes side by side. */
typedef T NAME(vec) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef T NAME(loose) __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(8)));
typedef INT NAME(order) __attribute__((vector_size(VECTOR_BYTES)));
#define V NAME(vec)
#define LOOSE(p) (*(NAME(loose) *)(p))
#define WIDTH ((ptrdiff_t)(VECTOR_BYTES / sizeof(T)))
enum { NAME(LANES) = TGX_FFT_LANES };
#define LANES NAME(LANES)
#define AT(p) (*(V *)(p))

typedef struct { V re, im; } NAME(pair);
#define P NAME(pair)
#define NUMBERS ((int64_t)WIDTH)

INLINE P NAME(add)(P a, P b) { return (P){a.re + b.re, a.im + b.im}; }
INLINE P NAME(sub)(P a, P b) { return (P){a.re - b.re, a.im - b.im}; }
INLINE P NAME(mul)(P a, T re, T im) {
    V r = SPLAT(re), i = SPLAT(im);
    return (P){LESS(a.im, i, a.re * r), FMA(a.im, r, a.re * i)};
}
/* a + i b c and a - i b c of a real c */
INLINE P NAME(plus_i)(P a, P b, T c) {
    V v = SPLAT(c);
    return (P){LESS(b.im, v, a.re), FMA(b.re, v, a.im)};
}
INLINE P NAME(minus_i)(P a, P b, T c) {
    V v = SPLAT(c);
    return (P){FMA(b.im, v, a.re), LESS(b.re, v, a.im)};
}
INLINE P NAME(fma)(P a, T c, P b) {
    V v = SPLAT(c);
    return (P){FMA(a.re, v, b.re), FMA(a.im, v, b.im)};
}

/* The points of one butterfly, in: x[0..radix), out: y[0..radix). */
INLINE void NAME(two)(const P *x, P *y) { y[0] = NAME(add)(x[0], x[1]), y[1] = NAME(sub)(x[0], x[1]); }
INLINE void NAME(three)(const P *x, P *y) {
    P sum = NAME(add)(x[1], x[2]), gap = NAME(sub)(x[1], x[2]), mid = NAME(fma)(sum, (T)-0.5, x[0]);
    const T c = (T)0.86602540378443864676;
    y[0] = NAME(add)(x[0], sum), y[1] = NAME(minus_i)(mid, gap, c), y[2] = NAME(plus_i)(mid, gap, c);
}
INLINE void NAME(four)(const P *x, P *y) {
    P a = NAME(add)(x[0], x[2]), b = NAME(sub)(x[0], x[2]), c = NAME(add)(x[1], x[3]), d = NAME(sub)(x[1], x[3]);
    y[0] = NAME(add)(a, c), y[2] = NAME(sub)(a, c);
    y[1] = (P){b.re + d.im, b.im - d.re}, y[3] = (P){b.re - d.im, b.im + d.re};
}
INLINE void NAME(five)(const P *x, P *y) {
    const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410, s1 = (T)0.95105651629515357212, s2 = (T)0.58778525229247312917;
    P p = NAME(add)(x[1], x[4]), q = NAME(add)(x[2], x[3]), u = NAME(sub)(x[1], x[4]), v = NAME(sub)(x[2], x[3]);
    P a = NAME(fma)(q, c2, NAME(fma)(p, c1, x[0])), b = NAME(fma)(q, c1, NAME(fma)(p, c2, x[0]));
    y[0] = NAME(add)(x[0], NAME(add)(p, q));
    y[1] = NAME(minus_i)(NAME(minus_i)(a, u, s1), v, s2), y[4] = NAME(plus_i)(NAME(plus_i)(a, u, s1), v, s2);
    y[2] = NAME(plus_i)(NAME(minus_i)(b, u, s2), v, s1), y[3] = NAME(minus_i)(NAME(plus_i)(b, u, s2), v, s1);
}
INLINE void NAME(eight)(const P *x, P *y) {
    const T h = (T)0.70710678118654752440;
    P even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]}, e[4], o[4];
    NAME(four)(even, e), NAME(four)(odd, o);
    V hh = SPLAT(h);
    P o1 = {(o[1].re + o[1].im) * hh, (o[1].im - o[1].re) * hh};
    P o2 = {o[2].im, -o[2].re};
    P o3 = {(o[3].im - o[3].re) * hh, (-o[3].im - o[3].re) * hh};
    y[0] = NAME(add)(e[0], o[0]), y[4] = NAME(sub)(e[0], o[0]);
    y[1] = NAME(add)(e[1], o1), y[5] = NAME(sub)(e[1], o1);
    y[2] = NAME(add)(e[2], o2), y[6] = NAME(sub)(e[2], o2);
    y[3] = NAME(add)(e[3], o3), y[7] = NAME(sub)(e[3], o3);
}

/* Where a step works: the transforms p of lo to hi, each on `run` numbers side by side. */
typedef struct {
    const tgx_fft_step *step;
    const T *xr, *xi;
    T *yr, *yi;
    ptrdiff_t lo, hi, run;
    ptrdiff_t xp, xj, yp, yk; /* from one transform, and from one of its points, to the next: in, out */
} NAME(walk);
#define W NAME(walk)
#define X(j) ((P){AT(at->xr + in + (j) * at->xj), AT(at->xi + in + (j) * at->xj)})
#define PUT(k, y) AT(at->yr + out + (k) * at->yk) = (y).re, AT(at->yi + out + (k) * at->yk) = (y).im

/* One step of a radix known to the compiler: point k is w^k times the sum over j of x[j] root^(jk). */
#define STEP(title, RADIX, BUTTERFLY)                                                                         \
    static void NAME(title)(const W *at) {                                                                    \
        const T *w = (const T *)at->step->factors + 2 * (RADIX - 1) * at->lo;                                 \
        for (ptrdiff_t p = at->lo; p < at->hi; p++, w += 2 * (RADIX - 1))                                     \
            for (ptrdiff_t i = 0; i < at->run; i += WIDTH) {                                                  \
                const ptrdiff_t in = (p - at->lo) * at->xp + i, out = (p - at->lo) * at->yp + i;              \
                P x[RADIX], y[RADIX];                                                                         \
                for (int j = 0; j < RADIX; j++) x[j] = X(j);                                                  \
                BUTTERFLY(x, y);                                                                              \
                for (int k = 0; k < RADIX; k++) {                                                             \
                    if (k && p) y[k] = NAME(mul)(y[k], w[2 * k - 2], w[2 * k - 1]);                           \
                    PUT(k, y[k]);                                                                             \
                }                                                                                             \
            }                                                                                                 \
    }
STEP(step_2, 2, NAME(two))
STEP(step_3, 3, NAME(three))
STEP(step_4, 4, NAME(four))
STEP(step_5, 5, NAME(five))
STEP(step_8, 8, NAME(eight))

#include "fft_prime.h"

static void NAME(step)(const W *at) {
    switch (at->step->radix) {
    case 2: NAME(step_2)(at); break;
    case 3: NAME(step_3)(at); break;
    case 4: NAME(step_4)(at); break;
    case 5: NAME(step_5)(at); break;
    case 8: NAME(step_8)(at); break;
    default: NAME(step_prime)(at);
    }
}

#include "fft_direct.h"

/* Pairs of fewer than all lanes, which lie side by side; of half of them, as lengths like 128 have, by moves of one length. */
INLINE void NAME(copy_some)(T *to, const T *from, int count) {
    if (count == LANES / 2) memcpy(to, from, LANES * sizeof(T));
    else memcpy(to, from, 2 * (size_t)count * sizeof(T));
}

/* `n` numbers of each lane from the one at `first`, real and imaginary parts apart. */
static void NAME(load)(const tgx_fft_lanes *at, ptrdiff_t first, ptrdiff_t n, T *re, T *im) {
    const T *from = (const T *)at->from + 2 * first * at->from_step;
    ptrdiff_t done = 0;
    if (at->swap_from) {
        T *other = re;
        re = im, im = other;
    }
    if (at->count < LANES && at->from_lane == 1) {
        T line[2 * LANES] = {0};
        for (; done < n; done++) {
            NAME(copy_some)(line, from + 2 * done * at->from_step, at->count);
            NAME(apart)(line, re + done * LANES, im + done * LANES);
        }
    } else if (at->count < LANES)
        for (ptrdiff_t i = 0; i < n * LANES; i++) re[i] = im[i] = 0;
    else if (at->from_lane == 1)
        for (; done < n; done++) NAME(apart)(from + 2 * done * at->from_step, re + done * LANES, im + done * LANES);
    else if (at->from_step == 1)
        NAME(gathered)(from, 2 * at->from_lane, done = n - n % NAME(TOGETHER), re, im);
    for (int lane = 0; lane < at->count && done < n; lane++) {
        const T *p = from + 2 * (lane * at->from_lane + done * at->from_step);
        for (ptrdiff_t k = done; k < n; k++, p += 2 * at->from_step) re[k * LANES + lane] = p[0], im[k * LANES + lane] = p[1];
    }
}

/* Times the factors between the two halves of a cut transform, and times the scale. */
static void NAME(turn)(const tgx_fft_lanes *at, ptrdiff_t first, ptrdiff_t n, T *re, T *im) {
    const T *group = (const T *)at->turn, *lane = (const T *)at->by_lane, scale = (T)at->scale;
    if (lane)
        for (ptrdiff_t k = first ? 0 : 1; k < n; k++)
            for (ptrdiff_t i = 0; i < LANES; i += WIDTH) {
                const T *by = lane + 2 * (first + k) * LANES + i;
                P w = {AT(by), AT(by + LANES)};
                if (group) w = NAME(mul)(w, group[2 * (first + k)], group[2 * (first + k) + 1]);
                V a = AT(re + k * LANES + i), b = AT(im + k * LANES + i);
                AT(re + k * LANES + i) = LESS(b, w.im, a * w.re), AT(im + k * LANES + i) = FMA(b, w.re, a * w.im);
            }
    if (scale != 1)
        for (ptrdiff_t i = 0; i < n * LANES; i++) re[i] *= scale, im[i] *= scale;
}

static void NAME(store)(const tgx_fft_lanes *at, ptrdiff_t first, ptrdiff_t n, T *re, T *im) {
    T *to = (T *)at->to + 2 * first * at->to_step;
    ptrdiff_t done = 0;
    NAME(turn)(at, first, n, re, im);
    if (at->swap_to) {
        T *other = re;
        re = im, im = other;
    }
    if (at->count == LANES && at->to_lane == 1)
        for (; done < n; done++) NAME(joined)(re + done * LANES, im + done * LANES, to + 2 * done * at->to_step);
    else if (at->to_lane == 1)
        for (T line[2 * LANES]; done < n; done++) {
            NAME(joined)(re + done * LANES, im + done * LANES, line);
            NAME(copy_some)(to + 2 * done * at->to_step, line, at->count);
        }
    else if (at->count == LANES && at->to_step == 1)
        NAME(scattered)(re, im, done = n - n % NAME(TOGETHER), to, 2 * at->to_lane);
    for (int lane = 0; lane < at->count && done < n; lane++) {
        T *p = to + 2 * (lane * at->to_lane + done * at->to_step);
        for (ptrdiff_t k = done; k < n; k++, p += 2 * at->to_step) p[0] = re[k * LANES + lane], p[1] = im[k * LANES + lane];
    }
}

/* So many numbers are loaded and stored at a time that of each lane a line of the cache is read or written whole; of points above
 * MANY fewer, for which there is no room. */
#define BLOCK ((ptrdiff_t)(32 / sizeof(T)))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
enum { NAME(MANY) = TGX_FFT_MANY * 32 / sizeof(T) };

static void NAME(first_step)(const tgx_fft_plan *plan, const tgx_fft_lanes *at, T *yr, T *yi) {
    const tgx_fft_step *step = plan->step;
    const ptrdiff_t m = step->m, radix = step->radix;
    T re[NAME(MANY) * LANES] __attribute__((aligned(64))), im[NAME(MANY) * LANES] __attribute__((aligned(64)));
    const ptrdiff_t most = LEAST(BLOCK, NAME(MANY) / radix);
    for (ptrdiff_t p = 0, n; p < m; p += n) {
        n = LEAST(most, m - p);
        for (ptrdiff_t j = 0; j < radix; j++) NAME(load)(at, p + m * j, n, re + j * n * LANES, im + j * n * LANES);
        NAME(step)(&(W){step, re, im, yr + p * radix * LANES, yi + p * radix * LANES, p, p + n, LANES, LANES, n * LANES, radix * LANES, LANES});
    }
}

static void NAME(last_step)(const tgx_fft_plan *plan, const tgx_fft_lanes *at, const T *xr, const T *xi) {
    const tgx_fft_step *step = &plan->step[plan->steps - 1];
    const ptrdiff_t s = step->s, radix = step->radix;
    T re[NAME(MANY) * LANES] __attribute__((aligned(64))), im[NAME(MANY) * LANES] __attribute__((aligned(64)));
    const ptrdiff_t most = LEAST(BLOCK, NAME(MANY) / radix);
    for (ptrdiff_t i = 0, n; i < s; i += n) {
        n = LEAST(most, s - i);
        NAME(step)(&(W){step, xr + i * LANES, xi + i * LANES, re, im, 0, 1, n * LANES, 0, s * LANES, 0, n * LANES});
        for (ptrdiff_t k = 0; k < radix; k++) NAME(store)(at, k * s + i, n, re + k * n * LANES, im + k * n * LANES);
    }
}

/* untangle and tangle, below, in each lane: without a shuffle. The number in the middle of the spectrum stands apart. */
static void NAME(untangled)(const tgx_fft_plan *plan, T *re, T *im, T *middle, T scale) {
    const T *w = (const T *)plan->halves;
    const int64_t h = plan->n / 2;
    const V by = SPLAT(scale / 2);
    for (ptrdiff_t i = 0; i < LANES; i += WIDTH) {
        const V r = AT(re + i) * SPLAT(scale), m = AT(im + i) * SPLAT(scale);
        AT(re + i) = r + m, AT(im + i) = SPLAT((T)0), AT(middle + i) = r - m;
        for (int64_t k = 1; 2 * k <= h; k++) {
            T *ar = re + k * LANES + i, *ai = im + k * LANES + i, *br = re + (h - k) * LANES + i, *bi = im + (h - k) * LANES + i;
            const V er = (AT(ar) + AT(br)) * by, ei = (AT(ai) - AT(bi)) * by, dr = (AT(ai) + AT(bi)) * by, di = (AT(br) - AT(ar)) * by;
            const V fr = SPLAT(w[2 * k]), fi = SPLAT(w[2 * k + 1]), or = dr * fr - di * fi, oi = dr * fi + di * fr;
            AT(ar) = er + or, AT(ai) = ei + oi, AT(br) = er - or, AT(bi) = oi - ei;
        }
    }
}
static void NAME(tangled)(const tgx_fft_plan *plan, T *re, T *im, const T *middle, T scale) {
    const T *w = (const T *)plan->halves;
    const int64_t h = plan->n / 2;
    const V by = SPLAT(scale);
    for (ptrdiff_t i = 0; i < LANES; i += WIDTH) {
        const V r = AT(re + i), m = AT(middle + i);
        AT(re + i) = (r + m) * by, AT(im + i) = (r - m) * by;
        for (int64_t k = 1; 2 * k <= h; k++) {
            T *ar = re + k * LANES + i, *ai = im + k * LANES + i, *br = re + (h - k) * LANES + i, *bi = im + (h - k) * LANES + i;
            const V er = (AT(ar) + AT(br)) * by, ei = (AT(ai) - AT(bi)) * by, dr = (AT(ar) - AT(br)) * by, di = (AT(ai) + AT(bi)) * by;
            const V fr = SPLAT(w[2 * k]), fi = SPLAT(w[2 * k + 1]), or = dr * fr + di * fi, oi = di * fr - dr * fi;
            AT(ar) = er - oi, AT(ai) = ei + or, AT(br) = er + oi, AT(bi) = or - ei;
        }
    }
}

static void NAME(lanes)(const tgx_fft_plan *plan, const tgx_fft_lanes *at, void *scratch) {
    const ptrdiff_t n = plan->n, size = n * LANES;
    const int whole = size <= TGX_FFT_NEAR || plan->steps < 2; /* else the first step loads, and the last one stores */
    T *xr = (T *)scratch, *xi = xr + size, *yr = xi + size, *yi = yr + size;
    const int direct = NAME(first_direct)(plan, at, xr, xi);
    const tgx_fft_step *last = &plan->step[plan->steps > 1 ? plan->steps - 1 : 0];
    const int plain = plan->steps > 1 && (last->radix == 4 || last->radix == 8);
    const int straight = plain && !at->by_lane && at->to_lane == 1 && at->count == LANES, turned = plain && whole && at->by_lane && !at->turn;
    tgx_fft_lanes rest = *at;
    T middle[LANES] __attribute__((aligned(64))) = {0};
    if (at->reals && at->swap_from) {
        const T *p = (const T *)at->from + 2 * n;
        for (int lane = 0; lane < at->count; lane++, p += 2 * at->from_lane) middle[lane] = *p;
        rest.swap_from = 0, rest.scale = 1;
        NAME(load)(&rest, 0, n, xr, xi);
        NAME(tangled)(at->reals, xr, xi, middle, (T)at->scale);
        T *r = xr;
        xr = xi, xi = r;
    } else if (!direct && whole) NAME(load)(at, 0, n, xr, xi);
    else if (!direct) NAME(first_step)(plan, at, xr, xi);
    for (int k = direct || !whole; k < plan->steps - (straight || turned || !whole); k++) {
        const tgx_fft_step *step = &plan->step[k];
        const ptrdiff_t run = step->s * LANES;
        T *r = yr, *i = yi;
        NAME(step)(&(W){step, xr, xi, yr, yi, 0, step->m, run, run, step->m * run, step->radix * run, run});
        yr = xr, yi = xi, xr = r, xi = i;
    }
    if (straight) NAME(last_direct)(plan, at, xr, xi);
    else if (turned) {
        rest.by_lane = NULL;
        (last->radix == 4 ? NAME(turned_four) : NAME(turned_eight))(last, (const T *)at->by_lane, xr, xi, yr, yi);
        NAME(store)(&rest, 0, n, yr, yi);
    }
    else if (whole) {
        const int forth = at->reals && !at->swap_from, count = forth ? at->count : 0;
        const ptrdiff_t apart = 2 * at->to_lane;
        T *p = (T *)at->to + 2 * n;
        if (forth) {
            NAME(untangled)(at->reals, xr, xi, middle, (T)at->scale);
            rest.scale = 1;
        }
        NAME(store)(&rest, 0, n, xr, xi);
        for (int lane = 0; lane < count; lane++, p += apart) p[0] = middle[lane], p[1] = 0;
    } else NAME(last_step)(plan, at, xr, xi);
}

static void NAME(times)(int64_t n, const void *x, const void *y, void *to, int swap_a, int swap_to, double scale) {
    const T *a = (const T *)x, *b = (const T *)y, by = (T)scale;
    T *out = (T *)to;
    for (int64_t k = 0; k < n; k++) {
        const T ar = a[2 * k + swap_a], ai = a[2 * k + 1 - swap_a], br = b[2 * k] * by, bi = b[2 * k + 1] * by;
        out[2 * k + swap_to] = ar * br - ai * bi, out[2 * k + 1 - swap_to] = ar * bi + ai * br;
    }
}

/* z is the transform of x[2k] + i x[2k + 1]: even and odd points come apart, since both are real. Vectors from both ends, since
 * the order of those from the end is turned. */
static void NAME(untangle)(const tgx_fft_plan *plan, const void *from, void *to, double scale) {
    const T *z = (const T *)from, *w = (const T *)plan->halves, by = (T)(scale / 2);
    const int64_t h = plan->n / 2;
    T *out = (T *)to;
    const T re = z[0] * (T)scale, im = z[1] * (T)scale;
    out[0] = re + im, out[1] = 0, out[2 * h] = re - im, out[2 * h + 1] = 0;
    int64_t k = 1;
    for (; 2 * (k + NUMBERS - 1) < h; k += NUMBERS) {
        const int64_t j = h - k - NUMBERS + 1;
        const P a = NAME(pairs_near)(z + 2 * k), b = NAME(pairs_back)(z + 2 * j), f = NAME(pairs_near)(w + 2 * k);
        const V er = (a.re + b.re) * by, ei = (a.im - b.im) * by, dr = (a.im + b.im) * by, di = (b.re - a.re) * by;
        const V or = dr * f.re - di * f.im, oi = dr * f.im + di * f.re;
        NAME(put_near)(out + 2 * k, (P){er + or, ei + oi}), NAME(put_back)(out + 2 * j, (P){er - or, oi - ei});
    }
    for (; 2 * k <= h; k++) {
        const int64_t j = h - k;
        const T er = (z[2 * k] + z[2 * j]) * by, ei = (z[2 * k + 1] - z[2 * j + 1]) * by;
        const T dr = (z[2 * k + 1] + z[2 * j + 1]) * by, di = (z[2 * j] - z[2 * k]) * by;
        const T or = dr * w[2 * k] - di * w[2 * k + 1], oi = dr * w[2 * k + 1] + di * w[2 * k];
        out[2 * k] = er + or, out[2 * k + 1] = ei + oi;
        out[2 * j] = er - or, out[2 * j + 1] = oi - ei;
    }
}

/* The way back. */
static void NAME(tangle)(const tgx_fft_plan *plan, const void *from, void *to, double scale) {
    const T *x = (const T *)from, *w = (const T *)plan->halves, by = (T)scale;
    const int64_t h = plan->n / 2;
    T *z = (T *)to;
    z[0] = (x[0] + x[2 * h]) * by, z[1] = (x[0] - x[2 * h]) * by;
    int64_t k = 1;
    for (; 2 * (k + NUMBERS - 1) < h; k += NUMBERS) {
        const int64_t j = h - k - NUMBERS + 1;
        const P a = NAME(pairs_near)(x + 2 * k), b = NAME(pairs_back)(x + 2 * j), f = NAME(pairs_near)(w + 2 * k);
        const V er = (a.re + b.re) * by, ei = (a.im - b.im) * by, dr = (a.re - b.re) * by, di = (a.im + b.im) * by;
        const V or = dr * f.re + di * f.im, oi = di * f.re - dr * f.im;
        NAME(put_near)(z + 2 * k, (P){er - oi, ei + or}), NAME(put_back)(z + 2 * j, (P){er + oi, or - ei});
    }
    for (; 2 * k <= h; k++) {
        const int64_t j = h - k;
        const T er = (x[2 * k] + x[2 * j]) * by, ei = (x[2 * k + 1] - x[2 * j + 1]) * by;
        const T dr = (x[2 * k] - x[2 * j]) * by, di = (x[2 * k + 1] + x[2 * j + 1]) * by;
        /* times exp(+2 pi i k / n) */
        const T or = dr * w[2 * k] + di * w[2 * k + 1], oi = di * w[2 * k] - dr * w[2 * k + 1];
        z[2 * k] = er - oi, z[2 * k + 1] = ei + or;
        z[2 * j] = er + oi, z[2 * j + 1] = or - ei;
    }
}
#undef V
#undef P
#undef NUMBERS
#undef WIDTH
#undef LANES
#undef AT
#undef STEP
#undef W
#undef X
#undef PUT
#undef BLOCK
#undef LEAST
