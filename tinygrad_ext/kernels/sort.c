/* Keys of each dtype, and the words that sort_body.h sorts. See sort.h.
 *
 * Rejected: qsort, a call for each comparison: 5 to 8 times as long for 1,000 floats and 26 to 28 times for 100,000, of pairs or
 * of words; and sorting positions by the elements they stand for, which jumps through the row at each comparison. */
#include "sort.h"
#include "isa.h"

__extension__ typedef unsigned __int128 u128;

/* A long row goes through each step in PARTS parts, in as many threads as there are. */
enum { PARTS = 16, BLOCK = 32 };
#define PART(i, n) ((n) / PARTS * (i) + ((i) == PARTS ? (n) % PARTS : 0))

/* What sorts blocks in registers, or NULL where the processor cannot. */
static tgx_sort_block block_sort(void) {
    static const tgx_sort_block *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_block);
    return *chosen;
}

/* Rows of no more are sorted by insertion, and by merges those below so many bytes of keys; with blocks the ones pay sooner and the
 * others longer. */
static inline int64_t few(tgx_sort_block block) { return block ? 8 : 16; }
static inline int64_t merged(tgx_sort_block block, int key_bytes) {
    if (!block) return 48 * key_bytes;
    return 96 * key_bytes > TGX_SORT_BLOCK ? 96 * key_bytes : TGX_SORT_BLOCK + 1;
}

#define WORD uint64_t
#define INDEX_BITS 32
#define NAME(x) x##_64
#define BLOCK_SORT block_sort()
#include "sort_body.h"
#undef WORD
#undef INDEX_BITS
#undef NAME
#undef BLOCK_SORT

#define WORD u128
#define INDEX_BITS 64
#define NAME(x) x##_128
#define BLOCK_SORT NULL
#include "sort_body.h"
#undef WORD
#undef INDEX_BITS
#undef NAME
#undef BLOCK_SORT

/* ---- keys */

static inline uint8_t key_b8(const uint8_t *p) { return *p != 0; }
static inline uint8_t key_u8(const uint8_t *p) { return *p; }
static inline uint16_t key_u16(const uint16_t *p) { return *p; }
static inline uint32_t key_u32(const uint32_t *p) { return *p; }
static inline uint64_t key_u64(const uint64_t *p) { return *p; }
static inline uint8_t key_i8(const uint8_t *p) { return (uint8_t)(*p ^ 0x80u); }
static inline uint16_t key_i16(const uint16_t *p) { return (uint16_t)(*p ^ 0x8000u); }
static inline uint32_t key_i32(const uint32_t *p) { return *p ^ 0x80000000u; }
static inline uint64_t key_i64(const uint64_t *p) { return *p ^ ((uint64_t)1 << 63); }

/* Bits of a float: negative ones are turned over, positive ones go above them. INF holds the exponent of infinity. */
#define FLOAT_KEY(TAG, U, S, SIGN, INF) static inline U key_##TAG(const U *p) { \
    U u = *p; \
    u = (U)(u & (U)~SIGN) > INF ? (U)~SIGN : (U)(u & (U)~SIGN) == 0 ? 0 : u; \
    return (U)(u ^ ((U)((S)u >> (8 * sizeof(U) - 1)) | SIGN)); }
FLOAT_KEY(f16, uint16_t, int16_t, (uint16_t)0x8000, (uint16_t)0x7c00)
FLOAT_KEY(bf16, uint16_t, int16_t, (uint16_t)0x8000, (uint16_t)0x7f80)
FLOAT_KEY(f32, uint32_t, int32_t, 0x80000000u, 0x7f800000u)
FLOAT_KEY(f64, uint64_t, int64_t, ((uint64_t)1 << 63), 0x7ff0000000000000u)

/* ---- one row: words, sorting, results */

/* A heap of k words pays while k is below this part of n: measured on random rows of 256 to 65,536 elements. */
enum { SELECT_64 = 32, SELECT_128 = 12 };

/* A row, and its words: as they are made, and sorted. least and drop: see row_ of 64 bits. */
typedef struct { const void *x; void *words, *values; int64_t *indices, n, k; uint64_t flip, least; int drop; } row_t;

static void each_part(tgx_call *c, int (*fn)(void *, ptrdiff_t, ptrdiff_t), row_t *r, int64_t n) {
    if (c) tgx_range(c, fn, r, n, n / PARTS);
    else fn(r, 0, n);
}

/* Elements and places in their order, for all dtypes of a width. */
#define RESULTS(FORM, U, WORD, INDEX_BITS) \
static int FORM##_results_##U(void *context, ptrdiff_t lo, ptrdiff_t hi) { \
    const row_t *r = context; \
    const U *x = r->x; \
    const WORD *sorted = r->words; \
    U *values = r->values; \
    int64_t *indices = r->indices; \
    for (int64_t i = lo; i < hi; i++) { \
        const int64_t at = (int64_t)(sorted[i] & (((WORD)1 << INDEX_BITS) - 1)); \
        indices[i] = at; \
        values[i] = x[at]; \
    } \
    return 0; }
RESULTS(row, uint8_t, uint64_t, 32)
RESULTS(row, uint16_t, uint64_t, 32)
RESULTS(row, uint32_t, uint64_t, 32)
RESULTS(row, uint64_t, uint64_t, 32)
RESULTS(wide, uint64_t, u128, 64)

/* The k least words of positions lo to hi: a heap, whose top is what others have to lie below, as few of many do. */
#define ROW(FORM, TAG, U, WORD, INDEX_BITS, W) \
static int FORM##_words_##TAG(void *context, ptrdiff_t lo, ptrdiff_t hi) { \
    const row_t *r = context; \
    const U *x = r->x, flip = (U)r->flip; \
    WORD *a = r->words; \
    for (int64_t i = lo; i < hi; i++) a[i] = (WORD)(U)(key_##TAG(x + i) ^ flip) << INDEX_BITS | (WORD)i; \
    return 0; } \
static void FORM##_heap_##TAG(const row_t *r, WORD *a, int64_t lo, int64_t hi) { \
    const U *x = r->x, flip = (U)r->flip; \
    const int64_t k = r->k; \
    for (int64_t i = 0; i < k; i++) a[i] = (WORD)(U)(key_##TAG(x + lo + i) ^ flip) << INDEX_BITS | (WORD)(lo + i); \
    for (int64_t i = k / 2; i-- > 0;) sink_##W(a, k, i, a[i]); \
    U top = (U)(a[0] >> INDEX_BITS); \
    for (int64_t i = lo + k, end; i < hi; i = end) { \
        end = i + BLOCK; \
        if (end <= hi) { \
            U below = 0; \
            for (int j = 0; j < BLOCK; j++) below |= (U)((U)(key_##TAG(x + i + j) ^ flip) < top); \
            if (!below) continue; \
        } else end = hi; \
        for (; i < end; i++) { \
            const U key = key_##TAG(x + i) ^ flip; \
            if (key >= top) continue;       /* an equal key that comes later loses */ \
            sink_##W(a, k, 0, (WORD)key << INDEX_BITS | (WORD)i); \
            top = (U)(a[0] >> INDEX_BITS); \
        } \
    } } \
static int FORM##_heaps_##TAG(void *context, ptrdiff_t lo, ptrdiff_t hi) { \
    const row_t *r = context; \
    for (ptrdiff_t part = lo; part < hi; part++) \
        FORM##_heap_##TAG(r, (WORD *)r->words + part * r->k, PART(part, r->n), PART(part + 1, r->n)); \
    return 0; } \
static void FORM##_##TAG(tgx_call *c, row_t *r, int descending, void *room) { \
    const int64_t n = r->n, k = r->k; \
    WORD *a = r->words = room, *sorted; \
    r->flip = descending ? (U)~(U)0 : 0; \
    if (c && n >= 4 * TGX_SORT_LONG && k < n / PARTS / SELECT_##W) { \
        tgx_range(c, FORM##_heaps_##TAG, r, PARTS, 1); \
        sorted = merge_##W(a, a + PARTS * k, PARTS * k); \
    } else if (k < n / SELECT_##W) { \
        FORM##_heap_##TAG(r, a, 0, n); \
        sorted = merge_##W(a, a + k, k);        /* not by counting: the heap has lost the order of positions */ \
    } else { \
        each_part(c, FORM##_words_##TAG, r, n); \
        int64_t run = 1;                        /* of rows in order already one pass is enough, others are soon out of order */ \
        while (run < n && a[run] > a[run - 1]) run++; \
        sorted = run >= n ? a : sort_##W(c, a, a + n, n, sizeof(U)); \
    } \
    r->words = sorted; \
    each_part(k < TGX_SORT_LONG ? NULL : c, FORM##_results_##U, r, k); }
ROW(row, b8, uint8_t, uint64_t, 32, 64)
ROW(row, u8, uint8_t, uint64_t, 32, 64)
ROW(row, u16, uint16_t, uint64_t, 32, 64)
ROW(row, u32, uint32_t, uint64_t, 32, 64)
ROW(wide, u64, uint64_t, u128, 64, 128)
ROW(row, i8, uint8_t, uint64_t, 32, 64)
ROW(row, i16, uint16_t, uint64_t, 32, 64)
ROW(row, i32, uint32_t, uint64_t, 32, 64)
ROW(wide, i64, uint64_t, u128, 64, 128)
ROW(row, f16, uint16_t, uint64_t, 32, 64)
ROW(row, bf16, uint16_t, uint64_t, 32, 64)
ROW(row, f32, uint32_t, uint64_t, 32, 64)
ROW(wide, f64, uint64_t, u128, 64, 128)

/* ---- rows of 64-bit keys, by the highest 32 bits in which they differ */

/* Most often these alone say the order, and words of half the width have half the bytes to count. Where they are equal, what is
 * left is put in order by insertion; of rows where that takes many moves, whole keys are sorted instead. */
enum { MOVES = 4 };

static int settle(uint64_t *a, int64_t n, const uint64_t *keys) {
    int64_t moves = 0;
    for (int64_t i = 1; i < n; i++) {
        const uint64_t v = a[i];
        int64_t j = i;
        if (v >> 32 != a[i - 1] >> 32) continue;
        for (; j > 0 && keys[(uint32_t)a[j - 1]] > keys[(uint32_t)v]; j--) a[j] = a[j - 1];
        a[j] = v, moves += i - j;
        if (moves > MOVES * n) return 0;
    }
    return 1;
}

static int high_words(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const row_t *r = context;
    uint64_t *a = r->words;
    const uint64_t *keys = a + 2 * r->n, least = r->least;
    const int drop = r->drop;
    for (ptrdiff_t i = lo; i < hi; i++) a[i] = (keys[i] - least) >> drop << 32 | (uint64_t)i;
    return 0;
}
#define WIDE_ROW(TAG) \
static void spread_##TAG(const row_t *r, int64_t lo, int64_t hi, uint64_t *ends) { \
    const uint64_t *x = r->x, flip = r->flip; \
    uint64_t *keys = (uint64_t *)r->words + 2 * r->n, least = ~(uint64_t)0, most = 0; \
    for (int64_t i = lo; i < hi; i++) { \
        const uint64_t key = key_##TAG(x + i) ^ flip; \
        keys[i] = key, least = key < least ? key : least, most = key > most ? key : most; \
    } \
    ends[0] = least, ends[1] = most; } \
static int keys_##TAG(void *context, ptrdiff_t lo, ptrdiff_t hi) { \
    const row_t *r = context; \
    for (ptrdiff_t part = lo; part < hi; part++) \
        spread_##TAG(r, PART(part, r->n), PART(part + 1, r->n), (uint64_t *)r->words + 2 * part); \
    return 0; } \
static void row_##TAG(tgx_call *c, row_t *r, int descending, void *room) { \
    const int64_t n = r->n; \
    uint64_t *a = room, *sorted = a, least = ~(uint64_t)0, most = 0; \
    int64_t run = 1; \
    if (n <= few(block_sort()) || r->k < n / SELECT_128 || n >> 32) { \
        wide_##TAG(c, r, descending, room); \
        return; \
    } \
    r->words = a, r->flip = descending ? ~(uint64_t)0 : 0; \
    if (c) tgx_range(c, keys_##TAG, r, PARTS, 1); \
    else spread_##TAG(r, 0, n, a); \
    for (int i = 0; i < (c ? PARTS : 1); i++) { \
        if (a[2 * i] < least) least = a[2 * i]; \
        if (a[2 * i + 1] > most) most = a[2 * i + 1]; \
    } \
    const int bits = most > least ? 64 - __builtin_clzll(most - least) : 0; \
    r->least = least, r->drop = bits > 32 ? bits - 32 : 0; \
    each_part(c, high_words, r, n); \
    while (run < n && a[run] > a[run - 1]) run++; \
    if (run < n) sorted = sort_64(c, a, a + n, n, (bits - r->drop + 7) / 8); \
    if (r->drop && !settle(sorted, n, a + 2 * n)) { \
        wide_##TAG(c, r, descending, room); \
        return; \
    } \
    r->words = sorted; \
    each_part(r->k < TGX_SORT_LONG ? NULL : c, row_results_uint64_t, r, r->k); }
WIDE_ROW(u64)
WIDE_ROW(i64)
WIDE_ROW(f64)

size_t tgx_sort_room(int dtype, int64_t n) { return (size_t)n * 2 * (dtype == TGX_I64 || dtype == TGX_U64 || dtype == TGX_F64 ? 16 : 8); }

void tgx_sort_row(tgx_call *c, int dtype, const char *row, int64_t n, int64_t k, int descending, char *values, int64_t *indices,
                  void *room) {
    static void (*const ROWS[TGX_NTYPES])(tgx_call *, row_t *, int, void *) = {
        TGX_OF_BOOL(row_), TGX_OF_INT(row_), TGX_OF_NATURAL(row_), TGX_OF_HALF(row_), TGX_OF_FLOAT(row_)};
    row_t r = {.x = row, .values = values, .indices = indices, .n = n, .k = k};
    ROWS[dtype](n < TGX_SORT_LONG ? NULL : c, &r, descending, room);
}
