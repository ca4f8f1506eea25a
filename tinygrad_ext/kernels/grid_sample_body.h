/* Points of a grid, for elements of type T whose places in a plane are of type INDEX. Included by grid_sample_isa.h.
 *
 * Each sum runs over the taps of a row, then over rows, or over channels, in that order for every point, so blocks and threads
 * change no bit. */

typedef struct {
    T line[3][4][TGX_GRID_BLOCK], slope[3][4][TGX_GRID_BLOCK];  /* weight of a tap, and its slope by the grid's coordinate */
    INDEX place[3][4][TGX_GRID_BLOCK];                          /* times the dimension's stride; -1: outside */
    INDEX at[TGX_GRID_CORNERS][TGX_GRID_BLOCK];                 /* of corners, the last dimension fastest; 0 for what lies outside */
    BITS keep[TGX_GRID_CORNERS][TGX_GRID_BLOCK];                /* and of its element no bit */
    INDEX rows[TGX_GRID_ROWS][TGX_GRID_BLOCK];                  /* of volumes: places but for the last dimension, and weights */
    T rows_line[TGX_GRID_ROWS][TGX_GRID_BLOCK];
    const INDEX *row[TGX_GRID_ROWS];
    const T *row_line[TGX_GRID_ROWS];
    INDEX from[TGX_GRID_ROWS][TGX_GRID_BLOCK];                  /* where the taps of a row begin, which lie side by side */
    uint8_t rough[TGX_GRID_BLOCK];                              /* points of which not all do; their corners are at[k][0], ... */
    int roughs;
    int taps, shift, corners;                                   /* taps of a dimension: 1 << shift */
    int some_out;                                               /* `keep` is not all bits; of the nearest element */
    int steep;                                                  /* slopes are asked for */
} ALIGNED NAME(block);

#define TURNS \
    const T turn = ABS(p[j] - low), flips = FLOOR(turn / span), rest = turn - flips * span, half = flips * (T)0.5; \
    const int odd = half != FLOOR(half), below = p[j] < low
/* Coordinates brought within the image, for paddings that do so; what is at slope, if asked for, is multiplied by theirs, which
 * ends at the border. */
static void NAME(bound)(const tgx_grid_job *job, T top, T *p, T *slope) {
    if (job->padding == TGX_ZEROS) return;
    if (job->padding == TGX_REFLECTION) {
        const T low = job->align ? 0 : (T)-0.5, span = job->align ? top : top + 1;
        if (slope) EACH {
            TURNS;
            const T turned = -slope[j];
            slope[j] = odd != below ? turned : slope[j];
        }
        EACH {
            TURNS;
            const T there = span - rest + low, back = rest + low;
            p[j] = odd ? there : back;
        }
    }
    if (slope) EACH {
        const T q = p[j], s = slope[j];
        slope[j] = (q > 0) & (q < top) ? s : 0;
    }
    EACH {
        const T q = p[j], least = q > 0 ? q : 0;
        p[j] = least < top ? least : top;
    }
}
#undef TURNS

/* Taps of dimension d for the points whose coordinate is `point`. Each array that is written costs as much as its arithmetic, so
 * there are only those that are read later. */
static void NAME(taps)(const tgx_grid_job *job, int d, T *point, NAME(block) *b) {
    const int mode = job->mode;
    const T rounded = (T)(job->size[d] - 1), top = (ptrdiff_t)rounded < job->size[d] ? rounded : BELOW(rounded), a = (T)-0.75;
    const INDEX stride = (INDEX)job->stride[d];
    T slope[TGX_GRID_BLOCK] ALIGNED, *steep = b->steep ? slope : NULL;
    if (steep) {
        const T scale = (job->align ? top : top + 1) / 2;
        EACH slope[j] = scale;
    }
    if (mode != TGX_BICUBIC) NAME(bound)(job, top, point, steep);
#define PLACE(k, where) { \
        const T q = where; \
        const int in = (q >= 0) & (q <= top); \
        const INDEX at = (INDEX)(in ? q : 0) * stride; \
        b->place[d][k][j] = in ? at : -1; \
    }
    if (mode == TGX_NEAREST) EACH PLACE(0, RINT(point[j]))
    else if (mode == TGX_BILINEAR) {
        EACH {
            const T low = FLOOR(point[j]), t = point[j] - low;
            b->line[d][0][j] = 1 - t, b->line[d][1][j] = t;
            PLACE(0, low)
            PLACE(1, low + 1)
        }
        if (steep) EACH b->slope[d][0][j] = -slope[j], b->slope[d][1][j] = slope[j];
    } else {                                                 /* Keys 1981, as interpolate has it */
        T low[TGX_GRID_BLOCK] ALIGNED;
        EACH {
            low[j] = FLOOR(point[j]);
            const T t = point[j] - low[j], u = 1 - t, far = t + 1, rest = 2 - t;
            b->line[d][0][j] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
            b->line[d][1][j] = ((a + 2) * t - (a + 3)) * t * t + 1;
            b->line[d][2][j] = ((a + 2) * u - (a + 3)) * u * u + 1;
            b->line[d][3][j] = ((a * rest - 5 * a) * rest + 8 * a) * rest - 4 * a;
        }
        if (steep) EACH {
            const T t = point[j] - low[j], u = 1 - t, far = t + 1, rest = 2 - t;
            b->slope[d][0][j] = ((3 * a * far - 10 * a) * far + 8 * a) * slope[j];
            b->slope[d][1][j] = (3 * (a + 2) * t - 2 * (a + 3)) * t * slope[j];
            b->slope[d][2][j] = -(3 * (a + 2) * u - 2 * (a + 3)) * u * slope[j];
            b->slope[d][3][j] = -((3 * a * rest - 10 * a) * rest + 8 * a) * slope[j];
        }
        for (int k = 0; k < 4; k++) {
            EACH point[j] = low[j] + (T)(k - 1);
            NAME(bound)(job, top, point, NULL);
            EACH PLACE(k, point[j])
        }
    }
#undef PLACE
}

/* Of a block of points, each dimension by itself, in elements of the image. */
static inline __attribute__((always_inline)) void NAME(apart)(const tgx_grid_job *job, int dims, const T *g,
                                                              T point[3][TGX_GRID_BLOCK]) {
    const T edge = job->align ? 0 : 1, half = job->align ? 1 : (T)0.5;
    for (int d = 0; d < dims; d++) {
        const T size = (T)job->size[dims - 1 - d], scale = job->align ? (size - 1) / 2 : size;
        EACH point[d][j] = ((g[j * dims + d] + 1) * scale - edge) * half;
    }
}
/* The corners' places. */
static void NAME(corners)(const tgx_grid_job *job, NAME(block) *b) {
    _Pragma("GCC unroll 1") for (int k = 0; k < b->corners; k++) {
        const int last = k & (b->taps - 1), middle = k >> b->shift & (b->taps - 1), first = k >> 2 * b->shift, d = job->dims - 1;
        const INDEX *p = b->place[d][last], *q = b->place[d - 1][middle], *r = b->place[0][first];
        INDEX any = 0;
        if (d == 1) _Pragma("omp simd reduction(|:any)") for (ptrdiff_t j = 0; j < TGX_GRID_BLOCK; j++) {
            const INDEX at = p[j] + q[j], out = (p[j] | q[j]) < 0 ? -1 : 0;
            b->at[k][j] = at & ~out, b->keep[k][j] = ~out, any |= out;
        }
        else _Pragma("omp simd reduction(|:any)") for (ptrdiff_t j = 0; j < TGX_GRID_BLOCK; j++) {
            const INDEX at = p[j] + q[j] + r[j], out = (p[j] | q[j] | r[j]) < 0 ? -1 : 0;
            b->at[k][j] = at & ~out, b->keep[k][j] = ~out, any |= out;
        }
        b->some_out = any != 0;
    }
}

/* Rows of taps: those of the last dimension, for each choice in the others. */
static void NAME(rows)(const tgx_grid_job *job, NAME(block) *b) {
    const int d = job->dims - 1, count = b->corners >> b->shift;
    for (int r = 0; r < count; r++) {
        if (d == 1) {
            b->row[r] = b->place[0][r], b->row_line[r] = b->line[0][r];
            continue;
        }
        const int first = r >> b->shift, middle = r & (b->taps - 1);
        const INDEX *q = b->place[0][first], *s = b->place[1][middle];
        const T *v = b->line[0][first], *w = b->line[1][middle];
        EACH {
            const INDEX at = q[j] + s[j];
            b->rows[r][j] = (q[j] | s[j]) < 0 ? -1 : at, b->rows_line[r][j] = v[j] * w[j];
        }
        b->row[r] = b->rows[r], b->row_line[r] = b->rows_line[r];
    }
}

/* Where to read: from the first element for points some of whose taps do not lie side by side, which are read again. */
static void NAME(starts)(const tgx_grid_job *job, NAME(block) *b) {
    const int d = job->dims - 1, count = b->corners >> b->shift, taps = b->taps;
    const INDEX *p = b->place[d][0], *end = b->place[d][taps - 1];
    INDEX rough[TGX_GRID_BLOCK] ALIGNED, any = 0;
    EACH rough[j] = p[j] | (INDEX)-(end[j] != p[j] + taps - 1);
    for (int k = 1; k < taps - 1; k++) {
        const INDEX *next = b->place[d][k];
        EACH rough[j] |= (INDEX)-(next[j] != p[j] + k);
    }
    for (int r = 0; r < count; r++) {
        const INDEX *q = b->row[r];
        EACH rough[j] |= q[j];
    }
    _Pragma("omp simd reduction(|:any)") for (ptrdiff_t j = 0; j < TGX_GRID_BLOCK; j++)
        rough[j] = rough[j] < 0 ? 0 : -1, any |= ~rough[j];
    for (int r = 0; r < count; r++) {
        const INDEX *q = b->row[r];
        EACH b->from[r][j] = (p[j] + q[j]) & rough[j];
    }
    int found = 0;
    if (any) _Pragma("GCC unroll 1") for (int j = 0; j < TGX_GRID_BLOCK; j++) b->rough[found] = (uint8_t)j, found += !rough[j];
    b->roughs = found;
    for (int i = 0; i < found; i++)
        _Pragma("GCC unroll 1") for (int k = 0; k < b->corners; k++) {
            const INDEX at = b->place[d][k & (taps - 1)][b->rough[i]], row = b->row[k >> b->shift][b->rough[i]];
            const int out = (at | row) < 0;
            b->at[k][i] = out ? 0 : at + row, b->keep[k][i] = out ? 0 : -1;
        }
}

/* The nearest elements in images without padding, in one pass. */
static void NAME(straight)(const tgx_grid_job *job, const T *g, NAME(block) *b) {
    const T edge = job->align ? 0 : 1, half = job->align ? 1 : (T)0.5, wide = (T)job->size[1], high = (T)job->size[0];
    const T across = job->align ? (wide - 1) / 2 : wide, down = job->align ? (high - 1) / 2 : high;
    const INDEX stride = (INDEX)job->stride[0];
    INDEX any = 0;
    _Pragma("omp simd reduction(|:any)") for (ptrdiff_t j = 0; j < TGX_GRID_BLOCK; j++) {
        const T x = RINT(((g[2 * j] + 1) * across - edge) * half), y = RINT(((g[2 * j + 1] + 1) * down - edge) * half);
        const int in = (x >= 0) & (x < wide) & (y >= 0) & (y < high);
        const INDEX at = (INDEX)(in ? y : 0) * stride + (INDEX)(in ? x : 0);
        b->at[0][j] = at, b->keep[0][j] = in ? -1 : 0, any |= !in;
    }
    b->some_out = any != 0;
}

static void NAME(find)(const tgx_grid_job *job, ptrdiff_t image, ptrdiff_t first, ptrdiff_t n, int steep, NAME(block) *b) {
    const T *g = (const T *)job->grid + (image * job->points + first) * job->dims;
    b->shift = job->mode == TGX_BILINEAR ? 1 : job->mode == TGX_NEAREST ? 0 : 2;
    b->taps = 1 << b->shift, b->corners = 1 << b->shift * job->dims, b->steep = steep;
    T point[3][TGX_GRID_BLOCK] ALIGNED, last[3 * TGX_GRID_BLOCK];
    if (n < TGX_GRID_BLOCK) {
        memset(last, 0, sizeof last);
        g = memcpy(last, g, (size_t)(n * job->dims) * sizeof(T));
    }
    if (job->mode == TGX_NEAREST && job->padding == TGX_ZEROS && job->dims == 2) {
        NAME(straight)(job, g, b);
        return;
    }
    if (job->dims == 2) NAME(apart)(job, 2, g, point);
    else NAME(apart)(job, 3, g, point);
    for (int d = 0; d < job->dims; d++) NAME(taps)(job, d, point[job->dims - 1 - d], b);
    if (job->mode == TGX_NEAREST) NAME(corners)(job, b);
    else NAME(rows)(job, b);
}

static inline ptrdiff_t NAME(left)(const tgx_grid_job *job, ptrdiff_t first) {
    return job->points - first < TGX_GRID_BLOCK ? job->points - first : TGX_GRID_BLOCK;
}
/* An element, or 0 outside: by bits, as a branch at each would cost more than it spares. */
static inline T NAME(kept)(T v, BITS keep) {
    union { T number; BITS bits; } both = {v};
    both.bits &= keep;
    return both.number;
}

/* The elements of all corners, one row of taps after the other, but for rough points. The taps of a point in a row are one load;
 * four points are turned. */
static inline __attribute__((always_inline)) void NAME(fetch_taps)(const T *x, const NAME(block) *b, int taps,
                                                                   T got[TGX_GRID_CORNERS][TGX_GRID_BLOCK]) {
    const int count = b->corners / taps;
    for (int r = 0; r < count; r++) {
        const INDEX *from = b->from[r];
        for (ptrdiff_t j = 0; j < TGX_GRID_BLOCK; j += 4) {
            ptrdiff_t p, q, s, t;
            TWO_PLACES(from + j, p, q);
            TWO_PLACES(from + j + 2, s, t);
            if (taps == 2) TWO_TAPS(x + p, x + q, x + s, x + t, &got[2 * r][j]);
            else FOUR_TAPS(x + p, x + q, x + s, x + t, &got[4 * r][j]);
        }
    }
}
static void NAME(fetch)(const T *x, const NAME(block) *b, T got[TGX_GRID_CORNERS][TGX_GRID_BLOCK]) {
    if (b->roughs == TGX_GRID_BLOCK) memset(got, 0, (size_t)b->corners * sizeof got[0]);
    else if (b->taps == 2) NAME(fetch_taps)(x, b, 2, got);
    else NAME(fetch_taps)(x, b, 4, got);
}

/* The elements of rough points. Rejected: to put them among the others, where vectors that are loaded wait for each of them. */
static inline T NAME(rough)(const T *x, const NAME(block) *b, int k, int i) { return NAME(kept)(x[b->at[k][i]], b->keep[k][i]); }

static inline __attribute__((always_inline)) T NAME(rough_sum)(const T *x, const NAME(block) *b, int last, int taps, int i) {
    const ptrdiff_t j = b->rough[i];
    T sum = 0;
    for (int r = 0; r < b->corners / taps; r++) {
        T row = NAME(rough)(x, b, r * taps, i) * b->line[last][0][j];
        for (int k = 1; k < taps; k++) row = row + NAME(rough)(x, b, r * taps + k, i) * b->line[last][k][j];
        sum = r ? sum + row * b->row_line[r][j] : row * b->row_line[r][j];
    }
    return sum;
}

/* The nearest elements of a whole block, loaded one by one: half the time of those instructions that load a vector from many places. */
static void NAME(pick)(const T *x, const NAME(block) *b, T *y) {
    for (ptrdiff_t j = 0; j < TGX_GRID_BLOCK; j += 4) {
        ptrdiff_t p, q, s, t;
        TWO_PLACES(b->at[0] + j, p, q);
        TWO_PLACES(b->at[0] + j + 2, s, t);
        const FOUR four = {x[p], x[q], x[s], x[t]};
        *(FOUR *)(y + j) = b->some_out ? (FOUR)((FOUR_BITS)four & *(const FOUR_BITS *)(b->keep[0] + j)) : four;
    }
}

static int NAME(read)(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_grid_job *job = given;
    NAME(block) b;
    T got[TGX_GRID_CORNERS][TGX_GRID_BLOCK] ALIGNED, last[TGX_GRID_BLOCK] ALIGNED;
    for (ptrdiff_t i = lo; i < hi; i++) {
        const ptrdiff_t image = i / job->blocks, first = i % job->blocks * TGX_GRID_BLOCK, n = NAME(left)(job, first);
        NAME(find)(job, image, first, n, 0, &b);
        b.roughs = 0;
        if (b.corners > 1) NAME(starts)(job, &b);
        for (ptrdiff_t c = 0; c < job->channels; c++) {
            const ptrdiff_t plane = image * job->channels + c;
            const int d = job->dims - 1;
            const T *x = (const T *)job->x + plane * job->plane, (*u)[TGX_GRID_BLOCK] = b.line[d];
            T *y = (T *)job->to + plane * job->points + first, *sum = n < TGX_GRID_BLOCK ? last : y;
            if (b.corners > 1) NAME(fetch)(x, &b, got);
            else NAME(pick)(x, &b, sum);
            if (b.taps == 2) for (int r = 0; r < b.corners / 2; r++) {
                const T *v = b.row_line[r], *p = got[2 * r], *q = got[2 * r + 1];
                if (r) EACH sum[j] = sum[j] + (p[j] * u[0][j] + q[j] * u[1][j]) * v[j];
                else EACH sum[j] = (p[j] * u[0][j] + q[j] * u[1][j]) * v[j];
            }
            if (b.taps == 4) for (int r = 0; r < 4; r++) {
                const T *v = b.row_line[r], *p = got[4 * r], *q = got[4 * r + 1], *s = got[4 * r + 2], *t = got[4 * r + 3];
                if (r) EACH sum[j] = sum[j] + (p[j] * u[0][j] + q[j] * u[1][j] + s[j] * u[2][j] + t[j] * u[3][j]) * v[j];
                else EACH sum[j] = (p[j] * u[0][j] + q[j] * u[1][j] + s[j] * u[2][j] + t[j] * u[3][j]) * v[j];
            }
            for (int i = 0; i < b.roughs; i++)
                sum[b.rough[i]] = b.taps == 2 ? NAME(rough_sum)(x, &b, d, 2, i) : NAME(rough_sum)(x, &b, d, 4, i);
            if (sum != y) memcpy(y, sum, (size_t)n * sizeof(T));
        }
    }
    return 0;
}

static void NAME(weigh)(const NAME(block) *b, int last, T weight[TGX_GRID_CORNERS][TGX_GRID_BLOCK]) {
    for (int k = 0; k < b->corners; k++) {
        const T *u = b->line[last][k & (b->taps - 1)], *v = b->row_line[k >> b->shift];
        EACH weight[k][j] = u[j] * v[j];
    }
}

/* What arrived for n points given to their corners. */
static inline __attribute__((always_inline)) void NAME(give)(T *restrict y, const T *restrict g, ptrdiff_t n, const NAME(block) *b,
                                                             int corners, const T weight[TGX_GRID_CORNERS][TGX_GRID_BLOCK]) {
    for (ptrdiff_t j = 0; j < n; j++)
        for (int k = 0; k < corners; k++)
            if (b->keep[k][j]) y[b->at[k][j]] += corners == 1 ? g[j] : g[j] * weight[k][j];
}

/* Planes lo to hi of the images' gradient; those of one image share the corners. */
static int NAME(spread)(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_grid_job *job = given;
    NAME(block) b;
    T weight[TGX_GRID_CORNERS][TGX_GRID_BLOCK] ALIGNED;
    memset((T *)job->to + lo * job->plane, 0, (size_t)((hi - lo) * job->plane) * sizeof(T));
    for (ptrdiff_t p = lo, end; p < hi; p = end) {
        const ptrdiff_t image = p / job->channels;
        end = (image + 1) * job->channels < hi ? (image + 1) * job->channels : hi;
        for (ptrdiff_t first = 0; first < job->points; first += TGX_GRID_BLOCK) {
            const ptrdiff_t n = NAME(left)(job, first);
            NAME(find)(job, image, first, n, 0, &b);
            if (b.corners > 1) {
                NAME(corners)(job, &b);
                NAME(weigh)(&b, job->dims - 1, weight);
            }
            for (ptrdiff_t q = p; q < end; q++) {
                const T *g = (const T *)job->grad + q * job->points + first;
                T *y = (T *)job->to + q * job->plane;
                if (b.corners == 1) NAME(give)(y, g, n, &b, 1, weight);
                else if (b.corners == 4) NAME(give)(y, g, n, &b, 4, weight);
                else if (b.corners == 8) NAME(give)(y, g, n, &b, 8, weight);
                else NAME(give)(y, g, n, &b, 16, weight);
            }
        }
    }
    return 0;
}

static int NAME(slopes)(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_grid_job *job = given;
    const int dims = job->dims;
    NAME(block) b;
    if (job->mode == TGX_NEAREST) {
        for (ptrdiff_t i = lo; i < hi; i++) {
            const ptrdiff_t image = i / job->blocks, first = i % job->blocks * TGX_GRID_BLOCK;
            memset((T *)job->to + (image * job->points + first) * dims, 0, (size_t)(NAME(left)(job, first) * dims) * sizeof(T));
        }
        return 0;
    }
    for (ptrdiff_t i = lo; i < hi; i++) {
        const ptrdiff_t image = i / job->blocks, first = i % job->blocks * TGX_GRID_BLOCK, n = NAME(left)(job, first);
        T got[TGX_GRID_CORNERS][TGX_GRID_BLOCK] ALIGNED, apart[TGX_GRID_BLOCK][TGX_GRID_CORNERS];
        T dot[TGX_GRID_CORNERS][TGX_GRID_BLOCK] ALIGNED;        /* of what arrived and a corner, over channels */
        T sum[TGX_GRID_BLOCK] ALIGNED, arrived[TGX_GRID_BLOCK] ALIGNED = {0};
        NAME(find)(job, image, first, n, 1, &b);
        NAME(starts)(job, &b);
        memset(dot, 0, (size_t)b.corners * sizeof dot[0]);
        memset(apart, 0, (size_t)b.roughs * sizeof apart[0]);
        for (ptrdiff_t c = 0; c < job->channels; c++) {
            const T *x = (const T *)job->x + (image * job->channels + c) * job->plane;
            memcpy(arrived, (const T *)job->grad + (image * job->channels + c) * job->points + first, (size_t)n * sizeof(T));
            NAME(fetch)(x, &b, got);
            for (int k = 0; k < b.corners; k++) EACH dot[k][j] += arrived[j] * got[k][j];
            for (int i = 0; i < b.roughs; i++)
                for (int k = 0; k < b.corners; k++) apart[i][k] += arrived[b.rough[i]] * NAME(rough)(x, &b, k, i);
        }
        for (int i = 0; i < b.roughs; i++)
            _Pragma("GCC unroll 1") for (int k = 0; k < b.corners; k++) dot[k][b.rough[i]] = apart[i][k];
        for (int d = 0; d < dims; d++) {
            for (int k = 0; k < b.corners; k++) {
                T w[TGX_GRID_BLOCK] ALIGNED;
                int rest = k;
                EACH w[j] = dot[k][j];
                for (int e = dims - 1; e >= 0; e--, rest /= b.taps) {
                    const T *line = (e == d ? b.slope : b.line)[e][rest % b.taps];
                    EACH w[j] *= line[j];
                }
                EACH sum[j] = k ? sum[j] + w[j] : w[j];
            }
            T *to = (T *)job->to + (image * job->points + first) * dims + dims - 1 - d;
            for (ptrdiff_t j = 0; j < n; j++) to[j * dims] = sum[j];
        }
    }
    return 0;
}
