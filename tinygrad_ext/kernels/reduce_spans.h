/* Spans of a whole matrix that does not lie in its order, brought into it span by span or once. Included by reduce.c. */
/* Rows of a matrix that lies turned which are brought into order at once: those of two cache lines, for of one each page would be looked
 * up twice as often, or as many more as make up a block. */
static int64_t strip_of(const tgx_reduction *p) {
    const int64_t lines = 128 / p->itemsize, most = lines * ((TGX_BLOCK + lines * p->rsize[1] - 1) / (lines * p->rsize[1]));
    return p->rsize[0] < most ? p->rsize[0] : most;
}

static size_t turning_room(const tgx_reduction *p) { return (size_t)((TGX_BLOCK + strip_of(p) * p->rsize[1]) * p->itemsize); }

/* Spans of a matrix that lies turned, strip by strip: what is left of one stands in front of the next. */
static void turned_spans(const tgx_reduction *p, int64_t lo, int64_t hi, char *room, tgx_acc *parts) {
    const int64_t width = p->rsize[1], strip = strip_of(p), size = p->itemsize, whole = TGX_SPAN * TGX_BLOCK;
    const int64_t end = hi * whole < p->count ? hi * whole : p->count;
    int64_t at = lo * whole, row = at / width / strip * strip, skip = at - row * width, have = 0;
    char *area = room + TGX_BLOCK * size, *from = area;
    tgx_acc part;
    while (at < end) {
        const int64_t n = end - at < TGX_BLOCK ? end - at : TGX_BLOCK;
        if (have < n) {
            const int64_t again = row + strip > p->rsize[0] ? row + strip - p->rsize[0] : 0;    /* rows of the last strip */
            char *both[] = {area, (char *)p->x + (row - again) * size}, *left = area - have * size;
            const ptrdiff_t inner[] = {size, p->rstride[1]}, outer[] = {width * size, size};
            memmove(left, from, (size_t)(have * size));
            tgx_copy_plane((int)size)(both, inner, outer, width, strip);
            from = left + (again * width + skip) * size;
            if (again) memmove(from, left, (size_t)(have * size));
            row += strip, have += (strip - again) * width - skip, skip = 0;
            continue;
        }
        tgx_acc *to = at % whole ? &part : &parts[at / whole];
        p->reducer->block(from, n, at, p->aux, to);
        if (to == &part) p->reducer->merge(&parts[at / whole], to, 1);
        at += n, have -= n, from += n * size;
    }
}

/* All of a small matrix that lies turned, which is one span: from FEW elements on, of which a block would gather one by one. */
static int is_small_and_turned(const tgx_reduction *p) {
    enum { FEW = 1024, SQUARE = 16 };
    return !p->nkept && p->nred == 2 && p->rstride[0] == p->itemsize && p->nspans == 1 && p->count >= FEW
           && p->rsize[0] >= SQUARE && p->rsize[1] >= SQUARE;
}

/* State of one output behind a whole block, its place counted from the block's beginning. */
typedef struct { double a, b; int64_t i, at; int known; } seen_t;

/* Blocks after which they begin at the same element of the row, or 0 where that comes too late to spare half of them. */
static int64_t period_of(const tgx_reduction *p) {
    int64_t common = TGX_BLOCK;
    while (p->rsize[1] % common) common /= 2;
    const int64_t period = p->rsize[1] / common;
    return period <= p->count / TGX_BLOCK / 2 ? period : 0;
}

/* All of a row that is repeated: whichever of its elements a block begins with, it lies in one row and a block of its repetitions.
 * Of a long row whose blocks differ few cross its end, and the others are read where they lie. */
static int is_repeated(const tgx_reduction *p) {
    enum { LONG = 8 * TGX_BLOCK };
    return !p->nkept && p->nred == 2 && !p->rstride[0] && p->rstride[1] == p->itemsize && p->nspans > 1
           && (p->rsize[1] < LONG || period_of(p));
}

static size_t repeating_room(const tgx_reduction *p) {
    return (size_t)((TGX_BLOCK + p->rsize[1]) * p->itemsize) + (size_t)period_of(p) * sizeof(seen_t) + 8;
}

/* Spans of a row that is repeated, which stands in front of the first block's elements once more. Blocks that begin at the same
 * element are folded once. */
static void repeated_spans(const tgx_reduction *p, int64_t lo, int64_t hi, char *room, tgx_acc *parts) {
    const int64_t row = p->rsize[1], size = p->itemsize, whole = TGX_SPAN * TGX_BLOCK, period = period_of(p);
    const int64_t end = hi * whole < p->count ? hi * whole : p->count;
    seen_t *seen = (seen_t *)room;
    tgx_acc part;
    memset(seen, 0, (size_t)period * sizeof *seen);
    room += (size_t)period * sizeof *seen;
    for (int64_t at = 0, most = row + TGX_BLOCK; at < most; at += row)
        memcpy(room + at * size, p->x, (size_t)((most - at < row ? most - at : row) * size));
    for (int64_t at = lo * whole; at < end; at += TGX_BLOCK) {
        const int64_t n = end - at < TGX_BLOCK ? end - at : TGX_BLOCK;
        seen_t *one = period ? &seen[at / TGX_BLOCK % period] : NULL;
        tgx_acc *to = at % whole ? &part : &parts[at / whole];
        if (n < TGX_BLOCK || !one || !one->known) {
            p->reducer->block(room + at % row * size, n, at, p->aux, to);
            if (one && n == TGX_BLOCK) *one = (seen_t){to->a[0], to->b[0], to->i[0], (int64_t)((uint64_t)to->at[0] - (uint64_t)at), 1};
        } else to->a[0] = one->a, to->b[0] = one->b, to->i[0] = one->i, to->at[0] = (int64_t)((uint64_t)one->at + (uint64_t)at);
        if (to == &part) p->reducer->merge(&parts[at / whole], to, 1);
    }
}
