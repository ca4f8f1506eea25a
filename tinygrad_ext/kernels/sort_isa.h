/* Up to 128 words of 64 bits in the registers of AVX-512, in an order of steps that is the same for all words.
 *
 * 16 vectors, or 8, 4 or 2 of few words: each of the eight lanes is sorted by exchanges of whole vectors (Batcher's), then lanes are
 * merged by two, four and eight, where all but the first steps are exchanges of whole vectors again. Words of 116 positions take
 * 2 ns each where eight in a network and merges take 6. Rejected: words in rows, half of whose steps move lanes; and the same with
 * vectors of 32 bytes, which have no least of 64 bits. */
#include "sort.h"
#include "vector_bytes.h"

#if VECTOR_BYTES == 64
enum { LOW_1 = 0x55, LOW_2 = 0x33, LOW_4 = 0x0f };      /* lanes l without that bit of l */
#define SWAP_1(v) _mm512_permutex_epi64(v, 0xb1)        /* lanes l and l ^ 1 change places */
#define SWAP_2(v) _mm512_permutex_epi64(v, 0x4e)
#define SWAP_3(v) _mm512_permutex_epi64(v, 0x1b)
#define SWAP_7(v) _mm512_shuffle_i64x2(SWAP_3(v), SWAP_3(v), 0x4e)
#define X(i, j) do { const __m512i x = v[i], y = v[j]; v[i] = _mm512_min_epu64(x, y), v[j] = _mm512_max_epu64(x, y); } while (0)
#define EIGHT(o) \
    X(o + 0, o + 1); X(o + 2, o + 3); X(o + 4, o + 5); X(o + 6, o + 7); X(o + 0, o + 2); X(o + 1, o + 3); X(o + 4, o + 6); \
    X(o + 5, o + 7); X(o + 1, o + 2); X(o + 5, o + 6); X(o + 0, o + 4); X(o + 1, o + 5); X(o + 2, o + 6); X(o + 3, o + 7); \
    X(o + 2, o + 4); X(o + 3, o + 5); X(o + 1, o + 2); X(o + 3, o + 4); X(o + 5, o + 6)
#define SIXTEEN \
    EIGHT(0); EIGHT(8); \
    X(0, 8); X(1, 9); X(2, 10); X(3, 11); X(4, 12); X(5, 13); X(6, 14); X(7, 15); X(4, 8); X(5, 9); X(6, 10); X(7, 11); \
    X(2, 4); X(3, 5); X(6, 8); X(7, 9); X(10, 12); X(11, 13); X(1, 2); X(3, 4); X(5, 6); X(7, 8); X(9, 10); X(11, 12); X(13, 14)

/* Each word meets the one that lies as far from the other end of the two runs, whose lanes SWAP exchanges. */
#define ENDS(SIZE, SWAP, LOW) _Pragma("GCC unroll 8") for (int i = 0; i < SIZE / 2; i++) { \
        const __m512i x = v[i], y = SWAP(v[SIZE - 1 - i]), most = _mm512_max_epu64(x, y); \
        v[i] = _mm512_mask_min_epu64(most, LOW, x, y); \
        const __m512i rest = _mm512_mask_min_epu64(most, (__mmask8)~LOW, x, y); \
        v[SIZE - 1 - i] = SWAP(rest); }
#define ACROSS(SIZE, SWAP, LOW) _Pragma("GCC unroll 16") for (int i = 0; i < SIZE; i++) { \
        const __m512i x = v[i], y = SWAP(x); \
        v[i] = _mm512_mask_min_epu64(_mm512_max_epu64(x, y), LOW, x, y); }
#define FOUR X(0, 1); X(2, 3); X(0, 2); X(1, 3); X(1, 2)
#define DOWN_4 X(0, 2); X(1, 3); X(0, 1); X(2, 3)
#define DOWN_8 X(0, 4); X(1, 5); X(2, 6); X(3, 7); X(0, 2); X(1, 3); X(4, 6); X(5, 7); X(0, 1); X(2, 3); X(4, 5); X(6, 7)
#define DOWN_16 _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) X(i, i + 8); \
    DOWN_8; X(8, 12); X(9, 13); X(10, 14); X(11, 15); X(8, 10); X(9, 11); X(12, 14); X(13, 15); X(8, 9); X(10, 11); X(12, 13); X(14, 15)

#define SOME(n) ((n) >= 8 ? 255 : (n) > 0 ? (1u << (n)) - 1 : 0)
/* Eight vectors from v on to to, to + step, ...: lane l of all is the l-th of these. */
static inline void put(__m512i *v, uint64_t *to, int64_t step, int64_t end) {
    __m512i p[8], q[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) p[i] = _mm512_unpacklo_epi64(v[i], v[i + 1]), p[i + 1] = _mm512_unpackhi_epi64(v[i], v[i + 1]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {       /* lanes i % 2 and so on of vectors 0 to 3 and 4 to 7 */
        const int at = i / 2 * 4 + i % 2;
        q[at] = _mm512_shuffle_i64x2(p[at], p[at + 2], 0x88), q[at + 2] = _mm512_shuffle_i64x2(p[at], p[at + 2], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {       /* q[i]: lanes of i = 0: 0 and 4, 1: 1 and 5, 2: 2 and 6, 3: 3 and 7 */
        const __m512i low = _mm512_shuffle_i64x2(q[i], q[i + 4], 0x88), high = _mm512_shuffle_i64x2(q[i], q[i + 4], 0xdd);
        _mm512_mask_storeu_epi64(to + step * i, SOME(end - step * i), low);
        _mm512_mask_storeu_epi64(to + step * (i + 4), SOME(end - step * (i + 4)), high);
    }
}

static inline void put_2(const __m512i *v, uint64_t *to, int64_t n) {
    const __m512i first = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), last = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
    _mm512_mask_storeu_epi64(to, SOME(n), _mm512_permutex2var_epi64(v[0], first, v[1]));
    _mm512_mask_storeu_epi64(to + 8, SOME(n - 8), _mm512_permutex2var_epi64(v[0], last, v[1]));
}

static inline void put_4(const __m512i *v, uint64_t *to, int64_t n) {
    const __m512i a = _mm512_unpacklo_epi64(v[0], v[1]), b = _mm512_unpackhi_epi64(v[0], v[1]);
    const __m512i c = _mm512_unpacklo_epi64(v[2], v[3]), d = _mm512_unpackhi_epi64(v[2], v[3]);
    const __m512i p[4] = {_mm512_shuffle_i64x2(a, c, 0x44), _mm512_shuffle_i64x2(b, d, 0x44), _mm512_shuffle_i64x2(a, c, 0xee),
                          _mm512_shuffle_i64x2(b, d, 0xee)};
    _mm512_mask_storeu_epi64(to, SOME(n), _mm512_shuffle_i64x2(p[0], p[1], 0x88));
    _mm512_mask_storeu_epi64(to + 8, SOME(n - 8), _mm512_shuffle_i64x2(p[0], p[1], 0xdd));
    _mm512_mask_storeu_epi64(to + 16, SOME(n - 16), _mm512_shuffle_i64x2(p[2], p[3], 0x88));
    _mm512_mask_storeu_epi64(to + 24, SOME(n - 24), _mm512_shuffle_i64x2(p[2], p[3], 0xdd));
}

#define BLOCK_OF(SIZE, SORT, DOWN, PUT) \
static void block_##SIZE(uint64_t *a, int64_t n) { \
    __m512i v[SIZE]; \
    _Pragma("GCC unroll 16") for (int i = 0; i < SIZE; i++) { \
        v[i] = _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), SOME(n - 8 * i), a + 8 * i); \
    } \
    SORT; \
    ENDS(SIZE, SWAP_1, LOW_1) DOWN; \
    ENDS(SIZE, SWAP_3, LOW_2) ACROSS(SIZE, SWAP_1, LOW_1) DOWN; \
    ENDS(SIZE, SWAP_7, LOW_4) ACROSS(SIZE, SWAP_2, LOW_2) ACROSS(SIZE, SWAP_1, LOW_1) DOWN; \
    PUT; }
BLOCK_OF(2, X(0, 1), X(0, 1), put_2(v, a, n))
BLOCK_OF(4, FOUR, DOWN_4, put_4(v, a, n))
BLOCK_OF(8, EIGHT(0), DOWN_8, put(v, a, 8, n))
BLOCK_OF(16, SIXTEEN, DOWN_16, put(v, a, 16, n); put(v + 8, a + 8, 16, n - 8))

static void sort_block(uint64_t *a, int64_t n) {
    if (n <= 16) block_2(a, n);
    else if (n <= 32) block_4(a, n);
    else if (n <= 64) block_8(a, n);
    else block_16(a, n);
}
#else
#define sort_block NULL
#endif

const tgx_sort_block ISA(tgx_block) = sort_block;
