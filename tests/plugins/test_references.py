"""References compute in float64: a correct op passes in every dtype that it takes, a wrong one fails in each."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.testing import check_op, sweep

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64"


def floating(fn):
    """As a plugin brings what it is given to floats, and half numbers back."""

    def kernel(x, *rest):
        if x.is_complex():
            raise TypeError("real numbers only")
        wide = x if x.dtype in (tg.float32, tg.float64) else x.float()
        found = fn(wide, *rest)
        return found.half() if x.dtype == tg.float16 and isinstance(found, tg.Tensor) else found

    return kernel


# name -> (the op, its reference, samples or None)
RIGHT = {
    "exp": (floating(tg.exp), np.exp, None),
    "sqrt of a sum of squares": (floating(lambda x: (x**2 + 1).sqrt()), lambda x: np.sqrt(np.square(x) + 1), None),
    "sigmoid": (floating(tg.sigmoid), lambda x: 1 / (1 + np.exp(-(x * 1.0))), None),
    "norm": (floating(lambda x: x.square().sum().sqrt()), lambda x: np.sqrt(np.sum(x * 1.0 * x)), None),
    "branches": (
        floating(lambda x: tg.where(x > 0, x, tg.expm1(x))),
        lambda x: np.where(x > 0, x, np.expm1(x)),
        None,
    ),
    "concatenated": (floating(lambda x: tg.cat([x, x]).exp()), lambda x: np.exp(np.concatenate([x, x])), "rows"),
    "in place": (floating(lambda x: x.exp() + 1), lambda x: in_place(np.exp(x)), None),
    "two results": (floating(lambda x: (tg.exp(x), tg.sin(x))), lambda x: (np.exp(x), np.sin(x)), None),
    "large": (floating(lambda x: x * 40_000.0), lambda x: x * 40_000.0, None),
    "integers wrap": (lambda x: x * 100, lambda x: x * np.asarray(100).astype(x.dtype), "ints"),
    "places": (floating(lambda x, i: tg.exp(x[i])), lambda x, i: np.exp(x[i]), "places"),
}


def in_place(x):
    x += 1
    return x


SAMPLES = {
    None: lambda make: [Sample(make(2, 3)), Sample(make(4))],
    "rows": lambda make: [Sample(make(3))],
    "ints": lambda make: [Sample(make(5))],
    "places": lambda make: [Sample(make(4), tg.tensor([2, 0]))],
}


def checked(register_temporarily, kernel, reference, samples, types):
    several = samples == "places"
    returns = "(Tensor, Tensor)" if reference is RIGHT["two results"][1] else "Tensor"
    op = register_temporarily.op(
        f"refs::f(Tensor self{', Tensor other' if several else ''}) -> {returns}",
        kernel=kernel,
        reference=reference,
        samples=SAMPLES[samples],
        types=types,
    )
    return check_op(op, only=["reference"]).results[0]


def kinds(name):
    return "int" if name == "integers wrap" else None


@pytest.mark.parametrize("name", RIGHT)
def test_a_correct_op_passes_in_every_dtype(name, register_temporarily):
    kernel, reference, samples = RIGHT[name]
    result = checked(register_temporarily, kernel, reference, samples, kinds(name))
    assert result.status == "passed", str(result)
    assert result.cases >= (5 if kinds(name) else 9)


@pytest.mark.parametrize("dtype", DTYPES.split())
@pytest.mark.parametrize("name", ["exp", "sqrt of a sum of squares", "branches", "places"])
def test_an_op_that_is_wrong_in_one_dtype_fails(name, dtype, register_temporarily):
    kernel, reference, samples = RIGHT[name]

    def wrong(x, *rest):
        found = kernel(x, *rest)
        return found * 1.5 + 0.5 if x.dtype == getattr(tg, dtype) else found

    result = checked(register_temporarily, wrong, reference, samples, None)
    assert result.status == "failed" and result.dtype == dtype, str(result)


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_no_function_of_numpy_computes_in_less_than_float64(dtype):
    seen = []

    def watched(x):
        for result in (np.exp(x), x / 3, np.mean(x), np.hypot(x, 1), np.add.reduce(x * 0.5)):
            seen.append(np.asarray(result).dtype.name)
        return np.exp(x)

    class Op:
        name = "watched"

        class record:
            promote, reference = None, watched

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "call", lambda op, args, kwargs: floating(tg.exp)(*args))
        sweep.reference_agrees(Op, Sample(tg.ones(3, dtype=getattr(tg, dtype))), dtype)
    assert set(seen) == {"float64"}
