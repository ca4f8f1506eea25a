/* What a library of a plugin's pointwise loops exports, see core/loops/loop_tables.pyx.
 *
 * The loops have the signature of the built-in ones, so a library is for one version of this struct and of types.h; raise
 * TGX_LOOP_LIBRARY when a scalar, a loop or a formula means something else. A dtype more at the end of the table is no reason:
 * a library says how many it knows. */
#ifndef TGX_LOOP_LIBRARY_H
#define TGX_LOOP_LIBRARY_H
#include "emit_formula.h"
#include "wide.h"

#define TGX_LOOP_LIBRARY 1

typedef struct {
    int32_t version, dtypes;
    const tgx_loop_row *loops[3];           /* base, avx2, avx512; each ends with a row without a name */
    const tgx_formula_row *formulas;
    const char *const *said;                /* for each row of loops, what it was compiled from */
    int (**wide)(const tgx_wide *, char **, const ptrdiff_t *, ptrdiff_t, const tgx_scalar *); /* the core puts its tgx_wide_loop here */
} tgx_loop_library;
#endif
