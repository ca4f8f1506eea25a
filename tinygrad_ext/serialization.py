"""PyTorch's name for the place of `save` and `load`; how they work stands in `archive/`."""

from tinygrad_ext.archive.files import load, save

__all__ = ["load", "save"]
