/* Sorting of words. WORD, INDEX_BITS and NAME(x) are given by sort.c, which includes this once for each width, with BLOCK_SORT,
 * what sorts blocks of such words or NULL. Short rows: blocks in wide registers (sort_isa.h), or networks of eight, then merges.
 * Long rows: one counting pass for each byte of the key that is not the same everywhere. A few of many: a heap of the k smallest so
 * far. */

static void NAME(insert)(WORD *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const WORD v = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
        a[j] = v;
    }
}

/* Eight words by a network of exchanges (Batcher's), which has no branches to be guessed wrong. */
static inline void NAME(eight)(WORD *a) {
#define EXCHANGE(i, j) do { const WORD x = v[i], y = v[j]; const int less = x < y; v[i] = less ? x : y, v[j] = less ? y : x; } while (0)
    WORD v[8];
    memcpy(v, a, sizeof v);
    EXCHANGE(0, 1); EXCHANGE(2, 3); EXCHANGE(4, 5); EXCHANGE(6, 7); EXCHANGE(0, 2); EXCHANGE(1, 3); EXCHANGE(4, 6); EXCHANGE(5, 7);
    EXCHANGE(1, 2); EXCHANGE(5, 6); EXCHANGE(0, 4); EXCHANGE(1, 5); EXCHANGE(2, 6); EXCHANGE(3, 7); EXCHANGE(2, 4); EXCHANGE(3, 5);
    EXCHANGE(1, 2); EXCHANGE(3, 4); EXCHANGE(5, 6);
    memcpy(a, v, sizeof v);
#undef EXCHANGE
}

/* Two runs of one length, which lie behind each other, from both ends to the middle: two chains that do not wait for each other,
 * and no ends to look for. */
static inline void NAME(join)(const WORD *a, WORD *to, int64_t run) {
    const WORD *left = a, *right = a + run, *left_end = right - 1, *right_end = right + run - 1;
    for (int64_t k = 0; k < run; k++) {
        const int second = *right < *left, first = *right_end < *left_end;
        to[k] = second ? *right : *left;
        right += second, left += !second;
        to[2 * run - 1 - k] = first ? *left_end : *right_end;
        left_end -= first, right_end -= !first;
    }
}

/* Merge sort from runs of 8, or from blocks; returns where the result lies, a or b. No two words are equal. */
static WORD *NAME(merge)(WORD *a, WORD *b, int64_t n) {
    const tgx_sort_block block = BLOCK_SORT;
    const int64_t first = block ? TGX_SORT_BLOCK : 8;
    if (block)
        for (int64_t i = 0; i < n; i += first) block((uint64_t *)(a + i), n - i < first ? n - i : first);
    else {
        for (int64_t i = 0; i + 8 <= n; i += 8) NAME(eight)(a + i);
        NAME(insert)(a + n / 8 * 8, n % 8);
    }
    for (int64_t run = first; run < n; run *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * run) {
            int64_t mid = lo + run < n ? lo + run : n, hi = lo + 2 * run < n ? lo + 2 * run : n, i = lo, j = mid, k = lo;
            if (hi - lo == 2 * run) {
                NAME(join)(a + lo, b + lo, run);
                continue;
            }
            while (i < mid && j < hi) {
                const int right = a[j] < a[i];
                b[k++] = right ? a[j] : a[i];
                j += right;
                i += !right;
            }
            while (i < mid) b[k++] = a[i++];
            while (j < hi) b[k++] = a[j++];
        }
        WORD *t = a; a = b; b = t;
    }
    return a;
}

static WORD *NAME(radix)(WORD *a, WORD *b, int64_t n, int key_bytes) {
    int64_t counts[8][256];
    memset(counts, 0, sizeof counts[0] * key_bytes);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = (uint64_t)(a[i] >> INDEX_BITS);
        for (int d = 0; d < key_bytes; d++) counts[d][(key >> (8 * d)) & 255]++;
    }
    for (int d = 0; d < key_bytes; d++) {
        int64_t *c = counts[d], at = 0;
        const int shift = INDEX_BITS + 8 * d;
        if (c[(uint8_t)(a[0] >> shift)] == n) continue;
        for (int v = 0; v < 256; v++) {
            const int64_t m = c[v];
            c[v] = at;
            at += m;
        }
        for (int64_t i = 0; i < n; i++) b[c[(uint8_t)(a[i] >> shift)]++] = a[i];
        WORD *t = a; a = b; b = t;
    }
    return a;
}

/* The same by parts, each of which counts and moves what it holds: the words come to lie where one part alone puts them. */
typedef struct { WORD *from, *to; int64_t n; int shift; int64_t (*counts)[256]; } NAME(pass);

static int NAME(count_parts)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const NAME(pass) *p = context;
    for (ptrdiff_t part = lo; part < hi; part++) {
        int64_t counts[4][256] = {{0}}, i = PART(part, p->n);
        const int64_t end = PART(part + 1, p->n);
        const int shift = p->shift;
        for (; i + 4 <= end; i += 4) /* equal neighbours do not wait for each other */
            for (int k = 0; k < 4; k++) counts[k][(uint8_t)(p->from[i + k] >> shift)]++;
        for (; i < end; i++) counts[0][(uint8_t)(p->from[i] >> shift)]++;
        for (int v = 0; v < 256; v++) p->counts[part][v] = counts[0][v] + counts[1][v] + counts[2][v] + counts[3][v];
    }
    return 0;
}
static int NAME(move_parts)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const NAME(pass) *p = context;
    for (ptrdiff_t part = lo; part < hi; part++) {
        int64_t *at = p->counts[part];
        const WORD *from = p->from; /* what is stored might be any of *p, for all the compiler knows */
        WORD *to = p->to;
        const int shift = p->shift;
        const int64_t end = PART(part + 1, p->n);
        for (int64_t i = PART(part, p->n); i < end; i++) to[at[(uint8_t)(from[i] >> shift)]++] = from[i];
    }
    return 0;
}
static WORD *NAME(radix_parts)(tgx_call *c, WORD *a, WORD *b, int64_t n, int key_bytes) {
    int64_t counts[PARTS][256];
    NAME(pass) p = {a, b, n, INDEX_BITS, counts};
    for (int d = 0; d < key_bytes; d++, p.shift += 8) {
        int64_t at = 0, same = 0;
        const uint8_t first = (uint8_t)(p.from[0] >> p.shift);
        tgx_range(c, NAME(count_parts), &p, PARTS, 1);
        for (int part = 0; part < PARTS; part++) same += counts[part][first];
        if (same == n) continue;
        for (int v = 0; v < 256; v++)
            for (int part = 0; part < PARTS; part++) {
                const int64_t m = counts[part][v];
                counts[part][v] = at, at += m;
            }
        tgx_range(c, NAME(move_parts), &p, PARTS, 1);
        WORD *t = p.from; p.from = p.to, p.to = t;
    }
    return p.from;
}

/* c: NULL, or whose threads take part. */
static WORD *NAME(sort)(tgx_call *c, WORD *a, WORD *b, int64_t n, int key_bytes) {
    if (n <= few(BLOCK_SORT)) {
        NAME(insert)(a, n);
        return a;
    }
    if (c) return NAME(radix_parts)(c, a, b, n, key_bytes);
    return n < merged(BLOCK_SORT, key_bytes) ? NAME(merge)(a, b, n) : NAME(radix)(a, b, n, key_bytes);
}

/* Put v in the place of the largest of the heap and let it sink. */
static void NAME(sink)(WORD *heap, int64_t k, int64_t i, WORD v) {
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= k) break;
        if (child + 1 < k && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= v) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = v;
}
