"""Distributions over all numbers, and those on one side of zero that come from them by their sign."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .bounded import Uniform
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .transformed import OfFormulas, TransformedDistribution
from .transforms import AbsTransform, AffineTransform, ExpTransform
from .utils import broadcast_all, euler_constant


class _LocationScale(Distribution):
    """A distribution with the parameters ``loc`` and ``scale``, numbers or tensors."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def _standard(self, value):
        return (self._checked(value) - self.loc) / self.scale

    @property
    def mean(self):
        """The location."""
        return self.loc

    @property
    def mode(self):
        """The location."""
        return self.loc


@boundary
class Normal(_LocationScale, ExponentialFamily):
    """The normal distribution with mean ``loc`` and standard deviation ``scale``.

    Raises:
        ValueError: ``scale`` is not positive, if arguments are checked.
    """

    @property
    def stddev(self):
        """The scale."""
        return self.scale

    @property
    def variance(self):
        """The square of the scale."""
        return self.scale.square()

    def sample(self, sample_shape=()):
        """Draw samples without gradients."""
        shape = self._extended_shape(sample_shape)
        with tg.no_grad():
            return tg.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both parameters."""
        shape = self._extended_shape(sample_shape)
        return self.loc + tg.randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale

    def log_prob(self, value):
        """The logarithm of the density."""
        return -self._standard(value).square() / 2 - self.scale.log() - math.log(2 * math.pi) / 2

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return (1 + tg.erf(self._standard(value) / math.sqrt(2))) / 2

    def icdf(self, value):
        """Where the cdf is ``value``."""
        return self.loc + self.scale * tg.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        """The entropy, which depends on the scale alone."""
        return 0.5 + math.log(2 * math.pi) / 2 + self.scale.log()

    _mean_carrier_measure = 0

    @property
    def _natural_params(self):
        precision = self.scale.pow(-2)
        return self.loc * precision, -precision / 2

    def _log_normalizer(self, x, y):
        return x.square() / (-4 * y) + tg.log(-math.pi / y) / 2


@boundary
class Laplace(_LocationScale):
    """The Laplace distribution around ``loc``, with ``scale``.

    Raises:
        ValueError: ``scale`` is not positive, if arguments are checked.
    """

    @property
    def variance(self):
        """Twice the square of the scale."""
        return 2 * self.scale.square()

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both parameters."""
        start = tg.finfo(self.loc.dtype).eps - 1
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(start, 1)
        return self.loc - self.scale * u.sign() * tg.log1p(-u.abs())

    def log_prob(self, value):
        """The logarithm of the density."""
        return -tg.log(2 * self.scale) - self._standard(value).abs()

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * tg.expm1(-z.abs())

    def icdf(self, value):
        """Where the cdf is ``value``."""
        term = value - 0.5
        return self.loc - self.scale * term.sign() * tg.log1p(-2 * term.abs())

    def entropy(self):
        """The entropy, which depends on the scale alone."""
        return 1 + tg.log(2 * self.scale)


@boundary
class Cauchy(_LocationScale):
    """The Cauchy distribution around ``loc``, half of it within ``scale``; it has no mean and no variance.

    Raises:
        ValueError: ``scale`` is not positive, if arguments are checked.
    """

    @property
    def mean(self):
        """NaN."""
        return tg.full_like(self.loc, math.nan)

    @property
    def variance(self):
        """Infinity."""
        return tg.full_like(self.loc, math.inf)

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both parameters."""
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value):
        """The logarithm of the density."""
        return -math.log(math.pi) - self.scale.log() - tg.log1p(self._standard(value).square())

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return tg.atan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value):
        """Where the cdf is ``value``."""
        return tg.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        """The entropy, which depends on the scale alone."""
        return math.log(4 * math.pi) + self.scale.log()


@boundary
class Gumbel(_LocationScale, OfFormulas):
    """The Gumbel distribution of largest values, with its mode at ``loc``.

    Raises:
        ValueError: ``scale`` is not positive, if arguments are checked.
    """

    def _parts(self):
        info, ones = tg.finfo(self.loc.dtype), tg.ones_like(self.scale)
        base = Uniform(info.tiny * ones, (1 - info.eps) * ones, validate_args=False)
        logarithm = ExpTransform().inv
        return base, [logarithm, AffineTransform(0, -ones), logarithm, AffineTransform(self.loc, -self.scale)]

    @property
    def mean(self):
        """The mean, above the mode."""
        return self.loc + self.scale * euler_constant

    @property
    def variance(self):
        """The variance."""
        return (math.pi**2 / 6) * self.scale.square()

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both parameters."""
        info = tg.finfo(self.loc.dtype)
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(info.tiny, 1 - info.eps)
        return self.loc - self.scale * tg.log(-u.log())

    def log_prob(self, value):
        """The logarithm of the density."""
        z = self._standard(value)
        return -z - tg.exp(-z) - self.scale.log()

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return tg.exp(-tg.exp(-self._standard(value)))

    def icdf(self, value):
        """Where the cdf is ``value``."""
        return self.loc - self.scale * tg.log(-value.log())

    def entropy(self):
        """The entropy, which depends on the scale alone."""
        return self.scale.log() + 1 + euler_constant


class _Half(TransformedDistribution):
    """The absolute values of a distribution around zero."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(self._whole(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self):
        """The scale of both sides."""
        return self.base_dist.scale

    @property
    def mode(self):
        """Zero."""
        return tg.zeros_like(self.scale)

    def log_prob(self, value):
        """The logarithm of the density, minus infinity below zero."""
        value = self._checked(value)
        return tg.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, prob):
        """Where the cdf is ``prob``."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        """The entropy: ln 2 less than on both sides."""
        return self.base_dist.entropy() - math.log(2)


@boundary
class HalfNormal(_Half):
    """Absolute values of a normal distribution with mean 0 and standard deviation ``scale``.

    Raises:
        ValueError: ``scale`` is not positive, if arguments are checked.
    """

    _whole = Normal

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self):
        """The mean."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        """The variance."""
        return self.scale.square() * (1 - 2 / math.pi)


@boundary
class HalfCauchy(_Half):
    """Absolute values of a Cauchy distribution around 0.

    Raises:
        ValueError: ``scale`` is not positive, if arguments are checked.
    """

    _whole = Cauchy

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self):
        """Infinity."""
        return tg.full_like(self.scale, math.inf)

    @property
    def variance(self):
        """Infinity."""
        return tg.full_like(self.scale, math.inf)
