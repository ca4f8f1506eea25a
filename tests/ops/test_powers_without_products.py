"""Powers that compute nothing, 0 and 1 and those of one, in any layout: they are written or copied, not widened."""

import pytest

import tinygrad_ext as tg

LAYOUTS = {
    "dense": lambda x: x,
    "turned": lambda x: x.t(),
    "strided": lambda x: x[::2, 1::3],
    "repeated": lambda x: x[:1].expand(40, -1),
    "one": lambda x: x[3, 4],
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [tg.bfloat16, tg.float16, tg.complex64, tg.complex128], ids=str)
def test_powers_zero_and_one(dtype, layout):
    tg.manual_seed(0)
    x = LAYOUTS[layout](tg.randn(40, 37).to(dtype))
    ones = tg.ones(x.shape, dtype=dtype)
    assert tg.equal(x**1, x)
    assert tg.equal(x**0, ones)
    assert tg.equal(1**x, ones)
    out = tg.zeros(*x.shape, 3, dtype=dtype)[..., 1]
    assert tg.equal(tg.pow(x, 0, out=out), ones)
    assert tg.equal(tg.pow(x, 1, out=out), x)
    assert tg.equal(tg.pow(1, x, out=out), ones)
    y = x.clone()
    assert tg.equal(y.pow_(1), x) and tg.equal(y.pow_(0), ones)


@pytest.mark.parametrize("dtype", [tg.bfloat16, tg.float16, tg.complex64], ids=str)
def test_powers_zero_and_one_of_what_is_no_number(dtype):
    x = tg.tensor([float("nan"), float("inf"), -float("inf"), -0.0]).to(dtype)
    assert tg.equal(x**0, tg.ones_like(x))
    assert str(x**1) == str(x)
