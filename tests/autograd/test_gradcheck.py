"""The checker itself: it must find wrong derivatives."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import GradcheckError, gradcheck, gradgradcheck


def points():
    return tg.tensor([0.3, -1.1, 2.0], dtype=tg.float64, requires_grad=True)


def test_right_derivatives_pass():
    assert gradcheck(lambda x: (x.sin() * x, x.exp()), (points(),))
    assert gradgradcheck(lambda x: x.sin() * x, (points(),))


def test_a_cut_derivative_fails():
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(lambda x: x * x.detach(), (points(),))
    assert gradcheck(lambda x: x * x.detach(), (points(),), raise_exception=False) is False


def test_a_wrong_second_derivative_fails():
    def wrong(x):
        y = x * x * x
        y.register_hook(lambda g: g.detach())
        return y + (x - x.detach()) * 0

    assert gradcheck(wrong, (points(),))
    with pytest.raises(GradcheckError):
        gradgradcheck(lambda x: wrong(x) * 1, (points(),))


def test_some_input_must_require_grad():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (tg.ones(2, dtype=tg.float64),))
