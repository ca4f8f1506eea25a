/* The dtype of a complex number's parts; any other as it is. */
#ifndef TGX_COMPLEX_PART_H
#define TGX_COMPLEX_PART_H
#include "types.h"

static inline int tgx_part(int dtype) { return dtype == TGX_C64 ? TGX_F32 : dtype == TGX_C128 ? TGX_F64 : dtype; }
#endif
