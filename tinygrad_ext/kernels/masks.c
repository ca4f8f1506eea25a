/* Chooses the loops of masks_isa.h for this machine. See masks.h. */
#include "masks.h"
#include "isa.h"

extern const tgx_mask_table tgx_masks_base, tgx_masks_avx2, tgx_masks_avx512;

const tgx_mask_table *tgx_mask_loops(void) {
    static const tgx_mask_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_masks);
    return chosen;
}
