"""The continuous Bernoulli distribution, over numbers between 0 and 1."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .discrete import _Binary
from .exp_family import ExponentialFamily
from .utils import clamp_probs, lazy_property, logits_to_probs


@boundary
class ContinuousBernoulli(_Binary, ExponentialFamily):
    """Numbers x between 0 and 1 with the density ``probs ** x * (1 - probs) ** (1 - x)``, scaled.

    Args:
        lims: between these probabilities series take the place of formulas that are 0 / 0 at 1/2.

    Raises:
        ValueError: both or none of probs and logits, or no probability, if arguments are checked.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        super().__init__(probs, logits, validate_args)
        self._lims = lims
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    @lazy_property
    def probs(self):
        """The parameter, never 0 or 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self):
        return tg.where(self._outside(), self.probs, self._lims[0])

    def _log_odds(self, probs):
        return tg.log1p(-probs) - tg.log(probs)

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        """The logarithm of ``(exp(x) - 1) / x``, by its series around zero."""
        near = (x > self._lims[0] - 0.5) & (x <= self._lims[1] - 0.5)
        away = tg.where(near, 1.0, x)
        square = x.square()
        series = x / 2 + square / 24 - square.square() / 2880
        return tg.where(near, series, tg.expm1(away).abs().log() - away.abs().log())

    def _log_scale(self):
        probs = self._cut_probs()
        formula = self._log_odds(probs).abs().log() - (1 - 2 * probs).abs().log()
        x = (self.probs - 0.5).square()
        return tg.where(self._outside(), formula, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self):
        """The mean."""
        probs = self._cut_probs()
        formula = probs / (2 * probs - 1) + self._log_odds(probs).reciprocal()
        x = self.probs - 0.5
        return tg.where(self._outside(), formula, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    @property
    def variance(self):
        """The variance."""
        probs = self._cut_probs()
        formula = probs * (probs - 1) / (1 - 2 * probs).square() + self._log_odds(probs).square().reciprocal()
        x = (self.probs - 0.5).square()
        return tg.where(self._outside(), formula, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to the parameter."""
        u = tg.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
        return self.icdf(u)

    def log_prob(self, value):
        """The logarithm of the density."""
        value = self._checked(value)
        logits = self.logits
        return logits * value - tg.nn.functional.softplus(logits) + self._log_scale()

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        value, probs = self._checked(value), self._cut_probs()
        formula = (probs**value * (1 - probs) ** (1 - value) + probs - 1) / (2 * probs - 1)
        inside = tg.where(self._outside(), formula, value)
        return tg.where(value <= 0, 0.0, tg.where(value >= 1, 1.0, inside))

    def icdf(self, value):
        """Where the cdf is ``value``."""
        probs = self._cut_probs()
        formula = (tg.log1p(-probs + value * (2 * probs - 1)) - tg.log1p(-probs)) / -self._log_odds(probs)
        return tg.where(self._outside(), formula, value)

    def entropy(self):
        """The entropy."""
        log0, log1 = tg.log1p(-self.probs), tg.log(self.probs)
        return self.mean * (log0 - log1) - self._log_scale() - log0
