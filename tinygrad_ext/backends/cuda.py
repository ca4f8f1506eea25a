"""Switches of CUDA's libraries, which are not here: ``matmul.allow_tf32`` may be set and changes nothing.

The kernels of attention that may be switched on and off say what they were set to, and change nothing either: there is
one kernel, of the cpu.
"""

import contextlib
from types import SimpleNamespace

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
)


def is_built():
    """False."""
    return False


_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "halves": False}


def _switch(kind):
    def enable(enabled):
        _attention[kind] = bool(enabled)

    def enabled():
        return _attention[kind]

    enable.__doc__ = f"Note whether the kernel {kind} of attention may be used, which is not here."
    enabled.__doc__ = f"Whether it may, as noted last; {_attention[kind]} at first."
    return enable, enabled


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")
allow_fp16_bf16_reduction_math_sdp, fp16_bf16_reduction_math_sdp_allowed = _switch("halves")
for _name, _function in list(globals().items()):
    if "_sdp" in _name:
        _function.__name__ = _function.__qualname__ = _name


@contextlib.contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """The switches of attention in a `with` block; `nn.attention.sdpa_kernel` is the newer name."""
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        _attention.update(before)
