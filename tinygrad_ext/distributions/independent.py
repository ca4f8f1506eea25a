"""Batch dimensions taken into the event."""

from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .distribution import Distribution
from .utils import sum_rightmost


@boundary
class Independent(Distribution):
    """A distribution whose last ``reinterpreted_batch_ndims`` batch dimensions are part of one event.

    Raises:
        ValueError: there are not as many.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.distributions import Independent, Normal
        >>> rows = Independent(Normal(tg.zeros(2, 3), 1.0), 1)
        >>> tuple(rows.batch_shape), tuple(rows.event_shape)
        ((2,), (3,))
    """

    arg_constraints = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(batch)}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        kept = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:kept], batch[kept:] + base_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same with the inner distribution expanded."""
        new = self._get_checked_instance(Independent, _instance)
        taken = self._event_shape[: self.reinterpreted_batch_ndims]
        new.__dict__.update(self.__dict__)
        new.base_dist = self.base_dist.expand(tuple(batch_shape) + tuple(taken))
        new._batch_shape = new.base_dist.batch_shape[: len(batch_shape)]
        return new

    @property
    def has_rsample(self):
        """As the inner one."""
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self):
        """That of the inner one, over larger events."""
        inner = self.base_dist.support
        taken = self.reinterpreted_batch_ndims
        return constraints.independent(inner, taken) if taken else inner

    @property
    def mean(self):
        """The inner mean."""
        return self.base_dist.mean

    @property
    def mode(self):
        """The inner mode."""
        return self.base_dist.mode

    @property
    def variance(self):
        """The inner variance."""
        return self.base_dist.variance

    def sample(self, sample_shape=()):
        """Draw samples of the inner distribution."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        """Draw samples of the inner distribution, with gradients."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        """The sum over the event of the inner logarithms."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        """The sum over the event of the inner entropies."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
