"""How types other than Tensor take part: the `__torch_function__` protocol and what belongs to it.

`protocol.py` says who gets a call, `modes.py` who sees all calls inside a `with`.
"""

from tinygrad_ext.core.overridable import overridable
from tinygrad_ext.core.overrides import (
    _disabled_torch_function_impl,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    redispatch_function,
)
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

__all__ = [
    "NOT_OVERRIDABLE",
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "_EnableTorchFunction",
    "_disabled_torch_function_impl",
    "_get_current_function_mode",
    "_get_current_function_mode_stack",
    "_pop_mode",
    "_pop_mode_temporarily",
    "_push_mode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "install",
    "overridable",
    "path_of",
    "redispatch_function",
]
