"""How PyTorch would cut the scores of `linear_cross_entropy` into chunks."""

from dataclasses import dataclass

import tinygrad_ext as tg

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """Options of `nn.functional.linear_cross_entropy`; they are checked, and change nothing here.

    In PyTorch they trade memory for time and precision. Here all scores are computed at once, whatever they say; the
    graph can be kept, and the derivative has derivatives.

    Args:
        allow_retain_graph: whether PyTorch lets the gradient be computed twice.
        batch_chunk_size: rows per chunk, or None.
        chunking_method: "auto", "aspect_ratio", "aspect_ratio:N" or None.
        acc_policy: "auto", "accurate", "balanced" or "compact".
        acc_dtype: dtype in which PyTorch adds up, or None.

    Raises:
        ValueError: a value that is none of these.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: tg.dtype | None = None

    def __post_init__(self):
        method, size = self.chunking_method, self.batch_chunk_size
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r} is none of {', '.join(_POLICIES)}")
        if method not in (None, "auto", "aspect_ratio"):
            name, _, factor = method.partition(":")
            if name != "aspect_ratio" or not factor.isdigit() or int(factor) == 0:
                raise ValueError(f"invalid chunking_method: {method!r} is not 'auto' or 'aspect_ratio:N', N at least 1")
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, tg.float16, tg.bfloat16, tg.float32, tg.float64):
            raise ValueError(f"acc_dtype must be None, float16, bfloat16, float32 or float64, got {self.acc_dtype!r}")
