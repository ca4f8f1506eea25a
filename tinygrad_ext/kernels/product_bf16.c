/* Both operands are laid out first: of A eight rows side by side, of B 48 columns, pair of depth after pair; but A, where its rows
 * lie in one piece each and fill tiles, is read where it is. A tile of 8 x 48 sums
 * stays in registers while a stretch of the depth goes by, so that its part of B stays in the second cache level; between stretches
 * a block of tiles keeps its sums in float32. Each element is summed in the order of its pairs, wherever it stands and however
 * many threads there are. */
#include "product_bf16.h"
#include "isa.h"
#include "product_bf16_tiles.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include "product_bf16_parts.h"

/* Pairs [first, last), one by one. */
INSTRUCTIONS static void lay_each(uint32_t *to, int64_t all, int64_t real, const uint16_t *from, int64_t line, int64_t step, int64_t first,
                                  int64_t last) {
    for (int64_t q = first; q < last; q++) {
        for (int64_t i = 0; i < real; i++) {
            const uint16_t *pair = from + i * line + 2 * q * step;
            to[q * all + i] = pair[0] | (uint32_t)pair[step] << 16;
        }
        for (int64_t i = real; i < all; i++) to[q * all + i] = 0;
    }
}

INSTRUCTIONS void tgx_bf16_lay(uint32_t *to, int64_t all, int64_t real, const uint16_t *from, int64_t line, int64_t step, int64_t k) {
    const __m512i in_turn = turns();
    int64_t q = 0;
    if (line == 1 && real == all && all % LANES == 0)
        for (; q < k / 2; q++)
            for (int64_t i = 0; i < all; i += LANES) {
                const uint16_t *pair = from + 2 * q * step + i;
                const __m512i even = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)pair));
                const __m512i odd = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(pair + step)));
                _mm512_storeu_si512(to + q * all + i, _mm512_permutex2var_epi16(even, in_turn, odd));
            }
    else if (step == 1 && real == all)
        for (; q + 8 <= k / 2; q += 8)
            for (int64_t i = 0; i < all; i += 8) turn(to + q * all + i, all, from + i * line + 2 * q, line);
    lay_each(to, all, real, from, line, step, q, k / 2);
    if (k % 2)
        for (int64_t i = 0; i < all; i++) to[k / 2 * all + i] = i < real ? from[i * line + (k - 1) * step] : 0;
}

enum { ROWS = 8, VECTORS = 3, COLUMNS = VECTORS * LANES };

static int64_t left_count(int64_t m, int64_t k) { return parts(m, ROWS) * ROWS * pairs(k); }       /* pairs of an item */
static int64_t right_count(int64_t n, int64_t k) { return parts(n, LANES) * LANES * pairs(k); }

int64_t tgx_bf16_product_room(int64_t m, int64_t n, int64_t k, int64_t left, int64_t right) {
    if (tgx_has_bf16_tiles()) return tgx_bf16_tiles_room(m, n, k, left, right);
    return 4 * (left * left_count(m, k) + right * right_count(n, k));
}

enum {
    LEAST_ROWS = 8,
    LEAST_COLUMNS = 16,
    LEAST_DEPTH = 16,
    LEAST_WORK = 1 << 18,      /* multiplications; with fewer the operands are not worth laying out */
    STRETCH = 512,             /* pairs of depth at a time */
    AHEAD = 24,                /* pairs from which on the next are fetched */
    ROW_BLOCK = 16,            /* tiles below each other that one thread takes */
};

static int has_instruction(void) {
    static int has = -1;
    if (has < 0) has = tgx_cpu_multiplies_bf16();
    return has;
}

int tgx_is_bf16_product(int64_t m, int64_t n, int64_t k) {
    if (m < LEAST_ROWS || n < LEAST_ROWS || k < LEAST_DEPTH || (double)m * (double)n * (double)k < LEAST_WORK) return 0;
    if (n < LEAST_COLUMNS && !tgx_has_bf16_tiles()) return 0;
    return has_instruction();
}

typedef struct {
    const tgx_product *p;
    uint32_t *left, *right;
    int64_t left_panels, right_panels, row_blocks;
    int one_b, direct;         /* direct: the left operand is not laid out */
} job_t;

/* Where an operand of an item begins, by its steps in bytes over the batch. */
INSTRUCTIONS static int lay_left(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    const tgx_product *p = j->p;
    const tgx_shape *s = &p->s;
    for (int64_t i = lo; i < hi; i++) {
        const int64_t item = i / j->left_panels, panel = i % j->left_panels;
        const uint16_t *from = (const uint16_t *)(p->a + tgx_item_place(p, p->a_step, item)) + panel * ROWS * s->a_row;
        tgx_bf16_lay(j->left + i * ROWS * pairs(s->k), ROWS, at_most(s->m - panel * ROWS, ROWS), from, s->a_row, s->a_col, s->k);
    }
    return 0;
}

INSTRUCTIONS static int lay_right(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    const tgx_product *p = j->p;
    const tgx_shape *s = &p->s;
    for (int64_t i = lo; i < hi; i++) {
        const int64_t item = i / j->right_panels, panel = i % j->right_panels, real = at_most(s->n - panel * COLUMNS, COLUMNS);
        const uint16_t *from = (const uint16_t *)(p->b + tgx_item_place(p, p->b_step, item)) + panel * COLUMNS * s->b_col;
        uint32_t *to = j->right + item * right_count(s->n, s->k) + panel * COLUMNS * pairs(s->k);
        tgx_bf16_lay(to, parts(real, LANES) * LANES, real, from, s->b_col, s->b_row, s->k);
    }
    return 0;
}

typedef struct {
    place_t to;
    float *sums;               /* of this tile, ROWS x COLUMNS, between stretches */
    int first, last;           /* whether this is the first and the last stretch */
    int64_t a_row;             /* bytes between rows of A */
} target_t;

INLINE void tile(const int vectors, const int direct, int64_t count, const char *a, const uint32_t *b, const target_t *t) {
    const int64_t row = direct ? t->a_row : 4, step = direct ? 4 : 4 * ROWS;
    __m512 sum[ROWS][VECTORS];
    for (int r = 0; r < ROWS; r++)
        for (int q = 0; q < vectors; q++) sum[r][q] = t->first ? _mm512_setzero_ps() : _mm512_loadu_ps(t->sums + r * COLUMNS + q * LANES);
    for (int64_t i = 0; i < count; i++, a += step, b += vectors * LANES) {
        __m512i in[VECTORS];
        if (!direct) _mm_prefetch(a + AHEAD * step, _MM_HINT_T0);
        for (int q = 0; q < vectors; q++) {
            in[q] = _mm512_loadu_si512(b + q * LANES);
            _mm_prefetch((const char *)(b + (AHEAD * vectors + q) * LANES), _MM_HINT_T0);
        }
        for (int r = 0; r < ROWS; r++) {
            int pair;
            memcpy(&pair, a + r * row, 4);
            const __m512i factor = _mm512_set1_epi32(pair);
            for (int q = 0; q < vectors; q++) sum[r][q] = _mm512_dpbf16_ps(sum[r][q], (__m512bh)factor, (__m512bh)in[q]);
        }
    }
    if (t->last && t->to.plain && t->to.rows == ROWS && t->to.cols == vectors * LANES) {
        for (int r = 0; r < ROWS; r++)
            for (int q = 0; q < vectors; q++) _mm256_storeu_si256((__m256i *)(t->to.c + r * t->to.row + q * LANES), round_sums(sum[r][q]));
        return;
    }
    for (int r = 0; r < ROWS; r++)
        for (int q = 0; q < vectors; q++) {
            if (!t->last) _mm512_storeu_ps(t->sums + r * COLUMNS + q * LANES, sum[r][q]);
            else if (r < t->to.rows) put(&t->to, r, q, sum[r][q]);
        }
}

/* By themselves: gcc finds a register for each sum only so. */
#define TILE(vectors)                                                                                                            \
    INSTRUCTIONS static __attribute__((noinline)) void tile_##vectors(int64_t count, const char *a, const uint32_t *b, const target_t *t) { \
        tile(vectors, 0, count, a, b, t);                                                                                        \
    }                                                                                                                            \
    INSTRUCTIONS static __attribute__((noinline)) void direct_##vectors(int64_t count, const char *a, const uint32_t *b, const target_t *t) { \
        tile(vectors, 1, count, a, b, t);                                                                                        \
    }
TILE(1)
TILE(2)
TILE(3)
typedef void tile_fn(int64_t count, const char *a, const uint32_t *b, const target_t *t);
static tile_fn *const tiles[2][VECTORS] = {{tile_1, tile_2, tile_3}, {direct_1, direct_2, direct_3}};

/* Units are (item, panel of columns, block of rows). */
static int multiply(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    const tgx_product *p = j->p;
    const tgx_shape *s = &p->s;
    const int64_t all = pairs(s->k);
    float sums[ROW_BLOCK][ROWS * COLUMNS];
    for (int64_t unit = lo; unit < hi; unit++) {
        const int64_t item = unit / j->row_blocks / j->right_panels, panel = unit / j->row_blocks % j->right_panels;
        const int64_t top = unit % j->row_blocks * ROW_BLOCK, last = at_most(top + ROW_BLOCK, j->left_panels);
        const int64_t cols = at_most(s->n - panel * COLUMNS, COLUMNS), vectors = parts(cols, LANES);
        const uint32_t *b = j->right + (j->one_b ? 0 : item) * right_count(s->n, s->k) + panel * COLUMNS * all;
        uint16_t *c = (uint16_t *)(p->c + tgx_item_place(p, p->c_step, item)) + panel * COLUMNS * s->c_col;
        for (int64_t first = 0; first < all; first += STRETCH)
            for (int64_t r = top; r < last; r++) {
                const char *a = (const char *)(j->left + (item * j->left_panels + r) * ROWS * all + first * ROWS);
                const uint32_t *of_b = b + first * vectors * LANES;
                const target_t t = {{c + r * ROWS * s->c_row, s->c_row, s->c_col, at_most(s->m - r * ROWS, ROWS), cols,
                                     (float)p->alpha.f, (float)p->beta.f, s->c_col == 1 && p->alpha.f == 1 && p->beta.f == 0},
                                    sums[r - top], first == 0, first + STRETCH >= all, 2 * s->a_row};
                if (j->direct) a = p->a + tgx_item_place(p, p->a_step, item) + r * ROWS * t.a_row + 4 * first;
                tiles[j->direct][vectors - 1](at_most(all - first, STRETCH), a, of_b, &t);
            }
    }
    return 0;
}

int tgx_bf16_product_run(tgx_call *c, const tgx_product *p, int one_b) {
    if (tgx_has_bf16_tiles()) return tgx_bf16_tiles_run(c, p, one_b);
    const tgx_shape *s = &p->s;
    job_t j = {.p = p, .left = c->scratch, .one_b = one_b};
    int code;
    j.right = j.left + p->batches * left_count(s->m, s->k);
    j.left_panels = parts(s->m, ROWS), j.right_panels = parts(s->n, COLUMNS), j.row_blocks = parts(j.left_panels, ROW_BLOCK);
    const int64_t units = p->batches * j.right_panels * j.row_blocks, panel = pairs(s->k) * 16;
    const double work = (double)s->m * (double)s->n * (double)s->k / (double)(j.right_panels * j.row_blocks) + 1;
    const int64_t grain = work > 1 << 20 ? 1 : (int64_t)((1 << 20) / work) + 1;
    j.direct = s->a_col == 1 && s->k % 2 == 0 && s->m % ROWS == 0;
    if (!j.direct && (code = c->services->parallel_for(lay_left, &j, p->batches * j.left_panels, TGX_SMALL / panel + 1))) return code;
    if ((code = c->services->parallel_for(lay_right, &j, (one_b ? 1 : p->batches) * j.right_panels, TGX_SMALL / panel + 1))) return code;
    return c->services->parallel_for(multiply, &j, units, grain);
}

static void multiply_panel(const tgx_bf16_panel *x) {
    const int64_t vectors = parts(x->wide, LANES);
    target_t t = {.sums = x->sums, .first = x->first, .a_row = x->a_row};
    for (int64_t r = 0; r < x->rows; r += ROWS, t.sums += ROWS * COLUMNS)
        tiles[1][vectors - 1](x->pairs, x->a + r * x->a_row, x->b, &t);
}

const tgx_bf16_panels *tgx_bf16_panels_here(void) {
    static const tgx_bf16_panels vectors = {.columns = COLUMNS, .tall = ROWS, .deep = 1, .strip = TGX_BF16_ROWS * COLUMNS,
                                            .vector = LANES, .row = COLUMNS, .multiply = multiply_panel};
    return tgx_has_bf16_tiles() ? &tgx_bf16_tile_panels : has_instruction() ? &vectors : NULL;
}
#else
const tgx_bf16_panels *tgx_bf16_panels_here(void) { return NULL; }
int64_t tgx_bf16_product_room(int64_t m, int64_t n, int64_t k, int64_t left, int64_t right) { return 0; }
int tgx_is_bf16_product(int64_t m, int64_t n, int64_t k) { return 0; }
int tgx_bf16_product_run(tgx_call *c, const tgx_product *p, int one_b) { return TGX_FAILED; }
#endif
