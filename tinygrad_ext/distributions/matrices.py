"""Distributions over matrices: Wishart, and Cholesky factors of correlations (LKJ)."""

import math
import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .gamma import Beta, Chi2
from .multivariate import GivenMatrix, _half_log_det
from .utils import _standard_normal, all_true


def _mvlgamma(a, p):
    """The logarithm of the multivariate gamma function."""
    halves = tg.arange(p, dtype=a.dtype, device=a.device) / 2
    return tg.lgamma(a.unsqueeze(-1) - halves).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


def _mvdigamma(a, p):
    halves = tg.arange(p, dtype=a.dtype, device=a.device) / 2
    return tg.digamma(a.unsqueeze(-1) - halves).sum(-1)


_MATRICES = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


@boundary
class Wishart(GivenMatrix, ExponentialFamily):
    """Positive definite matrices: sums of outer products of ``df`` normal vectors.

    Args:
        covariance_matrix: one of it, ``precision_matrix`` and ``scale_tril`` is given.

    Raises:
        AssertionError: not exactly one of the three is given.
        ValueError: ``df`` is not above the size of the matrix less one.
    """

    @property
    def arg_constraints(self):
        """What ``df`` is above depends on the size of the matrix."""
        return {**_MATRICES, "df": constraints.greater_than(self._event_shape[-1] - 1)}

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _NOT_ONE = AssertionError

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        name, matrix = self._one_of(covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = df if isinstance(df, tg.Tensor) else tg.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch, event = tg.broadcast_shapes(matrix.shape[:-2], df.shape), matrix.shape[-2:]
        if not all_true(df > event[-1] - 1):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        self.df = df.expand(batch)
        self._take(name, matrix, batch)
        super().__init__(batch, event, validate_args=validate_args)
        self._factorize(name, matrix)
        self._dist_chi2 = self._make_chi2()

    def _make_chi2(self):
        size = self._event_shape[-1]
        lost = tg.arange(size, dtype=self.df.dtype, device=self.df.device).expand(tuple(self._batch_shape) + (-1,))
        return Chi2(df=self.df.unsqueeze(-1) - lost)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = tg.Size(batch_shape)
        new.df = self.df.expand(batch_shape)
        new._take_from(self, batch_shape + self.event_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        new._dist_chi2 = new._make_chi2()
        return new

    @property
    def mean(self):
        """The mean."""
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self):
        """The mode, NaN where there is none."""
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return tg.where(factor <= 0, math.nan, factor)[..., None, None] * self.covariance_matrix

    @property
    def variance(self):
        """The variance of each element."""
        scale = self.covariance_matrix
        diagonal = scale.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (scale.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape=(), max_try_correction=None):
        """Draw samples with gradients to the parameters.

        A sample that rounding has left singular is drawn anew, with a warning, up to ``max_try_correction`` (10) times.
        """
        sample_shape, warned = tg.Size(sample_shape), False
        found = self._drawn(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            regular = self.support.check(found)
            if all_true(regular):
                break
            if not warned:
                warnings.warn("Singular sample detected.", UserWarning, stacklevel=2)
                warned = True
            found = tg.where(regular.unsqueeze(-1).unsqueeze(-1), found, self._drawn(sample_shape))
        return found

    def _drawn(self, sample_shape):
        """Samples by their Cholesky factors (Bartlett)."""
        size = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed()
        below = tg.tril_indices(size, size, -1)
        shape = sample_shape + self._batch_shape + (size * (size - 1) // 2,)
        noise[..., below[0], below[1]] = tg.randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def log_prob(self, value):
        """The logarithm of the density."""
        value, size = self._checked(value), self._event_shape[-1]
        half_log_det = tg.linalg.slogdet(value).logabsdet / 2
        inside = tg.linalg.solve_triangular(self._unbroadcasted_scale_tril, value, upper=False)
        inside = tg.linalg.solve_triangular(self._unbroadcasted_scale_tril.mT, inside, upper=True)
        trace = inside.diagonal(dim1=-2, dim2=-1).sum(-1)
        scale = self.df * (size * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
        return (self.df - size - 1) * half_log_det - trace / 2 - scale - _mvlgamma(self.df / 2, size)

    def entropy(self):
        """The entropy."""
        size = self._event_shape[-1]
        scale = (size + 1) * (size * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
        rest = (self.df - size - 1) / 2 * _mvdigamma(self.df / 2, size)
        return scale + _mvlgamma(self.df / 2, size) - rest + self.df * size / 2

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        size = x.shape[-1]
        log_det, y = tg.linalg.slogdet(-2 * x).logabsdet, y + (size + 1) / 2
        return y * (size * math.log(2) - log_det) + _mvlgamma(y, size)


@boundary
class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices of size ``dim``, the nearer to 1 the larger ``concentration``.

    Raises:
        ValueError: ``dim`` is below 2, or ``concentration`` is not positive.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration = concentration if isinstance(concentration, tg.Tensor) else tg.tensor(float(concentration))
        batch = self.concentration.size()
        # shares of the rows' lengths, of which the first has none
        offset = tg.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = tg.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, self.concentration.unsqueeze(-1) + 0.5 * (dim - 2) - 0.5 * offset)
        super().__init__(batch, (dim, dim), validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = tg.Size(batch_shape)
        new.dim, new.concentration = self.dim, self.concentration.expand(batch_shape)
        new._beta = self._beta.expand(batch_shape + (self.dim,))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape=()):
        """Draw factors, row by row on spheres."""
        with tg.no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            rows = _standard_normal(shape, dtype=length.dtype, device=length.device).tril(-1)
            rows = rows / rows.norm(dim=-1, keepdim=True)
            rows[..., 0, :] = 0.0
            rows = length.sqrt() * rows
            left = (1 - rows.square().sum(-1)).clamp(min=tg.finfo(rows.dtype).tiny).sqrt()
            return rows + left.diag_embed()

    def log_prob(self, value):
        """The logarithm of the density."""
        diagonal = self._checked(value).diagonal(dim1=-1, dim2=-2)[..., 1:]
        power = tg.arange(2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - power
        around = (power * diagonal.log()).sum(-1)
        rest = self.dim - 1
        alpha = self.concentration + rest / 2
        scale = rest / 2 * math.log(math.pi) + _mvlgamma(alpha - 0.5, rest) - tg.lgamma(alpha) * rest
        return around - scale
