"""Ratios of variables: FisherSnedecor, StudentT."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .distribution import Distribution
from .gamma import Chi2, Gamma
from .utils import broadcast_all


@boundary
class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variables, each over its degrees of freedom.

    Raises:
        ValueError: a parameter is not positive, if arguments are checked.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = super().expand(batch_shape, self._get_checked_instance(FisherSnedecor, _instance))
        new._gamma1, new._gamma2 = self._gamma1.expand(batch_shape), self._gamma2.expand(batch_shape)
        return new

    @property
    def mean(self):
        """The mean, NaN for ``df2`` up to 2."""
        df2 = tg.where(self.df2 <= 2, math.nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self):
        """The mode, NaN for ``df1`` up to 2."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return tg.where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self):
        """The variance, NaN for ``df2`` up to 4."""
        df2 = tg.where(self.df2 <= 4, math.nan, self.df2)
        return 2 * df2.square() * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).square() * (df2 - 4))

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both parameters."""
        shape = self._extended_shape(sample_shape)
        above = self._gamma1.rsample(sample_shape).view(shape)
        below = self._gamma2.rsample(sample_shape).view(shape)
        tiny = tg.finfo(below.dtype).tiny
        below = below.clamp(min=tiny)
        return (above / below).clamp(min=tiny)

    def log_prob(self, value):
        """The logarithm of the density."""
        value = self._checked(value)
        half1, half2 = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        scale = tg.lgamma(half1 + half2) - tg.lgamma(half1) - tg.lgamma(half2)
        return scale + half1 * ratio.log() + (half1 - 1) * value.log() - (half1 + half2) * tg.log1p(ratio * value)


@boundary
class StudentT(Distribution):
    """Student's t distribution with ``df`` degrees of freedom, around ``loc``, spread by ``scale``.

    Raises:
        ValueError: ``df`` or ``scale`` is not positive, if arguments are checked.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = super().expand(batch_shape, self._get_checked_instance(StudentT, _instance))
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self):
        """The location, NaN for ``df`` up to 1."""
        return tg.where(self.df <= 1, math.nan, self.loc)

    @property
    def mode(self):
        """The location."""
        return self.loc

    @property
    def variance(self):
        """The variance, infinite for ``df`` up to 2, NaN up to 1."""
        wide = self.scale.square() * self.df / (self.df - 2)
        wide = tg.where(self.df > 2, wide, math.inf)
        return tg.where(self.df <= 1, math.nan, wide)

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to all parameters."""
        shape = self._extended_shape(sample_shape)
        normal = tg.randn(shape, dtype=self.df.dtype, device=self.df.device)
        squares = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * tg.rsqrt(squares / self.df))

    def log_prob(self, value):
        """The logarithm of the density."""
        z = (self._checked(value) - self.loc) / self.scale
        half = self.df / 2
        scale = self.scale.log() + (self.df.log() + math.log(math.pi)) / 2 + tg.lgamma(half) - tg.lgamma(half + 0.5)
        return -(half + 0.5) * tg.log1p(z.square() / self.df) - scale

    def entropy(self):
        """The entropy."""
        half = self.df / 2
        beta = tg.lgamma(half) + math.lgamma(0.5) - tg.lgamma(half + 0.5)
        return self.scale.log() + (half + 0.5) * (tg.digamma(half + 0.5) - tg.digamma(half)) + self.df.log() / 2 + beta
