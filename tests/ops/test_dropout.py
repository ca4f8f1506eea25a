"""Dropout as one step: the numbers, the layout and the state of the stream are those of factors and a product."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.func import jvp, vmap
from tinygrad_ext.ops.fused import fused

LAYOUTS = {
    "rows": lambda dtype: tg.randn(70, 61, dtype=dtype),
    "many": lambda dtype: tg.randn(300, 401, dtype=dtype),
    "turned": lambda dtype: tg.randn(30, 41, dtype=dtype).t(),
    "cut": lambda dtype: tg.randn(30, 41, dtype=dtype)[::2, 1::3].t(),
    "channels last": lambda dtype: tg.randn(3, 4, 5, 6, dtype=dtype).to(memory_format=tg.channels_last),
    "expanded": lambda dtype: tg.randn(5, 1, dtype=dtype).expand(5, 7),
    "one": lambda dtype: tg.randn((), dtype=dtype),
}


def by_product(x, p):
    return x * fused._dropout_noise(x.detach(), p, False)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_step_is_factors_and_a_product(layout, dtype):
    x = LAYOUTS[layout](dtype).requires_grad_()
    for p in (0.1, 0.3, 0.77):
        for skipped in (0, 1, 311):  # pairs of words are cut by the end of a block, or are not
            got = []
            for f in (tg.nn.functional.dropout, by_product):
                tg.manual_seed(3)
                tg.rand(skipped)
                result = f(x, p)
                got.append((result, *tg.autograd.grad(result, x, tg.ones_like(result) * 3), tg.get_rng_state()))
            assert got[0][0].stride() == got[1][0].stride()
            assert all(a.equal(b) for a, b in zip(*got))


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
def test_what_is_not_finite_is_multiplied(dtype):
    x = tg.tensor([float("inf"), float("-inf"), float("nan"), -1.0], dtype=dtype).repeat(100)
    tg.manual_seed(0)
    got = tg.nn.functional.dropout(x, 0.5)
    tg.manual_seed(0)
    want = by_product(x, 0.5)
    assert tg.equal(got.isnan(), want.isnan())
    assert tg.equal(got.nan_to_num(), want.nan_to_num())
    assert tg.equal(tg.signbit(got[3::4]), tg.signbit(want[3::4]))


def test_derivatives_multiply_by_what_was_kept():
    x = tg.randn(40, dtype=tg.float64, requires_grad=True)

    def f(v):
        tg.manual_seed(1)
        return tg.nn.functional.dropout(v, 0.25) ** 3

    assert tg.autograd.gradcheck(f, (x,))
    assert tg.autograd.gradgradcheck(f, (x,))
    tangent = tg.randn(40, dtype=tg.float64)
    pushed = jvp(f, (x.detach(),), (tangent,))[1]
    (pulled,) = tg.autograd.grad(f(x), x, tangent)
    assert tg.allclose(pushed, pulled)


def test_samples_of_a_batch_that_share_their_draws_have_gradients():
    x = tg.randn(3, 20, requires_grad=True)
    tg.manual_seed(2)
    rows = vmap(lambda v: tg.nn.functional.dropout(v, 0.5), randomness="same")(x)
    (slopes,) = tg.autograd.grad(rows.sum(), x)
    tg.manual_seed(2)
    factors = fused._dropout_noise(x[0].detach(), 0.5, False)
    assert tg.equal(rows, x * factors)
    assert tg.equal(slopes, factors.expand(3, 20))


def test_native_dropout_says_what_was_kept():
    tg.manual_seed(4)
    result, kept = tg.native_dropout(tg.ones(50), 0.5, True)
    assert kept.dtype == tg.bool
    assert tg.equal(result, kept * 2.0)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
def test_a_gradient_may_lie_as_it_likes(dtype):
    kept, grad = tg.rand(6, 5) < 0.5, tg.randn(6, 5, dtype=dtype)
    want = fused._dropout_step_backward(grad, kept, 0.75)
    assert tg.equal(want, tg.where(kept, grad * (tg.ones((), dtype=dtype) / 0.75), grad * 0))
    turned = lambda t: t.t().contiguous().t()
    for g in (grad, turned(grad), tg.cat([grad, grad], 1)[:, :5]):
        for k in (kept, turned(kept), tg.cat([kept, kept], 1)[:, :5]):
            got = fused._dropout_step_backward(g, k, 0.75)
            assert tg.equal(got, want)
    row = fused._dropout_step_backward(grad[:1].expand(6, 5), kept[:1].expand(6, 5), 0.75)
    assert tg.equal(row, want[:1].expand(6, 5))
