"""How types other than Tensor take part in calls: the `__torch_function__` protocol and what belongs to it.

The names are those of `torch.overrides`; `explain`, `check`, `register` and `register_common_type` are ours.
"""

from tinygrad_ext.core.callables import has_torch_function, has_torch_function_unary, has_torch_function_variadic
from tinygrad_ext.overrides.api import handle_torch_function, is_tensor_like, wrap_torch_function
from tinygrad_ext.overrides.common import register_common_type
from tinygrad_ext.overrides.foreign import declare, register
from tinygrad_ext.overrides.protocol import (
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
    dispatch,
    install,
    path_of,
)

_LAZY = {
    "check": "check",
    "explain": "explain",
    **dict.fromkeys(
        (
            "get_default_nowrap_functions",
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
    "DisableTorchFunctionSubclass",
    "_disabled_torch_function_impl",
    "declare",
    "dispatch",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "install",
    "is_tensor_like",
    "path_of",
    "register",
    "register_common_type",
    "wrap_torch_function",
    *_LAZY,
]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'tinygrad_ext.overrides' has no attribute '{name}'; it has {', '.join(__all__)}")
    import importlib

    value = getattr(importlib.import_module(f"tinygrad_ext.overrides.{_LAZY[name]}"), name)
    globals()[name] = value  # also where the import has put the module of that name
    return value


def __dir__():
    return __all__
