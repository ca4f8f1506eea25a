"""Verdicts of gradcheck and gradgradcheck are PyTorch's, on right and on wrong functions."""

import warnings

import numpy as np
import pytest

import tinygrad_ext as tg

torch = pytest.importorskip("torch")


def scaled(lib, factor, undefined=False):
    """2 * x whose backward multiplies by factor(g)."""

    class Scaled(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(not undefined)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return factor(g)

    return Scaled.apply


def hooked(change):
    def fn(x):
        y = x.clone()
        y.register_hook(change)
        return y

    return fn


def two_outputs(lib, rule):
    class Two(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return rule(g, h)

    return Two.apply


def saved_twice(lib, second):
    """x ** 3 whose second derivative is right or not."""

    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * g * (x * x if second else x * x.detach())

    return Cube.apply


def zero_for_none(g, h):
    parts = [factor * t for factor, t in ((2, g), (3, h)) if t is not None]
    return sum(parts[1:], parts[0]) if parts else None


# name -> (function of a library that gives the function under test, dtype)
CASES = {
    "product": (lambda lib: lambda x: x * x * 3, "float64"),
    "several outputs": (lambda lib: lambda x: (x.sin(), [1][0] * x.exp()), "float64"),
    "integer output too": (lambda lib: lambda x: (x * 2, (x * 10).to(lib.int64)), "float64"),
    "reduction": (lambda lib: lambda x: (x * x).sum(), "float64"),
    "unused": (lambda lib: lambda x: lib.ones(2, dtype=lib.float64), "float64"),
    "cut": (lambda lib: lambda x: x.detach() * 2, "float64"),
    "half cut": (lambda lib: lambda x: x * x.detach(), "float64"),
    "one output cut": (lambda lib: lambda x: (x * 2, x.detach()), "float64"),
    "right factor": (lambda lib: scaled(lib, lambda g: g * 2), "float64"),
    "wrong factor": (lambda lib: scaled(lib, lambda g: g * 2.1), "float64"),
    "factor within rtol": (lambda lib: scaled(lib, lambda g: g * 2.0005), "float64"),
    "wrong sign": (lambda lib: scaled(lib, lambda g: -g * 2), "float64"),
    "constant added": (lambda lib: scaled(lib, lambda g: g * 2 + 1e-6), "float64"),
    "nan": (lambda lib: scaled(lib, lambda g: g * float("nan")), "float64"),
    "None for a gradient": (lambda lib: scaled(lib, lambda g: None), "float64"),
    "fails on None": (lambda lib: hooked(_fails_on_none), "float64"),
    "hook off": (lambda lib: hooked(lambda g: g if g is None else g + 1e-2), "float64"),
    "None handled": (lambda lib: two_outputs(lib, zero_for_none), "float64"),
    "None invented": (
        lambda lib: two_outputs(
            lib, lambda g, h: lib.ones(3, dtype=lib.float64) if g is None and h is None else zero_for_none(g, h)
        ),
        "float64",
    ),
    "cube": (lambda lib: saved_twice(lib, True), "float64"),
    "cube, wrong second": (lambda lib: saved_twice(lib, False), "float64"),
    "complex product": (lambda lib: lambda z: z * z, "complex128"),
    "complex conj": (lambda lib: lambda z: z * z.conj(), "complex128"),
    "complex abs": (lambda lib: lambda z: z.abs(), "complex128"),
    "complex to real and back": (lambda lib: lambda z: (z.real, z * 2j), "complex128"),
    "real to complex": (lambda lib: lambda x: lib.complex(x, x * x), "float64"),
    "complex wrong": (lambda lib: scaled(lib, lambda g: g * 2j), "complex128"),
    "complex conj forgotten": (lambda lib: lambda z: z * z.detach().conj(), "complex128"),
    "kink": (lambda lib: lambda x: x.relu(), "kink"),
}


def _fails_on_none(g):
    if g is None:
        raise RuntimeError("None")


def values(kind):
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal(3)
    if kind == "kink":
        drawn[1] = 0
    return drawn + 1j * rng.standard_normal(3) if kind == "complex128" else drawn


def verdict(lib, check, case, **options):
    """True, or the error."""
    make, kind = CASES[case]
    x = lib.from_numpy(values(kind)).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(lib.autograd, check)(make(lib), (x,), **options)
        except RuntimeError as error:
            return error


@pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("check", ["gradcheck", "gradgradcheck"])
@pytest.mark.parametrize("case", CASES)
def test_verdict_is_pytorchs(case, check, fast_mode):
    if check == "gradgradcheck" and case in ("unused", "cut"):
        pytest.skip("PyTorch's own TypeError: without differentiable outputs it drops func's arguments")
    want = verdict(torch, check, case, fast_mode=fast_mode)
    got = verdict(tg, check, case, fast_mode=fast_mode)
    assert (got is True) == (want is True), f"PyTorch: {want}\nours: {got}"
    if want is True:
        return
    for fragment in (
        "Jacobian mismatch for output 0 with respect to input 0",
        "While considering the imaginary part of complex outputs only",
        "not multiplied by grad_output",
        "expected to be zero",
        "handle undefined output grads",
        "to be undefined or zero when all output grads are undefined",
    ):
        assert (fragment in str(got)) == (fragment in str(want)), f"{fragment}\nPyTorch: {want}\nours: {got}"
    assert type(got).__name__ == type(want).__name__


@pytest.mark.parametrize("name", ["gradcheck", "gradgradcheck"])
def test_parameters_are_pytorchs(name):
    import inspect

    theirs = inspect.signature(getattr(torch.autograd, name)).parameters
    ours = inspect.signature(getattr(tg.autograd, name)).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    for p in theirs.values():
        assert (ours[p.name].default, ours[p.name].kind) == (p.default, p.kind)
