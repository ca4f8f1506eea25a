/* Each thread starts from a copy of the stream and skips what the others before it draw. See random_parts.h. */
#include "random_parts.h"

enum { UNIT = 1024 };          /* elements, a multiple of the 16 that normal numbers are made of */

typedef struct {
    const tgx_stream *stream;
    tgx_stream after;
    tgx_random_fill *fill;
    const void *what;
    char *out;
    int64_t n, units;
    int size, words;
} shared_t;

/* The last part has what is left over too. */
static int fill_part(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    shared_t *j = context;
    tgx_stream mine = *j->stream;
    const int64_t from = lo * UNIT, to = hi == j->units ? j->n : hi * UNIT;
    tgx_random_skip(&mine, from * j->words);
    j->fill(j->what, &mine, j->out + from * j->size, to - from);
    if (hi == j->units) j->after = mine;
    return 0;
}

void tgx_random_shared(tgx_call *c, tgx_stream *s, tgx_random_fill *fill, const void *what, void *out, int size, int64_t n, int words) {
    if (!words || n <= TGX_SMALL) {
        fill(what, s, out, n);
        return;
    }
    shared_t job = {.stream = s, .fill = fill, .what = what, .out = out, .n = n, .units = n / UNIT, .size = size, .words = words};
    tgx_range_once(c, fill_part, &job, job.units, TGX_SMALL / UNIT);
    *s = job.after;
}
