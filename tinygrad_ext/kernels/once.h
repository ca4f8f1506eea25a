/* Numbers that say where to read or write, in memory that another thread may be writing at the same time.
 *
 * Such a number is read once: what was compared with the bounds is what is used. A plain read will not do, since a
 * compiler may read again instead of keeping a register. */
#ifndef TGX_ONCE_H
#define TGX_ONCE_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline int64_t tgx_once(const int64_t *p) { return *(const volatile int64_t *)p; }

enum { TGX_RUN = 512 }; /* indices taken at a time: they stay in the first cache */

/* Copy n <= TGX_RUN indices, `step` bytes apart, to memory of the caller's own. */
static inline void tgx_take_run(int64_t *own, const char *index, ptrdiff_t step, ptrdiff_t n) {
    if (step == sizeof(int64_t)) memcpy(own, index, n * sizeof(int64_t));
    else for (ptrdiff_t i = 0; i < n; i++) own[i] = *(const int64_t *)(index + i * step);
}
#endif
