"""Recurrent layers over packed sequences, the steps of all of them one after the other, as in a PackedSequence."""

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.recurrent import REST, SAID, reference_of, run_layers, weights_of
from tinygrad_ext.ops.samples import Sample, zeros


def _sizes(kind, data, batch_sizes):
    """How many sequences go on at each step, as a list; steps at the end that none reaches are left out."""
    if batch_sizes.dtype != tg.int64 or batch_sizes.dim() != 1:
        raise RuntimeError(
            f"{kind}(): batch_sizes must be one-dimensional and of int64, but it has {batch_sizes.dim()} dimensions "
            f"and dtype {batch_sizes.dtype}"
        )
    sizes = batch_sizes.tolist()
    falls = sorted(sizes, reverse=True) == sizes and sizes and sizes[0] > 0 and sizes[-1] >= 0
    if sum(sizes) != data.shape[0] or not falls:
        raise RuntimeError(
            f"{kind}(): batch_sizes {sizes} do not go with data of {data.shape[0]} rows: the first is positive, they "
            "do not rise, none is negative, and they sum to it"
        )
    return sizes[: len(sizes) - sizes.count(0)]


def _packed(kind):
    def run(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
        sizes, state = _sizes(kind, data, batch_sizes), hx if kind == "lstm" else [hx]
        if len(state) != 1 + (kind == "lstm"):
            raise RuntimeError(f"lstm(): expected two hidden states, but got {len(state)}: the output and the cell")
        if data.dim() != 2:
            raise RuntimeError(f"{kind}(): data must have 2 dimensions, (rows, features), but got {data.dim()}")
        if state[0].dim() != 3 or state[0].shape[1] != sizes[0]:
            raise RuntimeError(
                f"{kind}(): hx must be (layers times directions, batch, features) with a batch of {sizes[0]}, the "
                f"first of batch_sizes, but got {list(state[0].shape)}"
            )
        settings = (has_biases, num_layers, dropout, train, bidirectional)
        return run_layers(kind, data, state, params, *settings, sizes=sizes)

    return run


def _reference(kind):
    """Each sequence by itself."""

    def run(data, batch_sizes, hx, *settings):
        import numpy as np

        starts, ends, rows = np.cumsum([0, *batch_sizes]), [], None
        for b in range(batch_sizes[0]):
            own = [starts[step] + b for step, size in enumerate(batch_sizes) if size > b]
            state = [s[:, b : b + 1] for s in hx] if kind == "lstm" else hx[:, b : b + 1]
            out, *last = reference_of(kind)(data[own][:, None], state, *settings, False)
            rows = np.zeros((len(data), out.shape[-1]), out.dtype) if rows is None else rows
            rows[own] = out[:, 0]
            ends.append(last)
        return (rows, *(np.concatenate(part, 1) for part in zip(*ends)))

    return run


def _samples(kind):
    def state(make, n):
        return [make(n, 3, 3), make(n, 3, 3)] if kind == "lstm" else make(n, 3, 3)

    def samples(make):
        sizes = make.of([3, 2, 1], tg.int64)
        yield Sample(make(6, 2), sizes, state(make, 1), weights_of(make, kind, 2, 3), True, 1, 0.0, True, False)
        two = [*weights_of(make, kind, 2, 3, False), *weights_of(make, kind, 2, 3, False)]
        yield Sample(make(6, 2), sizes, state(make, 2), two, False, 1, 0.0, False, True)

    return samples


def _misfit(kind, sizes, dtype=tg.int64):
    state = zeros(1, 2, 1)
    settings = (True, 1, 0.0, False, False)
    hx = [state] * 2 if kind == "lstm" else state
    return getattr(tg, kind)(zeros(3, 2), tg.tensor(sizes, dtype=dtype), hx, [zeros(4, 2)] * 4, *settings)


for _kind, _said in SAID.items():
    _two = _kind == "lstm"
    op(
        f"aten::{_kind}.data(Tensor data, Tensor batch_sizes, {'Tensor[]' if _two else 'Tensor'} hx, {REST}) -> "
        f"(Tensor, {'Tensor, Tensor' if _two else 'Tensor'})",
        compose=_packed(_kind),
        variants="function",
        types="float",
        domain=(-1, 1),
        tags="data_dependent draws",
        samples=_samples(_kind),
        reference=_reference(_kind),
        errors=[
            (lambda k=_kind: _misfit(k, [1, 2]), RuntimeError, "batch_sizes [1, 2] do not go with data of 3 rows"),
            (lambda k=_kind: _misfit(k, [2, 2]), RuntimeError, "batch_sizes [2, 2] do not go with data of 3 rows"),
            (lambda k=_kind: _misfit(k, [2, 1], tg.float32), RuntimeError, "must be one-dimensional and of int64"),
            (lambda k=_kind: _misfit(k, [1, 1, 1]), RuntimeError, "with a batch of 1, the first"),
        ],
        doc=f"Layers of {_said} over packed sequences: data (rows, features), all sequences' first steps, then their "
        "second ones, and so on; batch_sizes: int64, how many sequences go on at each step. hx: first states (layers "
        "times directions, batch, features). Returns outputs of the last layer, packed, and the last states.",
    )
