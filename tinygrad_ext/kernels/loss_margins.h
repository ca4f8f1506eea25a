/* Included by loss_isa.h with T float and double. */

/* A row of few classes, of which vectors would be the last and slowest part: one by one, without a branch on a margin. */
__attribute__((optimize("no-tree-vectorize"), noinline))
static T NAME(short_margin)(const T *x, const int64_t *target, T *slope, ptrdiff_t classes) {
    T others[TGX_FEW_CLASSES], counts[TGX_FEW_CLASSES], total = 0;
    const T unit = 1 / (T)classes;
    for (ptrdiff_t i = 0; i < classes; i++) others[i] = x[i], counts[i] = 0;
    for (ptrdiff_t j = 0; j < classes; j++) {
        int64_t label = tgx_once(target + j);
        if (label < 0 || label >= classes) break;
        others[label] = -(T)__builtin_inf();
    }
    for (ptrdiff_t j = 0; j < classes; j++) {
        int64_t label = tgx_once(target + j);
        T count = 0;
        if (label < 0 || label >= classes) break;
        const T least = 1 - x[label];
        for (ptrdiff_t i = 0; i < classes; i++) {
            T z = least + others[i], above = z > 0 ? z : 0, one = z > 0 ? 1 : 0;
            total += above, counts[i] += one, count += one;
        }
        counts[label] -= count;
    }
    for (ptrdiff_t i = 0; i < classes; i++) slope[i] = counts[i] * unit;
    return total;
}

/* Rows of a loss of sets of labels, with the slope of each. A block of classes is copied with the labels put to -inf, beside
 * which no margin is above zero, so that the loop over the others asks nothing about a class. */
static int NAME(margin)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    enum { BLOCK = 512 };
    const tgx_margin_job *job = ctx;
    const ptrdiff_t classes = job->classes;
    const T unit = 1 / (T)classes;
    T others[BLOCK];
    for (ptrdiff_t row = lo; row < hi; row++) {
        const T *x = (const T *)job->x + row * classes;
        const int64_t *target = job->target + row * classes;
        T *slope = (T *)job->slope + row * classes, total = 0;
        if (classes <= TGX_FEW_CLASSES) {
            ((T *)job->loss)[row] = NAME(short_margin)(x, target, slope, classes) / (T)classes;
            continue;
        }
        for (ptrdiff_t i = 0; i < classes; i++) slope[i] = 0;
        for (ptrdiff_t at = 0; at < classes; at += BLOCK) {
            const ptrdiff_t n = classes - at < BLOCK ? classes - at : BLOCK;
            T *above = slope + at;
            memcpy(others, x + at, (size_t)n * sizeof(T));
            for (ptrdiff_t j = 0; j < classes; j++) {
                int64_t label = tgx_once(target + j);
                if (label < 0) break;
                if (label >= at && label < at + n) others[label - at] = -(T)__builtin_inf();
            }
            for (ptrdiff_t j = 0; j < classes; j++) {
                int64_t label = tgx_once(target + j);
                T part = 0, count = 0;
                if (label < 0 || label >= classes) break;
                const T least = 1 - x[label];
                _Pragma("omp simd reduction(+:part, count)")
                for (ptrdiff_t i = 0; i < n; i++) {
                    T z = least + others[i], one = z > 0 ? 1 : 0;
                    part += z > 0 ? z : 0;
                    above[i] += one, count += one;
                }
                slope[label] -= count, total += part;
            }
        }
        for (ptrdiff_t i = 0; i < classes; i++) slope[i] *= unit;
        ((T *)job->loss)[row] = total / (T)classes;
    }
    return 0;
}
