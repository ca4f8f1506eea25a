"""Switches of PyTorch's libraries. Nothing here depends on one: what is set is remembered and changes no result."""

from tinygrad_ext.errors import refuse_unknown

from . import cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]

__getattr__ = refuse_unknown(__name__)
