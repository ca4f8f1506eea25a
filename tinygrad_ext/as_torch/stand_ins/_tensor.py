"""torch._tensor: where PyTorch defines its Tensor in Python."""

from tinygrad_ext.core.data.tensor import Tensor

__all__ = ["Tensor"]
