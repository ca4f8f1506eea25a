"""Sums, means and maxima over bags of rows of a table."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops import sparse_gradients
from tinygrad_ext.ops.batching import told
from tinygrad_ext.ops.batching_layers import placed, rows_folded
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.matrices import plus
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

# ---- derivatives ---------------------------------------------------------------------------------------------------


def _counted(indices, bag, padding_idx, period):
    """Which indices take part: those in a bag that are not the padding row."""
    if padding_idx < 0:
        return bag >= 0
    return (bag >= 0) & ((indices % period if period else indices) != padding_idx)


def _back(
    grads, weight, indices, per_sample_weights, output, bag, count, chosen, mode, padding_idx, period,
    scale_grad_by_freq, weight_shape, needs,
):  # fmt: skip
    grad = grads[0]
    if grad is None:
        return None, None
    rows, width = weight_shape
    if not count.shape[0] or not rows:
        zero = tg.zeros_like(per_sample_weights) if needs[3] else None
        return grad.new_zeros(weight_shape), zero
    if mode == "max":
        return grad.new_zeros(weight_shape).scatter_add(0, chosen.clamp(min=0), grad * (chosen >= 0)), None
    bag = bag.masked_fill(~_counted(indices, bag, padding_idx, period), -1)
    if mode == "mean":
        grad = grad / count.clamp(min=1).unsqueeze(-1)
    by_factor = _of_factors(grad, weight, indices, bag) if needs[3] else None
    if not needs[0]:
        return None, by_factor
    if not scale_grad_by_freq:
        return fused._embedding_bag_rows(grad, indices, bag, per_sample_weights, rows), by_factor
    each = grad.index_select(0, bag.clamp(min=0)) * (bag >= 0).unsqueeze(-1)
    if per_sample_weights is not None:
        each = each * per_sample_weights.unsqueeze(-1)
    return fused.embedding_dense_backward(each, indices, rows, -1, True), by_factor


def _of_factors(grad, weight, indices, bag):
    """For each index, how its row and the gradient of its bag go together."""
    return (grad.index_select(0, bag.clamp(min=0)) * fused.embedding(weight, indices)).sum(-1).masked_fill(bag < 0, 0)


def _rows_back(grad, grad_output, indices, bag, factors, needs):
    """Of _embedding_bag_rows, which is linear in both."""
    by_output = None
    if needs[0]:
        each = fused.embedding(grad, indices) * (bag >= 0).unsqueeze(-1)
        each = each if factors is None else each * factors.unsqueeze(-1)
        by_output = grad.new_zeros(grad_output.shape).index_add(0, bag.clamp(min=0), each)
    return by_output, _of_factors(grad_output, grad, indices, bag) if needs[3] else None


def _rows_slopes(grad_output, grad_output_tangent, indices, bag, factors, factors_tangent, rows):
    found = None
    if grad_output_tangent is not None:
        found = fused._embedding_bag_rows(grad_output_tangent, indices, bag, factors, rows)
    if factors_tangent is not None:
        found = plus(found, fused._embedding_bag_rows(grad_output, indices, bag, factors_tangent, rows))
    return found


@told("_embedding_bag_rows")
def _rows_batched(b, grad_output, indices, bag, factors, rows):
    """The samples' bags and tables one after the other."""
    each = tg.arange(b.size, device=grad_output.device).unsqueeze(-1)
    at = b.whole(bag)
    found = fused._embedding_bag_rows(
        rows_folded(b.whole(grad_output)),
        placed(b, indices, rows).flatten(),
        tg.where(at >= 0, at + each * grad_output.shape[0], -1).flatten(),
        None if factors is None else b.whole(factors).flatten(),
        b.size * rows,
    )
    return found.reshape(b.size, rows, grad_output.shape[1])


def _slopes(
    weight, weight_tangent, indices, offsets, per_sample_weights, per_sample_weights_tangent, mode,
    include_last_offset, padding_idx, period, scale_grad_by_freq, chosen,
):  # fmt: skip
    rest = mode, include_last_offset, padding_idx, period, scale_grad_by_freq
    if mode == "max":
        return weight_tangent.gather(0, chosen.clamp(min=0)) * (chosen >= 0), None, None, None
    found = None
    if weight_tangent is not None:
        found = fused._embedding_bag(weight_tangent, indices, offsets, per_sample_weights, *rest)[0]
    if per_sample_weights_tangent is not None:
        found = plus(found, fused._embedding_bag(weight, indices, offsets, per_sample_weights_tangent, *rest)[0])
    return found, None, None, None


@told("_embedding_bag")
def _batched(b, weight, indices, offsets, factors, mode, last, padding_idx, period, scale_grad_by_freq):
    """The samples' tables, indices and offsets one after the other; a last offset is a bag more, which is left out."""
    n, bags, rows = indices.shape[0], offsets.shape[0], weight.shape[0]
    each = tg.arange(b.size, device=weight.device).unsqueeze(-1)
    found = fused._embedding_bag(
        rows_folded(b.whole(weight)),
        placed(b, indices, rows).flatten(),
        (b.whole(offsets) + each * n).flatten(),
        None if factors is None else b.whole(factors).flatten(),
        mode,
        False,
        padding_idx,
        period or rows,
        scale_grad_by_freq,
    )
    output, bag, count, chosen = (t.reshape((b.size, t.shape[0] // max(b.size, 1), *t.shape[1:])) for t in found)
    bag = bag - each * bags
    if mode == "max":
        chosen = tg.where(chosen >= 0, chosen - each.unsqueeze(-1) * rows, chosen)
    if last:
        output, count, chosen = (t.narrow(1, 0, bags - 1) for t in (output, count, chosen))
        bag = bag.masked_fill(bag == bags - 1, -1)
    return output, bag, count, chosen


# ---- samples and reference -----------------------------------------------------------------------------------------


def _np_bags(
    weight, indices, offsets, factors=None, mode="mean", last=False, padding_idx=-1, period=0, scale_grad_by_freq=False
):
    import numpy

    ends = [*offsets[1:], len(indices)] if not last else offsets[1:]
    bags = len(ends)
    output, count = numpy.zeros((bags, weight.shape[1])), numpy.zeros(bags, numpy.int64)
    chosen = numpy.full((bags, weight.shape[1]), -1)
    bag = numpy.full(len(indices), -1)
    for k, (start, end) in enumerate(zip(offsets, ends)):
        bag[start:end] = k
        kept = [i for i in range(start, end) if indices[i] != padding_idx]
        count[k] = len(kept)
        if not kept:
            continue
        rows = weight[indices[kept]] * (1 if factors is None else factors[kept][:, None])
        output[k] = {"sum": rows.sum, "mean": rows.mean, "max": rows.max}[mode](0)
        chosen[k] = indices[kept][rows.argmax(0)]
    return output, bag, count, chosen if mode == "max" else count


def _bags(make):
    indices, offsets = make.of([1, 4, 2, 2, 0, 3]), make.of([0, 2, 2, 5])
    for mode in ("sum", "mean", "max"):
        yield Sample(make.distinct(5, 3), indices, offsets, None, mode, False, -1, 0, False)
        yield Sample(make.distinct(5, 3), indices, offsets, None, mode, True, 2, 0, False)
    yield Sample(make(5, 3), indices, offsets, make(6), "sum", False, -1, 0, False)
    yield Sample(make(5, 3), indices, make.of([0]), make(6), "sum", False, 4, 0, False)


op(
    "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, Tensor? per_sample_weights, str mode, bool "
    "include_last_offset, int padding_idx, int period, bool scale_grad_by_freq) -> (Tensor output, Tensor bag, Tensor "
    "count, Tensor chosen)",
    batch=_batched,
    kernel="embedding_bag",
    variants="function",
    where="_fused",
    types="float",
    grad={"weight, per_sample_weights": in_float(_back)},
    jvp=_slopes,
    samples=_bags,
    reference=_np_bags,
    doc="embedding_bag with the bag of each index (-1 for none), how many indices count in each bag, and for a maximum "
    "the row that it comes from. With a period not 0, rows are those of several tables of that size, for padding_idx.",
)


def _np_rows(grad, indices, bag, factors, rows):
    import numpy

    found = numpy.zeros((rows, grad.shape[1]), grad.dtype)
    kept = bag >= 0
    each = grad[bag[kept]] * (1 if factors is None else factors[kept][:, None])
    numpy.add.at(found, indices[kept], each)
    return found


op(
    "aten::_embedding_bag_rows(Tensor grad_output, Tensor indices, Tensor bag, Tensor? factors, int rows) -> Tensor",
    batch=_rows_batched,
    kernel="embedding_bag_rows",
    variants="function",
    where="_fused",
    types="float",
    grad={"grad_output, factors": _rows_back},
    jvp=_rows_slopes,
    samples=lambda make: [
        Sample(make(3, 4), make.of([1, 4, 2, 2, 0]), make.of([0, 0, 2, -1, 2]), None, 5),
        Sample(make(3, 4), make.of([1, 4, 2, 2, 0]), make.of([0, 0, 2, -1, 2]), make(5), 6),
    ],
    reference=_np_rows,
    doc="The way back of _embedding_bag: for each row of the table the gradients of the bags it is in; bag -1 is none.",
)

# ---- public --------------------------------------------------------------------------------------------------------

_MODES = ("sum", "mean", "max")


def _embedding_bag(
    input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, per_sample_weights,
    include_last_offset, padding_idx,
):  # fmt: skip
    _check(input, offsets, mode, sparse, scale_grad_by_freq, per_sample_weights, include_last_offset)
    rows = weight.shape[0]
    if input.dim() == 2:
        n, width = input.shape
        offsets = tg.arange(n, device=input.device) * width
        include_last_offset, input = False, input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(f"padding_idx must be within the number of embeddings: got {padding_idx} for {rows} rows")
    padding_idx = -1 if padding_idx is None else padding_idx % rows
    if max_norm is not None:
        with tg.no_grad():
            weight.detach().copy_(fused._embedding_renorm(weight, input, max_norm, norm_type))
    if sparse and weight.dim() == 2 and sparse_gradients.wanted():
        weight, input, padding_idx = _read_rows(weight, input, padding_idx, scale_grad_by_freq)
    options = mode, include_last_offset, padding_idx, 0, scale_grad_by_freq
    return fused._embedding_bag(weight, input, offsets, per_sample_weights, *options)


def _read_rows(weight, input, padding_idx, scale_grad_by_freq):
    """A table of the rows that are read, one after the other, whose gradient to weight is sparse; their numbers in it,
    and that of the padding row."""
    read = fused.embedding(weight, input, padding_idx, scale_grad_by_freq, True)
    at = tg.arange(input.shape[0], device=input.device)
    if padding_idx < 0:
        return read, at, padding_idx
    return tg.cat([read, read[:1]]), at.masked_fill(input == padding_idx, input.shape[0]), input.shape[0]


def _check(input, offsets, mode, sparse, scale_grad_by_freq, per_sample_weights, include_last_offset):
    if mode not in _MODES:
        raise ValueError(f"mode has to be one of sum, mean or max: embedding_bag got {mode!r}")
    if sparse and mode == "max":
        raise ValueError("max mode does not support sparse weights: embedding_bag got sparse=True; leave it out")
    if scale_grad_by_freq and mode == "max":
        raise ValueError(
            "max mode does not support scaling the gradient by the frequency: embedding_bag got "
            "scale_grad_by_freq=True; leave it out"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode={mode!r}): take weighted sums and divide them"
        )
    if per_sample_weights is not None and tuple(per_sample_weights.shape) != tuple(input.shape):
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have "
            f"the same shape as the input ({list(input.shape)})"
        )
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
            f"sequences. However, found offsets of shape {list(offsets.shape)} in embedding_bag"
        )
    if input.dim() == 1 and offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None: embedding_bag cuts a 1D input into bags")
    if input.dim() not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but embedding_bag got Tensor of dimension {input.dim()}")
    if input.dim() == 1 and offsets.dim() != 1:
        raise ValueError(f"offsets has to be a 1D Tensor: embedding_bag got {offsets.dim()} dimensions")
    if include_last_offset and (offsets is None or not offsets.numel()):
        raise ValueError("include_last_offset: embedding_bag needs at least one offset")


def _np_public(indices, weight, offsets=None, mode="mean", per_sample_weights=None, padding_idx=-1, **options):
    import numpy

    if indices.ndim == 2:
        offsets = numpy.arange(indices.shape[0]) * indices.shape[1]
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        indices = indices.reshape(-1)
    last = options.get("include_last_offset", False)
    return _np_bags(weight, indices, offsets, per_sample_weights, mode, last, padding_idx)[0]


def _functional(make):
    flat, offsets = make.of([1, 4, 2, 2, 0, 3]), make.of([0, 2, 2, 5])
    for mode in _MODES:
        yield Sample(make.ints(0, 5, (2, 3)), make.distinct(5, 3), mode=mode)
        yield Sample(flat, make.distinct(5, 3), offsets, mode=mode)
    yield Sample(flat, make(5, 3), offsets, mode="sum", per_sample_weights=make(6))
    yield Sample(flat, make(5, 3), make.of([0, 2, 2, 6]), include_last_offset=True, padding_idx=2)


def _refused(error, text, *shapes, **options):
    def call():
        input, weight = zeros(*shapes[0]).long(), zeros(*shapes[1])
        offsets = zeros(*shapes[2]).long() if len(shapes) > 2 else None
        return functions["nn.functional.embedding_bag"](input, weight, offsets, **options)

    return call, error, text


op(
    "aten::embedding_bag.functional(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, float "
    'norm_type=2.0, bool scale_grad_by_freq=False, str mode="mean", bool sparse=False, Tensor? '
    "per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
    compose=lambda *args: _embedding_bag(*args)[0],
    variants="function",
    where="nn.functional",
    types="float",
    samples=_functional,
    reference=_np_public,
    errors=[
        _refused(ValueError, "mode has to be one of sum, mean or max", (2, 2), (3, 2), mode="most"),
        _refused(ValueError, "offsets has to be a 1D Tensor but got None", (2,), (3, 2)),
        _refused(ValueError, "if input is 2D, then offsets has to be None", (2, 2), (3, 2), (1,)),
        _refused(RuntimeError, "weight has to be 2-D", (2, 2), (3,)),
        _refused(ValueError, "max mode does not support sparse weights", (2, 2), (3, 2), mode="max", sparse=True),
        _refused(ValueError, "scaling the gradient by", (2, 2), (3, 2), mode="max", scale_grad_by_freq=True),
    ],
    doc="One row for each bag of rows of weight (rows, size): their sum, mean or largest elements. input holds row "
    "numbers: a bag in each row of (N, k), or all in one dimension with the start of each bag in offsets, which ends "
    "with the end of the last one if include_last_offset. per_sample_weights multiplies rows of a sum; rows "
    "padding_idx do not count. max_norm first shortens the rows in use, in place.",
)


def _older(weight, indices, offsets, freq, mode, sparse, factors, last, padding_idx):
    word = _MODES[mode]
    return tuple(_embedding_bag(indices, weight, offsets, None, 2.0, freq, word, sparse, factors, last, padding_idx))


op(
    "aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
    "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> "
    "(Tensor output, Tensor offset2bag, Tensor bag_size, Tensor max_indices)",
    compose=_older,
    variants="function",
    types="float",
    determined=lambda found: found[0],
    samples=lambda make: [
        Sample(make.distinct(5, 3), make.of([1, 4, 2, 2, 0, 3]), make.of([0, 2, 2, 5]), False, mode)
        for mode in range(3)
    ],
    reference=lambda w, i, o, freq, mode: _np_bags(w, i, o, None, _MODES[mode])[0],
    doc="nn.functional.embedding_bag with a number for the mode (0 sum, 1 mean, 2 max); also the bag of each index, "
    "the number of indices that count in each bag, and for maxima the rows that they come from.",
)
