"""Constraints of square matrices."""

import tinygrad_ext as tg

from .constraint_base import Constraint
from .utils import all_true


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        """Whether there are zeros above the diagonal."""
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value):
        """Whether the diagonal is positive, with zeros above."""
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value):
        """Whether the rows have length 1 too."""
        tolerance = tg.finfo(value.dtype).eps * value.size(-1) * 10  # of a sum of that many squares
        length = value.detach().square().sum(-1).sqrt()
        return super().check(value) & ((length - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        """Whether there are as many rows as columns."""
        return tg.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=tg.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        """Whether it equals its transpose."""
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return tg.isclose(value, value.mT, atol=1e-6).all((-2, -1))


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        """Whether no eigenvalue is negative."""
        symmetric = super().check(value)
        if not all_true(symmetric):
            return symmetric
        return (tg.linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        """Whether it has a Cholesky factor."""
        symmetric = super().check(value)
        if not all_true(symmetric):
            return symmetric
        return tg.linalg.cholesky_ex(value).info == 0
