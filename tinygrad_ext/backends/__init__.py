"""Switches of PyTorch's libraries. Nothing here depends on one: what is set is remembered and changes no result."""

from tinygrad_ext.errors import refuse_unknown

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, quantized
from .switches import disable_global_flags, flags_frozen

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "disable_global_flags",
    "flags_frozen",
    "mkl",
    "mkldnn",
    "mps",
    "openmp",
    "quantized",
]

__getattr__ = refuse_unknown(__name__)
