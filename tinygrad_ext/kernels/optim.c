/* Fused updates of optim/: one call for a whole parameter group, one pass over each parameter.
 *
 * There are no results: the lists of tensors are changed. Every row is looked at before one is changed. */
#include "optim.h"
#include <math.h>
#include "isa.h"
#include "tgx.h"

static const tgx_optim_table *loops(void) {
    static const tgx_optim_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_optim);
    return chosen;
}

/* Number of rows; argument 0 holds the parameters. */
static int rows(const tgx_call *c) { return c->args[0].n; }
static tgx_tensor *row_of(const tgx_call *c, int arg, int row) { return c->args[arg].tensors[row]; }

static int plain(const tgx_tensor *t) { return t && t->flags & TGX_CONTIGUOUS && tgx_is_native_float(t->dtype); }

/* A plain tensor in the dtype and shape of the parameter, with memory of its own. */
static int fits(const tgx_tensor *t, const tgx_tensor *param) {
    return plain(t) && t->dtype == param->dtype && tgx_same_sizes(t, param) && !(t->count && t->data == param->data);
}

/* Lists 1 to `last` have a fitting tensor for each parameter. */
static int check_lists(tgx_call *c, int last) {
    for (int arg = 1; arg <= last; arg++)
        if (tgx_given(c, arg) && c->args[arg].n != rows(c))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %d parameters, and %d tensors in list %d", c->title, rows(c), c->args[arg].n, arg);
    for (int row = 0; row < rows(c); row++) {
        const tgx_tensor *param = row_of(c, 0, row);
        int fine = plain(param);
        for (int arg = 1; fine && arg <= last; arg++) fine = !tgx_given(c, arg) || fits(row_of(c, arg, row), param);
        if (!fine)
            return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "%s: row %d needs contiguous tensors of float32 or float64, all of one shape and "
                            "dtype", c->title, row);
    }
    return 0;
}

static int run(tgx_call *c, const tgx_optim_fn *fns, void *job, const tgx_tensor *param) {
    return tgx_range(c, fns[param->dtype == TGX_F64], job, param->count, TGX_SMALL);
}

/* (params, grads, bufs, lr, momentum, dampening, weight_decay, nesterov, maximize); bufs may be None */
static int sgd_shape(tgx_call *c) {
    if (check_lists(c, 2)) return TGX_FAILED;
    tgx_changes(c, 0);
    tgx_changes(c, 2);
    tgx_no_results(c);
    return 0;
}

static int sgd_run(tgx_call *c) {
    tgx_sgd_job job = {.lr = tgx_float(c, 3), .momentum = tgx_float(c, 4), .dampening = tgx_float(c, 5), .weight_decay = tgx_float(c, 6),
                       .nesterov = (int)tgx_int(c, 7), .maximize = (int)tgx_int(c, 8)};
    for (int row = 0; row < rows(c); row++) {
        job.param = row_of(c, 0, row)->data, job.grad = row_of(c, 1, row)->data;
        job.buf = tgx_given(c, 2) ? row_of(c, 2, row)->data : NULL;
        run(c, loops()->sgd, &job, row_of(c, 0, row));
    }
    return 0;
}
TGX_KERNEL(sgd_step, sgd_shape, sgd_run, 0)

enum { GRADS = 1, MEANS, SQUARES, LARGEST, STEPS, LR, BETA1, BETA2, EPS, DECAY, DECOUPLED, MAXIMIZE };

/* (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled, maximize);
 * max_exp_avg_sqs may be None. A step is one float32. */
static int adam_shape(tgx_call *c) {
    if (check_lists(c, LARGEST)) return TGX_FAILED;
    for (int row = 0; row < rows(c); row++) {
        const tgx_tensor *step = row < c->args[STEPS].n ? row_of(c, STEPS, row) : NULL;
        if (!step || step->dtype != TGX_F32 || step->count != 1)
            return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "%s: row %d needs a step counter of one float32", c->title, row);
    }
    tgx_changes(c, 0);
    for (int arg = MEANS; arg <= STEPS; arg++) tgx_changes(c, arg);
    tgx_no_results(c);
    return 0;
}

static int adam_run(tgx_call *c) {
    double lr = tgx_float(c, LR), known = -1, decay = tgx_float(c, DECAY);
    int decoupled = (int)tgx_int(c, DECOUPLED);
    tgx_adam_job job = {.beta1 = tgx_float(c, BETA1), .beta2 = tgx_float(c, BETA2), .eps = tgx_float(c, EPS),
                        .weight_decay = decoupled ? 0 : decay, .keep = decoupled ? 1 - lr * decay : 1,
                        .maximize = (int)tgx_int(c, MAXIMIZE)};
    for (int row = 0; row < rows(c); row++) {
        float *step = (float *)row_of(c, STEPS, row)->data;
        step[0] += 1;
        double t = step[0];
        if (t != known) { /* the counters of a group are nearly always equal */
            known = t;
            job.step_size = lr / (1 - pow(job.beta1, t));
            job.root = sqrt(1 - pow(job.beta2, t));
        }
        job.param = row_of(c, 0, row)->data, job.grad = row_of(c, GRADS, row)->data;
        job.mean = row_of(c, MEANS, row)->data, job.square = row_of(c, SQUARES, row)->data;
        job.largest = tgx_given(c, LARGEST) ? row_of(c, LARGEST, row)->data : NULL;
        run(c, loops()->adam, &job, row_of(c, 0, row));
    }
    return 0;
}
TGX_KERNEL(adam_step, adam_shape, adam_run, 0)
