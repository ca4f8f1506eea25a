"""The distributions beside SciPy's and PyTorch's: densities, cdfs, moments of samples, entropies, divergences."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats as st

import tinygrad_ext as tg
from tinygrad_ext import distributions as ds

# name, parameters, SciPy's for the same
CONTINUOUS = [
    ("Normal", {"loc": 0.7, "scale": 1.3}, st.norm(0.7, 1.3)),
    ("Laplace", {"loc": -0.4, "scale": 0.6}, st.laplace(-0.4, 0.6)),
    ("Cauchy", {"loc": 0.2, "scale": 0.8}, st.cauchy(0.2, 0.8)),
    ("Gumbel", {"loc": 0.5, "scale": 1.5}, st.gumbel_r(0.5, 1.5)),
    ("HalfNormal", {"scale": 1.2}, st.halfnorm(scale=1.2)),
    ("HalfCauchy", {"scale": 0.7}, st.halfcauchy(scale=0.7)),
    ("Uniform", {"low": -1.0, "high": 2.5}, st.uniform(-1, 3.5)),
    ("Exponential", {"rate": 2.0}, st.expon(scale=0.5)),
    ("Pareto", {"scale": 1.5, "alpha": 3.5}, st.pareto(3.5, scale=1.5)),
    ("Weibull", {"scale": 1.5, "concentration": 2.2}, st.weibull_min(2.2, scale=1.5)),
]
DISCRETE = [
    ("Bernoulli", {"probs": 0.3}, st.bernoulli(0.3)),
    ("Geometric", {"probs": 0.3}, st.geom(0.3, loc=-1)),
]
IDS = [name for name, *_ in CONTINUOUS]
QUANTILES = np.linspace(0.03, 0.97, 9)


def make(name, kwargs):
    return getattr(ds, name)(**{key: tg.tensor(value, dtype=tg.float64) for key, value in kwargs.items()})


@pytest.fixture(autouse=True)
def seed():
    tg.manual_seed(0)


@pytest.mark.parametrize(("name", "kwargs", "reference"), CONTINUOUS, ids=IDS)
def test_densities_and_cdfs_equal_scipys(name, kwargs, reference):
    ours, points = make(name, kwargs), reference.ppf(QUANTILES)
    value = tg.from_numpy(points)
    np.testing.assert_allclose(ours.log_prob(value).numpy(), reference.logpdf(points), rtol=1e-9)
    np.testing.assert_allclose(ours.cdf(value).numpy(), reference.cdf(points), rtol=1e-9)
    np.testing.assert_allclose(ours.entropy().item(), reference.entropy(), rtol=1e-6)
    if name not in ("Cauchy", "HalfCauchy"):
        np.testing.assert_allclose(ours.mean.item(), reference.mean(), rtol=1e-9)
        np.testing.assert_allclose(ours.variance.item(), reference.var(), rtol=1e-9)
    try:
        found = ours.icdf(tg.from_numpy(QUANTILES))
    except NotImplementedError as error:
        assert "erfinv" in str(error) and not hasattr(tg, "erfinv")
    else:
        np.testing.assert_allclose(found.numpy(), points, rtol=1e-6)


@pytest.mark.parametrize(("name", "kwargs", "reference"), CONTINUOUS, ids=IDS)
def test_samples_are_distributed_so(name, kwargs, reference):
    drawn = make(name, kwargs).sample((4000,)).numpy()
    assert st.kstest(drawn, reference.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("name", "kwargs", "reference"), DISCRETE, ids=["Bernoulli", "Geometric"])
def test_counts_equal_scipys(name, kwargs, reference):
    ours = make(name, kwargs)
    points = np.arange(2.0 if name == "Bernoulli" else 9.0)
    np.testing.assert_allclose(ours.log_prob(tg.from_numpy(points)).numpy(), reference.logpmf(points), rtol=1e-9)
    np.testing.assert_allclose(ours.mean.item(), reference.mean(), rtol=1e-9)
    np.testing.assert_allclose(ours.variance.item(), reference.var(), rtol=1e-9)
    np.testing.assert_allclose(ours.entropy().item(), reference.entropy(), rtol=1e-6)
    drawn = ours.sample((20000,)).numpy()
    # four standard errors
    assert abs(drawn.mean() - reference.mean()) < 4 * reference.std() / math.sqrt(20000)
    by_logits = getattr(ds, name)(logits=ours.logits)
    np.testing.assert_allclose(by_logits.probs.item(), 0.3, rtol=1e-9)


def test_categorical_counts_as_its_probabilities_say():
    weights = tg.tensor([[1.0, 2.0, 5.0], [3.0, 3.0, 0.0]], dtype=tg.float64)
    ours = ds.Categorical(weights)
    probs = weights / weights.sum(-1, keepdim=True)
    drawn = ours.sample((8000,))
    assert tuple(drawn.shape) == (8000, 2) and drawn.dtype == tg.int64
    for row in range(2):
        share = np.bincount(drawn[:, row].numpy(), minlength=3) / 8000
        np.testing.assert_allclose(share, probs[row].numpy(), atol=4 * 0.5 / math.sqrt(8000))
    np.testing.assert_allclose(ours.log_prob(tg.tensor([2, 0])).exp().numpy(), [5 / 8, 1 / 2])
    np.testing.assert_allclose(ours.entropy().numpy(), st.entropy(probs.numpy(), axis=-1), rtol=1e-9)
    assert ours.mode.tolist() == [2, 0] and tuple(ours.enumerate_support().shape) == (3, 2)


@pytest.mark.parametrize(("name", "kwargs", "reference"), CONTINUOUS, ids=IDS)
def test_gradients_reach_the_parameters_through_samples(name, kwargs, reference):
    tensors = {key: tg.tensor(value, dtype=tg.float64, requires_grad=True) for key, value in kwargs.items()}
    getattr(ds, name)(**tensors).rsample((50,)).sum().backward()
    assert all(tensor.grad is not None and bool(tensor.grad.isfinite()) for tensor in tensors.values())


KINDS = [
    ("Normal", [{"loc": 0.1, "scale": 1.0}, {"loc": -0.5, "scale": 2.0}]),
    ("HalfNormal", [{"scale": 1.0}, {"scale": 2.0}]),
    ("Laplace", [{"loc": 0.1, "scale": 1.0}, {"loc": -0.5, "scale": 2.0}]),
    ("Cauchy", [{"loc": 0.1, "scale": 1.0}, {"loc": -0.5, "scale": 2.0}]),
    ("Exponential", [{"rate": 1.0}, {"rate": 2.5}]),
    ("Uniform", [{"low": 0.0, "high": 1.0}, {"low": -1.0, "high": 2.0}]),
    ("Bernoulli", [{"probs": 0.3}, {"probs": 0.8}]),
    ("Geometric", [{"probs": 0.3}, {"probs": 0.8}]),
    ("Categorical", [{"probs": [0.2, 0.8, 0.0]}, {"probs": [0.5, 0.25, 0.25]}]),
]


@pytest.mark.parametrize(("name", "pair"), KINDS, ids=[name for name, _ in KINDS])
def test_divergences_equal_pytorchs(name, pair):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    theirs = [
        getattr(torch.distributions, name)(**{k: torch.tensor(v, dtype=torch.float64) for k, v in kwargs.items()})
        for kwargs in pair
    ]
    mine = [make(name, kwargs) for kwargs in pair]
    for p, q in itertools.product(range(2), repeat=2):
        expected = torch.distributions.kl_divergence(theirs[p], theirs[q]).item()
        assert ds.kl_divergence(mine[p], mine[q]).item() == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("name", "kwargs"), [(n, k) for n, k, _ in CONTINUOUS + DISCRETE])
def test_shapes_expand_and_repr_are_pytorchs(name, kwargs):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    other = getattr(torch.distributions, name)(**{k: torch.full((3, 1), v) for k, v in kwargs.items()})
    ours = getattr(ds, name)(**{k: tg.full((3, 1), v) for k, v in kwargs.items()})
    assert repr(ours) == repr(other)
    wide, reference = ours.expand((2, 3, 4)), other.expand((2, 3, 4))
    assert tuple(wide.batch_shape) == tuple(reference.batch_shape) == (2, 3, 4)
    assert tuple(wide.sample((5,)).shape) == (5, 2, 3, 4)
    value = reference.sample()
    found = wide.log_prob(tg.from_numpy(value.numpy())).numpy()
    np.testing.assert_allclose(found, reference.log_prob(value).numpy(), rtol=1e-4, atol=1e-5)


def test_independent_sums_over_its_events():
    base = ds.Normal(tg.zeros(2, 3), tg.ones(2, 3))
    rows = ds.Independent(base, 1)
    value = rows.rsample((4,))
    assert tuple(rows.event_shape) == (3,) and tuple(rows.log_prob(value).shape) == (4, 2)
    assert tg.equal(rows.log_prob(value), base.log_prob(value).sum(-1))
    assert tg.equal(rows.entropy(), base.entropy().sum(-1))
    assert rows.support.event_dim == 1 and tuple(rows.expand((5, 2)).sample().shape) == (5, 2, 3)
    other = ds.Independent(ds.Normal(tg.ones(2, 3), 2.0), 1)
    assert tg.equal(ds.kl_divergence(rows, other), ds.kl_divergence(base, other.base_dist).sum(-1))
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        ds.Independent(base, 3)


CONSTRAINTS = [
    ("real", [1.0, math.nan], [True, False]),
    ("positive", [1.0, 0.0], [True, False]),
    ("nonnegative_integer", [2.0, 1.5, -1.0], [True, False, False]),
    ("unit_interval", [0.5, 1.5], [True, False]),
    ("boolean", [1.0, 0.5], [True, False]),
    ("simplex", [[0.5, 0.5], [0.5, 0.6]], [True, False]),
    ("one_hot", [[0.0, 1.0], [1.0, 1.0]], [True, False]),
    ("lower_cholesky", [[[1.0, 0.0], [2.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]], [True, False]),
    ("symmetric", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]], [True, False]),
]


@pytest.mark.parametrize(("name", "values", "expected"), CONSTRAINTS)
def test_constraints_tell_what_is_inside(name, values, expected):
    assert getattr(ds.constraints, name).check(tg.tensor(values)).tolist() == expected


def test_what_is_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"parameter scale .* to satisfy the constraint"):
        ds.Normal(tg.zeros(2), tg.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="within the support"):
        ds.Exponential(1.0).log_prob(tg.tensor(-1.0))
    with pytest.raises(ValueError, match="not broadcastable"):
        ds.Normal(tg.zeros(2), 1.0).log_prob(tg.zeros(3))
    with pytest.raises(ValueError, match="parameter low .* LessThan"):
        ds.Uniform(1.0, 0.0)
    with pytest.raises(ValueError, match="but not both"):
        ds.Bernoulli(probs=0.5, logits=0.0)
    with pytest.raises(NotImplementedError, match="register_kl"):
        ds.kl_divergence(ds.Normal(0.0, 1.0), ds.Bernoulli(0.5))
    with pytest.raises(TypeError, match="subclass of Distribution"):
        ds.register_kl(ds.Normal(0.0, 1.0), ds.Normal)
    with pytest.raises(NotImplementedError, match="rsample"):
        ds.Bernoulli(0.5).rsample()
    assert ds.Normal(0.0, -1.0, validate_args=False).loc.item() == 0


def test_the_import_of_the_package_does_not_load_it():
    code = "import sys, tinygrad_ext; assert 'tinygrad_ext.distributions' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_matrix_is_checked_before_it_is_factorized():
    matrix = tg.tensor([[1.0, 2.0], [2.0, 0.5]])
    with pytest.raises(ValueError, match="PositiveDefinite"):
        tg.distributions.MultivariateNormal(tg.zeros(2), matrix, validate_args=True)
    with pytest.raises(ValueError, match="PositiveDefinite"):
        tg.distributions.Wishart(tg.tensor(3.0), matrix, validate_args=True)


def test_shapes_that_are_no_sizes_are_kept_as_a_subclass_gives_them():
    class Several(tg.distributions.Distribution):
        arg_constraints = {}

    made = Several(tg.Size(), [(2,), (3,)])
    assert made.event_shape == [(2,), (3,)] and Several((2,), [3]).event_shape == tg.Size([3])


def test_an_older_word_for_samples_warns():
    normal = tg.distributions.Normal(tg.zeros(2), 1.0)
    with pytest.warns(UserWarning, match="sample_n"):
        assert normal.sample_n(5).shape == (5, 2)


def test_constraints_of_arguments_that_depend_on_others():
    uniform = ds.Uniform(tg.tensor([0.0, 1.0]), 3.0)
    assert uniform.arg_constraints["low"].upper_bound is uniform.high
    assert uniform.arg_constraints["high"].check(uniform.high).all()
    assert ds.Wishart(tg.tensor(4.0), tg.eye(3)).arg_constraints["df"].lower_bound == 2
