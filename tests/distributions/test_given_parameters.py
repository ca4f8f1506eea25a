"""What a distribution is made of stays what the caller gave, where the shapes agree."""

import copy

import pytest

import tinygrad_ext as tg
from tinygrad_ext import distributions as d


def test_broadcast_tensors_hands_back_what_has_the_shape():
    row, table = tg.ones(3, requires_grad=True), tg.ones(2, 3)
    same, alike = tg.broadcast_tensors(row, row)
    assert same is row and alike is row
    wide, given = tg.broadcast_tensors(row, table)
    assert given is table and wide.shape == (2, 3) and not wide.is_leaf


@pytest.mark.parametrize("cls", [d.Normal, d.Gamma, d.Cauchy, d.Laplace, d.Weibull], ids=lambda cls: cls.__name__)
def test_leaves_stay_leaves_and_are_copied(cls):
    given = [tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([1.5, 3.0], requires_grad=True)]
    made = cls(*given)
    copied = copy.deepcopy(made)
    value = tg.tensor([0.3, 0.6])
    assert tg.equal(copied.log_prob(value), made.log_prob(value))
    if cls is d.Normal:
        assert made.loc is given[0] and copied.loc.is_leaf
