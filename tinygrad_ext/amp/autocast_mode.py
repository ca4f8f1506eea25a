"""autocast: a level of the thread that converts the arguments of some operations before they are carried out.

A level sees an operation where it is resolved to one overload, whole before it is opened, in programs, Functions and
traces alike, so no op knows of autocast. Rejected: an override of public functions, which would see `F.cross_entropy`
and not the product inside a module of a plugin.
"""

import functools
import warnings

from tinygrad_ext.amp.op_lists import FLOAT32, LOWER, WIDEST
from tinygrad_ext.amp.state import (
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    is_autocast_enabled,
    known,
    level_class,
    set_autocast_enabled,
    state,
)
from tinygrad_ext.autograd.modes import is_grad_enabled
from tinygrad_ext.core.call.levels import Observer, active_levels
from tinygrad_ext.core.data.dtype import by_name, device
from tinygrad_ext.core.data.dtype import dtype as _dtype
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.library.autocast import apply, rule_of
from tinygrad_ext.registry import ops

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_FLOAT32, _FLOAT64 = by_name["float32"], by_name["float64"]
_LOWER_DTYPES = (by_name["bfloat16"], by_name["float16"])


def is_autocast_available(device_type):
    """Whether autocast knows a type of device."""
    if not isinstance(device_type, str):
        raise TypeError(
            f"is_autocast_available(): argument 'device_type' must be str, not {type(device_type).__name__}"
        )
    return device(device_type).type in state.enabled


# ---- the level -----------------------------------------------------------------------------------------------------


def _takes_part(value):
    return isinstance(value, Tensor) and value.dtype.is_floating_point and value.dtype is not _FLOAT64


def _converted(value, dtype):
    """An argument with its floating tensors in a dtype, those of float64 as they are."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return type(value)([_converted(v, dtype) for v in value])
    if not _takes_part(value) or value.dtype is dtype:
        return value
    if not (state.cache_enabled and dtype is not _FLOAT32 and value.is_leaf and value.requires_grad):
        return value.to(dtype)
    # one conversion of a parameter serves all its uses; what a trace or a transform below sees is its own
    key = (id(value), dtype, is_grad_enabled(), *map(id, active_levels()))
    kept = state.cache.get(key)
    if kept is None or kept[1] != value._version:
        kept = state.cache[key] = value, value._version, value.to(dtype)
    return kept[2]


def _widest(args, lower):
    """The dtype for an operation whose tensors must have one."""
    found = [v.dtype for a in args for v in (a if isinstance(a, (list, tuple)) else (a,)) if _takes_part(v)]
    return _FLOAT32 if any(d is not lower for d in found) else lower


def _listed(name):
    """An op's name as PyTorch's lists have it: without overload, after the place of linear algebra and transforms."""
    record = ops[name].record
    name = name.partition("::")[2].partition(".")[0]
    return f"{record.where}_{name}" if record.where in ("linalg", "fft") else name


class Autocasting(Observer):
    """Converts the arguments of operations as the lists say, while autocast is on for the cpu."""

    converts = True  # so what was traced or compiled before runs op by op: its graph has no conversions

    def process(self, operation, args):
        """Carry out an operation of the lists on converted arguments."""
        if not state.enabled["cpu"]:
            return NotImplemented
        if operation.name.startswith("function::"):
            return self.look_into(operation, args)
        if getattr(operation, "kind", "") != "functional":
            return NotImplemented
        rule = rule_of(operation, "cpu")
        if callable(rule):
            return apply(operation, rule, args)
        name, lower = _listed(operation.name), state.dtype["cpu"]
        if rule is not None:
            return self._off(operation, [_converted(a, rule) for a in args])
        if name in LOWER:
            to = lower
        elif name in FLOAT32:
            to = _FLOAT32
        elif name in WIDEST:
            to = _widest(args, lower)
        else:
            return NotImplemented
        return operation(*[_converted(a, to) for a in args])

    def _off(self, operation, args):
        """Carry out an operation whose kernel is not to find autocast on."""
        state.enabled["cpu"] = False
        try:
            return operation(*args)
        finally:
            state.enabled["cpu"] = True


level_class.append(Autocasting)


# ---- the context manager -------------------------------------------------------------------------------------------


class autocast:
    """Context manager and decorator: computes products and convolutions in lower precision, losses in float32.

    Args:
        device_type: "cpu"; "cuda", which is not here, goes off with a warning.
        dtype: bfloat16 or float16; the device's own unless given, bfloat16 on the cpu.
        enabled: False turns autocast off inside.
        cache_enabled: keep converted parameters until the outermost context ends. What changes a parameter in place is
            seen nevertheless.

    Raises RuntimeError for a device that autocast does not know.

        >>> x = tg.ones(2, 2)
        >>> with tg.autocast("cpu"):
        ...     y = x @ x
        >>> y.dtype
        torch.bfloat16
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}': it is one of "
                f"{', '.join(state.enabled)}"
            )
        self.device = known("autocast", device_type)
        self.fast_dtype = state.dtype[self.device] if dtype is None else dtype
        if not isinstance(self.fast_dtype, _dtype):
            raise TypeError(f"autocast(): argument 'dtype' must be a dtype, not {type(dtype).__name__}")
        self._cache_enabled = state.cache_enabled if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled) and self._supported()
        self._before, self._levels = [], []

    def _supported(self):
        if self.device != "cpu":
            warnings.warn(
                f"autocast(): device_type of '{self.device}' was given, but {self.device.upper()} is not available. "
                "Disabling",
                UserWarning,
                stacklevel=4,
            )
        elif self.fast_dtype not in _LOWER_DTYPES:
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only "
                f"supports dtypes of {', '.join(map(str, _LOWER_DTYPES))} currently.",
                UserWarning,
                stacklevel=4,
            )
        else:
            return True
        return False

    def __enter__(self):
        self._before.append((state.enabled[self.device], state.dtype[self.device], state.cache_enabled))
        state.dtype[self.device], state.cache_enabled = self.fast_dtype, self._cache_enabled
        autocast_increment_nesting()
        set_autocast_enabled(self.device, self._enabled)
        self._levels.append(None)
        if (
            self._enabled and state.level not in active_levels()
        ):  # a Function that a level below has taken: see look_into
            self._levels[-1] = Autocasting().__enter__()
        return self

    def __exit__(self, *exc):
        level = self._levels.pop()
        if level is not None:
            level.__exit__()
        enabled, state.dtype[self.device], state.cache_enabled = self._before.pop()
        set_autocast_enabled(self.device, enabled)
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        return False

    def __call__(self, function):
        return autocast_decorator(self, function)


def autocast_decorator(autocast_instance, func):
    """A function that runs func inside the context."""

    @functools.wraps(func)
    def decorated(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    return decorated


def _enter_autocast(*args):
    """Enter `autocast(*args)` without a `with`; returns what `_exit_autocast` takes."""
    return autocast(*args).__enter__()


def _exit_autocast(mode):
    """Leave what `_enter_autocast` returned."""
    mode.__exit__(None, None, None)


# ---- Functions -----------------------------------------------------------------------------------------------------


def _cast(value, device_type, dtype):
    """A value with the floating tensors of that device in a dtype, those of float64 as they are."""
    if _takes_part(value):
        return value.to(dtype) if value.device.type == device_type else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)([_cast(v, device_type, dtype) for v in value])
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorate `forward` of a Function that is used under autocast.

    Args:
        device_type: "cpu" or "cuda".
        cast_inputs: a dtype. Where autocast is on, floating tensors among the arguments get it, and forward runs with
            autocast off; without it, forward runs as the caller is set.

    Together with `custom_bwd`, backward runs as forward did; that takes a forward with a ctx to keep it in.
    """
    known("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        used, cast = is_autocast_enabled(device_type), cast_inputs is not None
        if not isinstance(args[0], Tensor):  # of a forward without a ctx, whose setup_context tells backward
            args[0]._dtype, args[0]._fwd_used_autocast = state.dtype[device_type], used and not cast
        if not (used and cast):
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type):
    """Decorate `backward` of a Function whose forward has `custom_fwd`: it runs with autocast as forward did."""
    known("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
