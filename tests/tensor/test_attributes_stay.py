"""Attributes of a tensor that cannot be deleted."""

import pytest

import tinygrad_ext as tg


@pytest.mark.parametrize("name, words", [("data", "Deleting tensor data is not"), ("_grad_fn", "Deletion of _grad_fn")])
def test_data_and_history_stay(name, words):
    x = tg.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match=words):
        delattr(x, name)
    assert x.data.tolist() == [2, 2] and x._grad_fn is x.grad_fn is not None


def test_a_gradient_goes():
    x = tg.ones(2, requires_grad=True)
    x.sum().backward()
    del x.grad
    assert x.grad is None
