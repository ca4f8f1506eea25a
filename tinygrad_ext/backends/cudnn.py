"""Switches of cuDNN, which is not here: `benchmark`, `deterministic` and the others may be set and change nothing."""

from .switches import flags_of

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True

flags = flags_of(
    __name__,
    {"enabled": False, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "allow_tf32": True},
)


def is_available():
    """False."""
    return False


def version():
    """None."""
    return None
