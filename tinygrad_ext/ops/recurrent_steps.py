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


def _samples(parts, cell=False, rest=((),)):
    def samples(make):
        for sizes, reverse, more, biased in (
            (_SIZES[0], False, rest[0], (True, True)),
            (_SIZES[1], True, rest[-1], (False, False)),
            (_SIZES[1], False, rest[0], (False, True)),
        ):
            state = [make(1, 3, 2) for _ in range(1 + cell)]
            weights = [make(parts * 2, 4), make(parts * 2, 2), *(make(parts * 2) if b else None for b in biased)]
            yield Sample(_shaped(make, 4, sizes), *state, *weights, *more, sizes, reverse)

    return samples


def _back_samples(parts, kept, ends=1, rest=((),)):
    """kept: features of what forward has kept, in its order; ends: how many states there are."""

    def samples(make):
        def drawn(*shape):
            return make(*shape, low=-1, high=1)

        for k, (sizes, reverse) in enumerate(
            ((_SIZES[0], False), (_SIZES[0], True), (_SIZES[1], False), (_SIZES[1], True))
        ):
            grads = [_shaped(drawn, 2, sizes), *(drawn(1, 3, 2) for _ in range(ends))]
            grads += [_shaped(drawn, n, sizes) for n in kept[1:]]
            wanted = [True] * (5 if parts == 3 else 4)
            if k == 1:
                grads[1:] = [None] * len(grads[1:])
                wanted[1:3] = False, False
            layer = [_shaped(drawn, 4, sizes), *(drawn(1, 3, 2) for _ in range(ends))]
            layer += [drawn(parts * 2, 4), drawn(parts * 2, 2), *(_shaped(drawn, n, sizes) for n in kept)]
            yield Sample(*grads, *layer, *rest[k % len(rest)], sizes, reverse, wanted)

    return samples


def _steps(name, *sizes, rest=((), False), dtype=None):
    tensors = [None if n is None else zeros(*n).to(dtype or tg.float32) for n in sizes]
    return getattr(fused, name)(*tensors, *rest)


_NONE = (None, None)
_LSTM = (1, 1, 3), (1, 1, 2), (1, 1, 2), (8, 3), (8, 2)
_STORED = (1, 1, 2), (1, 1, 2), (1, 1, 8)
_BACK = {"rest": ((), False, (True,) * 4)}
_ERRORS = {
    "_lstm_steps": [
        (((1, 1, 3), (1, 2), *_LSTM[2:], *_NONE), {}, "the state must be of shape"),
        (((1, 1, 3), (2, 1, 2), *_LSTM[2:], *_NONE), {}, "the state must be of shape"),
        ((*_LSTM[:3], (8, 2), (8, 2), *_NONE), {}, "the weights of the input must be of shape"),
        ((*_LSTM[:3], (8, 3), (8, 3), *_NONE), {}, "the weights of the state must be of shape"),
        (((1, 3, 3), *_LSTM[1:], *_NONE), {}, "the input must be of shape"),
        ((*_LSTM[:2], (1, 2, 2), *_LSTM[3:], *_NONE), {}, "the cell must be of shape"),
        ((*_LSTM, (7,), None), {}, "a bias must be of shape"),
        (
            ((3, 3), (1, 2, 2), (1, 2, 2), *_LSTM[3:], *_NONE),
            {"rest": ((1, 2), False)},
            "must fall from 2 and sum up to 3 rows",
        ),
        ((*_LSTM, *_NONE), {"dtype": tg.int64}, "not implemented for 'Long'"),
    ],
    "_gru_steps": [
        (((1, 1, 3), (1, 1, 2), (6, 3), (6, 2), None, (5,)), {}, "a bias must be of shape"),
    ],
    "_lstm_steps_backward": [
        (((1, 1, 3), *[None] * 4, *_LSTM, *_STORED), _BACK, "the gradient must be of shape"),
        (((1, 1, 2), (1, 2, 2), *[None] * 3, *_LSTM, *_STORED), _BACK, "the gradient of the last output must be"),
        ((*[None] * 5, *_LSTM, (1, 1, 2), (2, 1, 2), (1, 1, 8)), _BACK, "cells must be of shape"),
    ],
    "_gru_steps_backward": [
        (
            (*[None] * 3, (1, 1, 3), (1, 1, 2), (6, 3), (6, 2), (2, 1, 2), (1, 1, 8)),
            {"rest": ((), False, (True,) * 5)},
            "out must be of shape",
        ),
    ],
}


def _errors(name):
    return [
        (lambda sizes=sizes, more=more: _steps(name, *sizes, **more), RuntimeError, text)
        for sizes, more, text in _ERRORS[name]
    ]


_END = (
    "hidden: (1, batch, n); w_ih and w_hh: weights of input and state, a row for each of the gates; sizes: of packed "
    "sequences, how many go on at each step; reverse: from the last step to the first."
)
_GIVEN = "input (steps, batch, features), or (rows, features) of packed sequences"
_WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh"
_BY = "input, weights and biases, None for those not in output_mask"

op(
    f"aten::_lstm_steps(Tensor input, Tensor hidden, Tensor cell, {_WEIGHTS}, int[] sizes, bool reverse) "
    "-> (Tensor out, Tensor last, Tensor last_cell, Tensor cells, Tensor acts)",
    kernel="lstm_steps",
    variants="function",
    where="_fused",
    types="float",
    grad={"input, hidden, cell, w_ih, w_hh, b_ih, b_hh": rules.lstm_grad},
    jvp=tangents.lstm,
    batch=rules.batched("_lstm_steps", (3, 4, 5, 6)),
    samples=_samples(4, cell=True),
    errors=_errors("_lstm_steps"),
    reference=references.lstm,
    doc=f"Long short-term memory over all steps of {_GIVEN}: outputs, the last state, and the cells and gates of all "
    f"steps. {_END}",
)

op(
    "aten::_lstm_steps_backward(Tensor? out_grad, Tensor? last_grad, Tensor? last_cell_grad, "
    "Tensor? cells_grad, Tensor? acts_grad, Tensor input, Tensor hidden, Tensor cell, Tensor w_ih, Tensor w_hh, "
    "Tensor out, Tensor cells, Tensor acts, int[] sizes, bool reverse, bool[4] output_mask) -> (Tensor gates_grad, "
    "Tensor hidden_grad, Tensor cell_grad, Tensor input_grad, Tensor w_ih_grad, Tensor w_hh_grad, Tensor bias_grad)",
    kernel="lstm_steps_backward",
    variants="function",
    where="_fused",
    types="float",
    grad={
        "out_grad, last_grad, last_cell_grad, cells_grad, acts_grad, input, hidden, cell, w_ih, w_hh, out, cells, "
        "acts": rules.lstm_twice
    },
    batch=rules.batched_back("_lstm_steps_backward", 5, 6, 10, (8, 9)),
    samples=_back_samples(4, (2, 2, 8), ends=2),
    errors=_errors("_lstm_steps_backward"),
    reference=references.lstm_back,
    doc=f"Derivatives of _lstm_steps by gates, the first state, {_BY}.",
)

op(
    f"aten::_gru_steps(Tensor input, Tensor hidden, {_WEIGHTS}, int[] sizes, bool reverse) "
    "-> (Tensor out, Tensor last, Tensor acts)",
    kernel="gru_steps",
    variants="function",
    where="_fused",
    types="float",
    grad={"input, hidden, w_ih, w_hh, b_ih, b_hh": rules.gru_grad},
    jvp=tangents.gru,
    batch=rules.batched("_gru_steps", (2, 3, 4, 5)),
    samples=_samples(3),
    errors=_errors("_gru_steps"),
    reference=references.gru,
    doc=f"Gated recurrent units over all steps of {_GIVEN}: outputs, the last state, and the gates of all steps. "
    f"{_END}",
)

op(
    "aten::_gru_steps_backward(Tensor? out_grad, Tensor? last_grad, Tensor? acts_grad, Tensor input, Tensor hidden, "
    "Tensor w_ih, Tensor w_hh, Tensor out, Tensor acts, int[] sizes, bool reverse, bool[5] output_mask) "
    "-> (Tensor gates_grad, Tensor kept_grad, Tensor hidden_grad, Tensor input_grad, Tensor w_ih_grad, "
    "Tensor w_hh_grad, Tensor b_ih_grad, Tensor b_hh_grad)",
    kernel="gru_steps_backward",
    variants="function",
    where="_fused",
    types="float",
    grad={"out_grad, last_grad, acts_grad, input, hidden, w_ih, w_hh, out, acts": rules.gru_twice},
    jvp=tangents.gru_back,
    batch=rules.batched_back("_gru_steps_backward", 3, 4, 7, (5, 6)),
    samples=_back_samples(3, (2, 8)),
    errors=_errors("_gru_steps_backward"),
    reference=references.gru_back,
    doc=f"Derivatives of _gru_steps by gates, by what the weights of the state give, by the first state, {_BY}.",
)

op(
    f"aten::_elman_steps(Tensor input, Tensor hidden, {_WEIGHTS}, bool relu, int[] sizes, bool reverse) "
    "-> (Tensor out, Tensor last)",
    kernel="elman_steps",
    variants="function",
    where="_fused",
    types="float",
    grad={"input, hidden, w_ih, w_hh, b_ih, b_hh": rules.elman_grad},
    jvp=tangents.elman,
    batch=rules.batched("_elman_steps", (2, 3, 4, 5)),
    samples=_samples(1, rest=((False,), (True,))),
    reference=references.elman,
    doc=f"Elman's units with tanh, or relu, over all steps of {_GIVEN}: outputs and the last state. {_END}",
)

op(
    "aten::_elman_steps_backward(Tensor? out_grad, Tensor? last_grad, Tensor input, Tensor hidden, Tensor w_ih, "
    "Tensor w_hh, Tensor out, bool relu, int[] sizes, bool reverse, bool[4] output_mask) -> (Tensor gates_grad, "
    "Tensor hidden_grad, Tensor input_grad, Tensor w_ih_grad, Tensor w_hh_grad, Tensor bias_grad)",
    kernel="elman_steps_backward",
    variants="function",
    where="_fused",
    types="float",
    grad={"out_grad, last_grad, input, hidden, w_ih, w_hh, out": rules.elman_twice},
    jvp=tangents.elman_back,
    batch=rules.batched_back("_elman_steps_backward", 2, 3, 6, (4, 5)),
    samples=_back_samples(1, (2,), rest=((False,), (True,))),
    reference=references.elman_back,
    doc=f"Derivatives of _elman_steps by gates, the first state, {_BY}.",
)
