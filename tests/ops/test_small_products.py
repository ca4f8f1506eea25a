"""A product too small for a BLAS sums in order, so that an element has the same bits however its operands lie; tiny
ones round each step twice, those above it once where the processor can."""

import numpy as np
import pytest
from tinygrad_ext.core.loops.loop_tables import instruction_set

import tinygrad_ext as tg

SHAPES = [(1, 1, 5), (2, 3, 4), (4, 16, 8), (3, 17, 9), (16, 8, 4), (5, 33, 3), (7, 6, 13), (1, 16, 4), (8, 2, 2)]


def in_order(a, b):
    total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k : k + 1]
    return total


def layouts(values):
    """The same matrix row by row, column by column, and with gaps."""
    t = tg.from_numpy(values)
    gaps = tg.zeros(2 * t.shape[0], 3 * t.shape[1], dtype=t.dtype)[::2, ::3]
    return t, t.t().contiguous().t(), gaps.copy_(t)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("m, n, k", SHAPES)
def test_every_layout_gives_the_bits_of_the_sum_in_order(m, n, k, dtype):
    random = np.random.default_rng(m * n * k)
    a, b = random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)
    wanted = in_order(a, b)
    for x in layouts(a):
        for y in layouts(b):
            assert (x @ y).numpy().tobytes() == wanted.tobytes()
            out = tg.zeros(n, m, dtype=x.dtype).t()
            assert np.array_equal(tg.matmul(x, y, out=out).numpy(), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("m, n, k", [*SHAPES, (4, 5, 0), (3, 1, 7), (4, 40, 2)])
def test_what_is_added_comes_last(m, n, k, dtype):
    random = np.random.default_rng(m * n * k)
    a, b, start = (random.standard_normal(s).astype(dtype) for s in ((m, k), (k, n), (n,)))
    wanted, scaled = in_order(a, b) + start, dtype(2) * in_order(a, b) + dtype(0.5) * start
    for x in layouts(a):
        for y in layouts(b):
            for added in (tg.from_numpy(start), tg.from_numpy(np.repeat(start, 2))[::2]):
                assert tg.nn.functional.linear(x, y.t(), added).numpy().tobytes() == wanted.tobytes()
                assert tg.addmm(added, x, y).numpy().tobytes() == wanted.tobytes()
                assert tg.addmm(added, x, y, beta=0.5, alpha=2).numpy().tobytes() == scaled.tobytes()
    same = tg.ones(1, dtype=x.dtype).expand(n)
    assert np.array_equal(tg.nn.functional.linear(x, y.t(), same).numpy(), in_order(a, b) + dtype(1))


# ---- above tiny ----------------------------------------------------------------------------------------------------

own = pytest.mark.skipif(instruction_set() == "base", reason="without AVX2 a BLAS computes them, and sums as it likes")
MIDDLE = [(16, 24, 33), (17, 40, 5), (64, 64, 64), (29, 71, 200), (128, 128, 128), (50, 16, 256), (16, 8, 100),
          (61, 33, 90), (23, 49, 1), (100, 25, 31)]  # fmt: skip


@own
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("m, n, k", MIDDLE)
def test_larger_ones_have_the_same_bits_in_every_layout(m, n, k, dtype):
    random = np.random.default_rng(m * n * k)
    a, b = random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    found = (tg.from_numpy(a) @ tg.from_numpy(b)).numpy()
    bound = k * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b))
    assert (np.abs(found - exact) <= bound).all()
    for x in layouts(a)[:2]:
        for y in layouts(b)[:2]:
            assert (x @ y).numpy().tobytes() == found.tobytes()
            for out in (tg.zeros(n, m, dtype=x.dtype).t(), tg.zeros(m, 2 * n, dtype=x.dtype)[:, ::2]):
                assert np.array_equal(tg.matmul(x, y, out=out).numpy(), found)
            assert np.array_equal(tg.stack([x, x]).bmm(tg.stack([y, y]))[1].numpy(), found)


@own
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_an_element_does_not_depend_on_where_it_stands(dtype):
    x, y = tg.randn(100, 70, dtype=dtype), tg.randn(70, 97, dtype=dtype)
    whole = x @ y
    for i, j in ((0, 0), (1, 3), (40, 40), (13, 29)):
        assert tg.equal(whole[i : i + 31, j : j + 37], x[i : i + 31] @ y[:, j : j + 37])


@own
@pytest.mark.parametrize("m, n, k", MIDDLE)
def test_what_is_added_to_larger_ones_comes_last_too(m, n, k):
    x, w, bias = tg.randn(m, k), tg.randn(n, k), tg.randn(n)
    product = x @ w.t()
    assert tg.equal(tg.nn.functional.linear(x, w, bias), product + bias)
    assert tg.equal(tg.addmm(bias, x, w.t()), product + bias)
    start = tg.randn(m, n)
    tg.testing.assert_close(tg.addmm(start, x, w.t(), beta=0.5, alpha=2), 2 * product + 0.5 * start)
    assert tg.equal(start.clone().addmm_(x, w.t()), product + start)
    assert tg.equal(tg.addmm(start.fill_(float("nan")), x, w.t(), beta=0), product)


def test_nan_and_infinities_stay_where_they_belong():
    x, w = tg.ones(20, 30), tg.ones(30, 30)
    x[3, 4], w[7, 9] = float("inf"), float("nan")
    found = tg.nn.functional.linear(x, w)
    assert found[:, 7].isnan().all() and found[3].isinf().sum() == 29
    assert (found.isnan().sum(), found.isinf().sum()) == (20, 29)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.int64, tg.bfloat16], ids=str)
@pytest.mark.parametrize("n", [5, 8, 40])
def test_a_batch_in_another_order_gives_the_same_numbers(n, dtype):
    random = np.random.default_rng(n)
    x = tg.from_numpy(random.integers(-9, 9, (6, 3, 4, 20))).to(dtype)
    weight = tg.from_numpy(random.integers(-9, 9, (n, 20))).to(dtype)
    whole = tg.nn.functional.linear(x, weight)
    for dims in ((1, 0, 2, 3), (2, 0, 1, 3), (0, 2, 1, 3)):
        moved = x.permute(dims)
        assert tg.nn.functional.linear(moved, weight).tolist() == whole.permute(dims).tolist()
        assert (moved @ weight.t()).tolist() == whole.permute(dims).tolist()
    repeated = x[:1].expand(5, 3, 4, 20).transpose(0, 1)
    assert tg.nn.functional.linear(repeated, weight).tolist() == whole[:1].expand(5, 3, 4, n).transpose(0, 1).tolist()


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("batch, depth", [((5,), 3), ((3, 21), 64), ((1000,), 16), ((2, 2, 9), 1000), ((4000,), 40)])
def test_single_sums_of_a_batch_have_the_bits_of_each_alone(dtype, batch, depth):
    generator = np.random.default_rng(7)
    a, b = (tg.tensor(generator.standard_normal((*batch, depth)), dtype=dtype) for _ in "ab")
    wide = tg.stack([a, b], -1)
    rows = [tg.matmul(x[None], y[:, None]).reshape(()) for x, y in zip(a.reshape(-1, depth)[:50], b.reshape(-1, depth))]
    for x, y in ((a, b), (wide[..., 0], wide[..., 1]), (a.mT.contiguous().mT if len(batch) > 1 else a, b.clone())):
        sums = tg.matmul(x[..., None, :], y[..., None])
        assert sums.shape == (*batch, 1, 1) and tg.equal(sums.reshape(-1)[:50], tg.stack(rows))
        assert tg.equal(tg.einsum("...d,...d->...", x, y), sums[..., 0, 0])
    assert tg.allclose(sums[..., 0, 0], (a.double() * b.double()).sum(-1).to(dtype), rtol=0, atol=depth * 1e-5)
