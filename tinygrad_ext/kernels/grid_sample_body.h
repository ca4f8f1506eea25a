/* Points of a grid, for elements of type T whose places in a plane are of type INDEX. Included by grid_sample_isa.h.
 *
 * Corners of a point are counted with the last dimension fastest. Each sum runs over corners, or over channels, in that order
 * for every point, so blocks and threads change no bit. */

typedef struct {
    T line[3][4][TGX_GRID_BLOCK], slope[3][4][TGX_GRID_BLOCK];  /* weight of a tap, and its slope by the grid's coordinate */
    INDEX place[3][4][TGX_GRID_BLOCK];                          /* times the dimension's stride; -1: outside */
    T weight[TGX_GRID_CORNERS][TGX_GRID_BLOCK];                 /* not of the nearest element */
    INDEX at[TGX_GRID_CORNERS][TGX_GRID_BLOCK];                 /* 0 for what lies outside */
    BITS keep[TGX_GRID_CORNERS][TGX_GRID_BLOCK];                /* and of its element no bit */
    int taps, shift, corners;                                   /* taps of a dimension: 1 << shift */
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
    const T top = (T)(job->size[d] - 1), a = (T)-0.75;
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

static void NAME(find)(const tgx_grid_job *job, ptrdiff_t image, ptrdiff_t first, ptrdiff_t n, int steep, NAME(block) *b) {
    const T *g = (const T *)job->grid + (image * job->points + first) * job->dims;
    b->shift = job->mode == TGX_BILINEAR ? 1 : job->mode == TGX_NEAREST ? 0 : 2;
    b->taps = 1 << b->shift, b->corners = 1, b->steep = steep;
    T point[3][TGX_GRID_BLOCK] ALIGNED, last[3 * TGX_GRID_BLOCK];
    if (n < TGX_GRID_BLOCK) {
        memset(last, 0, sizeof last);
        g = memcpy(last, g, (size_t)(n * job->dims) * sizeof(T));
    }
    if (job->dims == 2) NAME(apart)(job, 2, g, point);
    else NAME(apart)(job, 3, g, point);
    for (int d = 0; d < job->dims; d++) NAME(taps)(job, d, point[job->dims - 1 - d], b), b->corners *= b->taps;
    for (int k = 0; k < b->corners; k++) {
        const int last = k & (b->taps - 1), middle = k >> b->shift & (b->taps - 1), first = k >> 2 * b->shift, d = job->dims - 1;
        const T *u = b->line[d][last], *v = b->line[d - 1][middle], *w = b->line[0][first];
        const INDEX *p = b->place[d][last], *q = b->place[d - 1][middle], *r = b->place[0][first];
        if (d == 1) EACH {
            const INDEX at = p[j] + q[j];
            const int out = (p[j] | q[j]) < 0;
            b->at[k][j] = out ? 0 : at, b->keep[k][j] = out ? 0 : -1;
        }
        else EACH {
            const INDEX at = p[j] + q[j] + r[j];
            const int out = (p[j] | q[j] | r[j]) < 0;
            b->at[k][j] = out ? 0 : at, b->keep[k][j] = out ? 0 : -1;
        }
        if (b->corners == 1) return;
        if (d == 1) EACH b->weight[k][j] = u[j] * v[j];
        else EACH b->weight[k][j] = u[j] * v[j] * w[j];
    }
}

static inline ptrdiff_t NAME(left)(const tgx_grid_job *job, ptrdiff_t first) {
    return job->points - first < TGX_GRID_BLOCK ? job->points - first : TGX_GRID_BLOCK;
}

/* An element, or 0 outside: by bits, as a branch at each would cost more than it spares. */
static inline T NAME(kept)(T v, BITS keep) {
    BITS bits;
    memcpy(&bits, &v, sizeof v);
    bits &= keep;
    memcpy(&v, &bits, sizeof v);
    return v;
}
#define CORNER(k) NAME(kept)(x[b.at[k][j]], b.keep[k][j])
#define TERM(k) CORNER(k) * b.weight[k][j]

static int NAME(read)(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_grid_job *job = given;
    NAME(block) b;
    for (ptrdiff_t i = lo; i < hi; i++) {
        const ptrdiff_t image = i / job->blocks, first = i % job->blocks * TGX_GRID_BLOCK, n = NAME(left)(job, first);
        NAME(find)(job, image, first, n, 0, &b);
        for (ptrdiff_t c = 0; c < job->channels; c++) {
            const T *x = (const T *)job->x + (image * job->channels + c) * job->plane;
            T *y = (T *)job->to + (image * job->channels + c) * job->points + first, sum[TGX_GRID_BLOCK] ALIGNED;
            if (b.corners == 1) EACH sum[j] = CORNER(0);
            else for (int k = 0; k < b.corners; k += 4) {
                if (k) EACH sum[j] = sum[j] + TERM(k) + TERM(k + 1) + TERM(k + 2) + TERM(k + 3);
                else EACH sum[j] = TERM(0) + TERM(1) + TERM(2) + TERM(3);
            }
            memcpy(y, sum, (size_t)n * sizeof(T));
        }
    }
    return 0;
}

/* Planes lo to hi of the images' gradient; those of one image share the corners. */
static int NAME(spread)(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_grid_job *job = given;
    NAME(block) b;
    memset((T *)job->to + lo * job->plane, 0, (size_t)((hi - lo) * job->plane) * sizeof(T));
    for (ptrdiff_t p = lo, end; p < hi; p = end) {
        const ptrdiff_t image = p / job->channels;
        end = (image + 1) * job->channels < hi ? (image + 1) * job->channels : hi;
        for (ptrdiff_t first = 0; first < job->points; first += TGX_GRID_BLOCK) {
            const ptrdiff_t n = NAME(left)(job, first);
            NAME(find)(job, image, first, n, 0, &b);
            for (ptrdiff_t q = p; q < end; q++) {
                const T *g = (const T *)job->grad + q * job->points + first;
                T *y = (T *)job->to + q * job->plane;
                for (ptrdiff_t j = 0; j < n; j++)
                    for (int k = 0; k < b.corners; k++)
                        if (b.keep[k][j]) y[b.at[k][j]] += b.corners == 1 ? g[j] : g[j] * b.weight[k][j];
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
        T dot[TGX_GRID_CORNERS][TGX_GRID_BLOCK] ALIGNED;        /* of what arrived and a corner, over channels */
        T sum[TGX_GRID_BLOCK] ALIGNED, arrived[TGX_GRID_BLOCK] ALIGNED = {0};
        NAME(find)(job, image, first, n, 1, &b);
        memset(dot, 0, (size_t)b.corners * sizeof dot[0]);
        for (ptrdiff_t c = 0; c < job->channels; c++) {
            const T *x = (const T *)job->x + (image * job->channels + c) * job->plane;
            memcpy(arrived, (const T *)job->grad + (image * job->channels + c) * job->points + first, (size_t)n * sizeof(T));
            for (int k = 0; k < b.corners; k++) EACH dot[k][j] += arrived[j] * CORNER(k);
        }
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
#undef CORNER
#undef TERM
