"""Transforms of whole vectors and matrices."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.nn.functional import logsigmoid, pad, softplus

from .. import constraints
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from .base import Transform


def _needs(shape, event_dim):
    if len(shape) < event_dim:
        raise ValueError("Too few dimensions on input")


class _OfItsKind(Transform):
    """A transform without parameters: two of one class do the same."""

    def __eq__(self, other):
        return isinstance(other, type(self))

    __hash__ = object.__hash__


@boundary
class SoftmaxTransform(_OfItsKind):
    """``exp(x)``, scaled to sum 1; not one to one, the inverse is the logarithm."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        """The same; a vector at least."""
        _needs(shape, 1)
        return shape

    inverse_shape = forward_shape


@boundary
class StickBreakingTransform(_OfItsKind):
    """K - 1 numbers as K parts of a stick of length 1, each broken off what is left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _broken(self, x):
        # as many pieces to come as would give equal parts at x = 0
        left = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        return x - left.log()

    def _call(self, x):
        share = tg.sigmoid(self._broken(x))
        info = tg.finfo(x.dtype)
        share = share.clamp(min=info.tiny, max=1 - info.eps)
        return pad(share, [0, 1], value=1) * pad((1 - share).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        left = y.shape[-1] - y.new_ones(y.shape[-1] - 1).cumsum(-1)
        rest = (1 - y[..., :-1].cumsum(-1)).clamp(min=tg.finfo(y.dtype).tiny)
        return y[..., :-1].log() - rest.log() + left.log()

    def log_abs_det_jacobian(self, x, y):
        """Of a triangular matrix, so the sum over its diagonal."""
        x = self._broken(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        """One longer."""
        _needs(shape, 1)
        return tg.Size(shape[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        """One shorter."""
        _needs(shape, 1)
        return tg.Size(shape[:-1]) + (shape[-1] - 1,)


@boundary
class LowerCholeskyTransform(_OfItsKind):
    """The lower triangle of a matrix, with the exponential of its diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


@boundary
class PositiveDefiniteTransform(_OfItsKind):
    """The product of that lower triangle with its own transpose."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(tg.linalg.cholesky(y))


@boundary
class CorrCholeskyTransform(Transform):
    """Numbers as the Cholesky factor of a correlation matrix, row by row: D (D - 1) / 2 of them give D x D.

    Each row is a vector of length 1 with a positive last part: the tangents of the numbers are shares of what is left.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        x = tg.tanh(x)
        eps = tg.finfo(x.dtype).eps
        rows = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - rows.square()).sqrt().cumprod(-1)
        rows = rows + tg.eye(rows.shape[-1], dtype=rows.dtype, device=rows.device)
        return rows * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = pad((1 - y.square().cumsum(-1))[..., :-1], [1, 0], value=1)
        share = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (share.log1p() - (-share).log1p()) / 2

    def log_abs_det_jacobian(self, x, y):
        """Of the tangents and of what was left in each row."""
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2)
        from_rows = left.log().sum(-1) / 2
        from_tanh = -2 * (x + softplus(-2 * x) - math.log(2)).sum(-1)
        return from_rows + from_tanh

    def forward_shape(self, shape):
        """A square matrix."""
        _needs(shape, 1)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return tg.Size(shape[:-1]) + (size, size)

    def inverse_shape(self, shape):
        """A vector of what is below the diagonal."""
        _needs(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        size = shape[-1]
        return tg.Size(shape[:-2]) + (size * (size - 1) // 2,)
