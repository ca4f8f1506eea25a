"""tgx-gates, installed; what holds for every op stands in the checks."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import plugin_tests

pytest.importorskip("tgx_gates", reason="tgx-gates is not installed: pip install ./plugins/gates")

test_conformance = plugin_tests("gates")


def parts(x, g):
    return x * g * g.sigmoid()


@pytest.fixture
def pair():
    return tuple(tg.randn(3, 4, dtype=tg.float64, requires_grad=True) for _ in range(2))


def test_it_is_what_its_parts_are(pair):
    for dtype in (tg.float32, tg.float64):
        x, g = (t.detach().to(dtype) for t in pair)
        for _ in range(9):  # watched, and not
            assert tg.allclose(tg.ops.gates.swiglu(x, g), parts(x, g))
            assert tg.allclose(tg.ops.gates.swiglu(x.t(), g.t()), parts(x, g).t())


def test_derivatives_of_three_orders(pair):
    x, g = pair
    swiglu = tg.ops.gates.swiglu
    assert tg.autograd.gradcheck(swiglu, (x, g)) and tg.autograd.gradgradcheck(swiglu, (x, g))
    row = x.detach()[0]
    third = lambda f: tg.func.jacrev(tg.func.jacrev(tg.func.grad(lambda v: f(v, v * v).sum())))(row)
    assert tg.allclose(third(swiglu), third(parts))


def test_a_training_step_of_a_feed_forward_layer_is_a_graph(pair):
    x, g = (t.detach() for t in pair)

    def step(f, x, g):
        x, g = x.detach().requires_grad_(), g.detach().requires_grad_()
        f(x, g).square().sum().backward()
        return x - 0.1 * x.grad, g - 0.1 * g.grad

    traced = tg.jit.trace(lambda x, g: step(tg.ops.gates.swiglu, x, g), (x, g))
    for got, wanted in zip(traced(x, g), step(parts, x, g)):
        assert tg.allclose(got, wanted)


def test_samples_of_a_batch(pair):
    x, g = (t.detach() for t in pair)
    got = tg.vmap(tg.func.grad(lambda x, g: tg.ops.gates.swiglu(x, g).sum()))(x, g)
    assert tg.allclose(got, g * g.sigmoid())
