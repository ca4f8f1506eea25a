"""Window functions against SciPy, PyTorch and each other; wrong calls."""

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg

windows = tg.signal.windows
OLDER = ("hann", "hamming", "blackman", "bartlett", "kaiser")
NEWER = tuple(dir(windows))
NEEDED = {"general_cosine": {"a": [0.5, 0.3, 0.2]}}
SCIPY = {"gaussian": {"std": 1.0}, "kaiser": {"beta": 12.0}, "general_hamming": {"alpha": 0.54}}


def scipys(name, n, sym):
    return getattr(scipy.signal.windows, name)(n, sym=sym, **NEEDED.get(name, {}), **SCIPY.get(name, {}))


@given(st.sampled_from(NEWER), st.integers(0, 400), st.booleans())
@settings(deadline=None, max_examples=200)
def test_every_length_is_scipys(name, n, sym):
    want = scipys(name, n, sym)
    got = getattr(windows, name)(n, sym=sym, dtype=tg.float64, **NEEDED.get(name, {}))
    assert np.allclose(got.numpy(), want, rtol=1e-13, atol=1e-15)
    rounded = getattr(windows, name)(n, sym=sym, **NEEDED.get(name, {}))
    assert rounded.dtype == tg.float32 and rounded.equal(got.float())


@given(st.sampled_from(OLDER), st.integers(0, 400), st.booleans())
@settings(deadline=None, max_examples=100)
def test_the_older_functions_are_the_newer_ones(name, n, periodic):
    older = getattr(tg, f"{name}_window")
    newer = getattr(windows, name)
    assert older(n, periodic).equal(newer(n, sym=not periodic))
    assert older(window_length=n, periodic=periodic, dtype=tg.float64).equal(
        newer(n, sym=not periodic, dtype=tg.float64)
    )
    assert older(n).equal(older(n, True))
    assert older(n, dtype=tg.bfloat16).equal(older(n, dtype=tg.float64).to(tg.bfloat16))


def test_numbers_that_shape_a_window():
    assert np.allclose(
        windows.exponential(9, center=2.5, tau=3, sym=False, dtype=tg.float64).numpy(),
        scipy.signal.windows.exponential(9, center=2.5, tau=3, sym=False),
    )
    assert np.allclose(tg.kaiser_window(9, False, 5.0).numpy(), np.kaiser(9, 5))
    assert np.allclose(tg.hamming_window(9, False).numpy(), np.hamming(9))
    assert tg.hamming_window(8, True, 0.5, 0.5).equal(tg.hann_window(8))
    assert tg.hamming_window(8, True, alpha=0.6).equal(tg.hamming_window(8, True, 0.6, 0.46))
    great = tg.kaiser_window(5, False, 2000.0, dtype=tg.float64)  # i0 of that is above the largest float64
    assert great.isfinite().all() and great[2] == 1 and great[0] == 0


def test_what_factories_take():
    made = tg.hann_window(4, dtype=tg.float64, layout=tg.strided, device="cpu", pin_memory=False, requires_grad=True)
    assert made.is_leaf and made.requires_grad
    assert windows.hann(4, requires_grad=True).requires_grad
    assert tg.hann_window(4, device="meta").shape == (4,)
    with pytest.raises(TypeError):
        tg.hann_window(4, out=tg.empty(4))
    with pytest.raises(TypeError):
        windows.hann(4, False)
    with pytest.raises(TypeError):
        windows.general_cosine(4, a=0.5)
    with pytest.raises(TypeError):
        tg.hamming_window(4, alpha=0.5)
    with pytest.raises(AttributeError, match="hannn"):
        _ = windows.hannn


def test_the_default_dtype_is_taken():
    tg.set_default_dtype(tg.float64)
    try:
        assert tg.hann_window(3).dtype == windows.hann(3).dtype == tg.float64
    finally:
        tg.set_default_dtype(tg.float32)


@pytest.mark.parametrize("name", NEWER)
def test_newer_windows_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    for n in (0, 1, 2, 3, 16, 33):
        for sym in (True, False):
            want = getattr(torch.signal.windows, name)(n, sym=sym, dtype=torch.float64, **NEEDED.get(name, {}))
            got = getattr(windows, name)(n, sym=sym, dtype=tg.float64, **NEEDED.get(name, {}))
            assert np.allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", OLDER)
def test_older_windows_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    for n in (0, 1, 2, 3, 16, 33):
        for periodic in (True, False):
            want = getattr(torch, f"{name}_window")(n, periodic, dtype=torch.float64)
            got = getattr(tg, f"{name}_window")(n, periodic, dtype=tg.float64)
            assert np.allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-14)
