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
    """A shape, for each dimension an index's shape or None, and which tensors are batched."""
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    common = draw(st.sampled_from([(), (2,), (3, 2), (0,)]))
    kinds = [draw(st.sampled_from([None, common, common[1:], tuple(1 for _ in common)])) for _ in shape]
    batched = [draw(st.booleans()) for _ in range(2 + sum(k is not None for k in kinds))]
    return shape, kinds, batched


@settings(max_examples=150, deadline=None)
@given(_reads(), st.booleans())
def test_random_indices(case, accumulate):
    shape, kinds, batched = case
    made = [ints(s, 2, *k, low=-s) for s, k in zip(shape, kinds) if k is not None]
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
