/* Ops that square, one in each of the ways in which an extension can give a derivative. */
#include <tgx.h>

static tgx_op *mul;

static int square(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    tgx_view x, y;
    tgx_tensor *source = tgx->contiguous(c, in[0].u.t), *made;
    int code = 0;
    (void)self, (void)n, (void)m;
    if (source == NULL) return -1;
    if ((made = tgx->empty_like(c, source, 0)) == NULL) {
        tgx->release(source);
        return -1;
    }
    out[0] = tgx_of_tensor(made);
    tgx->view(c, source, &x);
    tgx->view_mut(c, made, &y);
    int64_t count = tgx_count(&x);
    const float *a = (const float *)x.data;
    const double *b = (const double *)x.data;
    if (x.dtype == TGX_FLOAT32)
        for (int64_t i = 0; i < count; i++) ((float *)y.data)[i] = a[i] * a[i];
    else if (x.dtype == TGX_FLOAT64)
        for (int64_t i = 0; i < count; i++) ((double *)y.data)[i] = b[i] * b[i];
    else
        code = tgx->fail(c, "NotImplementedError", "x must be float32 or float64; convert it with .float()");
    tgx->release(source);
    return code;
}

static int like(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_geometry *out, int32_t m) {
    tgx_view x;
    (void)self, (void)n;
    if (tgx->geometry(c, in[0].u.t, &x)) return -1;
    for (int32_t k = 0; k < m; k++) {
        out[k].ndim = x.ndim, out[k].dtype = x.dtype;
        for (int32_t i = 0; i < x.ndim; i++) out[k].sizes[i] = x.shape[i];
    }
    return 0;
}

static int keep(tgx_ctx *c, void *self, tgx_node *node, void *state, const tgx_value *in, int32_t n, const tgx_value *out,
                int32_t m) {
    (void)self, (void)n, (void)out, (void)m;
    if (state != NULL) *(double *)state = 2.0;
    return tgx->save(c, node, 0, in[0].u.t);
}

/* x * grad * 2, by ops */
static int backward(tgx_ctx *c, tgx_node *node, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                    int32_t m) {
    tgx_value args[2], product = {0}, last = {0};
    tgx_tensor *x = tgx->unpack(c, node, 0);
    (void)state, (void)n, (void)m;
    if (x == NULL) return -1;
    args[0] = tgx_of_tensor(grads[0]), args[1] = tgx_of_tensor(x);
    int code = tgx->call(c, mul, args, 2, &product, 1);
    tgx->release(x);
    if (code) return -1;
    args[0] = product, args[1] = tgx_of_float(2.0);
    code = tgx->call(c, mul, args, 2, &last, 1);
    tgx->release(product.u.t);
    inputs[0] = last.u.t;
    return code;
}

/* the same on memory */
static int raw_backward(tgx_ctx *c, tgx_node *node, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                        int32_t m) {
    tgx_view x, g, r;
    tgx_tensor *saved = tgx->unpack(c, node, 0), *grad = tgx->contiguous(c, grads[0]);
    int code = -1;
    (void)n, (void)m;
    if (saved != NULL && grad != NULL && (inputs[0] = tgx->empty_like(c, grad, 0)) != NULL && !tgx->view(c, saved, &x)
        && !tgx->view(c, grad, &g) && !tgx->view_mut(c, inputs[0], &r)) {
        for (int64_t i = 0; i < tgx_count(&x); i++)
            if (x.dtype == TGX_FLOAT64)
                ((double *)r.data)[i] = *(double *)state * ((double *)x.data)[i] * ((double *)g.data)[i];
            else
                ((float *)r.data)[i] = (float)*(double *)state * ((float *)x.data)[i] * ((float *)g.data)[i];
        code = 0;
    }
    tgx->release(saved);
    tgx->release(grad);
    return code;
}

/* as code that makes its own node does it */
static int own(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    tgx_tensor *x = in[0].u.t;
    tgx_node *node = NULL;
    if (tgx->requires_grad(c, x)) {
        tgx_node_def d = TGX_NODE(.name = "SquareByHandBackward", .backward = backward, .saved = 1, .flags = TGX_DIFFERENTIABLE);
        if ((node = tgx->node_new(c, &d, &x, 1)) == NULL || tgx->save(c, node, 0, x)) return -1;
    }
    int before = tgx->no_grad_enter(c);
    int code = square(c, self, in, n, out, m);
    tgx->no_grad_leave(c, before);
    return code || node == NULL ? code : tgx->set_history(c, node, &out[0].u.t, 1);
}

static int composite(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    tgx_value args[2] = {in[0], in[0]};
    (void)self, (void)n;
    return tgx->call(c, mul, args, 2, out, m);
}

/* tangent * x * 2 */
static int tangent(tgx_ctx *c, void *self, const tgx_value *in, tgx_tensor *const *tangents, int32_t n, const tgx_value *results,
                   tgx_tensor **out, int32_t m) {
    tgx_value args[2], product = {0}, last = {0};
    (void)self, (void)n, (void)results, (void)m;
    args[0] = in[0], args[1] = tgx_of_tensor(tangents[0]);
    if (tgx->call(c, mul, args, 2, &product, 1)) return -1;
    args[0] = product, args[1] = tgx_of_float(2.0);
    int code = tgx->call(c, mul, args, 2, &last, 1);
    tgx->release(product.u.t);
    out[0] = last.u.t;
    return code;
}

static int batches;            /* calls of the batch rule */
static int batch(tgx_ctx *c, void *self, int64_t size, const uint8_t *batched, const tgx_value *in, int32_t n, tgx_value *out,
                 int32_t m) {
    (void)size;
    if (!batched[0]) return tgx->fail(c, "RuntimeError", "nothing is batched");
    batches++;
    return square(c, self, in, n, out, m);
}
static int count_batches(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    (void)c, (void)self, (void)in, (void)n, (void)m;
    out[0] = tgx_of_int(batches);
    return 0;
}

/* x + by, into a tensor that is there */
static int plus(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    tgx_view x, y;
    (void)self, (void)n, (void)m;
    if (tgx->view(c, in[0].u.t, &x) || tgx->view_mut(c, out[0].u.t, &y)) return -1;
    if (x.dtype != TGX_FLOAT32 || !tgx_is_contiguous(&x)) return tgx->fail(c, "TypeError", "x must be float32 and contiguous");
    for (int64_t i = 0; i < tgx_count(&x); i++) ((float *)y.data)[i] = ((float *)x.data)[i] + (float)in[1].u.f;
    return 0;
}

/* x *= by, where x is */
static int scale_(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    tgx_view x;
    (void)self, (void)n, (void)m;
    if (tgx->view_mut(c, in[0].u.t, &x)) return -1;
    for (int64_t i = 0; i < tgx_count(&x); i++) ((float *)x.data)[i] *= (float)in[1].u.f;
    out[0] = in[0];
    return 0;
}

static int keep_factor(tgx_ctx *c, void *self, tgx_node *node, void *state, const tgx_value *in, int32_t n,
                       const tgx_value *out, int32_t m) {
    (void)c, (void)self, (void)node, (void)n, (void)out, (void)m;
    *(double *)state = in[1].u.f;
    return 0;
}
static int scale_backward(tgx_ctx *c, tgx_node *node, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                          int32_t m) {
    tgx_value args[2], made = {TGX_NONE, 0, {0}};
    (void)node, (void)n, (void)m;
    args[0] = tgx_of_tensor(grads[0]), args[1] = tgx_of_float(*(double *)state);
    int code = tgx->call(c, mul, args, 2, &made, 1);
    inputs[0] = made.u.t;
    return code;
}

/* both: an op of two results, the second without a derivative; exp-like: it saves an output */
static int both(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    int64_t one[1] = {3};
    (void)m;
    if (square(c, self, in, n, out, 1)) return -1;
    if ((out[1].u.t = tgx->empty(c, TGX_INT64, 1, one, in[0].u.t)) == NULL) return -1;
    out[1].tag = TGX_TENSOR;
    tgx_view v;
    tgx->view_mut(c, out[1].u.t, &v);
    for (int i = 0; i < 3; i++) ((int64_t *)v.data)[i] = i;
    return 0;
}
/* the same of tensors without elements */
static int both_fake(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    int64_t one[1] = {3};
    (void)self, (void)n, (void)m;
    out[0] = tgx_of_tensor(tgx->empty_like(c, in[0].u.t, 0));
    out[1] = tgx_of_tensor(tgx->empty(c, TGX_INT64, 1, one, in[0].u.t));
    return out[0].u.t == NULL || out[1].u.t == NULL ? -1 : 0;
}
static int keep_output(tgx_ctx *c, void *self, tgx_node *node, void *state, const tgx_value *in, int32_t n, const tgx_value *out,
                       int32_t m) {
    (void)self, (void)state, (void)n, (void)m;
    return tgx->save(c, node, 0, in[0].u.t) || tgx->save(c, node, 1, out[0].u.t);
}

static int init(tgx_ctx *c) {
    if ((mul = tgx->resolve(c, "aten::mul.Tensor")) == NULL) return -1;
    return tgx->register_op(c, &TGX_OP(.schema = "squares::by_call(Tensor x) -> Tensor", .doc = "Squares of the elements.",
                                       .kernel = square, .shape = like, .setup = keep, .backward = backward, .saved = 1,
                                       .flags = TGX_DIFFERENTIABLE))
        || tgx->register_op(c, &TGX_OP(.schema = "squares::by_memory(Tensor x) -> Tensor", .kernel = square, .shape = like,
                                       .setup = keep, .backward = raw_backward, .saved = 1, .state_size = sizeof(double)))
        || tgx->register_op(c, &TGX_OP(.schema = "squares::by_hand(Tensor x) -> Tensor", .kernel = own, .shape = like,
                                       .flags = TGX_OWN_HISTORY))
        || tgx->register_op(c, &TGX_OP(.schema = "squares::composite(Tensor x) -> Tensor", .kernel = composite,
                                       .flags = TGX_COMPOSITE))
        || tgx->register_op(c, &TGX_OP(.schema = "squares::forward(Tensor x) -> Tensor", .kernel = square, .shape = like,
                                       .jvp = tangent, .batch = batch))
        || tgx->register_op(c, &TGX_OP(.schema = "squares::batches() -> int", .kernel = count_batches))
        || tgx->register_op(c, &TGX_OP(.schema = "squares::plus(Tensor x, float by=1.0) -> Tensor", .kernel = plus,
                                       .shape = like, .flags = TGX_FILLS | TGX_UNLOCKED | TGX_DENSE))
        || tgx->register_op(c, &TGX_OP(.schema = "squares::scale_(Tensor(a!) x, float by) -> Tensor(a!)", .kernel = scale_,
                                       .setup = keep_factor, .backward = scale_backward, .state_size = sizeof(double),
                                       .flags = TGX_DIFFERENTIABLE))
        || tgx->register_op(c, &TGX_OP(.schema = "squares::both(Tensor x) -> (Tensor, Tensor)", .kernel = both, .fake = both_fake,
                                       .setup = keep_output, .backward = backward, .saved = 2, .flags = TGX_DIFFERENTIABLE));
}

TGX_EXTENSION("squares", "1.5", init)
