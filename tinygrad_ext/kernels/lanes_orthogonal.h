/* Reflectors and their products of small matrices side by side. Included by lanes_isa.h for T; see lanes.h.
 *
 * A column is divided by its largest element before its squares are added up, so nothing overflows or is lost. */
#define V NAME(vector)
#define M NAME(mask)
#define CHOOSE NAME(choose)

/* H = I - tau v v' that turns column j, from row j on, into one number; v starts with 1, which is not written. */
static V NAME(reflector)(V *a, int64_t m, int64_t n, int64_t j) {
    V first = a[j * n + j], most = NAME(size)(first), below = {0}, sum = {0};
    for (int64_t i = j + 1; i < m; i++) {
        V x = NAME(size)(a[i * n + j]);
        below += x, most = CHOOSE(x > most, x, most);
    }
    M none = below == 0; /* a column that is done, and not one with a nan */
    V scale = CHOOSE(most == 0, (V){0} + 1, most);
    for (int64_t i = j; i < m; i++) {
        V x = a[i * n + j] / scale;
        sum += x * x;
    }
    V length = NAME(signed_as)(scale * NAME(root)(sum), -first), by = first - length;
    for (int64_t i = j + 1; i < m; i++) a[i * n + j] = CHOOSE(none, (V){0}, a[i * n + j] / by);
    a[j * n + j] = CHOOSE(none, first, length);
    return CHOOSE(none, (V){0}, (length - first) / length);
}

/* Columns lo to hi of to, rows j to m, times H of column j of a. */
static void NAME(reflect)(const V *a, int64_t n, int64_t m, int64_t j, V tau, V *to, int64_t columns, int64_t lo) {
    for (int64_t c = lo; c < columns; c++) {
        V sum = to[j * columns + c];
        for (int64_t i = j + 1; i < m; i++) sum += a[i * n + j] * to[i * columns + c];
        sum *= tau;
        to[j * columns + c] -= sum;
        for (int64_t i = j + 1; i < m; i++) to[i * columns + c] -= a[i * n + j] * sum;
    }
}

static void NAME(reflectors)(char *a_, int64_t m, int64_t n, char *tau_) {
    V *a = (V *)a_, *tau = (V *)tau_;
    for (int64_t j = 0; j < (m < n ? m : n); j++) {
        tau[j] = NAME(reflector)(a, m, n, j);
        NAME(reflect)(a, n, m, j, tau[j], a, n, j + 1);
    }
}

static void NAME(product)(const char *a, int64_t m, int64_t n, int64_t k, const char *tau, char *q, int64_t wide) {
    NAME(identity)(q, m, wide);
    for (int64_t j = k - 1; j >= 0; j--) NAME(reflect)((const V *)a, n, m, j, ((const V *)tau)[j], (V *)q, wide, j);
}

static void NAME(above)(char *a_, int64_t rows, int64_t n) {
    V *a = (V *)a_;
    for (int64_t i = 1; i < rows; i++)
        for (int64_t j = 0; j < (i < n ? i : n); j++) a[i * n + j] = (V){0};
}
#undef V
#undef M
#undef CHOOSE
