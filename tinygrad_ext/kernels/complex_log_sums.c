/* logcumsumexp of complex numbers: the running sum of exponentials over the element with the largest real part so far, in double
 * precision. Its logarithm is the one that adding one after the other would find: from the larger of sum and element it moves
 * less than half a turn.
 *
 * Where a larger element comes the sum shrinks by it, else the element's share is added: one exponential each, and a logarithm.
 * Since shares are taken by both parts, a first element, and one beside which the others are nothing, stays as it is. */
#include <complex.h>
#include <math.h>
#include "complex_log_sums.h"
#include "numbers.h"
#include "tgx.h"

#define TURN 6.283185307179586477

/* Beside an infinite element finite ones are nothing, and what is NaN stays so. */
static tgx_c128 beyond(tgx_c128 last, tgx_c128 z) {
    if (z != z || (last != last && creal(last) != INFINITY)) return __builtin_complex((double)NAN, (double)NAN);
    if (creal(z) != INFINITY) return last;
    return creal(last) == INFINITY ? clog(cexp(last) + cexp(z)) : z;
}

static tgx_c128 next(tgx_complex_line *s, tgx_c128 z) {
    const double size = creal(z), last = creal(s->last);
    if (z != z || s->last != s->last || size == INFINITY || last == INFINITY) return beyond(s->last, z);
    if (size == -INFINITY) return s->last;
    if (size > creal(s->most)) {
        const tgx_c128 share = s->sum == 0 ? 0 : cexp(s->most - z);
        s->sum = TIMES(s->sum, share) + 1;
        s->most = z;
    } else
        s->sum += cexp(z - s->most);
    if (s->sum == 0) return -INFINITY;
    const double from = last >= size ? cimag(s->last) : cimag(z);
    const tgx_c128 log = clog(s->sum) + s->most;
    return __builtin_complex(creal(log), cimag(log) + rint((from - cimag(log)) / TURN) * TURN);
}

int tgx_complex_log_sums(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    tgx_call *c = given;
    const ptrdiff_t n = c->notes[0], inner = c->notes[1];
    const int wide = tgx_in(c, 0)->dtype == TGX_C128;
    const char *x = tgx_in(c, 0)->data;
    char *out = tgx_out(c, 0)->data;
    tgx_complex_line *lines = (tgx_complex_line *)c->scratch + lo * inner;
    for (ptrdiff_t block = lo; block < hi; block++, lines += inner) {
        for (ptrdiff_t j = 0; j < inner; j++) lines[j] = (tgx_complex_line){-INFINITY, 0, -INFINITY};
        for (ptrdiff_t i = block * n * inner, row = 0; row < n; row++)
            for (ptrdiff_t j = 0; j < inner; j++, i++) {
                const tgx_c128 z = wide ? ((const tgx_c128 *)x)[i] : ((const tgx_c64 *)x)[i];
                lines[j].last = next(lines + j, z);
                if (wide) ((tgx_c128 *)out)[i] = lines[j].last;
                else ((tgx_c64 *)out)[i] = (tgx_c64)lines[j].last;
            }
    }
    return 0;
}
