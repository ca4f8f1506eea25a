"""Distributions over whole numbers, given by probabilities or by logits."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .utils import all_true, broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def _only_one(probs, logits):
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class _Binary(Distribution):
    """A distribution of events that happen or not, with ``probs`` or ``logits``."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        _only_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._given.size(), validate_args=validate_args)

    @property
    def _given(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._given.size()

    @lazy_property
    def probs(self):
        """The probability of the event."""
        return logits_to_probs(self.logits, is_binary=True)

    @lazy_property
    def logits(self):
        """Its log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    def _binary_entropy(self):
        # softplus(l) - l * p in logarithms that do not overflow
        positive = tg.logaddexp(self.logits, tg.zeros_like(self.logits))
        return positive - self.logits * self.probs


@boundary
class Bernoulli(_Binary, ExponentialFamily):
    """One with probability ``probs``, else zero.

    Raises:
        ValueError: both or none of probs and logits, or no probability, if arguments are checked.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        return tg.logaddexp(x, tg.zeros_like(x))

    @property
    def mean(self):
        """The probability of one."""
        return self.probs

    @property
    def mode(self):
        """The likelier one, NaN where both are alike."""
        likelier = (self.probs > 0.5).to(self.probs.dtype)
        return tg.where(self.probs == 0.5, math.nan, likelier)

    @property
    def variance(self):
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        """Draw zeros and ones, of the dtype of the parameter."""
        with tg.no_grad():
            return tg.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        """The logarithm of the probability of each value."""
        logits, value = broadcast_all(self.logits, self._checked(value))
        return logits * value - tg.logaddexp(logits, tg.zeros_like(logits))

    def entropy(self):
        """The entropy, in nats."""
        return self._binary_entropy()

    def enumerate_support(self, expand=True):
        """Zero and one, along a new first dimension."""
        given = self._given
        values = tg.arange(2, dtype=given.dtype, device=given.device)
        values = values.view((2,) + (1,) * len(self._batch_shape))
        return values.expand((2,) + tuple(self._batch_shape)) if expand else values


@boundary
class Geometric(_Binary):
    """How often an event of probability ``probs`` fails before it happens.

    Raises:
        ValueError: both or none of probs and logits, or a probability outside of (0, 1], if arguments are checked.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not all_true(self.probs > 0):
            raise ValueError(f"Geometric: expected probs above 0, but found invalid values:\n{self.probs}")

    @property
    def mean(self):
        """The mean."""
        return 1 / self.probs - 1

    @property
    def mode(self):
        """Zero."""
        return tg.zeros_like(self.probs)

    @property
    def variance(self):
        """The variance."""
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=()):
        """Draw counts, of the dtype of the parameter."""
        with tg.no_grad():
            u = tg.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            u = u.clamp(min=tg.finfo(self.probs.dtype).tiny)
            return (u.log() / tg.log1p(-self.probs)).floor()

    def log_prob(self, value):
        """The logarithm of the probability of each count."""
        value, probs = broadcast_all(self._checked(value), self.probs)
        failures = tg.where((probs == 1) & (value == 0), 0.0, value * tg.log1p(-probs))
        return failures + probs.log()

    def entropy(self):
        """The entropy, in nats."""
        return self._binary_entropy() / self.probs


@boundary
class Categorical(Distribution):
    """The numbers 0 to K-1, with probabilities along the last dimension of ``probs`` (..., K), which need not sum to 1.

    Raises:
        ValueError: both or none of probs and logits, a number instead of a vector, or no probabilities.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        _only_one(probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = given.size(-1)
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @property
    def _given(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._given.size()

    @lazy_property
    def probs(self):
        """Probabilities that sum to 1."""
        return logits_to_probs(self.logits)

    @lazy_property
    def logits(self):
        """Their logarithms."""
        return probs_to_logits(self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """The numbers there are."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        """NaN: the numbers are names."""
        return tg.full(self._batch_shape, math.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self):
        """The likeliest number."""
        return self.probs.argmax(dim=-1)

    @property
    def variance(self):
        """NaN: the numbers are names."""
        return self.mean

    def sample(self, sample_shape=()):
        """Draw numbers, int64."""
        sample_shape = tg.Size(sample_shape)
        with tg.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = tg.multinomial(rows, math.prod(sample_shape), True)
            return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        """The logarithm of the probability of each number."""
        value = self._checked(value).long().unsqueeze(-1)
        shape = value.shape[:-1]
        if shape == self._batch_shape:
            return self.logits.gather(-1, value).squeeze(-1)
        shape = tg.broadcast_shapes(shape, self._batch_shape)
        logits = self.logits.expand(shape + (self._num_events,))
        return logits.gather(-1, value.expand(shape + (1,))).squeeze(-1)

    def entropy(self):
        """The entropy, in nats."""
        return -(self.logits.clamp(min=tg.finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        """All numbers, along a new first dimension."""
        values = tg.arange(self._num_events, device=self._given.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values
