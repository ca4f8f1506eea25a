/* Layers of recurrent units, in one direction and over all steps, and their derivatives; see recurrent.h. */
#include "isa.h"
#include "recurrent.h"

static const tgx_recurrent_table *loops(void) {
    static const tgx_recurrent_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_recurrent);
    return chosen;
}

/* Where the arguments of an op stand; -1: it has none such. `gates`: gates of the forward, acts of the backward. */
typedef struct { int gates, hidden, cell, weight, sizes, parts, stored; } places;

static int odd(tgx_call *c, int arg, const char *name, const char *wanted) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %s must be of shape %s, but got %s", c->title, name, wanted, tgx_shape_text(tgx_in(c, arg)));
}

/* Sizes and dtypes of the arguments: gates (steps, batch, parts n), or packed (rows, parts n). */
static int check(tgx_call *c, const places *p) {
    const tgx_tensor *gates = tgx_in(c, p->gates), *hidden = tgx_in(c, p->hidden), *weight = tgx_in(c, p->weight);
    const tgx_value *sizes = &c->args[p->sizes];
    if (gates->dtype != TGX_F32 && gates->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the input to float32 or float64 first",
                        c->title, tgx_dtype_title(gates->dtype));
    if (hidden->dtype != gates->dtype || weight->dtype != gates->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: input, states and weights must have one dtype, but got %s, %s and %s", c->title,
                        tgx_dtype_name(gates->dtype), tgx_dtype_name(hidden->dtype), tgx_dtype_name(weight->dtype));
    if (hidden->rank != 2) return odd(c, p->hidden, "the state", "(batch, features)");
    const int64_t batch = hidden->sizes[0], n = hidden->sizes[1];
    if (weight->rank != 2 || weight->sizes[0] != p->parts * n || weight->sizes[1] != n)
        return odd(c, p->weight, "the weights of the state", "(gates times features, features)");
    if (gates->rank != (sizes->n ? 2 : 3) || gates->sizes[gates->rank - 1] != p->stored * n || (gates->rank == 3 && gates->sizes[1] != batch))
        return odd(c, p->gates, "what comes from the inputs", "(steps, batch, gates times features), or packed");
    int64_t total = 0;
    for (int t = 0; t < sizes->n; t++) {
        if (sizes->ints[t] < 1 || sizes->ints[t] > (t ? sizes->ints[t - 1] : batch) || (!t && sizes->ints[t] != batch)) total = INT64_MIN / 2;
        total += sizes->ints[t];
    }
    if (sizes->n && total != gates->sizes[0])
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: batch_sizes %s must fall from %lld and sum up to %lld rows", c->title,
                        tgx_sizes_text(sizes->ints, sizes->n), (long long)batch, (long long)gates->sizes[0]);
    return 0;
}

/* One more tensor: a state, or a gradient, of the sizes of `like`. */
static int goes_with(tgx_call *c, int arg, const tgx_tensor *like, const char *name) {
    if (arg < 0 || !tgx_given(c, arg)) return 0;
    const tgx_tensor *t = tgx_in(c, arg);
    if (!tgx_same_sizes(t, like))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %s must be of shape %s, but got %s", c->title, name, tgx_shape_text(like), tgx_shape_text(t));
    tgx_need(c, arg, like->dtype);
    return 0;
}

static void need_all(tgx_call *c, const places *p) {
    tgx_need_dense(c, p->gates), tgx_need_dense(c, p->hidden), tgx_need_dense(c, p->weight);
    if (p->cell >= 0) tgx_need_dense(c, p->cell);
}

/* A result of all steps with `width` features. */
static void of_steps(tgx_call *c, int k, const tgx_tensor *gates, int64_t width) {
    tgx_output *o = tgx_fresh(c, k, gates->rank, gates->dtype);
    for (int d = 0; d < gates->rank; d++) o->dims[d] = gates->sizes[d];
    o->dims[gates->rank - 1] = width;
}

/* Scratch: the laid out weights, and a row of zeros for all gates. */
static void ask_scratch(tgx_call *c, int64_t n, int parts, int dtype) {
    c->scratch_bytes = (tgx_packed_count(parts * n, n) + tgx_packed_count(n, parts * n) + 4 * n) * tgx_itemsize[dtype];
}

static void open_job(tgx_call *c, const places *p, tgx_recurrent_job *job, int backward) {
    const tgx_tensor *gates = tgx_in(c, p->gates), *hidden = tgx_in(c, p->hidden), *weight = tgx_in(c, p->weight);
    const tgx_value *sizes = &c->args[p->sizes];
    const int64_t n = hidden->sizes[1], size = tgx_itemsize[gates->dtype], parts = p->parts;
    job->n = n, job->batch = hidden->sizes[0], job->reverse = (int)tgx_int(c, p->sizes + 1);
    job->sizes = sizes->n ? sizes->ints : NULL, job->steps = sizes->n ? sizes->n : gates->sizes[0];
    job->total = sizes->n ? gates->sizes[0] : job->steps * job->batch;
    job->products = tgx_packed(gates->dtype);
    char *room = c->scratch;
    job->zeros = room;
    memset(room, 0, (size_t)(4 * n * size));
    char *packed = room + 4 * n * size;
    job->packed = packed;
    tgx_shape s = {.n = parts * n, .k = n, .b_row = 1, .b_col = n};
    if (backward) s = (tgx_shape){.n = n, .k = parts * n, .b_row = n, .b_col = 1};
    else if (parts == 3) s.n = 2 * n;
    job->products->lay(&s, weight->data, packed);
    if (!backward && parts == 3) {
        job->packed_new = packed + tgx_packed_count(2 * n, n) * size;
        s.n = n;
        job->products->lay(&s, weight->data + 2 * n * n * size, (char *)job->packed_new);
    }
}

enum { LEAST_ROWS = 16, LEAST_WORK = 2 << 20 };

static int run(tgx_call *c, const tgx_recurrent_fn *fns, tgx_recurrent_job *job, int dtype, int parts) {
    double row = (double)job->steps * (double)(parts * job->n * job->n) + 1;
    ptrdiff_t grain = LEAST_ROWS + (ptrdiff_t)(LEAST_WORK / row);
    return tgx_range(c, fns[dtype == TGX_F64], job, job->batch, grain);
}

static void *data_of(const tgx_call *c, int arg) { return tgx_given(c, arg) ? tgx_in(c, arg)->data : NULL; }

/* ---- long short-term memory: (gates, hidden, cell, weight, sizes, reverse) -> (out, last, last_cell, cells, acts) - */

static const places LSTM = {0, 1, 2, 3, 4, 4, 4};

static int lstm_shape(tgx_call *c) {
    const tgx_tensor *gates = tgx_in(c, 0), *hidden = tgx_in(c, 1);
    if (check(c, &LSTM) || goes_with(c, 2, hidden, "the cell")) return TGX_FAILED;
    need_all(c, &LSTM);
    const int64_t n = hidden->sizes[1];
    of_steps(c, 0, gates, n), of_steps(c, 3, gates, n), of_steps(c, 4, gates, 4 * n);
    tgx_like(c, 1, hidden, gates->dtype), tgx_like(c, 2, hidden, gates->dtype);
    ask_scratch(c, n, 4, gates->dtype);
    return 0;
}

static int lstm_run(tgx_call *c) {
    tgx_recurrent_job job = {.gates = tgx_in(c, 0)->data, .first = tgx_in(c, 1)->data, .first_cell = tgx_in(c, 2)->data,
                             .out = tgx_out(c, 0)->data, .state = tgx_out(c, 1)->data, .state_cell = tgx_out(c, 2)->data,
                             .cells = tgx_out(c, 3)->data, .acts = tgx_out(c, 4)->data};
    open_job(c, &LSTM, &job, 0);
    return run(c, loops()->lstm, &job, tgx_in(c, 0)->dtype, 4);
}
TGX_KERNEL(lstm_steps, lstm_shape, lstm_run, 0)

/* (out_grad, last_grad, last_cell_grad, cells_grad, acts_grad, cell, weight, cells, acts, sizes, reverse)
 * -> (gates_grad, hidden_grad, cell_grad) */
static const places LSTM_BACK = {8, 5, -1, 6, 9, 4, 4};

static int lstm_back_shape(tgx_call *c) {
    const tgx_tensor *cell = tgx_in(c, 5), *cells = tgx_in(c, 7), *acts = tgx_in(c, 8);
    if (check(c, &LSTM_BACK) || goes_with(c, 0, cells, "the gradient") || goes_with(c, 1, cell, "the gradient of the last output")
        || goes_with(c, 2, cell, "the gradient of the last cell") || goes_with(c, 3, cells, "the gradient of the cells")
        || goes_with(c, 4, acts, "the gradient of the gates")) return TGX_FAILED;
    if (cells->rank != acts->rank || cells->count * 4 != acts->count) return odd(c, 7, "cells", "(steps, batch, features), or packed");
    need_all(c, &LSTM_BACK);
    tgx_need(c, 7, acts->dtype);
    tgx_like(c, 0, acts, acts->dtype), tgx_like(c, 1, cell, acts->dtype), tgx_like(c, 2, cell, acts->dtype);
    ask_scratch(c, cell->sizes[1], 4, acts->dtype);
    return 0;
}

static int lstm_back_run(tgx_call *c) {
    tgx_recurrent_job job = {.out_grad = data_of(c, 0), .first = data_of(c, 1), .first_cell = data_of(c, 2), .cells_grad = data_of(c, 3),
                             .acts_grad = data_of(c, 4), .cell = tgx_in(c, 5)->data, .cells = tgx_in(c, 7)->data,
                             .acts = tgx_in(c, 8)->data, .gates_grad = tgx_out(c, 0)->data,
                             .state = tgx_out(c, 1)->data, .state_cell = tgx_out(c, 2)->data};
    open_job(c, &LSTM_BACK, &job, 1);
    return run(c, loops()->lstm_back, &job, tgx_in(c, 8)->dtype, 4);
}
TGX_KERNEL(lstm_steps_backward, lstm_back_shape, lstm_back_run, 0)

/* ---- gated units: (gates, hidden, weight, bias, sizes, reverse) -> (out, last, acts) ------------------------------ */

static const places GRU = {0, 1, -1, 2, 4, 3, 3};

static int gru_shape(tgx_call *c) {
    const tgx_tensor *gates = tgx_in(c, 0), *hidden = tgx_in(c, 1);
    if (check(c, &GRU)) return TGX_FAILED;
    const int64_t n = hidden->sizes[1];
    if (tgx_given(c, 3)) {
        const tgx_tensor *bias = tgx_in(c, 3);
        if (bias->rank != 1 || bias->sizes[0] != 3 * n) return odd(c, 3, "the bias of the state", "(gates times features)");
        if (bias->dtype != gates->dtype)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: input, states and weights must have one dtype, but got %s and a bias of %s", c->title,
                            tgx_dtype_name(gates->dtype), tgx_dtype_name(bias->dtype));
        tgx_need_dense(c, 3);
    }
    need_all(c, &GRU);
    of_steps(c, 0, gates, n), of_steps(c, 2, gates, 4 * n);
    tgx_like(c, 1, hidden, gates->dtype);
    ask_scratch(c, n, 3, gates->dtype);
    return 0;
}

static int gru_run(tgx_call *c) {
    tgx_recurrent_job job = {.gates = tgx_in(c, 0)->data, .first = tgx_in(c, 1)->data, .bias = data_of(c, 3), .out = tgx_out(c, 0)->data,
                             .state = tgx_out(c, 1)->data, .acts = tgx_out(c, 2)->data};
    open_job(c, &GRU, &job, 0);
    return run(c, loops()->gru, &job, tgx_in(c, 0)->dtype, 3);
}
TGX_KERNEL(gru_steps, gru_shape, gru_run, 0)

/* (out_grad, last_grad, acts_grad, hidden, weight, out, acts, sizes, reverse) -> (gates_grad, kept_grad, hidden_grad) */
static const places GRU_BACK = {6, 3, -1, 4, 7, 3, 4};

static int gru_back_shape(tgx_call *c) {
    const tgx_tensor *hidden = tgx_in(c, 3), *out = tgx_in(c, 5), *acts = tgx_in(c, 6);
    if (check(c, &GRU_BACK) || goes_with(c, 0, out, "the gradient") || goes_with(c, 1, hidden, "the gradient of the last output")
        || goes_with(c, 2, acts, "the gradient of the gates"))
        return TGX_FAILED;
    const int64_t n = hidden->sizes[1];
    if (out->rank != acts->rank || out->count * 4 != acts->count) return odd(c, 5, "out", "(steps, batch, features), or packed");
    need_all(c, &GRU_BACK);
    tgx_need(c, 5, acts->dtype);
    of_steps(c, 0, acts, 3 * n), of_steps(c, 1, acts, 3 * n);
    tgx_like(c, 2, hidden, acts->dtype);
    ask_scratch(c, n, 3, acts->dtype);
    return 0;
}

static int gru_back_run(tgx_call *c) {
    tgx_recurrent_job job = {.out_grad = data_of(c, 0), .first = data_of(c, 1), .acts_grad = data_of(c, 2),
                             .hidden = tgx_in(c, 3)->data, .out = tgx_in(c, 5)->data, .acts = tgx_in(c, 6)->data, .gates_grad = tgx_out(c, 0)->data, .kept_grad = tgx_out(c, 1)->data,
                             .state = tgx_out(c, 2)->data};
    open_job(c, &GRU_BACK, &job, 1);
    return run(c, loops()->gru_back, &job, tgx_in(c, 6)->dtype, 3);
}
TGX_KERNEL(gru_steps_backward, gru_back_shape, gru_back_run, 0)

/* ---- Elman's units: (gates, hidden, weight, relu, sizes, reverse) -> (out, last) ---------------------------------- */

static const places ELMAN = {0, 1, -1, 2, 4, 1, 1};

static int elman_shape(tgx_call *c) {
    const tgx_tensor *gates = tgx_in(c, 0), *hidden = tgx_in(c, 1);
    if (check(c, &ELMAN)) return TGX_FAILED;
    need_all(c, &ELMAN);
    tgx_like(c, 0, gates, gates->dtype), tgx_like(c, 1, hidden, gates->dtype);
    ask_scratch(c, hidden->sizes[1], 1, gates->dtype);
    return 0;
}

static int elman_run(tgx_call *c) {
    tgx_recurrent_job job = {.gates = tgx_in(c, 0)->data, .first = tgx_in(c, 1)->data, .relu = (int)tgx_int(c, 3),
                             .out = tgx_out(c, 0)->data, .state = tgx_out(c, 1)->data};
    open_job(c, &ELMAN, &job, 0);
    return run(c, loops()->elman, &job, tgx_in(c, 0)->dtype, 1);
}
TGX_KERNEL(elman_steps, elman_shape, elman_run, 0)

/* (out_grad, last_grad, hidden, weight, out, relu, sizes, reverse) -> (gates_grad, hidden_grad) */
static const places ELMAN_BACK = {4, 2, -1, 3, 6, 1, 1};

static int elman_back_shape(tgx_call *c) {
    const tgx_tensor *hidden = tgx_in(c, 2), *out = tgx_in(c, 4);
    if (check(c, &ELMAN_BACK) || goes_with(c, 0, out, "the gradient") || goes_with(c, 1, hidden, "the gradient of the last output"))
        return TGX_FAILED;
    need_all(c, &ELMAN_BACK);
    tgx_like(c, 0, out, out->dtype), tgx_like(c, 1, hidden, out->dtype);
    ask_scratch(c, hidden->sizes[1], 1, out->dtype);
    return 0;
}

static int elman_back_run(tgx_call *c) {
    tgx_recurrent_job job = {.out_grad = data_of(c, 0), .first = data_of(c, 1), .hidden = tgx_in(c, 2)->data, .out = tgx_in(c, 4)->data,
                             .relu = (int)tgx_int(c, 5), .gates_grad = tgx_out(c, 0)->data, .state = tgx_out(c, 1)->data};
    open_job(c, &ELMAN_BACK, &job, 1);
    return run(c, loops()->elman_back, &job, tgx_in(c, 4)->dtype, 1);
}
TGX_KERNEL(elman_steps_backward, elman_back_shape, elman_back_run, 0)
