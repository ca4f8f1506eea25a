"""AdamW by the module that PyTorch has it in."""

from .adam import Adam, AdamW

__all__ = ["Adam", "AdamW"]
