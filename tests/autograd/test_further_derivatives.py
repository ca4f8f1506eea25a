"""Derivatives of derivatives until none is left, as programs take them that look at grad_fn."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import grad


@pytest.mark.parametrize("power", [lambda x: x**2, lambda x: x.pow(2), lambda x: x.square(), lambda x: x**3])
def test_powers_end_in_zeros_that_have_no_history(power):
    x, t = tg.tensor([1.5, 2.0], requires_grad=True), tg.tensor([2.0, 3.0], requires_grad=True)
    found = power(x) * t
    for _ in range(5):
        if not found.requires_grad:
            break
        found = grad(found.sum(), x, create_graph=True)[0]
    assert not found.requires_grad and found.tolist() == [0, 0]
    assert grad(grad(x.square().sum(), x, create_graph=True)[0].sum(), x)[0].tolist() == [2, 2]
