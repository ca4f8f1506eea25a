"""The op table against itself, NumPy and PyTorch: every sample, in every dtype and memory layout.

`pytest -k exp` answers "where is exp tested". What a record cannot have stands in its `gaps` with a reason; the
number of gaps is fixed here and may only fall.
"""

import functools
import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import battery, beside_torch, compare, sweep

OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops()}
GAPS_AT_MOST = 44  # 8 of them of draws whose slopes are those of a distribution, not of the program that draws
HAVE_TORCH = importlib.util.find_spec("torch") is not None

every_op = pytest.mark.parametrize("op", OPS.values(), ids=OPS)


@pytest.fixture(autouse=True)
def _quiet():
    """Resizing an out= tensor and other announced behaviour is not what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def gap(op, check):
    """Skip a check that the record declares missing."""
    if check in (op.record.gaps or {}):
        pytest.skip(f"gap: {op.record.gaps[check]}")


def samples(op, dtype, requires_grad=False):
    found = sweep.samples(op, dtype, requires_grad)
    assert found, f"{op.name} has no samples"
    return found


@every_op
def test_matches_its_reference(op):
    gap(op, "reference")
    if sweep.reference(op) is None:
        pytest.skip("the record names no NumPy function")
    for dtype in sweep.supported(op):
        if dtype == "bfloat16":
            continue  # NumPy has none; the PyTorch comparison covers it
        for sample in samples(op, dtype):
            sweep.reference_agrees(op, sample, dtype)


@every_op
def test_gives_the_same_bits_in_every_layout(op):
    gap(op, "layout")
    for dtype in sweep.supported(op):
        for sample in samples(op, dtype):
            sweep.layout_independent(op, sample, dtype)


@every_op
def test_gives_the_same_bits_with_any_number_of_threads(op):
    gap(op, "threads")
    for dtype in ("float32", "int64"):
        if dtype in sweep.supported(op):
            for sample in samples(op, dtype)[:1]:
                sweep.thread_independent(op, sample, dtype)


@every_op
def test_other_dtypes_work_or_are_refused_by_name(op):
    gap(op, "dtypes")
    title = op.name.split("::")[1].split(".")[0]
    for dtype in sorted(set(sweep.ALL_DTYPES) - set(sweep.supported(op))):
        for sample in sweep.samples(op, dtype)[:2]:
            try:
                sweep.call(op, sample.args, sample.kwargs)
            except (NotImplementedError, RuntimeError, TypeError) as refusal:
                text = str(refusal)
                assert not isinstance(refusal, NotImplementedError) or "not implemented for" in text or title in text, (
                    f"{op.name} in {dtype}: {refusal!r}"
                )


@every_op
def test_takes_0d_and_empty_operands(op):
    gap(op, "odd shapes")
    for dtype in ("float32", "int64"):
        if dtype in sweep.supported(op):
            for sample in samples(op, dtype):
                sweep.survives_odd_shapes(op, sample)


@every_op
def test_inplace_form_agrees(op):
    if "inplace" not in tg.registry.variants(op.record):
        pytest.skip("no in-place form")
    gap(op, "inplace")
    for dtype in sweep.supported(op):
        for sample in samples(op, dtype):
            if isinstance(sample.args[0], tg.Tensor):
                sweep.inplace_agrees(op, sample, dtype)


@every_op
def test_out_form_agrees(op):
    if "out" not in tg.registry.variants(op.record):
        pytest.skip("no out= form")
    gap(op, "out")
    for dtype in sweep.supported(op):
        for sample in samples(op, dtype):
            sweep.out_agrees(op, sample, dtype)


@every_op
def test_shape_rule_agrees(op):
    gap(op, "shape")
    for dtype in ("float32", "int64"):
        if dtype in sweep.supported(op):
            for sample in samples(op, dtype):
                sweep.shape_rule_agrees(op, sample, dtype)


@every_op
@pytest.mark.parametrize("order", [1, 2], ids=["first", "second"])
def test_derivatives(op, order):
    gap(op, "gradcheck" if order == 1 else "gradgradcheck")
    if "float64" not in sweep.supported(op):
        pytest.skip("not a floating op")
    for sample in samples(op, "float64", requires_grad=True):
        sweep.derivatives_check(op, sample, order)


@every_op
def test_derivatives_of_complex_numbers(op):
    """Also by complex factors such as alpha and beta, which the gradient conjugates."""
    gap(op, "gradcheck")
    if "complex128" not in sweep.supported(op):
        pytest.skip("takes no complex numbers")
    orders = (1,) if "gradgradcheck" in (op.record.gaps or {}) else (1, 2)
    for sample in samples(op, "complex128", requires_grad=True):
        if all(t.numel() < 100 for t in sweep.leaves(sample.args, sample.kwargs, tg.Tensor)):
            for variant in filter(None, (sample, sweep.complex_factors(op, sample))):
                for order in orders:
                    sweep.derivatives_check(op, variant, order)


@every_op
def test_derivatives_of_complex_numbers_along_one_direction(op):
    """The fast mode of both checks, on the first sample that has a derivative."""
    gap(op, "gradcheck")
    if "complex128" not in sweep.supported(op):
        pytest.skip("takes no complex numbers")
    orders = (1,) if "gradgradcheck" in (op.record.gaps or {}) else (1, 2)
    for sample in samples(op, "complex128", requires_grad=True):
        if all([sweep.derivatives_check(op, sample, order, fast_mode=True) for order in orders]):
            break


@every_op
def test_backward_runs_wherever_forward_does(op):
    for dtype in sweep.KINDS["half"] + sweep.KINDS["complex"]:
        for sample in sweep.samples(op, dtype, requires_grad=True):
            sweep.backward_runs(op, sample, f"{op.name} {sample} in {dtype}")


# those of the battery for plugins' ops that no test above makes
CONTRACT = [
    "schema",
    "mutation",
    "aliasing",
    "repeat",
    "autograd",
    "meta_gradients",
    "override",
    "pickle",
    "settings",
    "release",
]


@every_op
def test_keeps_the_contract_of_plugins_ops(op):
    report = battery.check_op(op, only=CONTRACT)
    assert not report.of("failed"), str(report)


@functools.lru_cache(maxsize=1)
def golden():
    """op name -> {(dtype, sample, result): array}: PyTorch 2.13's results, see tests/golden/make_ops.py."""
    found = {}
    with np.load(Path(__file__).parent / "golden" / "ops.npz") as stored:
        for key in stored.files:
            name, dtype, i, j = key.split("|")
            found.setdefault(name, {})[dtype, int(i), int(j)] = stored[key]
    return found


@every_op
def test_equals_golden_values(op):
    gap(op, "torch")
    wanted = golden().get(op.name)
    if wanted is None:
        pytest.skip("PyTorch has no such op, or it gives no tensor")
    for dtype in {d for d, _, _ in wanted}:
        for i, sample in enumerate(samples(op, dtype)):
            results = [wanted[k] for k in sorted(wanted) if k[:2] == (dtype, i)]
            if results:
                got = [r for r in compare.flatten(sweep.call(op, sample.args, sample.kwargs)) if r is not None]
                compare.assert_close(got, results, dtype, f"{op.name} {sample} in {dtype}", check_dtype=False)


@every_op
@pytest.mark.skipif(not HAVE_TORCH, reason="PyTorch is not installed: pip install torch==2.13.0 to compare")
def test_equals_pytorch(op):
    import torch

    gap(op, "torch")
    if beside_torch.torch_function(op, torch) is None:
        pytest.skip(f"PyTorch has no {op.name}")
    for dtype in sweep.ALL_DTYPES:
        for sample in sweep.samples(op, dtype, requires_grad=True):
            beside_torch.against_torch(op, sample, dtype, torch)


@every_op
def test_error_samples_raise(op):
    for make, error, fragment in op.record.errors or ():
        with pytest.raises(error) as raised:
            make()
        assert fragment in str(raised.value), f"{op.name}: {raised.value!r} lacks {fragment!r}"


@every_op
def test_record_is_complete(op):
    record = op.record
    assert record.doc and record.doc.strip().endswith("."), f"{op.name} needs a sentence of doc"
    if op.kernel_kind == "kernel":
        assert record.shape is None, f"{op.name}: a kernel in C brings its own shape rule"
    elif op.kernel_kind in ("boxed", "python") and not op.is_view_op:
        assert record.shape is not None or "shape" in (record.gaps or {}), f"{op.name} needs a shape rule"
    for check, reason in (record.gaps or {}).items():
        assert len(reason) > 10, f"{op.name}: the gap {check!r} needs a reason"


def test_the_number_of_gaps_only_falls():
    gaps = [f"{op.name}: {check}" for op in OPS.values() for check in op.record.gaps or {}]
    assert len(gaps) <= GAPS_AT_MOST, "\n".join(gaps)
