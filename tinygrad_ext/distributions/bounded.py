"""Distributions with an end: Uniform, Exponential, Pareto, Weibull."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .transformed import OfFormulas
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import broadcast_all, euler_constant


@boundary
class Uniform(Distribution):
    """The uniform distribution over [low, high).

    Raises:
        ValueError: ``low`` is not below ``high``, if arguments are checked.
    """

    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self):
        """Each end lies on its side of the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """From low to high."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self):
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def mode(self):
        """NaN: no place is likelier."""
        return tg.full_like(self.low, math.nan)

    @property
    def variance(self):
        """The variance."""
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both ends."""
        shape = self._extended_shape(sample_shape)
        u = tg.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value):
        """The logarithm of the density, minus infinity outside."""
        value = self._checked(value)
        inside = (self.low <= value) & (value < self.high)
        return tg.log(inside.to(self.low.dtype)) - tg.log(self.high - self.low)

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        """Where the cdf is ``value``."""
        return value * (self.high - self.low) + self.low

    def entropy(self):
        """The logarithm of the width."""
        return tg.log(self.high - self.low)


@boundary
class Exponential(ExponentialFamily):
    """The exponential distribution with the density ``rate * exp(-rate * x)``.

    Raises:
        ValueError: ``rate`` is not positive, if arguments are checked.
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self):
        """One over the rate."""
        return self.rate.reciprocal()

    @property
    def stddev(self):
        """One over the rate."""
        return self.rate.reciprocal()

    @property
    def mode(self):
        """Zero."""
        return tg.zeros_like(self.rate)

    @property
    def variance(self):
        """One over the square of the rate."""
        return self.rate.pow(-2)

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to the rate."""
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value):
        """The logarithm of the density."""
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return 1 - tg.exp(-self.rate * self._checked(value))

    def icdf(self, value):
        """Where the cdf is ``value``."""
        return -tg.log1p(-value) / self.rate

    def entropy(self):
        """The entropy."""
        return 1 - self.rate.log()

    _mean_carrier_measure = 0

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -tg.log(-x)


@boundary
class Pareto(OfFormulas):
    """The Pareto distribution, which starts at ``scale`` and falls with the power ``alpha + 1``.

    Raises:
        ValueError: a parameter is not positive, if arguments are checked.
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.size(), validate_args=validate_args)

    def _parts(self):
        return Exponential(self.alpha, validate_args=False), [ExpTransform(), AffineTransform(0, self.scale)]

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """From the scale on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        """The mean, infinite for alpha up to 1."""
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self):
        """The scale."""
        return self.scale

    @property
    def variance(self):
        """The variance, infinite for alpha up to 2."""
        alpha = self.alpha.clamp(min=2)
        return self.scale.square() * alpha / ((alpha - 1).square() * (alpha - 2))

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both parameters."""
        drawn = self.scale.new_empty(self._extended_shape(sample_shape)).exponential_()
        return self.scale * tg.exp(drawn / self.alpha)

    def log_prob(self, value):
        """The logarithm of the density."""
        value = self._checked(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return 1 - (self.scale / self._checked(value)) ** self.alpha

    def icdf(self, value):
        """Where the cdf is ``value``."""
        return self.scale * (1 - value) ** (-1 / self.alpha)

    def entropy(self):
        """The entropy."""
        return tg.log(self.scale / self.alpha) + 1 + self.alpha.reciprocal()


@boundary
class Weibull(OfFormulas):
    """The Weibull distribution: ``scale`` times an exponential variable to the power ``1 / concentration``.

    Raises:
        ValueError: a parameter is not positive, if arguments are checked.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.size(), validate_args=validate_args)

    def _parts(self):
        base = Exponential(tg.ones_like(self.scale), validate_args=False)
        return base, [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]

    @property
    def concentration_reciprocal(self):
        """The power of the exponential variable."""
        return self.concentration.reciprocal()

    def _moment(self, order):
        return tg.exp(tg.lgamma(1 + order / self.concentration))

    @property
    def mean(self):
        """The mean."""
        return self.scale * self._moment(1)

    @property
    def mode(self):
        """The mode, nan for concentrations below 1, whose densities have none."""
        power = self.concentration
        return self.scale * ((power - 1) / power) ** power.reciprocal()

    @property
    def variance(self):
        """The variance."""
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both parameters."""
        drawn = self.scale.new_empty(self._extended_shape(sample_shape)).exponential_()
        return self.scale * drawn ** self.concentration.reciprocal()

    def log_prob(self, value):
        """The logarithm of the density."""
        share = self._checked(value) / self.scale
        power = self.concentration
        return tg.log(power / self.scale) + (power - 1) * share.log() - share**power

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return -tg.expm1(-((self._checked(value) / self.scale) ** self.concentration))

    def icdf(self, value):
        """Where the cdf is ``value``."""
        return self.scale * (-tg.log1p(-value)) ** self.concentration.reciprocal()

    def entropy(self):
        """The entropy."""
        inverse = self.concentration.reciprocal()
        return euler_constant * (1 - inverse) + tg.log(self.scale * inverse) + 1
