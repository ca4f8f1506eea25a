/* Built for each instruction set: the copies of planes, see casts.h. */
#include "backward.h"
#include "casts.h"
#include <stddef.h>

enum { LINE = 64, MANY = 512 };

/* n rows of equal length, contiguous in both: short ones by a few overlapping moves instead of a call. */
static void copy_rows(char *o, ptrdiff_t os, const char *a, ptrdiff_t as, size_t bytes, int64_t n) {
#define ROWS(CHUNK) \
    for (int64_t j = 0; j < n; j++, o += os, a += as) { \
        memcpy(o, a, CHUNK); \
        memcpy(o + bytes - CHUNK, a + bytes - CHUNK, CHUNK); \
    }
    if (bytes >= 4 && bytes <= 8) { ROWS(4) }
    else if (bytes > 8 && bytes <= 16) { ROWS(8) }
    else if (bytes > 16 && bytes <= 32) { ROWS(16) }
    else if (bytes > 32 && bytes <= 64) { ROWS(32) }
    else if (bytes > 64 && bytes <= 128) { ROWS(64) }
    else for (int64_t j = 0; j < n; j++, o += os, a += as) memcpy(o, a, bytes);
#undef ROWS
}

typedef uint64_t four __attribute__((vector_size(32), aligned(8), may_alias));
typedef struct { uint64_t part[2]; } pair;

#define UNROLLED _Pragma("GCC unroll 16")
#define ZIP(...) {__VA_ARGS__}

/* A square of LINE bytes each way turned: rows of `in` lie `as` bytes apart, rows of `out` `os`. Lines that parts of are wanted more
 * than twice are read or written whole: where a stride is a power of two, they do not stay in the first cache. */
#ifdef __AVX512F__
/* A register holds a line, so each is read once and written once. First the parts of 16 bytes are turned, then what lies across them. */
typedef uint64_t eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint32_t sixteen __attribute__((vector_size(64), aligned(4), may_alias));
#define MIX(a, b, ...) __builtin_shuffle(a, b, (eight){__VA_ARGS__})
#define MIX_FOURS(a, b, ...) (eight)__builtin_shuffle((sixteen)(a), (sixteen)(b), (sixteen){__VA_ARGS__})

static inline void turn_8(char *out, ptrdiff_t os, const char *in, ptrdiff_t as) {
    eight a[8], b[8];
    UNROLLED for (int k = 0; k < 8; k++) a[k] = *(const eight *)(in + k * as);
    UNROLLED for (int k = 0; k < 8; k += 2) {
        b[k] = MIX(a[k], a[k + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        b[k + 1] = MIX(a[k], a[k + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    UNROLLED for (int k = 0; k < 8; k += 4)
        for (int j = k; j < k + 2; j++) {
            a[j] = MIX(b[j], b[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[j + 2] = MIX(b[j], b[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    UNROLLED for (int j = 0; j < 4; j++) {
        *(eight *)(out + j * os) = MIX(a[j], a[4 + j], 0, 1, 2, 3, 8, 9, 10, 11);
        *(eight *)(out + (4 + j) * os) = MIX(a[j], a[4 + j], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

static inline void turn_4(char *out, ptrdiff_t os, const char *in, ptrdiff_t as) {
    eight a[16], b[16];
    UNROLLED for (int k = 0; k < 16; k++) a[k] = *(const eight *)(in + k * as);
    UNROLLED for (int k = 0; k < 16; k += 2) {
        b[k] = MIX_FOURS(a[k], a[k + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
        b[k + 1] = MIX_FOURS(a[k], a[k + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    }
    UNROLLED for (int k = 0; k < 16; k += 4)
        for (int j = 0; j < 2; j++) {
            a[k + 2 * j] = MIX(b[k + j], b[k + j + 2], 0, 8, 2, 10, 4, 12, 6, 14);
            a[k + 2 * j + 1] = MIX(b[k + j], b[k + j + 2], 1, 9, 3, 11, 5, 13, 7, 15);
        }
    UNROLLED for (int k = 0; k < 16; k += 8)
        for (int j = k; j < k + 4; j++) {
            b[j] = MIX(a[j], a[j + 4], 0, 1, 8, 9, 4, 5, 12, 13);
            b[j + 4] = MIX(a[j], a[j + 4], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    UNROLLED for (int j = 0; j < 8; j++) {
        *(eight *)(out + j * os) = MIX(b[j], b[8 + j], 0, 1, 2, 3, 8, 9, 10, 11);
        *(eight *)(out + (8 + j) * os) = MIX(b[j], b[8 + j], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#else
static inline void turn_8(char *out, ptrdiff_t os, const char *in, ptrdiff_t as) {
    for (int j = 0; j < 8; j += 4)
        for (int i = 0; i < 8; i += 4) {
            const char *x = in + i * as + j * 8;
            char *o = out + j * os + i * 8;
            four a = *(four *)x, b = *(four *)(x + as), c = *(four *)(x + 2 * as), d = *(four *)(x + 3 * as);
            four ab = __builtin_shuffle(a, b, (four){0, 4, 2, 6}), ab2 = __builtin_shuffle(a, b, (four){1, 5, 3, 7});
            four cd = __builtin_shuffle(c, d, (four){0, 4, 2, 6}), cd2 = __builtin_shuffle(c, d, (four){1, 5, 3, 7});
            *(four *)o = __builtin_shuffle(ab, cd, (four){0, 1, 4, 5});
            *(four *)(o + os) = __builtin_shuffle(ab2, cd2, (four){0, 1, 4, 5});
            *(four *)(o + 2 * os) = __builtin_shuffle(ab, cd, (four){2, 3, 6, 7});
            *(four *)(o + 3 * os) = __builtin_shuffle(ab2, cd2, (four){2, 3, 6, 7});
        }
}
#endif

static inline void turn_16(char *out, ptrdiff_t os, const char *in, ptrdiff_t as) {
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 4; i++) *(pair *)(out + j * os + i * 16) = *(const pair *)(in + i * as + j * 16);
}

/* Squares of the elements of 16 bytes by zipping rows that are half a square apart, as many times as it takes. */
#define TURN(SIZE, T, LOW, HIGH) \
    typedef T lanes_##SIZE __attribute__((vector_size(16), aligned(SIZE), may_alias)); \
    static inline void turn_##SIZE(char *out, ptrdiff_t os, const char *in, ptrdiff_t as) { \
        enum { B = LINE / SIZE, N = 16 / SIZE }; \
        T line[B][B] __attribute__((aligned(LINE))); \
        for (int k = 0; k < B; k++) memcpy(line[k], in + k * as, LINE); \
        for (int j = 0; j < B; j += N) \
            for (int i = 0; i < B; i += N) { \
                lanes_##SIZE row[N], zipped[N]; \
                UNROLLED for (int k = 0; k < N; k++) row[k] = *(lanes_##SIZE *)&line[i + k][j]; \
                UNROLLED for (int n = 1; n < N; n *= 2) { \
                    UNROLLED for (int k = 0; k < N / 2; k++) { \
                        zipped[2 * k] = __builtin_shuffle(row[k], row[k + N / 2], (lanes_##SIZE)LOW); \
                        zipped[2 * k + 1] = __builtin_shuffle(row[k], row[k + N / 2], (lanes_##SIZE)HIGH); \
                    } \
                    UNROLLED for (int k = 0; k < N; k++) row[k] = zipped[k]; \
                } \
                UNROLLED for (int k = 0; k < N; k++) *(lanes_##SIZE *)(out + (j + k) * os + i * SIZE) = row[k]; \
            } \
    }
TURN(1, uint8_t, ZIP(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
     ZIP(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))
TURN(2, uint16_t, ZIP(0, 8, 1, 9, 2, 10, 3, 11), ZIP(4, 12, 5, 13, 6, 14, 7, 15))
#ifndef __AVX512F__
TURN(4, uint32_t, ZIP(0, 4, 1, 5), ZIP(2, 6, 3, 7))
#endif

/* Element (i, j) of the plane is dst[j * os + i * SIZE] and src[i * as + j * SIZE]. Squares of cache lines are walked in panels that
 * the translation and second-level caches hold (64 x 512 floats measured best, 5 times as fast as row by row). The
 * last square of a row or column overlaps the one before: one by one what is left took a fifth of 1000 x 66. */
#define TRANSPOSE(SIZE) \
    static void transpose_##SIZE(char *o, ptrdiff_t os, const char *a, ptrdiff_t as, int64_t n0, int64_t n1) { \
        enum { B = LINE / SIZE, PANEL0 = 4 * B, PANEL1 = 32 * B }; \
        for (int64_t j0 = 0; j0 < n1; j0 += PANEL1) \
            for (int64_t i0 = 0; i0 < n0; i0 += PANEL0) \
                for (int64_t i = i0; i < i0 + PANEL0 && i < n0; i += B) \
                    for (int64_t j = j0; j < j0 + PANEL1 && j < n1; j += B) { \
                        const int64_t at0 = i + B <= n0 ? i : n0 - B, at1 = j + B <= n1 ? j : n1 - B; \
                        turn_##SIZE(o + at1 * os + at0 * SIZE, os, a + at0 * as + at1 * SIZE, as); \
                    } \
    }
TRANSPOSE(1) TRANSPOSE(2) TRANSPOSE(4) TRANSPOSE(8) TRANSPOSE(16)

/* A loop of one element would take twice as long wherever its six instructions happen to span two cache lines. */
#define PLANE(SIZE, T) \
    static inline void row_##SIZE(char *o, ptrdiff_t os, const char *a, ptrdiff_t as, int64_t n) { \
        if (os == SIZE && as == 0) { \
            T v = *(const T *)a; \
            for (int64_t i = 0; i < n; i++) ((T *)o)[i] = v; \
        } else if (os == SIZE && as == -SIZE) { \
            tgx_backward_##SIZE(o, a, n); \
        } else if (os == SIZE && as == 2 * SIZE) { \
            for (int64_t i = 0; i < n; i++) ((T *)o)[i] = ((const T *)a)[2 * i]; \
        } else if (os == SIZE) { \
            for (int64_t i = 0; i < n; i++, a += as) ((T *)o)[i] = *(const T *)a; \
        } else { \
            _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++, o += os, a += as) *(T *)o = *(const T *)a; \
        } \
    } \
    /* each row one element again and again, rows behind each other: whole vectors, whose rest the next row overwrites */ \
    static __attribute__((noinline)) void repeat_##SIZE(T *o, const char *a, ptrdiff_t as, int64_t n0, int64_t n1) { \
        enum { V = LINE / SIZE }; \
        const int64_t vectors = (n0 + V - 1) / V, inside = n0 * n1 - vectors * V, whole = inside < 0 || !n0 ? 0 : inside / n0 + 1; \
        int64_t j = 0; \
        if (vectors == 1) for (; j < whole; j++, a += as, o += n0) { \
            const T v = *(const T *)a; \
            for (int l = 0; l < V; l++) o[l] = v; \
        } \
        for (; j < whole; j++, a += as, o += n0) { \
            const T v = *(const T *)a; \
            T *to = o; \
            for (int64_t k = vectors; k; k--, to += V) for (int l = 0; l < V; l++) to[l] = v; \
        } \
        for (; j < n1; j++, a += as, o += n0) for (int64_t i = 0; i < n0; i++) o[i] = *(const T *)a; \
    } \
    static void plane_##SIZE(char **data, const ptrdiff_t *inner, const ptrdiff_t *outer, int64_t n0, int64_t n1) { \
        char *o = data[0]; \
        const char *a = data[1]; \
        if (inner[0] == SIZE && inner[1] == SIZE) { \
            copy_rows(o, outer[0], a, outer[1], (size_t)n0 * SIZE, n1); \
        } else if (inner[0] == SIZE && outer[1] == SIZE && inner[1] && n0 >= LINE / SIZE && n1 >= LINE / SIZE) { \
            transpose_##SIZE(o, outer[0], a, inner[1], n0, n1); \
        } else if (inner[0] == SIZE && !inner[1] && outer[0] == n0 * SIZE) { \
            repeat_##SIZE((T *)o, a, outer[1], n0, n1); \
        } else if (n0 < 16 && n1 > n0) { \
            /* short rows: walk the other way, in stretches that stay in the first-level cache */ \
            for (int64_t j = 0; j < n1; j += MANY) \
                for (int64_t i = 0; i < n0; i++) \
                    row_##SIZE(o + i * inner[0] + j * outer[0], outer[0], a + i * inner[1] + j * outer[1], outer[1], \
                               n1 - j < MANY ? n1 - j : MANY); \
        } else { \
            for (int64_t j = 0; j < n1; j++) row_##SIZE(o + j * outer[0], inner[0], a + j * outer[1], inner[1], n0); \
        } \
    }
PLANE(1, uint8_t) PLANE(2, uint16_t) PLANE(4, uint32_t) PLANE(8, uint64_t) PLANE(16, pair)

const tgx_plane ISA(tgx_copy_planes)[5] = {plane_1, plane_2, plane_4, plane_8, plane_16};
