"""Short-time transforms: there and back, beside PyTorch and SciPy, derivatives, warnings, wrong calls."""

import warnings

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.func import vmap


def drawn(*shape, dtype=tg.float64, seed=0):
    found = np.random.default_rng(seed).normal(size=shape)
    return tg.tensor(found).to(dtype)


@st.composite
def calls(draw):
    n_fft = draw(st.integers(4, 24))
    win_length = draw(st.integers(4, n_fft))
    return {
        "n_fft": n_fft,
        "win_length": win_length,
        "hop_length": draw(st.integers(1, max(win_length // 2, 1))),
        "normalized": draw(st.booleans()),
        "center": draw(st.booleans()),
    }


@given(calls(), st.integers(25, 80), st.sampled_from([(), (1,), (3,)]), st.booleans(), st.integers(0, 99))
@settings(deadline=None, max_examples=100)
def test_the_way_back_gives_the_signal(call, n, batch, halved, seed):
    x = drawn(*batch, n, seed=seed)
    window = tg.hamming_window(call["win_length"], dtype=tg.float64) + 0.1
    if not call["center"]:  # points that no window covers, at the edges, cannot come back
        call["win_length"], window = call["n_fft"], tg.hamming_window(call["n_fft"], dtype=tg.float64) + 0.1
    spectrum = tg.stft(x, window=window, onesided=halved, return_complex=True, **call)
    back = tg.istft(spectrum, window=window, onesided=halved, **call)
    known = min(back.shape[-1], n)
    assert known > n - call["hop_length"] - call["n_fft"]
    assert tg.allclose(back[..., :known], x[..., :known], atol=1e-10)
    if call["center"] and call["hop_length"] <= call["n_fft"] // 2:
        assert (
            x.stft(window=window, onesided=halved, return_complex=True, **call)
            .istft(window=window, onesided=halved, length=back.shape[-1], **call)
            .equal(back)
        )


@given(
    calls(),
    st.sampled_from(["float32", "float64", "complex64", "complex128"]),
    st.sampled_from(["reflect", "constant", "replicate", "circular"]),
    st.sampled_from([None, True, False]),
    st.sampled_from([(), (0,), (2,)]),
    st.sampled_from([None, "real", "complex"]),
    st.booleans(),
)
@settings(deadline=None, max_examples=150)
@pytest.mark.filterwarnings("ignore")
def test_transforms_are_pytorchs(call, dtype, pad_mode, onesided, batch, window, align):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(*batch, 40)) + 1j * rng.normal(size=(*batch, 40))
    x = np.asarray(x if "complex" in dtype else x.real).astype(dtype)
    real = {"float32": "float32", "complex64": "float32"}.get(dtype, "float64")
    if window is not None:
        w = rng.normal(size=call["win_length"]) + 1j * (window == "complex") * rng.normal(size=call["win_length"])
        window = (w if window == "complex" else w.real).astype(
            real if window == "real" else {"float32": "complex64"}.get(real, "complex128")
        )
    options = {"pad_mode": pad_mode, "onesided": onesided, "return_complex": True, **call}
    if not call["center"]:
        options["align_to_window"] = align
    results = []
    for lib, of in ((torch, torch.from_numpy), (tg, tg.from_numpy)):
        try:
            given = of(x)
            results.append(lib.stft(given, window=None if window is None else of(window), **options))
        except RuntimeError as error:
            results.append(error)
    want, got = results
    if isinstance(want, Exception):
        # PyTorch pads no batch of none, and reads beyond its memory where a window cannot stand in the middle
        off = align and not call["center"] and (call["n_fft"] - call["win_length"]) % 2
        assert isinstance(got, RuntimeError) or batch == (0,) or off
        return
    assert isinstance(got, tg.Tensor), got
    assert str(got.dtype) == str(want.dtype) and got.stride() == want.stride() and got.shape == tuple(want.shape)
    assert np.allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-4 if real == "float32" else 1e-12)


@given(
    calls(),
    st.sampled_from([(), (2,)]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 5, 21, 60]),
    st.sampled_from(["real", "complex"]),
)
@settings(deadline=None, max_examples=150)
@pytest.mark.filterwarnings("ignore")
def test_the_way_back_is_pytorchs(call, batch, onesided, return_complex, length, kind):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    rows = call["n_fft"] // 2 + 1 if onesided else call["n_fft"]
    x = rng.normal(size=(*batch, rows, 6)) + 1j * rng.normal(size=(*batch, rows, 6))
    window = rng.uniform(0.5, 1.5, call["win_length"]) + (0.3j if kind == "complex" else 0)
    results = []
    for lib, of in ((torch, torch.from_numpy), (tg, tg.from_numpy)):
        try:
            options = {"onesided": onesided, "return_complex": return_complex, "length": length, **call}
            results.append(lib.istft(of(x), window=of(window), **options))
        except RuntimeError as error:
            results.append(error)
    want, got = results
    if isinstance(want, Exception):
        assert isinstance(got, RuntimeError), (want, got)
        return
    assert isinstance(got, tg.Tensor), got
    assert str(got.dtype) == str(want.dtype) and got.shape == tuple(want.shape)
    assert np.allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-11)


def test_frames_are_scipys():
    x, window = drawn(64), tg.hann_window(16, dtype=tg.float64)
    _, _, want = scipy.signal.stft(
        x.numpy(), window=window.numpy(), nperseg=16, noverlap=12, boundary="even", padded=False
    )
    got = tg.stft(x, 16, 4, window=window, return_complex=True) / window.sum()
    assert np.allclose(got.numpy(), want)


@pytest.mark.parametrize("dtype", [tg.float64, tg.complex128], ids=str)
def test_derivatives_of_signal_and_window(dtype):
    x = drawn(2, 10, dtype=dtype).requires_grad_()
    window = (drawn(4, seed=1).abs() + 0.5).requires_grad_()
    onesided = dtype == tg.float64

    def there(x, window):
        return tg.stft(x, 6, 2, 4, window, onesided=onesided, return_complex=True)

    def back(spectrum, window):
        return tg.istft(spectrum, 6, 2, 4, window, onesided=onesided, length=9, return_complex=not onesided)

    spectrum = there(x, window).detach().requires_grad_()
    for function, of in ((there, x), (back, spectrum)):
        assert tg.autograd.gradcheck(function, (of, window))
        assert tg.autograd.gradgradcheck(function, (of, window))


def test_what_is_asked_without_a_window_warns():
    x = drawn(20)
    with pytest.warns(UserWarning, match="A window was not provided"):
        spectrum = tg.stft(x, 8, return_complex=True)
    assert spectrum.equal(tg.stft(x, 8, window=tg.ones(8, dtype=tg.float64), return_complex=True))
    with pytest.warns(UserWarning, match="A window was not provided"):
        back = tg.istft(spectrum, 8)
    assert tg.allclose(back, x)
    with pytest.warns(UserWarning, match="A window was not provided"):
        short = tg.stft(x, 8, win_length=4, return_complex=True)
    assert short.equal(tg.stft(x, 8, win_length=4, window=tg.ones(4, dtype=tg.float64), return_complex=True))
    window = tg.hann_window(8, dtype=tg.float64)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        parts = tg.stft(x, 8, window=window, return_complex=False)
    assert parts.equal(tg.view_as_real(tg.stft(x, 8, window=window, return_complex=True)))
    with pytest.warns(UserWarning, match="shorter than the length parameter"):
        back = tg.istft(spectrum, 8, window=tg.ones(8, dtype=tg.float64), length=30)
    assert back.shape == (30,) and back[24:].equal(tg.zeros(6, dtype=tg.float64))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tg.stft(x, 8, window=window, return_complex=True)


def test_windows_that_leave_gaps_are_refused():
    window = tg.hann_window(8, dtype=tg.float64)
    spectrum = tg.stft(drawn(40), 8, 8, window=window, return_complex=True)
    with pytest.raises(RuntimeError, match="window overlap add min: 0.0"):
        tg.istft(spectrum, 8, 8, window=window)
    spectrum = tg.stft(drawn(40), 8, 2, window=window, center=False, return_complex=True)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        tg.istft(spectrum, 8, 2, window=window, center=False)
    with pytest.raises(RuntimeError, match="input and window must be on the same device but got self on cpu"):
        tg.istft(spectrum, 8, 2, window=window.to("meta"))
    with pytest.raises(RuntimeError, match="Padding size should be less than"):
        tg.stft(drawn(4), 8, window=window, return_complex=True)
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        tg.stft(drawn(20).half(), 8, window=window.half(), return_complex=True)


def test_a_trace_takes_longer_signals_and_vmap_further_dimensions():
    window = tg.hann_window(8)

    def denoised(x):
        spectrum = tg.stft(x, 8, 2, window=window, return_complex=True)
        return tg.istft(spectrum * (spectrum.abs() > 0.5), 8, 2, window=window)

    traced = jit.trace(denoised, (drawn(2, 24, dtype=tg.float32),))
    for rows, n in ((2, 24), (5, 24), (1, 24), (2, 60)):
        x = drawn(rows, n, dtype=tg.float32, seed=n)
        assert traced(x).equal(denoised(x))
    x = drawn(3, 2, 24, dtype=tg.float32)
    assert tg.allclose(vmap(denoised)(x), tg.stack([denoised(row) for row in x]), atol=1e-6)
