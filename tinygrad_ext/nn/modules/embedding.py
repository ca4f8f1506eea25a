"""Tables of vectors looked up by index, one by one or in bags."""

import tinygrad_ext as tg

from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(Module):
    """Look up rows of a learned ``(num_embeddings, embedding_dim)`` table.

    Args:
        num_embeddings: number of rows.
        embedding_dim: size of a row.
        padding_idx: a row that stays zero and gets no gradient; negative counts from the end.
        max_norm, norm_type: rows in use are shortened to that norm, in place, before each call.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.
        sparse: the table's gradient is of the layout sparse_coo; see SGD, Adagrad and SparseAdam.

    Raises:
        AssertionError: ``padding_idx`` is outside the table.
    """

    def __init__(
        self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0,
        scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _row(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            table = tg.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            _check_table(_weight, num_embeddings, embedding_dim)
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self):
        """Draw the table from the standard normal distribution; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with tg.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input):
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self):
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += ", scale_grad_by_freq=True"
        if self.sparse:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(
        cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0,
        scale_grad_by_freq=False, sparse=False,
    ):  # fmt: skip
        """Make a layer around an existing table, which is not trained unless ``freeze=False``."""
        if embeddings.dim() != 2:
            raise AssertionError(
                f"Embeddings parameter is expected to be 2-dimensional, got {embeddings.dim()} dimensions"
            )
        rows, size = embeddings.shape
        return cls(
            rows, size, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight=embeddings, _freeze=freeze,
        )  # fmt: skip


class EmbeddingBag(Module):
    """Sums, means or maxima over bags of rows of a learned ``(num_embeddings, embedding_dim)`` table.

    Args:
        num_embeddings: number of rows.
        embedding_dim: size of a row.
        max_norm, norm_type: rows in use are shortened to that norm, in place, before each call.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        include_last_offset: offsets end with the number of all indices.
        padding_idx: a row that starts as zero, does not count, and gets no gradient; negative counts from the end.
        sparse: the table's gradient is of the layout sparse_coo; see SGD, Adagrad and SparseAdam.

    Raises:
        AssertionError: ``padding_idx`` is outside the table.
    """

    def __init__(
        self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean",
        sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _row(padding_idx, num_embeddings)
        if _weight is None:
            self.weight = Parameter(tg.empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
            self.reset_parameters()
        else:
            _check_table(_weight, num_embeddings, embedding_dim)
            self.weight = Parameter(_weight)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self):
        """Draw the table from the standard normal distribution; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with tg.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self):
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += ", scale_grad_by_freq=True"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text

    @classmethod
    def from_pretrained(
        cls, embeddings, freeze=True, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean",
        sparse=False, include_last_offset=False, padding_idx=None,
    ):  # fmt: skip
        """Make a layer around an existing table, which is not trained unless ``freeze=False``."""
        if embeddings.dim() != 2:
            raise AssertionError(
                f"Embeddings parameter is expected to be 2-dimensional, got {embeddings.dim()} dimensions"
            )
        rows, size = embeddings.shape
        layer = cls(
            rows, size, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset,
            padding_idx,
        )  # fmt: skip
        layer.weight.requires_grad = not freeze
        return layer


def _row(index, count):
    if index is None:
        return None
    if not -count <= index < count:
        raise AssertionError(f"padding_idx must be within num_embeddings: got {index} for {count} rows")
    return index % count


def _check_table(table, num_embeddings, embedding_dim):
    if tuple(table.shape) != (num_embeddings, embedding_dim):
        raise AssertionError(
            f"Shape of weight does not match num_embeddings and embedding_dim: got {tuple(table.shape)}, "
            f"expected {(num_embeddings, embedding_dim)}"
        )
