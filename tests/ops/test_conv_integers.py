"""Convolutions of integers lay windows out in panels: each size at which panels, items or planes are cut counts."""

import numpy as np
import pytest

import tinygrad_ext as tg

F = tg.nn.functional

# dimensions, input, weight, stride, padding, dilation, groups
CASES = [
    (1, (2, 1, 700), (1, 1, 9), 1, 4, 1, 1),  # several items of positions, panels wider than two vectors
    (1, (1, 127, 40), (3, 127, 1), 1, 0, 1, 1),
    (1, (1, 128, 40), (3, 128, 1), 3, 2, 1, 1),
    (1, (1, 43, 33), (5, 43, 3), 1, 1, 1, 1),  # 129 elements of a window
    (2, (2, 6, 9, 7), (130, 3, 3, 2), 1, 1, 1, 2),  # several items of outputs
    (2, (1, 4, 17, 17), (3, 4, 5, 5), 2, 4, 3, 1),
    (2, (1, 8, 1, 5), (8, 1, 3, 3), 1, 3, 1, 8),
    (2, (3, 5, 4, 4), (6, 5, 4, 4), 1, 0, 1, 1),  # one window
    (3, (1, 3, 5, 6, 7), (4, 3, 4, 4, 4), 1, 3, 1, 1),  # planes of taps outside
    (3, (2, 2, 3, 9, 20), (3, 2, 3, 5, 4), (2, 1, 3), (4, 0, 2), (2, 1, 1), 1),
]


@pytest.mark.parametrize(("dims", "x", "w", "stride", "padding", "dilation", "groups"), CASES)
@pytest.mark.parametrize("dtype", ["int64", "int16"])
def test_integers_are_convolved_exactly(dims, x, w, stride, padding, dilation, groups, dtype):
    random = np.random.default_rng(3)
    a, b, bias = (random.integers(-3, 4, s).astype(dtype) for s in (x, w, w[:1]))
    conv = getattr(F, f"conv{dims}d")
    window = (stride, padding, dilation, groups)
    got = conv(tg.tensor(a), tg.tensor(b), tg.tensor(bias), *window)
    want = conv(*(tg.tensor(t.astype("float64")) for t in (a, b, bias)), *window)
    assert got.dtype is getattr(tg, dtype)
    assert np.array_equal(got.numpy(), want.numpy().astype(dtype))


def test_sums_of_integers_wrap():
    x = np.full((1, 2, 20), 1 << 62)
    got = F.conv1d(tg.tensor(x), tg.tensor(np.full((1, 2, 3), 3)))
    wrapped = 6 * 3 * (1 << 62) % (1 << 64)
    assert got.tolist() == [[[wrapped - (1 << 64) * (wrapped >> 63)] * 18]]


def test_a_convolution_of_integers_without_channels_is_the_bias():
    got = F.conv1d(tg.zeros(2, 0, 5, dtype=tg.int64), tg.zeros(3, 0, 2, dtype=tg.int64), tg.tensor([1, 2, 3]))
    assert got.tolist() == [[[1] * 4, [2] * 4, [3] * 4]] * 2


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 3, 33), (3, 7, 20), (5, 129, 17), (9, 200, 130), (4, 5, 1), (6, 1, 2)])
def test_products_of_integers_have_the_same_bits_in_every_layout(m, k, n, dtype):
    random = np.random.default_rng(4)
    low = 0 if dtype == "uint8" else -9
    a, b = (random.integers(low, 10, s).astype(dtype) for s in ((m, k), (k, n)))
    want = (a.astype("int64") @ b.astype("int64")).astype(dtype)
    for left in (tg.tensor(a), tg.tensor(a.T.copy()).mT, tg.tensor(np.repeat(a, 2, 1))[:, ::2]):
        for right in (tg.tensor(b), tg.tensor(b.T.copy()).mT, tg.tensor(np.repeat(b, 2, 1))[:, ::2]):
            assert np.array_equal((left @ right).numpy(), want)
            out = tg.zeros(n, m, dtype=getattr(tg, dtype)).mT
            assert np.array_equal(tg.matmul(left, right, out=out).numpy(), want)
