"""Ops that have no derivative where PyTorch says so: the result carries a gradient, and asking for it is refused."""

import pytest

import tinygrad_ext as tg

POSITIVE = [[2.0, 1.0], [1.0, 3.0]]


def _solved(x):
    LD, pivots = tg.linalg.ldl_factor(x.detach())
    return tg.linalg.ldl_solve(LD, pivots, x)


CALLS = {
    "geqrf": lambda x: tg.geqrf(x)[0],
    "heaviside": lambda x: tg.heaviside(x, x.detach()),
    "heaviside of values": lambda x: tg.heaviside(x.detach(), x),
    "unique": lambda x: x.unique(),
    "unique by dimension": lambda x: tg.unique(x, return_counts=True, dim=0)[0],
    "unique_consecutive": lambda x: x.unique_consecutive(),
    "histogram": lambda x: x.histogram(3)[0],
    "histogram of weights": lambda x: x.detach().histogram(3, weight=x)[0],
    "borders of histogram": lambda x: x.histogram(3)[1],
    "histogramdd": lambda x: tg.histogramdd(x, [2, 2])[0],
    "ldl_factor": lambda x: tg.linalg.ldl_factor(x)[0],
    "ldl_solve": _solved,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_result_carries_a_gradient_that_is_refused(call):
    x = tg.tensor(POSITIVE, requires_grad=True)
    found = call(x)
    assert found.requires_grad
    with pytest.raises(NotImplementedError, match="the derivative for '.*' is not implemented.*detach"):
        found.sum().backward()
    with tg.no_grad():
        assert not call(x).requires_grad
    assert tg.equal(call(x.detach()), found)


def test_whole_numbers_carry_none():
    x = tg.tensor(POSITIVE, requires_grad=True)
    assert not x.unique(return_inverse=True)[1].requires_grad
    assert not tg.linalg.ldl_factor(x)[1].requires_grad
