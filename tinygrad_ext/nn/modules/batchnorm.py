"""PyTorch's place of batch normalisation."""

from .norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "_BatchNorm"]
