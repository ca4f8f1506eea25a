/* Each thread starts from a copy of the stream and skips what the others before it draw. See random_parts.h. */
#include "random_parts.h"
#include "parallel.h"
#include <math.h>

enum { UNIT = 1024 };
#define LATER 0.75 /* of the part before it: who comes later has more to skip, at 0.1 ns a word where a number takes 0.25 to 0.8 */

typedef struct {
    const tgx_random_whole *whole;
    const tgx_stream *stream;
    tgx_stream after;
    tgx_random_fill *fill;
    const void *what;
    int64_t unit, units;
} shared_t;

/* Where a part begins that would begin at `at` if all were of one size. */
static int64_t place(const shared_t *j, ptrdiff_t at) {
    const double threads = tgx_get_num_threads();
    if (at == 0 || at == j->units) return at;
    return (int64_t)((double)j->units * (1 - pow(LATER, threads * (double)at / (double)j->units)) / (1 - pow(LATER, threads)));
}

/* The last part has what is left over too. */
static int fill_part(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    shared_t *j = context;
    tgx_stream mine = *j->stream;
    const int64_t from = place(j, lo) * j->unit, to = hi == j->units ? j->whole->n : place(j, hi) * j->unit;
    tgx_random_skip(&mine, from * j->whole->words);
    j->fill(j->what, &mine, (char *)j->whole->out + from * j->whole->size, to - from);
    if (hi == j->units) j->after = mine;
    return 0;
}

void tgx_random_shared(tgx_call *c, tgx_stream *s, const tgx_random_whole *whole, tgx_random_fill *fill, const void *what) {
    const int64_t unit = whole->rows ? 1 : UNIT, units = whole->n / unit;
    if (!whole->words || whole->n * whole->words <= TGX_SMALL || units < 2) {
        fill(what, s, whole->out, whole->n);
        return;
    }
    shared_t job = {.whole = whole, .stream = s, .fill = fill, .what = what, .unit = unit, .units = units};
    tgx_range_once(c, fill_part, &job, units, 1 + TGX_SMALL / (unit * whole->words));
    *s = job.after;
}
