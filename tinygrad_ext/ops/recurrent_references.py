"""Recurrent units over all steps in NumPy, step by step: what the tests compare recurrent_steps.py with."""


def _numpy():
    import numpy

    return numpy


def _sigmoid(x):
    return 1 / (1 + _numpy().exp(-x))


def _places(total, batch, sizes, reverse):
    """(first row, row behind the last, first row of the step before or None, its rows), in the order of forward."""
    counts, at, found = list(sizes) or [batch] * (total // batch), 0, []
    for count in counts:
        found.append((at, at + count))
        at += count
    found = found[::-1] if reverse else found
    return [(*place, *(found[k - 1] if k else (0, 0))) for k, place in enumerate(found)]


def _flat(x):
    return x.reshape(-1, x.shape[-1])


def _like(x, width):
    return _numpy().zeros((*x.shape[:-1], width), x.dtype)


def _earlier(stored, first, place):
    """The states before a step: stored ones of the step before, first ones of sequences that begin."""
    lo, hi, before, behind = place
    state = first[: hi - lo].copy()
    state[: behind - before] = _flat(stored)[before : min(behind, before + hi - lo)]
    return state


def _given(grad, like):
    return _numpy().zeros_like(like) if grad is None else grad


def _from_inputs(input, w_ih, *biases):
    return sum([b for b in biases if b is not None], input @ w_ih.T)


def _products(mask, input, w_ih, slopes, kept, out, hidden, sizes, reverse):
    """Gradients by input, both weights, and biases of both where kept is something else; None for those not wanted."""
    before = _numpy().zeros_like(_flat(out))
    for place in _places(len(before), hidden.shape[1], sizes, reverse):
        before[place[0] : place[1]] = _earlier(out, hidden[0], place)
    rows, own = _flat(slopes), _flat(kept)
    found = slopes @ w_ih, rows.T @ _flat(input), own.T @ before, rows.sum(0), own.sum(0)
    return [f if wanted else None for wanted, f in zip(mask, found)]


def lstm(input, hidden, cell, w_ih, weight, b_ih, b_hh, sizes, reverse):
    gates, (hidden,), (cell,) = _from_inputs(input, w_ih, b_ih, b_hh), hidden, cell
    h, c, n = hidden.copy(), cell.copy(), hidden.shape[1]
    out, cells, acts = _like(gates, n), _like(gates, n), _like(gates, 4 * n)
    for lo, hi, *_ in _places(len(_flat(gates)), len(hidden), sizes, reverse):
        k = hi - lo
        take, forget, new, give = _numpy().split(_flat(gates)[lo:hi] + h[:k] @ weight.T, 4, 1)
        take, forget, new, give = _sigmoid(take), _sigmoid(forget), _numpy().tanh(new), _sigmoid(give)
        c[:k] = forget * c[:k] + take * new
        h[:k] = give * _numpy().tanh(c[:k])
        _flat(out)[lo:hi], _flat(cells)[lo:hi] = h[:k], c[:k]
        _flat(acts)[lo:hi] = _numpy().concatenate([take, forget, new, give], 1)
    return out, h[None], c[None], cells, acts


def lstm_back(
    out_grad, last, last_cell, cells_grad, acts_grad, input, hidden, cell, w_ih, weight, out, cells, acts, sizes,
    reverse, mask,
):  # fmt: skip
    last, last_cell, (cell,) = _given(last, cell)[0], _given(last_cell, cell)[0], cell
    state, of_cell = _given(last, cell).copy(), _given(last_cell, cell).copy()
    out_grad, cells_grad = _flat(_given(out_grad, cells)), _flat(_given(cells_grad, cells))
    more, result = _flat(_given(acts_grad, acts)), _numpy().zeros_like(acts)
    for place in reversed(_places(len(_flat(acts)), len(cell), sizes, reverse)):
        (lo, hi), k = place[:2], place[1] - place[0]
        take, forget, new, give = _numpy().split(_flat(acts)[lo:hi], 4, 1)
        of_take, of_forget, of_new, of_give = _numpy().split(more[lo:hi], 4, 1)
        h, seen = state[:k] + out_grad[lo:hi], _numpy().tanh(_flat(cells)[lo:hi])
        c = of_cell[:k] + cells_grad[lo:hi] + h * give * (1 - seen * seen)
        parts = (
            (c * new + of_take) * take * (1 - take),
            (c * _earlier(cells, cell, place) + of_forget) * forget * (1 - forget),
            (c * take + of_new) * (1 - new * new),
            (h * seen + of_give) * give * (1 - give),
        )
        _flat(result)[lo:hi] = _numpy().concatenate(parts, 1)
        of_cell[:k], state[:k] = c * forget, _flat(result)[lo:hi] @ weight
    rest = _products(mask, input, w_ih, result, result, out, hidden, sizes, reverse)
    return result, state[None], of_cell[None], *rest


def gru(input, hidden, w_ih, weight, b_ih, bias, sizes, reverse):
    gates, (hidden,) = _from_inputs(input, w_ih, b_ih), hidden
    h, n = hidden.copy(), hidden.shape[1]
    out, acts = _like(gates, n), _like(gates, 4 * n)
    for lo, hi, *_ in _places(len(_flat(gates)), len(hidden), sizes, reverse):
        k = hi - lo
        given = _numpy().split(_flat(gates)[lo:hi], 3, 1)
        own = _numpy().split(h[:k] @ weight.T + (0 if bias is None else bias), 3, 1)
        reset, update = _sigmoid(given[0] + own[0]), _sigmoid(given[1] + own[1])
        new = _numpy().tanh(given[2] + reset * own[2])
        h[:k] = (h[:k] - new) * update + new
        _flat(out)[lo:hi], _flat(acts)[lo:hi] = h[:k], _numpy().concatenate([reset, update, new, own[2]], 1)
    return out, h[None], acts


def gru_back(out_grad, last, acts_grad, input, first, w_ih, weight, out, acts, sizes, reverse, mask):
    last, hidden = _given(last, first)[0], first[0]
    state, n = _given(last, hidden).copy(), hidden.shape[1]
    out_grad, more = _flat(_given(out_grad, out)), _flat(_given(acts_grad, acts))
    result, kept = _like(acts, 3 * n), _like(acts, 3 * n)
    for place in reversed(_places(len(_flat(acts)), len(hidden), sizes, reverse)):
        (lo, hi), k = place[:2], place[1] - place[0]
        reset, update, new, own = _numpy().split(_flat(acts)[lo:hi], 4, 1)
        of_reset, of_update, of_new, of_own = _numpy().split(more[lo:hi], 4, 1)
        h = state[:k] + out_grad[lo:hi]
        slope = (h * (1 - update) + of_new) * (1 - new * new)
        both = [
            (slope * own + of_reset) * reset * (1 - reset),
            (h * (_earlier(out, hidden, place) - new) + of_update) * update * (1 - update),
        ]
        _flat(result)[lo:hi] = _numpy().concatenate([*both, slope], 1)
        _flat(kept)[lo:hi] = _numpy().concatenate([*both, slope * reset + of_own], 1)
        state[:k] = h * update + _flat(kept)[lo:hi] @ weight
    return result, kept, state[None], *_products(mask, input, w_ih, result, kept, out, first, sizes, reverse)


def elman(input, hidden, w_ih, weight, b_ih, b_hh, relu, sizes, reverse):
    gates, (hidden,) = _from_inputs(input, w_ih, b_ih, b_hh), hidden
    h, out = hidden.copy(), _numpy().zeros_like(gates)
    for lo, hi, *_ in _places(len(_flat(gates)), len(hidden), sizes, reverse):
        x = _flat(gates)[lo:hi] + h[: hi - lo] @ weight.T
        h[: hi - lo] = _flat(out)[lo:hi] = _numpy().maximum(x, 0) if relu else _numpy().tanh(x)
    return out, h[None]


def elman_back(out_grad, last, input, first, w_ih, weight, out, relu, sizes, reverse, mask):
    hidden = first[0]
    state, out_grad, result = _given(last, first)[0].copy(), _flat(_given(out_grad, out)), _numpy().zeros_like(out)
    for lo, hi, *_ in reversed(_places(len(_flat(out)), len(hidden), sizes, reverse)):
        y, h = _flat(out)[lo:hi], state[: hi - lo] + out_grad[lo:hi]
        _flat(result)[lo:hi] = h * (y > 0) if relu else h * (1 - y * y)
        state[: hi - lo] = _flat(result)[lo:hi] @ weight
    return result, state[None], *_products(mask, input, w_ih, result, result, out, first, sizes, reverse)
