"""Forward mode of the ops in recurrent_steps.py, step by step: the functions that stand as `jvp=` in their records.

Products with inputs and with tangents of weights are made for all steps at once.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops.recurrent_rules import (
    added,
    after_steps,
    all_before,
    alone,
    backwards_in,
    before_steps,
    by_weight,
    cut,
    forwards_in,
    joined,
    zeros_unless,
)


def _times(a, b):
    return None if a is None or b is None else a @ b.mT


def _driven(input, input_tangent, w_ih, w_ih_tangent, b_ih_tangent, w_hh_tangent, b_hh_tangent, before):
    """Tangents of what comes from the inputs, and from weights and bias of the state. before: states of all steps."""
    zeros = input.new_zeros((*input.shape[:-1], w_ih.shape[0]))
    given = added(zeros, _times(input_tangent, w_ih), _times(input, w_ih_tangent), b_ih_tangent)
    return given, added(zeros, _times(before, w_hh_tangent), b_hh_tangent)


def lstm(
    input, input_tangent, hidden, hidden_tangent, cell, cell_tangent, w_ih, w_ih_tangent, w_hh, w_hh_tangent,
    b_ih_tangent, b_hh_tangent, sizes, reverse, out, cells, acts,
):  # fmt: skip
    hidden, hidden_tangent, cell, cell_tangent = alone(hidden, hidden_tangent, cell, cell_tangent)

    def step(parts, state):
        given, now, before, seen = parts
        take, forget, new, give = now.chunk(4, -1)
        p = (given + state[0] @ w_hh.mT).chunk(4, -1)
        moved = [
            p[0] * take * (1 - take),
            p[1] * forget * (1 - forget),
            p[2] * (1 - new * new),
            p[3] * give * (1 - give),
        ]
        c = moved[1] * before + forget * state[1] + moved[0] * new + take * moved[2]
        h = moved[3] * seen + give * (1 - seen * seen) * c
        return (h, c, tg.cat(moved, -1)), (h, c)

    of_input, states = (input, input_tangent, w_ih, w_ih_tangent, b_ih_tangent), all_before(out, hidden, sizes, reverse)
    given = cut(sum(_driven(*of_input, w_hh_tangent, b_hh_tangent, states)), sizes)
    steps = [*zip(given, cut(acts, sizes), before_steps(cells, cell, sizes, reverse), cut(cells.tanh(), sizes))]
    start = zeros_unless(hidden_tangent, hidden), zeros_unless(cell_tangent, cell)
    found, ends = forwards_in(steps, start, step, reverse)
    first, *rest = (joined(p, sizes) for p in zip(*found))
    return first, *(e.unsqueeze(0) for e in ends), *rest


def gru(
    input, input_tangent, hidden, hidden_tangent, w_ih, w_ih_tangent, w_hh, w_hh_tangent, b_ih_tangent, b_hh_tangent,
    sizes, reverse, out, acts,
):  # fmt: skip
    hidden, hidden_tangent = alone(hidden, hidden_tangent)

    def step(parts, state):
        given, more, now, before = parts
        reset, update, new, kept = now.chunk(4, -1)
        g, k = given.chunk(3, -1), (more + state[0] @ w_hh.mT).chunk(3, -1)
        of_reset, of_update = (g[0] + k[0]) * reset * (1 - reset), (g[1] + k[1]) * update * (1 - update)
        of_new = (g[2] + of_reset * kept + reset * k[2]) * (1 - new * new)
        h = (state[0] - of_new) * update + (before - new) * of_update + of_new
        return (h, tg.cat([of_reset, of_update, of_new, k[2]], -1)), (h,)

    of_input, states = (input, input_tangent, w_ih, w_ih_tangent, b_ih_tangent), all_before(out, hidden, sizes, reverse)
    driven = [cut(t, sizes) for t in _driven(*of_input, w_hh_tangent, b_hh_tangent, states)]
    steps = [*zip(*driven, cut(acts, sizes), before_steps(out, hidden, sizes, reverse))]
    found, (end,) = forwards_in(steps, (zeros_unless(hidden_tangent, hidden),), step, reverse)
    first, last = (joined(p, sizes) for p in zip(*found))
    return first, end.unsqueeze(0), last


def elman(
    input, input_tangent, hidden, hidden_tangent, w_ih, w_ih_tangent, w_hh, w_hh_tangent, b_ih_tangent, b_hh_tangent,
    relu, sizes, reverse, out,
):  # fmt: skip
    hidden, hidden_tangent = alone(hidden, hidden_tangent)

    def step(parts, state):
        given, now = parts
        h = (given + state[0] @ w_hh.mT) * ((now > 0).to(now.dtype) if relu else 1 - now * now)
        return h, (h,)

    of_input, states = (input, input_tangent, w_ih, w_ih_tangent, b_ih_tangent), all_before(out, hidden, sizes, reverse)
    given = cut(sum(_driven(*of_input, w_hh_tangent, b_hh_tangent, states)), sizes)
    start = (zeros_unless(hidden_tangent, hidden),)
    found, (end,) = forwards_in([*zip(given, cut(out, sizes))], start, step, reverse)
    return joined(found, sizes), end.unsqueeze(0)


# ---- of the derivatives --------------------------------------------------------------------------------------------


def _through(slopes, weight, weight_tangent, sizes):
    """What gradients of gates and weights give the states, and its part from tangents of weights, for each step."""
    extra = zeros_unless(None, slopes @ weight) if weight_tangent is None else slopes @ weight_tangent
    return cut(slopes @ weight, sizes), cut(extra, sizes)


def _product(slopes, slopes_, other, other_):
    return added(slopes_ @ other, None if other_ is None else slopes @ other_)


def _gathered(slopes, slopes_, other, other_):
    return added(by_weight(slopes_, other), None if other_ is None else by_weight(slopes, other_))


def _rows(t):
    return t.flatten(0, -2).sum(0)


def _products(wanted, pairs, input, w_ih, before):
    """Tangents of the products. pairs: gradients with their tangents, of gates, and of what weights of states give."""
    own, kept = pairs[0], pairs[-1]
    found = [_product(*own, *w_ih), _gathered(*own, *input), _gathered(*kept, *before), *(_rows(p[1]) for p in pairs)]
    return [f if asked else None for asked, f in zip(wanted, found)]


def gru_back(
    out_grad, out_grad_tangent, last_grad, last_grad_tangent, acts_grad, acts_grad_tangent, input, input_tangent,
    hidden, hidden_tangent, w_ih, w_ih_tangent, w_hh, w_hh_tangent, out, out_tangent, acts, acts_tangent, sizes,
    reverse, output_mask, gates_grad, kept_grad,
):  # fmt: skip
    """A name with _ at its end is a tangent."""
    hidden, hidden_tangent, last_grad, last_grad_tangent = alone(hidden, hidden_tangent, last_grad, last_grad_tangent)

    def step(parts, state):
        now, now_, before, before_, given, given_, more, more_, through, extra = parts
        (reset, update, new, kept), (reset_, update_, new_, kept_) = now.chunk(4, -1), now_.chunk(4, -1)
        more, more_ = more.chunk(4, -1), more_.chunk(4, -1)
        h, h_, rest = state[0] + given, state[1] + given_, 1 - new * new
        of_new = h * (1 - update) + more[2]
        slope = of_new * rest
        slope_ = (h_ * (1 - update) - h * update_ + more_[2]) * rest - 2 * of_new * new * new_
        of_reset, of_update = slope * kept + more[0], h * (before - new) + more[1]
        reset_by = (slope_ * kept + slope * kept_ + more_[0]) * reset * (1 - reset) + of_reset * (
            1 - 2 * reset
        ) * reset_
        update_by = (h_ * (before - new) + h * (before_ - new_) + more_[1]) * update * (1 - update)
        update_by = update_by + of_update * (1 - 2 * update) * update_
        kept_by = tg.cat([reset_by, update_by, slope_ * reset + slope * reset_ + more_[3]], -1)
        end_ = h_ * update + h * update_ + kept_by @ w_hh + extra
        return (tg.cat([reset_by, update_by, slope_], -1), kept_by), (h * update + through, end_)

    pairs = (acts, acts_tangent), (out_grad, out_grad_tangent), (acts_grad, acts_grad_tangent)
    like = acts, out, acts
    whole = [[zeros_unless(t, x) for t in pair] for pair, x in zip(pairs, like)]
    now, given, more = ([cut(t, sizes) for t in pair] for pair in whole)
    moved = zeros_unless(out_tangent, out), zeros_unless(hidden_tangent, hidden)
    before = [all_before(*s, sizes, reverse) for s in ((out, hidden), moved)]
    steps = [
        *zip(*now, *(cut(t, sizes) for t in before), *given, *more, *_through(kept_grad, w_hh, w_hh_tangent, sizes))
    ]
    start = zeros_unless(last_grad, hidden), zeros_unless(last_grad_tangent, hidden)
    found, ends = backwards_in(steps, start, step, reverse)
    pairs = [*zip((gates_grad, kept_grad), [joined(p, sizes) for p in zip(*found)])]
    rest = _products(output_mask, pairs, (input, input_tangent), (w_ih, w_ih_tangent), before)
    return *(p[1] for p in pairs), ends[1].unsqueeze(0), *rest


def elman_back(
    out_grad, out_grad_tangent, last_grad, last_grad_tangent, input, input_tangent, hidden, hidden_tangent, w_ih,
    w_ih_tangent, w_hh, w_hh_tangent, out, out_tangent, relu, sizes, reverse, output_mask, gates_grad,
):  # fmt: skip
    hidden, hidden_tangent, last_grad, last_grad_tangent = alone(hidden, hidden_tangent, last_grad, last_grad_tangent)

    def step(parts, state):
        now, moved, h, given, extra = parts
        slopes = (state[0] + given) * ((now > 0).to(now.dtype) if relu else 1 - now * now)
        slopes = slopes if relu else slopes - 2 * h * now * moved
        return slopes, (slopes @ w_hh + extra,)

    through, extra = _through(gates_grad, w_hh, w_hh_tangent, sizes)
    behind = after_steps(joined(through, sizes), zeros_unless(last_grad, hidden), sizes, reverse)
    h = [a + b for a, b in zip(behind, cut(zeros_unless(out_grad, out), sizes))]
    moved, given = zeros_unless(out_tangent, out), zeros_unless(out_grad_tangent, out)
    steps = [*zip(cut(out, sizes), cut(moved, sizes), h, cut(given, sizes), extra)]
    found, (end,) = backwards_in(steps, (zeros_unless(last_grad_tangent, hidden),), step, reverse)
    slopes, first = joined(found, sizes), zeros_unless(hidden_tangent, hidden)
    before = [all_before(*s, sizes, reverse) for s in ((out, hidden), (moved, first))]
    rest = _products(output_mask, [(gates_grad, slopes)], (input, input_tangent), (w_ih, w_ih_tangent), before)
    return slopes, end.unsqueeze(0), *rest
