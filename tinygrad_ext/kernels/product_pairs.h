/* The sum of products of complex numbers of parts T, included by product_isa.h. It needs T, NAME and FUSED_WHOLE.
 *
 * Numbers stay interleaved: one vector of sums takes x * y part by part, a second one x times y with its parts exchanged, and
 * only the ends are taken apart. A number's place alone says to which sum it goes, so the bits are the same for every step. The
 * sums of a block are in T, those of the blocks in double. */
typedef T NAME(pair_vector) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
#define V NAME(pair_vector)
enum { NAME(PAIR_LANES) = VECTOR_BYTES / sizeof(T) / 2, NAME(PAIR_CHAINS) = 4, NAME(PAIR_BLOCK) = 256 };

/* `vectors` of them, to as many sums; their number is constant in the loop over whole groups. */
static inline __attribute__((always_inline)) void NAME(pair_group)(const int vectors, const T *x, const T *y,
                                                                  V straight[NAME(PAIR_CHAINS)], V crossed[NAME(PAIR_CHAINS)]) {
    for (int v = 0; v < vectors; v++) {
        const V a = *(const V *)(x + v * 2 * NAME(PAIR_LANES)), b = *(const V *)(y + v * 2 * NAME(PAIR_LANES));
        V turned;
        for (int l = 0; l < 2 * NAME(PAIR_LANES); l++) turned[l] = b[l ^ 1];
        straight[v] = (V)FUSED_WHOLE(a, b, straight[v]);
        crossed[v] = (V)FUSED_WHOLE(a, turned, crossed[v]);
    }
}

/* At most PAIR_BLOCK numbers in one piece, whole vectors of them; of conjugates of x where `conjugated`, which is a matter of signs
 * at the end. */
static void NAME(pair_block)(ptrdiff_t vectors, const T *x, const T *y, int conjugated, double *out) {
    enum { CHAINS = NAME(PAIR_CHAINS), STEP = 2 * NAME(PAIR_LANES) };
    V straight[CHAINS] = {{0}}, crossed[CHAINS] = {{0}};
    for (; vectors >= CHAINS; vectors -= CHAINS, x += CHAINS * STEP, y += CHAINS * STEP) NAME(pair_group)(CHAINS, x, y, straight, crossed);
    if (vectors == 3) NAME(pair_group)(3, x, y, straight, crossed);
    else if (vectors == 2) NAME(pair_group)(2, x, y, straight, crossed);
    else if (vectors == 1) NAME(pair_group)(1, x, y, straight, crossed);
    const V to_re = (straight[0] + straight[1]) + (straight[2] + straight[3]), to_im = (crossed[0] + crossed[1]) + (crossed[2] + crossed[3]);
    double parts[4] = {0};
    for (int l = 0; l < STEP; l += 2) parts[0] += to_re[l], parts[1] += to_re[l + 1], parts[2] += to_im[l], parts[3] += to_im[l + 1];
    if (conjugated) out[0] += parts[0] + parts[1], out[1] += parts[2] - parts[3];
    else out[0] += parts[0] - parts[1], out[1] += parts[2] + parts[3];
}

static void NAME(pair_lay)(ptrdiff_t n, ptrdiff_t room, const T *from, ptrdiff_t step, T *to) {
    for (ptrdiff_t i = 0; i < n; i++) to[2 * i] = from[2 * i * step], to[2 * i + 1] = from[2 * i * step + 1];
    memset(to + 2 * n, 0, (size_t)(room - n) * 2 * sizeof(T));
}

static void NAME(pair_dot)(ptrdiff_t n, const void *a, ptrdiff_t a_step, const void *b, ptrdiff_t b_step, int conjugated, double *out) {
    T at_a[2 * NAME(PAIR_BLOCK)], at_b[2 * NAME(PAIR_BLOCK)];
    const T *x = a, *y = b;
    out[0] = out[1] = 0;
    for (ptrdiff_t i = 0; i < n; i += NAME(PAIR_BLOCK)) {
        const ptrdiff_t some = n - i < NAME(PAIR_BLOCK) ? n - i : NAME(PAIR_BLOCK), vectors = (some + NAME(PAIR_LANES) - 1) / NAME(PAIR_LANES);
        const T *p = x + 2 * i * a_step, *q = y + 2 * i * b_step;
        const int whole = some == vectors * NAME(PAIR_LANES);
        if (a_step != 1 || !whole) NAME(pair_lay)(some, vectors * NAME(PAIR_LANES), p, a_step, at_a), p = at_a;
        if (b_step != 1 || !whole) NAME(pair_lay)(some, vectors * NAME(PAIR_LANES), q, b_step, at_b), q = at_b;
        NAME(pair_block)(vectors, p, q, conjugated, out);
    }
}
#undef V
