/* Spans of a whole matrix that does not lie in its order, brought into it span by span or once. Included by reduce.c. */
/* A span of a matrix that lies turned: its rows are brought into order first, in memory that the second cache holds. */
static void turned_span(const tgx_reduction *p, int64_t span, char *room, tgx_acc *acc) {
    const int64_t width = p->rsize[1], first = span * TGX_SPAN * TGX_BLOCK, rest = p->count - first;
    const int64_t n = rest < TGX_SPAN * TGX_BLOCK ? rest : TGX_SPAN * TGX_BLOCK, row = first / width;
    char *both[] = {room, (char *)p->x + row * p->itemsize};
    const ptrdiff_t inner[] = {p->itemsize, p->rstride[1]}, outer[] = {width * p->itemsize, p->itemsize};
    tgx_acc part;
    tgx_copy_plane(p->itemsize)(both, inner, outer, width, (first + n + width - 1) / width - row);
    room += (first - row * width) * p->itemsize;
    for (int64_t done = 0; done < n; done += TGX_BLOCK) {
        const int64_t some = n - done < TGX_BLOCK ? n - done : TGX_BLOCK;
        p->reducer->block(room + done * p->itemsize, some, first + done, p->aux, done ? &part : acc);
        if (done) p->reducer->merge(acc, &part, 1);
    }
}

/* All of a small matrix that lies turned, which is one span: from FEW elements on, of which a block would gather one by one. */
static int is_small_and_turned(const tgx_reduction *p) {
    enum { FEW = 1024, MOST_BYTES = 1 << 19, SQUARE = 16 };
    return !p->nkept && p->nred == 2 && p->rstride[0] == p->itemsize && p->nspans == 1 && p->count >= FEW
           && p->count * p->itemsize <= MOST_BYTES && p->rsize[0] >= SQUARE && p->rsize[1] >= SQUARE;
}

/* All of a row that is repeated: whichever of its elements a block begins with, it lies in one row and a block of its repetitions. */
static int is_repeated(const tgx_reduction *p) {
    return !p->nkept && p->nred == 2 && !p->rstride[0] && p->rstride[1] == p->itemsize && p->nspans > 1;
}

static void repeat_row(const tgx_reduction *p, char *room) {
    const int64_t row = p->rsize[1] * p->itemsize, end = row + TGX_BLOCK * p->itemsize;
    for (int64_t at = 0; at < end; at += row) memcpy(room + at, p->x, (size_t)(end - at < row ? end - at : row));
}

static void repeated_span(const tgx_reduction *p, int64_t span, char *room, tgx_acc *acc) {
    const int64_t first = span * TGX_SPAN * TGX_BLOCK, last = first + TGX_SPAN * TGX_BLOCK, end = last < p->count ? last : p->count;
    tgx_acc part;
    for (int64_t at = first; at < end; at += TGX_BLOCK) {
        const int64_t n = end - at < TGX_BLOCK ? end - at : TGX_BLOCK;
        p->reducer->block(room + at % p->rsize[1] * p->itemsize, n, at, p->aux, at > first ? &part : acc);
        if (at > first) p->reducer->merge(acc, &part, 1);
    }
}
