"""tgx-curves, installed; what holds for every op stands in the checks."""

import pytest

import tinygrad_ext as tg
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
