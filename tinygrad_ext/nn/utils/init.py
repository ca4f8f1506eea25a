"""Making a module without the cost of its starting values."""

import inspect

from tinygrad_ext.core.call.boundary import boundary

from ..module import Module


@boundary
def skip_init(module_cls, *args, **kwargs):
    """Make a module whose parameters and buffers have memory and no values.

    Args:
        module_cls: a class of modules that takes ``device`` and hands it on.

    Raises:
        RuntimeError: it is no such class.

        >>> from tinygrad_ext import nn
        >>> tuple(nn.utils.skip_init(nn.Linear, 3, 2).weight.shape)
        (2, 3)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=final)
