/* Products of complex matrices: blocks of B are laid out, then tiles of rows of A pass them, each a unit of work of its own. An
 * element is summed in one order, wherever it stands and however many threads there are.
 *
 * Where B has few columns, the transposed product is computed, as vectors lie along its columns; vectors times vectors are dots. */
#include "product_complex.h"
#include "isa.h"

enum {
    BLOCK_COLUMNS = 256,
    PADDED = 16,               /* columns of the widest panel */
    SHEET = 4,                 /* panels that are laid out together, as rows of B lie in pages of their own */
    GROUP_BYTES = 1 << 20,     /* what is laid out at a time of many items */
    UNIT_WORK = 1 << 16,       /* multiplications that are worth a unit */
    THIN = 4,                  /* with fewer rows or columns hardly more is computed than read */
    THIN_DEPTH = 32,           /* of what is summed at a time, for rows of B are then read one behind the other */
    DIRECT_BYTES = 16 << 10,   /* of B that is not worth laying out */
};

extern const tgx_complex_kernels tgx_complex_base[2], tgx_complex_avx2[2], tgx_complex_avx512[2];

const tgx_complex_kernels *tgx_complex(int dtype) {
    static const tgx_complex_kernels *found;
    if (!found) found = *TGX_PICK(tgx_complex);
    return found + (dtype == TGX_C128);
}

static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }

typedef struct {
    const tgx_product *p;
    const tgx_complex_kernels *use;
    tgx_shape s;               /* of an item, turned so that it is computed by rows */
    char *a, *b, *c;
    const int64_t *a_step, *b_step;
    char *packed;
    int64_t room;              /* bytes there */
    int one_b, direct;         /* B is the same for all items; is not laid out but for the end of its rows */
    int64_t part, cuts, there; /* of the depth; of the columns; columns that are not laid out */
    int64_t item, items, columns, depth, j, k;      /* the block at hand, of so many items from `item` on */
    int64_t size, panel, panels, tiles;             /* bytes of an element and of a panel; panels that are laid out, tiles of rows */
} job_t;

static int lay(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    const int64_t sheets = parts(j->panels, SHEET);
    for (ptrdiff_t i = lo; i < hi; i++) {
        const int64_t panel = i % sheets * SHEET, column = j->there + panel * j->use->columns;
        tgx_shape s = j->s;
        s.n = at_most(j->columns - column, SHEET * j->use->columns), s.k = j->depth;
        const char *b = j->b + tgx_item_place(j->p, j->b_step, j->item + i / sheets);
        j->use->lay(&s, b + (j->k * s.b_row + (j->j + column) * s.b_col) * j->size,
                    j->packed + (i / sheets * j->panels + panel) * j->panel);
    }
    return 0;
}

/* Units are (item, rows, columns). */
static int multiply(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    const tgx_product *p = j->p;
    tgx_complex_rows r = {.s = j->s, .alpha = {p->alpha.f, p->alpha.im}, .beta = {1, 0}};
    r.s.k = j->depth;
    if (j->k == 0) r.beta[0] = p->beta.f, r.beta[1] = p->beta.im;
    for (ptrdiff_t i = lo; i < hi; i++) {
        const int64_t item = i / j->cuts / j->tiles, row = i / j->cuts % j->tiles * TGX_COMPLEX_ROWS;
        const int64_t column = i % j->cuts * BLOCK_COLUMNS, laid = column > j->there ? column - j->there : 0;
        const int64_t in_b = tgx_item_place(p, j->b_step, j->item + item) + (j->k * r.s.b_row + (j->j + column) * r.s.b_col) * j->size;
        r.s.m = at_most(j->s.m - row, TGX_COMPLEX_ROWS), r.s.n = at_most(j->columns - column, BLOCK_COLUMNS);
        r.a = j->a + tgx_item_place(p, j->a_step, j->item + item) + (row * r.s.a_row + j->k * r.s.a_col) * j->size;
        r.c = j->c + tgx_item_place(p, p->c_step, j->item + item) + (row * r.s.c_row + (j->j + column) * r.s.c_col) * j->size;
        r.b = j->direct ? j->b + in_b : NULL;
        r.packed = j->packed + ((j->one_b ? 0 : item) * j->panels + laid / j->use->columns) * j->panel;
        j->use->times(&r);
    }
    return 0;
}

/* Units are elements of the result. */
static int dots(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const job_t *j = context;
    const tgx_product *p = j->p;
    const tgx_shape *s = &j->s;
    const int wide = j->size == 16;
    const double x = p->alpha.f, y = p->alpha.im, u = p->beta.f, v = p->beta.im;
    for (ptrdiff_t i = lo; i < hi; i++) {
        const int64_t item = i / s->n / s->m, row = i / s->n % s->m, column = i % s->n;
        char *c = j->c + tgx_item_place(p, p->c_step, item) + (row * s->c_row + column * s->c_col) * j->size;
        double sum[2], old[2] = {0};
        j->use->dot(s->k, j->a + tgx_item_place(p, j->a_step, item) + row * s->a_row * j->size, s->a_col,
                    j->b + tgx_item_place(p, j->b_step, item) + column * s->b_col * j->size, s->b_row, 0, sum);
        if (u != 0 || v != 0) {
            const double re = wide ? ((double *)c)[0] : ((float *)c)[0], im = wide ? ((double *)c)[1] : ((float *)c)[1];
            old[0] = u * re - v * im, old[1] = u * im + v * re;
        }
        if (x != 1 || y != 0) {
            const double re = sum[0];
            sum[0] = x * re - y * sum[1], sum[1] = x * sum[1] + y * re;
        }
        for (int part = 0; part < 2; part++) {
            if (wide) ((double *)c)[part] = sum[part] + old[part];
            else ((float *)c)[part] = (float)(sum[part] + old[part]);
        }
    }
    return 0;
}

static int64_t block_bytes(int64_t n, int64_t k, int size) { return parts(n, PADDED) * PADDED * at_most(k, TGX_COMPLEX_DEPTH) * size; }

/* How many items are laid out at a time: of those that are one block each as many as fit. */
static int64_t group(int64_t n, int64_t k, int64_t items, int size) {
    if (n > BLOCK_COLUMNS || k > TGX_COMPLEX_DEPTH) return 1;
    const int64_t fit = GROUP_BYTES / (block_bytes(n, k, size) + 1);
    return fit < 1 ? 1 : at_most(items, fit);
}

static int is_turned(int64_t m, int64_t n) { return n < THIN && m > n; }

static int64_t room(int64_t m, int64_t n, int64_t k, int64_t items, int size) {
    if (is_turned(m, n)) n = m;
    return block_bytes(at_most(n, BLOCK_COLUMNS), k, size) * group(n, k, items, size);
}

int64_t tgx_complex_product_room(int64_t m, int64_t n, int64_t k, int64_t items, int size) {
    const int64_t each = room(m, n, k, items, size), tall = room(m * items, n, k, 1, size);
    return each > tall ? each : tall;
}

/* One block of B by all rows of A. */
static int block(const tgx_services *to, job_t *j) {
    const int64_t left = j->columns % j->use->columns;
    int code;
    j->k = 0;
    j->there = !j->direct ? 0 : left == j->use->columns / 2 ? j->columns : j->columns - left;
    j->panels = parts(j->columns - j->there, j->use->columns);
    do {
        j->depth = at_most(j->s.k - j->k, j->part), j->panel = j->use->columns * j->depth * j->size;
        if ((j->one_b ? 1 : j->items) * j->panels * j->panel > j->room) return TGX_NO_MEMORY;     /* never write behind it */
        const ptrdiff_t sheets = UNIT_WORK / (SHEET * j->panel + 1) + 1;
        const ptrdiff_t units = UNIT_WORK / (at_most(j->s.m, TGX_COMPLEX_ROWS) * at_most(j->columns, BLOCK_COLUMNS) * j->depth + 1) + 1;
        if (j->panels && (code = to->parallel_for(lay, j, (j->one_b ? 1 : j->items) * parts(j->panels, SHEET), sheets))) return code;
        if ((code = to->parallel_for(multiply, j, j->items * j->tiles * j->cuts, units))) return code;
    } while ((j->k += j->depth) < j->s.k);
    return 0;
}

int tgx_complex_product_run(tgx_call *c, const tgx_product *p, void *room) {
    const tgx_services *to = c->services;
    job_t j = {.p = p, .use = tgx_complex(p->dtype), .s = p->s, .a = p->a, .b = p->b, .c = p->c, .a_step = p->a_step,
               .b_step = p->b_step, .packed = room, .room = c->scratch_bytes, .size = tgx_itemsize[p->dtype], .one_b = 1};
    tgx_shape *s = &j.s;
    int code = 0;
    if (p->alpha.f == 0 && p->alpha.im == 0) s->k = 0;     /* as BLAS, which does not read A and B then */
    if ((s->m == 1 && s->n == 1) || (s->k >= THIN_DEPTH && ((s->n < THIN && s->a_col == 1) || (s->m < THIN && s->b_row == 1))))
        return to->parallel_for(dots, &j, p->batches * s->m * s->n, 1 + UNIT_WORK / (s->k + 1));
    if (is_turned(s->m, s->n)) {
        *s = (tgx_shape){.m = s->n, .n = s->m, .k = s->k, .a_row = s->b_col, .a_col = s->b_row, .b_row = s->a_col, .b_col = s->a_row,
                         .c_row = s->c_col, .c_col = s->c_row};
        j.a = p->b, j.b = p->a, j.a_step = p->b_step, j.b_step = p->a_step;
    }
    for (int d = 0; d < p->rank; d++) j.one_b &= p->sizes[d] == 1 || j.b_step[d] == 0;
    j.part = s->m < THIN ? THIN_DEPTH : TGX_COMPLEX_DEPTH;
    j.direct = s->b_col == 1 && (s->m <= TGX_COMPLEX_ROWS || s->n * s->k * j.size <= DIRECT_BYTES);
    j.tiles = parts(s->m, TGX_COMPLEX_ROWS);
    const int64_t together = j.one_b ? p->batches : group(s->n, s->k, p->batches, (int)j.size);
    for (j.item = 0; j.item < p->batches && !code; j.item += together)
        for (j.j = 0; j.j < s->n && !code; j.j += j.columns) {
            j.items = at_most(p->batches - j.item, together), j.columns = j.direct ? s->n : at_most(s->n - j.j, BLOCK_COLUMNS);
            j.cuts = parts(j.columns, BLOCK_COLUMNS);
            code = block(to, &j);
        }
    return code;
}
