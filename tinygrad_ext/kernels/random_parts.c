/* Each thread starts from a copy of the stream and skips what the others before it draw. See random_parts.h. */
#include "random_parts.h"

enum { UNIT = 1024 };

typedef struct {
    const tgx_random_whole *whole;
    const tgx_stream *stream;
    tgx_stream after;
    tgx_random_fill *fill;
    const void *what;
    int64_t unit, units;
} shared_t;

/* The last part has what is left over too. */
static int fill_part(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    shared_t *j = context;
    tgx_stream mine = *j->stream;
    const int64_t from = lo * j->unit, to = hi == j->units ? j->whole->n : hi * j->unit;
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
