"""Comparison with PyTorch finds what is wrong here, also where PyTorch contradicts itself."""

from types import SimpleNamespace

import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import beside_torch

torch = pytest.importorskip("torch", reason="compares with PyTorch: pip install torch==2.13.0")


@pytest.mark.parametrize("theirs", [1, 5])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_wrong_result_is_found_and_a_right_one_passes_whatever_halves_give(monkeypatch, theirs, dtype):
    half = dtype != "float32"

    def function(x):
        return x * (theirs if half and x.dtype != torch.float32 else 1)

    monkeypatch.setattr(beside_torch, "torch_function", lambda op, torch: function)
    op = SimpleNamespace(name="mine::one", record=SimpleNamespace(tags=None, valid=None, determined=None))
    sample = SimpleNamespace(args=(tg.ones(3, dtype=getattr(tg, dtype)),), kwargs={})
    for factor in (1, 2):
        monkeypatch.setattr(beside_torch, "call", lambda op, args, kwargs, by=factor: args[0] * by)
        if factor == 1:
            beside_torch.against_torch(op, sample, dtype, torch)
        else:
            with pytest.raises(AssertionError, match="mine::one"):
                beside_torch.against_torch(op, sample, dtype, torch)
