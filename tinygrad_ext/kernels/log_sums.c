/* logcumsumexp: the running sum of exponentials over the largest element so far, in double precision as all running sums are.
 * Where the largest changes the sum shrinks by it, else the element's share is added: one exponential each, and a logarithm.
 *
 * Rejected: the running maximum, two exponentials, a scan and a logarithm as ops, which took 5.4 us for 8 elements. */
#include <math.h>
#include "complex_log_sums.h"
#include "softmax.h"
#include "tgx.h"
#include "vecmath.h"

static int log_sums_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (tgx_wrap_arg(c, 1, t->rank)) return TGX_FAILED;
    if (t->dtype != TGX_F32 && t->dtype != TGX_F64 && !tgx_is_complex(t->dtype))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"logcumsumexp\" not implemented for '%s': convert the argument with .float()",
                        tgx_dtype_title(t->dtype));
    const int dim = (int)tgx_int(c, 1);
    c->notes[0] = t->rank ? t->sizes[dim] : 1;
    c->notes[1] = 1;
    for (int d = dim + 1; d < t->rank; d++) c->notes[1] *= t->sizes[d];
    const int64_t line = tgx_is_complex(t->dtype) ? sizeof(tgx_complex_line) : 2 * sizeof(double);
    c->scratch_bytes = c->notes[0] ? t->count / c->notes[0] * line : 0;
    tgx_need_dense(c, 0);
    tgx_like(c, 0, t, t->dtype);
    return 0;
}

enum { PART = 128 };

/* Where an element's line keeps its largest element and its sum: lines stand side by side, n rows of them in a block. */
typedef struct { double (*state)[2]; ptrdiff_t j, row; } place_t;

static __attribute__((noinline)) double *next(place_t *p, ptrdiff_t inner, ptrdiff_t n) {
    double *found = p->state[p->j];
    if (++p->j == inner) {
        p->j = 0;
        if (++p->row == n) p->row = 0, p->state += inner;
    }
    return found;
}

/* log(x) + more, of eight and eight. Compiled once: for each instruction set it would be a third quicker, and a kilobyte more. */
static __attribute__((noinline)) void logs(ptrdiff_t n, double *restrict x, const double *restrict more) {
    _Pragma("omp simd") for (ptrdiff_t i = 0; i < (n & -8); i++) x[i] = vm_log_f64(x[i]) + more[i];
}

/* Few lines of it are worth vectors, which would double its size. */
__attribute__((optimize("no-tree-vectorize"))) static int blocks(void *given, ptrdiff_t lo, ptrdiff_t hi) {
    tgx_call *c = given;
    const ptrdiff_t n = c->notes[0], inner = c->notes[1], end = hi * n * inner;
    const int wide = tgx_in(c, 0)->dtype == TGX_F64;
    const char *x = tgx_in(c, 0)->data;
    char *out = tgx_out(c, 0)->data, grown[PART];
    double less[PART] = {0}, most[PART] = {0}, sum[PART] = {0};
    const double zero = 0, one = 1;
    place_t at = {(double (*)[2])c->scratch + lo * inner, 0, 0};
    for (ptrdiff_t j = 0; j < (hi - lo) * inner; j++) at.state[j][0] = -INFINITY, at.state[j][1] = 0;
    for (ptrdiff_t first = lo * n * inner; first < end; first += PART) {
        const ptrdiff_t m = end - first < PART ? end - first : PART;
        place_t again = at;
        if (wide) memcpy(less, x + first * 8, (size_t)m * 8);
        else
            for (ptrdiff_t i = 0; i < m; i++) less[i] = ((const float *)x)[first + i];
        for (ptrdiff_t i = 0; i < m; i++) {
            double *line = next(&at, inner, n), old = line[0];
            const double v = less[i];
            less[i] = v == old ? 0 : -fabs(v - old); /* equal ones may be infinite */
            grown[i] = v > old;
            most[i] = line[0] = v > old ? v : old;
        }
        tgx_softmax_job exps = {.a = (char *)less, .b = (char *)&zero, .c = (char *)&one, .out = (char *)less, .n = m, .inner = 1};
        tgx_softmax_loops()->scaled[1](&exps, 0, 1);
        for (ptrdiff_t i = 0; i < m; i++) {
            double *line = next(&again, inner, n);
            sum[i] = line[1] = grown[i] ? line[1] * less[i] + 1 : line[1] + less[i];
        }
        logs((m + 7) & -8, sum, most);
        if (wide) memcpy(out + first * 8, sum, (size_t)m * 8);
        else
            for (ptrdiff_t i = 0; i < m; i++) ((float *)out)[first + i] = (float)sum[i];
    }
    return 0;
}

static int log_sums_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (t->count == 0) return 0;
    const int64_t block = c->notes[0] * c->notes[1];
    return tgx_range(c, tgx_is_complex(t->dtype) ? tgx_complex_log_sums : blocks, c, t->count / block, 1 + TGX_SMALL / 4 / block);
}
TGX_KERNEL(log_sums, log_sums_shape, log_sums_run, 0)
