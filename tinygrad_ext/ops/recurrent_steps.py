"""Recurrent units of one layer and direction over all steps, as single ops; kernels/recurrent.h says how they run."""

import tinygrad_ext as tg
from tinygrad_ext.ops import recurrent_references as references
from tinygrad_ext.ops import recurrent_rules as rules
from tinygrad_ext.ops import recurrent_tangents as tangents
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_SIZES = (), (3, 2, 2)


def _shaped(make, features, sizes):
    return make(sum(sizes), features) if sizes else make(2, 3, features)


def _samples(parts, cell=False, bias=False, rest=((),)):
    def samples(make):
        for sizes, reverse, more in (
            (_SIZES[0], False, rest[0]),
            (_SIZES[1], True, rest[-1]),
            (_SIZES[1], False, rest[0]),
        ):
            state = [make(3, 2) for _ in range(1 + cell)]
            weights = [make(parts * 2, 2), *([make(parts * 2)] if bias else [])]
            yield Sample(_shaped(make, parts * 2, sizes), *state, *weights, *more, sizes, reverse)

    return samples


def _back_samples(parts, kept, ends=1, rest=((),)):
    """kept: features of what forward has kept, in its order; ends: how many last states have a gradient."""

    def samples(make):
        def drawn(*shape):
            return make(*shape, low=-1, high=1)

        for k, (sizes, reverse) in enumerate(
            ((_SIZES[0], False), (_SIZES[0], True), (_SIZES[1], False), (_SIZES[1], True))
        ):
            grads = [_shaped(drawn, 2, sizes), *(drawn(3, 2) for _ in range(ends))]
            grads += [_shaped(drawn, n, sizes) for n in (kept if parts == 4 else kept[1:])]
            if k == 1:
                grads[1:] = [None] * len(grads[1:])
            stored = [_shaped(drawn, n, sizes) for n in kept]
            yield Sample(*grads, drawn(3, 2), drawn(parts * 2, 2), *stored, *rest[k % len(rest)], sizes, reverse)

    return samples


def _steps(name, *sizes, rest=((), False), dtype=None):
    return getattr(fused, name)(*[zeros(*n).to(dtype or tg.float32) for n in sizes], *rest)


_ERRORS = {
    "_lstm_steps": [
        (((1, 1, 8), (2,), (1, 2), (8, 2)), {}, "the state must be of shape"),
        (((1, 1, 8), (1, 2), (1, 2), (8, 3)), {}, "the weights of the state must be of shape"),
        (((1, 3, 8), (1, 2), (1, 2), (8, 2)), {}, "what comes from the inputs must be of shape"),
        (((1, 1, 8), (1, 2), (2, 2), (8, 2)), {}, "the cell must be of shape"),
        (((3, 8), (2, 2), (2, 2), (8, 2)), {"rest": ((1, 2), False)}, "must fall from 2 and sum up to 3 rows"),
        (((1, 1, 8), (1, 2), (1, 2), (8, 2)), {"dtype": tg.int64}, "not implemented for 'Long'"),
    ],
    "_gru_steps": [
        (((1, 1, 6), (1, 2), (6, 2), (5,)), {}, "the bias of the state must be of shape"),
    ],
    "_lstm_steps_backward": [
        (
            ((1, 1, 3), (1, 2), (1, 2), (1, 1, 2), (1, 1, 8), (1, 2), (8, 2), (1, 1, 2), (1, 1, 8)),
            {},
            "gradient must be",
        ),
        (
            ((2, 1, 2), (1, 2), (1, 2), (2, 1, 2), (1, 1, 8), (1, 2), (8, 2), (2, 1, 2), (1, 1, 8)),
            {},
            "cells must be of",
        ),
    ],
    "_gru_steps_backward": [
        (((2, 1, 2), (1, 2), (1, 1, 8), (1, 2), (6, 2), (2, 1, 2), (1, 1, 8)), {}, "out must be of shape"),
    ],
}


def _errors(name):
    return [
        (lambda sizes=sizes, more=more: _steps(name, *sizes, **more), RuntimeError, text)
        for sizes, more, text in _ERRORS[name]
    ]


_END = "sizes: of packed sequences, how many go on at each step; reverse: from the last step to the first."

op(
    "aten::_lstm_steps(Tensor gates, Tensor hidden, Tensor cell, Tensor weight, int[] sizes, bool reverse) "
    "-> (Tensor out, Tensor last, Tensor last_cell, Tensor cells, Tensor acts)",
    kernel="lstm_steps",
    variants="function",
    where="_fused",
    types="float",
    grad={"gates, hidden, cell, weight": rules.lstm_grad},
    jvp=tangents.lstm,
    batch=rules.batched("_lstm_steps", 3),
    samples=_samples(4, cell=True),
    errors=_errors("_lstm_steps"),
    reference=references.lstm,
    doc="Long short-term memory over all steps of gates (steps, batch, 4 n), or (rows, 4 n) of packed sequences, which "
    f"the inputs gave: outputs, the last state, and the cells and gates of all steps. {_END}",
)

op(
    "aten::_lstm_steps_backward(Tensor? out_grad, Tensor? last_grad, Tensor? last_cell_grad, "
    "Tensor? cells_grad, Tensor? acts_grad, Tensor cell, Tensor weight, Tensor cells, Tensor acts, int[] sizes, "
    "bool reverse) -> (Tensor gates_grad, Tensor hidden_grad, Tensor cell_grad)",
    kernel="lstm_steps_backward",
    variants="function",
    where="_fused",
    types="float",
    grad={"out_grad, last_grad, last_cell_grad, cells_grad, acts_grad, cell, weight, cells, acts": rules.lstm_twice},
    batch=rules.batched("_lstm_steps_backward", 6),
    samples=_back_samples(4, (2, 8), ends=2),
    errors=_errors("_lstm_steps_backward"),
    reference=references.lstm_back,
    doc="Derivatives of _lstm_steps by gates and the first state.",
)

op(
    "aten::_gru_steps(Tensor gates, Tensor hidden, Tensor weight, Tensor? bias, int[] sizes, bool reverse) "
    "-> (Tensor out, Tensor last, Tensor acts)",
    kernel="gru_steps",
    variants="function",
    where="_fused",
    types="float",
    grad={"gates, hidden, weight, bias": rules.gru_grad},
    jvp=tangents.gru,
    batch=rules.batched("_gru_steps", 2, 3),
    samples=_samples(3, bias=True),
    errors=_errors("_gru_steps"),
    reference=references.gru,
    doc="Gated recurrent units over all steps of gates (steps, batch, 3 n), or (rows, 3 n) of packed sequences: "
    f"outputs, the last state, and the gates of all steps. {_END}",
)

op(
    "aten::_gru_steps_backward(Tensor? out_grad, Tensor? last_grad, Tensor? acts_grad, Tensor hidden, Tensor weight, "
    "Tensor out, Tensor acts, int[] sizes, bool reverse) -> (Tensor gates_grad, Tensor kept_grad, Tensor hidden_grad)",
    kernel="gru_steps_backward",
    variants="function",
    where="_fused",
    types="float",
    grad={"out_grad, last_grad, acts_grad, hidden, weight, out, acts": rules.gru_twice},
    jvp=tangents.gru_back,
    batch=rules.batched("_gru_steps_backward", 4),
    samples=_back_samples(3, (2, 8)),
    errors=_errors("_gru_steps_backward"),
    reference=references.gru_back,
    doc="Derivatives of _gru_steps by gates, by what the weights of the state give, and by the first state.",
)

op(
    "aten::_elman_steps(Tensor gates, Tensor hidden, Tensor weight, bool relu, int[] sizes, bool reverse) "
    "-> (Tensor out, Tensor last)",
    kernel="elman_steps",
    variants="function",
    where="_fused",
    types="float",
    grad={"gates, hidden, weight": rules.elman_grad},
    jvp=tangents.elman,
    batch=rules.batched("_elman_steps", 2),
    samples=_samples(1, rest=((False,), (True,))),
    reference=references.elman,
    doc="Elman's units with tanh, or relu, over all steps of gates (steps, batch, n), or (rows, n) of packed "
    f"sequences: outputs and the last state. {_END}",
)

op(
    "aten::_elman_steps_backward(Tensor? out_grad, Tensor? last_grad, Tensor hidden, Tensor weight, Tensor out, "
    "bool relu, int[] sizes, bool reverse) -> (Tensor gates_grad, Tensor hidden_grad)",
    kernel="elman_steps_backward",
    variants="function",
    where="_fused",
    types="float",
    grad={"out_grad, last_grad, weight, out": rules.elman_twice},
    jvp=tangents.elman_back,
    batch=rules.batched("_elman_steps_backward", 3),
    samples=_back_samples(1, (2,), rest=((False,), (True,))),
    reference=references.elman_back,
    doc="Derivatives of _elman_steps by gates and the first state.",
)
