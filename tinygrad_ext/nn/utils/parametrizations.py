"""Parametrizations that are often wanted: weight_norm, spectral_norm, orthogonal."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.errors import refuse_unknown
from tinygrad_ext.nn.functional import normalize

from ..module import Module
from ..parameter import refuse_lazy_weight
from . import parametrize
from .weight_norm import _weight_norm, norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """Lengths times directions."""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        """The weight."""
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        """Lengths and directions."""
        return norm_except_dim(weight, 2, self.dim), weight


@boundary
def weight_norm(module, name="weight", dim=0):
    """Let a parameter be lengths times directions, and return the module.

    Args:
        dim: the dimension along which there are several lengths; None for one of the whole.
    """
    refuse_lazy_weight("WeightNorm", getattr(module, name, None))
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict, prefix, *rest):
        """Lengths and directions as the hook of the same name saved them."""
        if f"{prefix}{name}_g" in state_dict and f"{prefix}{name}_v" in state_dict:
            for old, new in (("g", "original0"), ("v", "original1")):
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = state_dict.pop(f"{prefix}{name}_{old}")

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight over its largest singular value."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        count = weight.ndim
        if dim >= count or dim < -count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{count}, {count - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got {n_power_iterations}")
        self.dim, self.eps = dim if dim >= 0 else dim + count, eps
        if count > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            rows, columns = matrix.size()
            u, v = matrix.new_empty(rows).normal_(0, 1), matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight):
        if self.dim:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _iterate(self, matrix, steps):
        with tg.no_grad():
            for _ in range(steps):
                self._u.copy_(normalize(tg.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(normalize(tg.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        """The weight over its largest singular value."""
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # copies: the graph keeps them, and the next call writes to the buffers
        u, v = self._u.clone(), self._v.clone()
        return weight / tg.vdot(u, tg.mv(matrix, v))

    def right_inverse(self, value):
        """The value itself: what was assigned is not known to be normal."""
        return value


@boundary
def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Let a parameter be divided by its largest singular value, and return the module.

    Args:
        n_power_iterations: steps of the iteration that follows the singular value, each read in training.
        dim: the dimension of outputs; by default 1 for transposed convolutions, else 0.

    Raises:
        ValueError: there is no such parameter, or no iterations.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, tg.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """Matrices with orthonormal rows or columns, from triangles of free numbers."""

    def __init__(self, weight, orthogonal_map, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def _square(self, x):
        skew = x.tril()
        columns = x.shape[-1]
        if columns < x.shape[-2]:
            skew = tg.cat([skew, skew.new_zeros((*x.shape[:-1], x.shape[-2] - columns))], -1)
        skew = skew - skew.mH
        if self.orthogonal_map == "matrix_exp":
            return tg.linalg.matrix_exp(skew)
        identity = tg.eye(skew.shape[-1], dtype=skew.dtype, device=skew.device)
        return tg.linalg.solve(identity - skew / 2, identity + skew / 2)

    def forward(self, x):
        """The orthogonal matrix."""
        wide = x.size(-2) < x.size(-1)
        x = x.mT if wide else x
        if self.orthogonal_map == "householder":
            below = x.tril(-1)
            tau = 2 / (1 + below.square().sum(-2))
            q = tg.linalg.householder_product(below, tau) * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            q = self._square(x)[..., : x.size(-1)]
        if getattr(self, "base", None) is not None:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, value):
        """Make the orthogonal matrix nearest to the value the base, and the free numbers those of its place."""
        if value.shape != self.shape:
            raise ValueError(
                f"orthogonal: Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape "
                f"{value.shape}"
            )
        wide = value.size(-2) < value.size(-1)
        tall = value.mT if wide else value
        if not hasattr(self, "base"):
            return self._reflections(tall, wide)
        q, r = tg.linalg.qr(tall, mode="complete")
        sign, columns = r.diagonal(dim1=-2, dim2=-1).sgn(), tall.size(-1)
        self.base = tg.cat([q[..., :columns] * sign.unsqueeze(-2), q[..., columns:]], -1)
        origin = tg.zeros_like(tall)
        origin.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # reflections along the axes, whose signs forward takes back
        return origin.mT if wide else origin

    def _reflections(self, tall, wide):
        """The free numbers that give a matrix without a base: those of its reflections."""
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "orthogonal: It is not possible to assign to the matrix exponential or the Cayley parametrizations "
                "when use_trivialization=False; leave it on, or assign to the original"
            )
        below, tau = tg.geqrf(tall)
        signs = below.diagonal(dim1=-2, dim2=-1).sign()
        # a column without a reflection is kept, where a reflection along its axis would turn it
        below.diagonal(dim1=-2, dim2=-1).copy_(tg.where(tau == 0, -signs, signs))
        return below.mT if wide else below


@boundary
def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Let a matrix have orthonormal rows or columns, and return the module.

    Args:
        orthogonal_map: 'matrix_exp', 'cayley' or 'householder'; by default the first for square matrices and the last
            for others.
        use_trivialization: count from where the matrix was last assigned, which keeps the numbers near zero.

    Raises:
        ValueError: there is no such parameter, it has fewer than two dimensions, or an unknown map.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, tg.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    return parametrize.register_parametrization(
        module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True
    )


__getattr__ = refuse_unknown(__name__)
