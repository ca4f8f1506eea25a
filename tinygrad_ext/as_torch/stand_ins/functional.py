"""torch.functional: the functions that PyTorch writes in Python; all of them are at the top here."""

import tinygrad_ext as _tg

_NAMES = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "align_tensors",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "block_diag",
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "lu",
    "norm",
    "meshgrid",
    "pca_lowrank",
    "split",
    "stft",
    "svd_lowrank",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
]
__all__ = [name for name in _NAMES if hasattr(_tg, name)]


def __getattr__(name):
    if name in _NAMES:
        return getattr(_tg, name)
    raise AttributeError(f"module 'torch.functional' has no attribute '{name}'")
