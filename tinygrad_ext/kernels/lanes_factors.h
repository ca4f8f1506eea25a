/* LU, Cholesky and systems of small matrices side by side. Included by lanes_isa.h for T; see lanes.h. */

/* Step j: the rows are exchanged in the same pass that subtracts the row of the pivot from them. */
static inline __attribute__((always_inline)) void NAME(lu_step)(E *a, int64_t m, int64_t n, int64_t j, M *pivot, M *info) {
    E *top = a + j * n, old[TGX_LANES_ORDER];
    V best = NAME(weight)(top[j]);
    M at = (M){0} + (INT)j, here[TGX_LANES_ORDER];
    for (int64_t i = j + 1; i < m; i++) {
        V x = NAME(weight)(a[i * n + j]);
        M more = x > best;
        best = CHOOSE(more, x, best), at = NAME(choose_int)(more, (M){0} + (INT)i, at);
    }
    *pivot = at + 1;
    for (int64_t i = j + 1; i < m; i++) here[i] = at == (INT)i;
    for (int64_t c = 0; c < n; c++) {
        E x = old[c] = top[c];
        for (int64_t i = j + 1; i < m; i++) x = PICK(here[i], a[i * n + c], x);
        top[c] = x;
    }
    V most = NAME(weight)(top[j]);
    M none = most == 0;
    M tiny = most < (T)(4 / MOST); /* of such numbers there is no inverse */
    E inverse = NAME(over)(OF((V){0} + 1), top[j]);
    int divided = NAME(any)(tiny);
    *info = NAME(choose_int)(none & (*info == 0), (M){0} + (INT)(j + 1), *info);
    for (int64_t i = j + 1; i < m; i++) {
        E *row = a + i * n;
        for (int64_t c = 0; c < j; c++) row[c] = PICK(here[i], old[c], row[c]);
        E x = PICK(here[i], old[j], row[j]), by = TIMES(x, inverse);
        if (divided) by = PICK(none, x, PICK(tiny, NAME(over)(x, top[j]), by));
        row[j] = by;
        for (int64_t c = j + 1; c < n; c++) row[c] = LESS(PICK(here[i], old[c], row[c]), TIMES(by, top[c]));
    }
}

static void NAME(lu)(char *a, int64_t m, int64_t n, char *pivots_, int32_t *pivots_out, int32_t *info_out, int64_t count) {
    int64_t k = m < n ? m : n;
    M *pivots = (M *)pivots_, info = {0};
    if (PARTS == 1 && m == 8 && n == 8) /* known sizes: loops as short as these are mostly branches that were guessed wrong */
        _Pragma("GCC unroll 8") for (int64_t j = 0; j < 8; j++) NAME(lu_step)((E *)a, 8, 8, j, pivots + j, &info);
    else
        for (int64_t j = 0; j < k; j++) NAME(lu_step)((E *)a, m, n, j, pivots + j, &info);
    for (int64_t l = 0; l < count; l++) {
        for (int64_t j = 0; j < k; j++) pivots_out[l * k + j] = (int32_t)pivots[j][l];
        info_out[l] = (int32_t)info[l];
    }
}

static void NAME(triangle)(const char *a_, char *b_, int64_t n, int64_t k, int upper, int unit) {
    const E *a = (const E *)a_;
    E *b = (E *)b_;
    for (int64_t s = 0; s < n; s++) {
        int64_t i = upper ? n - 1 - s : s, lo = upper ? i + 1 : 0, hi = upper ? n : i;
        for (int64_t j = lo; j < hi; j++)
            for (int64_t c = 0; c < k; c++) b[i * k + c] = LESS(b[i * k + c], TIMES(a[i * n + j], b[j * k + c]));
        for (int64_t c = 0; c < k && !unit; c++) b[i * k + c] = NAME(over)(b[i * k + c], a[i * n + i]);
    }
}

static void NAME(solve)(const char *lu_, const char *pivots_, char *b_, int64_t n, int64_t k) {
    const M *pivots = (const M *)pivots_;
    E *b = (E *)b_;
    for (int64_t i = 0; i < n; i++)
        for (int64_t r = i + 1; r < n; r++) {
            M here = pivots[i] == (INT)(r + 1);
            for (int64_t c = 0; c < k; c++) {
                E x = b[i * k + c], y = b[r * k + c];
                b[i * k + c] = PICK(here, y, x), b[r * k + c] = PICK(here, x, y);
            }
        }
    NAME(triangle)(lu_, b_, n, k, 0, 1);
    NAME(triangle)(lu_, b_, n, k, 1, 0);
}

/* Row by row; column j of an upper factor is row j of the lower one, conjugated. */
static void NAME(cholesky)(char *a_, int64_t n, int upper, int32_t *info_out, int64_t count) {
    E *a = (E *)a_;
    M info = {0};
    int64_t down = upper ? 1 : n, along = upper ? n : 1;
    for (int64_t j = 0; j < n; j++) {
        const E *own = a + j * down;
        V sum = NAME(real)(own[j * along]);
        for (int64_t k = 0; k < j; k++) sum -= NAME(squared)(own[k * along]);
        M good = sum > 0;
        info = NAME(choose_int)(~good & (info == 0), (M){0} + (INT)(j + 1), info);
        V root = CHOOSE(good, NAME(root)(sum), sum);
        a[j * (n + 1)] = OF(root);
        for (int64_t i = j + 1; i < n; i++) {
            E *row = a + i * down, x = row[j * along];
            for (int64_t k = 0; k < j; k++) x = LESS(x, TIMES(row[k * along], CONJUGATE(own[k * along])));
            row[j * along] = NAME(divided)(x, root);
            a[j * down + i * along] = OF((V){0});
        }
    }
    for (int64_t l = 0; l < count; l++) info_out[l] = (int32_t)info[l];
}
