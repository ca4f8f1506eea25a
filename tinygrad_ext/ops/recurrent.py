"""Recurrent layers and their single steps: the products with the inputs are one product for all steps of a layer."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.recurrent_rules import backwards, cut, forwards, joined
from tinygrad_ext.ops.samples import Sample, zeros


def _linear(x, weight, bias):
    return functions["nn.functional.linear"](x, weight, bias)


# ---- one step: (what comes from the input, the state, weights of the state) -> the new state -------------------------


def _lstm(gates, state, weight, bias, project=None):
    hidden, cell = state
    take, forget, new, give = (gates + _linear(hidden, weight, bias)).chunk(4, -1)
    cell = forget.sigmoid() * cell + take.sigmoid() * new.tanh()
    hidden = give.sigmoid() * cell.tanh()
    return (hidden if project is None else _linear(hidden, project, None)), cell


def _gru(gates, state, weight, bias, project=None):
    (hidden,) = state
    given = gates.chunk(3, -1)
    kept = _linear(hidden, weight, bias).chunk(3, -1)
    reset, update = ((g + k).sigmoid() for g, k in zip(given[:2], kept))
    new = (given[2] + reset * kept[2]).tanh()
    return ((hidden - new) * update + new,)


def _elman(activation):
    def step(gates, state, weight, bias, project=None):
        return (getattr(gates + _linear(state[0], weight, bias), activation)(),)

    return step


STEPS = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _elman("tanh"), "rnn_relu": _elman("relu")}


# ---- sequences -----------------------------------------------------------------------------------------------------


def _stepped(kind, gates, state, weight, bias, project, sizes, reverse):
    """One layer in one direction, each step made of ops."""

    def step(parts, state):
        state = STEPS[kind](parts[0], state, weight, bias, project)
        return state[0], state

    found, last = (backwards if reverse else forwards)([(g,) for g in cut(gates, sizes)], state, step)
    return joined(found, sizes), last


def _direction(kind, x, state, own, biases, project, sizes, reverse):
    """(outputs, last states, each by itself) of one layer in one direction; states are (1, batch, features)."""
    if project is not None or not x.is_floating_point():
        start = tuple([s.squeeze(0) for s in state])
        out, last = _stepped(kind, _linear(x, own[0], biases[0]), start, own[1], biases[1], project, sizes, reverse)
        return out, *(s.unsqueeze(0) for s in last)
    if kind == "lstm":
        return fused._lstm_steps(x, *state, own[0], own[1], *biases, sizes, reverse)[:3]
    if kind == "gru":
        return fused._gru_steps(x, *state, own[0], own[1], *biases, sizes, reverse)[:2]
    return fused._elman_steps(x, *state, own[0], own[1], *biases, kind == "rnn_relu", sizes, reverse)


def run_layers(kind, x, state, params, has_biases, num_layers, dropout, train, bidirectional, sizes=None):
    """(outputs of the last layer, the last states of all layers, stacked).

    x: (steps, batch, features); with sizes, how many sequences go on at each step, (their sum, features). state: one
    or two tensors (layers times directions, batch, features). params: for each layer and direction weights of inputs
    and of states, their biases, and a projection, as far as there are any.
    """
    if num_layers < 1:
        raise RuntimeError(f"{kind}(): num_layers must be at least 1, but got {num_layers}: how many layers there are")
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    least = 4 if has_biases else 2
    if len(params) != each * num_layers * directions or each not in ((least, 5) if has_biases else (least, 3)):
        raise RuntimeError(
            f"{kind}(): {len(params)} weights do not go with {num_layers} layers, {directions} directions and "
            f"has_biases={has_biases}: expected {least} or, with projections, {least + 1} for each layer and direction"
        )
    if x.shape[0] == 0:
        raise RuntimeError(f"Expected sequence length to be larger than 0 in RNN: {kind}() got {list(x.shape)}")
    sizes, last, count = sizes or (), [], num_layers * directions
    whole = [_held(kind, s, count) for s in state]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            own = params[at * each : (at + 1) * each]
            biases, project = own[2:4] if has_biases else (None, None), own[least] if each > least else None
            start = [s if one else s.narrow(0, at, 1) for s, one in zip(state, whole)]
            out, *end = _direction(kind, x, start, own, biases, project, sizes, direction == 1)
            outputs.append(out)
            last.append(end)
        x = tg.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and train and layer < num_layers - 1:
            x = tg.dropout(x, dropout, True)
    if count == 1:
        return x, *last[0]
    return x, *(tg.cat(parts) for parts in zip(*last))


def _held(kind, state, count):
    """Whether there is one state and no other; those beyond `count` are left out by an LSTM alone, as in PyTorch."""
    held = state.shape[0]
    if held != count and (kind != "lstm" or held < count):
        raise (IndexError if kind == "lstm" else RuntimeError)(
            f"{kind}(): hx has {held} states of layers, but expected {count}: the number of layers times directions"
        )
    return held == 1


def _sequence(kind):
    def run(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        x = input.transpose(0, 1) if batch_first else input
        state = hx if kind == "lstm" else [hx]
        if len(state) != 1 + (kind == "lstm"):
            raise RuntimeError(f"lstm(): expected two hidden states, but got {len(state)}: the output and the cell")
        if x.dim() != 3:
            raise RuntimeError(f"{kind}(): input must have 3 dimensions, (steps, batch, features), but got {x.dim()}")
        out, *last = run_layers(kind, x, state, params, has_biases, num_layers, dropout, train, bidirectional)
        return out.transpose(0, 1) if batch_first else out, *last

    return run


def _cell(kind):
    def run(input, hx, w_ih, w_hh, b_ih, b_hh):
        state = STEPS[kind](_linear(input, w_ih, b_ih), tuple(hx) if kind == "lstm" else (hx,), w_hh, b_hh)
        return state if kind == "lstm" else state[0]

    return run


# ---- references and samples ------------------------------------------------------------------------------------------

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _np_step(kind, x, state, w, u, b, d):
    import numpy as np

    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    g, k = x @ w.T + (0 if b is None else b), state[0] @ u.T + (0 if d is None else d)
    if kind == "lstm":
        i, f, n, o = np.split(g + k, 4, -1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(n)
        return sigmoid(o) * np.tanh(c), c
    if kind == "gru":
        (r, z, n), (kr, kz, kn) = np.split(g, 3, -1), np.split(k, 3, -1)
        z = sigmoid(z + kz)
        return ((1 - z) * np.tanh(n + sigmoid(r + kr) * kn) + z * state[0],)
    return (np.tanh(g + k) if kind == "rnn_tanh" else np.maximum(g + k, 0),)


def _np_cell(kind):
    def run(x, hx, w, u, b=None, d=None):
        found = _np_step(kind, x, hx if kind == "lstm" else [hx], w, u, b, d)
        return found if kind == "lstm" else found[0]

    return run


def reference_of(kind):
    """The layers in NumPy, step by step."""

    def run(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        import numpy as np

        x = x.swapaxes(0, 1) if batch_first else x
        given, each, last = (hx if kind == "lstm" else [hx]), 4 if has_biases else 2, []
        for layer in range(num_layers):
            sides = []
            for way in range(1 + bidirectional):
                at = layer * (1 + bidirectional) + way
                w, u, b, d = (*params[at * each : (at + 1) * each], None, None)[:4]
                state, rows = [s[at] for s in given], []
                for row in x[::-1] if way else x:
                    state = _np_step(kind, row, state, w, u, b, d)
                    rows.append(state[0])
                sides.append(np.stack(rows[::-1] if way else rows))
                last.append(state)
            x = np.concatenate(sides, -1)
        return (x.swapaxes(0, 1) if batch_first else x, *(np.stack(part) for part in zip(*last)))

    return run


def weights_of(make, kind, features, hidden, biases=True):
    """Weights of inputs and of states, and their biases, of one layer and direction."""
    rows = _GATES[kind] * hidden
    return [make(rows, features), make(rows, hidden), *([make(rows), make(rows)] if biases else [])]


def _cell_samples(kind):
    def samples(make):
        for biases in (True, False):
            state = [make(2, 3), make(2, 3)] if kind == "lstm" else make(2, 3)
            yield Sample(make(2, 4), state, *weights_of(make, kind, 4, 3, biases))

    return samples


def _sequence_samples(kind):
    def state(make, n):
        return [make(n, 2, 3), make(n, 2, 3)] if kind == "lstm" else make(n, 2, 3)

    def samples(make):
        one = weights_of(make, kind, 2, 3)
        yield Sample(make(3, 2, 2), state(make, 1), one, True, 1, 0.0, True, False, False)
        two = [*weights_of(make, kind, 2, 3, False), *weights_of(make, kind, 2, 3, False)]
        yield Sample(make(2, 3, 2), state(make, 2), two, False, 1, 0.0, False, True, True)
        deep = [*weights_of(make, kind, 2, 3), *weights_of(make, kind, 3, 3)]
        yield Sample(make(2, 2, 2), state(make, 2), deep, True, 2, 0.0, False, False, False)

    return samples


SAID = {
    "lstm": "long short-term memory (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers, 2000)",
    "gru": "gated recurrent units (Cho, 2014)",
    "rnn_tanh": "Elman's recurrent units with tanh",
    "rnn_relu": "Elman's recurrent units with relu",
}
REST = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
_WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


def _too_few(kind, count, layers=1):
    state = zeros(1, 1, 1)
    settings = (True, layers, 0.0, False, False, False)
    return functions[kind](zeros(2, 1, 2), [state] * 2 if kind == "lstm" else state, [zeros(4, 2)] * count, *settings)


for _kind in STEPS:
    _two = _kind == "lstm"
    _state = "Tensor[] hx" if _two else "Tensor hx"
    _ends = "Tensor, Tensor" if _two else "Tensor"
    op(
        f"aten::{_kind}.input(Tensor input, {_state}, {REST}, bool batch_first) -> (Tensor, {_ends})",
        compose=_sequence(_kind),
        tags="draws",
        variants="function",
        types="float",
        samples=_sequence_samples(_kind),
        reference=reference_of(_kind),
        errors=[
            (lambda k=_kind: _too_few(k, 1), RuntimeError, "1 weights do not go with 1 layers"),
            (lambda k=_kind: _too_few(k, 7), RuntimeError, "7 weights do not go with 1 layers"),
            (lambda k=_kind: _too_few(k, 4, 0), RuntimeError, "num_layers must be at least 1, but got 0"),
            (lambda k=_kind: _too_few(k, 4, -1), RuntimeError, "num_layers must be at least 1, but got -1"),
            (
                lambda k=_kind: _too_few(k, 8, 2),
                IndexError if _two else RuntimeError,
                "hx has 1 states of layers, but expected 2",
            ),
        ],
        doc=f"Layers of {SAID[_kind]} over input (steps, batch, features), with batch_first (batch, steps, features); "
        "hx: first states (layers times directions, batch, features). Returns outputs of the last layer and the last "
        "states.",
    )
    op(
        f"aten::{_kind}_cell(Tensor input, {_state}, {_WEIGHTS}) -> " + (f"({_ends})" if _two else "Tensor"),
        compose=_cell(_kind),
        variants="function",
        types="float",
        samples=_cell_samples(_kind),
        reference=_np_cell(_kind),
        doc=f"One step of {SAID[_kind]} from input (batch, features) and the state before.",
    )
