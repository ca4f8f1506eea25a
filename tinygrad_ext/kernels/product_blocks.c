/* B is laid out in panels of 48 columns (24 of float64), of as many columns and of a stretch of the depth that fit in the second
 * cache level, the first strip of eight rows of A being multiplied on the way; then the other strips pass it, read where they lie
 * if their numbers are neighbours, else laid out strip by strip. The product of the transposed matrices takes its place where that
 * spares laying out, as for the few rows of a linear layer, whose weights are then read where they lie. A tile of 8 x 48 sums
 * stays in registers for a stretch.
 *
 * An element is the sum of its stretches, each summed in order with fused steps. Stretches follow from the depth alone, so
 * an element has the same bits wherever it stands, however matrices lie, and with every number of threads. */
#include "product_blocks.h"
#include "isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define INSTRUCTIONS __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,prefer-vector-width=512")))
#define INLINE static inline __attribute__((always_inline)) INSTRUCTIONS
#if defined(__clang__)
#define ONCE INSTRUCTIONS static __attribute__((noinline))
#define SHORT
#define LONG
#else
#pragma GCC optimize("O2")       /* what is to be written out is: a tenth of the code goes */
#define ONCE INSTRUCTIONS static __attribute__((noinline, noclone))
#define SHORT __attribute__((optimize("Os")))
#define LONG __attribute__((optimize("O3")))
#endif

enum {
    ROWS = 8, VECTORS = 3,     /* of a tile */
    STRETCH = 512,             /* of the depth at most */
    GROUP = 30,                /* vectors of columns that are laid out together; half of them where few strips pass them */
    AHEAD = 16,                /* steps from which on B is fetched */
    FEW_STRIPS = 4, MANY_STRIPS = 64,
    ALIKE = 2048,              /* bytes: rows that lie so far apart are copied, as they would share few places of the first level */
    ROOM = STRETCH * GROUP * 64,
    LEAST_SIDE = 3,            /* of m and n: two rows are as quick by a BLAS */
    LEAST_SIDE_OF_AMD = 128,
    LEAST_WIDTH = 16,          /* of the larger of them */
    LEAST_DEPTH = 16,
    GRAIN = 1 << 18,           /* multiplications that one thread takes at least */
};

static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }

typedef struct {
    const tgx_product *p;
    tgx_shape s;               /* the product's, or of the transposed ones in the other order */
    const char *a, *b;
    char *c, *room;
    const int64_t *a_step, *b_step;
    int one_b, direct;         /* the same B for all items; too few strips pass it to be worth a copy */
    /* what is under way: items, columns, depth */
    int64_t item, col, cols, k, depth, vectors, panels, strips;
} job_t;

typedef struct { int64_t first, count; } panel_t;

/* Where a panel begins and how wide it is, in vectors; rather two of two at the end than three and one. */
static inline panel_t panel_of(int64_t vectors, int64_t i) {
    const int64_t last = parts(vectors, VECTORS) - 1, even = vectors % VECTORS == 1 && last > 0;
    if (even && i >= last - 1) return (panel_t){i * VECTORS - (i == last), 2};
    return (panel_t){i * VECTORS, at_most(vectors - i * VECTORS, VECTORS)};
}

typedef struct { const char *a; int64_t row, step, rows; } strip_t;

typedef struct {
    void *c;
    int64_t row, col, rows, cols;      /* cols: of the panel and all behind it */
    double alpha, beta;
    int whole;                 /* all of the tile is there, and is written as it is or added */
} target_t;

#define MASK(n) ((n) >= L ? (MASK_OF_LANES)-1 : (n) > 0 ? (MASK_OF_LANES)((1u << (n)) - 1) : (MASK_OF_LANES)0)

INLINE void square_f32(float *to, int64_t to_row, const float *from, int64_t from_row) {
    __m256 row[8], two[8];
    for (int i = 0; i < 8; i++) row[i] = _mm256_loadu_ps(from + i * from_row);
    for (int i = 0; i < 8; i += 2) two[i] = _mm256_unpacklo_ps(row[i], row[i + 1]), two[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
    for (int i = 0; i < 8; i += 4)
        for (int h = 0; h < 2; h++) {
            row[i + 2 * h] = _mm256_shuffle_ps(two[i + h], two[i + 2 + h], 0x44);
            row[i + 2 * h + 1] = _mm256_shuffle_ps(two[i + h], two[i + 2 + h], 0xee);
        }
    for (int q = 0; q < 4; q++) {
        _mm256_storeu_ps(to + q * to_row, _mm256_permute2f128_ps(row[q], row[q + 4], 0x20));
        _mm256_storeu_ps(to + (q + 4) * to_row, _mm256_permute2f128_ps(row[q], row[q + 4], 0x31));
    }
}

INLINE void square_f64(double *to, int64_t to_row, const double *from, int64_t from_row) {
    __m256d row[4], two[4];
    for (int i = 0; i < 4; i++) row[i] = _mm256_loadu_pd(from + i * from_row);
    for (int i = 0; i < 4; i += 2) two[i] = _mm256_unpacklo_pd(row[i], row[i + 1]), two[i + 1] = _mm256_unpackhi_pd(row[i], row[i + 1]);
    for (int q = 0; q < 2; q++) {
        _mm256_storeu_pd(to + q * to_row, _mm256_permute2f128_pd(two[q], two[q + 2], 0x20));
        _mm256_storeu_pd(to + (q + 2) * to_row, _mm256_permute2f128_pd(two[q], two[q + 2], 0x31));
    }
}

#define T float
#define V __m512
#define NAME(base) base##_f32
#define MASK_OF_LANES __mmask16
#define SPREAD(x) _mm512_set1_ps(x)
#define FUSED(x, y, z) _mm512_fmadd_ps(x, y, z)
#define LOAD(from, mask) _mm512_maskz_loadu_ps(mask, from)
#define STORE(to, mask, v) _mm512_mask_storeu_ps(to, mask, v)
#define WHOLE(from) _mm512_loadu_ps(from)
#define PUT(to, v) _mm512_storeu_ps(to, v)
#include "product_blocks_tile.h"
#undef T
#undef V
#undef NAME
#undef MASK_OF_LANES
#undef SPREAD
#undef FUSED
#undef LOAD
#undef STORE
#undef WHOLE
#undef PUT
#define T double
#define V __m512d
#define NAME(base) base##_f64
#define MASK_OF_LANES __mmask8
#define SPREAD(x) _mm512_set1_pd(x)
#define FUSED(x, y, z) _mm512_fmadd_pd(x, y, z)
#define LOAD(from, mask) _mm512_maskz_loadu_pd(mask, from)
#define STORE(to, mask, v) _mm512_mask_storeu_pd(to, mask, v)
#define WHOLE(from) _mm512_loadu_pd(from)
#define PUT(to, v) _mm512_storeu_pd(to, v)
#include "product_blocks_tile.h"

/* Of the shorter side: small products take less time by OpenBLAS's loops on AMD's processors, large ones 4 to 7 % more. */
static int64_t least_side(void) {
    if (tgx_cpu_level() < 2) return INT64_MAX;
    return __builtin_cpu_is("intel") ? LEAST_SIDE : __builtin_cpu_is("amd") ? LEAST_SIDE_OF_AMD : INT64_MAX;
}

int tgx_is_block_product(int dtype, int64_t m, int64_t n, int64_t k) {
    static int64_t least;
    if ((dtype != TGX_F32 && dtype != TGX_F64) || tgx_is_small(m, n, k)) return 0;
    if (!least) least = least_side();
    return at_most(m, n) >= least && (m >= LEAST_WIDTH || n >= LEAST_WIDTH) && k >= LEAST_DEPTH;
}

int64_t tgx_block_product_room(int dtype, int64_t m, int64_t n, int64_t k) { return tgx_is_block_product(dtype, m, n, k) ? ROOM : 0; }

/* The product of the transposed matrices in the other order, which has the same bits. */
static tgx_shape transposed(const tgx_shape *s) {
    return (tgx_shape){s->n, s->m, s->k, s->b_col, s->b_row, s->a_col, s->a_row, s->c_col, s->c_row};
}

static void place(job_t *j, const tgx_product *p, int flip) {
    j->s = flip ? transposed(&p->s) : p->s;
    j->a = flip ? p->b : p->a, j->b = flip ? p->a : p->b, j->c = p->c;
    j->a_step = flip ? p->b_step : p->a_step, j->b_step = flip ? p->a_step : p->b_step;
}

/* Of what is summed in a stretch, for all columns of a group, one or some items. */
static int group(const tgx_services *services, job_t *j, int64_t items) {
    const int f64 = j->p->dtype == TGX_F64;
    const int64_t grain = GRAIN / (ROWS * j->depth * parts(j->cols, j->panels)) + 1;
    const int code = services->parallel_for(f64 ? begin_f64 : begin_f32, j, (j->one_b ? 1 : items) * j->panels, grain);
    if (code || (j->strips == 1 && !(j->one_b && items > 1))) return code;
    return services->parallel_for(f64 ? multiply_f64 : multiply_f32, j, items * j->strips * j->panels, grain);
}

/* About how many cycles a product takes as it stands. */
static double cost(const tgx_shape *s, int64_t lanes) {
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    const double stretches = (double)parts(s->k, STRETCH), groups = (double)parts(s->n, GROUP * lanes);
    double all = (double)(parts(s->m, ROWS / 2) * ROWS / 2) * (double)(parts(s->n, lanes) * lanes) * k / (2 * (double)lanes);
    if (s->b_col != 1) all += n * k * (s->b_row == 1 ? 0.5 : 1.5);
    if (s->a_col != 1) all += m * k * groups * (s->a_row == 1 ? 0.2 : 1.5);
    return s->c_col == 1 ? all : all + m * n * stretches * (s->c_row == 1 ? 0.8 : 3);
}

SHORT int tgx_block_product_run(const tgx_services *services, const tgx_product *p) {
    job_t j = {.p = p, .room = p->room, .one_b = 1};
    int code = 0;
    const int64_t lanes = 64 / tgx_itemsize[p->dtype];
    const tgx_shape as_it_is = p->s, flipped = transposed(&p->s);
    place(&j, p, cost(&flipped, lanes) < cost(&as_it_is, lanes));
    for (int d = 0; d < p->rank; d++) j.one_b &= j.b_step[d] == 0;
    const int64_t all = parts(j.s.n, lanes), stretches = parts(j.s.k, STRETCH);
    const int64_t groups = parts(all, parts(j.s.m, ROWS) < MANY_STRIPS ? GROUP / 2 : GROUP);
    const int64_t vectors = parts(parts(all, groups), VECTORS) * VECTORS;
    const int64_t stretch = parts(parts(j.s.k, stretches), 8) * 8, together = j.one_b ? p->batches : ROOM / (64 * vectors * stretch);
    j.strips = parts(j.s.m, ROWS);
    j.direct = j.s.b_col == 1 && j.strips <= FEW_STRIPS;
    for (j.item = 0; j.item < p->batches; j.item += together)
        for (j.col = 0; j.col < j.s.n; j.col += vectors * lanes)
            for (j.k = 0; j.k < j.s.k; j.k += stretch) {
                j.cols = at_most(j.s.n - j.col, vectors * lanes), j.vectors = parts(j.cols, lanes);
                j.panels = parts(j.vectors, VECTORS);
                j.depth = at_most(j.s.k - j.k, stretch);
                if ((code = group(services, &j, at_most(p->batches - j.item, together)))) return code;
            }
    return 0;
}
#else
int tgx_is_block_product(int dtype, int64_t m, int64_t n, int64_t k) { return 0; }
int64_t tgx_block_product_room(int dtype, int64_t m, int64_t n, int64_t k) { return 0; }
int tgx_block_product_run(const tgx_services *services, const tgx_product *p) { return TGX_FAILED; }
#endif
