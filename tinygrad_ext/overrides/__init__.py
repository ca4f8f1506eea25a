"""How types other than Tensor take part: the `__torch_function__` protocol and what belongs to it.

The names are those of `torch.overrides`; `explain`, `check`, `register`, `register_common_type` and `ignored_functions`
are additions.
"""

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.core.call.levels import Level, Observer, Operation, active_levels, atomic, user_line
from tinygrad_ext.core.call.overloaded import has_torch_function, has_torch_function_unary, has_torch_function_variadic
from tinygrad_ext.core.call.overridable import overridable
from tinygrad_ext.core.call.overrides import handle_torch_function
from tinygrad_ext.core.call.unasked import _disabled_torch_function_impl, redispatch_function
from tinygrad_ext.overrides.common import register_common_type
from tinygrad_ext.overrides.defaults import DeviceContext, default_dtype, get_default_device, set_default_device
from tinygrad_ext.overrides.modes import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    _get_current_function_mode,
    _get_current_function_mode_stack,
    _pop_mode,
    _pop_mode_temporarily,
    _push_mode,
)
from tinygrad_ext.overrides.protocol import (
    NOT_OVERRIDABLE,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    _EnableTorchFunction,
    enable_reentrant_dispatch,
    get_default_nowrap_functions,
    install,
    path_of,
)
from tinygrad_ext.overrides.wrap import is_tensor_like, wrap_torch_function
from tinygrad_ext.registry.foreign import register

_LAZY = {
    "check": "coverage",
    "explain": "ladder",
    **dict.fromkeys(
        (
            "get_ignored_functions",
            "get_overridable_functions",
            "get_testing_overrides",
            "ignored_functions",
            "is_tensor_method_or_property",
            "resolve_name",
        ),
        "tables",
    ),
}

__all__ = [
    "NOT_OVERRIDABLE",
    "BaseTorchFunctionMode",
    "DeviceContext",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Level",
    "Observer",
    "Operation",
    "TorchFunctionMode",
    "_EnableTorchFunction",
    "_disabled_torch_function_impl",
    "_get_current_function_mode",
    "_get_current_function_mode_stack",
    "_pop_mode",
    "_pop_mode_temporarily",
    "_push_mode",
    "active_levels",
    "atomic",
    "default_dtype",
    "enable_reentrant_dispatch",
    "get_default_device",
    "get_default_nowrap_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "install",
    "is_tensor_like",
    "overridable",
    "path_of",
    "redispatch_function",
    "register",
    "register_common_type",
    "set_default_device",
    "user_line",
    "wrap_torch_function",
    *_LAZY,
]


@_boundary
def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'tinygrad_ext.overrides' has no attribute '{name}'; it has {', '.join(__all__)}")
    import importlib

    globals()[name] = value = getattr(importlib.import_module(f"tinygrad_ext.overrides.{_LAZY[name]}"), name)
    return value


def __dir__():
    return __all__
