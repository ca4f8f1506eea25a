#include "advanced.h"
#include "isa.h"

extern const tgx_picks_table tgx_picks_loops_base, tgx_picks_loops_avx2, tgx_picks_loops_avx512;

static const tgx_picks_table *best(void) {
    static const tgx_picks_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_picks_loops);
    return chosen;
}

int64_t tgx_index_offsets(int64_t *offset, const int64_t *index, int64_t n, int64_t size, ptrdiff_t stride, int flags) {
    return best()->offsets(offset, index, n, size, stride, flags);
}

void tgx_picks_run(const tgx_picks *p, int move, int64_t lo, int64_t hi) { best()->run(p, move, lo, hi); }

void tgx_picks_plan(tgx_picks *p) {
    int n = 0;
    for (int d = 0; d < p->ninner; d++) {
        if (p->inner[d] == 1) continue;
        if (n > 0 && p->inner_table[n - 1] == p->inner_table[d] * p->inner[d]
            && p->inner_dense[n - 1] == p->inner_dense[d] * p->inner[d]) {
            p->inner[n - 1] *= p->inner[d];
            p->inner_table[n - 1] = p->inner_table[d];
            p->inner_dense[n - 1] = p->inner_dense[d];
            continue;
        }
        p->inner[n] = p->inner[d];
        p->inner_table[n] = p->inner_table[d];
        p->inner_dense[n] = p->inner_dense[d];
        n++;
    }
    p->ninner = n;
}
