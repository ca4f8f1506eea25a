"""Gradients that tensors from outside retain, under vmap."""

import pytest

import tinygrad_ext as tg


def test_grad_under_vmap_goes_on_and_leaves_what_nobody_can_use():
    x = tg.ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    z = y * y
    got = tg.vmap(lambda v: tg.autograd.grad(z, x, v, retain_graph=True)[0])(tg.eye(3))
    assert got.tolist() == [[8, 0, 0], [0, 8, 0], [0, 0, 8]]
    with pytest.raises(RuntimeError, match="a value carried by vmap over 3 was used after that level ended"):
        -y.grad
    y.grad = None
    z.sum().backward()
    assert y.grad.tolist() == [4, 4, 4] and x.grad.tolist() == [8, 8, 8]
