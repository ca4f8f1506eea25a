"""PyTorch's place of Embedding."""

from .embedding import Embedding

__all__ = ["Embedding"]
