/* gather and scatter: one operand is addressed by an index along one dimension.
 *
 * All are tgx_loop for the iterator; the addressed operand has stride 0 along that dimension.
 * aux[0].i is its size and aux[1].i its stride in bytes. */
#ifndef TGX_GATHER_H
#define TGX_GATHER_H
#include "types.h"

enum tgx_scatter { TGX_SCATTER_SET, TGX_SCATTER_ADD, TGX_SCATTER_MUL, TGX_SCATTER_MAX, TGX_SCATTER_MIN, TGX_SCATTER_KINDS };

typedef struct {
    tgx_loop check, gather[5], scatter[TGX_SCATTER_KINDS][TGX_NTYPES], mean[TGX_NTYPES];
} tgx_gather_table;

/* data: index. TGX_INDEX when one is outside. */
tgx_loop tgx_check_index(void);
/* data: out, table, index. Checks as it goes. */
tgx_loop tgx_gather_loop(int width);
/* data: index, table, source. Stops with TGX_INDEX at an index that is outside. NULL where the dtype has no such reduction. */
tgx_loop tgx_scatter_loop(int kind, int dtype);
/* data: sums, counts (int64): sums become means, rounded down for integers. */
tgx_loop tgx_mean_loop(int dtype);
#endif
