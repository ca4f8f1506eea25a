/* A fused op in C++: x * sigmoid(g) in one pass, whose backward computes by ops and so has derivatives of every order; and
 * ways to fail. */
#include <tgx.hpp>

#include <cmath>
#include <stdexcept>

namespace {

tgx_op *sigmoid_op, *mul_op, *sub_op;

template <class T> void fill(tx::Context &c, const tx::Tensor &x, const tx::Tensor &g, const tx::Tensor &out) {
    const T *a = c.read<T>(x), *b = c.read<T>(g);
    T *y = c.write<T>(out);
    for (int64_t i = 0, n = c.count(x); i < n; i++) y[i] = a[i] / (1 + std::exp(-b[i]));
}

void gate(tx::Context &c, const tx::Arguments &in, tx::Results &out) {
    tx::Tensor x = in.tensor(0), g = in.tensor(1);
    if (c.count(x) != c.count(g)) throw tx::Error("ValueError", "x and g must be of one size");
    if (c.view(x).dtype == TGX_FLOAT64) fill<double>(c, x, g, out.tensor(0));
    else fill<float>(c, x, g, out.tensor(0));
}

void keep(tx::Context &, tx::Node &node, const tx::Arguments &in, const tx::Arguments &) {
    node.save(0, in.tensor(0));
    node.save(1, in.tensor(1));
}

void backward(tx::Context &c, tx::Node &node, tx::Gradients &grads) {
    tx::Tensor grad = grads.of_output(0), x = node.saved(0), s = c.call(sigmoid_op, {node.saved(1)});
    tx::Tensor through = c.call(mul_op, {grad, s});
    if (node.needs(1)) {
        tx::Tensor slope = c.call(sub_op, {through, c.call(mul_op, {through, s})});
        grads.set(1, c.call(mul_op, {slope, x}));
    }
    if (node.needs(0)) grads.set(0, through);
}

void fails(tx::Context &c, const tx::Arguments &in, tx::Results &) {
    switch (in.integer(0)) {
    case 0: throw std::runtime_error("thrown in C++");
    case 1: throw tx::Error("KeyError", "no such key");
    case 2: throw 5;
    case 3: throw std::bad_alloc();
    case 4: c.resolve("aten::no_such_op"); break;
    default: in.real(0);
    }
}

int init(tgx_ctx *c) {
    return tx::guarded(c, [&] {
        tx::Context context(c);
        sigmoid_op = context.resolve("aten::sigmoid");
        mul_op = context.resolve("aten::mul.Tensor");
        sub_op = context.resolve("aten::sub.Tensor");
        tgx_op_def d = tx::op("gates::gate(Tensor x, Tensor g) -> Tensor");
        d.doc = "x * sigmoid(g).";
        d.kernel = tx::kernel<gate>, d.shape = tx::like_first;
        d.setup = tx::setup<keep>, d.backward = tx::backward<backward>, d.saved = 2;
        d.flags = TGX_FILLS | TGX_DENSE | TGX_DIFFERENTIABLE;
        tx::check(tgx->register_op(c, &d));
        d = tx::op("gates::fails(int how) -> ()");
        d.kernel = tx::kernel<fails>;
        tx::check(tgx->register_op(c, &d));
    });
}

}  // namespace

TGX_EXTENSION("gates", "1.0", init)
