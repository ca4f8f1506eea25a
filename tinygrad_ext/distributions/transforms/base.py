"""What a transform is, its inverse, several in a row, and one over larger events."""

import functools
import operator
import weakref

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .. import constraints
from ..utils import sum_rightmost


@boundary
class Transform:
    """A map with an inverse, such as ``exp``.

    A subclass sets ``domain`` and ``codomain``, constraints, and defines ``_call(x)``, ``_inverse(y)`` and
    ``log_abs_det_jacobian(x, y)``, which has one value for each event; where the map has one, ``sign``.

    Args:
        cache_size: 1 keeps the last pair of value and image, so that the inverse of what was just made is found
            without computing it; 0 keeps none.

    Raises:
        ValueError: another ``cache_size``.
    """

    bijective = False

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, got {cache_size!r}")
        self._cache_size = cache_size
        self._inv = None  # weak: the inverse holds its transform, and a circle would wait for the collector
        self._cached_x_y = None, None

    def __getstate__(self):
        state = self.__dict__.copy()
        state["_inv"] = None
        return state

    @property
    def event_dim(self):
        """How many last dimensions are one event."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self):
        """The inverse, a transform too."""
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self):
        """1 where the map rises, -1 where it falls."""
        raise NotImplementedError(f"{type(self).__name__} does not define sign")

    def with_cache(self, cache_size=1):
        """The same transform with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return not self == other

    __hash__ = object.__hash__

    def __call__(self, x):
        if self._cache_size == 0:
            return self._call(x)
        known, image = self._cached_x_y
        if x is known:
            return image
        image = self._call(x)
        self._cached_x_y = x, image
        return image

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        origin, known = self._cached_x_y
        if y is known:
            return origin
        origin = self._inverse(y)
        self._cached_x_y = origin, y
        return origin

    def _call(self, x):
        raise NotImplementedError(f"{type(self).__name__} does not define _call(self, x)")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__} does not define _inverse(self, y)")

    def log_abs_det_jacobian(self, x, y):
        """The logarithm of the absolute determinant of dy/dx, one value for each event."""
        raise NotImplementedError(f"{type(self).__name__} does not define log_abs_det_jacobian(self, x, y)")

    def __repr__(self):
        return type(self).__name__ + "()"

    def forward_shape(self, shape):
        """The shape of the image of something of this shape."""
        return shape

    def inverse_shape(self, shape):
        """The shape of that whose image has this shape."""
        return shape


class _InverseTransform(Transform):
    """A transform the other way round; its own inverse is the transform that it was made of."""

    def __init__(self, transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The codomain of the transform."""
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The domain of the transform."""
        return self._inv.domain

    @property
    def bijective(self):
        """As the transform."""
        return self._inv.bijective

    @property
    def sign(self):
        """As the transform."""
        return self._inv.sign

    @property
    def inv(self):
        """The transform."""
        return self._inv

    def __getstate__(self):
        return self.__dict__.copy()

    def with_cache(self, cache_size=1):
        """The inverse of the transform with a cache of that size."""
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __repr__(self):
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        """Minus that of the transform."""
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        """The inverse shape of the transform."""
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        """The forward shape of the transform."""
        return self._inv.forward_shape(shape)


def _over(constraint, missing):
    return constraints.independent(constraint, missing) if missing > 0 else constraint


@boundary
class ComposeTransform(Transform):
    """Several transforms, the first of the list first.

    Raises:
        ValueError: another ``cache_size``.
    """

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """That of the first part, over events as large as the largest on the way."""
        if not self.parts:
            return constraints.real
        first = self.parts[0].domain
        needed = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            needed = max(needed + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _over(first, needed - first.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """That of the last part, over events as large as the largest on the way."""
        if not self.parts:
            return constraints.real
        last = self.parts[-1].codomain
        needed = self.parts[0].domain.event_dim
        for part in self.parts:
            needed = max(needed + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _over(last, needed - last.event_dim)

    @property
    def bijective(self):
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self):
        """The product of the parts' signs."""
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self):
        """The inverses in the opposite order."""
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def with_cache(self, cache_size=1):
        """The same row with caches of that size."""
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        """The sum of the parts', each over the whole event."""
        if not self.parts:
            return tg.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, values[:-1], values[1:]):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(before, after), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        """Through all parts."""
        return functools.reduce(lambda shape, part: part.forward_shape(shape), self.parts, shape)

    def inverse_shape(self, shape):
        """Back through all parts."""
        return functools.reduce(lambda shape, part: part.inverse_shape(shape), reversed(self.parts), shape)

    def __repr__(self):
        inside = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {inside}\n)"


identity_transform = ComposeTransform([])


@boundary
class IndependentTransform(Transform):
    """A transform over events that have ``reinterpreted_batch_ndims`` dimensions more.

    Raises:
        ValueError: another ``cache_size``.
    """

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        """The same with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """That of the base, over larger events."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """That of the base, over larger events."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        """As the base."""
        return self.base_transform.bijective

    @property
    def sign(self):
        """As the base."""
        return self.base_transform.sign

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        """The base's, summed over the event."""
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        """As the base."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        """As the base."""
        return self.base_transform.inverse_shape(shape)
