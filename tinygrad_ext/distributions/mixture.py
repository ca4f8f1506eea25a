"""A mixture of distributions of one family."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .discrete import Categorical
from .distribution import Distribution


@boundary
class MixtureSameFamily(Distribution):
    """Components along the last batch dimension of one distribution, chosen by a Categorical.

    Raises:
        ValueError: the mixture is no Categorical, the component no Distribution, or their shapes do not fit.
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        mixed, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixed), reversed(batch)):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        self._num_component = components
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same mixture with expanded parts."""
        batch_shape = tg.Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        Distribution.__init__(new, batch_shape, new._component_distribution.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self):
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """What chooses."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """What is chosen from."""
        return self._component_distribution

    def _weights(self):
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self):
        """The mean."""
        return (self._weights() * self._component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self):
        """The variance: within the components and between them."""
        along, inner = -1 - self._event_ndims, self._component_distribution
        apart = (inner.mean - self.mean.unsqueeze(along)).square()
        return (self._weights() * (inner.variance + apart)).sum(along)

    def cdf(self, x):
        """The probability of what is not above ``x``."""
        each = self._component_distribution.cdf(self._pad(x))
        return (each * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        """The logarithm of the density."""
        each = self._component_distribution.log_prob(self._pad(self._checked(x)))
        return tg.logsumexp(each + tg.log_softmax(self._mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape=()):
        """Draw a component, and samples of all, of which that one's is kept."""
        with tg.no_grad():
            sample_shape = tg.Size(sample_shape)
            along = len(sample_shape) + len(self.batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            chosen = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            kept = tuple(drawn.shape[:along]) + (1,) + tuple(self.event_shape)
            return drawn.gather(along, chosen.expand(kept)).squeeze(along)

    def _pad(self, value):
        return value.unsqueeze(-1 - self._event_ndims)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
