"""Sparse matrices of some diagonals."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.dtype import sparse_coo, sparse_csc, sparse_csr

from .coo import SparseTensor


@boundary
def spdiags(diagonals, offsets, shape, layout=None):
    """A matrix of this shape that has the rows of `diagonals` on its diagonals, and stores no more.

    Args:
        diagonals: (n, m), or (m,) for one; what stands at place j of a row comes into column j.
        offsets: (n,) of int64, or a single number: which diagonals, positive ones above the main one.
        layout: sparse_coo if left out, or sparse_csr or sparse_csc.

    Raises RuntimeError for other sizes, an offset that stands there twice and other layouts.
    """
    rows, places = (t.unsqueeze(0) if t.dim() < k else t for t, k in ((diagonals, 2), (offsets, 1)))
    for wrong, told in (
        (rows.dim() != 2, f"Diagonals must be vector or matrix, got {list(diagonals.shape)}"),
        (places.dim() != 1, f"Offsets must be scalar or vector, got {list(offsets.shape)}"),
        (len(shape) != 2, f"Output shape must be 2d, got {tuple(shape)}"),
        (places.dtype is not tg.int64, f"Offset Tensor must have dtype Long but got {offsets.dtype}"),
        (layout not in (None, sparse_coo, sparse_csr, sparse_csc), "Only output layouts (Sparse, SparseCsc, SparseCsr) "
         f"are supported, got {layout}"),
    ):  # fmt: skip
        if wrong:
            raise RuntimeError(f"spdiags(): {told}")
    if rows.shape[0] != places.shape[0]:
        raise RuntimeError(
            f"spdiags(): Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({places.shape[0]})"
        )
    if len(set(places.tolist())) < places.shape[0]:
        raise RuntimeError(f"spdiags(): Offset tensor contains duplicate values: {places.tolist()}")
    columns = tg.arange(rows.shape[1], device=rows.device).expand(rows.shape)
    at = columns - places.unsqueeze(1)
    inside = (at >= 0) & (at < shape[0]) & (columns < shape[1])
    found = SparseTensor(tg.stack([at[inside], columns[inside]]), rows[inside], tuple(shape))
    return found if layout is None else found.to_sparse(layout=layout)
