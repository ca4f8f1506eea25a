"""Transforms of single numbers."""

import math
from numbers import Number

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.nn.functional import softplus

from .. import constraints
from ..utils import sum_rightmost
from .base import Transform


class _Rising(Transform):
    """A map of single numbers that rises everywhere; two of one class do the same."""

    bijective = True
    sign = +1

    def __eq__(self, other):
        return isinstance(other, type(self))

    __hash__ = object.__hash__


@boundary
class ExpTransform(_Rising):
    """``exp(x)``."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        """x itself."""
        return x


@boundary
class PowerTransform(Transform):
    """``x ** exponent`` for positive numbers.

    Raises:
        ValueError: another ``cache_size``.
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.exponent = exponent if isinstance(exponent, tg.Tensor) else tg.tensor(float(exponent))

    def with_cache(self, cache_size=1):
        """The same with a cache of that size."""
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self):
        """The sign of the exponent."""
        return self.exponent.sign()

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    __hash__ = object.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        """Of the power's derivative."""
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        """Broadcast with the exponent."""
        return tg.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


def _clipped_sigmoid(x):
    """The sigmoid, kept off 0 and 1."""
    info = tg.finfo(x.dtype)
    return tg.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)


@boundary
class SigmoidTransform(_Rising):
    """``1 / (1 + exp(-x))``."""

    domain = constraints.real
    codomain = constraints.unit_interval

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        info = tg.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        """Of the sigmoid's derivative, exact far from zero too."""
        return -softplus(-x) - softplus(x)


@boundary
class SoftplusTransform(_Rising):
    """``log(1 + exp(x))``, and x itself where it is above 20."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        """The logarithm of the sigmoid."""
        return -softplus(-x)


@boundary
class TanhTransform(_Rising):
    """The hyperbolic tangent; better with ``cache_size=1``, as its inverse is inexact near -1 and 1."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return tg.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        """Of 1 - tanh(x) ** 2, in a form that is exact far from zero too."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


@boundary
class AbsTransform(Transform):
    """The absolute value; its inverse gives the positive one."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other):
        return isinstance(other, AbsTransform)

    __hash__ = object.__hash__

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


def _same(a, b):
    if isinstance(a, Number) and isinstance(b, Number):
        return a == b
    return bool((tg.as_tensor(a) == tg.as_tensor(b)).all())


@boundary
class AffineTransform(Transform):
    """``loc + scale * x``; ``event_dim`` says how many last dimensions of x are one event.

    Raises:
        ValueError: another ``cache_size``.
    """

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self):
        """How many last dimensions are one event."""
        return self._event_dim

    def with_cache(self, cache_size=1):
        """The same with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """All numbers."""
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    codomain = domain

    def __eq__(self, other):
        if not isinstance(other, AffineTransform):
            return False
        return _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = object.__hash__

    @property
    def sign(self):
        """The sign of the scale."""
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        """The logarithm of the scale, for each number of the event."""
        if isinstance(self.scale, Number):
            each = tg.full_like(x, math.log(abs(self.scale)))
        else:
            each = self.scale.abs().log()
        if not self.event_dim:
            return each.expand(x.shape)
        each = each.expand(tg.broadcast_shapes(each.shape, x.shape[-self.event_dim :]))
        return sum_rightmost(each, self.event_dim).expand(x.shape[: -self.event_dim])

    def forward_shape(self, shape):
        """Broadcast with loc and scale."""
        return tg.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


@boundary
class CumulativeDistributionTransform(Transform):
    """The cdf of a distribution, whose inverse is its quantiles.

    Raises:
        ValueError: another ``cache_size``.
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        """Where the distribution lies."""
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        """The logarithm of the density."""
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1):
        """The same with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
