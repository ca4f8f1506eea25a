"""Normal vectors, with a whole covariance or one of low rank and a diagonal."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property


def _batch_mv(matrix, vector):
    """Matrix times vector; both may have a batch in front."""
    return tg.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(scale_tril, difference):
    """The squared length of what the lower triangle maps to ``difference``."""
    if scale_tril.dim() == 2:  # one triangle for all: all are sides of one system
        sides = difference.reshape(-1, difference.shape[-1]).mT
        lengths = tg.linalg.solve_triangular(scale_tril, sides, upper=False).square().sum(-2)
        return lengths.reshape(difference.shape[:-1])
    solved = tg.linalg.solve_triangular(scale_tril, difference.unsqueeze(-1), upper=False)
    return solved.square().sum((-2, -1))


def _precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse: that of the matrix turned round, inverted."""
    turned = tg.linalg.cholesky(tg.flip(precision, (-2, -1)))
    inverse = tg.flip(turned, (-2, -1)).mT
    identity = tg.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return tg.linalg.solve_triangular(inverse, identity, upper=False)


def _half_log_det(scale_tril):
    return scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


@boundary
class GivenMatrix:
    """A positive definite matrix of a distribution: given itself, by its inverse or by its lower Cholesky factor.

    What is given is kept as it came, the others follow from the factor when they are asked for.
    """

    _GIVEN = ("covariance_matrix", "precision_matrix", "scale_tril")
    _NOT_ONE = ValueError

    def _one_of(self, *matrices):
        """(name, matrix) of the one that is given."""
        given = [(name, matrix) for name, matrix in zip(self._GIVEN, matrices) if matrix is not None]
        if len(given) != 1:
            raise self._NOT_ONE("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        return given[0]

    def _take(self, name, matrix, batch):
        setattr(self, name, matrix.expand(tuple(batch) + (-1, -1)))

    def _factorize(self, name, matrix):
        """The factor of what was given, after it was checked."""
        factors = {"covariance_matrix": tg.linalg.cholesky, "precision_matrix": _precision_to_scale_tril}
        self._unbroadcasted_scale_tril = factors[name](matrix) if name in factors else matrix

    def _take_from(self, other, shape):
        """The same matrix, expanded."""
        self._unbroadcasted_scale_tril = other._unbroadcasted_scale_tril
        for name in self._GIVEN:
            if name in other.__dict__:
                setattr(self, name, getattr(other, name).expand(shape))

    def _whole(self, matrix):
        size = self._unbroadcasted_scale_tril.shape[-2:]
        return matrix.expand(self._batch_shape + size)

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the matrix."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The matrix."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self):
        """Its inverse."""
        factor = self._unbroadcasted_scale_tril
        identity = tg.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        inverse = tg.linalg.solve_triangular(factor, identity, upper=False)
        return self._whole(inverse.mT @ inverse)


@boundary
class MultivariateNormal(GivenMatrix, Distribution):
    """Normal vectors with mean ``loc`` and one of covariance, precision and lower Cholesky factor of the covariance.

    Raises:
        ValueError: not exactly one of the three, or matrices and vectors of too few dimensions.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._one_of(covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = tg.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self._take(name, matrix, batch)
        self.loc = loc.expand(tuple(batch) + (-1,))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._factorize(name, matrix)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = tg.Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new._take_from(self, batch_shape + self.event_shape + self.event_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self):
        """The mean."""
        return self.loc

    @property
    def mode(self):
        """The mean."""
        return self.loc

    @property
    def variance(self):
        """The diagonal of the covariance."""
        return self._unbroadcasted_scale_tril.square().sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to the parameters."""
        noise = _standard_normal(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value):
        """The logarithm of the density."""
        far = _batch_mahalanobis(self._unbroadcasted_scale_tril, self._checked(value) - self.loc)
        far = (self._event_shape[0] * math.log(2 * math.pi) + far) * -0.5
        return far - _half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self):
        """The entropy."""
        one = self._event_shape[0] * (1 + math.log(2 * math.pi)) / 2 + _half_log_det(self._unbroadcasted_scale_tril)
        return one.expand(self._batch_shape)


def _capacitance_tril(factor, diagonal):
    """The Cholesky factor of 1 + W^T D^-1 W."""
    inner = factor.mT @ (factor / diagonal.unsqueeze(-1))
    return tg.linalg.cholesky(inner + tg.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device))


def _low_rank_log_det(diagonal, capacitance_tril):
    return 2 * _half_log_det(capacitance_tril) + diagonal.log().sum(-1)


def _low_rank_mahalanobis(factor, diagonal, difference, capacitance_tril):
    inside = _batch_mv((factor / diagonal.unsqueeze(-1)).mT, difference)
    return (difference.square() / diagonal).sum(-1) - _batch_mahalanobis(capacitance_tril, inside)


@boundary
class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance ``cov_factor @ cov_factor.mT + diag(cov_diag)``.

    Raises:
        ValueError: parameters of shapes that do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        size = loc.shape[-1]
        if cov_factor.shape[-2] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size} x m")
        if cov_diag.shape[-1] != size:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {size}")
        batch = tuple(tg.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]))
        self.loc, self.cov_diag = loc.expand(batch + (size,)), cov_diag.expand(batch + (size,))
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        super().__init__(batch, (size,), validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _capacitance_tril(cov_factor, cov_diag)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = tg.Size(batch_shape)
        for name in ("loc", "cov_diag"):
            setattr(new, name, getattr(self, name).expand(batch_shape + self.event_shape))
        new.cov_factor = self.cov_factor.expand(batch_shape + self.cov_factor.shape[-2:])
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _whole(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self):
        """The mean."""
        return self.loc

    @property
    def mode(self):
        """The mean."""
        return self.loc

    @lazy_property
    def variance(self):
        """The diagonal of the covariance."""
        each = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return each.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._whole(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the covariance."""
        return self._whole(tg.linalg.cholesky(self.covariance_matrix))

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance, by the small matrix inside."""
        diagonal = self._unbroadcasted_cov_diag
        scaled = (self._unbroadcasted_cov_factor / diagonal.unsqueeze(-1)).mT
        inside = tg.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._whole(diagonal.reciprocal().diag_embed() - inside.mT @ inside)

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to the parameters."""
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        shared = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **options)
        own = _standard_normal(shape, **options)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, shared) + self._unbroadcasted_cov_diag.sqrt() * own

    def log_prob(self, value):
        """The logarithm of the density."""
        far = _low_rank_mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            self._checked(value) - self.loc,
            self._capacitance_tril,
        )
        log_det = _low_rank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return -(self._event_shape[0] * math.log(2 * math.pi) + log_det + far) / 2

    def entropy(self):
        """The entropy."""
        log_det = _low_rank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return ((self._event_shape[0] * (1 + math.log(2 * math.pi)) + log_det) / 2).expand(self._batch_shape)
