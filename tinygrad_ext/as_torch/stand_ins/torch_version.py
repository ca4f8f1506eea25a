"""torch.torch_version: a version that compares by its numbers."""

import tinygrad_ext as _tg
from tinygrad_ext.as_torch.version import Version as TorchVersion

__all__ = ["TorchVersion"]


def __getattr__(name):
    if name == "__version__":
        return _tg.__version__
    raise AttributeError(f"module 'torch.torch_version' has no attribute '{name}'")
