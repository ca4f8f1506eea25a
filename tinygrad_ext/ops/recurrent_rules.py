"""Steps of recurrent layers in ops: how they are taken one after the other, and the rules of recurrent_steps.py.

What comes from the inputs is made before, for all steps at once, and so are the derivatives by weights. The derivatives
of the derivatives, `twice`, are written in ops, step by step: so are all further ones.
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


def _by_weight(slopes, before):
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


def backwards_in(steps, state, step, reverse):
    return (forwards if reverse else backwards)(steps, state, step)


def forwards_in(steps, state, step, reverse):
    return (backwards if reverse else forwards)(steps, state, step)


# ---- long short-term memory ----------------------------------------------------------------------------------------


def lstm_grad(arrived, hidden, cell, weight, sizes, reverse, out, cells, acts, needs):
    slopes, *ends = fused._lstm_steps_backward(*arrived, cell, weight, cells, acts, sizes, reverse)
    of_weight = _by_weight(slopes, all_before(out, hidden, sizes, reverse)) if needs[3] else None
    return slopes, *ends, of_weight


def lstm_twice(
    grads, out_grad, last_grad, last_cell_grad, cells_grad, acts_grad, cell, weight, cells, acts, sizes, reverse,
    gates_grad,
):  # fmt: skip
    """h and c: gradients by output and cell of a step, which were on the way to the gates."""

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
        p = (by + state[0] @ weight.mT).chunk(4, -1)
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
        cut(zeros_unless(g, like), sizes)
        for g, like in ((out_grad, cells), (cells_grad, cells), (acts_grad, acts), (grads[0], acts))
    )
    behind = after_steps(gates_grad @ weight, first, sizes, reverse)
    found, _ = backwards_in([*zip(gates, now, given, behind, of_cell)], (last,), again, reverse)
    steps = [*zip(gates, now, before_steps(cells, cell, sizes, reverse), more, found, by)]
    found, ends = forwards_in(steps, (grads[1], grads[2]), step, reverse)
    *parts, of_before, was = zip(*found)
    of_out, of_cells, of_more, of_acts, of_now = (joined(p, sizes) for p in parts)
    of_now = of_now + _of_stored(of_before, cell, sizes, reverse)
    of_weight = _by_weight(gates_grad, joined(was, sizes))
    return of_out, *ends, of_cells, of_more, _of_first(of_before, sizes, reverse), of_weight, of_now, of_acts


# ---- gated units ---------------------------------------------------------------------------------------------------


def gru_grad(arrived, hidden, weight, bias, sizes, reverse, out, acts, needs):
    slopes, kept, end = fused._gru_steps_backward(*arrived, hidden, weight, out, acts, sizes, reverse)
    of_weight = _by_weight(kept, all_before(out, hidden, sizes, reverse)) if needs[2] else None
    of_bias = kept.reshape(-1, kept.shape[-1]).sum(0) if bias is not None and needs[3] else None
    return slopes, end, of_weight, of_bias


def gru_twice(
    grads, out_grad, last_grad, acts_grad, hidden, weight, out, acts, sizes, reverse, kept_grad
):  # fmt: skip
    """h: gradients by the output of a step."""

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
        by, p = by.chunk(3, -1), (by_kept + a @ weight.mT).chunk(3, -1)
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
    gates, through = cut(acts, sizes), cut(kept_grad @ weight, sizes)
    given, more, by, by_kept = (
        cut(t, sizes) for t in (zeros_unless(out_grad, out), zeros_unless(acts_grad, acts), grads[0], grads[1])
    )
    found, _ = backwards_in([*zip(gates, given, through)], (last,), again, reverse)
    steps = [*zip(gates, before_steps(out, hidden, sizes, reverse), more, found, by, by_kept)]
    found, ends = forwards_in(steps, (grads[2],), step, reverse)
    *parts, of_before, was = zip(*found)
    of_out, of_more, of_acts = (joined(p, sizes) for p in parts)
    of_weight = _by_weight(kept_grad, joined(was, sizes))
    of_stored = _of_stored(of_before, hidden, sizes, reverse)
    return of_out, *ends, of_more, _of_first(of_before, sizes, reverse), of_weight, of_stored, of_acts


# ---- Elman's units -------------------------------------------------------------------------------------------------


def elman_grad(arrived, hidden, weight, relu, sizes, reverse, out, needs):
    slopes, end = fused._elman_steps_backward(*arrived, hidden, weight, out, relu, sizes, reverse)
    return slopes, end, _by_weight(slopes, all_before(out, hidden, sizes, reverse)) if needs[2] else None


def elman_twice(grads, out_grad, last_grad, hidden, weight, out, relu, sizes, reverse, gates_grad):
    def step(parts, state):
        h, now, by = parts
        p = by + state[0] @ weight.mT
        of_h = p * ((now > 0).to(now.dtype) if relu else 1 - now * now)
        return (of_h, tg.zeros_like(p) if relu else -2 * p * h * now, state[0]), (of_h,)

    behind = after_steps(gates_grad @ weight, zeros_unless(last_grad, hidden), sizes, reverse)
    h = [a + b for a, b in zip(behind, cut(zeros_unless(out_grad, out), sizes))]
    found, ends = forwards_in([*zip(h, cut(out, sizes), cut(grads[0], sizes))], (grads[1],), step, reverse)
    of_out, of_stored, was = (joined(p, sizes) for p in zip(*found))
    return of_out, *ends, _by_weight(gates_grad, was), of_stored


# ---- batches -------------------------------------------------------------------------------------------------------


def batched(name, *shared):
    """A rule that puts samples side by side in the batch if they share their weights, arguments of these numbers."""

    @told(name)
    def rule(b, *args):
        run = getattr(fused, name)
        sizes = args[-2]
        if b.size and not sizes and not any(b.owns(args[k]) for k in shared):
            at = [k for k, a in enumerate(args) if isinstance(a, tg.Tensor) and k not in shared]
            folded = [_folded(b, a) if k in at else a for k, a in enumerate(args)]
            count = b.whole(args[at[-1]]).shape[-2]
            return tuple(_unfolded(f, b.size, count) for f in run(*folded))
        if not b.size:
            one = run(*[b.whole(a).new_zeros(a.shape) if b.owns(a) else a for a in args])
            return tuple(f.new_zeros((0, *f.shape)) for f in one)
        each = [run(*[b.whole(a)[k] if b.owns(a) else a for a in args]) for k in range(b.size)]
        return tuple(tg.stack(parts) for parts in zip(*each))

    return rule


def _folded(b, t):
    """(samples, ..., batch, n) as (..., samples times batch, n)."""
    return b.whole(t).movedim(0, -3).flatten(-3, -2)


def _unfolded(t, samples, count):
    return t.unflatten(-2, (samples, count)).movedim(-3, 0)
