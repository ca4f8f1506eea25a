"""Where the stored entries of a matrix are: compressed rows, without the values."""

import numpy as np

import tinygrad_ext as tg


class Pattern:
    """Places of the stored entries of a (rows, columns) matrix, row by row and in ascending columns.

    Attributes: shape; indptr and indices, integer tensors as in SciPy's CSR format; rows, the row of each entry.
    Patterns are shared by all matrices that are made of one another, and are not changed.
    """

    def __init__(self, indptr, indices, shape):
        self.indptr, self.indices, self.shape = indptr, indices, tuple(shape)
        self._rows = self._transposed = None

    @classmethod
    def of(cls, array):
        """(pattern, values) of a SciPy sparse array or matrix of two dimensions, whatever its format.

        Entries stored twice are added up. values is a NumPy array, which may be the array's own. ValueError for other
        numbers of dimensions.
        """
        if array.ndim != 2:
            raise ValueError(f"a sparse array of {array.ndim} dimension(s) is not served, only of 2: use .toarray()")
        csr = array.tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        indptr, indices = (tg.from_numpy(np.ascontiguousarray(part)) for part in (csr.indptr, csr.indices))
        return cls(indptr, indices, csr.shape), csr.data

    @property
    def rows(self):
        """Row of each entry, int64."""
        if self._rows is None:
            indptr = self.indptr.long()
            self._rows = tg.arange(self.shape[0]).repeat_interleave(indptr[1:] - indptr[:-1])
        return self._rows

    @property
    def columns(self):
        """Column of each entry, int64."""
        return self.indices.long()

    @property
    def flat(self):
        """Place of each entry in the matrix written out row by row: ascending."""
        return self.rows * self.shape[1] + self.columns

    def transposed(self):
        """(pattern of the transpose, number that each of its entries has here)."""
        if self._transposed is None:
            from scipy.sparse import csr_array

            order = csr_array(
                (np.arange(len(self.indices)), self.indices.numpy(), self.indptr.numpy()), self.shape
            ).tocsc()
            indptr, indices, numbers = (tg.from_numpy(part) for part in (order.indptr, order.indices, order.data))
            self._transposed = Pattern(indptr, indices, self.shape[::-1]), numbers
        return self._transposed

    def same_as(self, other):
        """Whether the entries are at the same places."""
        return self is other or (
            self.shape == other.shape and self.indptr.equal(other.indptr) and self.indices.equal(other.indices)
        )

    @classmethod
    def at(cls, flat, shape):
        """The pattern whose `flat` is a given ascending NumPy array."""
        rows, columns = np.divmod(flat, max(shape[1], 1))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
        return cls(tg.from_numpy(indptr), tg.from_numpy(columns), shape)

    def __repr__(self):
        return f"<pattern of {len(self.indices)} entries in {self.shape[0]} x {self.shape[1]}>"
