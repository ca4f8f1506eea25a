"""Which kernel of attention may run; masks that are a rule (``bias``); scores by a function (``flex_attention``)."""

import contextlib
import enum

from tinygrad_ext.backends import cuda
from tinygrad_ext.errors import refuse_unknown

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """The kernels of PyTorch's ``scaled_dot_product_attention``. Here there is one for all."""

    __str__ = enum.Enum.__str__

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_SWITCHES = {
    SDPBackend.MATH: (cuda.math_sdp_enabled, cuda.enable_math_sdp),
    SDPBackend.FLASH_ATTENTION: (cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
    SDPBackend.EFFICIENT_ATTENTION: (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
    SDPBackend.CUDNN_ATTENTION: (cuda.cudnn_sdp_enabled, cuda.enable_cudnn_sdp),
}


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Context in which the switches of ``backends.cuda`` say that these kernels alone may run.

    Args:
        backends: an ``SDPBackend``, or a list of them.
        set_priority: whether their order is one of preference; there is one kernel here.

    Raises:
        AssertionError: for what is neither.
        RuntimeError: where neither MATH nor FLASH_ATTENTION is among them.
    """
    asked = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(asked, list) or not all(isinstance(b, SDPBackend) for b in asked):
        raise AssertionError(f"sdpa_kernel takes an SDPBackend or a list of them, not {backends!r}")
    if not {SDPBackend.MATH, SDPBackend.FLASH_ATTENTION} & set(asked):
        raise RuntimeError(
            f"sdpa_kernel: no kernel of those runs on the cpu: {', '.join(b.name for b in asked)}; allow MATH or "
            "FLASH_ATTENTION too"
        )
    before = {kind: enabled() for kind, (enabled, _) in _SWITCHES.items()}
    try:
        for kind, (_, enable) in _SWITCHES.items():
            enable(kind in asked)
        yield {}
    finally:
        for kind, (_, enable) in _SWITCHES.items():
            enable(before[kind])


__getattr__ = refuse_unknown(__name__)
