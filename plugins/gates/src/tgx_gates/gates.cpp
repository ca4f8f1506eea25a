/* swiglu(x, g) = x g sigmoid(g), the gate of many feed-forward layers, in one pass over memory; and its backward, in one pass.
 *
 * The derivative of swiglu is the second op, whose own derivative computes by ops of the host: with s = sigmoid(g),
 *     silu = g s,   silu' = s (1 + g (1 - s)),   silu'' = s (1 - s) (2 + g (1 - 2 s)). */
#include <cmath>
#include <string>
#include <tgx.hpp>

namespace {

tgx_op *mul, *add, *rsub, *sigmoid, *backward_op;

bool same_shape(const tgx_view &a, const tgx_view &b) {
    if (a.ndim != b.ndim || a.dtype != b.dtype) return false;
    for (int32_t i = 0; i < a.ndim; i++)
        if (a.shape[i] != b.shape[i]) return false;
    return true;
}

/* What comes out, and what is refused: all tensors alike, float32 or float64. */
int like(tgx_ctx *ctx, void *self, const tgx_value *in, int32_t n, tgx_geometry *out, int32_t m) {
    return tx::like_first(ctx, self, in, n, out, m) || tx::guarded(ctx, [&] {
        tx::Context c(ctx);
        tx::Arguments args(in, n);
        tgx_view first = c.geometry(args.tensor(0));
        if (first.dtype != TGX_FLOAT32 && first.dtype != TGX_FLOAT64)
            throw tx::Error("NotImplementedError", "tensors must be float32 or float64; convert them with .float()");
        for (int32_t i = 1; i < n; i++)
            if (!same_shape(first, c.geometry(args.tensor(i))))
                throw tx::Error("RuntimeError", "argument " + std::to_string(i) + " must have the dtype and shape of the first; "
                                                "expand or convert it");
    });
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

struct Row { const void *grad, *x, *g; void *first, *second; };

template <class T> void forward(const Row &r, int64_t low, int64_t high) {
    const T *x = static_cast<const T *>(r.x), *g = static_cast<const T *>(r.g);
    T *y = static_cast<T *>(r.first);
    for (int64_t i = low; i < high; i++) y[i] = x[i] * g[i] / (1 + std::exp(-g[i]));
}

template <class T> void backward(const Row &r, int64_t low, int64_t high) {
    const T *grad = static_cast<const T *>(r.grad), *x = static_cast<const T *>(r.x), *g = static_cast<const T *>(r.g);
    T *of_x = static_cast<T *>(r.first), *of_g = static_cast<T *>(r.second);
    for (int64_t i = low; i < high; i++) {
        T s = 1 / (1 + std::exp(-g[i]));
        of_x[i] = grad[i] * g[i] * s;
        of_g[i] = grad[i] * x[i] * s * (1 + g[i] * (1 - s));
    }
}

template <void (*F)(const Row &, int64_t, int64_t)> int part(void *row, int64_t low, int64_t high) {
    F(*static_cast<const Row *>(row), low, high);
    return 0;
}

void run(tx::Context &c, tgx_dtype dtype, int64_t count, Row &row, int (*wide)(void *, int64_t, int64_t),
         int (*narrow)(void *, int64_t, int64_t)) {
    tx::check(tgx->parallel_for(c.get(), dtype == TGX_FLOAT64 ? wide : narrow, &row, count, 16384));
}

void swiglu(tx::Context &c, const tx::Arguments &in, tx::Results &out) {
    tgx_view x = c.view(in.tensor(0)), g = c.view(in.tensor(1)), y = c.view_mut(out.tensor(0));
    Row row = {nullptr, x.data, g.data, y.data, nullptr};
    run(c, x.dtype, tgx_count(&x), row, part<forward<double>>, part<forward<float>>);
}

void swiglu_backward(tx::Context &c, const tx::Arguments &in, tx::Results &out) {
    tgx_view grad = c.view(in.tensor(0)), x = c.view(in.tensor(1)), g = c.view(in.tensor(2));
    Row row = {grad.data, x.data, g.data, c.view_mut(out.tensor(0)).data, c.view_mut(out.tensor(1)).data};
    run(c, x.dtype, tgx_count(&x), row, part<backward<double>>, part<backward<float>>);
}

/* ---- derivatives ------------------------------------------------------------------------------------------------- */

void keep(tx::Context &, tx::Node &node, const tx::Arguments &in, const tx::Arguments &) {
    for (int32_t i = 0; i < in.size(); i++) node.save(static_cast<uint32_t>(i), in.tensor(i));
}

/* Of swiglu: one call of the fused op. */
void once(tx::Context &c, tx::Node &node, tx::Gradients &grads) {
    std::vector<tx::Tensor> both = c.call(backward_op, {grads.of_output(0), node.saved(0), node.saved(1)}, 2);
    grads.set(0, both[0]);
    grads.set(1, both[1]);
}

/* Of swiglu_backward, by ops: a and b are what arrives for the gradients of x and g. */
void twice(tx::Context &c, tx::Node &node, tx::Gradients &grads) {
    const tx::Tensor a = grads.of_output(0), b = grads.of_output(1), grad = node.saved(0), x = node.saved(1), g = node.saved(2);
    const auto times = [&](const tx::Tensor &p, const tx::Tensor &q) { return c.call(mul, {p, q}); };
    const auto plus = [&](const tx::Tensor &p, const tx::Tensor &q) { return c.call(add, {p, q, 1}); };
    const auto one_minus = [&](const tx::Tensor &p, int factor) { return c.call(rsub, {p, 1, factor}); };
    const tx::Tensor s = c.call(sigmoid, {g}), rest = one_minus(s, 1);
    const tx::Tensor first = plus(s, times(times(g, s), rest));                                      /* silu' */
    if (node.needs(0)) grads.set(0, plus(times(a, times(g, s)), times(times(b, x), first)));
    if (node.needs(1)) grads.set(1, times(times(b, grad), first));
    if (node.needs(2)) {
        const tx::Tensor inner = c.call(add, {times(g, one_minus(s, 2)), 2, 1});
        const tx::Tensor second = times(times(s, rest), inner);                                      /* silu'' */
        grads.set(2, plus(times(times(a, grad), first), times(times(times(b, grad), x), second)));
    }
}

int init(tgx_ctx *ctx) {
    return tx::guarded(ctx, [&] {
        tx::Context c(ctx);
        mul = c.resolve("aten::mul.Tensor"), add = c.resolve("aten::add.Tensor"), rsub = c.resolve("aten::rsub.Tensor");
        sigmoid = c.resolve("aten::sigmoid");
        tgx_op_def d = tx::op("gates::swiglu(Tensor x, Tensor g) -> Tensor");
        d.kernel = tx::kernel<swiglu>, d.shape = like, d.setup = tx::setup<keep>, d.backward = tx::backward<once>, d.saved = 2;
        d.flags = TGX_FILLS | TGX_DENSE | TGX_DIFFERENTIABLE;
        tx::check(tgx->register_op(ctx, &d));
        d.schema = "gates::swiglu_backward(Tensor grad, Tensor x, Tensor g) -> (Tensor, Tensor)";
        d.kernel = tx::kernel<swiglu_backward>, d.backward = tx::backward<twice>, d.saved = 3;
        tx::check(tgx->register_op(ctx, &d));
        backward_op = c.resolve("gates::swiglu_backward");
    });
}

}  // namespace

TGX_EXTENSION("gates", "0.1.0", init)
