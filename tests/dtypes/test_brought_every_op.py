"""Every op takes the dtype of a plugin: kernels give what float32 gives, rounded once; others round at each part."""

import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext import library
from tinygrad_ext.testing import sweep

OPS = {
    op.name.removeprefix("aten::"): op
    for op in sweep.ops()
    if "float32" in sweep.supported(op) and not sweep.is_random(op) and not sweep.tagged(op, "unset")
}
KERNELS = [name for name, op in OPS.items() if op.record.compose is None]
# kernels whose results are none that was rounded
APART = {
    "linspace": "no operand has the dtype",
    "view.dtype": "shows the codes",
    "_neg_view": "which numbers a code and its negative stand for, its plugin alone knows",
    "view_as_complex": "there are no complex numbers of it",
    "_eig": "its results become complex numbers, which are of float32",
    "_softmax_backward_data": "is told the dtype of its result",
    "_log_softmax_backward_data": "is told the dtype of its result",
}
# which ask for a floating dtype by name
REFUSING = {"polar", "complex", "view_copy.dtype", "view_as_complex_copy", "quantile", "quantile.scalar", "nanquantile"}
REFUSING |= {"nanquantile.scalar"}


def number(code):
    """A sign, five bits of exponent, two of mantissa."""
    sign, exponent, mantissa = -1.0 if code & 128 else 1.0, code >> 2 & 31, code & 3
    if exponent == 31:
        return sign * float("nan" if mantissa else "inf")
    return sign * (mantissa / 4 * 2.0**-14 if exponent == 0 else (1 + mantissa / 4) * 2.0 ** (exponent - 15))


@pytest.fixture(scope="module")
def toy():
    with library.Library("aten", "IMPL") as lib:
        yield library.register_dtype("toy_of_every_op", values=[number(code) for code in range(256)], lib=lib)


def turned(value, dtype, floats):
    """A value with its tensors of these dtypes in another one."""
    if isinstance(value, tg.Tensor):
        return value.to(dtype) if value.dtype in floats else value.clone()
    if isinstance(value, dict):
        return {k: turned(v, dtype, floats) for k, v in value.items()}
    return type(value)(turned(v, dtype, floats) for v in value) if isinstance(value, (list, tuple)) else value


def pair(op, sample, toy):
    """The call with operands of the dtype, and with the same numbers in float32."""
    coded = turned((sample.args, sample.kwargs), toy, (tg.float32,))
    return coded, turned(coded, tg.float32, (toy,))


def row(result):
    return [r for part in result for r in row(part)] if isinstance(result, (list, tuple)) else [result]


@pytest.mark.parametrize("name", sorted(set(KERNELS) - set(APART)))
def test_a_kernel_gives_the_float32_result_rounded_once(name, toy):
    op = OPS[name]
    for sample in sweep.samples(op, "float32")[:2]:
        (args, kwargs), (wide, options) = pair(op, sample, toy)
        got, want = row(sweep.call(op, args, kwargs)), row(sweep.call(op, wide, options))
        assert len(got) == len(want)
        for g, w in zip(got, want):
            if not isinstance(w, tg.Tensor):
                assert g == w
                continue
            w = w.to(toy) if g.dtype is toy else w
            assert g.dtype is w.dtype and g.shape == w.shape
            assert str(g.tolist()) == str(w.tolist()), sample


@pytest.mark.parametrize("name", sorted(set(OPS) - set(KERNELS)))
def test_a_composite_runs_or_refuses_the_dtype(name, toy):
    op = OPS[name]
    for sample in sweep.samples(op, "float32")[:1]:
        (args, kwargs), (wide, options) = pair(op, sample, toy)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name in REFUSING:
                with pytest.raises(RuntimeError):
                    sweep.call(op, args, kwargs)
                continue
            got, want = row(sweep.call(op, args, kwargs)), row(sweep.call(op, wide, options))
        assert [getattr(g, "shape", None) for g in got] == [getattr(w, "shape", None) for w in want]
