/* The loop that copies elements of dtype `from` to dtype `to`: data[0] out, data[1] in. */
#ifndef TGX_CASTS_H
#define TGX_CASTS_H
#include "types.h"
tgx_loop tgx_cast_loop(int from, int to);
#endif
