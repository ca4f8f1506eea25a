"""tgx-curves, installed; what holds for every op stands in the checks."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import plugins
from tinygrad_ext.testing import plugin_tests

pytest.importorskip("tgx_curves", reason="tgx-curves is not installed: pip install ./plugins/curves")

test_conformance = plugin_tests("curves")


@pytest.mark.parametrize("dtype", [tg.float64, tg.float32, tg.float16, tg.bfloat16])
def test_values(dtype):
    x = tg.linspace(-3, 3, 1001).to(dtype)
    wide = x.double()
    expected = 1 / (1 + 2 * wide * wide)
    assert tg.ops.curves.bump(x, 2.0).dtype == dtype
    assert tg.allclose(tg.ops.curves.bump(x, 2.0).double(), expected, rtol=4 * tg.finfo(dtype).eps, atol=0)
    assert tg.equal(tg.ops.curves.bump(x.flip(0), 2.0), tg.ops.curves.bump(x, 2.0).flip(0))


def test_a_graph_keeps_the_op_and_its_values():
    x = tg.randn(5000)

    def chain(x):
        y = tg.ops.curves.bump(x * x, 0.5) + x
        return tg.ops.curves.bend(y, x) * 2

    traced = tg.jit.trace(chain, (x,))
    assert "curves::bump" in str(traced.graph) and tg.equal(traced(x), chain(x))


def spelled_out(x, y):
    return x * tg.exp(-y.abs()) + 1


def turned(x, y):
    return tg.exp(-tg.abs(y)) * x


def read_elsewhere(x, y):
    e = tg.exp(-y.abs())
    return x * e, e


def ops_that_run(traced, *args):
    return [op for line in traced.plan(*args).lines() for op in line.ops]


@pytest.fixture
def loaded():
    plugins.load("curves")


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("program", [spelled_out, turned])
def test_a_graph_calls_the_fused_op_where_it_is_spelled_out_bit_for_bit(loaded, program, dtype):
    tg.manual_seed(5)
    x, y = 9 * tg.randn(70, 3, dtype=dtype), 9 * tg.randn(70, 3, dtype=dtype)
    y[0] = tg.tensor([0.0, float("inf"), -0.0])
    traced = tg.jit.trace(program, (x, y))
    ran = ops_that_run(traced, x, y)
    assert "curves::bend" in ran and not {"aten::abs", "aten::neg", "aten::exp"} & set(ran)
    for a, b in ((x, y), (x[:1], y), (x, y[:, :1]), (x[::2], y[::2])):
        assert traced(a, b).numpy().tobytes() == program(a, b).numpy().tobytes()
    assert traced(x, y * float("nan")).isnan().all()  # whose sign and payload are nobody's
    assert "aten::exp" in str(traced.graph)  # what is shown, saved and derived is the program's own


def test_half_types_and_what_is_read_elsewhere_stay_spelled_out(loaded):
    x, y = tg.randn(5), tg.randn(5)
    for program, args in (
        (spelled_out, (x.half(), y.half())),
        (spelled_out, (x, y.double())),
        (read_elsewhere, (x, y)),
    ):
        traced = tg.jit.trace(program, args)
        assert "curves::bend" not in ops_that_run(traced, *args)
        got, wanted = traced(*args), program(*args)
        for a, b in zip(*((t if isinstance(t, tuple) else (t,)) for t in (got, wanted))):
            assert tg.equal(a, b)


def test_gradients_are_those_of_the_steps(loaded):
    x, y = (tg.randn(4, 3, requires_grad=True) for _ in range(2))
    traced = tg.jit.trace(spelled_out, (x, y))
    for a, b in zip(*(tg.autograd.grad(f(x, y).square().sum(), (x, y)) for f in (traced, spelled_out))):
        assert tg.equal(a, b)
