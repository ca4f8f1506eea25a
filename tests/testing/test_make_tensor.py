"""testing.make_tensor draws what PyTorch's draws."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import make_tensor

DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "int64", "int32", "uint8", "int8", "bool"]
ASKED = [{}, {"low": 0, "high": 2}, {"noncontiguous": True}, {"exclude_zero": True}]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_values_and_layouts_are_pytorchs(dtype, asked):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    results = []
    for library, make in ((torch, torch.testing.make_tensor), (tg, make_tensor)):
        library.manual_seed(0)
        made = make(3, 4, dtype=getattr(library, dtype), device="cpu", **asked)
        wide = made.to(library.complex128 if made.is_complex() else library.float64)
        results.append((wide.numpy(), made.stride(), str(made.dtype)))
    np.testing.assert_array_equal(results[1][0], results[0][0])
    assert results[1][1:] == results[0][1:]


def test_ranges_and_layouts_that_contradict_are_refused():
    with pytest.raises(ValueError, match="must be less than"):
        make_tensor(2, dtype=tg.int64, device="cpu", low=3, high=1)
    with pytest.raises(ValueError, match="cannot be NaN"):
        make_tensor(2, dtype=tg.float32, device="cpu", low=float("nan"))
    with pytest.raises(ValueError, match="does not overlap"):
        make_tensor(2, dtype=tg.uint8, device="cpu", low=300, high=400)
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(2, dtype=tg.float32, device="cpu", noncontiguous=True, memory_format=tg.contiguous_format)
    with pytest.raises(ValueError, match="requires_grad=True"):
        make_tensor(2, dtype=tg.int64, device="cpu", requires_grad=True)
    assert make_tensor((2, 3), dtype=tg.float32, device="cpu", requires_grad=True).requires_grad
