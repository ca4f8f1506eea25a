"""Window functions: weights by which a stretch of a signal is multiplied before its transform.

A window of M points is computed in float64 and rounded once. It is symmetric, with M - 1 steps from end to end, or one
period of a window of M steps: what follows its last point is its first one again.
"""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.data.table import NAMED
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

_TITLES = {row.name: row.title for row in NAMED}
_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False"
)

# ---- the curves: points numbered from 0, and how many steps a period has ---------------------------------------------


def _cosines(k, steps, a):
    angle = k * (2 * math.pi / steps)
    found = tg.full_like(k, a[0])
    for i in range(1, len(a)):
        found = found + (angle * i).cos() * (-a[i] if i % 2 else a[i])
    return found


def _triangle(k, steps):
    return 1 - (k * (2 / steps) - 1).abs()


def _kaiser(k, steps, beta):
    """i0(beta r) / i0(beta) by the scaled function, which does not overflow; r runs along a half circle."""
    beta = abs(beta)
    x = (1 - (k * (2 / steps) - 1).square()).clamp_min(0).sqrt() * beta
    return tg.special.i0e(x) * (x - beta).exp() / tg.special.i0e(tg.full((), beta, dtype=k.dtype, device=k.device))


def _half_wave(k, steps):
    return ((k + 0.5) * (math.pi / steps)).sin()


def _bell(k, steps, std):
    return ((k - steps / 2) / std).square().mul(-0.5).exp()


def _decay(k, middle, tau):
    return ((k - middle).abs() / -tau).exp()


# ---- the older functions, at the top ---------------------------------------------------------------------------------


def _finished(window, dtype, requires_grad):
    window = window.to(dtype)
    return window.requires_grad_() if requires_grad else window


def _older(title, curve):
    """The function behind all overloads of one window; what a curve takes stands behind `periodic`."""

    def window(n, periodic, numbers, dtype, device, requires_grad):
        if n < 0:
            raise RuntimeError(f"{title} requires non-negative window_length, got window_length={n}")
        dtype = tg.get_default_dtype() if dtype is None else dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(f"{title} expects floating point dtypes, got: dtype={dtype}")
        if n < 2:
            return tg.ones(n, dtype=dtype, device=device, requires_grad=requires_grad)
        if dtype.is_complex:
            raise NotImplementedError(f"\"{title}\" not implemented for '{_TITLES[dtype.name]}': a window is real")
        k = tg.arange(n, dtype=tg.float64, device=device)
        return _finished(curve(k, n if periodic else n - 1, *numbers), dtype, requires_grad)

    return window


def _scipy(name, *fixed):
    """SciPy's window of the same name; that is periodic when it is not symmetric."""

    def reference(n, periodic=True, *numbers, dtype=None):
        import scipy.signal

        return getattr(scipy.signal.windows, name)(n, *fixed, *numbers, sym=not periodic)

    return reference


def _numpy_hamming(n, periodic=True, alpha=0.54, beta=0.46, dtype=None):
    import numpy

    if n < 2:
        return numpy.ones(n)
    return alpha - beta * numpy.cos(2 * numpy.pi * numpy.arange(n) / (n if periodic else n - 1))


_OLDER = {
    "hann_window": (
        lambda k, steps: _cosines(k, steps, (0.5, 0.5)),
        {"": "", "periodic": ", bool periodic"},
        _scipy("hann"),
        "(1 - cos) / 2 of an angle that goes around once",
    ),
    "hamming_window": (
        lambda k, steps, alpha=0.54, beta=0.46: _cosines(k, steps, (alpha, beta)),
        {
            "": "",
            "periodic": ", bool periodic",
            "periodic_alpha": ", bool periodic, float alpha",
            "periodic_alpha_beta": ", bool periodic, float alpha, float beta",
        },
        _numpy_hamming,
        "alpha - beta cos of an angle that goes around once, by default with 0.54 and 0.46",
    ),
    "blackman_window": (
        lambda k, steps: _cosines(k, steps, (0.42, 0.5, 0.08)),
        {"": "", "periodic": ", bool periodic"},
        _scipy("blackman"),
        "0.42 - 0.5 cos x + 0.08 cos 2 x of an angle x that goes around once",
    ),
    "bartlett_window": (
        _triangle,
        {"": "", "periodic": ", bool periodic"},
        _scipy("bartlett"),
        "A triangle from 0 to 1 and back",
    ),
    "kaiser_window": (
        lambda k, steps, beta=12.0: _kaiser(k, steps, beta),
        {"": "", "periodic": ", bool periodic", "beta": ", bool periodic, float beta"},
        lambda n, periodic=True, beta=12.0, dtype=None: _scipy("kaiser")(n, periodic, beta),
        "i0(beta sqrt(1 - x^2)) / i0(beta) for x from -1 to 1, with the Bessel function i0; beta is 12 by default",
    ),
}


def _older_samples(count):
    def samples(make):
        for n in (6, 5, 2, 1, 0):
            for periodic in (True, False)[: 1 + (count > 0)]:
                yield Sample(n, *(periodic, 0.5, 0.25)[:count])
        yield Sample(7, *(False, 3.0, 0.25)[:count], dtype=tg.float64)

    return samples


def _older_errors(name, count):
    numbers = (True, 0.5, 0.5)[:count]

    def call(n, **options):
        return lambda: functions[name](n, *numbers, **options)

    yield call(-1), RuntimeError, f"{name} requires non-negative window_length, got window_length=-1"
    yield call(3, dtype=tg.int64), RuntimeError, f"{name} expects floating point dtypes, got: dtype=torch.int64"
    yield call(3, dtype=tg.complex64), NotImplementedError, f"\"{name}\" not implemented for 'ComplexFloat'"


for _name, (_curve, _overloads, _reference, _text) in _OLDER.items():
    _window = _older(_name, _curve)
    for _overload, _takes in _overloads.items():
        _count = _takes.count(",")
        op(
            f"aten::{_name}{'.' * bool(_overload)}{_overload}(int window_length{_takes}, *, {_OPTIONS}) -> Tensor",
            compose=lambda n, *rest, count=_count, window=_window: window(
                n, rest[0] if count else True, rest[1:count], rest[count], rest[count + 2], rest[count + 4]
            ),
            jvp="none",
            variants="function",
            samples=_older_samples(_count),
            reference=_reference,
            errors=list(_older_errors(_name, _count)),
            doc=f"{_text}: window_length points of one period, or from end to end where periodic is False.",
        )

# ---- those of signal.windows -----------------------------------------------------------------------------------------


def _newer(title, curve, check=None, least=2):
    """The function of one window. A window of fewer points than `least` is of ones; curve(k, sym, ...) is the rest."""

    def window(n, *rest):
        *numbers, sym, dtype, layout, device, _, requires_grad = rest
        dtype = tg.get_default_dtype() if dtype is None else dtype
        if n < 0:
            raise ValueError(f"{title} requires non-negative window length, got M={n}")
        if dtype not in (tg.float32, tg.float64):
            raise ValueError(f"{title} expects float32 or float64 dtypes, got: {dtype}")
        if check is not None:
            check(sym, *numbers)
        if n < least:
            return tg.ones(n, dtype=dtype, device=device, requires_grad=requires_grad)
        k = tg.arange(n, dtype=tg.float64, device=device)
        return _finished(curve(k, n, sym, *numbers), dtype, requires_grad)

    return window


def _steps(n, sym):
    return n - 1 if sym else n


def _with_coefficients(k, n, sym, a):
    if not len(a):
        raise ValueError("Coefficients cannot be empty: a window of general_cosine is a sum over them")
    return _cosines(k, _steps(n, sym), a)


def _exponential(k, n, sym, center, tau):
    return _decay(k, (n if not sym and n > 1 else n - 1) / 2 if center is None else center, tau)


def _check_exponential(sym, center, tau):
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError(f"Center must be None for symmetric windows, got {center}: pass sym=False with it")


def _check_std(sym, std):
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")


def _check_beta(sym, beta):
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")


def _numpy_window(name):
    """SciPy's function; tau, std, beta and the others have its names."""

    def reference(M, **given):
        import scipy.signal

        needed = {"gaussian": {"std": 1.0}, "kaiser": {"beta": 12.0}, "general_hamming": {"alpha": 0.54}}
        given = {**needed.get(name, {}), **given}
        given.pop("dtype", None)
        return getattr(scipy.signal.windows, name)(M, **given)

    return reference


def _newer_samples(**numbers):
    def samples(make):
        for n in (6, 5, 2, 1, 0):
            yield Sample(n, **numbers)
            yield Sample(n, **numbers, sym=False)
        yield Sample(7, **numbers, dtype=tg.float64)
        if numbers and "a" not in numbers:
            yield Sample(4)

    return samples


# name: (arguments of the curve, the function, samples, what it is)
_NEWER = {
    "bartlett": (
        "",
        _newer("bartlett", lambda k, n, sym: _triangle(k, _steps(n, sym))),
        {},
        "A triangle from 0 to 1",
    ),
    "blackman": (
        "",
        _newer("blackman", lambda k, n, sym: _cosines(k, _steps(n, sym), (0.42, 0.5, 0.08))),
        {},
        "0.42 - 0.5 cos x + 0.08 cos 2 x of an angle x that goes around once",
    ),
    "cosine": (
        "",
        _newer("cosine", lambda k, n, sym: _half_wave(k, n if sym or n == 1 else n + 1), least=1),
        {},
        "Half a wave, sin(pi (k + 1 / 2) / M)",
    ),
    "exponential": (
        "float? center=None, float tau=1.0, ",
        _newer("exponential", _exponential, _check_exponential, 1),
        {"tau": 2.5},
        "exp(-|k - center| / tau), by default around the middle; center is for windows that are not symmetric",
    ),
    "gaussian": (
        "float std=1.0, ",
        _newer("gaussian", lambda k, n, sym, std: _bell(k, n if not sym and n > 1 else n - 1, std), _check_std, 1),
        {"std": 1.5},
        "exp(-k^2 / (2 std^2)), with k counted from the middle",
    ),
    "general_cosine": (
        "float[] a, ",
        _newer("general_cosine", _with_coefficients),
        {"a": [0.4, 0.3, 0.2, 0.1]},
        "Sum over i of (-1)^i a[i] cos(i x) of an angle x that goes around once",
    ),
    "general_hamming": (
        "float alpha=0.54, ",
        _newer("general_hamming", lambda k, n, sym, alpha: _cosines(k, _steps(n, sym), (alpha, 1 - alpha))),
        {"alpha": 0.7},
        "alpha - (1 - alpha) cos x of an angle x that goes around once",
    ),
    "hamming": (
        "",
        _newer("hamming", lambda k, n, sym: _cosines(k, _steps(n, sym), (0.54, 0.46))),
        {},
        "0.54 - 0.46 cos x of an angle x that goes around once",
    ),
    "hann": (
        "",
        _newer("hann", lambda k, n, sym: _cosines(k, _steps(n, sym), (0.5, 0.5))),
        {},
        "(1 - cos x) / 2 of an angle x that goes around once",
    ),
    "kaiser": (
        "float beta=12.0, ",
        _newer("kaiser", lambda k, n, sym, beta: _kaiser(k, _steps(n, sym), beta), _check_beta),
        {"beta": 3.0},
        "i0(beta sqrt(1 - x^2)) / i0(beta) for x from -1 to 1, with the Bessel function i0",
    ),
    "nuttall": (
        "",
        _newer("nuttall", lambda k, n, sym: _cosines(k, _steps(n, sym), (0.3635819, 0.4891775, 0.1365995, 0.0106411))),
        {},
        "Four cosines, by Nuttall's coefficients for low side lobes",
    ),
}
_WRONG = {
    "exponential": (
        ({"tau": 0.0}, "Tau must be positive, got: 0.0"),
        ({"center": 1.0}, "Center must be None for symmetric windows"),
    ),
    "gaussian": (({"std": -1.0}, "Standard deviation must be positive, got: -1.0"),),
    "kaiser": (({"beta": -1.0}, "beta must be non-negative, got: -1.0"),),
    "general_cosine": (({"a": []}, "Coefficients cannot be empty"),),
}


def _newer_errors(name, numbers):
    def call(n, **given):
        return lambda: functions[f"signal.windows.{name}"](n, **{**numbers, **given})

    yield call(-1), ValueError, f"{name} requires non-negative window length, got M=-1"
    yield call(3, dtype=tg.float16), ValueError, f"{name} expects float32 or float64 dtypes, got: torch.float16"
    for given, text in _WRONG.get(name, ()):
        yield call(3, **given), ValueError, text


for _name, (_takes, _window, _numbers, _text) in _NEWER.items():
    op(
        f"aten::{_name}.windows(int M, *, {_takes}bool sym=True, {_OPTIONS}) -> Tensor",
        compose=_window,
        jvp="none",
        variants="function",
        where="signal.windows",
        samples=_newer_samples(**_numbers),
        reference=_numpy_window(_name),
        errors=list(_newer_errors(_name, _numbers)),
        doc=f"{_text}: M points from end to end, or of one period where sym is False.",
    )
