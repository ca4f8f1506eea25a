"""Which dtypes of `out=` an op takes: what its record says, and for PyTorch's table of samples what PyTorch takes."""

import importlib.util
import warnings

import numpy
import pytest

import tinygrad_ext as tg

DTYPES = ("float32", "float64", "int64", "complex64", "bool", "float16", "uint8")

# entries that take what PyTorch does not or refuse what it takes, and why
DIFFERENT = {
    "abs": "of complex numbers PyTorch casts, of others it does not",
    "bernoulli": "complex numbers are refused earlier",
    "cumprod": "PyTorch has no such loop for bool",
    "cumsum": "PyTorch has no such loop for bool",
    "diff": "PyTorch casts where there is nothing to subtract",
    "inner": "PyTorch casts where one operand has no dimensions",
    "linalg.matrix_power": "PyTorch casts for the powers 0 and 1",
    "logsumexp": "PyTorch leaves the imaginary parts away",
    "mean": "PyTorch leaves the imaginary parts away",
    "nanmean": "PyTorch has no such loop for complex numbers",
    "std": "PyTorch has no such loop for complex numbers",
    "var": "PyTorch has no such loop for complex numbers",
    **dict.fromkeys(
        [f"fft.{name}{kind}" for name in ("hfft", "irfft") for kind in ("", "2", "n")],
        "PyTorch writes no real numbers into complex ones there",
    ),
}


def test_a_product_takes_its_own_dtype_alone():
    a = tg.ones(2, 2)
    for dtype in DTYPES[1:]:
        out = tg.zeros(2, 2, dtype=getattr(tg, dtype))
        with pytest.raises(RuntimeError, match="matmul.*Expected out tensor to have dtype float, but got"):
            tg.matmul(a, a, out=out)
        assert not out.any()


def test_several_results_are_asked_one_by_one():
    out = tg.zeros(2), tg.zeros(2, dtype=tg.int32)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype long int, but got int"):
        tg.sort(tg.tensor([2.0, 1]), out=out)
    assert not out[0].any()


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "nansum"])
@pytest.mark.parametrize("dtype", ["int64", "float64", "complex64"])
def test_sums_are_computed_in_the_dtype_of_the_target(name, dtype):
    values = numpy.array([1.5, 2.5, 3.75], numpy.float32)
    if name == "nansum" and dtype != "float64":
        dtype = "float64"
    out = tg.zeros(3 if name.startswith("cum") else (), dtype=getattr(tg, dtype))
    assert getattr(tg, name)(tg.tensor(values), 0, out=out) is out
    assert out.numpy().tolist() == getattr(numpy, name)(values.astype(dtype), 0).tolist()


def test_a_sum_with_a_dtype_takes_no_other():
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double"):
        tg.sum(tg.ones(3), 0, dtype=tg.float32, out=tg.zeros((), dtype=tg.float64))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got c10::Half"):
        tg.cumsum(tg.ones(3), 0, dtype=tg.float32, out=tg.zeros(3, dtype=tg.float16))


def test_truths_are_written_as_bytes_too():
    out = tg.zeros((), dtype=tg.uint8)
    assert tg.all(tg.ones(3), out=out) is out and out.item() == 1
    with pytest.raises(RuntimeError, match="any only supports bool tensor for result, got: Long"):
        tg.any(tg.ones(3), out=tg.zeros((), dtype=tg.int64))


def _tables():
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("expecttest") is None:
        return []
    from tests.helpers.pytorchs_tables import op_db
    from tests.test_pytorch_samples import function_of

    return [e for e in op_db if e.supports_out and e.name not in DIFFERENT and function_of(e) is not None]


@pytest.mark.parametrize("entry", _tables(), ids=lambda entry: entry.formatted_name)
def test_what_pytorch_takes(entry):
    import torch

    from tests.test_pytorch_samples import function_of, ours
    from tinygrad_ext.testing.compare import flatten
    from tools import op_samples

    if op_samples.reason(entry):
        return
    fn = function_of(entry)
    for dtype in (torch.float32, torch.int64, torch.complex64, torch.bool):
        for sample in op_samples.samples(entry, dtype)[:3] if dtype in entry.dtypes else ():
            given = sample.args, sample.kwargs
            try:
                whole = entry(sample.input, *given[0], **given[1])
                args = ours((sample.input, *given))
            except Exception:
                continue
            shapes = [(tuple(t.shape), t.dtype) for t in flatten(whole) if isinstance(t, torch.Tensor)]
            for of_out in DTYPES:
                if all(dtype == getattr(torch, of_out) for _, dtype in shapes):
                    continue
                taken = []
                for library, call, (first, rest, named) in ((torch, entry, (sample.input, *given)), (tg, fn, args)):
                    out = tuple(library.zeros(shape, dtype=getattr(library, of_out)) for shape, _ in shapes)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        try:
                            call(first, *rest, **named, out=out[0] if isinstance(whole, torch.Tensor) else out)
                            taken.append(True)
                        except (RuntimeError, TypeError):
                            taken.append(False)
                assert taken[0] == taken[1], (
                    f"{sample.input!r} {given}: out of {of_out} taken by PyTorch, by us: {taken}"
                )
