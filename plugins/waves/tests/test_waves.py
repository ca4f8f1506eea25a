"""tgx-waves, installed; what holds for every op stands in the checks."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import plugin_tests

pytest.importorskip("tgx_waves", reason="tgx-waves is not installed: pip install ziglang ./plugins/waves")

test_conformance = plugin_tests("waves")


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
def test_values(dtype):
    x = tg.tensor([0, 0.25, 0.5, 0.75, 1, -0.125], dtype=dtype)
    assert tg.ops.waves.triangle(x).tolist() == [-1, 0, 1, 0, -1, -0.5]
    assert tg.ops.waves.triangle(x, 4.0).tolist() == [-1, -0.75, -0.5, -0.25, 0, -0.875]


def test_the_slope_is_the_derivative_and_the_second_one_is_that_of_straight_lines():
    x = tg.tensor([0.2, 0.7, -0.3], dtype=tg.float64, requires_grad=True)
    f = lambda x: tg.ops.waves.triangle(x * x, 0.8)
    assert tg.autograd.gradcheck(f, (x,)) and tg.autograd.gradgradcheck(f, (x,))


def test_a_training_step_is_a_graph():
    def step(x):
        x = x.detach().requires_grad_()
        tg.ops.waves.triangle(x).square().sum().backward()
        return x - 0.1 * x.grad

    x = tg.rand(6)
    assert tg.allclose(tg.jit.trace(step, (x,))(x), step(x))
