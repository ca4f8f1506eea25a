"""Padded sequences packed, and back: what a PackedSequence holds, and the lengths, as tensors."""

import itertools

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _bits(x):
    """x, or its bits as signed numbers where it is of an unsigned dtype that no op of indices takes."""
    if x.dtype not in (tg.uint16, tg.uint32, tg.uint64):
        return x
    return x.view({2: tg.int16, 4: tg.int32, 8: tg.int64}[x.element_size()])


def _pack(input, lengths, batch_first):
    if lengths.dim() != 1 or lengths.dtype != tg.int64:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} "
            f"{lengths.dtype} tensor"
        )
    if input.dim() < 2:
        raise IndexError(f"pack_padded_sequence(): input must have steps and a batch, got {input.dim()} dimensions")
    counts, (steps, batch) = lengths.tolist(), input.shape[1::-1] if batch_first else input.shape[:2]
    if len(counts) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={batch})"
        )
    if counts and min(counts) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in itertools.pairwise(counts)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            f"`enforce_sorted=False`, and they are sorted here: got {counts}"
        )
    if not counts or counts[0] > steps:
        raise RuntimeError(
            f"pack_padded_sequence(): the longest sequence has {max(counts, default=0)} steps, the input {steps}"
        )
    if counts[0] == counts[-1]:  # whole steps, which are copied as they lie
        whole = (input.transpose(0, 1) if batch_first else input).narrow(0, 0, counts[0])
        return whole.clone(memory_format=tg.contiguous_format).flatten(0, 1), lengths.new_full((counts[0],), batch)
    going = lengths > tg.arange(counts[0], device=lengths.device).unsqueeze(1)
    places = going.flatten().nonzero().squeeze(1)
    if batch_first:  # step * batch + sequence becomes sequence * steps + step
        places = places % batch * steps + places // batch
    data = _bits(input).flatten(0, 1).index_select(0, places)
    return data if data.dtype is input.dtype else data.view(input.dtype), going.sum(1)


def _pad(data, batch_sizes, batch_first, padding_value, total_length):
    sizes = batch_sizes.tolist()
    if batch_sizes.dim() != 1 or batch_sizes.dtype != tg.int64 or data.dim() == 0 or sum(sizes) != data.shape[0]:
        raise RuntimeError(
            f"pad_packed_sequence(): batch_sizes must be one-dimensional, of int64, and sum to the rows of data, got "
            f"{sizes} of {batch_sizes.dtype} and data of shape {list(data.shape)}"
        )
    if not sizes:
        raise RuntimeError("batch_sizes can not be empty: pad_packed_sequence() got no step")
    if 0 < total_length < len(sizes):
        raise RuntimeError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(sizes)}"
        )
    steps, batch = max(len(sizes), total_length), sizes[0]
    going = batch_sizes.unsqueeze(1) > tg.arange(batch, device=batch_sizes.device)
    rows = data.new_full((steps * batch, *data.shape[1:]), padding_value)
    places = going.flatten().nonzero().squeeze(1)
    padded = _bits(rows).index_put((places,), _bits(data)).unflatten(0, (steps, batch))
    if padded.dtype is not data.dtype:
        padded = padded.view(data.dtype)
    return padded.transpose(0, 1) if batch_first else padded, going.sum(0)


# What graphs derive by, which call these ops whole: each is the other one's derivative.


def _packed_slope(grad, input_shape, lengths, batch_first):
    steps = tg.arange(input_shape[1 if batch_first else 0], device=lengths.device)
    return tg._pad_packed_sequence(grad, (lengths > steps.unsqueeze(1)).sum(1), batch_first, 0, 0)[0]


def _padded_slope(grad, batch_sizes, batch_first):
    rows = tg.arange(grad.shape[0 if batch_first else 1], device=batch_sizes.device)
    return tg._pack_padded_sequence(grad, (batch_sizes > rows.unsqueeze(1)).sum(1), batch_first)[0]


def _pack_reference(x, lengths, batch_first):
    import numpy as np

    x = x.swapaxes(0, 1) if batch_first else x
    sizes = np.array([sum(n > step for n in lengths) for step in range(lengths[0])])
    return np.concatenate([x[step, :n] for step, n in enumerate(sizes)]), sizes


def _pad_reference(data, batch_sizes, batch_first, padding_value, total_length):
    import numpy as np

    shape = max(len(batch_sizes), total_length), batch_sizes[0], *data.shape[1:]
    padded, at = np.full(shape, padding_value, data.dtype), 0
    for step, n in enumerate(batch_sizes):
        padded[step, :n] = data[at : at + n]
        at += n
    lengths = np.array([sum(n > b for n in batch_sizes) for b in range(batch_sizes[0])])
    return padded.swapaxes(0, 1) if batch_first else padded, lengths


def _pack_samples(make):
    yield Sample(make(4, 3, 2), make.of([4, 2, 2], tg.int64), False)
    yield Sample(make(2, 5), make.of([4, 1], tg.int64), True)


def _pad_samples(make):
    yield Sample(make(6, 2), make.of([3, 2, 1], tg.int64), False, 0.0, 3)
    yield Sample(make(5), make.of([2, 2, 1], tg.int64), True, 1.0, 5)


op(
    "aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
    compose=_pack,
    grad={"input": _packed_slope},
    variants="function",
    types="bool int natural float half complex",
    tags="data_dependent",
    samples=_pack_samples,
    reference=_pack_reference,
    errors=[
        (lambda: tg._pack_padded_sequence(zeros(3), tg.tensor([1]), False), IndexError, "steps and a batch"),
        (lambda: tg._pack_padded_sequence(zeros(3, 2), tg.tensor([1]), False), RuntimeError, "got 1 (batch_size=2)"),
        (lambda: tg._pack_padded_sequence(zeros(3, 1), tg.tensor([0]), False), RuntimeError, "greater than 0"),
        (lambda: tg._pack_padded_sequence(zeros(3, 2), tg.tensor([1, 2]), False), RuntimeError, "decreasing order"),
        (lambda: tg._pack_padded_sequence(zeros(3, 1), tg.tensor([4]), False), RuntimeError, "has 4 steps, the input"),
        (lambda: tg._pack_padded_sequence(zeros(3, 1), tg.tensor([1.0]), False), RuntimeError, "1D CPU int64 tensor"),
    ],
    doc="(the steps of padded sequences one after the other, how many sequences go on at each step). input: (steps, "
    "batch, ...), with batch_first (batch, steps, ...). lengths: int64 (batch,), positive and not rising.",
)
op(
    "aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, "
    "int total_length) -> (Tensor, Tensor)",
    compose=_pad,
    grad={"data": _padded_slope},
    variants="function",
    types="bool int natural float half complex",
    tags="data_dependent",
    samples=_pad_samples,
    reference=_pad_reference,
    errors=[
        (lambda: tg._pad_packed_sequence(zeros(3), tg.tensor([2]), False, 0, 1), RuntimeError, "sum to the rows"),
        (
            lambda: tg._pad_packed_sequence(zeros(0), tg.tensor([], dtype=tg.int64), False, 0, 1),
            RuntimeError,
            "be empty",
        ),
        (lambda: tg._pad_packed_sequence(zeros(4), tg.tensor([2, 2]), False, 0, 1), RuntimeError, "total_length=1"),
    ],
    doc="(padded sequences, their lengths) of packed ones: (steps, batch, ...), with batch_first (batch, steps, ...), "
    "of total_length steps, where that is positive as many as the longest at least. Raises RuntimeError where "
    "batch_sizes do not sum to the rows of data.",
)
