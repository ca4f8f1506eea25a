# cython: language_level=3, cdivision=True
"""An exponential average and its adjoint, each the other's derivative, over the table of tgx.pxd.

y[t] = a x[t] + (1 - a) y[t - 1] is linear in x, so its derivative is the transpose: the same walk from the end. What is said
of one row holds for all, and rows are independent, so a batch is one more leading dimension.
"""
from cython cimport floating
from tgx cimport *

cdef tgx_op *forth
cdef tgx_op *back

ctypedef struct rows:
    const void *x
    void *y
    int64_t length
    double alpha
    bint wide, reverse


cdef void walk(const floating *x, floating *y, int64_t length, double alpha, bint reverse) noexcept nogil:
    """One row, from the front or from the end."""
    cdef int64_t _, at, step = -1 if reverse else 1
    cdef double kept = 0
    at = length - 1 if reverse else 0
    for _ in range(length):
        kept = alpha * x[at] + (1 - alpha) * kept
        y[at] = <floating>kept
        at += step


cdef int some_rows(void *told, int64_t low, int64_t high) noexcept nogil:
    cdef rows *r = <rows *>told
    cdef int64_t i
    for i in range(low, high):
        if r.wide:
            walk[double](<const double *>r.x + i * r.length, <double *>r.y + i * r.length, r.length, r.alpha, r.reverse)
        else:
            walk[float](<const float *>r.x + i * r.length, <float *>r.y + i * r.length, r.length, r.alpha, r.reverse)
    return 0


cdef int run(tgx_ctx *c, const tgx_value *inputs, tgx_value *out, bint reverse) noexcept nogil:
    cdef tgx_view x, y
    cdef rows r
    if tgx.view(c, inputs[0].u.t, &x) or tgx.view_mut(c, out[0].u.t, &y):
        return -1
    if tgx_count(&x) == 0:
        return 0
    r.x, r.y, r.alpha, r.wide, r.reverse = x.data, y.data, inputs[1].u.f, x.dtype == TGX_FLOAT64, reverse
    r.length = x.shape[x.ndim - 1]
    return tgx.parallel_for(c, some_rows, &r, tgx_count(&x) // r.length, 1 + 16384 // r.length)


cdef int ema(tgx_ctx *c, void *self, const tgx_value *inputs, int32_t n, tgx_value *out, int32_t m) noexcept nogil:
    return run(c, inputs, out, False)


cdef int adjoint(tgx_ctx *c, void *self, const tgx_value *inputs, int32_t n, tgx_value *out, int32_t m) noexcept nogil:
    return run(c, inputs, out, True)


cdef int like(tgx_ctx *c, void *self, const tgx_value *inputs, int32_t n, tgx_geometry *out, int32_t m) noexcept:
    """What comes out; and what cannot be computed, told before it is."""
    cdef tgx_view x
    cdef int32_t i
    if tgx.geometry(c, inputs[0].u.t, &x):
        return -1
    if x.dtype != TGX_FLOAT32 and x.dtype != TGX_FLOAT64:
        return tgx.fail(c, "NotImplementedError", "the tensor must be float32 or float64; convert it with .float()")
    if x.ndim == 0:
        return tgx.fail(c, "RuntimeError", "the tensor must have a dimension to go along; it has none")
    if not 0 < inputs[1].u.f <= 1:
        return tgx.fail(c, "ValueError", "alpha must be above 0 and at most 1, not %g", inputs[1].u.f)
    out.ndim, out.dtype = x.ndim, x.dtype
    for i in range(x.ndim):
        out.sizes[i] = x.shape[i]
    return 0


cdef int keep(tgx_ctx *c, void *self, tgx_node *node, void *state, const tgx_value *inputs, int32_t n, const tgx_value *out,
              int32_t m) noexcept:
    (<double *>state)[0] = inputs[1].u.f
    return 0


cdef int through(tgx_ctx *c, tgx_op *op, tgx_tensor *grad, void *state, tgx_tensor **inputs) noexcept:
    """The other op, of what arrived."""
    cdef tgx_value args[2]
    cdef tgx_value made
    args[0], args[1] = tgx_of_tensor(grad), tgx_of_float((<double *>state)[0])
    if tgx.call(c, op, args, 2, &made, 1):
        return -1
    inputs[0] = made.u.t
    return 0


cdef int ema_grad(tgx_ctx *c, tgx_node *node, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                  int32_t m) noexcept:
    return through(c, back, grads[0], state, inputs)


cdef int adjoint_grad(tgx_ctx *c, tgx_node *node, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                      int32_t m) noexcept:
    return through(c, forth, grads[0], state, inputs)


cdef int ema_batch(tgx_ctx *c, void *self, int64_t size, const uint8_t *batched, const tgx_value *inputs, int32_t n,
                   tgx_value *out, int32_t m) noexcept:
    return tgx.call(c, forth, inputs, n, out, m)


cdef int adjoint_batch(tgx_ctx *c, void *self, int64_t size, const uint8_t *batched, const tgx_value *inputs, int32_t n,
                       tgx_value *out, int32_t m) noexcept:
    return tgx.call(c, back, inputs, n, out, m)


cdef int init(tgx_ctx *c) noexcept:
    global forth, back
    cdef tgx_op_def d = tgx_op_of("filters::ema(Tensor x, float alpha) -> Tensor")
    d.kernel, d.shape, d.setup, d.backward, d.batch, d.state_size = ema, like, keep, ema_grad, ema_batch, sizeof(double)
    d.flags = TGX_FILLS | TGX_DENSE | TGX_UNLOCKED | TGX_DIFFERENTIABLE
    if tgx.register_op(c, &d):
        return -1
    d.schema, d.kernel = "filters::ema_adjoint(Tensor grad, float alpha) -> Tensor", adjoint
    d.backward, d.batch = adjoint_grad, adjoint_batch
    if tgx.register_op(c, &d):
        return -1
    forth, back = tgx.resolve(c, "filters::ema"), tgx.resolve(c, "filters::ema_adjoint")
    return -1 if forth == NULL or back == NULL else 0


def start(facts):
    """Register the ops for the plugin that calls this."""
    return tgx_start("filters", "0.1.0", init, facts)
