"""Switches of PyTorch that mean nothing here may be set, are remembered, and change no result."""

import importlib

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


def test_questions_about_a_gpu_are_answered_and_empty_calls_return():
    cuda = tg.cuda
    assert (cuda.is_available(), cuda.is_initialized(), cuda.is_bf16_supported(), cuda.device_count()) == (
        False,
    ) * 3 + (0,)
    for call in (
        cuda.empty_cache,
        cuda.synchronize,
        cuda.reset_peak_memory_stats,
        lambda: cuda.manual_seed(1),
        lambda: cuda.manual_seed_all(1),
        lambda: cuda.set_device(-1),
    ):
        assert call() is None
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.memory_reserved() == 0
    for call in (cuda.current_device, cuda.get_device_name, lambda: cuda.set_device(0)):
        with pytest.raises(AssertionError, match=r"not compiled with CUDA enabled. Ask cuda.is_available\(\)"):
            call()


@pytest.mark.parametrize("name", ["cudnn", "mkldnn"])
def test_backends_have_switches(name):
    backend = importlib.import_module(f"tinygrad_ext.backends.{name}")
    assert backend is getattr(tg.backends, name) and backend.is_available() is False
    backend.deterministic = True
    try:
        with backend.flags(enabled=False):
            assert backend.enabled is False and backend.deterministic is False
        assert backend.enabled is True and backend.deterministic is True
        with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'. Its arguments are enabled"):
            backend.flags(nothing=1).__enter__()
    finally:
        backend.deterministic = False


def test_switches_of_cuda_s_libraries_may_be_set():
    tg.backends.cuda.matmul.allow_tf32 = True
    assert tg.backends.cuda.matmul.allow_tf32 and not tg.backends.cuda.is_built() and not tg.backends.mps.is_available()
    tg.backends.cuda.matmul.allow_tf32 = False
    assert (
        not tg.backends.mps.is_built() and not tg.backends.mkl.is_available() and not tg.backends.openmp.is_available()
    )
    assert tg.backends.cudnn.version() is None


def test_determinism_and_precision_are_remembered(switches_put_back):
    tg.use_deterministic_algorithms(True, warn_only=True)
    assert tg.are_deterministic_algorithms_enabled() and tg.is_deterministic_algorithms_warn_only_enabled()
    with pytest.raises(TypeError, match="argument 'mode' must be bool, not str"):
        tg.use_deterministic_algorithms("x")
    tg.set_float32_matmul_precision("high")
    assert tg.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning, match="'x' is not one of 'highest', 'high', 'medium'"):
        tg.set_float32_matmul_precision("x")
    assert tg.get_float32_matmul_precision() == "high"


def test_autocast_that_is_off_does_nothing():
    x = tg.ones(2)
    with tg.autocast("cpu", enabled=False), tg.amp.autocast("cuda", dtype=tg.float16, enabled=False):
        assert (x + x).dtype == tg.float32
    assert tg.cuda.amp.autocast(enabled=False)(lambda: 3)() == 3
    with pytest.warns(UserWarning, match="device_type of 'cuda' was given, but CUDA is not available. Disabling"):
        tg.autocast("cuda")
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        tg.autocast("nowhere", enabled=False)


def test_a_scaler_that_is_off_is_the_plain_step():
    weight = nn.Parameter(tg.ones(1))
    optimizer = tg.optim.SGD([weight], lr=0.5)
    scaler = tg.cuda.amp.GradScaler(enabled=False)
    scaler.scale((weight * 2).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict(scaler.state_dict())
    assert weight.item() == 0 and scaler.get_scale() == 1 and not scaler.is_enabled()


def test_wishes_that_change_nothing():
    for mode, number in (("default", 0), ("warn", 1), (2, 2), (0, 0)):
        tg.set_deterministic_debug_mode(mode)
        assert tg.get_deterministic_debug_mode() == number
    with pytest.raises(RuntimeError, match="none of 0, 1, 2"):
        tg.set_deterministic_debug_mode("some")
    tg.set_num_interop_threads(3)
    assert tg.get_num_interop_threads() == 1 and tg.set_flush_denormal(True) is False
    with pytest.raises(RuntimeError, match="positive"):
        tg.set_num_interop_threads(0)
    assert not tg.is_warn_always_enabled()
    tg.set_warn_always(True)
    assert tg.is_warn_always_enabled()
    tg.set_warn_always(False)


def test_kernels_of_attention_are_switched_and_change_nothing():
    cuda, q = tg.backends.cuda, tg.ones(1, 1, 2, 4)
    before = tg.nn.functional.scaled_dot_product_attention(q, q, q)
    for kind in ("flash", "mem_efficient", "math", "cudnn"):
        enable, enabled = getattr(cuda, f"enable_{kind}_sdp"), getattr(cuda, f"{kind}_sdp_enabled")
        assert enabled() and enable(False) is None and not enabled()
        try:
            assert tg.nn.functional.scaled_dot_product_attention(q, q, q).equal(before)
        finally:
            enable(True)
        assert enabled() and enable.__name__ == f"enable_{kind}_sdp"
    assert not cuda.fp16_bf16_reduction_math_sdp_allowed()
