/* Sums, maxima and moments of rows, once for each floating type: define T, NAME(x) and the limit T_MIN, then include.
 *
 * A long row is summed in blocks of ROW_BLOCK elements: inside a block in T, over the vector's lanes, between blocks in
 * double. The order of additions follows from the row's length alone, so neither its place in memory nor the number
 * of threads changes a bit.
 *
 * Moments take two passes over a block, the second of them in the first cache. Rejected: Welford's rule, where each element
 * waits for a division (10 times as long for 1024 floats, 33 times for 64k), and sums of squares in T, which take half to nine
 * tenths of the time and lose the digits of a large mean: 1024 floats around 1000 with variance 0.08 gave one 28 % wrong. */
#ifndef ROW_BLOCK
#define ROW_BLOCK 1024
#define SIMD _Pragma("omp simd")
#define ROW_INLINE static inline __attribute__((unused))

/* LANES lanes become one, half of them at a time: what to do with lanes k and k + half. Each step has a length that is known, as gcc
 * takes a loop over halves through memory, element by element: a softmax of rows of 32 floats took 1.6 times as long. */
#define HALVE(n, ...)                                                     \
    {                                                                     \
        enum { half = n };                                                \
        if ((int)LANES > (int)half) SIMD for (int k = 0; k < half; k++) { \
            __VA_ARGS__;                                                  \
        }                                                                 \
    }
#define HALVES(...) \
    do { HALVE(16, __VA_ARGS__) HALVE(8, __VA_ARGS__) HALVE(4, __VA_ARGS__) HALVE(2, __VA_ARGS__) HALVE(1, __VA_ARGS__) } while (0)

/* Add a block of `len` elements to the moments of those before it. */
ROW_INLINE void row_join(double *count, double *mean, double *m2, double len, double block_mean, double block_m2) {
    if (*count == 0) {
        *count = len;
        *mean = block_mean;
        *m2 = block_m2;
        return;
    }
    double delta = block_mean - *mean, total = *count + len;
    *m2 += block_m2 + delta * delta * *count * len / total;
    *mean += delta * len / total;
    *count = total;
}
#endif

/* Several sums side by side, since one addition waits for the one before: half the time for 1024 floats. */
ROW_INLINE T NAME(block_sum)(const T *x, ptrdiff_t n) {
    enum { LANES = 128 / sizeof(T) };
    T lanes[LANES] = {0}, s = 0;
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES)
        SIMD for (int k = 0; k < LANES; k++) lanes[k] += x[i + k];
    if (i) {
        HALVES(lanes[k] += lanes[k + half]);
        s = lanes[0];
    }
    for (; i < n; i++) s += x[i];
    return s;
}

/* Sum of squared distances from `middle`, and of the distances. */
ROW_INLINE T NAME(block_squares)(const T *x, ptrdiff_t n, T middle, T *distances) {
    enum { LANES = 64 / sizeof(T) };
    T squares[LANES] = {0}, rest[LANES] = {0}, s = 0, r = 0;
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES)
        SIMD for (int k = 0; k < LANES; k++) {
            const T d = x[i + k] - middle;
            squares[k] += d * d;
            rest[k] += d;
        }
    if (i) {
        HALVES(squares[k] += squares[k + half], rest[k] += rest[k + half]);
        s = squares[0], r = rest[0];
    }
    for (; i < n; i++) {
        const T d = x[i] - middle;
        s += d * d;
        r += d;
    }
    *distances = r;
    return s;
}

/* Largest element, NaN apart. The lanes are compared by hand: gcc does not turn a float maximum into vector code
 * as long as NaN counts. */
ROW_INLINE T NAME(row_max)(const T *x, ptrdiff_t n) {
    enum { LANES = 128 / sizeof(T) };
    T lanes[LANES], m;
    ptrdiff_t i = 0;
    for (int k = 0; k < LANES; k++) lanes[k] = T_MIN;
    for (; i + LANES <= n; i += LANES)
        SIMD for (int k = 0; k < LANES; k++) lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
    if (i) HALVES(lanes[k] = lanes[k + half] > lanes[k] ? lanes[k + half] : lanes[k]);
    m = lanes[0];
    for (; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* Mean and sum of squared distances from it, by Chan's rule for joining blocks. */
ROW_INLINE void NAME(moments_add)(const T *x, ptrdiff_t n, double *count, double *mean, double *m2) {
    for (ptrdiff_t at = 0; at < n; at += ROW_BLOCK) {
        const T *b = x + at;
        ptrdiff_t len = n - at < ROW_BLOCK ? n - at : ROW_BLOCK;
        double inverse = 1.0 / (double)len;         /* known early: the divider works while the row is summed */
        T block_mean = NAME(block_sum)(b, len) * (T)inverse, rest, squares = NAME(block_squares)(b, len, block_mean, &rest);
        double shift = (double)rest * inverse;      /* the rounded mean's own error */
        row_join(count, mean, m2, (double)len, (double)block_mean + shift, (double)squares - (double)rest * shift);
    }
}
