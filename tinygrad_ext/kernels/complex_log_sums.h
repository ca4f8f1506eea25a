/* What the running logarithm of sums keeps of a line, and the loop over lines of complex numbers. */
#ifndef TGX_COMPLEX_LOG_SUMS_H
#define TGX_COMPLEX_LOG_SUMS_H
#include "types.h"

/* most: the element with the largest real part so far; sum: of the exponentials over it; last: the last result. */
typedef struct { tgx_c128 most, sum, last; } tgx_complex_line;

int tgx_complex_log_sums(void *call, ptrdiff_t lo, ptrdiff_t hi);
#endif
