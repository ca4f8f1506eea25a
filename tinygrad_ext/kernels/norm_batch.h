/* Included by norm_isa.h with T float and double.
 *
 * With inner > 1 a channel's elements lie in runs of inner, and units of work are channels. With inner == 1 the
 * channels of a row lie side by side and are worked on together, COLUMNS at a time; a unit is such a group. */
#ifndef FOLD_ROWS
#define FOLD_ROWS 128
#define COLUMNS TGX_NORM_COLUMNS
#endif

/* Mean and squared distances of up to COLUMNS columns of a (rows, stride) matrix, joined over groups of rows. */
static void NAME(column_moments)(const T *x, ptrdiff_t rows, ptrdiff_t stride, ptrdiff_t w, double *mean, double *m2) {
    double count = 0;
    for (ptrdiff_t j = 0; j < w; j++) mean[j] = m2[j] = 0;
    for (ptrdiff_t at = 0; at < rows; at += FOLD_ROWS) {
        ptrdiff_t len = rows - at < FOLD_ROWS ? rows - at : FOLD_ROWS;
        T sum[COLUMNS] = {0}, squares[COLUMNS] = {0}, rest[COLUMNS] = {0};
        const T *b = x + at * stride;
        for (ptrdiff_t r = 0; r < len; r++)
            SIMD for (ptrdiff_t j = 0; j < w; j++) sum[j] += b[r * stride + j];
        for (ptrdiff_t j = 0; j < w; j++) sum[j] /= (T)len;
        for (ptrdiff_t r = 0; r < len; r++)
            SIMD for (ptrdiff_t j = 0; j < w; j++) {
                T d = b[r * stride + j] - sum[j];
                squares[j] += d * d;
                rest[j] += d;
            }
        double total = count + len;
        for (ptrdiff_t j = 0; j < w; j++) {
            double delta = (double)sum[j] + (double)rest[j] / len - mean[j];
            m2[j] += (double)squares[j] - (double)rest[j] * rest[j] / len + delta * delta * count * len / total;
            mean[j] += delta * len / total;
        }
        count = total;
    }
}

static int NAME(moments)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_batch_norm_job *job = ctx;
    const ptrdiff_t C = job->channels, inner = job->inner;
    const T *x = (const T *)job->x;
    for (ptrdiff_t u = lo; u < hi; u++) {
        if (inner == 1) {
            ptrdiff_t c = u * COLUMNS, w = C - c < COLUMNS ? C - c : COLUMNS;
            NAME(column_moments)(x + c, job->outer, C, w, job->a + c, job->b + c);
            continue;
        }
        double count = 0, mean = 0, m2 = 0;
        for (ptrdiff_t o = 0; o < job->outer; o++) NAME(moments_add)(x + (o * C + u) * inner, inner, &count, &mean, &m2);
        job->a[u] = mean;
        job->b[u] = m2;
    }
    return 0;
}

/* Sums of grad and of grad * (x - mean) for each channel. */
static int NAME(products)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_batch_norm_job *job = ctx;
    const ptrdiff_t C = job->channels, inner = job->inner;
    const T *x = (const T *)job->x, *g = (const T *)job->grad, *mean = (const T *)job->mean;
    for (ptrdiff_t u = lo; u < hi; u++) {
        if (inner == 1) {
            ptrdiff_t c = u * COLUMNS, w = C - c < COLUMNS ? C - c : COLUMNS;
            double sum[COLUMNS] = {0}, dot[COLUMNS] = {0};
            for (ptrdiff_t at = 0; at < job->outer; at += FOLD_ROWS) {
                ptrdiff_t end = job->outer - at < FOLD_ROWS ? job->outer : at + FOLD_ROWS;
                T s[COLUMNS] = {0}, d[COLUMNS] = {0};
                for (ptrdiff_t r = at; r < end; r++)
                    SIMD for (ptrdiff_t j = 0; j < w; j++) {
                        T v = g[r * C + c + j];
                        s[j] += v;
                        d[j] += v * (x[r * C + c + j] - mean[c + j]);
                    }
                for (ptrdiff_t j = 0; j < w; j++) sum[j] += s[j], dot[j] += d[j];
            }
            for (ptrdiff_t j = 0; j < w; j++) job->a[c + j] = sum[j], job->b[c + j] = dot[j];
            continue;
        }
        double sum = 0, dot = 0;
        T m = mean[u];
        for (ptrdiff_t o = 0; o < job->outer; o++)
            for (ptrdiff_t at = 0; at < inner; at += ROW_BLOCK) {
                ptrdiff_t len = inner - at < ROW_BLOCK ? inner - at : ROW_BLOCK;
                const T *xo = x + (o * C + u) * inner + at, *go = g + (o * C + u) * inner + at;
                T s = 0, d = 0;
                _Pragma("omp simd reduction(+:s, d)")
                for (ptrdiff_t i = 0; i < len; i++) { s += go[i]; d += go[i] * (xo[i] - m); }
                sum += s;
                dot += d;
            }
        job->a[u] = sum;
        job->b[u] = dot;
    }
    return 0;
}

/* out = (x - mean) * scale + shift; rows lo to hi. */
static int NAME(apply)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_batch_norm_job *job = ctx;
    const ptrdiff_t C = job->channels, n = job->inner == 1 ? C : job->inner;
    const T *mean = (const T *)job->mean, *scale = (const T *)job->scale, *shift = (const T *)job->shift;
    for (ptrdiff_t r = lo; r < hi; r++) {
        const T *x = (const T *)job->x + r * n;
        T *out = (T *)job->out + r * n;
        if (job->inner == 1) {
            SIMD for (ptrdiff_t j = 0; j < n; j++) out[j] = (x[j] - mean[j]) * scale[j] + shift[j];
            continue;
        }
        T m = mean[r % C], k = scale[r % C], b = shift[r % C];
        SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = (x[i] - m) * k + b;
    }
    return 0;
}

/* out = grad * slope - ((x - mean) * scale + shift); rows lo to hi. */
static int NAME(apply_backward)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_batch_norm_job *job = ctx;
    const ptrdiff_t C = job->channels, n = job->inner == 1 ? C : job->inner;
    const T *mean = (const T *)job->mean, *scale = (const T *)job->scale, *shift = (const T *)job->shift;
    const T *slope = (const T *)job->slope;
    for (ptrdiff_t r = lo; r < hi; r++) {
        const T *x = (const T *)job->x + r * n, *g = (const T *)job->grad + r * n;
        T *out = (T *)job->out + r * n;
        if (job->inner == 1) {
            SIMD for (ptrdiff_t j = 0; j < n; j++) out[j] = g[j] * slope[j] - ((x[j] - mean[j]) * scale[j] + shift[j]);
            continue;
        }
        T m = mean[r % C], k = scale[r % C], b = shift[r % C], s = slope[r % C];
        SIMD for (ptrdiff_t i = 0; i < n; i++) out[i] = g[i] * s - ((x[i] - m) * k + b);
    }
    return 0;
}
