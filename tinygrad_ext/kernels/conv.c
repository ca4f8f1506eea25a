/* Plan of a convolution: how many rows and channels are laid out at a time. The loops are in conv_loops.h.
 *
 * Rejected: a matrix of all windows and one large product. For 3 x 3 windows it is 9 times the input, and took 1.3 to 1.9
 * times as long with a product by OpenBLAS (one thread, images of 28 to 56 rows, 3 to 128 channels). */
#include "conv.h"
#include "isa.h"

extern const tgx_conv_table tgx_conv_table_base, tgx_conv_table_avx2, tgx_conv_table_avx512;

const tgx_conv_table *tgx_conv_pick(void) {
    static const tgx_conv_table *found;
    if (!found) found = TGX_PICK(tgx_conv_table);
    return found;
}

enum {
    BUFFER_BYTES = 96 << 10,  /* a part of the second cache level; 24 to 48 and 256 kilobytes were slower, but for: */
    LARGE_BUFFER_BYTES = 192 << 10, /* with vectors of 64 bytes */
    MOST_TOGETHER = 8,        /* images */
    PLANE_BYTES = 24 << 10,   /* a part of the first */
    MOST_PLANE_BYTES = 256 << 10,
    MANY_OUTPUTS = 16,        /* that read a panel: it is written once */
    VECTORS = 3,              /* of a tile */
    FEW_PRODUCTS = 32,        /* of a sum */
    PLACES = 2048,            /* bytes between planes */
    FEW_OF_PLANES = 256,      /* products of a sum that is read and written again for each tap plane */
    ACROSS_BYTES = 384 << 10, /* of weights */
    SIGNAL_BYTES = 16 << 10,  /* of those of a tile that go by with each tile of a signal, beside what it reads in the first cache */
    LEAST_WIDTH = 4,
    FEW_IMAGES = 4,           /* that are laid out in turn */
    FEW_SUMS = 8,             /* of a tile, each of which waits for the one before */
    FEW_READS = 3,            /* of an element that is laid out */
    MOST_WIDTH = 28,          /* of images that are laid out in turn */
    LAID_BYTES = 1 << 20,     /* of a part's channels: so few are read for each tile that the third cache would do */
    POSITIONS = 192,          /* computed at a time at least: so often are weights read that come from far */
    MOST_LANES = 16           /* elements of the widest vector: loads may run that far beyond the last element */
};

static ptrdiff_t at_most(ptrdiff_t n, ptrdiff_t limit) { return n < limit ? n : limit; }
static ptrdiff_t at_least(ptrdiff_t n, ptrdiff_t limit) { return n > limit ? n : limit; }
static ptrdiff_t parts(ptrdiff_t n, ptrdiff_t size) { return (n + size - 1) / size; }

/* Rows of the buffer for a block of rows of out: with a step, rows of one residue lie together. */
static void place_rows(tgx_conv *p, ptrdiff_t block) {
    p->block = block;
    p->phases = at_most(p->reach + 1, p->step_y);
    p->phase_rows = block + p->reach / p->step_y;
    p->plane = p->taps_x * p->phases * p->phase_rows * p->span;
}

void tgx_conv_place_taps(const tgx_conv *p) {
    if (p->plane_by_plane || p->laid) {
        for (ptrdiff_t v = 0; v < p->taps_y; v++)
            for (ptrdiff_t u = 0; u < p->taps_x; u++) {
                ptrdiff_t right = p->at_x[u] - p->base_x, down = (p->at_y[v] - p->base_y) * p->residues, step = p->laid == 1 ? 1 : p->step_x;
                p->offset[v * p->taps_x + u] = ((down + right % step) * p->line + right / step) * (p->laid ? p->images : 1);
            }
        return;
    }
    for (ptrdiff_t u = 0; u < p->taps_x; u++)
        for (ptrdiff_t v = 0; v < p->taps_y; v++) {
            ptrdiff_t down = p->at_y[v] - p->base_y, row = down % p->step_y * p->phase_rows + down / p->step_y;
            p->offset[v * p->taps_x + u] = (u * p->phases * p->phase_rows + row) * p->span;
        }
}

/* Whether planes go one by one: then the plan of it. Rows that need too much of the second cache take the general way. */
static int plan_planes(tgx_conv *p, ptrdiff_t size) {
    const ptrdiff_t most = MOST_PLANE_BYTES / size;
    if (p->channels != 1 || p->outputs != 1 || p->cols >= most || p->reach >= most || p->reach_x >= most) return 0;
    const int down = size == 4 && p->lanes >= 8 && p->step_y * p->step_x == 1 && p->reach == p->taps_y - 1 && p->taps_y % 2 && p->taps_y <= 7; /* lines are read once */
    p->direct = p->cols <= p->lanes && p->step_x <= 2 && p->reach_x < TGX_CONV_DIRECT_REACH
                && (down ? p->taps_x : p->taps_x * p->taps_y) <= TGX_CONV_DIRECT_TAPS;
    p->residues = at_most(p->reach_x + 1, p->step_x);
    p->line = at_least(p->cols, p->lanes) + p->reach_x / p->step_x;
    ptrdiff_t row = p->residues * p->line, fit = PLANE_BYTES / size / row - p->reach;
    ptrdiff_t rows = at_most(p->rows, at_least(fit / p->step_y, at_least(4, p->reach / p->step_y)));
    ptrdiff_t lines = (rows - 1) * p->step_y + p->reach + 1;
    if (p->step_y >= most || lines > most / row) return 0;
    p->block = parts(p->rows, parts(p->rows, rows)), p->images = p->depth = 1, p->pad_outputs = MOST_LANES;
    p->phases = p->phase_rows = p->plane = 0;
    p->buffer = lines * row + 4 * MOST_LANES;
    return 1;
}

/* Vectors of one output when `block` rows are computed at a time. */
static ptrdiff_t vectors(const tgx_conv *p, ptrdiff_t block) {
    return p->rows / block * parts(block * p->span, p->lanes) + parts(p->rows % block * p->span, p->lanes);
}

/* How many of the images share the vectors of a tile: `least`, or as many more as leave the fewest lanes empty, but half of the
 * images at most, for a second thread. */
static ptrdiff_t images_together(const tgx_conv *p, ptrdiff_t least, ptrdiff_t images, ptrdiff_t most) {
    const ptrdiff_t n = p->rows * p->cols;
    ptrdiff_t best = least;
    for (ptrdiff_t i = least + 1; i <= images / 2 && i <= most && i <= MOST_TOGETHER; i++)
        if (parts(i * n, p->lanes) * best < parts(best * n, p->lanes) * i) best = i;
    return best;
}

/* Whether reads that cross lines of the cache cost nothing beside products, which take vectors of 64 bytes in two steps: panels took
 * 2 to 17 % longer then, on Zen 4. */
static int reads_in_time(ptrdiff_t vector) {
#if defined(__x86_64__)
    return vector == 64 && __builtin_cpu_is("amd");
#else
    return 0;
#endif
}

void tgx_conv_plan(tgx_conv *p, ptrdiff_t size, ptrdiff_t images) {
    p->span = p->cols, p->across = 0, p->laid = 0;
    p->plane_by_plane = plan_planes(p, size);
    if (p->plane_by_plane) return;
    if (p->rows == 1) p->span = at_most(p->cols, POSITIONS);
    place_rows(p, 1);
    /* With fewer rows most of the buffer would be shared with the next block. */
    ptrdiff_t most = at_most(p->rows, at_least(parts(POSITIONS, p->cols), 2 * p->phase_rows)), best = most;
    for (ptrdiff_t rows = most; rows > most / 2; rows--) {
        ptrdiff_t even = parts(p->rows, parts(p->rows, rows));
        if (vectors(p, even) < vectors(p, best)) best = even;
    }
    place_rows(p, parts(p->rows, parts(p->rows, best))); /* blocks of even size */
    const ptrdiff_t vector = size * p->lanes, room_bytes = vector == 64 ? LARGE_BUFFER_BYTES : BUFFER_BYTES;
    const ptrdiff_t fit = TGX_CONV_PANEL(vector) / vector / VECTORS / (p->taps_x * p->taps_y); /* channels in a panel */
    const int whole = p->block == p->rows && p->span == p->cols;
    p->panel = fit > 0 && p->outputs >= MANY_OUTPUTS;
    p->images = whole ? at_least(1, at_most(images, POSITIONS / (p->rows * p->cols))) : 1;
    const ptrdiff_t n = p->rows * p->cols;
    if (p->panel && whole && n >= p->lanes)
        p->images = images_together(p, p->images, images, room_bytes / size / p->plane / at_least(1, at_most(fit, p->channels)));
    p->joined = p->panel && whole && n >= p->lanes && parts(p->images * n, p->lanes) < p->images * parts(n, p->lanes);
    if (reads_in_time(vector) && !p->joined) p->panel = 0;
    ptrdiff_t room = at_least(8, room_bytes / size / p->images / p->plane);
    if (p->panel) room = at_most(room, fit);
    p->depth = at_least(1, parts(p->channels, parts(at_least(1, p->channels), room)));
    p->buffer = p->depth * p->plane + 4 * MOST_LANES;
    p->pad_outputs = parts(p->outputs, MOST_LANES) * MOST_LANES;
}

/* Whether tiles with vectors along the outputs read src where it lies: only if at most a sixteenth of what they compute nobody wants,
 * planes begin in many places of the first cache, and to turn the sums takes less time than to compute them. */
static int plan_across(tgx_conv *p, ptrdiff_t size) {
    const ptrdiff_t positions = TGX_CONV_POSITIONS(64), outputs = p->lanes * TGX_CONV_VECTORS(64);
    const ptrdiff_t few = p->own < p->channels ? FEW_OF_PLANES : FEW_PRODUCTS;
    if (p->rows == 1 && p->own * p->taps_x * p->taps_y * outputs * size > SIGNAL_BYTES) return 0; /* laid out, tiles share them */
    if (size * p->lanes != 64 || p->weight_row || p->taps_x > TGX_CONV_ACROSS_TAPS || p->own * p->taps_x * p->taps_y < few
        || p->src_channel * size % PLACES == 0 || p->cols < positions
        || parts(p->cols, positions) * positions * parts(p->outputs, outputs) * outputs > p->cols * p->outputs / 16 * 17) return 0;
    /* As many channels at a time as have the weights of a tile in the second cache. */
    const ptrdiff_t most = ACROSS_BYTES / size / outputs / (p->taps_x * p->taps_y);
    p->pad_outputs = parts(p->outputs, outputs) * outputs;
    p->depth = parts(p->channels, parts(p->channels, at_least(most, 1)));
    return p->across = 1;
}

/* The part of the taps of all positions along one dimension that lies in src. */
static double inside(ptrdiff_t base, ptrdiff_t reach, ptrdiff_t taps, ptrdiff_t step, ptrdiff_t positions, ptrdiff_t size) {
    double found = 0;
    for (ptrdiff_t v = 0; v < taps; v++) {
        const ptrdiff_t at = base + (taps > 1 ? reach / (taps - 1) * v : 0), first = at < 0 ? at_most(parts(-at, step), positions) : 0;
        const ptrdiff_t last = at < size ? at_most((size - 1 - at) / step + 1, positions) : 0;
        found += (double)at_least(last - first, 0);
    }
    return found / (double)(positions * taps);
}

/* Of what the other loops compute, which know no edges, at most so much is computed by tiles with vectors along the outputs. */
static double computed(const tgx_conv *p, ptrdiff_t images) {
    const double down = inside(p->base_y, p->reach, p->taps_y, p->step_y, p->rows, p->height);
    const int in_turn = images >= FEW_IMAGES && p->span == p->cols && p->cols * p->step_x <= MOST_WIDTH;
    const double across = in_turn ? inside(p->base_x, p->reach_x, p->taps_x, p->step_x, p->cols, p->width) : 1;
    return (double)(parts(p->outputs, p->lanes) * p->lanes) * down * across;
}

/* Whether to lay src out for such tiles takes less time: not where many lanes stay empty, images are wide, so that a row is far from the
 * next, or there are few products. */
static int pays_laid(const tgx_conv *p, ptrdiff_t size, ptrdiff_t images) {
    const ptrdiff_t most = LAID_BYTES / size;
    return size * p->lanes >= 32 && !p->weight_row && p->taps_x * p->taps_y <= TGX_CONV_LAID_TAPS && p->cols >= LEAST_WIDTH
           && parts(p->outputs, p->lanes) * TGX_CONV_POSITIONS(size * p->lanes) >= FEW_SUMS
           && p->channels * p->taps_x * p->taps_y >= FEW_PRODUCTS
           && p->taps_x * p->taps_y * p->outputs >= FEW_READS * p->lanes * p->step_x * p->step_y
           && p->span < most && p->reach < most && p->reach_x < most && p->step_y < most && p->step_x < most
           && 4 * (double)p->outputs >= 3 * computed(p, images);
}

/* How many of the images are laid out in turn: as leave the fewest of a tile's positions empty. */
static ptrdiff_t images_in_turn(ptrdiff_t images, ptrdiff_t alone, ptrdiff_t most) {
    ptrdiff_t best = 1, least = 0;
    for (ptrdiff_t i = at_most(alone, 4); i <= alone && i <= most; i++) {
        const ptrdiff_t computed = parts(images, i) * i + (images > alone ? 2 * parts(alone, i) * i : 0);
        if (!least || computed <= least) best = i, least = computed;
    }
    return best;
}

/* Elements of a channel of which so many rows of out are made, and channels that may be laid out at a time. */
static ptrdiff_t laid_plane(const tgx_conv *p, ptrdiff_t block) {
    return at_most((block - 1) * p->step_y + p->reach + 1, p->height) * p->residues * p->line;
}
static ptrdiff_t laid_channels(const tgx_conv *p, ptrdiff_t size, ptrdiff_t block) {
    return LAID_BYTES / size / p->images / at_least(laid_plane(p, block), 1) - 1;
}

static void plan_laid(tgx_conv *plan, ptrdiff_t size, ptrdiff_t images, ptrdiff_t alone) {
    tgx_conv q = *plan, *p = &q;
    const ptrdiff_t most = TGX_CONV_POSITIONS(size * p->lanes), shared = p->reach / p->step_y + 1;
    p->images = p->span == p->cols && p->cols * p->step_x <= MOST_WIDTH ? images_in_turn(images, alone, most) : 1;
    p->laid = p->step_x > 1 && p->images >= 4 ? 1 : most / p->images; /* columns of one residue take longer to lay out */
    p->residues = p->laid == 1 ? 1 : at_most(p->reach_x + 1, p->step_x);
    p->line = p->laid == 1 ? (p->span - 1) * p->step_x + p->reach_x + 1 : p->span + p->reach_x / p->step_x;
    const ptrdiff_t row = p->residues * p->line * p->images * size;
    const ptrdiff_t fit_rows = (LAID_BYTES / 2 / (row * at_least(p->channels, 1)) - p->reach - 1) / p->step_y + 1;
    const ptrdiff_t rows = at_least(parts(POSITIONS / 2, p->cols * p->images), at_least(shared, at_most(fit_rows, 4 * shared)));
    p->block = parts(p->rows, parts(p->rows, at_most(p->rows, rows)));
    ptrdiff_t fit = laid_channels(p, size, p->block), other;
    if (fit < at_most(p->channels, 4)) return;
    for (ptrdiff_t n = 1, some; fit < p->channels && (some = parts(p->rows, n)) > p->block; n++) /* rows that several blocks share cost most */
        if ((other = laid_channels(p, size, some)) > 0 && parts(p->channels, other) <= parts(p->channels, fit)) p->block = some, fit = other;
    p->plane = laid_plane(p, p->block);
    p->depth = parts(p->channels, parts(p->channels, fit));
    p->buffer = (p->depth + 1) * p->plane + 4 * MOST_LANES;
    p->pad_outputs = parts(p->outputs, p->lanes) * p->lanes;
    p->joined = p->panel = 0;
    *plan = q;
}

void tgx_conv_plan_outputs(tgx_conv *p, ptrdiff_t size, ptrdiff_t images, ptrdiff_t alone) {
    if (!p->plane_by_plane && !plan_across(p, size) && pays_laid(p, size, images)) plan_laid(p, size, images, alone);
}
