/* gather and scatter: one operand is addressed by an index along one dimension.
 *
 * All are tgx_loop for the iterator; the addressed operand has stride 0 along that dimension.
 * aux[0].i is its size and aux[1].i its stride in bytes. */
#ifndef TGX_GATHER_H
#define TGX_GATHER_H
#include "types.h"

enum tgx_scatter { TGX_SCATTER_SET, TGX_SCATTER_ADD, TGX_SCATTER_MUL, TGX_SCATTER_MAX, TGX_SCATTER_MIN, TGX_SCATTER_KINDS };

typedef struct {
    tgx_loop check;         /* data: index. TGX_INDEX when one is outside */
    tgx_loop gather[5];     /* by width; data: out, table, index. Checks as it goes */
    /* data: index, table, source. Stops with TGX_INDEX at an index that is outside. NULL where the dtype has no such reduction */
    tgx_loop scatter[TGX_SCATTER_KINDS][TGX_NTYPES];
    tgx_loop mean[TGX_NTYPES];      /* data: sums, counts (uint32): sums become means, rounded down for integers */
} tgx_gather_table;

const tgx_gather_table *tgx_gather_loops_here(void);
#endif
