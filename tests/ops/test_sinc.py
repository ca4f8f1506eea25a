"""The slope of sinc where the square of a number is zero."""

import pytest

import tinygrad_ext as tg


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.complex64, tg.complex128], ids=str)
def test_the_slope_of_sinc_is_zero_about_zero(dtype):
    tiny = tg.finfo(dtype).tiny
    x = tg.tensor([0.0, tiny, -tiny, tiny * 1e5, tiny**0.5], dtype=dtype, requires_grad=True)
    (slope,) = tg.autograd.grad(tg.sinc(x).sum().real, x)
    assert slope.abs().max().item() < 1e-15
