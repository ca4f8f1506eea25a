"""vmap beside a loop over the samples, for each choice of what is batched and what is shared."""

import itertools

import tinygrad_ext as tg
from tinygrad_ext.func import grad, jvp, vmap


def of(*shape, dtype=tg.float64):
    """Distinct numbers, in no order."""
    count = 1
    for s in shape:
        count *= s
    return ((tg.arange(count) * 7 + 3) % (count + 1)).to(dtype).reshape(shape)


def ints(high, *shape, low=0):
    """Whole numbers from `low` to below `high`, which repeat."""
    count = 1
    for s in shape:
        count *= s
    return (tg.arange(count) * 5 + 2).remainder(max(high - low, 1)).reshape(shape) + low


def samples(args, in_dims, k):
    return [a.select(d, k) if d is not None else a for a, d in zip(args, in_dims)]


def flat(result):
    """The tensors of a result, which may be a tuple of them."""
    return [r for part in result for r in flat(part)] if isinstance(result, (tuple, list)) else [result]


def same(one, other):
    assert one.dtype == other.dtype and tuple(one.shape) == tuple(other.shape), (one, other)
    assert tg.equal(one.isnan(), other.isnan()) and tg.equal(one.nan_to_num(), other.nan_to_num()), (one, other)


def as_a_loop(f, *batched, gradients=True, of_shapes=True):
    """f of tensors whose first dimension is the batch, with each choice of what is batched and what is shared.

    of_shapes: whether the shape of f's result follows from those of its arguments, so that f needs no data.
    """
    for in_dims in itertools.product((0, None), repeat=len(batched)):
        if 0 in in_dims:
            args = [a if d == 0 else a[0] for a, d in zip(batched, in_dims)]
            _one_choice(f, args, list(in_dims), gradients, of_shapes)


def _one_choice(f, args, in_dims, gradients, of_shapes):
    size = next(a.shape[0] for a, d in zip(args, in_dims) if d is not None)
    wanted = [tg.stack(list(r)) for r in zip(*[flat(f(*samples(args, in_dims, k))) for k in range(size)])]
    for got, want in zip(flat(vmap(f, tuple(in_dims))(*args)), wanted):
        same(got, want)
    last = [None if d is None else a.dim() - 1 for a, d in zip(args, in_dims)]
    aside = [a if d is None else a.movedim(0, -1) for a, d in zip(args, in_dims)]
    for got, want in zip(flat(vmap(f, tuple(last), out_dims=-1)(*aside)), wanted):
        same(got, want.movedim(0, -1))
    one = [a if d is None else a[:1] for a, d in zip(args, in_dims)]
    for got, want in zip(flat(vmap(f, tuple(in_dims))(*one)), wanted):
        same(got, want[:1])
    if of_shapes:
        none = [a if d is None else a[:0] for a, d in zip(args, in_dims)]
        for got, want in zip(flat(vmap(f, tuple(in_dims))(*none)), wanted):
            same(got, want[:0])
        _nested(f, args, in_dims, wanted)
    if gradients:
        _gradients(f, args, in_dims, size)


def _nested(f, args, in_dims, wanted):
    """Two batches: each of the batched arguments has the inner one, the outer one, or both."""
    outer = [None if d is None else tg.stack([a, a.flip(0)]) for a, d in zip(args, in_dims)]
    given = [a if o is None else o for a, o in zip(args, outer)]
    inner = tuple(in_dims)
    got = flat(vmap(vmap(f, inner), inner)(*given))
    for g, w in zip(got, wanted):
        same(g, tg.stack([w, w.flip(0)]))
    if sum(d is not None for d in in_dims) > 1:
        first = in_dims.index(0)
        out, into = [None] * len(args), list(in_dims)
        out[first], into[first] = 0, None
        got = flat(vmap(vmap(f, tuple(into)), tuple(out))(*args))
        size = args[first].shape[0]
        for k in range(size):
            fixed = [a[k] if i == first else a for i, a in enumerate(args)]
            for g, w in zip(got, flat(vmap(f, tuple(into))(*fixed))):
                same(g[k], w)


def _filled(args, places, values):
    """Arguments with others at some places."""
    given = dict(zip(places, values))
    return [given.get(i, a) for i, a in enumerate(args)]


def _gradients(f, args, in_dims, size):
    """vmap of grad, grad of vmap, the same in forward mode, and second derivatives."""
    at = tuple(i for i, a in enumerate(args) if a.is_floating_point())
    if not at:
        return

    def value(*row):
        out = flat(f(*row))[0]
        return (out * (1 + tg.arange(out.numel(), dtype=out.dtype).reshape(out.shape)) + out**3).sum()

    slope = lambda *row: grad(value, at)(*row)
    wanted = [tg.stack(list(r)) for r in zip(*[slope(*samples(args, in_dims, k)) for k in range(size)])]
    for got, want in zip(vmap(slope, tuple(in_dims))(*args), wanted):
        assert tg.allclose(got, want, equal_nan=True)
    whole = grad(lambda *row: vmap(value, tuple(in_dims))(*row).sum(), at)(*args)
    for got, want, i in zip(whole, wanted, at):
        assert tg.allclose(got, want if in_dims[i] == 0 else want.sum(0), equal_nan=True)
    pushed = lambda *row: jvp(
        lambda *r: value(*_filled(row, at, r)), tuple(row[i] for i in at), tuple(row[i] for i in at)
    )
    ahead = tg.stack([pushed(*samples(args, in_dims, k))[1] for k in range(size)])
    assert tg.allclose(vmap(pushed, tuple(in_dims))(*args)[1], ahead, equal_nan=True)
    batched = lambda *r: vmap(value, tuple(in_dims))(*_filled(args, at, r))
    assert tg.allclose(jvp(batched, *[tuple(args[i] for i in at)] * 2)[1], ahead, equal_nan=True)
    second = lambda *row: grad(lambda *r: sum((g**2).sum() for g in slope(*r)), at)(*row)
    twice = [tg.stack(list(r)) for r in zip(*[second(*samples(args, in_dims, k)) for k in range(size)])]
    for got, want in zip(vmap(second, tuple(in_dims))(*args), twice):
        assert tg.allclose(got, want, equal_nan=True)
