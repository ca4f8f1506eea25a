"""PyTorch's place of Embedding and EmbeddingBag."""

from .embedding import Embedding, EmbeddingBag

__all__ = ["Embedding", "EmbeddingBag"]
