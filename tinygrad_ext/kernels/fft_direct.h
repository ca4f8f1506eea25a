/* Steps between memory of pairs and that of steps, and back. Included by fft_loops.h for each type. */
/* The first step and the last one between the steps' memory and pairs whose lanes lie side by side, without a copy between. */
INLINE P NAME(pairs_at)(const T *p, int swap) {
    V a = LOOSE(p), b = LOOSE(p + WIDTH);
    V even = __builtin_shuffle(a, b, (NAME(order)){ORDER(EVENS)}), odd = __builtin_shuffle(a, b, (NAME(order)){ORDER(ODDS)});
    return swap ? (P){odd, even} : (P){even, odd};
}
INLINE void NAME(put_pairs)(T *p, P x, T scale, int swap) {
    V even = swap ? x.im : x.re, odd = swap ? x.re : x.im;
    even *= SPLAT(scale), odd *= SPLAT(scale);
    LOOSE(p) = __builtin_shuffle(even, odd, (NAME(order)){ORDER(LOW)}), LOOSE(p + WIDTH) = __builtin_shuffle(even, odd, (NAME(order)){ORDER(HIGH)});
}
/* Pairs in an order of their own, and such of which the last one is the first. */
INLINE P NAME(pairs_near)(const T *p) {
    V a = LOOSE(p), b = LOOSE(p + WIDTH);
    return (P){__builtin_shuffle(a, b, (NAME(order)){ORDER(EVENS_NEAR)}), __builtin_shuffle(a, b, (NAME(order)){ORDER(ODDS_NEAR)})};
}
INLINE void NAME(put_near)(T *p, P x) {
    LOOSE(p) = __builtin_shuffle(x.re, x.im, (NAME(order)){ORDER(LOW_NEAR)});
    LOOSE(p + WIDTH) = __builtin_shuffle(x.re, x.im, (NAME(order)){ORDER(HIGH_NEAR)});
}
INLINE P NAME(pairs_back)(const T *p) {
    V a = LOOSE(p), b = LOOSE(p + WIDTH);
    return (P){__builtin_shuffle(a, b, (NAME(order)){ORDER(EVENS_BACK)}), __builtin_shuffle(a, b, (NAME(order)){ORDER(ODDS_BACK)})};
}
INLINE void NAME(put_back)(T *p, P x) {
    LOOSE(p) = __builtin_shuffle(x.re, x.im, (NAME(order)){ORDER(LOW_BACK)});
    LOOSE(p + WIDTH) = __builtin_shuffle(x.re, x.im, (NAME(order)){ORDER(HIGH_BACK)});
}

#define DIRECT(title, RADIX, BUTTERFLY)                                                                                       \
    INLINE void NAME(from_##title)(const tgx_fft_step *step, const tgx_fft_lanes *at, T *yr, T *yi, int swap) {               \
        const T *w = (const T *)step->factors, *from = (const T *)at->from;                                                   \
        for (ptrdiff_t p = 0; p < step->m; p++, w += 2 * (RADIX - 1))                                                         \
            for (ptrdiff_t i = 0; i < LANES; i += WIDTH) {                                                                    \
                P x[RADIX], y[RADIX];                                                                                         \
                for (int j = 0; j < RADIX; j++) x[j] = NAME(pairs_at)(from + 2 * ((p + step->m * j) * at->from_step + i), swap); \
                BUTTERFLY(x, y);                                                                                              \
                for (int k = 0; k < RADIX; k++) {                                                                             \
                    const ptrdiff_t out = (p * RADIX + k) * LANES + i;                                                        \
                    if (k && p) y[k] = NAME(mul)(y[k], w[2 * k - 2], w[2 * k - 1]);                                           \
                    AT(yr + out) = y[k].re, AT(yi + out) = y[k].im;                                                           \
                }                                                                                                             \
            }                                                                                                                 \
    }                                                                                                                         \
    INLINE void NAME(to_##title)(const tgx_fft_step *step, const tgx_fft_lanes *at, const T *xr, const T *xi, int swap) {     \
        T *to = (T *)at->to;                                                                                                  \
        for (ptrdiff_t r = 0; r < step->s; r++)                                                                               \
            for (ptrdiff_t i = 0; i < LANES; i += WIDTH) {                                                                    \
                P x[RADIX], y[RADIX];                                                                                         \
                for (int j = 0; j < RADIX; j++) x[j] = (P){AT(xr + (j * step->s + r) * LANES + i), AT(xi + (j * step->s + r) * LANES + i)}; \
                BUTTERFLY(x, y);                                                                                              \
                for (int k = 0; k < RADIX; k++)                                                                               \
                    NAME(put_pairs)(to + 2 * ((k * step->s + r) * at->to_step + i), y[k], (T)at->scale, swap);                \
            }                                                                                                                 \
    }
/* The last step of columns that are turned, times the lanes' factors. */
#define TURNED(title, RADIX, BUTTERFLY)                                                                                       \
    static void NAME(turned_##title)(const tgx_fft_step *step, const T *lane, const T *xr, const T *xi, T *yr, T *yi) {       \
        for (ptrdiff_t r = 0; r < step->s; r++)                                                                               \
            for (ptrdiff_t i = 0; i < LANES; i += WIDTH) {                                                                    \
                P x[RADIX], y[RADIX];                                                                                         \
                for (int j = 0; j < RADIX; j++) x[j] = (P){AT(xr + (j * step->s + r) * LANES + i), AT(xi + (j * step->s + r) * LANES + i)}; \
                BUTTERFLY(x, y);                                                                                              \
                for (int k = 0; k < RADIX; k++) {                                                                             \
                    const ptrdiff_t out = (k * step->s + r) * LANES + i, by = out + (k * step->s + r) * LANES;                \
                    V re = AT(lane + by), im = AT(lane + by + LANES);                                                         \
                    AT(yr + out) = LESS(y[k].im, im, y[k].re * re), AT(yi + out) = FMA(y[k].im, re, y[k].re * im);            \
                }                                                                                                             \
            }                                                                                                                 \
    }
TURNED(four, 4, NAME(four))
TURNED(eight, 8, NAME(eight))
DIRECT(four, 4, NAME(four))
DIRECT(eight, 8, NAME(eight))

static int NAME(first_direct)(const tgx_fft_plan *plan, const tgx_fft_lanes *at, T *yr, T *yi) {
    const int radix = (int)plan->step->radix;
    if (at->from_lane != 1 || at->count != LANES || plan->steps < 2 || (radix != 4 && radix != 8)) return 0;
    if (radix == 4 && at->swap_from) NAME(from_four)(plan->step, at, yr, yi, 1);
    else if (radix == 4) NAME(from_four)(plan->step, at, yr, yi, 0);
    else if (at->swap_from) NAME(from_eight)(plan->step, at, yr, yi, 1);
    else NAME(from_eight)(plan->step, at, yr, yi, 0);
    return 1;
}

static void NAME(last_direct)(const tgx_fft_plan *plan, const tgx_fft_lanes *at, const T *xr, const T *xi) {
    const tgx_fft_step *step = &plan->step[plan->steps - 1];
    const int radix = (int)step->radix;
    if (radix == 4 && at->swap_to) NAME(to_four)(step, at, xr, xi, 1);
    else if (radix == 4) NAME(to_four)(step, at, xr, xi, 0);
    else if (at->swap_to) NAME(to_eight)(step, at, xr, xi, 1);
    else NAME(to_eight)(step, at, xr, xi, 0);
}
#undef DIRECT
#undef TURNED
