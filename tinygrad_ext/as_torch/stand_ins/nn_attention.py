"""torch.nn.attention: which way of attention may be taken; on the cpu the sizes decide."""

import contextlib
import enum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """The ways of PyTorch."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Allow these ways inside; refused where none of them runs on a cpu, MATH or FLASH_ATTENTION."""
    asked = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(asked, list) or not all(isinstance(way, SDPBackend) for way in asked):
        raise AssertionError(f"sdpa_kernel takes an SDPBackend or a list of them, not {backends!r}")
    if not {SDPBackend.MATH, SDPBackend.FLASH_ATTENTION} & set(asked):
        names = ", ".join(way.name for way in asked) or "none"
        raise RuntimeError(f"sdpa_kernel: none of these runs on the cpu: {names}; allow MATH or FLASH_ATTENTION")
    yield {}
