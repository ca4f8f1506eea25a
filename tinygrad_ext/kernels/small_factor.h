/* Triangular factors and systems of small matrices in plain C, and of all where no LAPACK was loaded: included once for each dtype
 * with T its numbers, NAME(x) the functions' names, CONJ(x), SIZE(x) the magnitude that pivots go by (|re| + |im|, as LAPACK).
 *
 * Matrices stand column by column without gaps. For sizes of a cache line or two a call of the library is mostly its own
 * checks (8 x 8: 1.0 us for getrf, 0.25 here). */

/* Rows are exchanged so that the largest of a column comes first. Returns 1 + the first column without one, or 0. */
static int64_t NAME(lu)(T *a, int64_t m, int64_t n, int32_t *pivots, int pivot) {
    int64_t failed = 0, k = m < n ? m : n;
    for (int64_t j = 0; j < k; j++) {
        int64_t p = j;
        if (pivot)
            for (int64_t i = j + 1; i < m; i++)
                if (SIZE(a[j * m + i]) > SIZE(a[j * m + p])) p = i;
        pivots[j] = (int32_t)p + 1;
        if (a[j * m + p] == 0) {
            failed = failed ? failed : j + 1;
            continue;
        }
        if (p != j)
            for (int64_t c = 0; c < n; c++) {
                T kept = a[c * m + j];
                a[c * m + j] = a[c * m + p], a[c * m + p] = kept;
            }
        T by = 1 / a[j * m + j];
        for (int64_t i = j + 1; i < m; i++) a[j * m + i] *= by;
        for (int64_t c = j + 1; c < n; c++) {
            T top = a[c * m + j];
            for (int64_t i = j + 1; i < m; i++) a[c * m + i] -= a[j * m + i] * top;
        }
    }
    return failed;
}

/* The upper triangle becomes U of U^H U. Returns 1 + the column that is not positive, or 0. */
static int64_t NAME(cholesky)(T *a, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i <= j; i++) {
            T sum = i == j ? (T)REAL(a[j * n + j]) : a[j * n + i];
            for (int64_t k = 0; k < i; k++) sum -= CONJ(a[i * n + k]) * a[j * n + k];
            if (i == j) {
                if (!(REAL(sum) > 0)) return j + 1;
                a[j * n + j] = ROOT(REAL(sum));
            } else a[j * n + i] = sum / a[i * n + i];
        }
    }
    return 0;
}

/* X of op(A) X = B in B's place (n x k): A's lower or upper triangle, itself, turned (1) or also conjugated (2). */
static void NAME(triangle)(const T *a, int64_t n, T *b, int64_t k, int lower, int turned, int unit) {
    int forward = lower == !turned;
    for (int64_t c = 0; c < k; c++, b += n)
        for (int64_t s = 0; s < n; s++) {
            int64_t j = forward ? s : n - 1 - s, lo = forward ? 0 : j + 1, hi = forward ? j : n;
            if (turned) { /* a row of the turned matrix is a column */
                T sum = b[j];
                for (int64_t i = lo; i < hi; i++) sum -= (turned == 2 ? CONJ(a[j * n + i]) : a[j * n + i]) * b[i];
                b[j] = unit ? sum : sum / (turned == 2 ? CONJ(a[j * n + j]) : a[j * n + j]);
            } else {
                T x = b[j] = unit ? b[j] : b[j] / a[j * n + j];
                lo = forward ? j + 1 : 0, hi = forward ? n : j;
                for (int64_t i = lo; i < hi; i++) b[i] -= a[j * n + i] * x;
            }
        }
}

/* The same of sides that stand row by row: a row takes what the rows before it give, for all sides at once. */
static void NAME(triangle_rows)(const T *a, int64_t n, T *b, int64_t k, int lower, int turned, int unit) {
    const int forward = lower == !turned;
    const int64_t down = turned ? n : 1, across = turned ? 1 : n;
    for (int64_t s = 0; s < n; s++) {
        const int64_t j = forward ? s : n - 1 - s;
        T *restrict own = b + j * k;
        for (int64_t q = 0; q < s; q++) {
            const int64_t i = forward ? q : n - 1 - q;
            const T *restrict other = b + i * k;
            const T by = turned == 2 ? CONJ(a[j * down + i * across]) : a[j * down + i * across];
            for (int64_t c = 0; c < k; c++) own[c] -= by * other[c];
        }
        const T by = turned == 2 ? CONJ(a[j * n + j]) : a[j * n + j];
        for (int64_t c = 0; c < k && !unit; c++) own[c] /= by;
    }
}
#undef T
#undef NAME
#undef CONJ
#undef REAL
#undef ROOT
#undef SIZE
