"""Switches of the whole program that scripts set: results are deterministic and of full precision with all of them."""

import warnings

from tinygrad_ext.core.call.boundary import boundary as _boundary

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_float32_matmul_precision",
    "use_deterministic_algorithms",
]

_state = {"deterministic": False, "warn_only": False, "precision": "highest"}


@_boundary
def use_deterministic_algorithms(mode, *, warn_only=False):
    """Remember the wish. Nothing else changes: the same program gives the same bits here in any case."""
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"use_deterministic_algorithms(): argument '{name}' must be bool, not {type(value).__name__}"
            )
    _state.update(deterministic=mode, warn_only=warn_only)


@_boundary
def are_deterministic_algorithms_enabled():
    """What `use_deterministic_algorithms` was told last; False at the start."""
    return _state["deterministic"]


@_boundary
def is_deterministic_algorithms_warn_only_enabled():
    """Whether `use_deterministic_algorithms` was told to warn only; False at the start."""
    return _state["warn_only"]


@_boundary
def set_float32_matmul_precision(precision):
    """Remember "highest", "high" or "medium". Products of float32 are computed in float32 with all three."""
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"set_float32_matmul_precision(): {precision!r} is not one of 'highest', 'high', 'medium'", stacklevel=2
        )
        return
    _state["precision"] = precision


@_boundary
def get_float32_matmul_precision():
    """What `set_float32_matmul_precision` was told last; "highest" at the start."""
    return _state["precision"]
