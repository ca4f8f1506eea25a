/* One step of any odd prime, included by fft_loops.h: points k and radix - k are made of the same sums of x[j] + x[radix - j] and x[j] - x[radix - j]. So many
 * points at a time as registers have room for read those once. */
enum { NAME(POINTS) = VECTOR_BYTES == 64 ? 4 : 2 };

INLINE void NAME(points_of_prime)(const T *root, ptrdiff_t radix, const P *sum, const P *gap, ptrdiff_t k, const int count, P *real,
                                  P *imaginary) {
    ptrdiff_t turn[NAME(POINTS)];
    _Pragma("GCC unroll 4") for (int c = 0; c < count; c++)
        turn[c] = k + c, real[c] = sum[0], imaginary[c] = (P){SPLAT((T)0), SPLAT((T)0)};
    for (ptrdiff_t j = 1; j <= radix / 2; j++) {
        const P s = sum[j], g = gap[j];
        _Pragma("GCC unroll 4") for (int c = 0; c < count; c++) {
            real[c] = NAME(fma)(s, root[2 * turn[c]], real[c]);
            imaginary[c] = NAME(fma)(g, root[2 * turn[c] + 1], imaginary[c]);
            turn[c] += k + c;
            turn[c] -= turn[c] >= radix ? radix : 0;
        }
    }
}

static void NAME(step_prime)(const W *at) {
    const ptrdiff_t radix = at->step->radix, half = radix / 2;
    const T *root = (const T *)at->step->roots, *w = (const T *)at->step->factors + 2 * (radix - 1) * at->lo;
    for (ptrdiff_t p = at->lo; p < at->hi; p++, w += 2 * (radix - 1))
        for (ptrdiff_t i = 0; i < at->run; i += WIDTH) {
            const ptrdiff_t in = (p - at->lo) * at->xp + i, out = (p - at->lo) * at->yp + i;
            P sum[TGX_FFT_PRIME / 2 + 1], gap[TGX_FFT_PRIME / 2 + 1], all = X(0);
            sum[0] = all;
            for (ptrdiff_t j = 1; j <= half; j++) {
                P a = X(j), b = X(radix - j);
                sum[j] = NAME(add)(a, b), gap[j] = NAME(sub)(a, b);
                all = NAME(add)(all, sum[j]);
            }
            PUT(0, all);
            for (ptrdiff_t k = 1; k <= half;) {
                const int count = k + NAME(POINTS) <= half + 1 ? NAME(POINTS) : 1;
                P real[NAME(POINTS)], imaginary[NAME(POINTS)];
                if (count > 1) NAME(points_of_prime)(root, radix, sum, gap, k, NAME(POINTS), real, imaginary);
                else NAME(points_of_prime)(root, radix, sum, gap, k, 1, real, imaginary);
                for (int c = 0; c < count; c++, k++) {
                    P y = NAME(plus_i)(real[c], imaginary[c], (T)1), z = NAME(minus_i)(real[c], imaginary[c], (T)1);
                    if (p) {
                        y = NAME(mul)(y, w[2 * k - 2], w[2 * k - 1]);
                        z = NAME(mul)(z, w[2 * (radix - k) - 2], w[2 * (radix - k) - 1]);
                    }
                    PUT(k, y), PUT(radix - k, z);
                }
            }
        }
}
