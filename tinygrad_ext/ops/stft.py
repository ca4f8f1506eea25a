"""Short-time Fourier transforms: frames of a signal that overlap, weighted and transformed; and the way back.

The frames are a view (unfold), the weighted sum of frames is that view's derivative, and the transforms are those of
torch.fft, so that nothing here has a rule of its own.
"""

import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

# the least weight, squares of all windows over one point added up, by which a point of a signal is divided
_LEAST_WEIGHT = 1e-11


def _asked(title, t, **given):
    """How a call begins in messages: what was asked of which tensor."""
    numbers = ", ".join(f"{name}={value}" for name, value in given.items())
    return f"{title}({t.dtype}{list(t.shape)}, {numbers})"


def _transform(name, t, n, normalized):
    """One of torch.fft's functions along the last dimension, of n points."""

    return functions["fft." + name](t, n, -1, "ortho" if normalized else None)


def _full_window(asked, window, t, n_fft, win_length, title):
    """The window with zeros on both sides up to n_fft points, or None for ones everywhere."""
    if window is not None:
        if window.device != t.device:
            raise RuntimeError(
                f"{title} input and window must be on the same device but got self on {t.device} and window on "
                f"{window.device}"
            )
        if window.dim() != 1 or window.shape[0] != win_length:
            wrong = "Invalid window shape. window has to be 1D and length of `win_length`"
            raise RuntimeError(
                f"{asked}: {wrong if title == 'istft' else 'expected a 1D window tensor of size equal to win_length'}"
                f"={win_length}, but got window with size {list(window.shape)}"
            )
    if win_length == n_fft:
        return window
    if window is None:
        window = tg.ones(win_length, dtype=t.dtype.to_real() if t.is_complex() else t.dtype, device=t.device)
    left = (n_fft - win_length) // 2
    return window.constant_pad_nd([left, n_fft - win_length - left])


def _warn(text):
    warnings.warn(text, UserWarning, stacklevel=4)


def _warn_of_no_window(says):
    _warn(
        "A window was not provided. A rectangular window will be applied, " + says + " Pass window=torch.ones(...) of "
        "win_length points where that is meant, else for example torch.hann_window(win_length)."
    )


# ---- there ---------------------------------------------------------------------------------------------------------


def _centered(t, n_fft, pad_mode):
    """With half a frame on both sides, so that the first frame's middle is the first point."""
    half = n_fft // 2
    if t.dim() == 1:
        return functions["nn.functional.pad"](t[None, None], (half, half), pad_mode)[0, 0]
    return functions["nn.functional.pad"](t[None], (half, half), pad_mode)[0]


def _stft(t, n_fft, hop, win_length, window, center, pad_mode, normalized, onesided, return_complex, align):
    if window is None:
        _warn_of_no_window("which is known to cause spectral leakage.")
    hop, win_length = n_fft // 4 if hop is None else hop, n_fft if win_length is None else win_length
    if center and align is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    asked = _asked("stft", t, n_fft=n_fft, hop_length=hop, win_length=win_length)
    is_complex = t.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs: True for a complex result, whose "
            "parts torch.view_as_real shows"
        )
    if return_complex is False:
        _warn("stft with return_complex=False is deprecated. Use torch.view_as_real on the complex result.")
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(f"{asked}: expected a tensor of floating point or complex values")
    if t.dim() not in (1, 2):
        raise RuntimeError(f"{asked}: expected a 1D or 2D tensor, a signal or a batch of them")
    if not t.shape[0]:
        raise RuntimeError(f"{asked}: expected at least one signal of at least one point, but got {list(t.shape)}")
    if center and n_fft > 0:
        t = _centered(t, n_fft, pad_mode)
    if n_fft <= 0 or n_fft > t.shape[-1]:
        raise RuntimeError(f"{asked}: expected 0 < n_fft <= {t.shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{asked}: expected hop_length > 0, but got hop_length={hop}")
    if win_length <= 0 or win_length > n_fft:
        raise RuntimeError(f"{asked}: expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex: pass onesided=False")
    window = _full_window(asked, window, t, n_fft, win_length, "stft")
    if align and win_length < n_fft:  # frames begin where their windows do, not their zeros
        left = (n_fft - win_length) // 2
        t = t.constant_pad_nd([left, n_fft - win_length - left])
    frames = t.unfold(-1, n_fft, hop)
    if window is not None:
        frames = frames * window
    half = not is_complex if onesided is None else onesided
    found = _transform("rfft" if half else "fft", frames, n_fft, normalized).transpose(-1, -2)
    return tg.view_as_real(found) if return_complex is False else found


# ---- and back ------------------------------------------------------------------------------------------------------


def _check_spectrum(asked, t, n_fft, hop, win_length, onesided):
    if not t.numel():
        raise RuntimeError(f"{asked}: input tensor cannot be empty.")
    if t.dim() not in (2, 3):
        raise RuntimeError(
            f"{asked}: expected a tensor with 2 or 3 dimensions, numbers by frames behind a batch, but got {t.dim()}"
        )
    if not 0 < hop <= win_length:
        raise RuntimeError(f"{asked}: expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{asked}: expected 0 < win_length <= n_fft")
    want = n_fft // 2 + 1 if onesided else n_fft
    if t.shape[-2] != want:
        raise RuntimeError(
            f"{asked}: expected the frequency dimension (the last but one) of the input tensor to match "
            f"{'n_fft / 2 + 1 when onesided=True' if onesided else 'n_fft when onesided=False'}, {want}, but got "
            f"{t.shape[-2]}"
        )


def _overlapped(frames, n_fft, hop):
    """The sum of frames (..., frames, n_fft), each hop points behind the one before it."""
    length = n_fft + hop * (frames.shape[-2] - 1)
    return frames._unfold_backward([*frames.shape[:-2], length], frames.dim() - 2, n_fft, hop)


def _check_weights(asked, weights):
    if hasattr(weights, "level"):  # carried: it has no elements, and what is computed with it is not checked
        return
    if weights.device.type != "meta" and not weights.abs().min().item() > _LEAST_WEIGHT:
        raise RuntimeError(
            f"{asked}: window overlap add min: {weights.abs().min().item()}, where the squares of the windows over "
            f"each point are to have a sum above {_LEAST_WEIGHT}. With center=True the edges of a signal count less; a "
            "smaller hop_length leaves no gaps."
        )


def _istft(t, n_fft, hop, win_length, window, center, normalized, onesided, length, return_complex):
    if window is None:
        _warn_of_no_window("which gives the signal back only of an stft without one.")
    hop, win_length = n_fft // 4 if hop is None else hop, n_fft if win_length is None else win_length
    if not t.is_complex():
        raise RuntimeError(
            f"istft requires a complex-valued input tensor matching the output from stft with return_complex=True, got "
            f"{t.dtype}."
        )
    asked = _asked("istft", t, n_fft=n_fft, hop_length=hop, win_length=win_length, center=center)
    onesided = t.dim() > 1 and t.shape[-2] != n_fft if onesided is None else onesided
    _check_spectrum(asked, t, n_fft, hop, win_length, onesided)
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex: pass onesided=False")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    window = _full_window(asked, window, t, n_fft, win_length, "istft")
    points = n_fft + hop * (t.shape[-1] - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else points - start
    if end <= start or start >= points:
        raise RuntimeError(f"{asked}: no point of the signal is left, from {start} to {end} of {points}")

    frames = t.transpose(-1, -2)
    if return_complex:
        frames = _transform("ifft", frames, n_fft, normalized)
    else:
        frames = _transform("irfft", frames, n_fft, normalized)
    if window is None:
        window = tg.ones(n_fft, dtype=frames.dtype, device=t.device)
    kept = min(end, points) - start
    signal = _overlapped(frames * window, n_fft, hop).narrow(-1, start, kept)
    weights = _overlapped(window.square().expand(t.shape[-1], n_fft), n_fft, hop).narrow(-1, start, kept)
    _check_weights(asked, weights)
    signal = signal / weights
    if end > points:
        _warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            f"Of length={end - start} there are {kept}: check center and hop_length."
        )
        signal = signal.constant_pad_nd([0, end - points])
    return signal


# ---- the records ---------------------------------------------------------------------------------------------------


def _numpy_full(window, win_length, n_fft):
    import numpy

    win_length = n_fft if win_length is None else win_length
    left = (n_fft - win_length) // 2
    return numpy.pad(window, (left, n_fft - win_length - left)), left, n_fft - win_length - left


def _numpy_stft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", **options):
    import numpy

    window, left, right = _numpy_full(window, win_length, n_fft)
    edges, last = [(0, 0)] * (x.ndim - 1), n_fft // 2
    if center:
        mode = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}[pad_mode]
        x = numpy.pad(x, [*edges, (last, last)], mode)
    elif options.get("align_to_window"):
        x = numpy.pad(x, [*edges, (left, right)])
    frames = numpy.lib.stride_tricks.sliding_window_view(x, n_fft, -1)[..., :: hop_length or n_fft // 4, :] * window
    half = options.get("onesided")
    half = not numpy.iscomplexobj(frames) if half is None else half
    norm = "ortho" if options.get("normalized") else None
    found = (numpy.fft.rfft if half else numpy.fft.fft)(frames, norm=norm).swapaxes(-1, -2)
    if options.get("return_complex") is False:
        return numpy.stack([found.real, found.imag], -1)
    return found


def _numpy_istft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, **options):
    import numpy

    window, _, _ = _numpy_full(window, win_length, n_fft)
    hop, norm = hop_length or n_fft // 4, "ortho" if normalized else None
    frames = x.swapaxes(-1, -2)
    frames = (
        numpy.fft.ifft(frames, n_fft, norm=norm)
        if options.get("return_complex")
        else numpy.fft.irfft(frames[..., : n_fft // 2 + 1], n_fft, norm=norm)
    )
    points = n_fft + hop * (x.shape[-1] - 1)
    signal, weights = numpy.zeros((*x.shape[:-2], points), frames.dtype), numpy.zeros(points, (window**2).dtype)
    for k in range(x.shape[-1]):
        signal[..., k * hop : k * hop + n_fft] += frames[..., k, :] * window
        weights[k * hop : k * hop + n_fft] += window**2
    start = n_fft // 2 if center else 0
    length = options.get("length")
    end = points - start if length is None else start + length
    with numpy.errstate(all="ignore"):
        found = (signal / weights)[..., start:end]
    return numpy.pad(found, [(0, 0)] * (found.ndim - 1) + [(0, max(end - points, 0))])


def _signals(make):
    yield Sample(make(12), 4, window=make(4), return_complex=True)
    yield Sample(make(2, 9), 6, 2, 4, make(4), pad_mode="constant", normalized=True, return_complex=True)
    yield Sample(make(3, 11), 5, 3, window=make(5), center=False, onesided=False, return_complex=True)
    yield Sample(make(8), 4, 2, window=make(4), pad_mode="replicate", return_complex=True)
    yield Sample(make(9), 6, 2, 4, make(4), False, return_complex=True, align_to_window=True)


_HANN = [0.0, 0.25, 0.75, 1.0, 0.75, 0.25]


def _spectra(make):
    yield Sample(make(4, 5), 6, 2, window=make.of(_HANN))
    yield Sample(make(2, 3, 4), 4, 1, 3, make.of([0.5, 1.0, 0.25]), normalized=True)
    yield Sample(make(3, 3), 5, 2, window=make.of([0.5, 1.0, 2.0, 1.0, 0.5]), center=False, length=7)
    yield Sample(make(2, 5, 4), 5, 2, window=make.of([0.5, 1.0, 2.0, 1.0, 0.5]), length=9)
    yield Sample(make(4, 4), 4, 2, window=make(4, low=0.5, high=1.5), onesided=False, return_complex=True)


def _wrong(name, tensor, *args, points, **given):
    """A call that must raise, with a window of so many points."""
    return lambda: functions[name](tensor(), *args, window=zeros(points), **given)


def _signal():
    return zeros(20)


def _spectrum():
    return zeros(5, 11, dtype=tg.complex64)


op(
    "aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    'bool center=True, str pad_mode="reflect", bool normalized=False, bool? onesided=None, '
    "bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    compose=_stft,
    types="float complex",
    variants="function method",
    samples=_signals,
    reference=_numpy_stft,
    errors=[
        (_wrong("stft", _signal, 8, points=8), RuntimeError, "stft requires the return_complex parameter"),
        (lambda: tg.zeros(0, 9).stft(4, window=tg.ones(4), return_complex=True), RuntimeError, "at least one signal"),
        (
            _wrong("stft", _signal, 8, 0, points=8, return_complex=True),
            RuntimeError,
            "stft(torch.float32[20], n_fft=8, hop_length=0, win_length=8): expected hop_length > 0",
        ),
        (
            _wrong("stft", _signal, 8, win_length=9, points=9, return_complex=True),
            RuntimeError,
            "expected 0 < win_length <= n_fft, but got win_length=9",
        ),
        (
            _wrong("stft", _signal, 8, points=7, return_complex=True),
            RuntimeError,
            "expected a 1D window tensor of size equal to win_length=8, but got window with size [7]",
        ),
        (
            _wrong("stft", _signal, 21, points=21, center=False, return_complex=True),
            RuntimeError,
            "expected 0 < n_fft <= 20, but got n_fft=21",
        ),
        (
            _wrong("stft", lambda: zeros(2, 2, 20), 8, points=8, return_complex=True),
            RuntimeError,
            "expected a 1D or 2D tensor",
        ),
        (
            _wrong("stft", lambda: zeros(20, dtype=tg.int64), 8, points=8, return_complex=True),
            RuntimeError,
            "expected a tensor of floating point or complex values",
        ),
        (
            _wrong("stft", lambda: zeros(20, dtype=tg.complex64), 8, points=8, onesided=True),
            RuntimeError,
            "Cannot have onesided output if window or input is complex",
        ),
        (
            _wrong("stft", _signal, 8, points=8, return_complex=True, align_to_window=True),
            RuntimeError,
            "align_to_window should only be set when center = false",
        ),
    ],
    doc="Transforms of frames of n_fft points, hop_length apart (n_fft // 4), each weighted by the window: numbers by "
    "frames, behind a batch. center puts half a frame on both sides, by pad_mode; normalized divides by sqrt(n_fft); "
    "onesided, for reals, leaves out what are conjugates. A window of win_length points stands in the middle of its "
    "frame; align_to_window lets the first one begin at the first point.",
)

op(
    "aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) "
    "-> Tensor",
    compose=_istft,
    types="complex",
    variants="function method",
    samples=_spectra,
    reference=_numpy_istft,
    errors=[
        (_wrong("istft", _signal, 8, points=8), RuntimeError, "istft requires a complex-valued input tensor"),
        (_wrong("istft", _spectrum, 8, points=8), RuntimeError, "window overlap add min: 0.0"),
        (_wrong("istft", _spectrum, 8, 9, points=8), RuntimeError, "expected 0 < hop_length <= win_length"),
        (_wrong("istft", _spectrum, 8, None, 9, points=9), RuntimeError, "expected 0 < win_length <= n_fft"),
        (_wrong("istft", _spectrum, 8, points=7), RuntimeError, "Invalid window shape"),
        (
            _wrong("istft", _spectrum, 10, points=10),
            RuntimeError,
            "to match n_fft / 2 + 1 when onesided=True, 6, but got 5",
        ),
        (
            _wrong("istft", _spectrum, 8, points=8, return_complex=True),
            RuntimeError,
            "Cannot have onesided output if window or input is complex",
        ),
        (
            _wrong("istft", lambda: _spectrum()[:, :0], 8, points=8),
            RuntimeError,
            "input tensor cannot be empty",
        ),
        (_wrong("istft", _spectrum, 8, points=8, length=0), RuntimeError, "no point of the signal is left"),
    ],
    doc="The signal whose stft comes nearest, by least squares: weighted frames added up and divided by the sum of the "
    "windows' squares, which must not be zero anywhere. length cuts, or puts zeros behind; without it a centered "
    "signal loses what was put around it.",
)
