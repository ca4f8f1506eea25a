/* Connectionist temporal classification: the loss of sequences of labels over sequences of log-probabilities, and its derivative.
 *
 * Labels with blanks between and around them are the states of a path; the forward recursion adds up the probability of all ways
 * to each state, the derivative that of all ways from it (Graves et al., Connectionist Temporal Classification, 2006). Both run in
 * logarithms and in double: with probabilities and a factor a step, states that only become likely later would be lost. States
 * that cannot be reached yet, or from which the end cannot be reached, are left out. Each sample is a piece of work of its own.
 * Rejected: keeping the forward recursion for the derivative, which is the larger part of memory and half an exponential. */
#include <math.h>
#include "once.h"
#include "tgx.h"

enum { LOG_PROBS, TARGETS, INPUT_LENGTHS, TARGET_LENGTHS, BLANK, ZERO_INFINITY, GRAD };

typedef struct {
    tgx_call *c;
    const tgx_tensor *log_probs;
    int64_t steps, samples, classes, width, blank;    /* width: of targets */
    int64_t room;              /* doubles of scratch for a sample */
    int zero_infinity;
} ctc;

typedef struct {
    const ctc *k;
    const int64_t *target;
    int64_t n, steps, labels, states;
} sample;

static inline double lp(const sample *s, int64_t t, int64_t label) {
    const tgx_tensor *x = s->k->log_probs;
    int64_t at = (t * s->k->samples + s->n) * s->k->classes + label;
    return x->dtype == TGX_F64 ? ((const double *)x->data)[at] : ((const float *)x->data)[at];
}
static inline int64_t label(const sample *s, int64_t state) { return state & 1 ? s->target[state >> 1] : s->k->blank; }
/* Whether a path may go from state - 2 to this one: between different labels. */
static inline int skips(const sample *s, int64_t state) { return state > 1 && (state & 1) && s->target[state >> 1] != s->target[(state >> 1) - 1]; }
/* States that a path can be in at step t: not further than two a step, and not so far back that it cannot end. */
static inline int64_t first_state(const sample *s, int64_t t) {
    int64_t at = s->states - 2 * (s->steps - t);
    return at > 0 ? at : 0;
}
static inline int64_t last_state(const sample *s, int64_t t) { return 2 * t + 2 < s->states ? 2 * t + 2 : s->states; }

static inline double add_logs(double a, double b, double c) {
    double most = a > b ? a : b;
    most = most > c ? most : c;
    return most == -INFINITY || most != most ? most : most + log(exp(a - most) + exp(b - most) + exp(c - most));
}

/* The forward recursion into rows of `step` doubles, or into two rows in turn for step 0. Returns the loss. */
static double forward(const sample *s, double *rows, int64_t step) {
    int64_t n = s->states;
    if (!s->steps) return s->labels ? INFINITY : 0;
    double *before = NULL, *now = rows;
    for (int64_t t = 0; t < s->steps; t++) {
        now = rows + (step ? t * step : (t & 1) * n);
        for (int64_t i = 0; i < n; i++) now[i] = -INFINITY;
        for (int64_t i = first_state(s, t); i < last_state(s, t); i++) {
            double a = !t ? (i < 2 ? 0 : -INFINITY)
                          : add_logs(before[i], i ? before[i - 1] : -INFINITY, skips(s, i) ? before[i - 2] : -INFINITY);
            now[i] = a + lp(s, t, label(s, i));
        }
        before = now;
    }
    return -add_logs(now[n - 1], n > 1 ? now[n - 2] : -INFINITY, -INFINITY);
}

/* Read and check the lengths and labels of sample n; labels are copied, as another thread may be writing to them. */
static int open_sample(const ctc *k, int64_t n, sample *s, int64_t *own) {
    tgx_call *c = k->c;
    int64_t steps = tgx_once((const int64_t *)tgx_in(c, INPUT_LENGTHS)->data + n);
    int64_t labels = tgx_once((const int64_t *)tgx_in(c, TARGET_LENGTHS)->data + n);
    if (steps < 0 || steps > k->steps)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected input_lengths to have value at least 0 and at most %lld, but got value %lld: ctc_loss "
                        "has so many steps", (long long)k->steps, (long long)steps);
    if (labels < 0 || labels > k->width)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected target_lengths to have value at least 0 and at most %lld, but got value %lld: ctc_loss's "
                        "targets are not longer", (long long)k->width, (long long)labels);
    for (int64_t i = 0; i < labels; i++) {
        own[i] = tgx_once((const int64_t *)tgx_in(c, TARGETS)->data + n * k->width + i);
        if (own[i] < 0 || own[i] >= k->classes)
            return tgx_fail(c, TGX_INDEX_ERROR, "ctc_loss: targets hold %lld, but labels are class numbers from 0 to %lld", (long long)own[i],
                            (long long)k->classes - 1);
    }
    *s = (sample){k, own, n, steps, labels, 2 * labels + 1};
    return 0;
}

static void put(const tgx_tensor *to, int64_t at, double value) {
    if (to->dtype == TGX_F64) ((double *)to->data)[at] = value;
    else ((float *)to->data)[at] = (float)value;
}

static int losses(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    ctc *k = context;
    for (ptrdiff_t n = lo; n < hi; n++) {
        double *room = (double *)k->c->scratch + n * k->room;
        sample s;
        if (open_sample(k, n, &s, (int64_t *)room)) return TGX_FAILED;
        double loss = forward(&s, room + k->width, 0);
        put(tgx_out(k->c, 0), n, k->zero_infinity && loss == INFINITY ? 0 : loss);
    }
    return 0;
}

/* What of a step's probability goes to each label, taken from the label's own: in `own` for the classes of a step. */
static void step_gradient(const sample *s, int64_t t, const double *alpha, const double *beta, double loss, double scale, double *own) {
    int64_t classes = s->k->classes, at = (t * s->k->samples + s->n) * classes;
    for (int64_t j = 0; j < classes; j++) own[j] = loss == INFINITY ? NAN : 0;
    if (loss != INFINITY)
        for (int64_t i = first_state(s, t); i < last_state(s, t); i++)
            if (alpha[i] != -INFINITY) own[label(s, i)] += exp(alpha[i] + beta[i] - lp(s, t, label(s, i)) + loss);
    for (int64_t j = 0; j < classes; j++) put(tgx_out(s->k->c, 0), at + j, (exp(lp(s, t, j)) - own[j]) * scale);
}

static void backward(const sample *s, double *alpha, int64_t step, double *beta, double *own, double scale) {
    int64_t n = s->states;
    double loss = forward(s, alpha, step), *now = beta, *after = beta + n;
    if (loss == INFINITY && s->k->zero_infinity) return;
    for (int64_t t = s->steps - 1; t >= 0; t--) {
        for (int64_t i = 0; i < n; i++) now[i] = -INFINITY;
        for (int64_t i = first_state(s, t); i < last_state(s, t); i++) {
            double b = t == s->steps - 1 ? 0
                                         : add_logs(after[i], i + 1 < n ? after[i + 1] : -INFINITY,
                                                    i + 2 < n && skips(s, i + 2) ? after[i + 2] : -INFINITY);
            now[i] = b + lp(s, t, label(s, i));
        }
        step_gradient(s, t, alpha + t * step, now, loss, scale, own);
        double *swap = now;
        now = after, after = swap;
    }
}

static int gradients(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    ctc *k = context;
    const tgx_tensor *g = tgx_in(k->c, GRAD);
    int64_t states = 2 * k->width + 1;
    for (ptrdiff_t n = lo; n < hi; n++) {
        double *room = (double *)k->c->scratch + n * k->room, *rest = room + k->width;
        sample s;
        if (open_sample(k, n, &s, (int64_t *)room)) return TGX_FAILED;
        double scale = g->dtype == TGX_F64 ? ((const double *)g->data)[n] : ((const float *)g->data)[n];
        backward(&s, rest + 2 * states + k->classes, states, rest, rest + 2 * states, scale);
    }
    return 0;
}

/* ---- the kernels: (log_probs, targets, input_lengths, target_lengths, blank, zero_infinity[, grad]) --------------- */

static int check_lengths(tgx_call *c, int arg, const char *name, int64_t n) {
    const tgx_tensor *t = tgx_in(c, arg);
    if (t->rank != 1 || t->sizes[0] != n)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s must be of size batch_size: ctc_loss got %s %s for a batch of %lld", name, name,
                        tgx_shape_text(t), (long long)n);
    tgx_need(c, arg, TGX_I64);
    return 0;
}

static int open(tgx_call *c, ctc *k, int derivative) {
    const tgx_tensor *x = tgx_in(c, LOG_PROBS), *targets = tgx_in(c, TARGETS);
    if (x->dtype != TGX_F32 && x->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"ctc_loss\" not implemented for '%s': convert log_probs to float32 or float64 first",
                        tgx_dtype_title(x->dtype));
    if (x->rank != 3 || targets->rank != 2 || targets->sizes[0] != x->sizes[1])
        return tgx_fail(c, TGX_RUNTIME_ERROR, "ctc_loss: log_probs of shape (steps, batch, classes) and targets of shape (batch, labels) are "
                        "needed, got %s and %s", tgx_shape_text(x), tgx_shape_text(targets));
    *k = (ctc){c, x, x->sizes[0], x->sizes[1], x->sizes[2], targets->sizes[1], tgx_int(c, BLANK), 0, (int)tgx_int(c, ZERO_INFINITY)};
    if (k->blank < 0 || k->blank >= k->classes)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "blank must be in label range: ctc_loss got blank %lld of %lld classes", (long long)k->blank,
                        (long long)k->classes);
    int64_t states = 2 * k->width + 1;
    k->room = k->width + 2 * states + (derivative ? k->classes + k->steps * states : 0);
    return 0;
}

static int shape(tgx_call *c, int derivative) {
    ctc k;
    if (open(c, &k, derivative)) return TGX_FAILED;
    if (check_lengths(c, INPUT_LENGTHS, "input_lengths", k.samples) || check_lengths(c, TARGET_LENGTHS, "target_lengths", k.samples))
        return TGX_FAILED;
    tgx_need_dense(c, LOG_PROBS);
    tgx_need(c, TARGETS, TGX_I64);
    if (derivative && (tgx_in(c, GRAD)->rank != 1 || tgx_in(c, GRAD)->sizes[0] != k.samples))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "grad must be of size batch_size: ctc_loss backward got grad of shape %s for a batch of %lld",
                        tgx_shape_text(tgx_in(c, GRAD)), (long long)k.samples);
    if (derivative) tgx_need(c, GRAD, k.log_probs->dtype);
    if (derivative) tgx_like(c, 0, k.log_probs, k.log_probs->dtype);
    else tgx_fresh(c, 0, 1, k.log_probs->dtype)->dims[0] = k.samples;
    c->scratch_bytes = k.samples * k.room * (int64_t)sizeof(double);
    c->work = 1 + k.samples * k.steps * (2 * k.width + 1) * 8;
    return 0;
}
static int ctc_loss_shape(tgx_call *c) { return shape(c, 0); }
static int ctc_loss_backward_shape(tgx_call *c) { return shape(c, 1); }

static int ctc_loss_run(tgx_call *c) {
    ctc k;
    if (open(c, &k, 0)) return TGX_FAILED;
    return tgx_range(c, losses, &k, k.samples, 1 + TGX_SMALL / (8 * (1 + k.steps * (2 * k.width + 1))));
}
static int ctc_loss_backward_run(tgx_call *c) {
    ctc k;
    tgx_tensor *out = tgx_out(c, 0);
    if (open(c, &k, 1)) return TGX_FAILED;
    memset(out->data, 0, (size_t)(out->count * tgx_itemsize[out->dtype]));
    return tgx_range(c, gradients, &k, k.samples, 1 + TGX_SMALL / (16 * (1 + k.steps * (2 * k.width + 1))));
}
TGX_KERNEL(ctc_loss, ctc_loss_shape, ctc_loss_run, 0)
TGX_KERNEL(ctc_loss_backward, ctc_loss_backward_shape, ctc_loss_backward_run, 0)
