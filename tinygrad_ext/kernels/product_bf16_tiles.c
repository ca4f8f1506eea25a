/* Products of bfloat16 by tiles (AMX): 16 rows of 16 pairs of depth times 16 pairs of 16 columns, added to 16 x 16 float sums.
 *
 * A block of 32 x 32 sums takes four tiles, which stay in registers while a stretch of the depth goes by, so that its part of B stays
 * in the first cache level; between stretches the sums of a block lie in memory. Rows of A lie side by side in strips of 16, a step
 * of 16 pairs after the other; but A, where its rows lie in one piece each and fill tiles, is read where it is. Where less has to be
 * laid out so, the transposed product is computed. Each element is summed in the order of its pairs, wherever it stands. */
#include "product_bf16_tiles.h"
#include "isa.h"

#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#include "product_bf16_parts.h"
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    EDGE = 16,                 /* rows, columns and pairs of a tile */
    TILE = EDGE * EDGE,        /* its 32-bit numbers */
    BLOCK = 2 * EDGE,          /* rows and columns of a block */
    STRETCH = 8 * EDGE,       /* pairs of depth at a time */
    ROW_BLOCK = 16,            /* blocks below each other that one thread takes at most */
    NEAR = 1 << 18,            /* pairs of A that stay in the second cache level meanwhile */
};

/* The kernel gives the registers to a process that asks for them. */
static int asks_for_tiles(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };      /* of arch_prctl(2) */
    enum { TILES = 1 << 24 | 1 << 22 };                        /* TILE and BF16 in leaf 7 of cpuid */
    unsigned a, b, c, d = 0;
    if (getenv("TINYGRAD_EXT_ISA") || !tgx_cpu_multiplies_bf16()) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & TILES) != TILES) return 0;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

int tgx_has_bf16_tiles(void) {
    static int has = -1;
    if (has < 0) has = asks_for_tiles();
    return has;
}

static int64_t depth(int64_t k) { return parts(pairs(k), EDGE) * EDGE; }
static int64_t side_count(int64_t lines, int64_t k) { return parts(lines, EDGE) * EDGE * depth(k); }      /* pairs of an item */

int64_t tgx_bf16_tiles_room(int64_t m, int64_t n, int64_t k, int64_t left, int64_t right) {
    return 4 * (left * side_count(m, k) + right * side_count(n, k));
}

#define TILES __attribute__((target(BF16_TARGET ",amx-tile,amx-bf16")))

typedef struct {
    const tgx_product *p;
    uint32_t *left, *right;
    int64_t strips, blocks, panels;                    /* of rows by 16 and by 32, of columns by 32 */
    int64_t row_blocks, tall;                          /* of `tall` blocks below each other */
    int one_a, one_b, direct;                          /* one: the same for all items; direct: the left operand is not laid out */
} job_t;

INLINE void turn_tile(uint32_t *to, const uint32_t *from) {
    for (int i = 0; i < EDGE; i += 8)
        for (int q = 0; q < EDGE; q += 8) turn(to + q * EDGE + i, EDGE, (const uint16_t *)(from + i * EDGE + q), 2 * EDGE);
}

/* `real` rows of a step, whose pairs end with element k: 16 rows of 16 pairs. */
INSTRUCTIONS static void lay_step(uint32_t *to, int64_t real, const uint16_t *from, int64_t line, int64_t step, int64_t k) {
    if (step == 1) {
        const __mmask32 mask = k < 2 * EDGE ? (1u << k) - 1 : ~0u;
        for (int64_t i = 0; i < EDGE; i++)
            _mm512_storeu_si512(to + i * EDGE, i < real ? _mm512_maskz_loadu_epi16(mask, from + i * line) : _mm512_setzero_si512());
        return;
    }
    uint32_t turned[TILE] = {0};
    tgx_bf16_lay(turned, EDGE, real, from, line, step, k < 2 * EDGE ? k : 2 * EDGE);
    turn_tile(to, turned);
}

INSTRUCTIONS static int lay_left(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    const tgx_product *p = j->p;
    const tgx_shape *s = &p->s;
    for (int64_t i = lo; i < hi; i++) {
        const int64_t item = i / j->strips, top = i % j->strips * EDGE;
        const uint16_t *from = (const uint16_t *)(p->a + tgx_item_place(p, p->a_step, item)) + top * s->a_row;
        uint32_t *to = j->left + i * EDGE * depth(s->k);
        for (int64_t at = 0; at < s->k; at += 2 * EDGE, to += TILE)
            lay_step(to, at_most(s->m - top, EDGE), from + at * s->a_col, s->a_row, s->a_col, s->k - at);
    }
    return 0;
}

INSTRUCTIONS static int lay_right(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    const tgx_product *p = j->p;
    const tgx_shape *s = &p->s;
    const int64_t all = depth(s->k);
    for (int64_t i = lo; i < hi; i++) {
        const int64_t item = i / j->panels, panel = i % j->panels, real = at_most(s->n - panel * BLOCK, BLOCK);
        const int64_t wide = parts(real, EDGE) * EDGE;
        const uint16_t *from = (const uint16_t *)(p->b + tgx_item_place(p, p->b_step, item)) + panel * BLOCK * s->b_col;
        uint32_t *to = j->right + item * side_count(s->n, s->k) + panel * BLOCK * all;
        tgx_bf16_lay(to, wide, real, from, s->b_col, s->b_row, s->k);
        memset(to + pairs(s->k) * wide, 0, (size_t)(4 * wide * (all - pairs(s->k))));
    }
    return 0;
}

/* Sums of a tile, which may be turned to lie as C does. */
INSTRUCTIONS static void put_tile(const place_t *t, float *sums) {
    float turned[TILE];
    place_t to = *t;
    if (t->row == 1 && t->col != 1) {
        turn_tile((uint32_t *)turned, (const uint32_t *)sums);
        to.row = t->col, to.col = 1, to.rows = t->cols, to.cols = t->rows, sums = turned;
        to.plain = to.alpha == 1 && to.beta == 0;
    }
    for (int64_t r = 0; r < at_most(to.rows, EDGE); r++) put(&to, r, 0, _mm512_loadu_ps(sums + r * EDGE));
}

/* Rows of A, 64 bytes of a step each, and where the next strip and step begin, in bytes; steps of B, `wide` bytes a pair. */
typedef struct {
    const char *a, *b;
    int64_t row, strip, step, wide, steps;
    int first;                 /* of the stretches */
    float *sums;
} block_t;

/* Up to 2 x 2 tiles over steps of depth: tiles 0 to 3 are its sums. */
#define BLOCK_OF(name, two_rows, two_columns)                                                                                    \
    TILES static void name(const block_t *x) {                                                                                   \
        const char *a = x->a, *b = x->b;                                                                                         \
        const int64_t row = x->row, strip = x->strip, step = x->step, wide = x->wide;                                            \
        float *sums = x->sums;                                                                                                   \
        if (x->first) {                                                                                                          \
            _tile_zero(0);                                                                                                       \
            if (two_columns) _tile_zero(1);                                                                                      \
            if (two_rows) _tile_zero(2);                                                                                         \
            if (two_rows && two_columns) _tile_zero(3);                                                                          \
        } else {                                                                                                                 \
            _tile_loadd(0, sums, 64);                                                                                            \
            if (two_columns) _tile_loadd(1, sums + TILE, 64);                                                                    \
            if (two_rows) _tile_loadd(2, sums + 2 * TILE, 64);                                                                   \
            if (two_rows && two_columns) _tile_loadd(3, sums + 3 * TILE, 64);                                                    \
        }                                                                                                                        \
        for (int64_t i = 0; i < x->steps; i++, a += step, b += EDGE * wide) {                                                    \
            _tile_loadd(6, b, wide);                                                                                             \
            _tile_loadd(4, a, row);                                                                                              \
            if (two_columns) _tile_loadd(7, b + 64, wide);                                                                       \
            if (two_rows) _tile_loadd(5, a + strip, row);                                                                        \
            _tile_dpbf16ps(0, 4, 6);                                                                                             \
            if (two_columns) _tile_dpbf16ps(1, 4, 7);                                                                            \
            if (two_rows) _tile_dpbf16ps(2, 5, 6);                                                                               \
            if (two_rows && two_columns) _tile_dpbf16ps(3, 5, 7);                                                                \
        }                                                                                                                        \
        _tile_stored(0, sums, 64);                                                                                               \
        if (two_columns) _tile_stored(1, sums + TILE, 64);                                                                       \
        if (two_rows) _tile_stored(2, sums + 2 * TILE, 64);                                                                      \
        if (two_rows && two_columns) _tile_stored(3, sums + 3 * TILE, 64);                                                       \
    }
BLOCK_OF(one_by_one, 0, 0)
BLOCK_OF(one_by_two, 0, 1)
BLOCK_OF(two_by_one, 1, 0)
BLOCK_OF(two_by_two, 1, 1)
typedef void block_fn(const block_t *x);
static block_fn *const blocks[2][2] = {{one_by_one, one_by_two}, {two_by_one, two_by_two}};

static const struct {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} eight_tiles = {.palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {EDGE, EDGE, EDGE, EDGE, EDGE, EDGE, EDGE, EDGE}};

TILES static void open_tiles(void) { _tile_loadconfig(&eight_tiles); }
TILES static void close_tiles(void) { _tile_release(); }

/* A row of 32 sums of two tiles. */
INLINE void put_row(uint16_t *c, const float *sums) {
    const __m512 low = _mm512_loadu_ps(sums), high = _mm512_loadu_ps(sums + TILE);
    const __mmask32 nan = _mm512_kunpackw(_mm512_cmp_ps_mask(high, high, _CMP_UNORD_Q), _mm512_cmp_ps_mask(low, low, _CMP_UNORD_Q));
    _mm512_storeu_si512(c, _mm512_mask_mov_epi16((__m512i)_mm512_cvtne2ps_pbh(high, low), nan, _mm512_set1_epi16(0x7fc0)));
}

INSTRUCTIONS static void put_block(const place_t *t, float *sums) {
    if (t->plain && t->cols == BLOCK) {
        uint16_t *c = t->c;
        for (int64_t left = t->rows; left > 0; left -= EDGE, sums += TILE)
            for (int64_t r = at_most(left, EDGE); r; r--, c += t->row, sums += EDGE) put_row(c, sums);
        return;
    }
    for (int64_t r = 0; r < parts(t->rows, EDGE); r++)
        for (int64_t q = 0; q < parts(t->cols, EDGE); q++) {
            place_t part = *t;
            part.c += r * EDGE * t->row + q * EDGE * t->col;
            part.rows -= r * EDGE, part.cols = at_most(t->cols - q * EDGE, EDGE);
            put_tile(&part, sums + (2 * r + q) * TILE);
        }
}

/* A panel of columns of the blocks [top, last) of rows. What the tiles have stored is read a block later: it has arrived by then. */
static void multiply_panel(const job_t *j, int64_t item, int64_t panel, int64_t top, int64_t last) {
    const tgx_product *p = j->p;
    const tgx_shape *s = &p->s;
    const int64_t all = depth(s->k), cols = at_most(s->n - panel * BLOCK, BLOCK), wide = parts(cols, EDGE) * EDGE;
    const char *left = (const char *)(j->left + (j->one_a ? 0 : item) * side_count(s->m, s->k));
    const char *right = (const char *)(j->right + (j->one_b ? 0 : item) * side_count(s->n, s->k) + panel * BLOCK * all);
    float sums[ROW_BLOCK][4 * TILE];
    block_t x = {.row = 64, .strip = 4 * EDGE * all, .step = 4 * TILE, .wide = 4 * wide};
    place_t t = {(uint16_t *)(p->c + tgx_item_place(p, p->c_step, item)) + panel * BLOCK * s->c_col, s->c_row, s->c_col, 0, cols,
                 (float)p->alpha.f, (float)p->beta.f, s->c_col == 1 && p->alpha.f == 1 && p->beta.f == 0};
    if (j->direct) {
        left = p->a + tgx_item_place(p, p->a_step, item);
        x.row = 2 * s->a_row, x.strip = 2 * EDGE * s->a_row, x.step = 4 * EDGE;
    }
    uint16_t *c = t.c;
    const int64_t room = all > STRETCH ? ROW_BLOCK : 2;        /* blocks whose sums are kept; two stay in the first cache level */
    for (int64_t first = 0; first < all; first += STRETCH) {
        const int ends = first + STRETCH >= all;
        x.first = first == 0, x.steps = at_most(all - first, STRETCH) / EDGE;
        for (int64_t r = top; r < last; r++) {
            x.a = left + 2 * r * x.strip + first / EDGE * x.step, x.b = right + first * x.wide, x.sums = sums[(r - top) % room];
            blocks[s->m - r * BLOCK > EDGE][cols > EDGE](&x);
            if (ends && r > top) t.c = c + (r - 1) * BLOCK * t.row, t.rows = BLOCK, put_block(&t, sums[(r - 1 - top) % room]);
        }
    }
    t.c = c + (last - 1) * BLOCK * t.row, t.rows = at_most(s->m - (last - 1) * BLOCK, BLOCK);
    put_block(&t, sums[(last - 1 - top) % room]);
}

/* Units are (item, block of rows, panel of columns). */
static int multiply(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    open_tiles();
    for (int64_t unit = lo; unit < hi; unit++) {
        const int64_t rest = unit / j->panels, top = rest % j->row_blocks * j->tall;
        multiply_panel(j, rest / j->row_blocks, unit % j->panels, top, at_most(top + j->tall, j->blocks));
    }
    close_tiles();
    return 0;
}

/* A part of B at a time that stays in the first cache level. */
static void multiply_laid(const tgx_bf16_panel *p) {
    block_t x = {.row = p->a_row, .strip = EDGE * p->a_row, .step = 4 * EDGE, .wide = 4 * p->wide, .first = p->first};
    open_tiles();
    for (int64_t first = 0; first < p->pairs; first += STRETCH, x.first = 0) {
        x.steps = at_most(p->pairs - first, STRETCH) / EDGE, x.b = (const char *)(p->b + first * p->wide);
        for (int64_t r = 0; r < p->rows; r += BLOCK) {
            x.a = p->a + r * p->a_row + 4 * first, x.sums = p->sums + r * BLOCK;
            blocks[p->rows - r > EDGE][p->wide > EDGE](&x);
        }
    }
    close_tiles();
}

const tgx_bf16_panels tgx_bf16_tile_panels = {.columns = BLOCK, .tall = BLOCK, .deep = EDGE, .strip = 2 * TILE, .vector = TILE,
                                              .row = EDGE, .multiply = multiply_laid};

static int lies_in_tiles(const tgx_shape *s) { return s->a_col == 1 && s->k % (2 * EDGE) == 0 && s->m % EDGE == 0; }

static tgx_product turned(const tgx_product *p) {
    const tgx_shape *s = &p->s;
    tgx_product to = *p;
    to.s = (tgx_shape){.m = s->n, .n = s->m, .k = s->k, .a_row = s->b_col, .a_col = s->b_row, .b_row = s->a_col, .b_col = s->a_row,
                       .c_row = s->c_col, .c_col = s->c_row};
    to.a = p->b, to.b = p->a;
    memcpy(to.a_step, p->b_step, sizeof to.a_step);
    memcpy(to.b_step, p->a_step, sizeof to.b_step);
    return to;
}

int tgx_bf16_tiles_run(tgx_call *c, const tgx_product *p, int one_b) {
    const tgx_product other = turned(p);
    const int64_t left = p->batches * p->s.m, right = (one_b ? 1 : p->batches) * p->s.n;
    job_t j = {.p = p, .left = c->scratch, .one_b = one_b};
    int code;
    if (left + (lies_in_tiles(&other.s) ? 0 : right) < right + (lies_in_tiles(&p->s) ? 0 : left))
        j.p = &other, j.one_a = one_b, j.one_b = 0;
    const tgx_shape *s = &j.p->s;
    j.strips = parts(s->m, EDGE), j.blocks = parts(s->m, BLOCK), j.panels = parts(s->n, BLOCK);
    const int64_t near = NEAR / (BLOCK * depth(s->k));
    j.tall = near < 2 ? 2 : at_most(near, ROW_BLOCK), j.row_blocks = parts(j.blocks, j.tall);
    j.direct = lies_in_tiles(s);
    j.right = j.left + (j.direct ? 0 : (j.one_a ? 1 : p->batches) * side_count(s->m, s->k));
    const int64_t step = TGX_SMALL / (depth(s->k) * EDGE) + 1;
    const double work = (double)s->m * (double)s->n * (double)s->k / (double)(j.panels * j.row_blocks) + 1;
    const int64_t grain = work > 1 << 22 ? 1 : (int64_t)((1 << 22) / work) + 1;
    if (!j.direct && (code = c->services->parallel_for(lay_left, &j, (j.one_a ? 1 : p->batches) * j.strips, step))) return code;
    if ((code = c->services->parallel_for(lay_right, &j, (j.one_b ? 1 : p->batches) * j.panels, step))) return code;
    return c->services->parallel_for(multiply, &j, p->batches * j.panels * j.row_blocks, grain);
}
#else
int tgx_has_bf16_tiles(void) { return 0; }
const tgx_bf16_panels tgx_bf16_tile_panels = {.columns = 0};
int64_t tgx_bf16_tiles_room(int64_t m, int64_t n, int64_t k, int64_t left, int64_t right) { return 0; }
int tgx_bf16_tiles_run(tgx_call *c, const tgx_product *p, int one_b) { return TGX_FAILED; }
#endif
