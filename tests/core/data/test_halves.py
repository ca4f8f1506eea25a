"""Conversions between float16 and float32: every half, in vectors, tails and strides, as NumPy converts it."""

import numpy as np
import pytest

import tinygrad_ext as tg

EVERY_HALF = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def bits(a):
    """Bit patterns, all NaNs alike."""
    return np.where(np.isnan(a), a.dtype.type(np.nan), a).view(f"u{a.itemsize}")


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("start", [0, 1, 65_530])
def test_every_half_widens_exactly(start, step):
    halves = EVERY_HALF[start:][::step]
    wide = tg.from_numpy(EVERY_HALF)[start:][::step].float().numpy()
    assert np.array_equal(bits(wide), bits(halves.astype(np.float32)))


@pytest.mark.parametrize("step", [1, 3])
def test_a_float_narrows_to_the_nearest_half(step):
    exact = EVERY_HALF[np.isfinite(EVERY_HALF)].astype(np.float32)
    between = (np.sort(exact)[1:].astype(np.float64) + np.sort(exact)[:-1]) / 2  # ties, which go to the even half
    drawn = np.random.default_rng(0).integers(0, 1 << 32, 100_003, dtype=np.uint32).view(np.float32)
    edges = np.float32([65504, 65519.996, 65520, -65520, 1e38, np.inf, -np.inf, np.nan, 2.0**-24, 2.0**-25, 2.0**-26])
    with np.errstate(over="ignore", invalid="ignore"):
        floats = np.concatenate([exact, between.astype(np.float32), drawn, edges])
        expected = floats[::step].astype(np.float16)
    narrow = tg.from_numpy(floats)[::step].half().numpy()
    assert np.array_equal(bits(narrow), bits(expected))


def test_a_strided_target_gets_the_same_halves():
    floats = tg.randn(1001)
    target = tg.zeros(1001, 2, dtype=tg.float16)
    target[:, 0] = floats
    assert target[:, 0].equal(floats.half()) and not target[:, 1].any()
