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

/* Bits [from, to) of LANES, each bound clipped to them. */
INLINE uint32_t NAME(lanes)(ptrdiff_t from, ptrdiff_t to) {
    from = from < 0 ? 0 : from > LANES ? LANES : from, to = to < 0 ? 0 : to > LANES ? LANES : to;
    return ((1u << to) - 1) & ~((1u << from) - 1);
}

/* dst = src in the lanes of `inside`, else 0, written in the lanes of `room`; nothing else is touched. */
INLINE void NAME(copy)(T *dst, const T *src, uint32_t inside, uint32_t room) {
#if defined(__AVX512F__)
    if (sizeof(T) == 4) _mm512_mask_storeu_ps(dst, (__mmask16)room, _mm512_maskz_loadu_ps((__mmask16)inside, src));
    else _mm512_mask_storeu_pd(dst, (__mmask8)room, _mm512_maskz_loadu_pd((__mmask8)inside, src));
#else
    for (ptrdiff_t i = 0; room >> i; i++) dst[i] = inside >> i & 1 ? src[i] : 0;
#endif
}

/* dst[i] = src[i step] for i in [lo, hi), else 0, for i in [0, n). */
INLINE void NAME(row)(T *dst, const T *src, ptrdiff_t step, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t n) {
    ptrdiff_t i = 0;
    if (step == 1) {
        for (; i < n && i < lo; i += LANES) NAME(copy)(dst + i, src + i, NAME(lanes)(lo - i, hi - i), NAME(lanes)(0, n - i));
        for (; i + LANES <= hi; i += LANES) WRITE(dst + i, READ(src + i));
        for (; i < n; i += LANES) NAME(copy)(dst + i, src + i, NAME(lanes)(lo - i, hi - i), NAME(lanes)(0, n - i));
        return;
    }
    for (; i < lo; i++) dst[i] = 0;
    for (; i < hi; i++) dst[i] = src[i * step];
    for (; i < n; i++) dst[i] = 0;
}

/* Elements lo <= i < hi of n for which start + i step lies in [0, size). */
INLINE void NAME(bounds)(ptrdiff_t start, ptrdiff_t step, ptrdiff_t size, ptrdiff_t n, ptrdiff_t *lo, ptrdiff_t *hi) {
    *lo = start < 0 ? (-start + step - 1) / step : 0;
    *hi = size > start ? (size - start + step - 1) / step : 0;
    if (*hi > n) *hi = n;
    if (*lo > *hi) *lo = *hi;
}

/* For one tap, of every channel the rows first, first + step_y, ... of src, with zeros outside. */
static void NAME(load_tap)(const tgx_conv *p, ptrdiff_t channels, const T *src, ptrdiff_t first, ptrdiff_t at, T *dst) {
    const ptrdiff_t n = p->cols, step = p->step_x, down = p->step_y * p->width;
    ptrdiff_t lo, hi, top, bottom;
    NAME(bounds)(at, step, p->width, n, &lo, &hi);
    NAME(bounds)(first, p->step_y, p->height, p->phase_rows, &top, &bottom);
    src += (first + top * p->step_y) * p->width + at;
    const uint32_t inside = NAME(lanes)(lo, hi), room = NAME(lanes)(0, n);
    for (ptrdiff_t c = 0; c < channels; c++, src += p->height * p->width, dst += p->plane) {
        const T *from = src;
        T *to = dst + top * n;
        for (ptrdiff_t i = 0; i < top * n; i++) dst[i] = 0;
        if (n <= LANES && step == 1)
            for (ptrdiff_t r = top; r < bottom; r++, to += n, from += down) NAME(copy)(to, from, inside, room);
        else
            for (ptrdiff_t r = top; r < bottom; r++, to += n, from += down) NAME(row)(to, from, step, lo, hi, n);
        for (ptrdiff_t i = bottom * n; i < p->phase_rows * n; i++) dst[i] = 0;
    }
}

static void NAME(load_image)(const tgx_conv *p, const tgx_conv_part *part, const T *src, T *dst) {
    for (ptrdiff_t u = 0; u < p->taps_x; u++)
        for (ptrdiff_t f = 0; f < p->phases; f++, dst += p->phase_rows * p->cols)
            NAME(load_tap)(p, part->channels, src, part->row * p->step_y + p->base_y + f, p->at_x[u], dst);
}

static void NAME(load)(const tgx_conv *p, const tgx_conv_part *part, const void *src, void *buf) {
    for (ptrdiff_t i = 0; i < part->images; i++)
        NAME(load_image)(p, part, (const T *)src + i * part->src_image, (T *)buf + i * p->buffer);
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

INLINE V NAME(get)(const T *out, ptrdiff_t valid) {
    V v = {0};
    if (valid >= LANES) return READ(out);
    for (ptrdiff_t i = 0; i < valid; i++) v[i] = out[i];
    return v;
}

/* Where a tile lies: its vectors are `gap` elements apart in the buffer and `out_gap` in out, and `valid` positions of
 * the first exist, `less` fewer of each further one. */
typedef struct { const T *buf, *w, *bias; T *out; ptrdiff_t gap, out_gap, valid, less; int real; } NAME(place);

/* `rows` outputs, of which `real` exist, by `vectors` vectors of positions. */
INLINE void NAME(tile)(const int rows, const int vectors, const tgx_conv *p, const tgx_conv_part *part, const NAME(place) *at) {
    V sum[OUT_ROWS][OUT_VECTORS];
    const ptrdiff_t taps = p->taps_x * p->taps_y, *offset = p->offset, gap = at->gap;
    const T *w = at->w, *buf = at->buf;
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) {
            sum[r][q] = SPLAT(at->bias && r < at->real ? at->bias[r] : 0);
            if (part->channel && r < at->real)
                sum[r][q] = NAME(get)(at->out + r * part->out_plane + q * at->out_gap, at->valid - q * at->less);
        }
    for (ptrdiff_t c = 0; c < part->channels; c++, buf += p->plane)
        for (ptrdiff_t t = 0; t < taps; t++, w += rows) {
            const T *x = buf + offset[t];
            V in[OUT_VECTORS];
            for (int q = 0; q < vectors; q++) in[q] = READ(x + q * gap);
            for (int r = 0; r < rows; r++) {
                V factor = SPLAT(w[r]);
                for (int q = 0; q < vectors; q++) sum[r][q] = FMA(factor, in[q], sum[r][q]);
            }
        }
    for (int r = 0; r < rows && r < at->real; r++)
        for (int q = 0; q < vectors; q++)
            NAME(put)(at->out + r * part->out_plane + q * at->out_gap, sum[r][q], at->valid - q * at->less);
}

#define TILES(rows)                                           \
    if (vectors == 3) NAME(tile)(rows, 3, p, part, at);       \
    else if (vectors == 2) NAME(tile)(rows, 2, p, part, at);  \
    else NAME(tile)(rows, 1, p, part, at)

static void NAME(any_tile)(ptrdiff_t rows, ptrdiff_t vectors, const tgx_conv *p, const tgx_conv_part *part, const NAME(place) *at) {
    if (rows == 1) { TILES(1); }
    else if (rows == 4) { TILES(4); }
    else { TILES(OUT_ROWS); }
}

/* Vectors of the next tile: full tiles, but no lone vector at the end. */
INLINE ptrdiff_t NAME(next)(ptrdiff_t left) { return left == OUT_VECTORS + 1 ? 2 : left < OUT_VECTORS ? left : OUT_VECTORS; }

/* All positions of the part for the outputs of one tile row. Where an image fills less than a vector, the vectors of a
 * tile come from several images. */
static void NAME(apply_rows)(ptrdiff_t rows, const tgx_conv *p, const tgx_conv_part *part, const NAME(place) *start) {
    const ptrdiff_t n = part->rows * p->cols, vectors = (n + LANES - 1) / LANES;
    NAME(place) at = *start;
    if (vectors == 1) {
        at.gap = p->buffer, at.out_gap = part->out_image, at.valid = n, at.less = 0;
        for (ptrdiff_t i = 0, some; i < part->images; i += some) {
            some = NAME(next)(part->images - i);
            at.buf = start->buf + i * p->buffer, at.out = start->out + i * part->out_image;
            NAME(any_tile)(rows, some, p, part, &at);
        }
        return;
    }
    at.gap = at.out_gap = at.less = LANES;
    for (ptrdiff_t i = 0; i < part->images; i++)
        for (ptrdiff_t q = 0, some; q < vectors; q += some) {
            some = NAME(next)(vectors - q);
            at.valid = n - q * LANES;
            at.buf = start->buf + i * p->buffer + q * LANES, at.out = start->out + i * part->out_image + q * LANES;
            NAME(any_tile)(rows, some, p, part, &at);
        }
}

static void NAME(apply)(const tgx_conv *p, const tgx_conv_part *part, const void *buffer, const void *packed, const void *bias,
                        void *out) {
    const ptrdiff_t taps = p->taps_x * p->taps_y;
    NAME(place) at = {0};
    at.buf = buffer;
    for (ptrdiff_t o = 0, rows; o < p->outputs; o += rows) {
        rows = NAME(together)(p->outputs - o);
        at.w = (const T *)packed + (o * p->channels + part->channel * rows) * taps;
        at.bias = bias ? (const T *)bias + o : 0;
        at.out = (T *)out + o * part->out_plane;
        at.real = (int)(p->outputs - o < rows ? p->outputs - o : rows);
        NAME(apply_rows)(rows, p, part, &at);
    }
}

/* ---- gradient of the weights ---- */

static void NAME(turn_image)(const tgx_conv *p, const tgx_conv_part *part, const T *g, T *to) {
    const ptrdiff_t n = part->rows * p->cols, pad = p->pad_outputs, plane = part->out_plane;
    for (ptrdiff_t first = 0; first < n; first += 16) { /* 16 positions at a time: a line of each output's plane */
        ptrdiff_t last = first + 16 < n ? first + 16 : n;
        for (ptrdiff_t o = 0; o < p->outputs; o++)
            for (ptrdiff_t i = first; i < last; i++) to[i * pad + o] = g[o * plane + i];
        for (ptrdiff_t o = p->outputs; o < pad; o++)
            for (ptrdiff_t i = first; i < last; i++) to[i * pad + o] = 0;
    }
}

static void NAME(turn)(const tgx_conv *p, const tgx_conv_part *part, const void *grad, void *turned) {
    for (ptrdiff_t i = 0; i < part->images; i++)
        NAME(turn_image)(p, part, (const T *)grad + i * part->out_image, (T *)turned + i * part->rows * p->cols * p->pad_outputs);
}

/* `rows` taps by `vectors` vectors of outputs. */
INLINE void NAME(sums)(const int rows, const int vectors, const T *const *x, ptrdiff_t gap, ptrdiff_t images, const T *g,
                       ptrdiff_t pad, ptrdiff_t n, T *sums) {
    V sum[SUM_ROWS][SUM_VECTORS];
    const T *at[SUM_ROWS];
    for (int r = 0; r < rows; r++) {
        at[r] = x[r];
        for (int q = 0; q < vectors; q++) sum[r][q] = READ(sums + r * pad + q * LANES);
    }
    for (ptrdiff_t image = 0; image < images; image++) {
        for (ptrdiff_t i = 0; i < n; i++, g += pad) {
            V in[SUM_VECTORS];
            for (int q = 0; q < vectors; q++) in[q] = READ(g + q * LANES);
            for (int r = 0; r < rows; r++) {
                V factor = SPLAT(at[r][i]);
                for (int q = 0; q < vectors; q++) sum[r][q] = FMA(factor, in[q], sum[r][q]);
            }
        }
        for (int r = 0; r < rows; r++) at[r] += gap;
    }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < vectors; q++) WRITE(sums + r * pad + q * LANES, sum[r][q]);
}

#define SUMS(rows, vectors) \
    NAME(sums)(rows, vectors, x, p->buffer, part->images, (const T *)turned + o, pad, n, (T *)to + k * pad + o)
#define SUMS_OF(rows)                                                              \
    if (some == 4 && SUM_VECTORS == 4) SUMS(rows, SUM_VECTORS);                    \
    else if (some >= 2) { some = 2; SUMS(rows, 2); }                               \
    else SUMS(rows, 1)

static void NAME(collect)(const tgx_conv *p, const tgx_conv_part *part, const void *buffer, const void *turned, void *to) {
    const ptrdiff_t n = part->rows * p->cols, pad = p->pad_outputs, taps = p->taps_x * p->taps_y, depth = part->channels * taps;
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

/* `rows` taps against one output, vectors along the positions. */
INLINE void NAME(dots)(const int rows, const T *const *x, const T *g, ptrdiff_t n, T *sums, ptrdiff_t pad) {
    V sum[SUM_ROWS];
    T rest[SUM_ROWS];
    ptrdiff_t i = 0;
    for (int r = 0; r < rows; r++) sum[r] = (V){0}, rest[r] = 0;
    for (; i + LANES <= n; i += LANES) {
        V in = READ(g + i);
        for (int r = 0; r < rows; r++) sum[r] = FMA(in, READ(x[r] + i), sum[r]);
    }
    for (; i < n; i++)
        for (int r = 0; r < rows; r++) rest[r] += x[r][i] * g[i];
    for (int r = 0; r < rows; r++) {
        for (int q = 0; q < LANES; q++) rest[r] += sum[r][q];
        sums[r * pad] += rest[r];
    }
}

static void NAME(collect_few)(const tgx_conv *p, const tgx_conv_part *part, const void *buffer, const void *grad, void *to) {
    const ptrdiff_t n = part->rows * p->cols, pad = p->pad_outputs, taps = p->taps_x * p->taps_y, depth = part->channels * taps;
    for (ptrdiff_t k = 0, rows; k < depth; k += rows) {
        const T *x[SUM_ROWS];
        rows = depth - k >= 3 ? 3 : 1;
        for (ptrdiff_t r = 0; r < rows; r++) x[r] = (const T *)buffer + (k + r) / taps * p->plane + p->offset[(k + r) % taps];
        for (ptrdiff_t o = 0; o < p->outputs; o++) {
            const T *g = (const T *)grad + o * part->out_plane;
            if (rows == 3) NAME(dots)(3, x, g, n, (T *)to + k * pad + o, pad);
            else NAME(dots)(1, x, g, n, (T *)to + k * pad + o, pad);
        }
    }
}

#undef V
#undef LANES
#undef READ
#undef WRITE
#undef TILES
#undef SUMS
#undef SUMS_OF
