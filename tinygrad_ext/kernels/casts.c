/* Chooses the conversion loop of two dtypes (copy_isa.h has them), and plain copies by element size. */
#include "casts.h"
#include "isa.h"

typedef const tgx_loop cast_row[TGX_NTYPES];
extern cast_row tgx_cast_table_base[TGX_NTYPES], tgx_cast_table_avx2[TGX_NTYPES], tgx_cast_table_avx512[TGX_NTYPES];

#define COPY(SIZE, T) \
    static int copy_##SIZE(char **data, const ptrdiff_t *s, ptrdiff_t n, const tgx_scalar *aux) { \
        char *o = data[0]; const char *a = data[1]; \
        (void)aux; \
        if (s[0] == SIZE && s[1] == SIZE) memmove(o, a, (size_t)n * SIZE); \
        else if (s[0] == SIZE && s[1] == 0) { T v = *(const T *)a, *op = (T *)o; for (ptrdiff_t i = 0; i < n; i++) op[i] = v; } \
        else for (ptrdiff_t i = 0; i < n; i++, o += s[0], a += s[1]) *(T *)o = *(const T *)a; \
        return 0; \
    }
COPY(1, uint8_t) COPY(2, uint16_t) COPY(4, uint32_t) COPY(8, uint64_t) COPY(16, tgx_c128)

tgx_loop tgx_cast_loop(int from, int to) {
    static const int size[TGX_NTYPES] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
    if (from != to) {
        static int level = -1;
        if (level < 0) level = tgx_cpu_level();
        return level == 2 ? tgx_cast_table_avx512[from][to] : level == 1 ? tgx_cast_table_avx2[from][to] : tgx_cast_table_base[from][to];
    }
    switch (size[to]) {
        case 1: return copy_1;
        case 2: return copy_2;
        case 4: return copy_4;
        case 8: return copy_8;
        default: return copy_16;
    }
}
