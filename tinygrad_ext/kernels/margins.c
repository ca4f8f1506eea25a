/* Losses of sets of labels: how far each label lies above the classes that are none; the loop is in loss_margins.h.
 *
 * One kernel gives the loss and its slope, which are the same comparisons. Rejected: a composite that compares a matrix of
 * labels and classes for each row, three times as long for 10 classes and with memory for every pair. */
#include "loss.h"
#include "isa.h"
#include "once.h"

static const tgx_loss_table *loops(void) {
    static const tgx_loss_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_loss);
    return chosen;
}

/* (self, target) -> (loss, slope) */
static int multilabel_margin_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *y = tgx_in(c, 1);
    if (x->dtype != TGX_F32 && x->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"multilabel_margin_loss_forward_out_frame\" not implemented for '%s': give floating "
                        "tensors", tgx_dtype_title(x->dtype));
    if (!x->rank || !tgx_same_sizes(x, y))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "multilabel_margin_loss: Expected rows of classes and a target of the same size, but got %s "
                        "and %s", tgx_shape_text(x), tgx_shape_text(y));
    tgx_need_dense(c, 0);
    tgx_need(c, 1, TGX_I64);
    tgx_output *o = tgx_fresh(c, 0, x->rank - 1, x->dtype);
    memcpy(o->dims, x->sizes, (size_t)o->rank * sizeof(int64_t));
    tgx_like(c, 1, x, x->dtype);
    return 0;
}

static int multilabel_margin_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *y = tgx_in(c, 1);
    tgx_tensor *loss = tgx_out(c, 0);
    const int64_t *label = (const int64_t *)y->data;
    tgx_margin_job job = {loss->data, tgx_out(c, 1)->data, x->data, label, x->sizes[x->rank - 1]};
    int64_t least = 0, most = -1;
    for (int64_t i = 0; i < y->count; i++) {
        int64_t t = tgx_once(label + i);
        least = t < least ? t : least, most = t > most ? t : most;
    }
    if (least < -1 || most >= job.classes)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "argument #2 'target' is out of range: multilabel_margin_loss takes class numbers from 0 to "
                        "%lld, and -1 behind the last, got %lld", (long long)job.classes - 1, (long long)(least < -1 ? least : most));
    return tgx_range(c, loops()->margin[x->dtype == TGX_F64], &job, loss->count, 1 + TGX_SMALL / (16 * (1 + job.classes)));
}
TGX_KERNEL(multilabel_margin, multilabel_margin_shape, multilabel_margin_run, 0)
