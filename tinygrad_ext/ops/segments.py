"""Reductions of segments, which follow one another along a dimension, and a diagonal that is filled."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.call.op_tables import functions, ops
from tinygrad_ext.ops.batching import after, told
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}
_SAME = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "max", "min": "min", "amax": "max", "amin": "min"}


def _spreading(data, lengths, offsets, axis, unsafe):
    """A function that gives each element of data what a tensor of results has for its segment, and 0 to those that are
    in none; and how many elements each segment has, to be broadcast with the results."""
    n, rest = data.shape[axis], (1,) * (data.dim() - axis - 1)
    if offsets is None and not axis and not unsafe:  # all are in one
        at = tg.repeat_interleave(lengths.to(tg.int64), output_size=n)
        return lambda x: x.index_select(0, at), lengths.reshape((-1, *rest))
    given = (lengths if offsets is None else offsets).to(tg.int64)
    borders, many = (given.cumsum(-1).constant_pad_nd((1, 0)), given) if offsets is None else (given, given.diff())
    places = tg.arange(n, device=data.device).expand((*borders.shape[:-1], n)).contiguous()
    at = tg.searchsorted(borders[..., 1:].contiguous(), places, right=True)
    at = at.masked_fill(places < borders[..., :1], many.shape[-1])
    index = at.reshape((*at.shape, *rest)).expand(data.shape)
    one_more = (0, 0) * len(rest) + (0, 1)
    return lambda x: x.constant_pad_nd(one_more).gather(axis, index), many.reshape((*many.shape, *rest))


def _segment_back(grad, data, reduce, lengths, offsets, axis, unsafe, initial, result):
    axis %= data.dim()
    spread, many = _spreading(data, lengths, offsets, axis, unsafe)
    how = _SAME[reduce]
    if how == "sum":
        return spread(grad / many.clamp(min=1) if reduce == "mean" else grad)

    def sums(x):
        return _segments(x, "sum", lengths=lengths, offsets=offsets, axis=axis, unsafe=True)

    start = _NEUTRAL[how] if initial is None else initial
    if how == "prod":
        return _product_back(grad, data, start, spread, sums, lengths, offsets, axis)
    # the extreme elements share, and so does where they start; counts are exact
    there = spread(result)
    same = (data == there) | ((data != data) & (there != there))
    count = sums(same.to(tg.float32 if data.shape[axis] < 1 << 24 else tg.float64)) + (result == start)
    return fused.where(same, spread((grad / count.clamp(min=1)).to(data.dtype)), 0)


def _product_back(grad, data, start, spread, sums, lengths, offsets, axis):
    """The product of all other factors. Those that are zero count apart: where there is one, it is the sum of them all,
    which has the derivative that a factor of 0 lacks; where there are more, their product has none."""
    zero = data == 0
    others = data.masked_fill(zero, 1)
    product = _segments(
        others, "prod", lengths=lengths, offsets=offsets, axis=axis, unsafe=True, initial=start if start else 1
    )
    nil = data.masked_fill(~zero, 0)
    zeros_here = spread(sums(zero.to(tg.float32)) + (not start)) - zero.to(tg.float32)
    nils = spread(sums(nil)) - nil
    factor = fused.where(zeros_here == 0, 1, fused.where(zeros_here == 1, nils, 0)).to(data.dtype)
    return spread(grad * product) / others * factor


def _segment_tangent(data, reduce, lengths, offsets, axis, unsafe, initial, data_tangent, result):
    if _SAME[reduce] != "sum":
        one = tg.ones_like(result)
        slope = _segment_back(one, data, reduce, lengths, offsets, axis, unsafe, initial, result)
        data_tangent = data_tangent * slope
    mean = {"reduce": "mean", "initial": 0} if reduce == "mean" else {"reduce": "sum"}
    return _segments(data_tangent, lengths=lengths, offsets=offsets, axis=axis, unsafe=True, **mean)


def _segments(*args, **options):
    return functions["segment_reduce"](*args, **options)


@told("segment_reduce")
def _batched(b, data, reduce, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    data = b.whole(data)
    lengths, offsets = (x if x is None else b.whole(x) for x in (lengths, offsets))
    axis = after(axis, data.dim() - 1)
    return _segments(
        data, reduce, lengths=lengths, indices=indices, offsets=offsets, axis=axis, unsafe=unsafe, initial=initial
    )


def _np_segments(data, reduce, lengths=None, offsets=None, axis=0, initial=None):
    import numpy

    data = numpy.moveaxis(data, axis, -1)
    if lengths is not None:
        offsets = numpy.concatenate([lengths[..., :1] * 0, lengths.cumsum(-1)], -1)
    start = _NEUTRAL[reduce] if initial is None else initial
    found = numpy.full((*data.shape[:-1], offsets.shape[-1] - 1), start, data.dtype)
    for place in numpy.ndindex(*data.shape[:-1]):
        borders = offsets[place[:axis]]
        for k in range(len(borders) - 1):
            part = data[place][borders[k] : borders[k + 1]]
            if reduce == "sum":
                found[place][k] += part.sum()
            elif reduce == "mean":
                empty = numpy.nan if initial is None else initial
                found[place][k] = (start + part.sum()) / len(part) if len(part) else empty
            elif reduce == "prod":
                found[place][k] *= part.prod()
            elif len(part):
                other = part.max() if reduce == "max" else part.min()
                found[place][k] = max(start, other) if reduce == "max" else min(start, other)
    return numpy.moveaxis(found, -1, axis)


def _samples(make):
    lengths = make.of([2, 0, 4])
    for reduce in _NEUTRAL:
        yield Sample(make.distinct(6, 2), reduce, lengths=lengths, initial=2)
    yield Sample(make(6), "sum", lengths=lengths)
    yield Sample(make(12, low=0.75, high=1.25), "prod", lengths=make.of([0, 11, 1]))
    yield Sample(make.distinct(6), "max", offsets=make.of([0, 3, 6]))
    yield Sample(make.distinct(2, 3, 2), "mean", lengths=make.of([[1, 2], [2, 1]]), axis=1)


def _refused(error, text, shape, reduce, **kwargs):
    def call():
        tensors = {k: tg.tensor(v) if isinstance(v, list) else v for k, v in kwargs.items()}
        return _segments(zeros(*shape), reduce, **tensors)

    return call, error, text


op(
    "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? "
    "offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    kernel="segment_reduce",
    batch=_batched,
    grad={"data": _segment_back},
    jvp=_segment_tangent,
    types="float half",
    variants="function out",
    aliases="_segment_reduce",
    samples=_samples,
    reference=_np_segments,
    errors=[
        _refused(RuntimeError, "Either lengths or offsets", (3,), "sum"),
        _refused(RuntimeError, "reduce argument must be", (3,), "median", lengths=[3]),
        _refused(RuntimeError, "sum to data.size", (3,), "sum", lengths=[2]),
        _refused(RuntimeError, "negative value", (3,), "sum", lengths=[4, -1]),
        _refused(RuntimeError, "sum to data.size", (3,), "sum", lengths=[2**62, 2**62, 2**62, 2**62, 3]),
        _refused(RuntimeError, "offsets must rise", (3,), "sum", offsets=[0, 4]),
        _refused(RuntimeError, "the last dimension of lengths", (3, 2), "sum", lengths=[2], axis=1),
    ],
    doc="sum, mean, max, min or prod of segments of data along axis, which have so many elements each (lengths), or "
    "lie between neighbours of offsets. Before axis lengths has data's sizes. initial goes into each result, and "
    "is that of no elements. unsafe leaves out the check that lengths sum to data's size.",
)


def _with_diagonal(tensor, value, wrap):
    return operation(ops["aten::fill_diagonal"])(tensor, value, wrap)


@told("fill_diagonal")
def _batched_diagonal(b, self, fill_value, wrap=False):
    places = _with_diagonal(tg.zeros(self.shape, dtype=tg.bool, device=self.device), True, wrap)
    return b.whole(self).masked_fill(places, fill_value)


def _np_diagonal(x, fill_value, wrap=False):
    import numpy

    x = x.copy()
    if x.size:
        numpy.fill_diagonal(x, fill_value, wrap)
    return x


op(
    "aten::fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor",
    batch=_batched_diagonal,
    kernel="fill_diagonal",
    types="bool int float half complex",
    variants="inplace",
    grad={"self": lambda grad, wrap: _with_diagonal(grad, 0, wrap)},
    jvp=lambda self_tangent, wrap: _with_diagonal(self_tangent, 0, wrap),
    samples=lambda make: [
        Sample(make(3, 3), 2),
        Sample(make(2, 4), 0),
        Sample(make(7, 2), 1),
        Sample(make(7, 3), 1, True),
        Sample(make(2, 2, 2), 3),
        Sample(make(0, 3), 3),
    ],
    reference=_np_diagonal,
    errors=[
        (lambda: zeros(3).fill_diagonal_(1), RuntimeError, "dimensions must larger than 1"),
        (lambda: zeros(2, 2, 3).fill_diagonal_(1), RuntimeError, "of equal length"),
    ],
    doc="fill_diagonal_: set the elements whose indices are alike; with wrap the diagonal begins again below, after a "
    "row that is left out, where a matrix is higher than wide.",
)
