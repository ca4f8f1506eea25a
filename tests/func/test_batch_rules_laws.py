"""vmap over ops that index: random indices of any shape as in a loop, and beside PyTorch."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tinygrad_ext.core.call.levels import operation

import tinygrad_ext as tg
from tests.helpers.batches import ints, of, same, samples
from tinygrad_ext.func import grad, vmap
from tinygrad_ext.registry import ops

# ---- random indices ------------------------------------------------------------------------------------------------


@st.composite
def _reads(draw):
    """A shape, for each dimension an index's shape, "mask" or None, and which tensors are batched."""
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    common = draw(st.sampled_from([(), (2,), (3, 2), (0,)]))
    kinds = [draw(st.sampled_from([None, common, common[1:], tuple(1 for _ in common), "mask"])) for _ in shape]
    batched = [draw(st.booleans()) for _ in range(2)]
    batched += [k != "mask" and draw(st.booleans()) for k in kinds if k is not None]
    return shape, kinds, batched


def _index(size, kind):
    """Indices for two samples; a mask has one true place, so that it goes with every other index."""
    return (tg.arange(size) == size - 1).expand(2, size) if kind == "mask" else ints(size, 2, *kind, low=-size)


@settings(max_examples=150, deadline=None)
@given(_reads(), st.booleans())
def test_random_indices(case, accumulate):
    shape, kinds, batched = case
    made = [_index(s, k) for s, k in zip(shape, kinds) if k is not None]
    if not made or not any(batched):
        return

    def placed(indices):
        rest = iter(indices)
        return [None if k is None else next(rest) for k in kinds]

    def read(x, v, *indices):
        return operation(ops["aten::index.Tensor"])(x, placed(indices)) * v

    def put(x, v, *indices):
        return x.index_put(placed(indices), v, accumulate)

    x = of(2, *shape)
    picked = operation(ops["aten::index.Tensor"])(x[0], placed([i[0] for i in made])).shape
    args = [x, of(2, *picked), *made]
    in_dims = tuple(0 if b else None for b in batched)
    given = [a if b else a[0] for a, b in zip(args, batched)]
    rows = [samples(given, in_dims, k) for k in range(2)]
    for f in (put, read):
        want = tg.stack([f(*row) for row in rows])
        same(vmap(f, in_dims)(*given), want)
        twice = [a if d is None else tg.stack([a, a.flip(0), a]) for a, d in zip(given, in_dims)]
        same(vmap(vmap(f, in_dims), in_dims)(*twice), tg.stack([want, want.flip(0), want]))
    for f in (put, read) if accumulate else (read,):
        slope = grad(lambda *row, f=f: (f(*row) ** 2).sum(), (0, 1))
        for got, want in zip(vmap(slope, in_dims)(*given), zip(*[slope(*row) for row in rows])):
            same(got, tg.stack(list(want)))


@st.composite
def _lines(draw):
    """A shape, a dimension of it, how long the index along that is, and what is batched."""
    shape = draw(st.lists(st.integers(0, 3), max_size=3).map(tuple))
    dim = draw(st.integers(-max(len(shape), 1), max(len(shape), 1) - 1))
    size = shape[dim] if shape else 1
    length = draw(st.integers(0, 4)) if shape and size else int(not shape)
    batched = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()).filter(any))
    return shape, dim, length, batched


ALONG = {
    "index_select": lambda x, d, i, large, s: x.index_select(d, i) * s.sum(),
    "index_add": lambda x, d, i, large, s: x.index_add(d, i, s, alpha=2),
    "index_copy": lambda x, d, i, large, s: x.index_copy(d, i, s),
    "index_fill": lambda x, d, i, large, s: x.index_fill(d, i, s.sum()),
    "take": lambda x, d, i, large, s: x.take(i[: x.numel()]) + s.sum(),
    "gather": lambda x, d, i, large, s: x.gather(d, large) * s,
    "scatter": lambda x, d, i, large, s: x.scatter(d, large, s),
    "scatter_add": lambda x, d, i, large, s: x.scatter_add(d, large, s),
    "scatter_reduce": lambda x, d, i, large, s: x.scatter_reduce(d, large, s, "mean", include_self=False),
}


@settings(max_examples=150, deadline=None)
@given(_lines(), st.sampled_from(sorted(ALONG)))
def test_random_lines(case, name):
    shape, dim, length, batched = case
    x, i = of(2, *shape), ints(shape[dim] if shape else 1, 2, length)
    s = of(2, *[length if d == dim % len(shape) else n for d, n in enumerate(shape)])

    def f(x, i, s):
        along = [length if d == dim % max(len(shape), 1) else 1 for d in range(len(shape))]
        return ALONG[name](x, dim, i, i.reshape(along).expand(s.shape), s)

    in_dims = tuple(0 if b else None for b in batched)
    given = [a if b else a[0] for a, b in zip((x, i, s), batched)]
    rows = [samples(given, in_dims, k) for k in range(2)]
    want = tg.stack([f(*row) for row in rows])
    same(vmap(f, in_dims)(*given), want)
    twice = [a if d is None else tg.stack([a, a.flip(0), a]) for a, d in zip(given, in_dims)]
    same(vmap(vmap(f, in_dims), in_dims)(*twice), tg.stack([want, want.flip(0), want]))
    if name not in ("index_copy", "scatter"):  # where an index names a place twice, the gradient of src is any of them
        slope = grad(lambda *row: (f(*row) ** 2).sum(), (0, 2))
        for got, each in zip(vmap(slope, in_dims)(*given), zip(*[slope(*row) for row in rows])):
            assert tg.allclose(got, tg.stack(list(each)))


# ---- beside PyTorch ------------------------------------------------------------------------------------------------

BESIDE = {
    "rows": lambda m, x, i, v: x[i],
    "a number": lambda m, x, i, v: x[i[0]],
    "behind": lambda m, x, i, v: x[:, i],
    "apart": lambda m, x, i, v: x[None, i, :, i],
    "index_put": lambda m, x, i, v: x.index_put((i,), v, accumulate=True),
    "select": lambda m, x, i, v: x.index_select(-2, i),
    "add": lambda m, x, i, v: x.index_add(0, i, v, alpha=2),
    "fill": lambda m, x, i, v: x.index_fill(1, i, 3),
    "take": lambda m, x, i, v: x.take(i),
    "gather": lambda m, x, i, v: x.gather(1, i[:, None, None].expand(2, 2, 3)),
    "scatter": lambda m, x, i, v: x.scatter_add(0, i[:, None, None].expand(2, 3, 3), v),
    "mask": lambda m, x, i, v: x.masked_fill(v[:1] > 9, v.sum()),
    "norm": lambda m, x, i, v: m.linalg.vector_norm(x, 3, (0, -1)),
}


# PyTorch runs some of these sample by sample
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("in_dims", [(0, 0, 0), (0, None, None), (None, 0, None), (None, 0, 0), (0, 0, None)])
@pytest.mark.parametrize("name", BESIDE)
def test_as_in_torch(name, in_dims):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    f = BESIDE[name]
    args = of(2, 3, 3, 3), ints(3, 2, 2), of(2, 2, 3, 3)
    args = [a if d == 0 else a[0] for a, d in zip(args, in_dims)]
    theirs = [torch.tensor(a.tolist(), dtype=getattr(torch, a.dtype.name)) for a in args]
    got = vmap(lambda *row: f(tg, *row), in_dims)(*args)
    want = torch.func.vmap(lambda *row: f(torch, *row), in_dims)(*theirs)
    assert tuple(got.shape) == tuple(want.shape) and tg.allclose(got, tg.tensor(want.tolist(), dtype=got.dtype))
    if name == "a number":
        return  # of which PyTorch has no gradient here
    slope = lambda m, g: lambda *row: g(lambda x, *rest: (f(m, x, *rest) ** 2).sum())(*row)
    got = vmap(slope(tg, grad), in_dims)(*args)
    want = torch.func.vmap(slope(torch, torch.func.grad), in_dims)(*theirs)
    assert tg.allclose(got, tg.tensor(want.tolist(), dtype=tg.float64))
