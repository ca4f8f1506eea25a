"""Sorting and selection along a dimension. Every sort is stable; NaN is greater than everything else."""

from tinygrad_ext.ops import forward
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.reduce import select_back
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import wrapped


def _rows(make):
    for shape, dim in (((3, 4), -1), ((3, 4), 0), ((5,), 0), ((2, 3, 4), 1), ((0, 3), 0), ((), 0)):
        yield make.distinct(*shape) if make.dtype.name != "bool" else make(*shape), dim


def _reference_sort(self, dim=-1, descending=False):
    import numpy

    if not self.ndim:
        return self, numpy.zeros((), dtype=numpy.int64)
    if descending:  # turning the row over twice keeps equal elements in order
        order = self.shape[dim] - 1 - numpy.flip(numpy.argsort(numpy.flip(self, dim), dim, kind="stable"), dim)
    else:
        order = numpy.argsort(self, dim, kind="stable")
    return numpy.take_along_axis(self, order, dim), order


def _reference_topk(self, k, dim=-1, largest=True, sorted=True):
    values, order = _reference_sort(self, dim, largest)
    return (values.take(range(k), dim), order.take(range(k), dim)) if self.ndim else (values, order)


def _back(grad_values, self_shape, dim, indices):
    """Each value's gradient goes where the value came from."""
    return grad_values._gather_backward(self_shape, dim, indices)


_TYPES = "bool int float half"

op(
    "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    batch="dims",
    kernel="sort",
    types=_TYPES,
    variants="function method out",
    grad={"self": _back},
    jvp=forward.along,
    samples=lambda make: [Sample(x, d, r) for x, d in _rows(make) for r in (False, True)],
    reference=_reference_sort,
    errors=[(lambda: zeros(2, 3).sort(2), IndexError, "Dimension out of range")],
    doc="The elements of each row of a dimension in order, and where they stood (int64). Equal elements keep their "
    "order.",
)

op(
    "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
    "indices)",
    batch="dims",
    kernel="sort_stable",
    types=_TYPES,
    variants="function method out",
    grad={"self": _back},
    jvp=forward.along,
    samples=lambda make: [Sample(x, stable=True, dim=d, descending=r) for x, d in _rows(make) for r in (False, True)],
    reference=lambda self, *, stable=True, dim=-1, descending=False: _reference_sort(self, dim, descending),
    doc="sort, with the wish for stability spoken out; every sort is stable.",
)

op(
    "aten::topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) "
    "-> (Tensor values, Tensor indices)",
    batch="dims",
    kernel="topk",
    types=_TYPES,
    variants="function method out",
    grad={"self": _back},
    jvp=forward.along,
    samples=lambda make: [
        Sample(x, min(2, x.shape[d] if x.dim() else 1), d, r) for x, d in _rows(make) for r in (True, False)
    ],
    reference=_reference_topk,
    errors=[(lambda: zeros(2, 3).topk(4), RuntimeError, "selected index k out of range")],
    doc="The k largest (or smallest) elements of each row of a dimension, in order, and where they stood (int64). Of "
    "equal "
    "elements the first ones are taken. RuntimeError when the dimension has fewer than k.",
)

op(
    "aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    compose=lambda self, dim, descending: self.detach().sort(dim, descending)[1],
    types=_TYPES,
    samples=lambda make: [Sample(x, d, r) for x, d in _rows(make) for r in (False, True)],
    reference=lambda self, dim=-1, descending=False: _reference_sort(self, dim, descending)[1],
    doc="Where the elements of each sorted row stood (int64).",
)

op(
    "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    compose=lambda self, stable, dim, descending: self.detach().sort(dim, descending)[1],
    types=_TYPES,
    variants="function method out",
    samples=lambda make: [Sample(x, stable=True, dim=d) for x, d in _rows(make)],
    reference=lambda self, *, stable=True, dim=-1, descending=False: _reference_sort(self, dim, descending)[1],
    doc="argsort, with the wish for stability spoken out.",
)

op(
    "aten::msort(Tensor self) -> Tensor",
    compose=lambda self: self.sort(0)[0],
    types=_TYPES,
    variants="function method out",
    samples=lambda make: [Sample(x) for x, _ in _rows(make)],
    reference=lambda self: _reference_sort(self, 0)[0],
    doc="The elements sorted along the first dimension.",
)


# ---- the k-th ------------------------------------------------------------------------------------------------------


def _kthvalue(self, k, dim, keepdim):
    dim = wrapped(dim, self.dim())
    n = self.shape[dim] if self.dim() else 1
    if n == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {dim} to have non-zero size.")
    if hasattr(k, "item"):
        k = int(k)  # a tensor of one number is taken for one, as everywhere; what follows asks the number itself
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}: k={k}, size {n}")
    near_end = 2 * k > n + 1
    if (n - k + 1 if near_end else k) > max(16, n // 64) and self.dtype.name != "bool":
        return fused._kth(self, k, dim, keepdim)
    values, indices = self.topk(n - k + 1 if near_end else k, dim, near_end)
    if not self.dim():
        return values, indices
    if keepdim:
        return values.narrow(dim, -1, 1).contiguous(), indices.narrow(dim, -1, 1).contiguous()
    return values.select(dim, -1).contiguous(), indices.select(dim, -1).contiguous()


def _reference_kth(self, k, dim=-1, keepdim=False):
    values, order = _reference_sort(self, dim)
    if not self.ndim:
        return values, order
    at = [k - 1] if keepdim else k - 1
    return values.take(at, dim), order.take(at, dim)


op(
    "aten::_kth(Tensor self, int k, int dim, bool keepdim) -> (Tensor values, Tensor indices)",
    batch="dims",
    kernel="_kth",
    types="int float",
    variants="function",
    where="_fused",
    grad={"self": lambda grad, self_shape, dim, keepdim, indices: select_back(grad, self_shape, dim, keepdim, indices)},
    jvp=forward.reduced,
    samples=lambda make: [
        Sample(x, k, d, k < 2) for x, d in _rows(make) if x.numel() for k in (1, 2, 3) if k <= (x.shape or (1,))[d]
    ],
    reference=_reference_kth,
    errors=[(lambda: fused._kth(zeros(2, 3), 4, 1, False), RuntimeError, "selected number k out of range")],
    doc="kthvalue by selection.",
)

op(
    "aten::kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    compose=_kthvalue,
    types="int float",
    variants="function method out",
    samples=lambda make: [
        Sample(x, k, d, keep)
        for x, d in _rows(make)
        if x.numel()
        for keep in (False, True)
        for k in {1, x.shape[d] if x.dim() else 1}
    ],
    reference=_reference_kth,
    errors=[(lambda: zeros(2, 3).kthvalue(4), RuntimeError, "selected number k out of range")],
    tags="apart",
    doc="The k-th smallest element (from 1 on) of each row of a dimension, and where it stands.",
)
