"""Finding: places in sorted rows, distinct elements, counts of small integers."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_masks
from tinygrad_ext.ops.fused import fused, without_derivative
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _int64():
    return tg.int64


# ---- searchsorted --------------------------------------------------------------------------------------------------

op(
    "aten::_searchsorted(Tensor sorted_sequence, Tensor self, bool right, Tensor? sorter) -> Tensor",
    batch=batching_masks.searchsorted,
    kernel="searchsorted",
    types="bool int float",
    variants="method",
    samples=lambda make: [
        Sample(_ascending(make, 6), make(3, 4), False, None),
        Sample(_ascending(make, 2, 5), make(2, 3), True, None),
    ],
    doc="searchsorted without its options.",
)


def _to_right(right, side):
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    return right or side == "right"


def _search(sorted_sequence, self, out_int32, right, side, sorter):
    out = sorted_sequence.detach()._searchsorted(self.detach(), _to_right(right, side), sorter)
    return out.to(tg.int32) if out_int32 else out


def _reference_search(sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None):
    import numpy

    side = "right" if right or side == "right" else "left"
    if sorted_sequence.ndim == 1:
        return numpy.searchsorted(sorted_sequence, self, side, sorter)
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    found = [numpy.searchsorted(r, v, side) for r, v in zip(rows, self.reshape(len(rows), -1))]
    return numpy.stack(found).reshape(self.shape)


def _ascending(make, *shape):
    row = (make.distinct(*shape) if make.dtype.name != "bool" else make(*shape)).detach()
    return row if make.dtype.is_complex else row.sort()[0]


op(
    "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
    "str? side=None, Tensor? sorter=None) -> Tensor",
    compose=_search,
    types="int float",
    variants="function out",
    samples=lambda make: [
        Sample(_ascending(make, 6), make(3, 4)),
        Sample(_ascending(make, 2, 6), make(2, 3), right=True),
        Sample(_ascending(make, 6), make(), side="right"),
        Sample(_ascending(make, 4), make(0)),
    ],
    reference=_reference_search,
    errors=[
        (
            lambda: _search(zeros(2, 3), zeros(3, 3), False, False, None, None),
            RuntimeError,
            "boundaries tensor should be 1 dimension",
        )
    ],
    doc="Where each value would go in a sorted row so that it stays sorted: before equal elements, or behind them with "
    "right. The "
    "sequence is one row for all values, or has the leading dimensions of the values.",
)

op(
    "aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
    "str? side=None, Tensor? sorter=None) -> Tensor",
    compose=lambda sorted_sequence, self, *rest: _search(sorted_sequence, _as_tensor(self, sorted_sequence), *rest),
    types="int float",
    variants="function out",
    samples=lambda make: [Sample(_ascending(make, 6), 1)],
    reference=_reference_search,
    doc="Where a number would go in a sorted row so that it stays sorted.",
)


def _as_tensor(number, like):
    return tg.tensor(number, device=like.device)


op(
    "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    compose=lambda self, boundaries, out_int32, right: _search(
        _one_row(boundaries), self, out_int32, right, None, None
    ),
    types="int float",
    variants="function out",
    samples=lambda make: [Sample(make(3, 4), _ascending(make, 6)), Sample(make(), _ascending(make, 3), right=True)],
    reference=lambda self, boundaries, *, right=False, out_int32=False: _reference_search(
        boundaries, self, right=right
    ),
    doc="Number of the bucket each element falls in; boundaries is sorted, and each belongs to the bucket before it, "
    "or with right to the one behind it.",
)

op(
    "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    compose=lambda self, boundaries, out_int32, right: _search(
        _one_row(boundaries), _as_tensor(self, boundaries), out_int32, right, None, None
    ),
    types="int float",
    variants="function out",
    samples=lambda make: [Sample(1, _ascending(make, 6))],
    reference=lambda self, boundaries: _reference_search(boundaries, self),
    doc="Number of the bucket a number falls in.",
)


def _one_row(boundaries):
    if boundaries.dim() != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return boundaries


# ---- unique --------------------------------------------------------------------------------------------------------


def _order_of_rows(rows):
    """Order in which the rows of a matrix stand when they are sorted by their first column, then the second, ..."""
    order = tg.arange(rows.shape[0], device=rows.device)
    for column in range(rows.shape[1] - 1, -1, -1):
        order = order[rows[order, column].argsort(stable=True)]
    return order


def _grouped(rows, order, return_inverse, return_counts):
    """Distinct neighbours among rows or numbers (taken in `order`, or as they are): first ones, inverse, counts."""
    ordered = rows if order is None else rows[order]
    differ = ordered[1:] != ordered[:-1]
    differ = differ if rows.dim() == 1 else differ.any(1)
    some = min(rows.shape[0], 1)
    inverse = None
    if return_inverse:
        inverse = differ.constant_pad_nd((some, 0), False).cumsum(0)
        inverse = inverse if order is None else tg.empty_like(inverse).scatter_(0, order, inverse)
    if not return_counts:
        return ordered[differ.constant_pad_nd((some, 0), True)], inverse, None
    at = differ.constant_pad_nd((some, some), True).nonzero().reshape(-1)  # the end of the last group as well
    starts = at[:-1]
    return ordered[starts], inverse, at[1:] - starts


def _unique_truths(self, return_inverse, return_counts):
    """Of bools by counting, without sorting."""
    ones = self.sum()
    each = tg.stack([self.numel() - ones, ones])
    there = each > 0
    values = there.nonzero().reshape(-1) != 0
    inverse = (self & there[0]).to(_int64()) if return_inverse else each
    return values, inverse, each[there] if return_counts else each


# of integers that lie close together each possible number is counted: where there are at most so many for an element,
# and at least so many elements
_SPREAD, _MANY = 2, 1_000


def _spread(self):
    """The least of many integers and how many numbers there are from it to the largest, or None."""
    if self.is_meta or self.numel() < _MANY or self.dtype not in (tg.uint8, tg.int8, tg.int16, tg.int32, tg.int64):
        return None
    least, most = (x.item() for x in tg.aminmax(self))
    return (least, most - least + 1) if most - least < _SPREAD * self.numel() else None


def _unique_close(self, least, size, return_inverse, return_counts):
    """Of integers that lie close together by counting, without sorting."""
    at = self.reshape(-1).to(_int64()) - least
    each = fused._bincount(at, None, size)
    there = each > 0
    values = (there.nonzero().reshape(-1) + least).to(self.dtype)
    inverse = (there.cumsum(0) - 1)[at].reshape(self.shape) if return_inverse else each
    return values, inverse, each[there] if return_counts else each


def _unique(self, dim, return_inverse, return_counts, ordered):
    if self.dtype.is_complex:
        raise NotImplementedError(f"\"unique\" not implemented for '{self.dtype}': complex numbers have no order")
    self = without_derivative(self)
    if dim is None and ordered and self.dtype == tg.bool:
        values, inverse, counts = _unique_truths(self, return_inverse, return_counts)
    elif dim is None and ordered and (close := _spread(self)):
        values, inverse, counts = _unique_close(self, *close, return_inverse, return_counts)
    elif dim is None:
        numbers = self.reshape(-1)
        order = numbers.argsort(stable=True) if ordered else None
        values, inverse, counts = _grouped(numbers, order, return_inverse, return_counts)
        inverse = inverse.reshape(self.shape) if return_inverse else None
    else:
        moved = self.movedim(dim, 0)
        if not moved.numel() and len(moved):
            raise RuntimeError(
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: got shape "
                f"{list(self.shape)} and dim={dim}"
            )
        rows = moved.reshape(moved.shape[0], -1) if moved.numel() else moved.reshape(moved.shape[0], 0)
        values, inverse, counts = _grouped(
            rows, _order_of_rows(rows) if ordered else None, return_inverse, return_counts
        )
        values = values.reshape((values.shape[0], *moved.shape[1:])).movedim(0, dim).contiguous()
    wanted = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return wanted if len(wanted) > 1 else values


def _reference_unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    import numpy

    return numpy.unique(self, return_inverse=return_inverse, return_counts=return_counts, axis=dim)


_FEW = {"shape": "how many distinct elements there are depends on the values"}

op(
    "aten::unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) "
    "-> Any",
    compose=lambda self, sorted, return_inverse, return_counts, dim: _unique(
        self, dim, return_inverse, return_counts, True
    ),
    samples=lambda make: [
        Sample(make(3, 4, low=0, high=3).detach()),
        Sample(make(8, low=0, high=3).detach(), True, True, True),
        Sample(make(4, 2, low=0, high=1).detach(), dim=0),
        Sample(make(0).detach()),
    ],
    reference=_reference_unique,
    gaps=_FEW,
    doc="The distinct elements in ascending order (or the distinct slices of a dimension); with return_inverse also "
    "where each "
    "element went, with return_counts how often each came.",
)

op(
    "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Any",
    compose=lambda self, return_inverse, return_counts, dim: _unique(self, dim, return_inverse, return_counts, False),
    samples=lambda make: [
        Sample(make(3, 4, low=0, high=2).detach()),
        Sample(make(8, low=0, high=1).detach(), True, True),
        Sample(make(0).detach()),
    ],
    gaps=_FEW,
    doc="The elements that differ from the one before them, in their order; unique without the sorting.",
)


# ---- bincount ------------------------------------------------------------------------------------------------------


def _bincount(self, weights, minlength):
    if self.dtype.is_floating_point or self.dtype.is_complex:
        raise NotImplementedError(
            f"\"bincount\" not implemented for '{self.dtype}': it counts integers; convert with .long()"
        )
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0, got {minlength}")
    if self.is_meta:
        raise NotImplementedError("bincount(): the length depends on the elements, and meta tensors have none")
    least, most = (x.item() for x in tg.aminmax(self)) if self.dim() == 1 and self.numel() else (0, -1)
    if self.dim() != 1 or least < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input, got {tuple(weights.shape)} and "
            f"{tuple(self.shape)}"
        )
    if weights is not None and weights.dtype not in (tg.float32, tg.float64):
        weights = weights.to(tg.float64)
    weights = None if weights is None else weights.detach()
    return fused._bincount(self, weights if weights is None or self.numel() else None, max(most + 1, minlength))


op(
    "aten::_bincount(Tensor self, Tensor? weights, int size) -> Tensor",
    kernel="bincount",
    batch=batching_masks.counts,
    jvp="none",
    variants="function",
    where="_fused",
    types="int",
    domain=(0, 5),
    samples=lambda make: [Sample(make(9, low=0, high=5), None, 6), Sample(make(0), None, 2)],
    reference=lambda self, weights, size: _counts(self, size),
    errors=[(lambda: fused._bincount(tg.arange(3), None, 2), RuntimeError, "the number 2 lies outside of 2 counts")],
    doc="bincount of numbers below size.",
)


op(
    "aten::bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    batch=batching_masks.bincount,
    compose=_bincount,
    types="int",
    samples=lambda make: [
        Sample(make(9, low=0, high=5)),
        Sample(make(4, low=0, high=3), minlength=8),
        Sample(make(0), minlength=2),
    ],
    reference=lambda self, weights=None, minlength=0: _counts(self, minlength),
    errors=[(lambda: _bincount((zeros(2) - 1).long(), None, 0), RuntimeError, "non-negative")],
    gaps={"shape": "the length of the result depends on the values"},
    doc="How often each number from 0 on occurs in a vector of non-negative integers; with weights the sum of theirs.",
)


def _counts(values, minlength):
    import numpy

    return numpy.bincount(values.astype(numpy.int64), minlength=minlength)
