/* Vectors of lanes and what is asked of their elements: T their numbers, INT integers as wide. Included by lanes_isa.h. */
typedef T NAME(vector) __attribute__((vector_size(LANE_BYTES), may_alias));
typedef INT NAME(mask) __attribute__((vector_size(LANE_BYTES), may_alias));
#define V NAME(vector)
#define M NAME(mask)
enum { NAME(lanes) = LANE_BYTES / (int)sizeof(T) };
#define LANES NAME(lanes)

static inline V NAME(choose)(M which, V yes, V no) { return (V)((which & (M)yes) | (~which & (M)no)); }
static inline M NAME(choose_int)(M which, M yes, M no) { return (which & yes) | (~which & no); }
static inline V NAME(size)(V x) { return (V)((M)x & ((M){0} + (INT)(((uint64_t)1 << (8 * sizeof(T) - 1)) - 1))); }
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

/* What is missing of a group is the last matrix again. */
static void NAME(take)(char *to_, const char *const *from, int64_t each, int64_t count) {
    T *to = (T *)to_;
    const T *whole[LANES];
    for (int l = 0; l < LANES; l++) whole[l] = (const T *)from[l < count ? l : count - 1];
    for (int64_t e = 0; e < each; e++)
        for (int l = 0; l < LANES; l++) to[e * LANES + l] = whole[l][e];
}
static void NAME(give)(char *const *to, const char *from_, int64_t each, int64_t count) {
    const T *from = (const T *)from_;
    T *spare[LANES];
    for (int l = 0; l < LANES; l++) spare[l] = (T *)to[l < count ? l : 0];
    for (int64_t e = 0; e < each; e++)
        for (int l = LANES - 1; l >= 0; l--) spare[l][e] = from[e * LANES + l]; /* what is missing writes before the first does */
}
static void NAME(identity)(char *b_, int64_t m, int64_t n) {
    V *b = (V *)b_;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) b[i * n + j] = (V){0} + (T)(i == j);
}
#undef V
#undef M
#undef LANES
