/* Reflectors, their products and least squares of small matrices side by side. Included by lanes_isa.h for T; see lanes.h.
 *
 * A column is divided by its largest element before its squares are added up, so nothing overflows or is lost. */

/* H = I - tau v v^H whose adjoint turns column j, from row j on, into one number; v starts with 1, which is not written. */
static E NAME(reflector)(E *a, int64_t m, int64_t n, int64_t j) {
    E first = a[j * n + j];
    V most = NAME(extent)(first), below = NAME(aside)(first), sum = {0};
    for (int64_t i = j + 1; i < m; i++) {
        V x = NAME(extent)(a[i * n + j]);
        below += x, most = CHOOSE(x > most, x, most);
    }
    M none = below == 0; /* a column that is done, and not one with a nan */
    V scale = CHOOSE(most == 0, (V){0} + 1, most);
    for (int64_t i = j; i < m; i++) sum += NAME(squared)(NAME(divided)(a[i * n + j], scale));
    V length = NAME(signed_as)(scale * NAME(root)(sum), -NAME(real)(first));
    E by = LESS(first, OF(length)), zero = OF((V){0});
    for (int64_t i = j + 1; i < m; i++) a[i * n + j] = PICK(none, zero, NAME(over)(a[i * n + j], by));
    a[j * n + j] = PICK(none, first, OF(length));
    return PICK(none, zero, NAME(divided)(LESS(OF(length), first), length));
}

/* Columns lo to hi of to, rows j to m, times H of column j of a (its adjoint for a conjugate tau). */
static void NAME(reflect)(const E *a, int64_t n, int64_t m, int64_t j, E tau, E *to, int64_t columns, int64_t lo) {
    for (int64_t c = lo; c < columns; c++) {
        E sum = to[j * columns + c];
        for (int64_t i = j + 1; i < m; i++) sum = NAME(plus)(sum, TIMES(CONJUGATE(a[i * n + j]), to[i * columns + c]));
        sum = TIMES(sum, tau);
        to[j * columns + c] = LESS(to[j * columns + c], sum);
        for (int64_t i = j + 1; i < m; i++) to[i * columns + c] = LESS(to[i * columns + c], TIMES(a[i * n + j], sum));
    }
}

static void NAME(reflectors)(char *a_, int64_t m, int64_t n, char *tau_) {
    E *a = (E *)a_, *tau = (E *)tau_;
    for (int64_t j = 0; j < (m < n ? m : n); j++) {
        tau[j] = NAME(reflector)(a, m, n, j);
        NAME(reflect)(a, n, m, j, CONJUGATE(tau[j]), a, n, j + 1);
    }
}

static void NAME(product)(const char *a, int64_t m, int64_t n, int64_t k, const char *tau, char *q, int64_t wide) {
    NAME(identity)(q, m, wide);
    for (int64_t j = k - 1; j >= 0; j--) NAME(reflect)((const E *)a, n, m, j, ((const E *)tau)[j], (E *)q, wide, j);
}

static void NAME(above)(char *a_, int64_t rows, int64_t n) {
    E *a = (E *)a_;
    for (int64_t i = 1; i < rows; i++)
        for (int64_t j = 0; j < (i < n ? i : n); j++) a[i * n + j] = OF((V){0});
}

/* The product of R's and its inverse's Frobenius norms is at least R's condition, so where it is small enough the rank is full
 * without exchanged columns. */
static uint32_t NAME(least)(char *a_, int64_t m, int64_t n, char *b_, int64_t k, char *room, double limit, int64_t count) {
    E *a = (E *)a_, *b = (E *)b_, *inverse = (E *)room;
    V own = {0}, other = {0};
    for (int64_t j = 0; j < n; j++) {
        E tau = CONJUGATE(NAME(reflector)(a, m, n, j));
        NAME(reflect)(a, n, m, j, tau, a, n, j + 1);
        NAME(reflect)(a, n, m, j, tau, b, k, 0);
    }
    NAME(identity)(room, n, n);
    NAME(triangle)(a_, room, n, n, 1, 0);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) own += NAME(squared)(a[i * n + j]), other += NAME(squared)(inverse[i * n + j]);
    NAME(triangle)(a_, b_, n, k, 1, 0);
    V condition = NAME(root)(own) * NAME(root)(other);
    return NAME(bits)(~(condition * (T)limit < (T)0.5), count); /* a nan is not small */
}
