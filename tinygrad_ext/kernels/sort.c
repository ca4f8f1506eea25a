/* Keys of each dtype, and the words that sort_body.h sorts. See sort.h.
 *
 * Rejected: qsort, a call for each comparison: 5 to 8 times as long for 1,000 floats and 26 to 28 times for 100,000, of pairs or
 * of words; and sorting positions by the elements they stand for, which jumps through the row at each comparison. */
#include "sort.h"

__extension__ typedef unsigned __int128 u128;

#define WORD uint64_t
#define INDEX_BITS 32
#define NAME(x) x##_64
#include "sort_body.h"
#undef WORD
#undef INDEX_BITS
#undef NAME

#define WORD u128
#define INDEX_BITS 64
#define NAME(x) x##_128
#include "sort_body.h"
#undef WORD
#undef INDEX_BITS
#undef NAME

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

#define ROW(TAG, U, WORD, INDEX_BITS, W) \
static void row_##TAG(const char *from, int64_t n, int64_t k, int descending, char *values, int64_t *indices, void *room) { \
    const U *x = (const U *)from, flip = descending ? (U)~(U)0 : 0; \
    WORD *a = room, *sorted; \
    if (k < n / SELECT_##W) { \
        for (int64_t i = 0; i < k; i++) a[i] = (WORD)(U)(key_##TAG(x + i) ^ flip) << INDEX_BITS | (WORD)i; \
        for (int64_t i = k / 2; i-- > 0;) sink_##W(a, k, i, a[i]); \
        U top = (U)(a[0] >> INDEX_BITS); \
        for (int64_t i = k; i < n; i++) { \
            const U key = key_##TAG(x + i) ^ flip; \
            if (key >= top) continue;       /* an equal key that comes later loses */ \
            sink_##W(a, k, 0, (WORD)key << INDEX_BITS | (WORD)i); \
            top = (U)(a[0] >> INDEX_BITS); \
        } \
        sorted = merge_##W(a, a + k, k);        /* not by counting: the heap has lost the order of positions */ \
    } else { \
        for (int64_t i = 0; i < n; i++) a[i] = (WORD)(U)(key_##TAG(x + i) ^ flip) << INDEX_BITS | (WORD)i; \
        int64_t run = 1;                        /* of rows in order already one pass is enough, others are soon out of order */ \
        while (run < n && a[run] > a[run - 1]) run++; \
        sorted = run >= n ? a : sort_##W(a, a + n, n, sizeof(U)); \
    } \
    for (int64_t i = 0; i < k; i++) { \
        const int64_t at = (int64_t)(sorted[i] & (((WORD)1 << INDEX_BITS) - 1)); \
        indices[i] = at; \
        ((U *)values)[i] = x[at]; \
    } }
ROW(b8, uint8_t, uint64_t, 32, 64)
ROW(u8, uint8_t, uint64_t, 32, 64)
ROW(u16, uint16_t, uint64_t, 32, 64)
ROW(u32, uint32_t, uint64_t, 32, 64)
ROW(u64, uint64_t, u128, 64, 128)
ROW(i8, uint8_t, uint64_t, 32, 64)
ROW(i16, uint16_t, uint64_t, 32, 64)
ROW(i32, uint32_t, uint64_t, 32, 64)
ROW(i64, uint64_t, u128, 64, 128)
ROW(f16, uint16_t, uint64_t, 32, 64)
ROW(bf16, uint16_t, uint64_t, 32, 64)
ROW(f32, uint32_t, uint64_t, 32, 64)
ROW(f64, uint64_t, u128, 64, 128)

size_t tgx_sort_room(int dtype, int64_t n) { return (size_t)n * 2 * (dtype == TGX_I64 || dtype == TGX_U64 || dtype == TGX_F64 ? 16 : 8); }

void tgx_sort_row(int dtype, const char *row, int64_t n, int64_t k, int descending, char *values, int64_t *indices, void *room) {
    static void (*const ROWS[TGX_NTYPES])(const char *, int64_t, int64_t, int, char *, int64_t *, void *) = {
        TGX_OF_BOOL(row_), TGX_OF_INT(row_), TGX_OF_NATURAL(row_), TGX_OF_HALF(row_), TGX_OF_FLOAT(row_)};
    ROWS[dtype](row, n, k, descending, values, indices, room);
}
