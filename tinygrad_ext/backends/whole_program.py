"""Switches of the whole program that scripts set: results are deterministic and of full precision with all of them."""

import warnings

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.tensor import older_calls as _older_calls
from tinygrad_ext.tensor import unset as _unset

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_warn_always",
    "use_deterministic_algorithms",
]

_state = {"warn_only": False, "precision": "highest"}


@_boundary
def use_deterministic_algorithms(mode, *, warn_only=False):
    """Remember the wish, and fill elements that are not set, see `utils.deterministic.fill_uninitialized_memory`.

    Nothing else changes: the same program gives the same bits here in any case.
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"use_deterministic_algorithms(): argument '{name}' must be bool, not {type(value).__name__}"
            )
    _unset.tell("deterministic", mode)
    _state.update(warn_only=warn_only)


@_boundary
def are_deterministic_algorithms_enabled():
    """What `use_deterministic_algorithms` was told last; False at the start."""
    return _unset.told("deterministic")


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


_MODES = ("default", "warn", "error")


@_boundary
def set_deterministic_debug_mode(debug_mode):
    """The same wish as `use_deterministic_algorithms`: "default" or 0, "warn" or 1, "error" or 2."""
    mode = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(f"set_deterministic_debug_mode(): {debug_mode!r} is none of 0, 1, 2, {', '.join(_MODES)}")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


@_boundary
def get_deterministic_debug_mode():
    """0, 1 or 2, as `set_deterministic_debug_mode` takes it."""
    return (1 if _state["warn_only"] else 2) if are_deterministic_algorithms_enabled() else 0


@_boundary
def get_num_interop_threads():
    """1: ops run one after the other."""
    return 1


@_boundary
def set_num_interop_threads(number):
    """Check the number. Ops run one after the other with any."""
    if number < 1:
        raise RuntimeError(f"set_num_interop_threads(): expected a positive number of threads, not {number}")


@_boundary
def set_flush_denormal(mode):
    """False: numbers below the normal ones are kept."""
    return False


@_boundary
def set_warn_always(b):
    """Let each deprecated call warn, not the first alone; how often that is shown is for Python's filters to say."""
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always(): expected a bool, but got {type(b).__name__}")
    _older_calls.always[0] = b


@_boundary
def is_warn_always_enabled():
    """What `set_warn_always` was told last; False at the start."""
    return _older_calls.always[0]
