"""Pointwise ops of other dtypes over bools: what a bool gives is what its number gives, however many there are."""

import numpy as np
import pytest

import tinygrad_ext as tg

OPS = {
    "exp": lambda x: x.exp(),
    "lgamma": lambda x: x.lgamma(),
    "ndtri": lambda x: tg.special.ndtri(x),
    "bessel_y1": lambda x: tg.special.bessel_y1(x),
    "number": lambda x: x + 2.5,
    "number in front": lambda x: 2.5 / x,
    "integer": lambda x: x * 3 - 1,
    "power": lambda x: 0.0**x,
    "complex number": lambda x: x * 1j,
    "compared": lambda x: x > 0.5,
    "clamped": lambda x: x.float().clamp(0.25, 0.5) + tg.clamp(x, 0, 2),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("shape", [(3, 5), (30, 50), (200, 300)])
def test_bools_give_what_their_numbers_give(name, shape):
    x = tg.from_numpy(np.random.default_rng(0).integers(0, 2, shape).astype(bool))
    for laid in (x, x.mT, x[:, ::2], x[:1].expand(shape), x[1:, 1:]):
        found, want = OPS[name](laid), OPS[name](laid.to(tg.int64))
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found.numpy(), want.numpy())


def test_bools_are_written_where_out_is():
    x = tg.from_numpy(np.random.default_rng(0).integers(0, 2, 1000).astype(bool))
    out = tg.zeros(2000)
    assert tg.exp(x, out=out[::2]) is not None
    np.testing.assert_array_equal(out[::2].numpy(), x.float().exp().numpy())
    assert not out[1::2].any()
    wide = tg.zeros(1000, dtype=tg.float64)
    np.testing.assert_array_equal(tg.exp(x, out=wide).numpy(), x.float().exp().double().numpy())
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.exp_()


def test_an_error_of_one_of_the_two_numbers_needs_an_element_that_is_one():
    ones = tg.ones(1000, dtype=tg.bool)
    np.testing.assert_array_equal((7 // ones).numpy(), np.full(1000, 7))
    ones[500] = False
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        7 // ones
