"""How types other than Tensor take part: the `__torch_function__` protocol and what belongs to it.

`protocol.py` says who gets a call.
"""

from tinygrad_ext.overrides.protocol import (
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
    dispatch,
    install,
    path_of,
)

__all__ = ["DisableTorchFunctionSubclass", "_disabled_torch_function_impl", "dispatch", "install", "path_of"]
