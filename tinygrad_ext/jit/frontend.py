"""What reading a program's source raises, under PyTorch's names."""

from .script.errors import FrontendError, NotSupportedError, UnsupportedNodeError

__all__ = ["FrontendError", "NotSupportedError", "UnsupportedNodeError"]
