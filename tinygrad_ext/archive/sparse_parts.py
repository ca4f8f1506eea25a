"""Sparse tensors in files: the plain tensors that one consists of, and one made of those of a file.

A file is not believed: places are checked as those that a program gives, and whether they stand in order is seen.
"""

import sys

from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.data.dtype import sparse_coo, sparse_csc, sparse_csr
from tinygrad_ext.core.data.tensor import Parameter, Tensor

LAYOUTS = {str(layout): layout for layout in (sparse_coo, sparse_csr, sparse_csc)}


def parts(t):
    """(layout, its tensors and its size as PyTorch's files order them); None of any other tensor.

    Places have memory of their own each, as `made` asks for.
    """
    sparse = sys.modules.get("tinygrad_ext.sparse")
    if sparse is None or type(t) not in (sparse.SparseTensor, sparse.CompressedTensor):
        return None
    if type(t) is sparse.SparseTensor:
        return sparse_coo, (t._indices().contiguous(), t._values().detach(), t.shape, t.is_coalesced())
    compressed, plain, layout = t._compressed
    return layout, (compressed.contiguous(), plain.contiguous(), t.values().detach(), t.shape)


def attributes(t):
    """What somebody has set on a tensor; names with an underscore are a sparse one's own."""
    return {name: v for name, v in vars(t).items() if type(t) in (Tensor, Parameter) or not name.startswith("_")}


def with_attributes(t, found):
    """A tensor with such attributes. ValueError for names that are none."""
    if type(found) is not dict or not all(type(name) is str for name in found):
        raise ValueError("it sets attributes whose names are no text")
    if isinstance(t, Tensor) and type(t) not in (Tensor, Parameter) and any(name.startswith("_") for name in found):
        raise ValueError("it sets private attributes of a sparse tensor")
    vars(t).update(found)
    return t


def cost(layout, given):
    """What to charge for `made`, which looks at every place."""
    return sum(max(t.numel() // 16, 0 if t.numel() else max(t.shape)) for t in given[:-1] if isinstance(t, Tensor))


def _overlap(t):
    """Whether a tensor has more elements than its memory: what is made of it would be larger than the file."""
    return t.numel() * t.itemsize > t.untyped_storage().nbytes()


def made(layout, given):
    """The tensor of a layout and what `parts` gives. ValueError, RuntimeError for what does not go together."""
    count = 2 if layout is sparse_coo else 3
    *tensors, size = given[: count + 1]
    if layout not in LAYOUTS.values() or not all(type(t) is Tensor for t in tensors):
        raise ValueError(f"a sparse tensor of the layout {layout} and {[type(t).__name__ for t in tensors]}")
    if len(given) not in (count + 1, count + 2) or any(t.is_floating_point() for t in tensors[:-1]):
        raise ValueError(f"a sparse tensor of {len(given)} parts, {[t.dtype for t in tensors]}")
    if len({t.is_meta for t in tensors[:-1]}) > 1 or any(_overlap(t) for t in tensors[:-1] if not t.is_meta):
        raise ValueError("places of a sparse tensor that lie on each other, or apart from the values")
    if layout is not sparse_coo:
        return later("sparse tensors").sparse_compressed_tensor(*tensors, size, layout=layout)
    in_order = bool(given[3]) if len(given) > 3 else False
    return later("sparse tensors").sparse_coo_tensor(*tensors, size, is_coalesced=in_order and _in_order(tensors[0]))


def _in_order(indices):
    """Whether each place, a column, comes behind the one before it."""
    if indices.is_meta:
        return True
    found = indices.new_zeros(max(indices.size(1) - 1, 0)).bool()
    for before, after in reversed(list(zip(indices[:, :-1], indices[:, 1:], strict=True))):
        found = (after > before) | ((after == before) & found)
    return bool(found.all())
