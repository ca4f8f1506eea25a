"""PyTorch's place of normalisation over layers and groups."""

from .norm import GroupNorm, LayerNorm

__all__ = ["GroupNorm", "LayerNorm"]
