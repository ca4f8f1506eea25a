"""Distributions that are transforms of others: LogNormal, LogisticNormal, Kumaraswamy, GeneralizedPareto."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .bounded import Uniform
from .distribution import Distribution
from .real_line import Normal
from .transformed import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform, StickBreakingTransform
from .utils import broadcast_all, euler_constant


@boundary
class LogNormal(TransformedDistribution):
    """The exponential of a normal variable.

    Raises:
        ValueError: ``scale`` is not positive, if arguments are checked.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        return super().expand(batch_shape, self._get_checked_instance(LogNormal, _instance))

    @property
    def loc(self):
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self):
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self):
        """The mean."""
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self):
        """The mode."""
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self):
        """The variance."""
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self):
        """The entropy."""
        return self.base_dist.entropy() + self.loc


@boundary
class LogisticNormal(TransformedDistribution):
    """K - 1 normal variables as K shares of 1, by breaking a stick.

    Raises:
        ValueError: ``scale`` is not positive, if arguments are checked.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self):
        """The means of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self):
        """Their standard deviations."""
        return self.base_dist.base_dist.scale


@boundary
class Kumaraswamy(TransformedDistribution):
    """Numbers between 0 and 1 with the cdf ``1 - (1 - x ** concentration1) ** concentration0``.

    Raises:
        ValueError: a parameter is not positive, if arguments are checked.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            tg.zeros_like(self.concentration0), tg.ones_like(self.concentration0), validate_args=validate_args
        )
        steps = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, new)

    def _moment(self, n):
        by1 = 1 + n / self.concentration1
        log = tg.lgamma(by1) + tg.lgamma(self.concentration0) - tg.lgamma(by1 + self.concentration0)
        return self.concentration0 * tg.exp(log)

    @property
    def mean(self):
        """The mean."""
        return self._moment(1)

    @property
    def mode(self):
        """The mode, NaN where there is none."""
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return tg.where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self):
        """The variance."""
        return self._moment(2) - self.mean.square()

    def entropy(self):
        """The entropy."""
        left = 1 - self.concentration1.reciprocal()
        right = 1 - self.concentration0.reciprocal()
        harmonic = tg.digamma(self.concentration0 + 1) + euler_constant
        return right + left * harmonic - tg.log(self.concentration1) - tg.log(self.concentration0)


@boundary
class GeneralizedPareto(Distribution):
    """What lies above a threshold ``loc``, with ``scale`` and the weight of the tail, ``concentration``.

    Raises:
        ValueError: ``scale`` is not positive, if arguments are checked.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """From the threshold, up to an end where the concentration is negative."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, tg.where(self.concentration < 0, end, math.inf))

    @property
    def _light(self):
        """Where the concentration is so near to zero that the tail is exponential."""
        return tg.isclose(self.concentration, tg.zeros_like(self.concentration))

    def _either(self, light, power):
        return tg.where(self._light, light, power)

    @property
    def _weight(self):
        return tg.where(self._light, 1.0, self.concentration)

    @property
    def mean(self):
        """The mean, infinite for concentrations from 1 on."""
        power = self.concentration
        return tg.where(power < 1, self.loc + self.scale / (1 - power), math.inf)

    @property
    def variance(self):
        """The variance, infinite for concentrations from 1/2 on."""
        power = self.concentration
        known = self.scale.square() / ((1 - power).square() * (1 - 2 * power))
        return tg.where(power < 0.5, known, math.inf)

    @property
    def mode(self):
        """The threshold."""
        return self.loc

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to all parameters."""
        u = tg.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(u)

    def _survival_log(self, value):
        z = (value - self.loc) / self.scale
        return self._either(-z, -tg.log1p(self._weight * z) / self._weight)

    def log_prob(self, value):
        """The logarithm of the density."""
        value = self._checked(value)
        return (1 + self._either(tg.zeros_like(self.loc), self.concentration)) * self._survival_log(
            value
        ) - self.scale.log()

    def log_survival_function(self, value):
        """The logarithm of the probability of what is above ``value``."""
        return self._survival_log(self._checked(value))

    def log_cdf(self, value):
        """The logarithm of the probability of what is not above ``value``."""
        return tg.log1p(-tg.exp(self.log_survival_function(value)))

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return -tg.expm1(self.log_survival_function(value))

    def icdf(self, value):
        """Where the cdf is ``value``."""
        log = tg.log1p(-value)
        return self.loc + self.scale * self._either(-log, tg.expm1(-self._weight * log) / self._weight)

    def entropy(self):
        """The entropy."""
        return self.scale.log() + self.concentration + 1
