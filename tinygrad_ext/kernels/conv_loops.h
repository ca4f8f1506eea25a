/* Loops of convolution for one element type T in one instruction set; included by conv_isa.h. See conv.h.
 *
 * `apply` keeps a tile of OUT_ROWS outputs by OUT_VECTORS vectors of positions in registers, `collect` one of
 * SUM_ROWS taps by SUM_VECTORS vectors of outputs. Each element is summed in one fixed order whatever the tile, so
 * its bits depend neither on its place nor on the number of threads. */
typedef T NAME(vec) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(loose) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
#define V NAME(vec)
#define LANES ((ptrdiff_t)(VECTOR_BYTES / sizeof(T)))
#define READ(p) (*(const NAME(loose) *)(p))
#define WRITE(p, v) (*(NAME(loose) *)(p) = (NAME(loose))(v))

/* ---- laying out ---- */

/* dst[i] = src[i] for i in [lo, hi), else 0, for i in [0, n); may write up to LANES - 1 elements further. */
INLINE void NAME(row)(T *dst, const T *src, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t n) {
#if defined(__AVX512F__)
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        ptrdiff_t from = lo - i < 0 ? 0 : lo - i > LANES ? LANES : lo - i, to = hi - i < 0 ? 0 : hi - i > LANES ? LANES : hi - i;
        uint32_t mask = ((1u << to) - 1) & ~((1u << from) - 1);
        if (sizeof(T) == 4) _mm512_storeu_ps(dst + i, _mm512_maskz_loadu_ps((__mmask16)mask, src + i));
        else _mm512_storeu_pd(dst + i, _mm512_maskz_loadu_pd((__mmask8)mask, src + i));
    }
#else
    for (ptrdiff_t i = 0; i < lo; i++) dst[i] = 0;
    for (ptrdiff_t i = lo; i < hi; i++) dst[i] = src[i];
    for (ptrdiff_t i = hi > lo ? hi : lo; i < n; i++) dst[i] = 0;
#endif
}

static void NAME(load)(const tgx_conv *p, const void *source, ptrdiff_t first, ptrdiff_t count, void *buffer) {
    T *dst = buffer;
    ptrdiff_t n = p->cols, step = p->step_x, rows = p->phase_rows;
    for (ptrdiff_t c = 0; c < p->channels; c++) {
        const T *plane = (const T *)source + c * p->height * p->width;
        for (ptrdiff_t u = 0; u < p->taps_x; u++) {
            ptrdiff_t at = p->at_x[u]; /* columns [lo, hi) of the row lie inside src */
            ptrdiff_t lo = at < 0 ? (-at + step - 1) / step : 0, hi = p->width > at ? (p->width - at + step - 1) / step : 0;
            if (hi > n) hi = n;
            if (lo > hi) lo = hi;
            for (ptrdiff_t f = 0; f < p->phases; f++)
                for (ptrdiff_t r = 0; r < rows; r++, dst += n) {
                    ptrdiff_t y = (first + r) * p->step_y + p->base_y + f;
                    const T *src = plane + y * p->width + at;
                    if (y < 0 || y >= p->height) NAME(row)(dst, plane, 0, 0, n);
                    else if (step == 1) NAME(row)(dst, src, lo, hi, n);
                    else {
                        for (ptrdiff_t i = 0; i < lo; i++) dst[i] = 0;
                        for (ptrdiff_t i = lo; i < hi; i++) dst[i] = src[i * step];
                        for (ptrdiff_t i = hi; i < n; i++) dst[i] = 0;
                    }
                }
        }
    }
}

/* Outputs handled together from output o on: a full tile, a quarter, or one. */
INLINE ptrdiff_t NAME(together)(ptrdiff_t left) {
    return left > 4 ? OUT_ROWS : left > 1 ? 4 : 1;
}

static void NAME(pack)(const tgx_conv *p, const void *weight, ptrdiff_t step_o, ptrdiff_t step_c, const ptrdiff_t *tap,
                       void *packed) {
    const T *w = weight;
    T *to = packed;
    ptrdiff_t taps = p->taps_x * p->taps_y;
    for (ptrdiff_t o = 0, some; o < p->outputs; o += some) {
        some = NAME(together)(p->outputs - o);
        for (ptrdiff_t c = 0; c < p->channels; c++)
            for (ptrdiff_t t = 0; t < taps; t++)
                for (ptrdiff_t r = 0; r < some; r++)
                    *to++ = o + r < p->outputs ? w[(o + r) * step_o + c * step_c + tap[t]] : 0;
    }
}

/* ---- out = weights . windows ---- */

INLINE void NAME(put)(T *out, V v, ptrdiff_t valid) {
    if (valid >= LANES) WRITE(out, v);
    else
        for (ptrdiff_t i = 0; i < valid; i++) out[i] = v[i];
}

/* `rows` outputs by `vectors` vectors of positions, of which `valid` positions exist. */
INLINE void NAME(tile)(const int rows, const int vectors, const tgx_conv *p, const T *buf, const T *w, const T *bias, int real,
                       T *out, ptrdiff_t out_plane, ptrdiff_t valid) {
    V sum[OUT_ROWS][OUT_VECTORS];
    const ptrdiff_t taps = p->taps_x * p->taps_y, *offset = p->offset;
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) sum[r][q] = (V){0} + (bias && r < real ? bias[r] : 0);
    for (ptrdiff_t c = 0; c < p->channels; c++, buf += p->plane)
        for (ptrdiff_t t = 0; t < taps; t++, w += rows) {
            const T *x = buf + offset[t];
            V in[OUT_VECTORS];
            for (int q = 0; q < vectors; q++) in[q] = READ(x + q * LANES);
            for (int r = 0; r < rows; r++) {
                V factor = (V){0} + w[r];
                for (int q = 0; q < vectors; q++) sum[r][q] = FMA(factor, in[q], sum[r][q]);
            }
        }
    for (int r = 0; r < rows && r < real; r++)
        for (int q = 0; q < vectors; q++) NAME(put)(out + r * out_plane + q * LANES, sum[r][q], valid - q * LANES);
}

#define TILE(rows, vectors) NAME(tile)(rows, vectors, p, buf, w, bias, real, out, out_plane, valid)
#define TILES(rows)                           \
    if (valid > 2 * LANES) TILE(rows, 3);     \
    else if (valid > LANES) TILE(rows, 2);    \
    else TILE(rows, 1)

static void NAME(tile_of)(ptrdiff_t some, const tgx_conv *p, const T *buf, const T *w, const T *bias, int real, T *out,
                          ptrdiff_t out_plane, ptrdiff_t valid) {
    if (some == 1) { TILES(1); }
    else if (some == 4) { TILES(4); }
    else { TILES(OUT_ROWS); }
}

static void NAME(apply)(const tgx_conv *p, const void *buffer, ptrdiff_t count, const void *packed, const void *bias, void *out,
                        ptrdiff_t out_plane) {
    const ptrdiff_t n = count * p->cols, depth = p->channels * p->taps_x * p->taps_y, width = OUT_VECTORS * LANES;
    /* the smaller operand is the one walked in the inner loop */
    const int by_outputs = depth * p->outputs > p->buffer;
    const ptrdiff_t outer = by_outputs ? p->outputs : n;
    for (ptrdiff_t a = 0, a_step; a < outer; a += a_step) {
        a_step = by_outputs ? NAME(together)(p->outputs - a) : width;
        const T *w = (const T *)packed + (by_outputs ? a * depth : 0);
        for (ptrdiff_t b = 0, b_step; b < (by_outputs ? n : p->outputs); b += b_step) {
            ptrdiff_t o = by_outputs ? a : b, at = by_outputs ? b : a, some = NAME(together)(p->outputs - o);
            b_step = by_outputs ? width : some;
            int real = (int)(p->outputs - o < some ? p->outputs - o : some);
            NAME(tile_of)(some, p, (const T *)buffer + at, w, bias ? (const T *)bias + o : 0, real,
                          (T *)out + o * out_plane + at, out_plane, n - at);
            if (!by_outputs) w += some * depth;
        }
    }
}

/* ---- gradient of the weights ---- */

static void NAME(turn)(const tgx_conv *p, const void *grad, ptrdiff_t grad_plane, ptrdiff_t count, void *turned) {
    const T *g = grad;
    T *to = turned;
    const ptrdiff_t n = count * p->cols, pad = p->pad_outputs;
    for (ptrdiff_t first = 0; first < n; first += 16) { /* 16 positions at a time: a line of each output's plane */
        ptrdiff_t last = first + 16 < n ? first + 16 : n;
        for (ptrdiff_t o = 0; o < p->outputs; o++)
            for (ptrdiff_t i = first; i < last; i++) to[i * pad + o] = g[o * grad_plane + i];
        for (ptrdiff_t o = p->outputs; o < pad; o++)
            for (ptrdiff_t i = first; i < last; i++) to[i * pad + o] = 0;
    }
}

/* `rows` taps by `vectors` vectors of outputs. */
INLINE void NAME(sums)(const int rows, const int vectors, const T *const *x, const T *g, ptrdiff_t pad, ptrdiff_t n, T *sums) {
    V sum[SUM_ROWS][SUM_VECTORS];
    const T *at[SUM_ROWS];
    for (int r = 0; r < rows; r++) {
        at[r] = x[r];
        for (int q = 0; q < vectors; q++) sum[r][q] = READ(sums + r * pad + q * LANES);
    }
    for (ptrdiff_t i = 0; i < n; i++, g += pad) {
        V in[SUM_VECTORS];
        for (int q = 0; q < vectors; q++) in[q] = READ(g + q * LANES);
        for (int r = 0; r < rows; r++) {
            V factor = (V){0} + at[r][i];
            for (int q = 0; q < vectors; q++) sum[r][q] = FMA(factor, in[q], sum[r][q]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) WRITE(sums + r * pad + q * LANES, sum[r][q]);
}

#define SUMS(rows, vectors) NAME(sums)(rows, vectors, x, (const T *)turned + o, pad, n, (T *)to + k * pad + o)
#define SUMS_OF(rows)                                                              \
    if (some == 4 && SUM_VECTORS == 4) SUMS(rows, SUM_VECTORS);                    \
    else if (some >= 2) { some = 2; SUMS(rows, 2); }                               \
    else SUMS(rows, 1)

static void NAME(collect)(const tgx_conv *p, const void *buffer, ptrdiff_t count, const void *turned, void *to) {
    const ptrdiff_t n = count * p->cols, pad = p->pad_outputs, taps = p->taps_x * p->taps_y, depth = p->channels * taps;
    for (ptrdiff_t k = 0, rows; k < depth; k += rows) {
        const T *x[SUM_ROWS];
        rows = depth - k >= SUM_ROWS ? SUM_ROWS : depth - k >= 3 ? 3 : 1;
        for (ptrdiff_t r = 0; r < rows; r++) x[r] = (const T *)buffer + (k + r) / taps * p->plane + p->offset[(k + r) % taps];
        for (ptrdiff_t o = 0, some; o < p->outputs; o += some * LANES) {
            ptrdiff_t left = (p->outputs - o + LANES - 1) / LANES;
            some = left >= SUM_VECTORS ? SUM_VECTORS : left;
            if (rows == SUM_ROWS) { SUMS_OF(SUM_ROWS); }
            else if (rows == 3) { SUMS_OF(3); }
            else { SUMS_OF(1); }
        }
    }
}

#undef V
#undef LANES
#undef READ
#undef WRITE
#undef TILE
#undef TILES
#undef SUMS
#undef SUMS_OF
