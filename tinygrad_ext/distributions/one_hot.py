"""One out of several, and how often: OneHotCategorical, Multinomial."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .counts import Binomial
from .discrete import Categorical
from .distribution import Distribution
from .utils import broadcast_all


@boundary
class Multinomial(Distribution):
    """How often each of K outcomes happens in ``total_count`` trials, an integer.

    Raises:
        NotImplementedError: ``total_count`` is no integer.
        ValueError: both or none of probs and logits, or no probabilities.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(Multinomial, _instance)
        batch_shape = tg.Size(batch_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = Binomial(total_count=self.total_count, probs=new.probs)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        """Counts that sum to the number of trials."""
        return constraints.multinomial(self.total_count)

    @property
    def logits(self):
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self):
        """The probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self):
        """The mean."""
        return self.probs * self.total_count

    @property
    def variance(self):
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        """Draw counts, of the dtype of the parameter."""
        drawn = self._categorical.sample(tg.Size((self.total_count,)) + tg.Size(sample_shape))
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, tg.ones_like(drawn))
        return counts.type_as(self.probs)

    def log_prob(self, value):
        """The logarithm of the probability of each vector of counts."""
        logits, value = broadcast_all(self.logits, self._checked(value))
        logits = logits.masked_fill((value == 0) & (logits == -tg.inf), 0)
        return tg.lgamma(value.sum(-1) + 1) - tg.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self):
        """The entropy."""
        n = tg.tensor(self.total_count, dtype=self.probs.dtype)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        ways = (tg.exp(self._binomial.log_prob(counts)) * tg.lgamma(counts + 1)).sum((0, -1))
        return n * self._categorical.entropy() - tg.lgamma(n + 1) + ways


@boundary
class OneHotCategorical(Distribution):
    """One out of K as a vector with a single 1.

    Raises:
        ValueError: both or none of probs and logits, or no probabilities.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(OneHotCategorical, _instance)
        batch_shape = tg.Size(batch_shape)
        new._categorical = self._categorical.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def _param(self):
        return self._categorical._given

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

    @property
    def mean(self):
        """The probabilities."""
        return self._categorical.probs

    @property
    def mode(self):
        """The likeliest one."""
        probs = self._categorical.probs
        return tg.nn.functional.one_hot(probs.argmax(-1), probs.shape[-1]).to(probs)

    @property
    def variance(self):
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        """Draw vectors, of the dtype of the parameter."""
        drawn = self._categorical.sample(sample_shape)
        return tg.nn.functional.one_hot(drawn, self._categorical._num_events).to(self.probs)

    def log_prob(self, value):
        """The logarithm of the probability of each vector."""
        value = self._checked(value)
        value, _ = broadcast_all(value, self.logits)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        """The entropy."""
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        """All vectors, along a new first dimension."""
        n = self.event_shape[0]
        values = tg.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + tuple(self.batch_shape) + (n,)) if expand else values


@boundary
class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples pass their gradient on to the probabilities as they are.

    Raises:
        ValueError: both or none of probs and logits, or no probabilities.
    """

    has_rsample = True

    def rsample(self, sample_shape=()):
        """Draw vectors, with the gradient of the probabilities."""
        samples = self.sample(sample_shape)
        probs = self._categorical.probs
        return samples + (probs - probs.detach())
