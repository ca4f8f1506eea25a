/* Chooses the copies of planes_isa.h for this machine. See planes.h. */
#include "planes.h"
#include "isa.h"

extern const tgx_plane tgx_copy_planes_base[5], tgx_copy_planes_avx2[5], tgx_copy_planes_avx512[5];

tgx_plane tgx_copy_plane(int size) {
    static const tgx_plane (*chosen)[5];
    if (!chosen) chosen = TGX_PICK(tgx_copy_planes);
    return (*chosen)[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4];
}
