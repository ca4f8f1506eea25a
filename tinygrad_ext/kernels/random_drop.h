/* Dropout of contiguous numbers of float32 or float64: times 0 or `value`, and a byte for each that says which of them. */
#ifndef TGX_RANDOM_DROP_H
#define TGX_RANDOM_DROP_H
#include "random.h"

/* Draws as tgx_random_choice does, and multiplies n numbers x by what that would give. `out` may be `x`. */
void tgx_random_drop(tgx_stream *s, int type, const void *x, void *out, uint8_t *kept, int64_t n, double p, double value);
/* Multiplies by `value` what was kept, and by 0 what was not. `out` may be `x`. */
void tgx_random_kept(int type, const void *x, void *out, const uint8_t *kept, int64_t n, double value);
#endif
