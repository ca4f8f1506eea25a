/* Recurrent units for one floating type T; included by recurrent_isa.h. */

/* The steps of rows [lo, hi), the states of which start with what the job says; p.count is where the rows of a step end. */
#define STEPS(up)                                                                                       \
    NAME(start)(job, lo, hi);                                                                           \
    tgx_place p = {0};                                                                                    \
    for (ptrdiff_t s = 0; s < job->steps; s++)                                                          \
        if (p = tgx_next_place(job, s, up, p), p.count > lo)

static void NAME(start)(const tgx_recurrent_job *job, ptrdiff_t lo, ptrdiff_t hi) {
    const ptrdiff_t n = job->n;
    const void *from[2] = {job->first, job->first_cell};
    void *to[2] = {job->state, job->state_cell};
    for (int k = 0; k < 2; k++) {
        if (!to[k]) continue;
        if (from[k]) memcpy((T *)to[k] + lo * n, (const T *)from[k] + lo * n, (size_t)((hi - lo) * n) * sizeof(T));
        else memset((T *)to[k] + lo * n, 0, (size_t)((hi - lo) * n) * sizeof(T));
    }
}

static inline ptrdiff_t NAME(end)(tgx_place p, ptrdiff_t hi) { return p.count < hi ? p.count : hi; }

/* The row of a state before a step. */
static inline const T *NAME(earlier)(const void *stored, const void *first, tgx_place p, ptrdiff_t r, ptrdiff_t n) {
    return r < p.before_count ? (const T *)stored + (p.before + r) * n : (const T *)first + r * n;
}
/* A row of gradients that came in for all steps. */
static inline const T *NAME(incoming)(const tgx_recurrent_job *job, const void *grad, ptrdiff_t row, ptrdiff_t width) {
    return grad ? (const T *)grad + row * width : (const T *)job->zeros;
}

/* ---- long short-term memory: input, forget, new and output gate ------------------------------------------------- */

static void NAME(lstm_row)(ptrdiff_t n, T *restrict a, const T *restrict bias, T *restrict state, T *restrict out, T *restrict cell,
                           T *restrict cells) {
    SIMD for (ptrdiff_t j = 0; j < n; j++) {
        T take = NAME(vm_sigmoid)(a[j] + bias[j]), forget = NAME(vm_sigmoid)(a[n + j] + bias[n + j]);
        T new = NAME(vm_tanh)(a[2 * n + j] + bias[2 * n + j]), give = NAME(vm_sigmoid)(a[3 * n + j] + bias[3 * n + j]);
        T c = forget * cell[j] + take * new;
        T h = give * NAME(vm_tanh)(c);
        a[j] = take, a[n + j] = forget, a[2 * n + j] = new, a[3 * n + j] = give;
        cell[j] = c, cells[j] = c, state[j] = h, out[j] = h;
    }
}

static int NAME(lstm)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_recurrent_job *job = context;
    const ptrdiff_t n = job->n;
    STEPS(!job->reverse) {
        const ptrdiff_t end = NAME(end)(p, hi), row = p.at + lo;
        T *acts = (T *)job->acts + row * 4 * n, *state = (T *)job->state + lo * n;
        job->products->times(job->packed, 4 * n, n, end - lo, state, n, 1, acts, 4 * n, acts, 4 * n);
        for (ptrdiff_t r = 0; r < end - lo; r++)
            NAME(lstm_row)(n, acts + r * 4 * n, job->bias, state + r * n, (T *)job->out + (row + r) * n,
                           (T *)job->state_cell + (lo + r) * n, (T *)job->cells + (row + r) * n);
    }
    return 0;
}

static void NAME(lstm_back_row)(ptrdiff_t n, const T *restrict a, const T *restrict cells, const T *restrict before,
                                const T *restrict given, const T *restrict of_cell, const T *restrict more,
                                const T *restrict state, T *restrict cell, T *restrict to) {
    SIMD for (ptrdiff_t j = 0; j < n; j++) {
        T take = a[j], forget = a[n + j], new = a[2 * n + j], give = a[3 * n + j];
        T h = state[j] + given[j], seen = NAME(vm_tanh)(cells[j]);
        T c = cell[j] + of_cell[j] + h * give * (1 - seen * seen);
        to[j] = (c * new + more[j]) * take * (1 - take);
        to[n + j] = (c * before[j] + more[n + j]) * forget * (1 - forget);
        to[2 * n + j] = (c * take + more[2 * n + j]) * (1 - new * new);
        to[3 * n + j] = (h * seen + more[3 * n + j]) * give * (1 - give);
        cell[j] = c * forget;
    }
}

static int NAME(lstm_back)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_recurrent_job *job = context;
    const ptrdiff_t n = job->n;
    STEPS(job->reverse) {
        const ptrdiff_t end = NAME(end)(p, hi);
        T *to = (T *)job->gates_grad + p.at * 4 * n, *state = job->state, *cell = job->state_cell;
        for (ptrdiff_t r = lo; r < end; r++)
            NAME(lstm_back_row)(n, (const T *)job->acts + (p.at + r) * 4 * n, (const T *)job->cells + (p.at + r) * n,
                                NAME(earlier)(job->cells, job->cell, p, r, n), NAME(incoming)(job, job->out_grad, p.at + r, n),
                                NAME(incoming)(job, job->cells_grad, p.at + r, n),
                                NAME(incoming)(job, job->acts_grad, p.at + r, 4 * n), state + r * n, cell + r * n, to + r * 4 * n);
        job->products->times(job->packed, n, 4 * n, end - lo, to + lo * 4 * n, 4 * n, 1, NULL, 0, state + lo * n, n);
    }
    return 0;
}

/* ---- gated units: reset, update and new; behind them acts keeps what the reset gate is multiplied with ----------- */

static void NAME(gru_row)(ptrdiff_t n, T *restrict a, const T *restrict bias, T *restrict state, T *restrict out) {
    SIMD for (ptrdiff_t j = 0; j < n; j++) {
        T kept = a[3 * n + j] + bias[3 * n + j];
        T reset = NAME(vm_sigmoid)(a[j] + bias[j]), update = NAME(vm_sigmoid)(a[n + j] + bias[n + j]);
        T new = NAME(vm_tanh)(a[2 * n + j] + bias[2 * n + j] + reset * kept);
        T h = (state[j] - new) * update + new;
        a[j] = reset, a[n + j] = update, a[2 * n + j] = new, a[3 * n + j] = kept;
        state[j] = h, out[j] = h;
    }
}

static int NAME(gru)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_recurrent_job *job = context;
    const ptrdiff_t n = job->n;
    STEPS(!job->reverse) {
        const ptrdiff_t end = NAME(end)(p, hi), row = p.at + lo;
        T *acts = (T *)job->acts + row * 4 * n, *state = (T *)job->state + lo * n;
        job->products->times(job->packed, 2 * n, n, end - lo, state, n, 1, acts, 4 * n, acts, 4 * n);
        job->products->times(job->packed_new, n, n, end - lo, state, n, 1, NULL, 0, acts + 3 * n, 4 * n);
        for (ptrdiff_t r = 0; r < end - lo; r++)
            NAME(gru_row)(n, acts + r * 4 * n, job->bias, state + r * n, (T *)job->out + (row + r) * n);
    }
    return 0;
}

static void NAME(gru_back_row)(ptrdiff_t n, const T *restrict a, const T *restrict before, const T *restrict given,
                               const T *restrict more, T *restrict state, T *restrict to, T *restrict kept) {
    SIMD for (ptrdiff_t j = 0; j < n; j++) {
        T reset = a[j], update = a[n + j], new = a[2 * n + j];
        T h = state[j] + given[j];
        T slope = (h * (1 - update) + more[2 * n + j]) * (1 - new * new);
        T of_reset = (slope * a[3 * n + j] + more[j]) * reset * (1 - reset);
        T of_update = (h * (before[j] - new) + more[n + j]) * update * (1 - update);
        to[j] = of_reset, to[n + j] = of_update, to[2 * n + j] = slope;
        kept[j] = of_reset, kept[n + j] = of_update, kept[2 * n + j] = slope * reset + more[3 * n + j];
        state[j] = h * update;
    }
}

static int NAME(gru_back)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_recurrent_job *job = context;
    const ptrdiff_t n = job->n;
    STEPS(job->reverse) {
        const ptrdiff_t end = NAME(end)(p, hi);
        T *state = job->state, *kept = (T *)job->kept_grad + p.at * 3 * n;
        for (ptrdiff_t r = lo; r < end; r++)
            NAME(gru_back_row)(n, (const T *)job->acts + (p.at + r) * 4 * n, NAME(earlier)(job->out, job->hidden, p, r, n),
                               NAME(incoming)(job, job->out_grad, p.at + r, n), NAME(incoming)(job, job->acts_grad, p.at + r, 4 * n),
                               state + r * n, (T *)job->gates_grad + (p.at + r) * 3 * n, kept + r * 3 * n);
        job->products->times(job->packed, n, 3 * n, end - lo, kept + lo * 3 * n, 3 * n, 1, state + lo * n, n, state + lo * n, n);
    }
    return 0;
}

/* ---- Elman's units ------------------------------------------------------------------------------------------------ */

static void NAME(elman_row)(ptrdiff_t n, T *restrict out, const T *restrict bias, T *restrict state, int relu) {
    if (relu) {
        for (ptrdiff_t j = 0; j < n; j++) {
            T h = out[j] + bias[j];
            out[j] = state[j] = h < 0 ? 0 : h;
        }
    } else {
        SIMD for (ptrdiff_t j = 0; j < n; j++) out[j] = state[j] = NAME(vm_tanh)(out[j] + bias[j]);
    }
}

static int NAME(elman)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_recurrent_job *job = context;
    const ptrdiff_t n = job->n;
    STEPS(!job->reverse) {
        const ptrdiff_t end = NAME(end)(p, hi);
        T *out = (T *)job->out + (p.at + lo) * n, *state = (T *)job->state + lo * n;
        job->products->times(job->packed, n, n, end - lo, state, n, 1, out, n, out, n);
        for (ptrdiff_t r = 0; r < end - lo; r++) NAME(elman_row)(n, out + r * n, job->bias, state + r * n, job->relu);
    }
    return 0;
}

static int NAME(elman_back)(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_recurrent_job *job = context;
    const ptrdiff_t n = job->n;
    STEPS(job->reverse) {
        const ptrdiff_t end = NAME(end)(p, hi);
        T *state = (T *)job->state + lo * n, *all = (T *)job->gates_grad + (p.at + lo) * n;
        for (ptrdiff_t r = lo; r < end; r++) {
            const T *given = NAME(incoming)(job, job->out_grad, p.at + r, n), *h = (const T *)job->state + r * n;
            const T *out = (const T *)job->out + (p.at + r) * n;
            T *restrict to = (T *)job->gates_grad + (p.at + r) * n;
            if (job->relu)
                for (ptrdiff_t j = 0; j < n; j++) to[j] = out[j] <= 0 ? 0 : h[j] + given[j];
            else
                for (ptrdiff_t j = 0; j < n; j++) to[j] = (h[j] + given[j]) * (1 - out[j] * out[j]);
        }
        job->products->times(job->packed, n, n, end - lo, all, n, 1, NULL, 0, state, n);
    }
    return 0;
}
#undef STEPS
