/* Factors L D L^T, or L D L^H, of small matrices in plain C: a call of LAPACK's sytrf is mostly its own checks (8 x 8 0.4 us). Bunch
 * and Kaufman's pivots, in LAPACK's form: rows of earlier columns are not exchanged. Included by ldl.c once for each dtype, with T its
 * numbers, R their parts, NAME(x), CONJ(x), REAL(x), and SIZE(x), the magnitude that pivots go by.
 *
 * Matrices stand row by row; of one its lower triangle is read and becomes the factor. */
#define A(i, j) a[(i) * n + (j)]
#define OTHER(x) (hermitian ? CONJ(x) : (x))
#define DIAGONAL(i) (hermitian ? FABS(REAL(A(i, i))) : SIZE(A(i, i)))
#define EXCHANGE(x, y) do { const T kept = x; x = y, y = kept; } while (0)

/* The row that column k is exchanged with, and whether it and k become a block of two. -1: there is nothing but zeros. */
static inline __attribute__((always_inline)) int64_t NAME(pivot_of)(const T *a, int64_t n, int64_t k, const int hermitian, int *two) {
    const R least = (R)0.6403882032022076; /* (1 + 17^0.5) / 8: elements grow as little by two steps of one as by a block of two */
    const R own = DIAGONAL(k);
    R most = 0, row = 0;
    int64_t at = k;
    *two = 0;
    for (int64_t i = k + 1; i < n; i++)
        if (SIZE(A(i, k)) > most) most = SIZE(A(i, k)), at = i;
    if ((own == 0 && most == 0) || own != own) return -1;
    if (own >= least * most) return k;
    for (int64_t j = k; j < at; j++)
        if (SIZE(A(at, j)) > row) row = SIZE(A(at, j));
    for (int64_t i = at + 1; i < n; i++)
        if (SIZE(A(i, at)) > row) row = SIZE(A(i, at));
    if (own >= least * most * (most / row)) return k;
    *two = !(DIAGONAL(at) >= least * row);
    return at;
}

/* Rows and columns p > q of what is left. */
static inline __attribute__((always_inline)) void NAME(exchange)(T *a, int64_t n, int64_t p, int64_t q, const int hermitian) {
    for (int64_t i = p + 1; i < n; i++) EXCHANGE(A(i, q), A(i, p));
    for (int64_t j = q + 1; j < p; j++) {
        const T kept = A(j, q);
        A(j, q) = OTHER(A(p, j)), A(p, j) = OTHER(kept);
    }
    A(p, q) = OTHER(A(p, q));
    EXCHANGE(A(q, q), A(p, p));
}

/* Returns 1 + the first column of zeros, or 0. */
static inline __attribute__((always_inline)) int64_t NAME(factor)(T *a, int64_t n, int32_t *pivots, const int hermitian) {
    T first[SMALL], second[SMALL];
    int64_t failed = 0;
    for (int64_t k = 0, step; k < n; k += step) {
        int two;
        const int64_t p = NAME(pivot_of)(a, n, k, hermitian, &two), own = k + two;
        step = 1 + two;
        if (p < 0) {
            failed = failed ? failed : k + 1, pivots[k] = (int32_t)k + 1;
            if (hermitian) A(k, k) = REAL(A(k, k));
            continue;
        }
        if (p != own) NAME(exchange)(a, n, p, own, hermitian);
        if (two && p != own) EXCHANGE(A(k + 1, k), A(p, k));
        for (int64_t i = k; hermitian && i < n; i++) A(i, i) = REAL(A(i, i));
        for (int64_t i = k; i <= own; i++) pivots[i] = (int32_t)(two ? -(p + 1) : p + 1);
        if (!two) {
            const T by = 1 / A(k, k);
            for (int64_t j = k + 1; j < n; j++) first[j] = by * OTHER(A(j, k));
            for (int64_t i = k + 1; i < n; i++) {
                const T x = A(i, k);
                for (int64_t j = k + 1; j <= i; j++) A(i, j) -= x * first[j];
                A(i, k) = OTHER(first[i]);
            }
            continue;
        }
        /* The inverse of the block, whose largest element is the one beside the diagonal. */
        const T beside = A(k + 1, k);
        const R size = FABS_OF(beside);
        const T unit = hermitian ? beside / size : beside, d1 = A(k + 1, k + 1) / (hermitian ? (T)size : beside);
        const T d0 = A(k, k) / (hermitian ? (T)size : beside), t = 1 / (d1 * d0 - 1), by = t / (hermitian ? (T)size : beside);
        for (int64_t j = k + 2; j < n; j++) {
            const T x = A(j, k), y = A(j, k + 1);
            first[j] = hermitian ? by * (d1 * x - unit * y) : by * (d1 * x - y);
            second[j] = hermitian ? by * (d0 * y - CONJ(unit) * x) : by * (d0 * y - x);
        }
        for (int64_t i = k + 2; i < n; i++) {
            const T x = A(i, k), y = A(i, k + 1);
            for (int64_t j = k + 2; j <= i; j++) A(i, j) -= x * OTHER(first[j]) + y * OTHER(second[j]);
            A(i, k) = first[i], A(i, k + 1) = second[i];
        }
    }
    for (int64_t i = 0; hermitian && i < n; i++) A(i, i) = REAL(A(i, i));
    return failed;
}
#undef A
#undef OTHER
#undef DIAGONAL
#undef EXCHANGE
#undef T
#undef R
#undef NAME
#undef CONJ
#undef REAL
#undef SIZE
#undef FABS
#undef FABS_OF
