#include "gather.h"
#include "isa.h"

extern const tgx_gather_table tgx_gathers_base, tgx_gathers_avx2, tgx_gathers_avx512;

static const tgx_gather_table *best(void) {
    static const tgx_gather_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_gathers);
    return chosen;
}

tgx_loop tgx_check_index(void) { return best()->check; }

tgx_loop tgx_gather_loop(int width) {
    return best()->gather[width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : width == 8 ? 3 : 4];
}

tgx_loop tgx_scatter_loop(int kind, int dtype) { return best()->scatter[kind][dtype]; }

tgx_loop tgx_mean_loop(int dtype) { return best()->mean[dtype]; }
