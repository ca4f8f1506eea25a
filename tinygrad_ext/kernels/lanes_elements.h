/* Vectors of lanes and what is asked of their elements: T their real numbers, INT integers as wide, PARTS 1 for real and 2 for
 * complex elements. Included by lanes_isa.h.
 *
 * What is worked out stands once for both, in these few functions. Rejected: C's complex numbers, of which there are no vectors. */
typedef T NAME(vector) __attribute__((vector_size(LANE_BYTES), may_alias));
typedef INT NAME(mask) __attribute__((vector_size(LANE_BYTES), may_alias));
enum { NAME(lanes) = LANE_BYTES / (int)sizeof(T) };

static inline V NAME(choose)(M which, V yes, V no) { return (V)((which & (M)yes) | (~which & (M)no)); }
static inline M NAME(choose_int)(M which, M yes, M no) { return (which & yes) | (~which & no); }
static inline V NAME(size)(V x) { return (V)((M)x & ((M){0} + (INT)(((uint64_t)1 << (8 * sizeof(T) - 1)) - 1))); }
static inline V NAME(larger)(V x, V y) { return NAME(choose)(x > y, x, y); }
/* The magnitude of the first with the sign of the second. */
static inline V NAME(signed_as)(V x, V sign) {
    M bit = (M)(-(V){0});
    return (V)((~bit & (M)x) | (bit & (M)sign));
}
static inline V NAME(root)(V x) {
    for (int l = 0; l < LANES; l++) x[l] = sizeof(T) == 4 ? (T)__builtin_sqrtf((float)x[l]) : (T)__builtin_sqrt((double)x[l]);
    return x;
}
static inline int NAME(any)(M which) {
    INT all = 0;
    for (int l = 0; l < LANES; l++) all |= which[l];
    return all != 0;
}
/* A bit for each of the first `count` lanes. */
static inline uint32_t NAME(bits)(M which, int64_t count) {
    uint32_t found = 0;
    for (int64_t l = 0; l < count; l++) found |= (uint32_t)(which[l] != 0) << l;
    return found;
}

#if PARTS == 2
typedef struct __attribute__((may_alias)) { V re, im; } NAME(element);
#define OF(x) ((E){(x), (V){0}})
static inline V NAME(real)(E x) { return x.re; }
static inline E NAME(conjugate)(E x) { return (E){x.re, -x.im}; }
static inline E NAME(plus)(E x, E y) { return (E){x.re + y.re, x.im + y.im}; }
static inline E NAME(less)(E x, E y) { return (E){x.re - y.re, x.im - y.im}; }
static inline E NAME(times)(E x, E y) { return (E){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
static inline E NAME(scaled)(E x, V by) { return (E){x.re * by, x.im * by}; }
static inline E NAME(divided)(E x, V by) { return (E){x.re / by, x.im / by}; }
static inline E NAME(pick)(M which, E yes, E no) { return (E){NAME(choose)(which, yes.re, no.re), NAME(choose)(which, yes.im, no.im)}; }
static inline V NAME(squared)(E x) { return x.re * x.re + x.im * x.im; }
/* What pivots go by, as in LAPACK; the larger part; what is there besides a real number. */
static inline V NAME(weight)(E x) { return NAME(size)(x.re) + NAME(size)(x.im); }
static inline V NAME(extent)(E x) { return NAME(larger)(NAME(size)(x.re), NAME(size)(x.im)); }
static inline V NAME(aside)(E x) { return NAME(size)(x.im); }
static inline V NAME(magnitude)(E x) { return NAME(root)(NAME(squared)(x)); }
/* x / y, where y is brought near one before it is squared. */
static inline E NAME(over)(E x, E y) {
    V most = NAME(extent)(y);
    E near = NAME(divided)(y, most);
    return NAME(divided)(NAME(times)(x, NAME(conjugate)(near)), NAME(squared)(near) * most);
}
/* The real number s in the direction of x, whose magnitude is not zero where that matters. */
static inline E NAME(directed)(V s, E x, V magnitude) { return NAME(scaled)(NAME(divided)(x, magnitude), s); }
#else
typedef V NAME(element);
#define OF(x) (x)
static inline V NAME(real)(E x) { return x; }
static inline E NAME(conjugate)(E x) { return x; }
static inline E NAME(plus)(E x, E y) { return x + y; }
static inline E NAME(less)(E x, E y) { return x - y; }
static inline E NAME(times)(E x, E y) { return x * y; }
static inline E NAME(scaled)(E x, V by) { return x * by; }
static inline E NAME(divided)(E x, V by) { return x / by; }
static inline E NAME(pick)(M which, E yes, E no) { return NAME(choose)(which, yes, no); }
static inline V NAME(squared)(E x) { return x * x; }
static inline V NAME(weight)(E x) { return NAME(size)(x); }
static inline V NAME(extent)(E x) { return NAME(size)(x); }
static inline V NAME(aside)(E x) { (void)x; return (V){0}; }
static inline V NAME(magnitude)(E x) { return NAME(size)(x); }
static inline E NAME(over)(E x, E y) { return x / y; }
static inline E NAME(directed)(V s, E x, V magnitude) { (void)magnitude; return (V)((M)s ^ ((M)(-(V){0}) & (M)x)); }
#endif

/* What is missing of a group is the last matrix again. */
static void NAME(take)(char *to_, const char *const *from, int64_t each, int64_t count) {
    T *to = (T *)to_;
    const T *whole[LANES];
    for (int l = 0; l < LANES; l++) whole[l] = (const T *)from[l < count ? l : count - 1];
    for (int64_t e = 0; e < each * PARTS; e++)
        for (int l = 0; l < LANES; l++) to[e * LANES + l] = whole[l][e];
}
static void NAME(give)(char *const *to, const char *from_, int64_t each, int64_t count) {
    const T *from = (const T *)from_;
    T *spare[LANES];
    for (int l = 0; l < LANES; l++) spare[l] = (T *)to[l < count ? l : 0];
    for (int64_t e = 0; e < each * PARTS; e++)
        for (int l = LANES - 1; l >= 0; l--) spare[l][e] = from[e * LANES + l]; /* what is missing writes before the first does */
}
static void NAME(identity)(char *b_, int64_t m, int64_t n) {
    E *b = (E *)b_;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) b[i * n + j] = OF((V){0} + (T)(i == j));
}
