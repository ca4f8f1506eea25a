/* Layers of recurrent units, in one direction and over all steps, and their derivatives; see recurrent.h. */
#include "isa.h"
#include "product_blocks.h"
#include "recurrent.h"

static const tgx_recurrent_table *loops(void) {
    static const tgx_recurrent_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_recurrent);
    return chosen;
}

/* Where the arguments of an op stand; -1: it has none such. Behind w_ih stand the weights of the state, behind sizes the direction, and
 * behind b_ih, which forward alone has, the other bias. out and what follows are what forward gave, and `wanted` which products are. */
typedef struct { int input, hidden, cell, w_ih, b_ih, sizes, parts, stored, out, cells, acts, wanted; } places;

static int odd(tgx_call *c, int arg, const char *name, const char *expected) {
    const char *came = tgx_shape_text(tgx_in(c, arg));
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %s must be of shape %s, but got %s", c->title, name, expected, came);
}

/* One more tensor of the layer, where it is given: run reads it as it lies in one piece. */
static int of_one_dtype(tgx_call *c, int arg, const char *name) {
    const tgx_tensor *t = tgx_in(c, arg);
    if (t->dtype != c->notes[0])
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: input, states and weights must have one dtype, but got %s and %s of %s", c->title,
                        tgx_dtype_name((int)c->notes[0]), name, tgx_dtype_name(t->dtype));
    tgx_need_dense(c, arg);
    return 0;
}

/* A state (1, batch, n), or a gradient of one, where it is given. */
static int state_fits(tgx_call *c, int arg, const tgx_tensor *hidden, const char *name) {
    if (arg < 0 || !tgx_given(c, arg)) return 0;
    if (!tgx_same_sizes(tgx_in(c, arg), hidden)) return odd(c, arg, name, tgx_shape_text(hidden));
    return of_one_dtype(c, arg, name);
}

/* What has a row for each of input: (steps, batch, width), or packed (rows, width). */
static int steps_fit(tgx_call *c, int arg, const tgx_tensor *input, int64_t width, const char *name) {
    if (arg < 0 || !tgx_given(c, arg)) return 0;
    const tgx_tensor *t = tgx_in(c, arg);
    int fits = t->rank == input->rank && t->sizes[t->rank - 1] == width;
    for (int d = 0; fits && d < t->rank - 1; d++) fits = t->sizes[d] == input->sizes[d];
    return fits ? of_one_dtype(c, arg, name) : odd(c, arg, name, "(steps, batch, features), or packed, as the input's rows");
}

static int weights_fit(tgx_call *c, const places *p, int64_t features, int64_t n) {
    const tgx_tensor *own = tgx_in(c, p->w_ih), *weight = tgx_in(c, p->w_ih + 1);
    if (own->rank != 2 || own->sizes[0] != p->parts * n || own->sizes[1] != features)
        return odd(c, p->w_ih, "the weights of the input", "(gates times features of the state, features)");
    if (weight->rank != 2 || weight->sizes[0] != p->parts * n || weight->sizes[1] != n)
        return odd(c, p->w_ih + 1, "the weights of the state", "(gates times features, features)");
    for (int k = p->b_ih; p->b_ih >= 0 && k < p->b_ih + 2; k++) {
        if (!tgx_given(c, k)) continue;
        if (tgx_in(c, k)->rank != 1 || tgx_in(c, k)->sizes[0] != p->parts * n) return odd(c, k, "a bias", "(gates times features)");
        if (of_one_dtype(c, k, "a bias")) return TGX_FAILED;
    }
    return of_one_dtype(c, p->w_ih, "weights") || of_one_dtype(c, p->w_ih + 1, "weights") ? TGX_FAILED : 0;
}

static int64_t rows_of(const tgx_tensor *input) { return input->rank == 3 ? input->sizes[0] * input->sizes[1] : input->sizes[0]; }

/* Sizes and dtypes of the arguments, and the memory for what is laid out: a row of zeros and one of biases, the weights of the state,
 * backward the states in front of the steps; before them the room of large products, of notes[1] bytes. */
static int check(tgx_call *c, const places *p) {
    const tgx_tensor *input = tgx_in(c, p->input), *hidden = tgx_in(c, p->hidden);
    const tgx_value *sizes = &c->args[p->sizes];
    if (input->dtype != TGX_F32 && input->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"%s\" not implemented for '%s': convert the input to float32 or float64 first",
                        c->title, tgx_dtype_title(input->dtype));
    if (!c->meta && (double)input->count * (double)tgx_in(c, p->w_ih)->count > TGX_TINY_WORK && !c->services->blas()) return TGX_FAILED;
    c->notes[0] = input->dtype;
    if (hidden->rank != 3 || hidden->sizes[0] != 1) return odd(c, p->hidden, "the state", "(1, batch, features)");
    if (state_fits(c, p->hidden, hidden, "the state") || state_fits(c, p->cell, hidden, "the cell")) return TGX_FAILED;
    const int64_t batch = hidden->sizes[1], n = hidden->sizes[2];
    if (input->rank != (sizes->n ? 2 : 3) || (input->rank == 3 && input->sizes[1] != batch))
        return odd(c, p->input, "the input", "(steps, batch, features), or packed (rows, features)");
    const int64_t rows = rows_of(input), features = input->sizes[input->rank - 1], m = p->parts * n;
    if (weights_fit(c, p, features, n)) return TGX_FAILED;
    int64_t total = 0;
    for (int t = 0; t < sizes->n; t++) {
        const int64_t count = sizes->ints[t];
        if (count < 1 || count > (t ? sizes->ints[t - 1] : batch) || (!t && count != batch)) total = INT64_MIN / 2;
        total += count;
    }
    if (sizes->n && total != rows)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: batch_sizes %s must fall from %lld and sum up to %lld rows", c->title,
                        tgx_sizes_text(sizes->ints, sizes->n), (long long)batch, (long long)rows);
    tgx_need_dense(c, p->input);
    int64_t room = tgx_block_product_room(input->dtype, rows, m, features), laid = tgx_packed_count(m, n) + 8 * n;
    if (p->out >= 0) {
        const int64_t by[3][3] = {{rows, features, m}, {m, features, rows}, {m, n, rows}};
        for (int k = 0; k < 3; k++) {
            const int64_t more = tgx_block_product_room(input->dtype, by[k][0], by[k][1], by[k][2]);
            room = more > room ? more : room;
        }
        laid = tgx_packed_count(n, m) + 4 * n + rows * n;
        if (steps_fit(c, p->out, input, n, "out") || steps_fit(c, p->cells, input, n, "cells")
            || steps_fit(c, p->acts, input, p->stored * n, "acts")) return TGX_FAILED;
    } else if (p->parts == 3) laid += tgx_packed_count(n, n);
    c->notes[1] = (room + 63) / 64 * 64;
    c->scratch_bytes = c->notes[1] + laid * tgx_itemsize[input->dtype];
    c->work = (int64_t)((double)rows * (double)m < 1e9 ? rows * m * (features + n) : INT64_MAX / 2);
    return 0;
}

/* A result of all steps with `width` features. */
static void of_steps(tgx_call *c, int k, const tgx_tensor *input, int64_t width) {
    tgx_output *o = tgx_fresh(c, k, input->rank, input->dtype);
    for (int d = 0; d < input->rank; d++) o->dims[d] = input->sizes[d];
    o->dims[input->rank - 1] = width;
}

/* C (m, n) = A B, of which rows of C lie in one piece each. */
static int product(tgx_call *c, tgx_shape s, const void *a, const void *b, void *to) {
    tgx_product p = {.s = s, .dtype = (int)c->notes[0], .a = (char *)a, .b = (char *)b, .c = to, .alpha = {1, 0, 1, 1}, .batches = 1};
    p.room = c->notes[1] ? c->scratch : NULL;
    if (!s.k) {
        for (ptrdiff_t i = 0; i < s.m; i++)
            memset((char *)to + i * s.c_row * tgx_itemsize[p.dtype], 0, (size_t)(s.n * tgx_itemsize[p.dtype]));
        return 0;
    }
    return tgx_product_run(c, &p);
}

static const float one_f32 = 1;
static const double one_f64 = 1;

/* The sum of k rows of b, and of `start`, where it is given: a row of ones times a matrix. */
static void add_rows(int dtype, const void *b, ptrdiff_t b_row, ptrdiff_t n, ptrdiff_t k, const void *start, void *to) {
    if (dtype == TGX_F32) tgx_row_products()[0](&one_f32, 0, b, b_row, 1, n, k, start, to);
    else tgx_row_products()[1](&one_f64, 0, b, b_row, 1, n, k, start, to);
}

/* A row of what is added to gates: of gated units the biases of the new state stand apart, as its two parts do. */
static void add_biases(int dtype, const char *own, const char *more, int64_t n, int parts, char *to) {
    const int64_t size = n * tgx_itemsize[dtype];
    for (int k = 0; k < parts; k++) {
        const char *first = own ? own + k * size : NULL, *second = more ? more + k * size : NULL;
        if (k == 2 && parts == 3) add_rows(dtype, second, n, n, second != NULL, NULL, to + 3 * size), second = NULL;
        add_rows(dtype, first, n, n, first != NULL, second, to + k * size);
    }
}

static char *data_of(const tgx_call *c, int arg) { return tgx_given(c, arg) ? tgx_in(c, arg)->data : NULL; }

/* Returns the memory behind what is laid out. */
static char *open_job(tgx_call *c, const places *p, tgx_recurrent_job *job) {
    const tgx_tensor *input = tgx_in(c, p->input), *hidden = tgx_in(c, p->hidden), *weight = tgx_in(c, p->w_ih + 1);
    const tgx_value *sizes = &c->args[p->sizes];
    const int64_t n = hidden->sizes[2], size = tgx_itemsize[input->dtype], parts = p->parts, backward = p->out >= 0;
    job->n = n, job->batch = hidden->sizes[1], job->reverse = (int)tgx_int(c, p->sizes + 1);
    job->sizes = sizes->n ? sizes->ints : NULL, job->steps = sizes->n ? sizes->n : input->sizes[0], job->total = rows_of(input);
    job->products = tgx_packed(input->dtype);
    char *room = (char *)c->scratch + c->notes[1];
    job->zeros = room;
    memset(room, 0, (size_t)(4 * n * size));
    char *packed = room + (backward ? 4 : 8) * n * size;
    job->packed = packed;
    if (backward) {
        job->products->lay(&(tgx_shape){.n = n, .k = parts * n, .b_row = n, .b_col = 1}, weight->data, packed);
        return packed + tgx_packed_count(n, parts * n) * size;
    }
    job->bias = room + 4 * n * size;
    add_biases(input->dtype, data_of(c, p->b_ih), data_of(c, p->b_ih + 1), n, p->parts, (char *)job->bias);
    tgx_shape s = {.n = (parts == 3 ? 2 : parts) * n, .k = n, .b_row = 1, .b_col = n};
    job->products->lay(&s, weight->data, packed);
    if (parts == 3) {
        packed += tgx_packed_count(2 * n, n) * size, job->packed_new = packed, s.n = n;
        job->products->lay(&s, weight->data + 2 * n * n * size, packed);
    }
    return packed;
}

enum { LEAST_ROWS = 16, LEAST_WORK = 2 << 20 };

static int run(tgx_call *c, const tgx_recurrent_fn *fns, tgx_recurrent_job *job, int parts) {
    double row = (double)job->steps * (double)(parts * job->n * job->n) + 1;
    ptrdiff_t grain = LEAST_ROWS + (ptrdiff_t)(LEAST_WORK / row);
    return tgx_range(c, fns[c->notes[0] == TGX_F64], job, job->batch, grain);
}

/* What the inputs give to all steps, where the gates will stand, and then the steps. */
static int forward(tgx_call *c, const places *p, const tgx_recurrent_fn *fns, tgx_recurrent_job *job) {
    const tgx_tensor *input = tgx_in(c, p->input), *own = tgx_in(c, p->w_ih);
    open_job(c, p, job);
    const ptrdiff_t m = own->sizes[0], f = own->sizes[1];
    const tgx_shape s = {.m = job->total, .n = m, .k = f, .a_row = f, .a_col = 1, .b_row = 1, .b_col = f,
                         .c_row = p->stored * job->n, .c_col = 1};
    int code = product(c, s, input->data, own->data, p->parts == 1 ? job->out : job->acts);
    return code ? code : run(c, fns, job, p->parts);
}

/* The states in front of all steps, row by row as the input lies. */
static void lay_before(const tgx_recurrent_job *job, const char *out, const char *first, int64_t row, char *to) {
    tgx_place p = {0};
    for (ptrdiff_t t = 0; t < job->steps; t++) {
        p = tgx_next_place(job, t, 1, p);
        const ptrdiff_t stored = p.before_count < p.count ? p.before_count : p.count;
        memcpy(to + p.at * row, out + p.before * row, (size_t)(stored * row));
        memcpy(to + (p.at + stored) * row, first + stored * row, (size_t)((p.count - stored) * row));
    }
}

static tgx_shape by_rows(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, ptrdiff_t a_row, ptrdiff_t a_col) {
    return (tgx_shape){m, n, k, a_row, a_col, .b_row = n, .b_col = 1, .c_row = n, .c_col = 1};
}

/* Gradients of biases: sums of columns [lo, hi), of so many rows at a time. */
typedef struct { const char *from; char *to; ptrdiff_t rows, width; int dtype; } sums;

static int add_columns(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    enum { ROWS = 128 };
    const sums *job = context;
    const ptrdiff_t size = tgx_itemsize[job->dtype];
    char *to = job->to + lo * size;
    for (ptrdiff_t at = 0, k; !at || at < job->rows; at += k) {
        k = job->rows - at < ROWS ? job->rows - at : ROWS;
        add_rows(job->dtype, job->from + (at * job->width + lo) * size, job->width, hi - lo, k, at ? to : NULL, to);
        if (!k) break;
    }
    return 0;
}

static int add_slopes(tgx_call *c, const void *from, int64_t rows, int64_t width, void *to) {
    sums job = {from, to, rows, width, (int)c->notes[0]};
    return tgx_range(c, add_columns, &job, width, TGX_SMALL * 4 / (rows + 1) + 64);
}

/* The steps, and then the products that are wanted; they are results from number k on: by input, both weights, the bias, and, where the
 * bias of the state has another gradient, that. */
static int backward(tgx_call *c, const places *p, const tgx_recurrent_fn *fns, tgx_recurrent_job *job, int k) {
    const tgx_tensor *input = tgx_in(c, p->input), *own = tgx_in(c, p->w_ih);
    const int64_t *wanted = c->args[p->wanted].ints, n = tgx_in(c, p->hidden)->sizes[2], size = tgx_itemsize[input->dtype];
    const ptrdiff_t m = own->sizes[0], f = own->sizes[1];
    char *before = open_job(c, p, job);
    int code = run(c, fns, job, p->parts);
    const void *slopes = job->gates_grad, *kept = job->kept_grad ? job->kept_grad : slopes;
    if (!code && wanted[0]) code = product(c, by_rows(job->total, f, m, m, 1), slopes, own->data, tgx_out(c, k)->data);
    if (!code && wanted[1]) code = product(c, by_rows(m, f, job->total, 1, m), slopes, input->data, tgx_out(c, k + 1)->data);
    if (!code && wanted[2]) {
        lay_before(job, tgx_in(c, p->out)->data, tgx_in(c, p->hidden)->data, n * size, before);
        code = product(c, by_rows(m, n, job->total, 1, m), kept, before, tgx_out(c, k + 2)->data);
    }
    if (!code && wanted[3]) code = add_slopes(c, slopes, job->total, m, tgx_out(c, k + 3)->data);
    if (!code && kept != slopes && wanted[4]) code = add_slopes(c, kept, job->total, m, tgx_out(c, k + 4)->data);
    return code;
}

/* Sizes of those results. */
static void say_products(tgx_call *c, const places *p, int k) {
    const int64_t *wanted = c->args[p->wanted].ints;
    const int dtype = (int)c->notes[0];
    for (int i = 0; i < c->args[p->wanted].n; i++) {
        if (!wanted[i]) tgx_absent(c, k + i);
        else if (i < 3) tgx_like(c, k + i, tgx_in(c, i == 0 ? p->input : p->w_ih + i - 1), dtype);
        else tgx_fresh(c, k + i, 1, dtype)->dims[0] = tgx_in(c, p->w_ih)->sizes[0];
    }
}

/* ---- long short-term memory: (input, hidden, cell, w_ih, w_hh, b_ih, b_hh, sizes, reverse)
 * -> (out, last, last_cell, cells, acts) ---------------------------------------------------------------------------- */

static const places LSTM = {.hidden = 1, .cell = 2, .w_ih = 3, .b_ih = 5, .sizes = 7, .parts = 4, .stored = 4, .out = -1};

static int lstm_shape(tgx_call *c) {
    const tgx_tensor *input = tgx_in(c, 0), *hidden = tgx_in(c, 1);
    if (check(c, &LSTM)) return TGX_FAILED;
    const int64_t n = hidden->sizes[2];
    of_steps(c, 0, input, n), of_steps(c, 3, input, n), of_steps(c, 4, input, 4 * n);
    tgx_like(c, 1, hidden, input->dtype), tgx_like(c, 2, hidden, input->dtype);
    return 0;
}

static int lstm_run(tgx_call *c) {
    tgx_recurrent_job job = {.first = tgx_in(c, 1)->data, .first_cell = tgx_in(c, 2)->data, .out = tgx_out(c, 0)->data,
                             .state = tgx_out(c, 1)->data, .state_cell = tgx_out(c, 2)->data, .cells = tgx_out(c, 3)->data,
                             .acts = tgx_out(c, 4)->data};
    return forward(c, &LSTM, loops()->lstm, &job);
}
TGX_KERNEL(lstm_steps, lstm_shape, lstm_run, 0)

/* (out_grad, last_grad, last_cell_grad, cells_grad, acts_grad, input, hidden, cell, w_ih, w_hh, out, cells, acts, sizes, reverse,
 * output_mask) -> (gates_grad, hidden_grad, cell_grad, the products) */
static const places LSTM_BACK = {5, 6, 7, 8, -1, 13, 4, 4, 10, 11, 12, 15};

static int lstm_back_shape(tgx_call *c) {
    const tgx_tensor *input = tgx_in(c, 5), *cell = tgx_in(c, 7);
    if (check(c, &LSTM_BACK)) return TGX_FAILED;
    const int64_t n = cell->sizes[2];
    if (steps_fit(c, 0, input, n, "the gradient") || state_fits(c, 1, cell, "the gradient of the last output")
        || state_fits(c, 2, cell, "the gradient of the last cell") || steps_fit(c, 3, input, n, "the gradient of the cells")
        || steps_fit(c, 4, input, 4 * n, "the gradient of the gates")) return TGX_FAILED;
    of_steps(c, 0, input, 4 * n), tgx_like(c, 1, cell, input->dtype), tgx_like(c, 2, cell, input->dtype);
    say_products(c, &LSTM_BACK, 3);
    return 0;
}

static int lstm_back_run(tgx_call *c) {
    tgx_recurrent_job job = {.out_grad = data_of(c, 0), .first = data_of(c, 1), .first_cell = data_of(c, 2),
                             .acts_grad = data_of(c, 4), .cells_grad = data_of(c, 3), .cell = tgx_in(c, 7)->data,
                             .cells = tgx_in(c, 11)->data, .acts = tgx_in(c, 12)->data, .gates_grad = tgx_out(c, 0)->data,
                             .state = tgx_out(c, 1)->data, .state_cell = tgx_out(c, 2)->data};
    return backward(c, &LSTM_BACK, loops()->lstm_back, &job, 3);
}
TGX_KERNEL(lstm_steps_backward, lstm_back_shape, lstm_back_run, 0)

/* ---- gated units: (input, hidden, w_ih, w_hh, b_ih, b_hh, sizes, reverse) -> (out, last, acts) --------------------- */

static const places GRU = {.hidden = 1, .cell = -1, .w_ih = 2, .b_ih = 4, .sizes = 6, .parts = 3, .stored = 4, .out = -1};

static int gru_shape(tgx_call *c) {
    const tgx_tensor *input = tgx_in(c, 0), *hidden = tgx_in(c, 1);
    if (check(c, &GRU)) return TGX_FAILED;
    of_steps(c, 0, input, hidden->sizes[2]), of_steps(c, 2, input, 4 * hidden->sizes[2]);
    tgx_like(c, 1, hidden, input->dtype);
    return 0;
}

static int gru_run(tgx_call *c) {
    tgx_recurrent_job job = {.first = tgx_in(c, 1)->data, .out = tgx_out(c, 0)->data, .state = tgx_out(c, 1)->data,
                             .acts = tgx_out(c, 2)->data};
    return forward(c, &GRU, loops()->gru, &job);
}
TGX_KERNEL(gru_steps, gru_shape, gru_run, 0)

/* (out_grad, last_grad, acts_grad, input, hidden, w_ih, w_hh, out, acts, sizes, reverse, output_mask)
 * -> (gates_grad, kept_grad, hidden_grad, the products) */
static const places GRU_BACK = {3, 4, -1, 5, -1, 9, 3, 4, 7, -1, 8, 11};

static int gru_back_shape(tgx_call *c) {
    const tgx_tensor *input = tgx_in(c, 3), *hidden = tgx_in(c, 4);
    if (check(c, &GRU_BACK)) return TGX_FAILED;
    const int64_t n = hidden->sizes[2];
    if (steps_fit(c, 0, input, n, "the gradient") || state_fits(c, 1, hidden, "the gradient of the last output")
        || steps_fit(c, 2, input, 4 * n, "the gradient of the gates")) return TGX_FAILED;
    of_steps(c, 0, input, 3 * n), of_steps(c, 1, input, 3 * n), tgx_like(c, 2, hidden, input->dtype);
    say_products(c, &GRU_BACK, 3);
    return 0;
}

static int gru_back_run(tgx_call *c) {
    tgx_recurrent_job job = {.out_grad = data_of(c, 0), .first = data_of(c, 1), .acts_grad = data_of(c, 2),
                             .hidden = tgx_in(c, 4)->data, .out = tgx_in(c, 7)->data, .acts = tgx_in(c, 8)->data,
                             .gates_grad = tgx_out(c, 0)->data, .kept_grad = tgx_out(c, 1)->data, .state = tgx_out(c, 2)->data};
    return backward(c, &GRU_BACK, loops()->gru_back, &job, 3);
}
TGX_KERNEL(gru_steps_backward, gru_back_shape, gru_back_run, 0)

/* ---- Elman's units: (input, hidden, w_ih, w_hh, b_ih, b_hh, relu, sizes, reverse) -> (out, last) ------------------- */

static const places ELMAN = {.hidden = 1, .cell = -1, .w_ih = 2, .b_ih = 4, .sizes = 7, .parts = 1, .stored = 1, .out = -1};

static int elman_shape(tgx_call *c) {
    const tgx_tensor *input = tgx_in(c, 0), *hidden = tgx_in(c, 1);
    if (check(c, &ELMAN)) return TGX_FAILED;
    of_steps(c, 0, input, hidden->sizes[2]), tgx_like(c, 1, hidden, input->dtype);
    return 0;
}

static int elman_run(tgx_call *c) {
    tgx_recurrent_job job = {.first = tgx_in(c, 1)->data, .relu = (int)tgx_int(c, 6), .out = tgx_out(c, 0)->data,
                             .state = tgx_out(c, 1)->data};
    return forward(c, &ELMAN, loops()->elman, &job);
}
TGX_KERNEL(elman_steps, elman_shape, elman_run, 0)

/* (out_grad, last_grad, input, hidden, w_ih, w_hh, out, relu, sizes, reverse, output_mask)
 * -> (gates_grad, hidden_grad, the products) */
static const places ELMAN_BACK = {2, 3, -1, 4, -1, 8, 1, 1, 6, -1, -1, 10};

static int elman_back_shape(tgx_call *c) {
    const tgx_tensor *input = tgx_in(c, 2), *hidden = tgx_in(c, 3);
    if (check(c, &ELMAN_BACK) || steps_fit(c, 0, input, hidden->sizes[2], "the gradient")
        || state_fits(c, 1, hidden, "the gradient of the last output")) return TGX_FAILED;
    of_steps(c, 0, input, hidden->sizes[2]), tgx_like(c, 1, hidden, input->dtype);
    say_products(c, &ELMAN_BACK, 2);
    return 0;
}

static int elman_back_run(tgx_call *c) {
    tgx_recurrent_job job = {.out_grad = data_of(c, 0), .first = data_of(c, 1), .out = tgx_in(c, 6)->data, .relu = (int)tgx_int(c, 7),
                             .gates_grad = tgx_out(c, 0)->data, .state = tgx_out(c, 1)->data};
    return backward(c, &ELMAN_BACK, loops()->elman_back, &job, 2);
}
TGX_KERNEL(elman_steps_backward, elman_back_shape, elman_back_run, 0)
