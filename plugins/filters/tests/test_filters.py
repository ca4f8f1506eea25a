"""tgx-filters, installed; what holds for every op stands in the checks."""

import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import plugins
from tinygrad_ext.testing import plugin_tests

pytest.importorskip("tgx_filters", reason="tgx-filters is not installed: pip install ./plugins/filters")

test_conformance = plugin_tests("filters")


def test_values():
    x = tg.tensor([8.0, 0.0, 0.0, 4.0])
    assert tg.ops.filters.ema(x, 0.5).tolist() == [4, 2, 1, 2.5]
    assert tg.ops.filters.ema_adjoint(x, 0.5).tolist() == [4.25, 0.5, 1, 2]


def test_the_adjoint_is_the_transpose_and_both_have_every_derivative():
    f, eye = tg.ops.filters, tg.eye(5, dtype=tg.float64)
    assert f.ema(eye, 0.3).t().equal(f.ema_adjoint(eye, 0.3))
    x = tg.rand(2, 5, dtype=tg.float64, requires_grad=True)
    assert tg.autograd.gradgradcheck(lambda t: f.ema(t * t, 0.3), (x,))
    assert tg.func.hessian(lambda t: f.ema(t * t, 0.3).sum())(x.detach()[0]).shape == (5, 5)


def test_a_batch_is_one_call():
    x = tg.rand(3, 4, 6)
    assert tg.vmap(lambda t: tg.ops.filters.ema(t, 0.3))(x).equal(tg.ops.filters.ema(x, 0.3))
    assert tg.func.vmap(tg.func.grad(lambda t: tg.ops.filters.ema(t, 0.3).sum()))(x).shape == x.shape


def test_rows_on_several_threads_are_those_of_one():
    x = tg.rand(300, 1000)
    whole = tg.ops.filters.ema(x, 0.1)
    assert all(whole[i].equal(tg.ops.filters.ema(x[i], 0.1)) for i in range(0, 300, 37))


def test_a_training_step_is_a_graph():
    def step(x):
        x = x.detach().requires_grad_()
        tg.ops.filters.ema(x, 0.5).square().sum().backward()
        return x - 0.1 * x.grad

    x = tg.rand(3, 8)
    traced = tg.jit.trace(step, (x,))
    for rows in (3, 5):
        x = tg.rand(rows, 8)
        assert tg.allclose(traced(x), step(x))


def test_the_backward_enters_no_frame_of_python():
    x, f = tg.rand(8, requires_grad=True), tg.ops.filters.ema
    for _ in range(9):  # the first calls of an op are watched
        y = f(x, 0.5)
        tg.autograd.grad(y, x, tg.ones(8))
    y, doubled, seed, entered = f(x, 0.5), x * x, tg.ones(8), ([], [])
    for found, result in zip(entered, (y, doubled)):
        sys.setprofile(lambda frame, event, arg: event == "call" and found.append(frame.f_code.co_name))
        try:
            tg.autograd.grad(result, x, seed)
        finally:
            sys.setprofile(None)
    assert entered[0] == entered[1]


def test_the_ops_come_again_after_a_reload():
    plugins.reload("filters")
    assert tg.ops.filters.ema(tg.ones(2), 1.0).tolist() == [1, 1]
    assert plugins.info("filters").ops == ("filters::ema", "filters::ema_adjoint")
