"""Distributions with formulas of their own are those of what they are made of."""

import copy
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import distributions as d

MADE = {
    "Gumbel": lambda: d.Gumbel(tg.tensor([0.0, 1.0]), tg.tensor([1.0, 2.0])),
    "Pareto": lambda: d.Pareto(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])),
    "Weibull": lambda: d.Weibull(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_formula_is_that_of_the_base_and_its_transforms(made):
    tg.manual_seed(0)
    named = made()
    whole = d.TransformedDistribution(named.base_dist, list(named.transforms))
    values = named.sample((5,))
    assert isinstance(named, d.TransformedDistribution) and named.has_rsample
    tg.testing.assert_close(named.log_prob(values), whole.log_prob(values))
    tg.testing.assert_close(named.cdf(values), whole.cdf(values), rtol=1e-4, atol=1e-5)
    tg.testing.assert_close(named.icdf(tg.full((2,), 0.25)), whole.icdf(tg.full((2,), 0.25)), rtol=1e-4, atol=1e-5)
    assert named.expand((4, 2)).base_dist.batch_shape == (4, 2)
    assert d.kl_divergence(named, made()).tolist() == [0, 0]
    for again in (copy.deepcopy(named), pickle.loads(pickle.dumps(named))):
        assert again.log_prob(values).equal(named.log_prob(values))


def test_divergence_of_different_transforms_is_refused():
    with pytest.raises(NotImplementedError, match="different transforms"):
        d.kl_divergence(d.Weibull(1.0, 2.0), d.Weibull(2.0, 2.0))


WRONG = {
    "Wishart of nothing": lambda: d.Wishart(3.0),
    "Wishart of two": lambda: d.Wishart(tg.tensor(3.0), tg.eye(2), tg.eye(2)),
    "CatTransform": lambda: d.CatTransform([3]),
    "lengths": lambda: d.CatTransform([d.ExpTransform()], lengths=[1, 2]),
    "StackTransform": lambda: d.StackTransform([3]),
    "cat": lambda: d.constraints.cat([3]),
    "stack": lambda: d.constraints.stack([3]),
    "PackedSequence": lambda: tg.nn.utils.rnn.PackedSequence(tg.ones(3)),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_parts_that_are_none_are_asserted_as_in_pytorch(call):
    with pytest.raises(AssertionError, match="xactly one|must be a|lengths|length 2"):
        call()


def test_words_of_arguments_are_pytorchs():
    assert d.HalfNormal(1.0).icdf(prob=tg.tensor(0.0)).item() == 0
    mixture = d.MixtureSameFamily(d.Categorical(tg.ones(2)), d.Normal(tg.zeros(2), tg.ones(2)))
    assert mixture.log_prob(x=tg.tensor(0.0)).equal(mixture.log_prob(tg.tensor(0.0)))
