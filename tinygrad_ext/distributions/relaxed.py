"""Relaxed discrete distributions, through whose samples gradients flow."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .discrete import Bernoulli, Categorical
from .distribution import Distribution
from .transformed import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs


@boundary
class LogitRelaxedBernoulli(Distribution):
    """Log-odds of a relaxed Bernoulli variable.

    Raises:
        ValueError: both or none of probs and logits.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._bernoulli = Bernoulli(probs, logits, validate_args=validate_args)
        super().__init__(self._bernoulli.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(LogitRelaxedBernoulli, _instance)
        new.temperature, new._bernoulli = self.temperature, self._bernoulli.expand(batch_shape)
        Distribution.__init__(new, batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def probs(self):
        """The probability of one."""
        return self._bernoulli.probs

    @property
    def logits(self):
        """Its log-odds."""
        return self._bernoulli.logits

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._bernoulli.param_shape

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to the parameter."""
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(tg.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        """The logarithm of the density."""
        logits, value = broadcast_all(self.logits, self._checked(value))
        apart = logits - value * self.temperature
        return tg.as_tensor(self.temperature).log() + apart - 2 * tg.nn.functional.softplus(apart)


@boundary
class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that come near to zeros and ones as ``temperature`` falls.

    Raises:
        ValueError: both or none of probs and logits.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self):
        """The temperature."""
        return self.base_dist.temperature

    @property
    def probs(self):
        """The probability of one."""
        return self.base_dist.probs

    @property
    def logits(self):
        """Its log-odds."""
        return self.base_dist.logits


@boundary
class ExpRelaxedCategorical(Distribution):
    """Logarithms of a relaxed one-hot vector.

    Raises:
        ValueError: both or none of probs and logits.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature, new._categorical = self.temperature, self._categorical.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def probs(self):
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self):
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._categorical.param_shape

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to the parameter."""
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(tg.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        """The logarithm of the density."""
        count = self._categorical._num_events
        logits, value = broadcast_all(self.logits, self._checked(value))
        temperature = tg.as_tensor(self.temperature, dtype=logits.dtype)
        score = logits - value * temperature
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + math.lgamma(count) + (count - 1) * temperature.log()


@boundary
class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares of 1 that come near to one-hot vectors as ``temperature`` falls.

    Raises:
        ValueError: both or none of probs and logits.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        return super().expand(batch_shape, self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    @property
    def temperature(self):
        """The temperature."""
        return self.base_dist.temperature

    @property
    def probs(self):
        """The probabilities."""
        return self.base_dist.probs

    @property
    def logits(self):
        """Their logarithms."""
        return self.base_dist.logits
