"""Forward mode of the ops in recurrent_steps.py, step by step: the functions that stand as `jvp=` in their records.

Products with tangents of weights are made for all steps at once, as `extra`.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops.recurrent_rules import (
    after_steps,
    all_before,
    backwards_in,
    before_steps,
    cut,
    forwards_in,
    joined,
    zeros_unless,
)


def _driven(gates_tangent, gates, weight_tangent, bias_tangent, stored, first, sizes, reverse):
    """(tangents of what comes from the inputs; of what comes from weights and bias), for each step."""
    extra = 0 if weight_tangent is None else all_before(stored, first, sizes, reverse) @ weight_tangent.mT
    extra = extra if bias_tangent is None else extra + bias_tangent
    extra = extra if hasattr(extra, "shape") else tg.zeros_like(gates)
    return cut(zeros_unless(gates_tangent, gates), sizes), cut(extra, sizes)


def lstm(
    gates, gates_tangent, hidden, hidden_tangent, cell, cell_tangent, weight, weight_tangent, sizes, reverse, out,
    cells, acts,
):  # fmt: skip
    def step(parts, state):
        given, more, now, before, seen = parts
        take, forget, new, give = now.chunk(4, -1)
        p = (given + more + state[0] @ weight.mT).chunk(4, -1)
        moved = [
            p[0] * take * (1 - take),
            p[1] * forget * (1 - forget),
            p[2] * (1 - new * new),
            p[3] * give * (1 - give),
        ]
        c = moved[1] * before + forget * state[1] + moved[0] * new + take * moved[2]
        h = moved[3] * seen + give * (1 - seen * seen) * c
        return (h, c, tg.cat(moved, -1)), (h, c)

    driven = _driven(gates_tangent, acts, weight_tangent, None, out, hidden, sizes, reverse)
    steps = [*zip(*driven, cut(acts, sizes), before_steps(cells, cell, sizes, reverse), cut(cells.tanh(), sizes))]
    start = zeros_unless(hidden_tangent, hidden), zeros_unless(cell_tangent, cell)
    found, ends = forwards_in(steps, start, step, reverse)
    first, *rest = (joined(p, sizes) for p in zip(*found))
    return first, *ends, *rest


def gru(
    gates, gates_tangent, hidden, hidden_tangent, weight, weight_tangent, bias_tangent, sizes, reverse, out, acts
):  # fmt: skip
    def step(parts, state):
        given, more, now, before = parts
        reset, update, new, kept = now.chunk(4, -1)
        g, k = given.chunk(3, -1), (more + state[0] @ weight.mT).chunk(3, -1)
        of_reset, of_update = (g[0] + k[0]) * reset * (1 - reset), (g[1] + k[1]) * update * (1 - update)
        of_new = (g[2] + of_reset * kept + reset * k[2]) * (1 - new * new)
        h = (state[0] - of_new) * update + (before - new) * of_update + of_new
        return (h, tg.cat([of_reset, of_update, of_new, k[2]], -1)), (h,)

    driven = _driven(gates_tangent, gates, weight_tangent, bias_tangent, out, hidden, sizes, reverse)
    steps = [*zip(*driven, cut(acts, sizes), before_steps(out, hidden, sizes, reverse))]
    found, ends = forwards_in(steps, (zeros_unless(hidden_tangent, hidden),), step, reverse)
    first, last = (joined(p, sizes) for p in zip(*found))
    return first, *ends, last


def elman(gates, gates_tangent, hidden, hidden_tangent, weight, weight_tangent, relu, sizes, reverse, out):
    def step(parts, state):
        given, more, now = parts
        h = (given + more + state[0] @ weight.mT) * ((now > 0).to(now.dtype) if relu else 1 - now * now)
        return h, (h,)

    driven = _driven(gates_tangent, gates, weight_tangent, None, out, hidden, sizes, reverse)
    start = (zeros_unless(hidden_tangent, hidden),)
    found, ends = forwards_in([*zip(*driven, cut(out, sizes))], start, step, reverse)
    return joined(found, sizes), *ends


# ---- of the derivatives --------------------------------------------------------------------------------------------


def _through(slopes, weight, weight_tangent, sizes):
    """What gradients of gates and weights give the states, and its part from tangents of weights, for each step."""
    extra = zeros_unless(None, slopes @ weight) if weight_tangent is None else slopes @ weight_tangent
    return cut(slopes @ weight, sizes), cut(extra, sizes)


def gru_back(
    out_grad, out_grad_tangent, last_grad, last_grad_tangent, acts_grad, acts_grad_tangent, hidden, hidden_tangent,
    weight, weight_tangent, out, out_tangent, acts, acts_tangent, sizes, reverse, kept_grad,
):  # fmt: skip
    """A name with _ at its end is a tangent."""

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
        end_ = h_ * update + h * update_ + kept_by @ weight + extra
        return (tg.cat([reset_by, update_by, slope_], -1), kept_by), (h * update + through, end_)

    pairs = (acts, acts_tangent), (out_grad, out_grad_tangent), (acts_grad, acts_grad_tangent)
    like = acts, out, acts
    whole = [[zeros_unless(t, x) for t in pair] for pair, x in zip(pairs, like)]
    now, given, more = ([cut(t, sizes) for t in pair] for pair in whole)
    before = before_steps(out, hidden, sizes, reverse)
    moved = zeros_unless(out_tangent, out), zeros_unless(hidden_tangent, hidden)
    before_ = before_steps(*moved, sizes, reverse)
    steps = [*zip(*now, before, before_, *given, *more, *_through(kept_grad, weight, weight_tangent, sizes))]
    start = zeros_unless(last_grad, hidden), zeros_unless(last_grad_tangent, hidden)
    found, ends = backwards_in(steps, start, step, reverse)
    return *(joined(p, sizes) for p in zip(*found)), ends[1]


def elman_back(
    out_grad, out_grad_tangent, last_grad, last_grad_tangent, hidden, weight, weight_tangent, out, out_tangent, relu,
    sizes, reverse, gates_grad,
):  # fmt: skip
    def step(parts, state):
        now, moved, h, given, extra = parts
        slopes = (state[0] + given) * ((now > 0).to(now.dtype) if relu else 1 - now * now)
        slopes = slopes if relu else slopes - 2 * h * now * moved
        return slopes, (slopes @ weight + extra,)

    through, extra = _through(gates_grad, weight, weight_tangent, sizes)
    behind = after_steps(joined(through, sizes), zeros_unless(last_grad, hidden), sizes, reverse)
    h = [a + b for a, b in zip(behind, cut(zeros_unless(out_grad, out), sizes))]
    moved, given = (cut(zeros_unless(t, out), sizes) for t in (out_tangent, out_grad_tangent))
    start = (zeros_unless(last_grad_tangent, hidden),)
    found, ends = backwards_in([*zip(cut(out, sizes), moved, h, given, extra)], start, step, reverse)
    return joined(found, sizes), *ends
