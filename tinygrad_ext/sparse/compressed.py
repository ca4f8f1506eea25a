"""Sparse matrices whose places are compressed along rows or columns: PyTorch's layouts `sparse_csr` and `sparse_csc`.

A CompressedTensor is a SparseTensor too, whose places stand row by row, or column by column: so the handlers of the
layout sparse_coo serve both, and what they give is brought back into a compressed layout, of rows if one argument is.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.dtype import sparse_coo, sparse_csc, sparse_csr

from .coo import SparseTensor

__all__ = ["CompressedTensor", "compress", "sparse_compressed_tensor", "sparse_csc_tensor", "sparse_csr_tensor"]

_ALONG = {sparse_csr: 0, sparse_csc: 1}
_NAMES = {sparse_csr: ("crow_indices", "col_indices"), sparse_csc: ("ccol_indices", "row_indices")}
_TURNED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr}
_AS_IT_IS = {"__getitem__", "index_select", "sum", "select", "unbind", "new_zeros", "new_empty", "sparse_mask"}


class CompressedTensor(SparseTensor):
    """A matrix of the layout sparse_csr or sparse_csc. Made by `sparse_csr_tensor` and its like."""

    @staticmethod
    def __new__(cls, compressed, plain, values, size, layout):
        outer = tg.arange(compressed.numel() - 1, device=values.device).repeat_interleave(compressed.diff().long())
        places = [outer, plain.long()][:: -1 if layout is sparse_csc else 1]
        self = SparseTensor.__new__(cls, tg.stack(places), values, size, layout is sparse_csr)
        self._compressed = compressed, plain, layout
        return self

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = func.__name__
        given = [a for a in args if isinstance(a, CompressedTensor)]
        if given and name in ("transpose", "swapaxes", "swapdims", "t"):
            return given[0]._turned() if _turns(given[0], name, args[1:], kwargs or {}) else given[0]
        found = super().__torch_function__(func, types, args, kwargs)
        if not given or name in _AS_IT_IS or not isinstance(found, SparseTensor):
            return found
        return found.to_sparse(layout=sparse_csr if any(a.is_sparse_csr for a in given) else sparse_csc)

    layout = property(lambda self: self._compressed[2])
    is_sparse = False
    is_sparse_csr = property(lambda self: self.layout is sparse_csr)
    T = mT = property(lambda self: self._turned())

    def _turned(self):
        compressed, plain, layout = self._compressed
        size = self.shape[1], self.shape[0], *self.shape[2:]
        return CompressedTensor(compressed, plain, self._parts[1], size, _TURNED[layout])

    def _part(self, name):
        if name not in _NAMES[self.layout]:
            raise RuntimeError(f"{name}(): there is none of the layout {self.layout}; it has {_NAMES[self.layout]}")
        return self._compressed[_NAMES[self.layout].index(name)]

    def crow_indices(self):
        """Where each row begins in the values, and the last ends. RuntimeError for sparse_csc."""
        return self._part("crow_indices")

    def col_indices(self):
        """The column of each value. RuntimeError for sparse_csc."""
        return self._part("col_indices")

    def ccol_indices(self):
        """Where each column begins in the values, and the last ends. RuntimeError for sparse_csr."""
        return self._part("ccol_indices")

    def row_indices(self):
        """The row of each value. RuntimeError for sparse_csr."""
        return self._part("row_indices")

    def indices(self):
        """RuntimeError: the places are compressed."""
        raise RuntimeError(f"indices expected sparse coordinate tensor layout but got {self.layout}")

    def values(self):
        """The values, in the order of the places."""
        return self._parts[1]

    def coalesce(self):
        """RuntimeError: the places are compressed."""
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {self.layout}")

    def is_coalesced(self):
        """RuntimeError: the places are compressed."""
        raise RuntimeError(
            f"is_coalesced expected sparse coordinate tensor layout but got {self.layout}: to_sparse() makes one of it"
        )

    def with_values(self, values):
        """Other values at the same places."""
        compressed, plain, layout = self._compressed
        return CompressedTensor(compressed, plain, values, self.shape, layout)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """The tensor in another sparse layout, by default sparse_coo."""
        if layout is self.layout:
            return self
        places, values, in_order = self._parts
        found = SparseTensor(places, values, self.shape, in_order).coalesce().to_sparse(layout=layout)
        return found if layout in (None, sparse_coo) else found._with_indices_of(self._compressed[0].dtype)

    def _with_indices_of(self, dtype):
        compressed, plain, layout = self._compressed
        return CompressedTensor(compressed.to(dtype), plain.to(dtype), self._parts[1], self.shape, layout)

    def __repr__(self):
        (first, second), (compressed, plain, layout) = _NAMES[self.layout], self._compressed
        end = f"size={tuple(self.shape)}, nnz={self._nnz()}, layout={layout}"
        return f"tensor({first}={compressed!r},\n       {second}={plain!r},\n       values={self._parts[1]!r}, {end})"

    __str__ = __repr__

    def __reduce_ex__(self, protocol):
        compressed, plain, layout = self._compressed
        return _again, (compressed, plain, self._parts[1], tuple(self.shape), layout is sparse_csr), self._told()

    def __deepcopy__(self, memo):
        compressed, plain, layout = self._compressed
        values = self._parts[1].detach().clone().requires_grad_(self._parts[1].requires_grad)
        return self._tell(CompressedTensor(compressed.clone(), plain.clone(), values, self.shape, layout), memo)


def _turns(matrix, name, dims, named):
    """Whether transpose(), t() or the like swaps rows with columns. Raises what a plain tensor raises."""
    getattr(tg.empty(matrix.shape[:2], device="meta"), name)(*dims, **named)
    if name == "t":
        return True
    first, second = (*dims, *named.values())
    return first % 2 != second % 2


def _again(compressed, plain, values, size, rows):
    return CompressedTensor(compressed, plain, values, size, sparse_csr if rows else sparse_csc)


def compress(t, layout):
    """A matrix of the layout sparse_coo in a compressed one."""
    if layout not in _ALONG:
        raise NotImplementedError(
            f"to_sparse(): the layouts sparse_coo, sparse_csr and sparse_csc are here, {layout} is not"
        )
    if t.sparse_dim() != 2:
        raise NotImplementedError(f"to_sparse(): {layout} is written for matrices, got {list(t.shape)}")
    if layout is sparse_csc:
        places, values, _ = t._parts
        ordered = SparseTensor(places.flip(0), values, (t.shape[1], t.shape[0], *t.shape[2:])).coalesce()
    else:
        ordered = t.coalesce()
    (outer, plain), values, _ = ordered._parts
    counts = outer.bincount(minlength=t.shape[_ALONG[layout]])
    return CompressedTensor(tg.cat([counts.new_zeros(1), counts.cumsum(0)]), plain, values, t.shape, layout)


@boundary
def sparse_compressed_tensor(
    compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None, pin_memory=False,
    requires_grad=False, check_invariants=None,
):  # fmt: skip
    """A matrix of the layout sparse_csr or sparse_csc.

    Args:
        compressed_indices: integers (rows + 1), or columns: where each begins in the values; the last is their number.
        plain_indices: integers (values): the column, or row, of each.
        values: one for each place, each a number or a tensor of the further dimensions; gradients go through them.
        size: by default the smallest that holds the places.
        requires_grad: makes the values a leaf.

    Raises:
        RuntimeError: the parts do not go together, or the layout is none of the two.
    """
    if layout not in _ALONG:
        raise RuntimeError(f"sparse_compressed_tensor(): layout must be sparse_csr or sparse_csc, but got {layout}")
    compressed, plain, values = (tg.as_tensor(x) for x in (compressed_indices, plain_indices, values))
    values = values.to(device or values.device, dtype or values.dtype)
    if compressed.dim() != 1 or plain.dim() != 1 or values.dim() < 1:
        raise NotImplementedError(
            f"sparse_compressed_tensor(): batches are not here: expected two vectors and values, got "
            f"{list(compressed.shape)}, {list(plain.shape)} and {list(values.shape)}"
        )
    if size is None:
        other = int(plain.max()) + 1 if plain.numel() else 0
        size = (*(compressed.numel() - 1, other)[:: 1 if layout is sparse_csr else -1], *values.shape[1:])
    _check(compressed, plain, values, tuple(size), layout)
    made = CompressedTensor(compressed.detach(), plain.detach(), values, size, layout)
    return made.requires_grad_() if requires_grad else made


def _check(compressed, plain, values, size, layout):
    (first, second), along = _NAMES[layout], _ALONG[layout]
    if compressed.dtype not in (tg.int32, tg.int64) or plain.dtype is not compressed.dtype:
        raise RuntimeError(
            f"{first} and {second} must be int32 or int64, both alike, but got {compressed.dtype} and {plain.dtype}"
        )
    if (
        len(size) < 2
        or size[2:] != values.shape[1:]
        or compressed.numel() != size[along] + 1
        or plain.numel() != values.size(0)
    ):
        raise RuntimeError(
            f"{first} must have one element more than size has along dimension {along}, and {second} one for each "
            f"value, but got {compressed.numel()}, {plain.numel()} and {list(values.shape)} for the size {list(size)}"
        )
    if compressed.is_meta:
        return
    if (
        int(compressed[0]) != 0
        or int(compressed[-1]) != plain.numel()
        or bool((compressed[1:] < compressed[:-1]).any())
    ):
        raise RuntimeError(f"{first} must rise from 0 to the number of values {plain.numel()}")
    if plain.numel() and not 0 <= int(plain.min()) <= int(plain.max()) < size[1 - along]:
        raise RuntimeError(f"{second} must lie between 0 and {size[1 - along] - 1}")


@boundary
def sparse_csr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, layout=sparse_csr, device=None, pin_memory=False,
    requires_grad=False, check_invariants=None,
):  # fmt: skip
    """A matrix that stores its rows one behind the other; see `sparse_compressed_tensor`.

    >>> import tinygrad_ext as tg
    >>> tg.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0], (2, 2)).to_dense().tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


@boundary
def sparse_csc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, layout=sparse_csc, device=None, pin_memory=False,
    requires_grad=False, check_invariants=None,
):  # fmt: skip
    """A matrix that stores its columns one behind the other; see `sparse_compressed_tensor`."""
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )
