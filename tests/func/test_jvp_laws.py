"""Laws of forward mode on random programs, its in-place forms over the op table, and PyTorch's own."""

import random

import pytest
from matrix_steps import STEPS

import tinygrad_ext as tg
from tinygrad_ext import func
from tinygrad_ext.registry import variants
from tinygrad_ext.testing import compare, sweep
from tinygrad_ext.testing.battery.case import Case


def program(seed):
    """A function of two 3 x 3 matrices."""
    chosen = random.Random(seed).choices(range(len(STEPS)), k=6)

    def run(a, b):
        for i in chosen:
            a, b = STEPS[i](a, b), a
        return a.tanh(), (b * a).sum()

    return run


def matrices(seed, count):
    generator = tg.Generator().manual_seed(seed)
    return [tg.randn(3, 3, dtype=tg.float64, generator=generator) for _ in range(count)]


@pytest.mark.parametrize("seed", range(30))
def test_tangents_are_linear_and_the_transpose_of_gradients(seed):
    f = program(seed)
    a, b, va, vb, wa, wb, u = matrices(seed, 7)
    push = lambda x, y: func.jvp(f, (a, b), (x, y))[1]
    v, w, both = push(va, vb), push(wa, wb), push(2 * va - wa, 2 * vb - wb)
    for p, q, r in zip(v, w, both):
        tg.testing.assert_close(r, 2 * p - q, rtol=1e-9, atol=1e-9)
    _, back = func.vjp(f, a, b)
    ga, gb = back((u, tg.tensor(1.5, dtype=tg.float64)))
    left, right = (u * v[0]).sum() + 1.5 * v[1], (ga * va).sum() + (gb * vb).sum()
    tg.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)
    for p, q in zip(func.linearize(f, a, b)[1](va, vb), v):
        tg.testing.assert_close(p, q, rtol=1e-9, atol=1e-9)


# ---- in place ------------------------------------------------------------------------------------------------------

INPLACE = {
    op.name.removeprefix("aten::"): op
    for op in sweep.ops()
    if "inplace" in variants(op.record) and "float64" in sweep.supported(op) and not sweep.is_random(op)
}


NOT_BY_SELF = ("aten::igamma", "aten::igammac", "aten::heaviside")  # they refuse tangents of their first argument


@pytest.mark.parametrize("op", INPLACE.values(), ids=INPLACE)
def test_an_inplace_form_has_the_tangents_of_the_plain_one(op):
    method = sweep.inplace_form(op)
    for sample in sweep.samples(op, "float64", True):
        case = Case(sample, "float64").fresh()
        if not case.args or not isinstance(case.args[0], tg.Tensor) or not case.args[0].is_floating_point():
            continue
        if op.name in NOT_BY_SELF:
            continue
        x, rest = case.args[0].detach(), case.args[1:]
        plain = lambda x: sweep.function(op)(x, *rest, **case.kwargs)
        value = plain(x)
        fits = isinstance(value, tg.Tensor) and value.dtype == x.dtype
        if not fits or (value.shape != x.shape and not op.is_view_op):
            continue
        want = func.jvp(plain, (x,), (tg.ones_like(x) * 0.5,))
        got = func.jvp(lambda x: method(x * 1, *rest, **case.kwargs), (x,), (tg.ones_like(x) * 0.5,))
        compare.assert_close(list(got), list(want), "float64", f"{op.name} {sample}")


# ---- beside PyTorch ------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "pointwise": lambda T, x, y: (x.sin() * y).exp() / (1 + y * y),
    "product": lambda T, x, y: x @ y.T,
    "softmax": lambda T, x, y: T.nn.functional.log_softmax(x * y, 1),
    "norm": lambda T, x, y: T.linalg.vector_norm(x - y, dim=1),
    "layer_norm": lambda T, x, y: T.nn.functional.layer_norm(x, (3,), y[0], y[1]),
    "choice": lambda T, x, y: T.where(x > 0, x.amax(1, True), y).sort(1)[0],
    "var": lambda T, x, y: T.var_mean(x * y, 0)[0] + y.std(0),
    "cumprod": lambda T, x, y: x.cumprod(1) * y.prod(0),
    "written": lambda T, x, y: T.zeros_like(x).copy_(x).mul_(y)[1:],
    "detached": lambda T, x, y: x.detach() * y,
    "loss": lambda T, x, y: T.nn.functional.cross_entropy(x, T.tensor([0, 2, 1])) + T.nn.functional.mse_loss(x, y),
    "conv": lambda T, x, y: T.nn.functional.conv1d(x[None], y[:, :, None], y[0]),
    "pool": lambda T, x, y: T.nn.functional.max_pool1d(x[None], 2)[0] * T.nn.functional.avg_pool1d(y[None], 2)[0],
    "solve": lambda T, x, y: T.linalg.solve(x + 4 * T.eye(3, dtype=x.dtype), y),
    "decided": lambda T, x, y: x * 2 if x.sum() > -99 else y,
}


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # PyTorch's own use of it
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_are_those_of_torch(name):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    x, y, v, w = matrices(3, 4)
    f = FUNCTIONS[name]
    value, product = func.jvp(lambda x, y: f(tg, x, y), (x, y), (v, w))
    theirs = [torch.tensor(t.tolist(), dtype=torch.float64) for t in (x, y, v, w)]
    want, slope = torch.func.jvp(lambda x, y: f(torch, x, y), tuple(theirs[:2]), tuple(theirs[2:]))
    tg.testing.assert_close(value, tg.tensor(want.tolist(), dtype=tg.float64), rtol=1e-9, atol=1e-9)
    tg.testing.assert_close(product, tg.tensor(slope.tolist(), dtype=tg.float64), rtol=1e-9, atol=1e-9)
