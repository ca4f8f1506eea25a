"""Distributions of counts: Binomial, NegativeBinomial, Poisson."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .discrete import _only_one
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .gamma import Gamma
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


class _Counted(Distribution):
    """Successes of trials, with a number of trials or failures and ``probs`` or ``logits``."""

    def _take(self, name, number, probs, logits):
        _only_one(probs, logits)
        given = probs if logits is None else logits
        number, given = broadcast_all(number, given)
        setattr(self, name, number.type_as(given))
        setattr(self, "probs" if logits is None else "logits", given)

    @property
    def _param(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._param.size()

    @lazy_property
    def logits(self):
        """Log-odds of a success."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """The probability of a success."""
        return logits_to_probs(self.logits, is_binary=True)


@boundary
class Binomial(_Counted):
    """How many of ``total_count`` trials succeed, each with the probability ``probs``.

    Raises:
        ValueError: both or none of probs and logits, or parameters out of range, if arguments are checked.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self._take("total_count", total_count, probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """From none to all."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        """The mean."""
        return self.total_count * self.probs

    @property
    def mode(self):
        """The mode."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        """Draw counts, of the dtype of the parameter."""
        shape = self._extended_shape(sample_shape)
        with tg.no_grad():
            return tg.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        """The logarithm of the probability of each count."""
        value, n = self._checked(value), self.total_count
        ways = tg.lgamma(n + 1) - tg.lgamma(value + 1) - tg.lgamma(n - value + 1)
        return value * self.logits + ways + n * tg.nn.functional.logsigmoid(-self.logits)

    def entropy(self):
        """The entropy, for one number of trials.

        Raises:
            NotImplementedError: there are several.
        """
        most = int(self.total_count.max())
        if bool((self.total_count != most).any()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand=True):
        """All counts, for one number of trials.

        Raises:
            NotImplementedError: there are several.
        """
        most = int(self.total_count.max())
        if bool((self.total_count != most).any()):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = tg.arange(1 + most, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values


@boundary
class NegativeBinomial(_Counted):
    """How many successes come before ``total_count`` failures.

    Raises:
        ValueError: both or none of probs and logits, or parameters out of range, if arguments are checked.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self._take("total_count", total_count, probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self):
        """The mean."""
        return self.total_count * tg.exp(self.logits)

    @property
    def mode(self):
        """The mode."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        """The variance."""
        return self.mean / tg.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        return Gamma(concentration=self.total_count, rate=tg.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=()):
        """Draw counts: Poisson variables whose rates are gamma variables."""
        with tg.no_grad():
            return tg.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        """The logarithm of the probability of each count."""
        value, n = self._checked(value), self.total_count
        logsigmoid = tg.nn.functional.logsigmoid
        chances = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = tg.lgamma(n + value) - tg.lgamma(1.0 + value) - tg.lgamma(n)
        return chances + ways.masked_fill(n + value == 0.0, 0.0)


@boundary
class Poisson(ExponentialFamily):
    """How many events happen where ``rate`` are expected.

    Raises:
        ValueError: ``rate`` is negative, if arguments are checked.
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self):
        """The rate."""
        return self.rate

    @property
    def mode(self):
        """The rate, rounded down."""
        return self.rate.floor()

    @property
    def variance(self):
        """The rate."""
        return self.rate

    def sample(self, sample_shape=()):
        """Draw counts, of the dtype of the rate."""
        with tg.no_grad():
            return tg.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        """The logarithm of the probability of each count."""
        rate, value = broadcast_all(self.rate, self._checked(value))
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (tg.log(self.rate),)

    def _log_normalizer(self, x):
        return tg.exp(x)
