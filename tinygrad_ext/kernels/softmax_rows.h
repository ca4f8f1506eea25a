/* Included by softmax_isa.h with T float and double.
 *
 * Rows (inner == 1) and columns (inner > 1) have bodies of their own: a row is reduced over the lanes of a vector,
 * columns lie side by side in one and are reduced one row after the other. Either way a row or block of columns is
 * read from memory once and found in the cache afterwards. Rejected: maximum and sum in one pass, with the sum scaled anew when
 * the maximum rises. That is a second exponential for each element: 1.3 to 1.9 times as long, for 64 floats a row as for 4M. */

#ifndef SHORT_ROW
#ifdef __AVX512F__
#define SHORT_ROW 16
#else
#define SHORT_ROW 0
#endif
#define ROWS_TOGETHER 8
#define NEAR_ROWS 1024         /* elements that stay near while each step goes over them */
#endif

/* sum exp(x - m), the exponentials kept in out if it is not NULL. */
static double NAME(exp_sum)(const T *x, T *out, ptrdiff_t n, T m) {
    T buffer[ROW_BLOCK];
    double total = 0;
    for (ptrdiff_t at = 0; at < n; at += ROW_BLOCK) {
        ptrdiff_t len = n - at < ROW_BLOCK ? n - at : ROW_BLOCK;
        T *to = out ? out + at : buffer;
        SIMD for (ptrdiff_t i = 0; i < len; i++) to[i] = NAME(vm_exp)(x[at + i] - m);
        total += NAME(block_sum)(to, len);
    }
    return total;
}

/* A row of a few elements, as one of SHORT_ROW: nothing in it is a loop. What is behind the row adds nothing to its sum.
 * It takes 0.5 to 0.8 of the time where vectors have masks, and up to three times as long where they have none. */
#if SHORT_ROW
static void NAME(short_row)(const T *x, T *out, ptrdiff_t n, int log_too) {
    enum { LANES = SHORT_ROW };
    T shifted[LANES], lanes[LANES], m, factor;
    SIMD for (int i = 0; i < SHORT_ROW; i++) shifted[i] = lanes[i] = i < n ? x[i] : T_MIN;
    HALVES(lanes[k] = lanes[k + half] > lanes[k] ? lanes[k + half] : lanes[k]);
    m = lanes[0];
    SIMD for (int i = 0; i < SHORT_ROW; i++) shifted[i] -= m;
    SIMD for (int i = 0; i < SHORT_ROW; i++) lanes[i] = i < n ? NAME(vm_exp)(shifted[i]) : 0;
    if (log_too) {
        HALVES(lanes[k] += lanes[k + half]);
        factor = (T)log((double)lanes[0]);
        SIMD for (int i = 0; i < SHORT_ROW; i++)
            if (i < n) out[i] = shifted[i] - factor;
        return;
    }
    SIMD for (int i = 0; i < SHORT_ROW; i++) shifted[i] = lanes[i];
    HALVES(lanes[k] += lanes[k + half]);
    factor = (T)(1.0 / (double)lanes[0]);
    SIMD for (int i = 0; i < SHORT_ROW; i++)
        if (i < n) out[i] = shifted[i] * factor;
}
#endif

/* Rows whose largest elements and sums are found together: each alone waits for its reductions, one step for another. */
ROW_INLINE ptrdiff_t NAME(together)(ptrdiff_t n, ptrdiff_t left) {
    const ptrdiff_t some = n > NEAR_ROWS / 2 ? 1 : NEAR_ROWS / n < ROWS_TOGETHER ? NEAR_ROWS / n : ROWS_TOGETHER;
    return left < some ? left : some;
}

/* later: where 1 / sum of each row goes if out is to keep the exponentials as they are. */
static void NAME(rows)(const T *x, T *out, ptrdiff_t n, ptrdiff_t rows, int log_too, T *later) {
    T m[ROWS_TOGETHER], k[ROWS_TOGETHER];
    double sum[ROWS_TOGETHER];
#if SHORT_ROW
    if (n <= SHORT_ROW) {
        for (ptrdiff_t r = 0; r < rows; r++) {
            NAME(short_row)(x + r * n, out + r * n, n, log_too);
            if (later) later[r] = 1;
        }
        return;
    }
#endif
    for (ptrdiff_t r = 0; r < rows; r++) m[r] = NAME(row_max)(x + r * n, n);
    for (ptrdiff_t r = 0; r < rows; r++) sum[r] = NAME(exp_sum)(x + r * n, log_too ? NULL : out + r * n, n, m[r]);
    for (ptrdiff_t r = 0; r < rows; r++) k[r] = (T)(log_too ? log(sum[r]) : 1.0 / sum[r]);
    for (ptrdiff_t r = 0; r < rows; r++) {
        const T *from = x + r * n, first = m[r], by = k[r];
        T *to = out + r * n;
        if (log_too) {
            SIMD for (ptrdiff_t i = 0; i < n; i++) to[i] = (from[i] - first) - by;
        } else if (later) later[r] = by;
        else SIMD for (ptrdiff_t i = 0; i < n; i++) to[i] = to[i] * by;
    }
}

static void NAME(row_backward)(const T *g, const T *y, T *out, ptrdiff_t n, int log_too) {
    double total = 0;
    for (ptrdiff_t at = 0; at < n; at += ROW_BLOCK) {
        ptrdiff_t len = n - at < ROW_BLOCK ? n - at : ROW_BLOCK;
        T s = 0;
        if (log_too) s = NAME(block_sum)(g + at, len);
        else {
            _Pragma("omp simd reduction(+:s)")
            for (ptrdiff_t i = at; i < at + len; i++) s += g[i] * y[i];
        }
        total += s;
    }
    T s = (T)total;
    if (log_too) {
        SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = g[i] - NAME(vm_exp)(y[i]) * s;
    } else {
        SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (g[i] - s) * y[i];
    }
}

/* Maximum, and sum of exponentials, of w columns; the exponentials kept in out if it is not NULL. */
static void NAME(columns_sum)(const T *x, T *out, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t w, T *m, double *sum) {
    T part[TGX_SOFTMAX_COLUMNS];
    for (ptrdiff_t j = 0; j < w; j++) m[j] = T_MIN, sum[j] = 0;
    for (ptrdiff_t c = 0; c < n; c++)
        SIMD for (ptrdiff_t j = 0; j < w; j++) m[j] = x[c * inner + j] > m[j] ? x[c * inner + j] : m[j];
    for (ptrdiff_t at = 0; at < n; at += ROW_BLOCK) {
        ptrdiff_t end = n - at < ROW_BLOCK ? n : at + ROW_BLOCK;
        for (ptrdiff_t j = 0; j < w; j++) part[j] = 0;
        for (ptrdiff_t c = at; c < end; c++) {
            if (out) {
                SIMD for (ptrdiff_t j = 0; j < w; j++) {
                    T e = NAME(vm_exp)(x[c * inner + j] - m[j]);
                    out[c * inner + j] = e;
                    part[j] += e;
                }
            } else {
                SIMD for (ptrdiff_t j = 0; j < w; j++) part[j] += NAME(vm_exp)(x[c * inner + j] - m[j]);
            }
        }
        for (ptrdiff_t j = 0; j < w; j++) sum[j] += part[j];
    }
}

static void NAME(columns)(const T *x, T *out, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t w, int log_too) {
    T m[TGX_SOFTMAX_COLUMNS], k[TGX_SOFTMAX_COLUMNS];
    double sum[TGX_SOFTMAX_COLUMNS];
    NAME(columns_sum)(x, log_too ? NULL : out, n, inner, w, m, sum);
    if (log_too) {
        SIMD for (ptrdiff_t j = 0; j < w; j++) k[j] = (T)vm_log_f64(sum[j]);
    } else {
        SIMD for (ptrdiff_t j = 0; j < w; j++) k[j] = (T)(1.0 / sum[j]);
    }
    for (ptrdiff_t c = 0; c < n; c++) {
        const T *from = x + c * inner;
        T *to = out + c * inner;
        if (log_too) {
            SIMD for (ptrdiff_t j = 0; j < w; j++) to[j] = (from[j] - m[j]) - k[j];
        } else {
            SIMD for (ptrdiff_t j = 0; j < w; j++) to[j] = to[j] * k[j];
        }
    }
}

static void NAME(columns_backward)(const T *g, const T *y, T *out, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t w, int log_too) {
    T part[TGX_SOFTMAX_COLUMNS];
    double total[TGX_SOFTMAX_COLUMNS] = {0};
    for (ptrdiff_t at = 0; at < n; at += ROW_BLOCK) {
        ptrdiff_t end = n - at < ROW_BLOCK ? n : at + ROW_BLOCK;
        for (ptrdiff_t j = 0; j < w; j++) part[j] = 0;
        for (ptrdiff_t c = at; c < end; c++) {
            const T *gc = g + c * inner, *yc = y + c * inner;
            if (log_too) {
                SIMD for (ptrdiff_t j = 0; j < w; j++) part[j] += gc[j];
            } else {
                SIMD for (ptrdiff_t j = 0; j < w; j++) part[j] += gc[j] * yc[j];
            }
        }
        for (ptrdiff_t j = 0; j < w; j++) total[j] += part[j];
    }
    for (ptrdiff_t j = 0; j < w; j++) part[j] = (T)total[j];
    for (ptrdiff_t c = 0; c < n; c++) {
        const T *gc = g + c * inner, *yc = y + c * inner;
        T *to = out + c * inner;
        if (log_too) {
            SIMD for (ptrdiff_t j = 0; j < w; j++) to[j] = gc[j] - NAME(vm_exp)(yc[j]) * part[j];
        } else {
            SIMD for (ptrdiff_t j = 0; j < w; j++) to[j] = (gc[j] - part[j]) * yc[j];
        }
    }
}

/* Where unit u of a job begins, and how many columns it has. */
ROW_INLINE ptrdiff_t NAME(place)(const tgx_softmax_job *job, ptrdiff_t u, ptrdiff_t *outer, ptrdiff_t *first) {
    ptrdiff_t blocks = (job->inner + TGX_SOFTMAX_COLUMNS - 1) / TGX_SOFTMAX_COLUMNS;
    *outer = u / blocks;
    *first = u % blocks * TGX_SOFTMAX_COLUMNS;
    return job->inner - *first < TGX_SOFTMAX_COLUMNS ? job->inner - *first : TGX_SOFTMAX_COLUMNS;
}

static int NAME(forward)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_softmax_job *job = ctx;
    const T *x = (const T *)job->a;
    T *out = (T *)job->out;
    ptrdiff_t n = job->n, outer, first;
    for (ptrdiff_t u = lo, some; job->inner == 1 && u < hi; u += some) {
        some = NAME(together)(n, hi - u);
        NAME(rows)(x + u * n, out + u * n, n, some, job->log, job->scales ? (T *)job->scales + u : NULL);
    }
    for (ptrdiff_t u = lo; job->inner != 1 && u < hi; u++) {
        ptrdiff_t w = NAME(place)(job, u, &outer, &first), at = outer * n * job->inner + first;
        NAME(columns)(x + at, out + at, n, job->inner, w, job->log);
    }
    return 0;
}

static int NAME(backward)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_softmax_job *job = ctx;
    const T *g = (const T *)job->a, *y = (const T *)job->b;
    T *out = (T *)job->out;
    ptrdiff_t n = job->n, outer, first;
    for (ptrdiff_t u = lo; u < hi; u++) {
        if (job->inner == 1) {
            NAME(row_backward)(g + u * n, y + u * n, out + u * n, n, job->log);
            continue;
        }
        ptrdiff_t w = NAME(place)(job, u, &outer, &first), at = outer * n * job->inner + first;
        NAME(columns_backward)(g + at, y + at, out + at, n, job->inner, w, job->log);
    }
    return 0;
}

/* log(sum(exp(x))) of each row or column: out is (outer, inner). */
static int NAME(lse)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_softmax_job *job = ctx;
    const T *x = (const T *)job->a;
    T *out = (T *)job->out, m[TGX_SOFTMAX_COLUMNS];
    double sum[TGX_SOFTMAX_COLUMNS];
    ptrdiff_t n = job->n, outer, first;
    for (ptrdiff_t u = lo; u < hi; u++) {
        if (job->inner == 1) {
            m[0] = NAME(row_max)(x + u * n, n);
            out[u] = (T)(m[0] + log(NAME(exp_sum)(x + u * n, NULL, n, m[0])));
            continue;
        }
        ptrdiff_t w = NAME(place)(job, u, &outer, &first);
        NAME(columns_sum)(x + outer * n * job->inner + first, NULL, n, job->inner, w, m, sum);
        T *to = out + outer * job->inner + first;
        SIMD for (ptrdiff_t j = 0; j < w; j++) sum[j] = vm_log_f64(sum[j]);     /* by itself: vectors */
        for (ptrdiff_t j = 0; j < w; j++) to[j] = (T)(m[j] + sum[j]);
    }
    return 0;
}

/* scale * exp(x - lse), lse and scale (outer, inner): the derivative of cross entropy but for the targets' own part. */
static int NAME(scaled)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_softmax_job *job = ctx;
    const T *x = (const T *)job->a, *lse = (const T *)job->b, *scale = (const T *)job->c;
    T *out = (T *)job->out;
    ptrdiff_t n = job->n, outer, first;
    for (ptrdiff_t u = lo; u < hi; u++) {
        if (job->inner == 1) {
            T shift = lse[u], k = scale[u];
            SIMD for (ptrdiff_t i = u * n; i < u * n + n; i++) out[i] = NAME(vm_exp)(x[i] - shift) * k;
            continue;
        }
        ptrdiff_t w = NAME(place)(job, u, &outer, &first);
        const T *shift = lse + outer * job->inner + first, *k = scale + outer * job->inner + first;
        for (ptrdiff_t c = 0, at = outer * n * job->inner + first; c < n; c++, at += job->inner)
            SIMD for (ptrdiff_t j = 0; j < w; j++) out[at + j] = NAME(vm_exp)(x[at + j] - shift[j]) * k[j];
    }
    return 0;
}
