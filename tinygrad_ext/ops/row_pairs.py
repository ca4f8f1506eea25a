"""Distances between each two rows of one matrix."""

import tinygrad_ext as tg
from tinygrad_ext.ops.distances import _cdist_reference, _differing, _numpy, _row_tangent
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _triangle(n, device):
    return tg.triu_indices(n, n, 1, device=device)


def _pairs_back(grad, self, p, result):
    n = self.shape[-2]
    if p == 2:
        return fused._apart_sums(fused._pair_matrix(fused.div_or_zero(grad, result), n), self, self)
    return fused._row_slopes(fused._pair_matrix(grad, n), self, self, fused._pair_matrix(result, n), p)


def _of_pairs(grad, n):
    rows, columns = _triangle(n, grad.device)
    return (grad + grad.mT).flatten(-2).index_select(-1, rows * n + columns)


def _np_matrix(pairs, n):
    rows, columns = _numpy("triu_indices", n, 1)
    whole = _numpy("zeros", (*pairs.shape[:-1], n, n), pairs.dtype)
    whole[..., rows, columns] = whole[..., columns, rows] = pairs
    return whole


op(
    "aten::_pair_matrix(Tensor self, int n) -> Tensor",
    kernel="pair_matrix",
    batch="leading",
    types="float",
    variants="function",
    where="_fused",
    grad={"self": _of_pairs},
    jvp="linear",
    samples=lambda make: [
        Sample(make(6), 4),
        Sample(make(2, 171), 19),
        Sample(make(0), 1),
        Sample(make(3, 0), 0),
    ],
    reference=_np_matrix,
    errors=[
        (
            lambda: fused._pair_matrix(zeros(5), 4),
            RuntimeError,
            "a number of float32 or float64 for each two of 4 rows",
        ),
        (lambda: fused._pair_matrix(zeros(6).half(), 4), RuntimeError, "for each two of 4 rows, got Half"),
    ],
    doc="Numbers of each two of n rows, in the order of _row_pairs, as a symmetric matrix with zeros on its diagonal.",
)


def _pairs_tangent(self, p, self_tangent, result):
    sides = [
        x.index_select(-2, i).unsqueeze(-2)
        for x in (self, self_tangent)
        for i in _triangle(self.shape[-2], self.device)
    ]
    first, second, first_tangent, second_tangent = sides
    return _row_tangent(first, second, p, first_tangent, second_tangent, result[..., None, None]).reshape(result.shape)


def _pairs_reference(x, p):
    rows, columns = _numpy("triu_indices", x.shape[-2], 1)
    return _cdist_reference(x, x, p)[..., rows, columns]


op(
    "aten::_row_pairs(Tensor self, float p) -> Tensor",
    kernel="row_pairs",
    batch="leading",
    types="float",
    variants="function",
    where="_fused",
    grad={"self": _pairs_back},
    jvp=_pairs_tangent,
    samples=lambda make: [
        Sample(make(5, 3), 2.0),
        Sample(make(2, 19, 3), 1.0),
        Sample(make(6, 4), 3.0),
        Sample(make(4, 2), float("inf")),
        Sample(make(1, 2), 2.0),
        Sample(make(0, 2), 2.0),
    ],
    reference=_pairs_reference,
    errors=[
        (lambda: fused._row_pairs(zeros(3), 2.0), RuntimeError, "_row_pairs: x must be matrices of float32"),
        (lambda: fused._row_pairs(zeros(3, 2), -1.0), RuntimeError, "p greater than 0, got Float [3, 2] and -1"),
    ],
    doc="The p-norm of the difference of each two rows of a matrix, or of each of a batch.",
)


def _pdist(self, p):
    if self.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.dim()}D")
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"pdist only supports floating-point dtypes, got: {self.dtype}; convert with .float()")
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values: got {p}")
    if p:
        return fused._row_pairs(self, p)
    rows, columns = _triangle(self.shape[0], self.device)
    return _differing(self[rows] - self[columns])


op(
    "aten::pdist(Tensor self, float p=2) -> Tensor",
    compose=_pdist,
    variants="function",
    where="nn.functional .",
    types="float",
    samples=lambda make: [Sample(make(4, 3)), Sample(make(5, 2), 1.0), Sample(make(3, 4), 2.5)],
    errors=[(lambda: tg.pdist(zeros(3, 2).long()), RuntimeError, "pdist only supports floating-point dtypes")],
    reference=lambda x, p=2.0: _cdist_reference(x, x, p)[_numpy("triu_indices", len(x), 1)],
    doc="p-norm of the difference of each two rows, in the order (0, 1), (0, 2), ..., (n - 2, n - 1).",
)
