"""Distances between each two rows of one matrix."""

import tinygrad_ext as tg
from tinygrad_ext.ops.distances import _cdist_reference, _differing, _euclid_first, _numpy, _row_tangent
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _triangle(n, device):
    return tg.triu_indices(n, n, 1, device=device)


def _whole(n, *numbers):
    """Numbers of pairs as symmetric matrices with zeros on their diagonals."""
    rows, columns = _triangle(n, numbers[0].device)
    at = rows * n + columns
    for pairs in numbers:
        upper = pairs.new_zeros((*pairs.shape[:-1], n * n)).index_copy(-1, at, pairs).unflatten(-1, (n, n))
        yield upper + upper.mT


def _pairs_back(grad, self, p, result):
    weight, far = _whole(self.shape[-2], grad, result)
    return _euclid_first(weight, self, self, far) if p == 2 else fused._row_slopes(weight, self, self, far, p)


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
