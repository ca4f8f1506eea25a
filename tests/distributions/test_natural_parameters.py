"""Distributions with natural parameters say so, and their entropy follows from the normalizer of these."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import distributions as d

MADE = {
    "Normal": lambda x: d.Normal(x - 0.5, x),
    "Exponential": d.Exponential,
    "Bernoulli": d.Bernoulli,
    "Bernoulli of logits": lambda x: d.Bernoulli(logits=x),
    "ContinuousBernoulli": d.ContinuousBernoulli,
    "ContinuousBernoulli of logits": lambda x: d.ContinuousBernoulli(logits=x - 0.3),
    "Gamma": lambda x: d.Gamma(x, x + 1),
    "Beta": lambda x: d.Beta(x, x + 1),
    "Dirichlet": d.Dirichlet,
    "Poisson": d.Poisson,
}


@pytest.mark.parametrize("name", MADE)
def test_is_of_the_family(name):
    x = tg.tensor([0.3, 0.5, 0.9], dtype=tg.float64)
    made = MADE[name](x)
    assert isinstance(made, d.ExponentialFamily)
    assert all(param.shape == x.shape for param in made._natural_params)
    if name not in ("Beta", "Dirichlet", "Poisson"):  # whose mean carrier measure nobody writes down
        tg.testing.assert_close(d.ExponentialFamily.entropy(made), made.entropy(), rtol=1e-8, atol=1e-9)
