"""Transforms of parts of a tensor, and of its shape."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .. import constraints
from ..utils import sum_rightmost
from .base import Transform


@boundary
class ReshapeTransform(Transform):
    """Another shape for the last dimensions: ``in_shape`` becomes ``out_shape``.

    Raises:
        ValueError: the two have different numbers of elements.
    """

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape = tg.Size(in_shape)
        self.out_shape = tg.Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                f"in_shape {self.in_shape} and out_shape {self.out_shape} have different numbers of elements"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        """All numbers, over events of ``in_shape``."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        """All numbers, over events of ``out_shape``."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size=1):
        """The same with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        """Zero."""
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape):
        """With ``out_shape`` at the end."""
        return _replace_end(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        """With ``in_shape`` at the end."""
        return _replace_end(shape, self.out_shape, self.in_shape)


def _replace_end(shape, end, by):
    if len(shape) < len(end):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(end)
    if tuple(shape[cut:]) != tuple(end):
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {end}")
    return tg.Size(shape[:cut]) + by


class _Parts(Transform):
    """Several transforms, each for a part along ``dim``."""

    @property
    def bijective(self):
        """Whether all parts are."""
        return all(part.bijective for part in self.transforms)


@boundary
class CatTransform(_Parts):
    """A transform for each part along ``dim``, of ``lengths``, one by default.

    Raises:
        AssertionError: something in ``tseq`` is no transform, or the lengths are not as many.
    """

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        if not all(isinstance(part, Transform) for part in tseq):
            raise AssertionError("CatTransform: every element of tseq must be a Transform")
        super().__init__(cache_size=cache_size)
        self.transforms = [part.with_cache(cache_size) for part in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"CatTransform: {len(self.transforms)} transforms but {len(self.lengths)} lengths")
        self.dim = dim

    @property
    def event_dim(self):
        """The largest of the parts."""
        return max(part.event_dim for part in self.transforms)

    @property
    def length(self):
        """The size along ``dim``."""
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        """The same with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _split(self, x):
        if not -x.dim() <= self.dim < x.dim() or x.size(self.dim) != self.length:
            raise ValueError(f"CatTransform: expected size {self.length} in dimension {self.dim}, got {tuple(x.shape)}")
        return x.split(self.lengths, self.dim)

    def _call(self, x):
        return tg.cat([part(piece) for part, piece in zip(self.transforms, self._split(x))], dim=self.dim)

    def _inverse(self, y):
        return tg.cat([part.inv(piece) for part, piece in zip(self.transforms, self._split(y))], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        """Those of the parts beside each other, or their sum where ``dim`` is part of the event."""
        terms = []
        for part, before, after in zip(self.transforms, self._split(x), self._split(y)):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(term, self.event_dim - part.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return tg.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self):
        """The parts' beside each other."""
        return constraints.cat([part.domain for part in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        """The parts' beside each other."""
        return constraints.cat([part.codomain for part in self.transforms], self.dim, self.lengths)


@boundary
class StackTransform(_Parts):
    """A transform for each slice along ``dim``.

    Raises:
        AssertionError: something in ``tseq`` is no transform.
    """

    def __init__(self, tseq, dim=0, cache_size=0):
        if not all(isinstance(part, Transform) for part in tseq):
            raise AssertionError("StackTransform: every element of tseq must be a Transform")
        super().__init__(cache_size=cache_size)
        self.transforms = [part.with_cache(cache_size) for part in tseq] if cache_size else list(tseq)
        self.dim = dim

    def with_cache(self, cache_size=1):
        """The same with a cache of that size."""
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slice(self, x):
        if not -x.dim() <= self.dim < x.dim() or x.size(self.dim) != len(self.transforms):
            raise ValueError(
                f"StackTransform: expected size {len(self.transforms)} in dimension {self.dim}, got {tuple(x.shape)}"
            )
        return x.unbind(self.dim)

    def _call(self, x):
        return tg.stack([part(piece) for part, piece in zip(self.transforms, self._slice(x))], dim=self.dim)

    def _inverse(self, y):
        return tg.stack([part.inv(piece) for part, piece in zip(self.transforms, self._slice(y))], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        """Those of the slices."""
        pieces = zip(self.transforms, self._slice(x), self._slice(y))
        return tg.stack([part.log_abs_det_jacobian(before, after) for part, before, after in pieces], dim=self.dim)

    @constraints.dependent_property
    def domain(self):
        """The slices' in a row."""
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        """The slices' in a row."""
        return constraints.stack([part.codomain for part in self.transforms], self.dim)
