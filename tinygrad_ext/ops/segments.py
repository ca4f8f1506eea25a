"""Reductions of segments, which follow one another along a dimension, and a diagonal that is filled."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.call.op_tables import functions, ops
from tinygrad_ext.ops.batching import told
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}
_SCATTER = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


def _borders(data, lengths, offsets, axis, unsafe):
    """Where each segment begins, and where the last one ends, along the last dimension; how many elements each
    has; whether that was looked at."""
    given, name = (lengths, "lengths") if offsets is None else (offsets, "offsets")
    if given.is_floating_point() or given.is_complex() or given.dtype == tg.bool:
        raise RuntimeError(f"segment_reduce(): Expected {name} to be int32 or int64, got {given.dtype}")
    if given.dim() != axis + 1 or given.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} and the sizes before it to be data's, "
            f"but got axis {axis}, {name} of {list(given.shape)} and data of {list(data.shape)}"
        )
    given, n = given.to(tg.int64), data.shape[axis]
    if offsets is not None and not given.shape[-1]:
        raise RuntimeError("segment_reduce(): offsets must have at least one element, the end of the last segment")
    if offsets is None:
        borders, many = given.cumsum(-1).constant_pad_nd((1, 0)), given
    else:
        borders, many = given, given.diff()
    if unsafe or data.device.type == "meta" or hasattr(given, "level"):  # carried: it has no elements
        return borders, many, False
    if offsets is None and bool(((given < 0) | (given > n)).any() | (borders[..., -1] != n).any()):
        if bool((given < 0).any()):
            raise RuntimeError("segment_reduce(): lengths contains negative value!")
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            f"!unsafe, which is {n}"
        )
    if offsets is not None and bool((borders < 0).any() | (borders > n).any() | (many < 0).any()):
        raise RuntimeError(
            f"segment_reduce(): offsets must rise from 0 or later to at most {n}, the elements along axis"
        )
    return borders, many, True


def _segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet: pass lengths or offsets")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in _NEUTRAL:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if not data.is_floating_point():
        raise NotImplementedError(f"\"segment_reduce\" not implemented for '{data.dtype}': convert data with .float()")
    if not data.dim() or not -data.dim() <= axis < data.dim():
        raise RuntimeError(f"segment_reduce(): axis {axis} is outside of the {data.dim()} dimensions of data")
    axis %= data.dim()
    borders, many, checked = _borders(data, lengths, offsets, axis, unsafe)
    n, count = data.shape[axis], many.shape[-1]
    if checked and offsets is None and not axis:
        at = tg.repeat_interleave(many, output_size=n)
    else:
        places = tg.arange(n, device=data.device).expand((*borders.shape[:-1], n)).contiguous()
        at = tg.searchsorted(borders[..., 1:].contiguous(), places, right=True)
        at = at.masked_fill(places < borders[..., :1], count)  # what is in no segment goes to one more
    rest = (1,) * (data.dim() - axis - 1)
    index = at.reshape((*at.shape, *rest)).expand(data.shape) if rest else at
    start = _NEUTRAL[reduce] if initial is None else initial
    shape = (*data.shape[:axis], count + 1, *data.shape[axis + 1 :])
    found = data.new_full(shape, start).scatter_reduce(axis, index, data, _SCATTER[reduce], include_self=True)
    found = found.narrow(axis, 0, count)
    if reduce != "mean":
        return found
    many = many.reshape((*many.shape, *rest))
    return tg.where(many == 0, float("nan") if initial is None else initial, found / many.clamp(min=1))


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
    yield Sample(make.distinct(6), "max", offsets=make.of([0, 3, 6]))
    yield Sample(make.distinct(2, 3, 2), "mean", lengths=make.of([[1, 2], [2, 1]]), axis=1)


def _refused(error, text, shape, reduce, **kwargs):
    def call():
        tensors = {k: tg.tensor(v) if isinstance(v, list) else v for k, v in kwargs.items()}
        return functions["segment_reduce"](zeros(*shape), reduce, **tensors)

    return call, error, text


op(
    "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? "
    "offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    compose=_segment_reduce,
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
