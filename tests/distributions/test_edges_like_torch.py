"""Values at edges, where a formula that is right inside gives something else."""

import math
import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext import distributions as dist
from tinygrad_ext.autograd import forward_ad, gradcheck
from tinygrad_ext.distributions.exp_family import ExponentialFamily


def test_slope_of_a_binomial_at_even_odds():
    x = tg.tensor(0.0, requires_grad=True)
    (slope,) = tg.autograd.grad(dist.Binomial(1.0, logits=x).log_prob(tg.tensor(0.0)), x)
    assert slope.item() == -0.5
    far = dist.Binomial(1.0, logits=tg.tensor([-100.0, 100.0])).log_prob(tg.tensor([0.0, 0.0]))
    tg.testing.assert_close(far, tg.tensor([0.0, -100.0]))


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_continuous_bernoulli_of_great_odds(dtype):
    most = tg.finfo(dtype).max / 4
    for sign in (1.0, -1.0):
        x = tg.tensor([most * sign], dtype=dtype, requires_grad=True)
        found = dist.ContinuousBernoulli(logits=x).log_prob(tg.tensor([(1.0 + sign) / 2], dtype=dtype))
        eps = tg.finfo(dtype).eps
        assert found.item() == pytest.approx(math.log(math.log(1 / eps)), rel=0.01)
        assert tg.autograd.grad(found, x)[0].item() == 0.0


def test_a_weibull_below_one_has_no_mode():
    found = dist.Weibull(tg.ones(3), tg.tensor([0.7, 1.0, 2.0])).mode
    tg.testing.assert_close(found, tg.tensor([math.nan, 0.0, 0.5**0.5]), equal_nan=True)


def test_entropy_of_a_wishart_by_its_normalizer():
    cov = tg.tensor([[[1.0, 0.3], [0.3, 2.0]], [[2.0, 0.0], [0.0, 0.5]]], dtype=tg.float64)
    wishart = dist.Wishart(tg.tensor([2.5, 4.0], dtype=tg.float64), cov)
    tg.testing.assert_close(ExponentialFamily.entropy(wishart), wishart.entropy())


def test_a_wishart_is_differentiated_by_matrices_that_rounding_leaves_unsymmetric():
    cov = tg.tensor([[1.0, 0.3], [0.3, 2.0]], dtype=tg.float64)
    wishart = dist.Wishart(tg.tensor(3.5, dtype=tg.float64), cov, validate_args=False)
    tg.manual_seed(1)
    assert gradcheck(wishart.log_prob, (wishart.sample().requires_grad_(),))


def test_singular_samples_of_a_wishart_are_drawn_anew():
    class Fussy(dist.Wishart):
        asked = 0

        def _drawn(self, sample_shape):
            self.asked += 1
            found = super()._drawn(sample_shape)
            if self.asked < 3:
                found[..., 0, :] = 0.0
                found[..., :, 0] = 0.0
            return found

    wishart = Fussy(tg.tensor(3.0), tg.eye(2))
    with pytest.warns(UserWarning, match="Singular sample detected") as seen:
        found = wishart.sample((4,))
    assert len(seen) == 1 and wishart.asked == 3 and bool(wishart.support.check(found).all())


def test_what_is_not_checked_is_told():
    class Unchecked(dist.Distribution):
        def log_prob(self, value):
            self._validate_sample(value)
            return value

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        unchecked = Unchecked(validate_args=True)
    with pytest.warns(UserWarning, match="does not define `support`"):
        unchecked.log_prob(tg.ones(()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Unchecked(validate_args=False)


def test_checked_distributions_are_traced():
    def f(loc, scale, value):
        return dist.Normal(loc, scale, validate_args=True).log_prob(value)

    traced = tg.jit.trace(f, (tg.zeros(2), tg.ones(2), tg.zeros(2)))
    given = tg.tensor([1.0, 2.0]), tg.tensor([0.5, 3.0]), tg.tensor([0.0, 1.0])
    assert tg.equal(traced(*given), f(*given))


@pytest.mark.parametrize(
    "draw",
    [
        tg.bernoulli,
        tg.poisson,
        lambda x: x.normal_(),
        lambda x: x.uniform_(),
        lambda x: x.exponential_(),
        lambda x: tg.normal(x, 0.5),
        lambda x: x.fill_(2.0),
    ],
)
def test_what_is_drawn_does_not_follow_its_parameters(draw):
    with forward_ad.dual_level():
        drawn = draw(forward_ad.make_dual(tg.tensor(1.0), tg.tensor(1.0)))
        assert forward_ad.unpack_dual(drawn).tangent.item() == 0.0
