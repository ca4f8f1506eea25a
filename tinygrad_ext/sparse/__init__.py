"""Tensors of the layouts sparse_coo, sparse_csr and sparse_csc: `sparse_coo_tensor`, `sparse_csr_tensor`,
`Tensor.to_sparse` and their like, and the functions `mm`, `addmm`, `sum`.

Gradients reach the values and what they were made of: coo.py says how, handlers.py which functions there are. Nothing
is computed faster than by the plain ops, only what is not stored is left out.
"""

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.errors import refuse_unknown as _refuse_unknown

from . import gradients as _gradients  # noqa: F401 (these fill the table of handlers)
from . import handlers as _handlers
from . import in_place as _in_place  # noqa: F401
from . import shapes as _shapes  # noqa: F401
from . import softmax as _softmax
from .compressed import CompressedTensor, sparse_compressed_tensor, sparse_csc_tensor, sparse_csr_tensor
from .coo import SparseTensor, sparse_coo_tensor
from .diagonals import spdiags
from .invariants import check_sparse_tensor_invariants
from .legacy import ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor, ShortTensor

__all__ = [
    "ByteTensor",
    "CharTensor",
    "CompressedTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "SparseTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "softmax",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "spdiags",
    "sum",
]
__getattr__ = _refuse_unknown(__name__)


@_boundary
def mm(mat1, mat2, reduce=None):
    """The product of a sparse matrix with a plain or sparse one.

    Args:
        reduce: for a plain ``mat2``, what is made of the stored products of a row: "sum", "mean", "amax", "amin";
            zero where none is stored.

    Raises:
        ValueError: another word.
    """
    return _handlers.matmul(mat1, mat2) if reduce in (None, "sum") else _handlers.reduced(mat1, mat2, reduce)


def _product(mat1, mat2):
    """The product of a sparse matrix with a plain or sparse one."""
    return _handlers.matmul(mat1, mat2)


dsmm = spmm = _boundary(_product)


@_boundary
def addmm(mat, mat1, mat2, *, beta=1, alpha=1):
    """``beta * mat + alpha * (mat1 @ mat2)``, mat1 sparse."""
    return _handlers.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


@_boundary
def sum(input, dim=None, dtype=None):
    """The sum of a sparse tensor: of all elements a plain tensor, over some dimensions a sparse one."""
    return _handlers.sum(input, dim, dtype=dtype)


@_boundary
def softmax(input, dim, dtype=None):
    """Exponentials over their sum, of what a tensor of the layout sparse_coo stores along ``dim``.

    What is not stored counts as minus infinity, so the result stores the same places. With ``dtype`` it is computed in
    that one.

    Raises:
        NotImplementedError: another layout, or integers without ``dtype``.
        IndexError: a dimension that is not there.
    """
    return _softmax.softmax(input, dim, dtype=dtype)


@_boundary
def log_softmax(input, dim, dtype=None):
    """The logarithm of `softmax`, without the loss of precision of the two steps."""
    return _softmax.log_softmax(input, dim, dtype=dtype)
