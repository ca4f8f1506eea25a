"""`out=` of a wider dtype than the result has: the result, converted or computed in that dtype, or a refusal."""

import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import compare, sweep

REFUSALS = (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError)
WIDER = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float64",
    "int32": "int64",
    "complex64": "complex128",
}


def takes_out(op):
    """Whether one tensor can be given as out=; what makes tensors from numbers alone takes its dtype from that."""
    return (
        "out" in tg.registry.variants(op.record)
        and len(op.schema.returns) == 1
        and not op.schema.returns[0].is_list
        and any(a.type == "Tensor" for a in op.schema.args)
        and not sweep.is_random(op)
        and not op.record.determined
    )


OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops() if takes_out(op)}


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
@pytest.mark.parametrize("dtype", WIDER)
def test_the_result_is_converted(op, dtype):
    wider = getattr(tg, WIDER[dtype])
    for sample in sweep.samples(op, dtype)[:4]:
        with warnings.catch_warnings(), tg.no_grad():
            warnings.simplefilter("ignore")
            try:
                expected = sweep.call(op, sample.args, sample.kwargs)
                if expected.dtype is not getattr(tg, dtype):
                    continue
                out = tg.empty_like(expected, dtype=wider)
                sweep.call(op, sample.args, {**sample.kwargs, "out": out})
                if "adopts" in (op.record.tags or ""):
                    expected = sweep.call(op, sample.args, {"dtype": wider, **sample.kwargs})
            except REFUSALS:
                continue
        assert compare.same_bits([out], [expected.to(wider)]), f"{op.name} {sample}"


def test_a_target_of_another_dtype_is_taken_where_it_can_hold_the_result():
    flags = tg.tensor([[1, 0]], dtype=tg.uint8)
    assert not tg.all(flags, out=tg.ones((), dtype=tg.bool)) and tg.any(flags, 1, out=tg.zeros(1, dtype=tg.bool))
    wide = tg.empty(2, dtype=tg.complex128)
    assert tg.fft.fft(tg.ones(2), out=wide).tolist() == [2, 0] and tg.linalg.eigvals(tg.eye(2), out=wide).tolist() == [
        1,
        1,
    ]
    for dtype in (tg.float16, tg.float64, tg.int64, tg.complex64):
        assert tg.logspace(0, 2, 3, out=tg.empty(3, dtype=dtype)).tolist() == [1, 10, 100]
        assert tg.linspace(tg.tensor(0.0), 4, 3, out=tg.empty(0, dtype=dtype)).tolist() == [0, 2, 4]


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "prod"])
def test_a_real_target_of_complex_numbers_loses_no_part_silently(name):
    with pytest.raises(RuntimeError):
        getattr(tg, name)(tg.ones(2) + 1j, out=tg.empty(()))
