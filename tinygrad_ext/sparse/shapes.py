"""Shapes of tensors of the layout sparse_coo: what joins them, takes parts of them, and moves their dimensions.

Places change and values stay, so that gradients pass. Rejected: the same through plain tensors, which a large one has
no memory for.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.data.dtype import sparse_coo
from tinygrad_ext.core.grad.methods import set_geometry_from

from .coo import SparseTensor
from .handlers import HANDLERS, handler, wrapped


def _coo(name, t):
    """The tensor, if its places are columns of indices."""
    if t.layout is not sparse_coo:
        raise RuntimeError(f"{name}(): not written for the layout {t.layout}: to_sparse_coo() first")
    return t


# ---- several -------------------------------------------------------------------------------------------------------


def _all_coo(name, tensors):
    tensors = list(tensors)
    for at, t in enumerate(tensors):
        if not isinstance(t, SparseTensor):
            raise RuntimeError(
                f"{name}(): Concatenating sparse tensors, but a dense tensor was found at position {at}."
            )
        _coo(name, t)
    return tensors


@handler("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    """One behind the other along a dimension; what they store is not looked at."""
    first, *others = tensors = _all_coo("cat", tensors)
    dim = wrapped(dim, first.dim())
    for at, t in enumerate(others, 1):
        if t.dim() != first.dim() or any(t.size(d) != first.size(d) for d in range(t.dim()) if d != dim):
            raise RuntimeError(
                f"cat(): All tensors must have the same shape: {list(first.shape)} (except in the concatenating "
                f"dimension), but found shape: {list(t.shape)} at position {at}."
            )
        if t.sparse_dim() != first.sparse_dim():
            raise RuntimeError(
                f"cat(): All tensors must have the same number of sparse dimensions: {first.sparse_dim()}, but tensor "
                f"at position {at} has {t.sparse_dim()}."
            )
    size, start, places, values = list(first.shape), 0, [], []
    size[dim] = sum(t.size(dim) for t in tensors)
    within = dim - first.sparse_dim() + 1  # the dimension among those of the values, where it is one
    for t in tensors:
        at, given, _ = t._parts
        if within <= 0:
            moved = at.new_zeros((at.size(0), 1))
            moved[dim] = start
            at = at + moved
        else:
            around = list(given.shape), list(given.shape)
            around[0][within], around[1][within] = start, size[dim] - start - t.size(dim)
            given = tg.cat([given.new_zeros(around[0]), given, given.new_zeros(around[1])], within)
        places.append(at)
        values.append(given)
        start += t.size(dim)
    return SparseTensor(tg.cat(places, 1), tg.cat(values), size)


@handler("stack")
def stack(tensors, dim=0):
    """Beside each other along a new dimension."""
    tensors = _all_coo("stack", tensors)
    for at, t in enumerate(tensors):
        if t.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                f"{list(t.shape)} at entry {at}"
            )
    dim = wrapped(dim, tensors[0].dim() + 1)
    return cat([unsqueeze(t, dim) for t in tensors], dim)


@handler("vstack", "row_stack")
def vstack(tensors):
    """Matrices below each other."""
    tensors = _all_coo("vstack", tensors)
    return cat([unsqueeze(t, 0) if t.dim() == 1 else t for t in tensors], 0)


@handler("hstack")
def hstack(tensors):
    """Beside each other: along the second dimension, vectors along their only one."""
    tensors = _all_coo("hstack", tensors)
    return cat(tensors, 0 if tensors[0].dim() == 1 else 1)


# ---- one -----------------------------------------------------------------------------------------------------------


@handler("unsqueeze")
def unsqueeze(self, dim):
    """A new dimension of size one; among those of the places up to their last."""
    places, values, in_order = _coo("unsqueeze", self)._parts
    dim, rank = wrapped(dim, self.dim() + 1), self.sparse_dim()
    size = *self.shape[:dim], 1, *self.shape[dim:]
    if dim > rank:
        return SparseTensor(places, values.unsqueeze(dim - rank + 1), size, in_order)
    places = tg.cat([places[:dim], places.new_zeros((1, places.size(1))), places[dim:]])
    return SparseTensor(places, values, size, in_order)


@handler("permute")
def permute(self, *dims):
    """Dimensions in another order, those of places and those of values among themselves."""
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    if len(dims) != self.dim():
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.dim()} is not equal to len(dims) = {len(dims)}"
        )
    dims = [wrapped(d, self.dim()) for d in dims]
    if len({*dims}) < len(dims):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    rank = _coo("permute", self).sparse_dim()
    if any(d >= rank for d in dims[:rank]):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only "
            "transpositions within sparse and dense dimensions are supported."
        )
    places, values, in_order = self._parts
    values = values.permute(0, *[d - rank + 1 for d in dims[rank:]])
    kept = in_order and dims[:rank] == sorted(dims[:rank])
    return SparseTensor(places[dims[:rank]], values, [self.size(d) for d in dims], kept)


@handler("movedim", "moveaxis")
def movedim(self, source, destination):
    """Some dimensions at other positions, the rest in their order."""
    source, destination = ([d] if isinstance(d, int) else list(d) for d in (source, destination))
    source = [wrapped(d, self.dim()) for d in source]
    destination = [wrapped(d, self.dim()) for d in destination]
    order = [d for d in range(self.dim()) if d not in source]
    for to, d in sorted(zip(destination, source, strict=True)):
        order.insert(to, d)
    return permute(self, *order)


@handler("select")
def select(self, dim, index):
    """One index of a dimension; a plain tensor where no dimension of places is left."""
    dim = wrapped(dim, self.dim())
    count = self.size(dim)
    if not -count <= index < count:
        raise IndexError(
            f"select(): index {int(index)} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    index, rank = int(index) % count, self.sparse_dim()
    size = *self.shape[:dim], *self.shape[dim + 1 :]
    places, values, in_order = self._parts
    if dim >= rank:
        return SparseTensor(places, values.select(dim - rank + 1, index), size, in_order)
    chosen = (places[dim] == index).nonzero().squeeze(1)
    values = values.index_select(0, chosen)
    if rank == 1:
        return values.sum(0)
    left = tg.cat([places[:dim], places[dim + 1 :]]).index_select(1, chosen)
    return SparseTensor(left, values, size, in_order or values.size(0) < 2)


@handler("unbind")
def unbind(self, dim=0):
    """All parts along a dimension."""
    return tuple(select(self, dim, i) for i in range(self.size(dim)))


@handler("narrow_copy")
def narrow_copy(self, dim, start, length):
    """The indices of a dimension from one on."""
    dim = wrapped(dim, self.dim())
    places, values, in_order = _coo("narrow_copy", self)._parts
    if start < 0 or length < 0 or start + length > self.size(dim):
        raise RuntimeError(
            "Invalid range to narrow. range(start, start+length) must be a subset of range(0, "
            f"{self.size(dim)}), but got range({start}, {start + length})."
        )
    size, rank = [*self.shape], self.sparse_dim()
    size[dim] = length
    if dim >= rank:
        return SparseTensor(places, values.narrow(dim - rank + 1, start, length), size, in_order)
    chosen = ((places[dim] >= start) & (places[dim] < start + length)).nonzero().squeeze(1)
    moved = places.new_zeros((rank, 1))
    moved[dim] = start
    return SparseTensor(places.index_select(1, chosen) - moved, values.index_select(0, chosen), size, in_order)


# ---- in place ------------------------------------------------------------------------------------------------------


def _become(self, size, parts):
    """Let a tensor have another size and other parts."""
    set_geometry_from(self, tg.empty(size, dtype=self.dtype, device="meta"))
    self._parts = parts
    return self


def _resized(self, size, sparse_dim, dense_dim, clear):
    size = tuple(size)
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    places, values, in_order = _coo("sparse_resize_", self)._parts
    if self.requires_grad:
        raise RuntimeError("sparse_resize_(): a tensor that requires grad keeps its size: detach() it first")
    if clear or not values.size(0):
        values = values.new_empty((0, *size[sparse_dim:]))
        return _become(self, size, (places.new_empty((sparse_dim, 0)), values, True))
    for kind, old, new in (("sparse", self.sparse_dim(), sparse_dim), ("dense", self.dense_dim(), dense_dim)):
        if old != new:
            raise RuntimeError(
                f"changing the number of {kind} dimensions (from {old} to {new}) on a non-empty sparse tensor is not "
                "supported: make an empty one with sparse_coo_tensor(size=...)"
            )
        old, new = (s[:sparse_dim] if kind == "sparse" else s[sparse_dim:] for s in (self.shape, size))
        if any(b < a for a, b in zip(old, new, strict=True)):
            raise RuntimeError(
                f"shrinking the size of {kind} dimensions (from {list(old)} to {list(new)}) on a non-empty sparse "
                "tensor is not supported: make an empty one with sparse_coo_tensor(size=...)"
            )
    grown = values.new_zeros((values.size(0), *size[sparse_dim:]))
    grown[tuple(slice(s) for s in values.shape)] = values
    return _become(self, size, (places, grown, in_order))


def sparse_resize_(self, size, sparse_dim, dense_dim):
    """Another size for this tensor, none of whose dimensions shrinks while something is stored."""
    return _resized(self, size, sparse_dim, dense_dim, clear=False)


def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    """Another size for this tensor, which stores nothing afterwards."""
    return _resized(self, size, sparse_dim, dense_dim, clear=True)


@handler("resize_as_")
def resize_as_(self, other, *, memory_format=None):
    """The size of another sparse tensor, as `sparse_resize_` gives it."""
    if not isinstance(self, SparseTensor) or not isinstance(other, SparseTensor):
        raise NotImplementedError("resize_as_(): a plain and a sparse tensor cannot take each other's size")
    if self.shape == other.shape:
        return self
    return sparse_resize_(self, other.shape, other.sparse_dim(), other.dense_dim())


@handler("copy_")
def copy_(self, src, non_blocking=False):
    """What another sparse tensor stores, in this one's dtype."""
    if not isinstance(self, SparseTensor) or not isinstance(src, SparseTensor):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{self.type()} and src type = {src.type()}: to_dense() or to_sparse() first"
        )
    if self.layout is not src.layout:
        raise RuntimeError(f"copy_(): expected src of the layout {self.layout}, but got {src.layout}")
    if self.shape != src.shape and self.layout is not sparse_coo:
        raise RuntimeError(f"copy_(): expected src of the size {list(self.shape)}, but got {list(src.shape)}")
    if self.requires_grad and self.is_leaf and tg.is_grad_enabled():
        raise RuntimeError("copy_(): a leaf Variable that requires grad is being used in an in-place operation.")
    resize_as_(self, src)
    if self.layout is not sparse_coo:
        compressed, plain, layout = src._compressed
        self._compressed = compressed.clone(), plain.clone(), layout
    places, values, in_order = src._parts
    self._parts = places.clone(), values.to(self.dtype).clone(), in_order
    return self


# ---- of nothing ----------------------------------------------------------------------------------------------------


@handler("new_zeros", "new_empty")
def new_zeros(self, *size, dtype=None, device=None, requires_grad=False, **options):
    """A tensor of a size that stores nothing."""
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    made = tg.sparse_coo_tensor(size=tuple(size), dtype=dtype or self.dtype, device=device or self.device)
    return made.requires_grad_() if requires_grad else made


@handler("any")
def any_stored(self, dim=None, keepdim=False):
    """Whether an element is not zero."""
    if dim is not None:
        raise NotImplementedError("any(): of a sparse tensor only that of all elements; to_dense() makes a plain one")
    return self.coalesce()._parts[1].any() if self.layout is sparse_coo else self._parts[1].any()


HANDLERS["empty_like"] = HANDLERS["zeros_like"]
HANDLERS["is_contiguous"] = lambda self, memory_format=None: False
HANDLERS["is_same_size"] = lambda self, other: self.shape == other.shape
HANDLERS["element_size"] = lambda self: self._parts[1].element_size()
for _method in (sparse_resize_, sparse_resize_and_clear_):
    setattr(SparseTensor, _method.__name__, _method)
