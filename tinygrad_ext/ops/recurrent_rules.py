"""Steps of recurrent layers in ops: how they are taken one after the other, and the rules of recurrent_steps.py.

The derivatives of the derivatives, `twice`, are written in ops, step by step: so are all further ones. States of the
ops are (1, batch, features), which `alone` takes the one away from.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops.batching import told
from tinygrad_ext.ops.fused import fused

# ---- steps of whole and of packed sequences ------------------------------------------------------------------------


def cut(t, sizes):
    """What belongs to each step."""
    return t.split(list(sizes)) if sizes else t.unbind(0)


def joined(parts, sizes):
    return tg.cat(parts) if sizes else tg.stack(parts)


def forwards(steps, state, step):
    """(what each step gives first, the last state of each sequence).

    steps: tuples of tensors (batch, ...), or of None; sequences that have ended leave from the end of the batch.
    step(parts, state) gives what it found and the new state.
    """
    found, ended = [], []
    for parts in steps:
        left, count = parts[0].shape[0], state[0].shape[0]
        if left < count:
            ended.append([s[left:] for s in state])
            state = tuple([s[:left] for s in state])
        result, state = step(parts, state)
        found.append(result)
    last = [*reversed(ended)]
    return found, tuple([tg.cat([s, *(e[i] for e in last)]) if last else s for i, s in enumerate(state)])


def backwards(steps, state, step):
    """The same from the last step on; sequences join where they end."""
    found, start = [], state
    state = tuple([s[: steps[-1][0].shape[0]] for s in start])
    for parts in reversed(steps):
        left, count = parts[0].shape[0], state[0].shape[0]
        if left > count:
            state = tuple([tg.cat([s, first[count:left]]) for s, first in zip(state, start)])
        result, state = step(parts, state)
        found.append(result)
    return found[::-1], state


def before_steps(stored, first, sizes, reverse):
    """The states in front of each step, as a list."""
    rows = cut(stored, sizes)
    if not sizes:
        return [*rows[1:], first] if reverse else [first, *rows[:-1]]
    if not reverse:
        return [before[:n] for before, n in zip([first, *rows[:-1]], sizes)]
    more = [first[after:n] for n, after in zip(sizes, (*sizes[1:], 0))]
    return [tg.cat([*rows[k + 1 : k + 2], m]) for k, m in enumerate(more)]


def all_before(stored, first, sizes, reverse):
    """The same in one tensor."""
    if sizes:
        return tg.cat(before_steps(stored, first, sizes, reverse))
    n, first = stored.shape[0] - 1, first.unsqueeze(0)
    return tg.cat([stored.narrow(0, 1, n), first] if reverse else [first, stored.narrow(0, 0, n)])


def by_weight(slopes, before):
    """The gradient of weights (features, n) of what came before, over all steps."""
    return slopes.flatten(0, -2).t() @ before.flatten(0, -2)


def after_steps(stored, last, sizes, reverse):
    """What stands behind each step, as a list."""
    return before_steps(stored, last, sizes, not reverse)


def _of_first(parts, sizes, reverse):
    """Of gradients by the states in front of each step, as a list, that by the first state."""
    if not reverse:
        return parts[0]
    if not sizes:
        return parts[-1]
    return tg.cat([parts[k][after:] for k, after in reversed([*enumerate((*sizes[1:], 0))])])


def _of_stored(parts, like, sizes, reverse):
    """And that by the states of all steps."""
    return joined(after_steps(joined(parts, sizes), tg.zeros_like(like), sizes, reverse), sizes)


def zeros_unless(given, like):
    return tg.zeros_like(like) if given is None else given


def alone(*states):
    """States without their first dimension, of None and of each."""
    return [None if s is None else s.squeeze(0) for s in states]


def added(total, *parts):
    """The sum of what is not None."""
    for part in parts:
        total = total if part is None else total + part
    return total


def _of_products(arrived, slopes, kept, input, before, w_ih):
    """Derivatives of the products of a backward op. arrived: gradients of those by input, both weights and biases.

    Returns what comes to slopes and to kept, lists of parts, and the gradients by input, the states before, and w_ih.
    """
    of_input, of_w_ih, of_w_hh, of_bias, *of_more = arrived
    x, w, u = (g is not None for g in (of_input, of_w_ih, of_w_hh))
    by_slopes = [of_input @ w_ih.mT if x else None, input @ of_w_ih.mT if w else None, of_bias]
    by_kept = [before @ of_w_hh.mT if u else None, *of_more]
    by_input = slopes @ of_w_ih if w else None
    by_w_ih = by_weight(slopes, of_input) if x else None
    return by_slopes, by_kept, by_input, kept @ of_w_hh if u else None, by_w_ih


def _of_before(part, hidden, sizes, reverse):
    """A gradient by the states in front of all steps, as those by what is stored and by the first state, or None."""
    if part is None:
        return None, None
    parts = [*cut(part, sizes)]
    return _of_stored(parts, hidden, sizes, reverse), _of_first(parts, sizes, reverse).unsqueeze(0)


def backwards_in(steps, state, step, reverse):
    return (forwards if reverse else backwards)(steps, state, step)


def forwards_in(steps, state, step, reverse):
    return (backwards if reverse else forwards)(steps, state, step)


# ---- long short-term memory ----------------------------------------------------------------------------------------


def lstm_grad(arrived, input, hidden, cell, w_ih, w_hh, sizes, reverse, out, cells, acts, needs):
    wanted = needs[0], needs[3], needs[4], needs[5] or needs[6]
    kept = input, hidden, cell, w_ih, w_hh, out, cells, acts
    _, h, c, x, w, u, bias = fused._lstm_steps_backward(*arrived, *kept, sizes, reverse, wanted)
    return x, h, c, w, u, bias, bias


def lstm_twice(
    arrived, out_grad, last_grad, last_cell_grad, cells_grad, acts_grad, input, hidden, cell, w_ih, w_hh, out, cells,
    acts, sizes, reverse, gates_grad,
):  # fmt: skip
    """h and c: gradients by output and cell of a step, which were on the way to the gates."""
    hidden, cell, last_grad, last_cell_grad, *starts = alone(hidden, cell, last_grad, last_cell_grad, *arrived[1:3])
    at = all_before(out, hidden, sizes, reverse)
    by_gates, by_kept, of_input, at, of_w_ih = _of_products(arrived[3:], gates_grad, gates_grad, input, at, w_ih)

    def again(parts, state):
        gates, now, given, behind, of_cell = parts
        _, forget, _, give = gates.chunk(4, -1)
        h, seen = behind + given, now.tanh()
        c = state[0] + of_cell + h * give * (1 - seen * seen)
        return (h, c), (c * forget,)

    def step(parts, state):
        gates, now, before, more, (h, c), by = parts
        take, forget, new, give = gates.chunk(4, -1)
        seen, a = now.tanh(), state[1]
        rest = 1 - seen * seen
        p = (by + state[0] @ w_hh.mT).chunk(4, -1)
        got = [k + m for k, m in zip((c * new, c * before, c * take, h * seen), more.chunk(4, -1))]
        s = [p[k] * (1 - new * new if k == 2 else g * (1 - g)) for k, g in enumerate((take, forget, new, give))]
        of_c = a * forget + s[0] * new + s[1] * before + s[2] * take
        of_h = s[3] * seen + of_c * give * rest
        of_acts = [
            p[0] * got[0] * (1 - 2 * take) + s[2] * c,
            p[1] * got[1] * (1 - 2 * forget) + a * c,
            s[0] * c - 2 * p[2] * got[2] * new,
            p[3] * got[3] * (1 - 2 * give) + of_c * h * rest,
        ]
        of_now = (s[3] - 2 * of_c * give * seen) * h * rest
        return (of_h, of_c, tg.cat(s, -1), tg.cat(of_acts, -1), of_now, s[1] * c, state[0]), (of_h, of_c)

    first, last = zeros_unless(last_grad, cell), zeros_unless(last_cell_grad, cell)
    gates, now = cut(acts, sizes), cut(cells, sizes)
    given, of_cell, more, by = (
        cut(g, sizes)
        for g in (
            zeros_unless(out_grad, cells),
            zeros_unless(cells_grad, cells),
            zeros_unless(acts_grad, acts),
            added(zeros_unless(arrived[0], acts), *by_gates, *by_kept),
        )
    )
    behind = after_steps(gates_grad @ w_hh, first, sizes, reverse)
    found, _ = backwards_in([*zip(gates, now, given, behind, of_cell)], (last,), again, reverse)
    steps = [*zip(gates, now, before_steps(cells, cell, sizes, reverse), more, found, by)]
    found, ends = forwards_in(steps, tuple([zeros_unless(s, cell) for s in starts]), step, reverse)
    *parts, of_before, was = zip(*found)
    of_out, of_cells, of_more, of_acts, of_now = (joined(p, sizes) for p in parts)
    of_now = of_now + _of_stored(of_before, cell, sizes, reverse)
    of_stored, of_hidden = _of_before(at, hidden, sizes, reverse)
    of_w_hh, of_c = by_weight(gates_grad, joined(was, sizes)), _of_first(of_before, sizes, reverse).unsqueeze(0)
    ends = [e.unsqueeze(0) for e in ends]
    return of_out, *ends, of_cells, of_more, of_input, of_hidden, of_c, of_w_ih, of_w_hh, of_stored, of_now, of_acts


# ---- gated units ---------------------------------------------------------------------------------------------------


def gru_grad(arrived, input, hidden, w_ih, w_hh, sizes, reverse, out, acts, needs):
    wanted = needs[0], *needs[2:]
    found = fused._gru_steps_backward(*arrived, input, hidden, w_ih, w_hh, out, acts, sizes, reverse, wanted)
    return found[3], found[2], *found[4:]


def gru_twice(
    arrived, out_grad, last_grad, acts_grad, input, hidden, w_ih, w_hh, out, acts, sizes, reverse, gates_grad,
    kept_grad,
):  # fmt: skip
    """h: gradients by the output of a step."""
    hidden, last_grad, start = alone(hidden, last_grad, arrived[2])
    at = all_before(out, hidden, sizes, reverse)
    by_gates, by_kept, of_input, at, of_w_ih = _of_products(arrived[3:], gates_grad, kept_grad, input, at, w_ih)

    def again(parts, state):
        gates, given, through = parts
        h = state[0] + given
        return h, (h * gates.chunk(4, -1)[1] + through,)

    def step(parts, state):
        gates, before, more, h, by, by_kept = parts
        reset, update, new, kept = gates.chunk(4, -1)
        more, a = more.chunk(4, -1), state[0]
        rest = 1 - new * new
        of_new = h * (1 - update) + more[2]
        slope = of_new * rest
        of_reset, of_update = slope * kept + more[0], h * (before - new) + more[1]
        by, p = by.chunk(3, -1), (by_kept + a @ w_hh.mT).chunk(3, -1)
        q_reset, q_update = by[0] + p[0], by[1] + p[1]
        s_reset, s_update = q_reset * reset * (1 - reset), q_update * update * (1 - update)
        q = by[2] + p[2] * reset + s_reset * kept
        s_new = q * rest
        of_h = s_new * (1 - update) + s_update * (before - new) + a * update
        of_acts = [
            q_reset * of_reset * (1 - 2 * reset) + p[2] * slope,
            q_update * of_update * (1 - 2 * update) + (a - s_new) * h,
            -2 * q * of_new * new - s_update * h,
            s_reset * slope,
        ]
        return (of_h, tg.cat([s_reset, s_update, s_new, p[2]], -1), tg.cat(of_acts, -1), s_update * h, a), (of_h,)

    last = zeros_unless(last_grad, hidden)
    gates, through = cut(acts, sizes), cut(kept_grad @ w_hh, sizes)
    given, more, by, by_kept = (
        cut(t, sizes)
        for t in (
            zeros_unless(out_grad, out),
            zeros_unless(acts_grad, acts),
            added(zeros_unless(arrived[0], gates_grad), *by_gates),
            added(zeros_unless(arrived[1], kept_grad), *by_kept),
        )
    )
    found, _ = backwards_in([*zip(gates, given, through)], (last,), again, reverse)
    steps = [*zip(gates, before_steps(out, hidden, sizes, reverse), more, found, by, by_kept)]
    found, ends = forwards_in(steps, (zeros_unless(start, hidden),), step, reverse)
    *parts, of_before, was = zip(*found)
    of_out, of_more, of_acts = (joined(p, sizes) for p in parts)
    of_stored, of_hidden = _of_before(added(joined(of_before, sizes), at), hidden, sizes, reverse)
    of_w_hh = by_weight(kept_grad, joined(was, sizes))
    return of_out, ends[0].unsqueeze(0), of_more, of_input, of_hidden, of_w_ih, of_w_hh, of_stored, of_acts


# ---- Elman's units -------------------------------------------------------------------------------------------------


def elman_grad(arrived, input, hidden, w_ih, w_hh, relu, sizes, reverse, out, needs):
    wanted = needs[0], needs[2], needs[3], needs[4] or needs[5]
    found = fused._elman_steps_backward(*arrived, input, hidden, w_ih, w_hh, out, relu, sizes, reverse, wanted)
    _, h, x, w, u, bias = found
    return x, h, w, u, bias, bias


def elman_twice(
    arrived, out_grad, last_grad, input, hidden, w_ih, w_hh, out, relu, sizes, reverse, gates_grad
):  # fmt: skip
    hidden, last_grad, start = alone(hidden, last_grad, arrived[1])
    at = all_before(out, hidden, sizes, reverse)
    by_gates, by_kept, of_input, at, of_w_ih = _of_products(arrived[2:], gates_grad, gates_grad, input, at, w_ih)

    def step(parts, state):
        h, now, by = parts
        p = by + state[0] @ w_hh.mT
        of_h = p * ((now > 0).to(now.dtype) if relu else 1 - now * now)
        return (of_h, tg.zeros_like(p) if relu else -2 * p * h * now, state[0]), (of_h,)

    behind = after_steps(gates_grad @ w_hh, zeros_unless(last_grad, hidden), sizes, reverse)
    h = [a + b for a, b in zip(behind, cut(zeros_unless(out_grad, out), sizes))]
    by = cut(added(zeros_unless(arrived[0], out), *by_gates, *by_kept), sizes)
    found, ends = forwards_in([*zip(h, cut(out, sizes), by)], (zeros_unless(start, hidden),), step, reverse)
    of_out, of_now, was = (joined(p, sizes) for p in zip(*found))
    of_stored, of_hidden = _of_before(at, hidden, sizes, reverse)
    of_w_hh = by_weight(gates_grad, was)
    return of_out, ends[0].unsqueeze(0), of_input, of_hidden, of_w_ih, of_w_hh, added(of_now, of_stored)


# ---- batches -------------------------------------------------------------------------------------------------------


def batched(name, shared):
    """A rule that puts samples side by side in the batch if they share their weights, arguments of these numbers."""

    @told(name)
    def rule(b, *args):
        run = getattr(fused, name)
        if not b.size or args[-2] or any(b.owns(args[k]) for k in shared):
            return _one_by_one(b, run, args)
        return _side_by_side(b, run, args, shared)

    return rule


def batched_back(name, input, hidden, out, shared):
    """The same of a backward op; its gradients by weights are products of each sample."""

    @told(name)
    def rule(b, *args):
        run, (*rest, wanted) = getattr(fused, name), args
        if not b.size or args[-3] or any(b.owns(args[k]) for k in shared):
            return _one_by_one(b, run, args)
        found = [*_side_by_side(b, run, (*rest, [wanted[0], *[False] * len(wanted[1:])]), shared)]
        slopes, kept = (t.flatten(1, 2) for t in (found[0], found[1 if len(wanted) > 4 else 0]))
        at = len(found) - len(wanted) + 1
        if wanted[1]:
            found[at] = slopes.mT @ b.whole(args[input]).flatten(1, 2)
        if wanted[2]:
            before = all_before(_folded(b, args[out]), _folded(b, args[hidden]).squeeze(0), (), args[-2])
            found[at + 1] = kept.mT @ _unfolded(before, b.size, args[hidden].shape[-2]).flatten(1, 2)
        for k, (asked, by) in enumerate(zip(wanted[3:], (slopes, kept))):
            found[at + 2 + k] = by.sum(1) if asked else None
        return tuple(found)

    return rule


def _side_by_side(b, run, args, shared):
    at = [k for k, a in enumerate(args) if isinstance(a, tg.Tensor) and k not in shared]
    folded = [_folded(b, a) if k in at else a for k, a in enumerate(args)]
    count = args[at[-1]].shape[-2]
    return tuple([None if f is None else _unfolded(f, b.size, count) for f in run(*folded)])


def _one_by_one(b, run, args):
    if not b.size:
        one = run(*[b.whole(a).new_zeros(a.shape) if b.owns(a) else a for a in args])
        return tuple([None if f is None else f.new_zeros((0, *f.shape)) for f in one])
    each = [run(*[b.whole(a)[k] if b.owns(a) else a for a in args]) for k in range(b.size)]
    return tuple([None if parts[0] is None else tg.stack(parts) for parts in zip(*each)])


def _folded(b, t):
    """(samples, ..., batch, n) as (..., samples times batch, n)."""
    return b.whole(t).movedim(0, -3).flatten(-3, -2)


def _unfolded(t, samples, count):
    return t.unflatten(-2, (samples, count)).movedim(-3, 0)
