/* Eigenvalues and singular values of small matrices side by side, by Jacobi's rotations. Included by lanes_isa.h for T.
 *
 * A rotation makes one pair of columns orthogonal (or one element of a symmetric matrix zero), sweeps over all pairs repeat
 * until none turns any more: 5 to 8 of them for 8 x 8. That is more arithmetic than to go by a tridiagonal matrix, but all
 * lanes go the same way, and no value is less accurate. Pairs of a round are disjoint, so that their rotations overlap in
 * the processor. A lane in which a pair needs no turn is turned by nothing, so it ends with the same bits among any others.
 *
 * First a power of two brings the largest element near one: squares neither overflow nor lose what counts. */
#define V NAME(vector)
#define M NAME(mask)
#define LANES NAME(lanes)
#define CHOOSE NAME(choose)

enum { NAME(SWEEPS) = 40 };

/* The power of two that was taken out. */
static V NAME(scaled)(V *a, int64_t each) {
    V most = {0}, by = {0}, back;
    for (int64_t e = 0; e < each; e++) {
        V x = NAME(size)(a[e]);
        most = CHOOSE(x > most, x, most);
    }
    for (int l = 0; l < LANES; l++) {
        int power = 0;
        if (most[l] > 0) __builtin_frexp((double)most[l], &power);
        if (sizeof(T) == 4) by[l] = (T)__builtin_ldexpf(1, power < -125 ? 125 : -power), back[l] = (T)__builtin_ldexpf(1, power < -125 ? -125 : power);
        else by[l] = (T)__builtin_ldexp(1, power < -1021 ? 1021 : -power), back[l] = (T)__builtin_ldexp(1, power < -1021 ? -1021 : power);
    }
    for (int64_t e = 0; e < each; e++) a[e] *= by;
    return back;
}

/* Pair `at` of a round: the players of a tournament, of whom the last stays where he is. order is even. */
static inline void NAME(pair)(int64_t order, int64_t round, int64_t at, int64_t *p, int64_t *q) {
    int64_t x = round + at, y = round + order - 1 - at, players = order - 1;
    x -= x < players ? 0 : players, y -= y < players ? 0 : players;
    y = at ? y : players;
    *p = x < y ? x : y, *q = x < y ? y : x;
}

/* The tangent of the smaller angle that makes `off` zero between two numbers that are `gap` = (q - p) apart, and its cosine. */
static inline void NAME(angle)(V gap, V off, M turn, V *cosine, V *sine, V *tangent) {
    V ratio = gap / (2 * CHOOSE(turn, off, (V){0} + 1));
    V far = NAME(size)(ratio);
    V t = NAME(signed_as)(1 / (far + NAME(root)(1 + far * far)), ratio);
    t = CHOOSE(turn, t, (V){0});
    *tangent = t, *cosine = 1 / NAME(root)(1 + t * t), *sine = t * *cosine;
}

static void NAME(sorted)(V *x, int64_t n, int down) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j + 1 < n - i; j++) {
            M swap = down ? x[j] < x[j + 1] : x[j] > x[j + 1];
            V low = x[j], high = x[j + 1];
            x[j] = CHOOSE(swap, high, low), x[j + 1] = CHOOSE(swap, low, high);
        }
}


typedef struct { V cosine, sine; } NAME(rotation);

/* The rotation of rows and columns p < q of a symmetric matrix, of which the upper triangle is kept, and what it makes of
 * the elements that only it changes. */
static inline __attribute__((always_inline)) M NAME(find_both)(V *a, int64_t n, int64_t p, int64_t q, V small, NAME(rotation) *found) {
    V off = a[p * n + q], pp = a[p * n + p], qq = a[q * n + q], t;
    M turn = NAME(size)(off) > small;
    NAME(angle)(qq - pp, off, turn, &found->cosine, &found->sine, &t);
    V step = t * off;
    a[p * n + p] = CHOOSE(turn, pp - step, pp), a[q * n + q] = CHOOSE(turn, qq + step, qq);
    a[p * n + q] = CHOOSE(turn, (V){0}, off);
    return turn;
}

static inline __attribute__((always_inline)) void NAME(turn_both)(V *a, int64_t n, int64_t p, int64_t q, NAME(rotation) by) {
    for (int64_t other = 0; other < n - 2; other++) {
        int64_t r = other + (other >= p), at_p, at_q;
        r += r >= q;
        at_p = r < p ? r * n + p : p * n + r, at_q = r < q ? r * n + q : q * n + r;
        V x = a[at_p], y = a[at_q];
        a[at_p] = by.cosine * x - by.sine * y, a[at_q] = by.sine * x + by.cosine * y;
    }
}

static inline __attribute__((always_inline)) M NAME(sweep_both)(V *a, int64_t n, V small) {
    M turned = {0};
    int64_t order = n + n % 2, p, q;
    NAME(rotation) by[TGX_LANES_ORDER / 2];
    for (int64_t round = 0; round < order - 1; round++) {
        for (int64_t at = 0; at < order / 2; at++) {
            NAME(pair)(order, round, at, &p, &q);
            if (q < n) turned |= NAME(find_both)(a, n, p, q, small, by + at);
        }
        for (int64_t at = 0; at < order / 2; at++) {
            NAME(pair)(order, round, at, &p, &q);
            if (q < n) NAME(turn_both)(a, n, p, q, by[at]);
        }
    }
    return turned;
}

static int64_t NAME(first)(M which, int64_t count) {
    for (int64_t l = 0; l < count; l++)
        if (which[l]) return l;
    return -1;
}

static int64_t NAME(eigenvalues)(char *a_, int64_t n, int upper, char *values_, int64_t count) {
    V *a = (V *)a_, *values = (V *)values_, sum = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            if (!upper) a[j * n + i] = a[i * n + j];
            a[i * n + j] = (V){0};
        }
    V back = NAME(scaled)(a, n * n);
    for (int64_t e = 0; e < n * n; e++) sum += a[e] * a[e]; /* of one triangle: at least half of the whole */
    V small = NAME(root)(sum) * (T)(EPSILON / 16 / (double)n); /* what stays moves values by less than they are rounded */
    M turned = ~(M){0};
    for (int sweep = 0; sweep < NAME(SWEEPS) && NAME(any)(turned); sweep++)
        turned = n == 8 ? NAME(sweep_both)(a, 8, small) : NAME(sweep_both)(a, n, small); /* a known size is unrolled */
    for (int64_t i = 0; i < n; i++) values[i] = a[i * n + i] * back;
    NAME(sorted)(values, n, 0);
    return NAME(first)(turned, count);
}

/* The rotation that makes vectors x and y orthogonal, `length` numbers that are `along` apart. */
static inline __attribute__((always_inline)) M NAME(find_pair)(const V *x, const V *y, int64_t length, int64_t along, NAME(rotation) *found) {
    const T least = (T)(sizeof(T) == 4 ? FLT_MIN / FLT_EPSILON : DBL_MIN / DBL_EPSILON);
    V xy = {0}, xx = {0}, yy = {0}, t;
    for (int64_t i = 0; i < length; i++) {
        V u = x[i * along], v = y[i * along];
        xy += u * v, xx += u * u, yy += v * v;
    }
    V both = NAME(root)(xx) * NAME(root)(yy);
    M turn = (NAME(size)(xy) > both * (T)(EPSILON * (double)(length + 2) / 2)) & (both > least);
    NAME(angle)(yy - xx, xy, turn, &found->cosine, &found->sine, &t);
    return turn;
}

static inline __attribute__((always_inline)) void NAME(turn_pair)(V *x, V *y, int64_t length, int64_t along, NAME(rotation) by) {
    for (int64_t i = 0; i < length; i++) {
        V u = x[i * along], v = y[i * along];
        x[i * along] = by.cosine * u - by.sine * v, y[i * along] = by.sine * u + by.cosine * v;
    }
}

static inline __attribute__((always_inline)) M NAME(sweep_pairs)(V *a, int64_t k, int64_t step, int64_t length, int64_t along) {
    M turned = {0};
    int64_t order = k + k % 2, p, q;
    NAME(rotation) by[TGX_LANES_ORDER / 2];
    for (int64_t round = 0; round < order - 1; round++) {
        for (int64_t at = 0; at < order / 2; at++) {
            NAME(pair)(order, round, at, &p, &q);
            if (q < k) turned |= NAME(find_pair)(a + p * step, a + q * step, length, along, by + at);
        }
        for (int64_t at = 0; at < order / 2; at++) {
            NAME(pair)(order, round, at, &p, &q);
            if (q < k) NAME(turn_pair)(a + p * step, a + q * step, length, along, by[at]);
        }
    }
    return turned;
}

static int64_t NAME(singular)(char *a_, int64_t m, int64_t n, char *values_, int64_t count) {
    V *a = (V *)a_, *values = (V *)values_;
    int64_t k = m < n ? m : n, length = m < n ? n : m, step = m < n ? n : 1, along = m < n ? 1 : n;
    V back = NAME(scaled)(a, m * n);
    M turned = ~(M){0};
    for (int sweep = 0; sweep < NAME(SWEEPS) && k > 1 && NAME(any)(turned); sweep++)
        turned = m == 8 && n == 8 ? NAME(sweep_pairs)(a, 8, 1, 8, 8) : NAME(sweep_pairs)(a, k, step, length, along);
    for (int64_t j = 0; j < k; j++) {
        V sum = {0};
        for (int64_t i = 0; i < length; i++) sum += a[j * step + i * along] * a[j * step + i * along];
        values[j] = NAME(root)(sum) * back;
    }
    NAME(sorted)(values, k, 1);
    return k > 1 ? NAME(first)(turned, count) : -1;
}
#undef V
#undef M
#undef LANES
#undef CHOOSE
