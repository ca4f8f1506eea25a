"""gradcheck of arguments that have the conjugate or the negative bit."""

import tinygrad_ext as tg
from tinygrad_ext.autograd import gradcheck, gradgradcheck


def test_arguments_with_the_conjugate_bit_are_checked():
    a = tg.randn(2, 3, dtype=tg.complex128).conj().requires_grad_()
    b = tg.randn(3, 2, dtype=tg.complex128).mH.mT.requires_grad_()
    assert a.is_conj() and b.is_conj()
    for check in (gradcheck, gradgradcheck):
        assert check(lambda x, y: x @ y, (a, b))
        assert check(lambda x: x.conj() * x, (a,), fast_mode=True)


def test_arguments_with_the_negative_bit_are_checked():
    a = tg.randn(3, dtype=tg.complex128).conj().imag.detach().requires_grad_()
    assert a.is_neg() and gradcheck(lambda x: x * x.exp(), (a,))
