/* include/tgx.h as the core reads it: in full, and beside kernels/tgx.h, which has names of its own for the same things.
 * Here the public ones get another prefix; layouts are not touched. Renaming either for good was the other way: the public
 * names are the ones that authors read, and a hundred kernels use the internal ones. */
#ifndef TGX_PUBLIC_H
#define TGX_PUBLIC_H
#define TGX_TARGET_MINOR 1
#define TGX_NO_TABLE
#define tgx_tensor tgxp_tensor
#define tgx_value tgxp_value
#define tgx_kernel tgxp_kernel
#define tgx_shape tgxp_shape
#define tgx_count tgxp_count
#define tgx_view tgxp_view
#define TGX_NONE TGXP_NONE
#define TGX_TENSOR TGXP_TENSOR
#define TGX_TENSORS TGXP_TENSORS
#define TGX_INT TGXP_INT
#define TGX_INTS TGXP_INTS
#define TGX_FLOAT TGXP_FLOAT
#define TGX_FLOATS TGXP_FLOATS
#define TGX_BOOL TGXP_BOOL
#define TGX_STRING TGXP_STRING
#define TGX_META TGXP_META
#include "../include/tgx.h"
#undef tgx_tensor
#undef tgx_value
#undef tgx_kernel
#undef tgx_shape
#undef tgx_count
#undef tgx_view
#undef TGX_NONE
#undef TGX_TENSOR
#undef TGX_TENSORS
#undef TGX_INT
#undef TGX_INTS
#undef TGX_FLOAT
#undef TGX_FLOATS
#undef TGX_BOOL
#undef TGX_STRING
#undef TGX_META
#endif
