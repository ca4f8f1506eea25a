"""Switches of CUDA's libraries, which are not here: ``matmul.allow_tf32`` may be set and changes nothing."""

from types import SimpleNamespace

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
)


def is_built():
    """False."""
    return False
