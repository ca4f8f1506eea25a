"""A product too small for a BLAS sums in order, so that an element has the same bits however its operands lie."""

import numpy as np
import pytest

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
