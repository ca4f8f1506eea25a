"""A distribution that others are made of by transforms, and the named ones that are."""

import functools

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost


@boundary
class TransformedDistribution(Distribution):
    """The distribution of ``f(x)``, where x has the distribution ``base_distribution`` and f is made of ``transforms``.

    Args:
        transforms: a transform, or a list of them, the first one first.

    Raises:
        ValueError: something in the list is no transform, or the base has too few dimensions for it.
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not isinstance(transforms, list) or not all(isinstance(t, Transform) for t in transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        self.transforms = transforms
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(transforms)
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, "
                f"but got {tuple(base_shape)}."
            )
        image = whole.forward_shape(base_shape)
        origin = whole.inverse_shape(image)
        if tuple(base_shape) != tuple(origin):  # the transform's own parameters broadcast
            base_distribution = base_distribution.expand(origin[: len(origin) - base_event_dim])
        taken = whole.domain.event_dim - base_event_dim
        self.base_dist = Independent(base_distribution, taken) if taken > 0 else base_distribution
        change = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, base_event_dim + change)
        cut = len(image) - event_dim
        super().__init__(image[:cut], image[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same with the base expanded."""
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = tg.Size(batch_shape)
        whole = ComposeTransform(self.transforms)
        shape = whole.inverse_shape(batch_shape + self.event_shape)
        base_batch = shape[: len(shape) - len(self.base_dist.event_shape)]
        new.base_dist = self.base_dist.expand(base_batch)
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        """Where the last transform leads."""
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        missing = len(self.event_shape) - last.event_dim
        return constraints.independent(last, missing) if missing > 0 else last

    @property
    def has_rsample(self):
        """As the base."""
        return self.base_dist.has_rsample

    def _through(self, value):
        return functools.reduce(lambda value, transform: transform(value), self.transforms, value)

    def _back(self, value):
        return functools.reduce(lambda value, transform: transform.inv(value), reversed(self.transforms), value)

    def sample(self, sample_shape=()):
        """Draw samples of the base and transform them."""
        with tg.no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        """Draw samples of the base and transform them, with gradients to both."""
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        """The base's at what was transformed, less the logarithms of the derivatives."""
        y = self._checked(value)
        event_dim, log_prob = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - sum_rightmost(slope, event_dim - transform.domain.event_dim)
            y = x
        return log_prob + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _rising(self, value):
        """The cdf of what rises, from that of what the transforms make of it, and the reverse."""
        sign = functools.reduce(lambda sign, transform: sign * transform.sign, self.transforms, 1)
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        return self._rising(self.base_dist.cdf(self._back(self._checked(value))))

    def icdf(self, value):
        """Where the cdf is ``value``."""
        return self._through(self.base_dist.icdf(self._rising(value)))


class OfFormulas(TransformedDistribution):
    """A distribution with formulas of its own, whose base and transforms are made when somebody asks for them."""

    sample, expand = Distribution.sample, Distribution.expand
    has_rsample = True

    def __init__(self, batch_shape, validate_args=None):
        Distribution.__init__(self, batch_shape, validate_args=validate_args)

    def _parts(self):
        """The base, and the list of transforms."""
        raise NotImplementedError

    @property
    def base_dist(self):
        """What is transformed."""
        return self._parts()[0]

    @property
    def transforms(self):
        """What makes this distribution of the base, the first one first."""
        return self._parts()[1]
