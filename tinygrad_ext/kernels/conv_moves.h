/* How convolution lays out what its loops read, and puts its sums back; included by conv_loops.h, with its T and NAME.
 *
 * Whatever is turned goes through blocks of 4 x 4: element by element it took as long as the products of a small image. */

/* to[j to_step + i] = from[i from_step + j] for i < rows, j < cols, in lines of 16 of either side. */
INLINE void NAME(transpose)(T *to, ptrdiff_t to_step, const T *from, ptrdiff_t from_step, ptrdiff_t rows, ptrdiff_t cols) {
    for (ptrdiff_t first = 0; first < cols; first += 16) {
        const ptrdiff_t last = first + 16 < cols ? first + 16 : cols;
        ptrdiff_t i = 0;
        for (; i + 4 <= rows; i += 4) {
            ptrdiff_t j = first;
            for (; j + 4 <= last; j += 4) NAME(turn_block)(to + j * to_step + i, to_step, from + i * from_step + j, from_step);
            for (; j < last; j++)
                for (ptrdiff_t r = i; r < i + 4; r++) to[j * to_step + r] = from[r * from_step + j];
        }
        for (; i < rows; i++)
            for (ptrdiff_t j = first; j < last; j++) to[j * to_step + i] = from[i * from_step + j];
    }
}

/* ---- windows ---- */

/* Bits [from, to) of LANES, each bound clipped to them. */
INLINE uint32_t NAME(lanes)(ptrdiff_t from, ptrdiff_t to) {
    from = from < 0 ? 0 : from > LANES ? LANES : from, to = to < 0 ? 0 : to > LANES ? LANES : to;
    return ((1u << to) - 1) & ~((1u << from) - 1);
}

/* What `masked` is told the lanes by. */
#if !defined(__AVX512F__) && defined(__AVX2__)
typedef __m256i NAME(mask);
INLINE NAME(mask) NAME(make_mask)(uint32_t inside) {
    const __m256i bit = sizeof(T) == 4 ? _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128) : _mm256_setr_epi64x(1, 2, 4, 8);
    return sizeof(T) == 4 ? _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)inside), bit), bit)
                          : _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(inside), bit), bit);
}
#else
typedef uint32_t NAME(mask);
INLINE NAME(mask) NAME(make_mask)(uint32_t inside) { return inside; }
#endif

/* src in the lanes of a mask, of which nothing else is read, else 0. */
INLINE V NAME(masked)(const T *src, NAME(mask) mask) {
#if defined(__AVX512F__)
    if (sizeof(T) == 4) return (V)_mm512_maskz_loadu_ps((__mmask16)mask, src);
    return (V)_mm512_maskz_loadu_pd((__mmask8)mask, src);
#elif defined(__AVX2__)
    return sizeof(T) == 4 ? (V)_mm256_maskload_ps((const float *)src, mask) : (V)_mm256_maskload_pd((const double *)src, mask);
#else
    V v = {0};
    for (ptrdiff_t i = 0; mask >> i; i++)
        if (mask >> i & 1) v[i] = src[i];
    return v;
#endif
}

INLINE V NAME(inside)(const T *src, uint32_t inside) { return NAME(masked)(src, NAME(make_mask)(inside)); }

/* The first `valid` lanes. Masked stores are slow on some processors, and leave nothing to forward from. */
INLINE void NAME(put)(T *out, V v, ptrdiff_t valid) {
    if (valid >= LANES) { WRITE(out, v); return; }
#if defined(__AVX512F__)
    if (sizeof(T) == 4) _mm512_mask_storeu_ps(out, (__mmask16)NAME(lanes)(0, valid), (__m512)v);
    else _mm512_mask_storeu_pd(out, (__mmask8)NAME(lanes)(0, valid), (__m512d)v);
#else
    T from[LANES];
    ptrdiff_t i = 0;
    WRITE(from, v);
    if (LANES > 4 && valid & 4) memcpy(out, from, 4 * sizeof(T)), i = 4;
    if (valid & 2) memcpy(out + i, from + i, 2 * sizeof(T)), i += 2;
    if (valid & 1) out[i] = from[i];
#endif
}

INLINE V NAME(get)(const T *out, ptrdiff_t valid) {
    if (valid >= LANES) return READ(out);
    return NAME(inside)(out, NAME(lanes)(0, valid));
}

/* dst[i] = src[i step] for i in [lo, hi), else 0, for i in [0, n); what lies behind, up to `room`, may be overwritten. */
INLINE void NAME(row)(T *dst, const T *src, ptrdiff_t step, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t n, ptrdiff_t room) {
    ptrdiff_t i = 0;
    if (step == 1) {
        for (; i < n && i < lo; i += LANES)
            NAME(put)(dst + i, NAME(inside)(src + i, NAME(lanes)(lo - i, hi - i)), room - i);
        for (; i + LANES <= hi; i += LANES) WRITE(dst + i, READ(src + i));
        for (; i < n; i += LANES) NAME(put)(dst + i, NAME(inside)(src + i, NAME(lanes)(0, hi - i)), room - i);
        return;
    }
    for (; i < lo; i++) dst[i] = 0;
    if (step == 2) {
        for (; i + LANES < hi; i += LANES) WRITE(dst + i, EVENS(READ(src + 2 * i), READ(src + 2 * i + LANES)));
        for (; i < n; i += LANES) {
            const ptrdiff_t left = 2 * (hi - i) - 1; /* the last element is read, the one behind it may not exist */
            NAME(put)(dst + i, EVENS(NAME(inside)(src + 2 * i, NAME(lanes)(0, left)),
                                     NAME(inside)(src + 2 * i + LANES, NAME(lanes)(0, left - LANES))), room - i);
        }
        return;
    }
    for (; i < hi; i++) dst[i] = src[i * step];
    for (; i < n; i++) dst[i] = 0;
}

/* Elements lo <= i < hi of n for which start + i step lies in [0, size). */
INLINE void NAME(bounds)(ptrdiff_t start, ptrdiff_t step, ptrdiff_t size, ptrdiff_t n, ptrdiff_t *lo, ptrdiff_t *hi) {
    *lo = start >= 0 ? 0 : step == 1 ? -start : (-start + step - 1) / step;
    *hi = size <= start ? 0 : step == 1 ? size - start : (size - start + step - 1) / step;
    if (*hi > n) *hi = n;
    if (*lo > *hi) *lo = *hi;
}

/* For one tap, of every channel the rows first, first + step_y, ... of src, with zeros outside. */
static void NAME(load_tap)(const tgx_conv *p, const tgx_conv_part *part, const T *src, ptrdiff_t first, ptrdiff_t at, T *dst) {
    const ptrdiff_t n = part->cols, span = p->span, step = p->step_x, down = p->step_y * p->width;
    ptrdiff_t lo, hi, top, bottom;
    NAME(bounds)(at, step, p->width, n, &lo, &hi);
    NAME(bounds)(first, p->step_y, p->height, p->phase_rows, &top, &bottom);
    src += (first + top * p->step_y) * p->width + at;
    const NAME(mask) one = NAME(make_mask)(NAME(lanes)(lo, hi)); /* of a row of one vector; with a step of 2 it is read as two */
    const NAME(mask) left = NAME(make_mask)(NAME(lanes)(2 * lo, 2 * hi - 1));
    const NAME(mask) right = NAME(make_mask)(NAME(lanes)(2 * lo - LANES, 2 * hi - 1 - LANES));
    for (ptrdiff_t c = 0; c < part->channels; c++, src += p->src_channel, dst += p->plane) {
        const T *from = src;
        T *to = dst + top * span;
        for (ptrdiff_t i = 0; i < top * span; i++) dst[i] = 0;
        if (n <= LANES && step == 1)
            for (ptrdiff_t r = top; r < bottom; r++, to += span, from += down)
                NAME(put)(to, NAME(masked)(from, one), (p->phase_rows - r) * span); /* later rows are written later */
        else if (n <= LANES && step == 2)
            for (ptrdiff_t r = top; r < bottom; r++, to += span, from += down)
                NAME(put)(to, EVENS(NAME(masked)(from, left), NAME(masked)(from + LANES, right)), (p->phase_rows - r) * span);
        else
            for (ptrdiff_t r = top; r < bottom; r++, to += span, from += down)
                NAME(row)(to, from, step, lo, hi, n, (p->phase_rows - r) * span);
        for (ptrdiff_t i = bottom * span; i < p->phase_rows * span; i++) dst[i] = 0;
    }
}

static void NAME(load)(const tgx_conv *p, const tgx_conv_part *part, const void *src, void *buf) {
    T *dst = buf;
    for (ptrdiff_t u = 0; u < p->taps_x; u++)
        for (ptrdiff_t f = 0; f < p->phases; f++, dst += p->phase_rows * p->span)
            NAME(load_tap)(p, part, src, part->row * p->step_y + p->base_y + f, part->col * p->step_x + p->at_x[u], dst);
}

/* ---- weights ---- */

/* Outputs handled together from output o on: a full tile, a quarter, or one. */
INLINE ptrdiff_t NAME(together)(ptrdiff_t left) {
    return left > 4 ? OUT_ROWS : left > 1 ? 4 : 1;
}

/* Vectors of outputs of such a tile: as many as there are, or in place always as many. */
INLINE ptrdiff_t NAME(vectors)(const tgx_conv *p, ptrdiff_t left) {
    return p->across || left >= MOST_VECTORS * LANES ? MOST_VECTORS : (left + LANES - 1) / LANES;
}

/* Channels [c, last) of one tile of `some` outputs, of which `real` exist. */
INLINE void NAME(pack_tile)(T *to, const T *w, ptrdiff_t step_o, ptrdiff_t step_c, const ptrdiff_t *tap, ptrdiff_t taps, int straight,
                            ptrdiff_t some, ptrdiff_t real, ptrdiff_t channels) {
    if (real < some) memset(to, 0, (size_t)(channels * taps * some) * sizeof(T));
    if (straight && step_c == taps && real * (ptrdiff_t)sizeof(T) >= 64) {
        char *both[2] = {(char *)to, (char *)w};
        const ptrdiff_t inner[2] = {sizeof(T), step_o * (ptrdiff_t)sizeof(T)}, outer[2] = {some * (ptrdiff_t)sizeof(T), sizeof(T)};
        tgx_copy_plane(sizeof(T))(both, inner, outer, real, channels * taps);
    } else if (straight && step_c == taps) NAME(transpose)(to, some, w, step_o, real, channels * taps);
    else if (straight && taps == 1 && step_o == 1)
        for (ptrdiff_t c = 0; c < channels; c++) {
            if (real == 4) memcpy(to + c * some, w + c * step_c, 4 * sizeof(T));
            else memcpy(to + c * some, w + c * step_c, (size_t)real * sizeof(T));
        }
    else if (straight)
        for (ptrdiff_t c = 0; c < channels; c++) NAME(transpose)(to + c * taps * some, some, w + c * step_c, step_o, real, taps);
    else
        for (ptrdiff_t c = 0; c < channels; c++)
            for (ptrdiff_t t = 0; t < taps; t++)
                for (ptrdiff_t r = 0; r < real; r++) to[(c * taps + t) * some + r] = w[r * step_o + c * step_c + tap[t]];
}

/* Some channels at a time: a line of weights then serves several tiles before it is displaced. */
static void NAME(pack)(const tgx_conv *p, const void *weight, ptrdiff_t step_o, ptrdiff_t step_c, const ptrdiff_t *tap,
                       ptrdiff_t first, void *packed) {
    const ptrdiff_t taps = p->taps_x * p->taps_y, block = step_c == taps ? p->own : 16;
    int straight = 1;
    for (ptrdiff_t t = 0; t < taps; t++) straight &= tap[t] == t;
    for (ptrdiff_t c = 0, channels; c < p->own; c += channels) {
        channels = p->own - c < block ? p->own - c : block;
        for (ptrdiff_t o = 0, some; o < p->outputs; o += some) {
            some = p->across || p->laid ? NAME(vectors)(p, p->outputs - o) * LANES : NAME(together)(p->outputs - o);
            NAME(pack_tile)((T *)packed + (o * p->channels + (first + c) * some) * taps, (const T *)weight + o * step_o + c * step_c, step_o,
                            step_c, tap, taps, straight, some, p->outputs - o < some ? p->outputs - o : some, channels);
        }
    }
}

/* ---- gradient of the weights ---- */

/* Panels of LANES outputs: panel o / LANES, position after position of image after image. */
static void NAME(turn)(const tgx_conv *p, const tgx_conv_part *part, const void *grad, void *turned) {
    const ptrdiff_t n = part->rows * part->cols;
    T *to = turned;
    for (ptrdiff_t o = 0; o < p->pad_outputs; o += LANES)
        for (ptrdiff_t i = 0; i < part->images; i++, to += n * LANES) {
            const ptrdiff_t left = p->outputs - o, real = left < LANES ? left : LANES;
            if (real < LANES) memset(to, 0, (size_t)(n * LANES) * sizeof(T));
            if (real > 0)
                NAME(transpose)(to, LANES, (const T *)grad + tgx_conv_out(part, i) + o * part->out_plane, part->out_plane, real, n);
        }
}

/* out[output][k] = sums[output / LANES][k][output % LANES], k being channel and tap. Of volumes sums have all channels of the first
 * tap plane, then those of the next; out has all tap planes of a channel. */
static void NAME(spread)(const tgx_conv *p, const void *sums, void *out) {
    const ptrdiff_t deep = p->own ? p->channels / p->own : 0, depth = p->channels * p->taps_x * p->taps_y;
    const ptrdiff_t pieces = deep > 1 ? p->channels : 1, piece = deep > 1 ? p->taps_x * p->taps_y : depth;
    const T *from = sums;
    for (ptrdiff_t o = 0; o < p->outputs; o += LANES) {
        const ptrdiff_t real = p->outputs - o < LANES ? p->outputs - o : LANES;
        for (ptrdiff_t c = 0; c < pieces; c++, from += piece * LANES) {
            T *to = (T *)out + o * depth + (deep > 1 ? c % p->own * deep + c / p->own : 0) * piece;
            for (ptrdiff_t k = 0; k < piece; k += 16)
                NAME(transpose)(to + k, depth, from + k * LANES, LANES, piece - k < 16 ? piece - k : 16, real);
        }
    }
}
