/* Eigenvalues and singular values of small matrices side by side, with their vectors, by Jacobi's rotations. Included by lanes_isa.h
 * for T.
 *
 * A rotation makes one pair of columns orthogonal (or one element of a Hermitian matrix zero), sweeps over all pairs repeat
 * until none turns any more: 5 to 8 of them for 8 x 8. That is more arithmetic than to go by a tridiagonal matrix, but all
 * lanes go the same way, and no value is less accurate. Pairs of a round are disjoint, so that their rotations overlap in
 * the processor. A lane in which a pair needs no turn is turned by nothing, so it ends with the same bits among any others.
 *
 * First a power of two brings the largest element near one: squares neither overflow nor lose what counts. */
enum { NAME(SWEEPS) = 40 };

/* The power of two that was taken out. */
static V NAME(levelled)(E *a, int64_t each) {
    V most = {0}, by = {0}, back;
    for (int64_t e = 0; e < each; e++) most = NAME(larger)(NAME(extent)(a[e]), most);
    for (int l = 0; l < LANES; l++) {
        int power = 0;
        if (most[l] > 0) __builtin_frexp((double)most[l], &power);
        if (sizeof(T) == 4) by[l] = (T)__builtin_ldexpf(1, power < -125 ? 125 : -power), back[l] = (T)__builtin_ldexpf(1, power < -125 ? -125 : power);
        else by[l] = (T)__builtin_ldexp(1, power < -1021 ? 1021 : -power), back[l] = (T)__builtin_ldexp(1, power < -1021 ? -1021 : power);
    }
    for (int64_t e = 0; e < each; e++) a[e] = NAME(scaled)(a[e], by);
    return back;
}

/* Pair `at` of a round: the players of a tournament, of whom the last stays where he is. order is even. */
static inline void NAME(pair)(int64_t order, int64_t round, int64_t at, int64_t *p, int64_t *q) {
    int64_t x = round + at, y = round + order - 1 - at, players = order - 1;
    x -= x < players ? 0 : players, y -= y < players ? 0 : players;
    y = at ? y : players;
    *p = x < y ? x : y, *q = x < y ? y : x;
}

/* x' = cosine x - conj(sine) y, y' = sine x + cosine y: of the smaller angle that makes `off` zero between two numbers that are
 * `gap` = (y - x) apart. */
typedef struct { V cosine; E sine; } NAME(rotation);
static inline __attribute__((always_inline)) V NAME(angle)(V gap, E off, V magnitude, M turn, NAME(rotation) *found) {
    V ratio = gap / (2 * CHOOSE(turn, magnitude, (V){0} + 1));
    V far = NAME(size)(ratio);
    V t = NAME(signed_as)(1 / (far + NAME(root)(1 + far * far)), ratio);
    t = CHOOSE(turn, t, (V){0});
    found->cosine = 1 / NAME(root)(1 + t * t);
    found->sine = PICK(turn, NAME(directed)(t * found->cosine, off, magnitude), OF((V){0}));
    return t;
}

/* Vectors x and y, `length` elements that are `along` apart. */
static inline __attribute__((always_inline)) void NAME(turn_pair)(E *x, E *y, int64_t length, int64_t along, NAME(rotation) by) {
    E other = CONJUGATE(by.sine);
    for (int64_t i = 0; i < length; i++) {
        E u = x[i * along], v = y[i * along];
        x[i * along] = LESS(NAME(scaled)(u, by.cosine), TIMES(other, v));
        y[i * along] = NAME(plus)(TIMES(by.sine, u), NAME(scaled)(v, by.cosine));
    }
}

static inline void NAME(exchange)(M swap, E *x, E *y, int64_t length, int64_t along) {
    for (int64_t i = 0; i < length; i++) {
        E u = x[i * along], v = y[i * along];
        x[i * along] = PICK(swap, v, u), y[i * along] = PICK(swap, u, v);
    }
}

/* Vectors that stand side by side: the first element of number j, elements of one, how many. */
typedef struct { E *data; int64_t step, along, length; } NAME(vectors);

/* Values in order, and the vectors that belong to them. */
static void NAME(sorted)(V *x, int64_t n, int down, const NAME(vectors) *sets, int count) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j + 1 < n - i; j++) {
            M swap = down ? x[j] < x[j + 1] : x[j] > x[j + 1];
            V low = x[j], high = x[j + 1];
            if (!NAME(any)(swap)) continue;
            x[j] = CHOOSE(swap, high, low), x[j + 1] = CHOOSE(swap, low, high);
            for (const NAME(vectors) *s = sets; s < sets + count; s++)
                NAME(exchange)(swap, s->data + j * s->step, s->data + (j + 1) * s->step, s->length, s->along);
        }
}

/* The rotation of rows and columns p < q of a Hermitian matrix, of which the upper triangle is kept, and what it makes of
 * the elements that only it changes. */
static inline __attribute__((always_inline)) M NAME(find_both)(E *a, int64_t n, int64_t p, int64_t q, V small, NAME(rotation) *found) {
    E off = a[p * n + q];
    V pp = NAME(real)(a[p * n + p]), qq = NAME(real)(a[q * n + q]), magnitude = NAME(magnitude)(off);
    M turn = magnitude > small;
    V step = NAME(angle)(qq - pp, off, magnitude, turn, found) * magnitude;
    a[p * n + p] = OF(CHOOSE(turn, pp - step, pp)), a[q * n + q] = OF(CHOOSE(turn, qq + step, qq));
    a[p * n + q] = PICK(turn, OF((V){0}), off);
    return turn;
}

static inline __attribute__((always_inline)) void NAME(turn_both)(E *a, int64_t n, int64_t p, int64_t q, NAME(rotation) by) {
    for (int64_t other = 0; other < n - 2; other++) {
        int64_t r = other + (other >= p), at_p, at_q;
        r += r >= q;
        at_p = r < p ? r * n + p : p * n + r, at_q = r < q ? r * n + q : q * n + r;
        E x = r < p ? a[at_p] : CONJUGATE(a[at_p]), y = r < q ? a[at_q] : CONJUGATE(a[at_q]);
        E u = LESS(NAME(scaled)(x, by.cosine), TIMES(CONJUGATE(by.sine), y)), v = NAME(plus)(TIMES(by.sine, x), NAME(scaled)(y, by.cosine));
        a[at_p] = r < p ? u : CONJUGATE(u), a[at_q] = r < q ? v : CONJUGATE(v);
    }
}

static inline __attribute__((always_inline)) M NAME(sweep_both)(E *a, int64_t n, V small, E *vectors) {
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
            if (q >= n) continue;
            NAME(turn_both)(a, n, p, q, by[at]);
            if (vectors) NAME(turn_pair)(vectors + p, vectors + q, n, n, by[at]);
        }
    }
    return turned;
}

static uint32_t NAME(eigenvalues)(char *a_, int64_t n, int upper, char *values_, char *vectors, int64_t count) {
    E *a = (E *)a_, *to = (E *)vectors;
    V *values = (V *)values_, sum = {0};
    for (int64_t i = 0; i < n; i++) {
        a[i * n + i] = OF(NAME(real)(a[i * n + i]));
        for (int64_t j = 0; j < i; j++) {
            if (!upper) a[j * n + i] = CONJUGATE(a[i * n + j]);
            a[i * n + j] = OF((V){0});
        }
    }
    V back = NAME(levelled)(a, n * n);
    for (int64_t e = 0; e < n * n; e++) sum += NAME(squared)(a[e]); /* of one triangle: at least half of the whole */
    V small = NAME(root)(sum) * (T)(EPSILON / 16 / (double)n); /* what stays moves values by less than they are rounded */
    M turned = ~(M){0};
    if (vectors) NAME(identity)(vectors, n, n);
    for (int sweep = 0; sweep < NAME(SWEEPS) && NAME(any)(turned); sweep++)
        turned = PARTS == 1 && n == 8 ? NAME(sweep_both)(a, 8, small, to) : NAME(sweep_both)(a, n, small, to); /* a known size is unrolled */
    for (int64_t i = 0; i < n; i++) values[i] = NAME(real)(a[i * n + i]) * back;
    NAME(sorted)(values, n, 0, &(NAME(vectors)){to, 1, n, n}, vectors != NULL);
    return NAME(bits)(turned, count);
}

/* Products below this lie among numbers that have lost digits. */
#define LEAST ((T)(sizeof(T) == 4 ? FLT_MIN / FLT_EPSILON : DBL_MIN / DBL_EPSILON))

/* The rotation that makes vectors x and y orthogonal. */
static inline __attribute__((always_inline)) M NAME(find_pair)(const E *x, const E *y, int64_t length, int64_t along, NAME(rotation) *found) {
    E xy = OF((V){0});
    V xx = {0}, yy = {0};
    for (int64_t i = 0; i < length; i++) {
        E u = x[i * along], v = y[i * along];
        xy = NAME(plus)(xy, TIMES(CONJUGATE(u), v)), xx += NAME(squared)(u), yy += NAME(squared)(v);
    }
    V both = NAME(root)(xx) * NAME(root)(yy), magnitude = NAME(magnitude)(xy);
    M turn = (magnitude > both * (T)(EPSILON * (double)(length + 2) / 2)) & (both > LEAST);
    NAME(angle)(yy - xx, xy, magnitude, turn, found);
    return turn;
}

static inline __attribute__((always_inline)) M NAME(sweep_pairs)(E *a, int64_t k, int64_t step, int64_t length, int64_t along, const NAME(vectors) *also) {
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
            if (q >= k) continue;
            NAME(turn_pair)(a + p * step, a + q * step, length, along, by[at]);
            by[at].sine = CONJUGATE(by[at].sine);
            if (also) NAME(turn_pair)(also->data + p * also->step, also->data + q * also->step, k, also->along, by[at]);
        }
    }
    return turned;
}

/* The shorter side's vectors become orthogonal: U times the values, or the values times Vh, where rows are the shorter side.
 * What the rotations come to, conjugated, is the other factor. Vectors of values that are zero or nearly are left to LAPACK. */
static uint32_t NAME(singular)(char *a_, int64_t m, int64_t n, char *values_, char *other, int64_t count) {
    E *a = (E *)a_;
    V *values = (V *)values_;
    int64_t k = m < n ? m : n;
    NAME(vectors) sets[2] = {{a, m < n ? n : 1, m < n ? 1 : n, m < n ? n : m}, {(E *)other, m < n ? 1 : k, m < n ? k : 1, k}};
    const NAME(vectors) *also = other ? sets + 1 : NULL;
    V back = NAME(levelled)(a, m * n);
    M turned = k > 1 ? ~(M){0} : (M){0};
    if (other) NAME(identity)(other, k, k);
    for (int sweep = 0; sweep < NAME(SWEEPS) && NAME(any)(turned); sweep++)
        turned = PARTS == 1 && m == 8 && n == 8 ? NAME(sweep_pairs)(a, 8, 1, 8, 8, also)
                                                : NAME(sweep_pairs)(a, k, sets->step, sets->length, sets->along, also);
    for (int64_t j = 0; j < k; j++) {
        E *own = a + j * sets->step;
        V sum = {0};
        for (int64_t i = 0; i < sets->length; i++) sum += NAME(squared)(own[i * sets->along]);
        values[j] = NAME(root)(sum);
        if (!other) continue;
        turned |= ~(sum > 16 * LEAST);
        for (int64_t i = 0; i < sets->length; i++) own[i * sets->along] = NAME(divided)(own[i * sets->along], values[j]);
    }
    NAME(sorted)(values, k, 1, sets, other ? 2 : 0);
    for (int64_t j = 0; j < k; j++) values[j] *= back;
    return NAME(bits)(turned, count);
}
#undef LEAST
