/* Sorting of words. WORD, INDEX_BITS and NAME(x) are given by sort.c, which includes this once for each width.
 * Short rows: insertion sort, then merges. Long rows: one counting pass for each byte of the key that is not
 * the same everywhere. A few of many: a heap of the k smallest so far. */

static void NAME(insert)(WORD *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const WORD v = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
        a[j] = v;
    }
}

/* Merge sort from runs of 16; returns where the result lies, a or b. */
static WORD *NAME(merge)(WORD *a, WORD *b, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) NAME(insert)(a + i, n - i < 16 ? n - i : 16);
    for (int64_t run = 16; run < n; run *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * run) {
            int64_t mid = lo + run < n ? lo + run : n, hi = lo + 2 * run < n ? lo + 2 * run : n, i = lo, j = mid, k = lo;
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

static WORD *NAME(sort)(WORD *a, WORD *b, int64_t n, int key_bytes) {
    if (n <= 16) {
        NAME(insert)(a, n);
        return a;
    }
    return n < 48 * key_bytes ? NAME(merge)(a, b, n) : NAME(radix)(a, b, n, key_bytes);
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
