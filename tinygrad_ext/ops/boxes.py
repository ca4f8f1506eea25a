"""Counts of points in the boxes that bins of several dimensions make."""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import without_derivative
from tinygrad_ext.ops.histograms import _edges, ones
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _boxes(self, edges, weight, density):
    """Counts of rows in the boxes that borders of each dimension make."""
    n, rows = self.shape[-1], without_derivative(self).reshape(-1, self.shape[-1])
    for d, e in enumerate(edges):
        if e.dtype != self.dtype:
            raise RuntimeError(
                f"histogramdd(): input tensor and bins tensors should have the same dtype, got "
                f"{self.dtype} and {e.dtype} "
                f"for "
                f"dimension {d}"
            )
        if e.dim() != 1 or e.shape[0] < 2:
            raise RuntimeError(
                f"histogramdd(): bins of dimension {d} must be a vector of at least 2 borders, got {list(e.shape)}"
            )
    if weight is not None and (weight.shape != self.shape[:-1] or weight.dtype != self.dtype):
        raise RuntimeError(
            "histogramdd(): if weight tensor is provided it should have the same shape as the input tensor excluding "
            f"its innermost dimension and its dtype, got {list(weight.shape)} of {weight.dtype} for "
            f"{list(self.shape)} of {self.dtype}"
        )
    sizes = [e.shape[0] - 1 for e in edges]
    total = math.prod([size + 1 for size in sizes])
    if total >= 2**62:
        raise RuntimeError(f"histogramdd(): {total} boxes of {n} dimensions are too many: give fewer bins or columns")
    edges = [without_derivative(e) for e in edges]
    at = 0
    for d, e in enumerate(edges):
        x = rows[:, d].contiguous()
        # The bin's number from 1 on; 0 is before the first, and whatever else lies outside is put there too.
        here = tg.searchsorted(e[:-1], x, right=True) * (x <= e[-1])
        at = at * (sizes[d] + 1) + here if d else here
    counted = ones(rows[:, 0]) if weight is None else without_derivative(weight).reshape(-1)
    found = self.new_zeros((total,)).scatter_add(0, at, counted).reshape([size + 1 for size in sizes])
    found = found[(slice(1, None),) * n].contiguous()
    if density:
        found = found / found.sum()
        for d, e in enumerate(edges):
            found = found / e.diff().reshape([-1 if k == d else 1 for k in range(n)])
    return found, tuple([e.clone() for e in edges])


def _check_boxes(self, bins):
    if not self.dtype.is_floating_point:
        raise NotImplementedError(
            f"\"histogramdd\" not implemented for '{self.dtype}': convert the input with .float()"
        )
    if self.dim() < 2:
        raise RuntimeError(f"histogramdd(): input tensor should have at least 2 dimensions, got {list(self.shape)}")
    if len(bins) != self.shape[-1]:
        raise RuntimeError(
            f"histogramdd(): The size of bins must be equal to the innermost dimension of the input, got {len(bins)} "
            f"for {list(self.shape)}"
        )


def _counted_boxes(self, bins, range, weight, density):
    _check_boxes(self, bins)
    n = len(bins)
    if range is not None and len(range) != 2 * n:
        raise RuntimeError(
            f"histogramdd(): for a {n}-dimensional histogram range should have {2 * n} elements, but got {len(range)}"
        )
    rows = without_derivative(self).reshape(-1, n)
    given = [None if range is None else range[2 * d : 2 * d + 2] for d, _ in enumerate(bins)]
    edges = [_edges(rows[:, d], size, given[d]) for d, size in enumerate(bins)]
    return _boxes(self, edges, weight, density)


def _given_boxes(self, bins, range, weight, density):
    _check_boxes(self, bins)
    return _boxes(self, bins, weight, density)


def _np_boxes(x, bins, range=None, weight=None, density=False):
    import numpy

    n = x.shape[-1]
    bins = [bins] * n if isinstance(bins, int) else bins
    if range is not None:
        range = [tuple(range[2 * d : 2 * d + 2]) for d in numpy.arange(n)]
    weight = None if weight is None else weight.reshape(-1)
    found, edges = numpy.histogramdd(x.reshape(-1, n), bins, range, density, weight)
    return [found.astype(x.dtype), *[e.astype(x.dtype) for e in edges]]


_BOXES = {
    "jvp": "none",
    "types": "float",
    "variants": "function",
    "reference": _np_boxes,
    "doc": "How many rows of input (..., n) lie in each of the boxes that the bins of its n columns make, or the sum "
    "of their weights, and the borders of each column's bins: as many equal parts of the range as bins says, or "
    "those given. range holds the ends of each column in turn. density: divided by the sum and the box's volume. "
    "There is no derivative.",
}


def _points(make):
    return make.like([[0.5, 1.5], [2.5, 2.75], [4.0, -7.0], [0.0, 4.0]]).detach()


op(
    "aten::histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, Tensor[] bin_edges)",
    compose=_counted_boxes,
    samples=lambda make: [
        Sample(_points(make), (4, 2), range=(0.0, 4.0, 0.0, 4.0)),
        Sample(_points(make), (2, 3)),
        Sample(_points(make), (2, 2), weight=make.like([1.0, 2.0, 4.0, 8.0]).detach(), density=True),
    ],
    errors=[
        (lambda: tg.histogramdd(zeros(3, 2), (2,)), RuntimeError, "must be equal to the innermost dimension"),
        (lambda: tg.histogramdd(zeros(3), (2,)), RuntimeError, "at least 2 dimensions"),
        (lambda: tg.histogramdd(zeros(3, 2), (2, 2), (0.0, 1.0)), RuntimeError, "should have 4 elements"),
        (lambda: tg.histogramdd(zeros(3, 2).long(), (2, 2)), NotImplementedError, "not implemented for"),
    ],
    **_BOXES,
)

op(
    "aten::histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor[] bin_edges)",
    compose=lambda self, bins, *rest: _counted_boxes(self, [bins] * (self.shape[-1] if self.dim() else 1), *rest),
    samples=lambda make: [Sample(_points(make), 1), Sample(_points(make), 3)],
    errors=[(lambda: tg.histogramdd(zeros(2, 99), 9), RuntimeError, "are too many")],
    **_BOXES,
)

op(
    "aten::histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool "
    "density=False) -> (Tensor hist, Tensor[] bin_edges)",
    compose=_given_boxes,
    samples=lambda make: [
        Sample(_points(make), [make.like([0.0, 1.0, 4.0]).detach(), make.like([0.0, 2.0, 3.0]).detach()])
    ],
    errors=[(lambda: tg.histogramdd(zeros(3, 1), [zeros(1)]), RuntimeError, "a vector of at least 2 borders")],
    **_BOXES,
)
