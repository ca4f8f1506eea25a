"""How indexing goes through vmap: the batch becomes one more index, or one more dimension of what is indexed.

What all samples share is not repeated: a shared index stands behind a `:` for the batch, and a shared tensor is read at
the indices of all samples at once. Only where both are batched the number of the sample is an index of its own.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.call.op_tables import ops
from tinygrad_ext.core.data.dtype import by_name
from tinygrad_ext.ops.batching import after, rows, told, unfit, widened

_MASKS = by_name["bool"], by_name["uint8"]

# ---- what the rules share ------------------------------------------------------------------------------------------


def refuse(name, argument):
    """The error for a batched tensor whose values decide on a size."""
    raise RuntimeError(
        f"vmap: {name}: the size of its result depends on the data of `{argument}`, so it may differ from sample to "
        f"sample. Compute it outside of vmap, or use a form of fixed size, such as tg.where({argument}, a, b)."
    )


def lifted(tensor):
    """With a dimension for the elements, where a sample has none."""
    return tensor.unsqueeze(1) if tensor.dim() == 1 else tensor


def numbers(b, index):
    """The number of the sample at each place of a batched index."""
    return tg.arange(b.size, device=index.device).reshape((b.size, *(1,) * (index.dim() - 1)))


def call(name, *args):
    return operation(ops["aten::" + name])(*args)


# ---- tensors of indices, one for each dimension --------------------------------------------------------------------


class _Aim:
    """Index tensors for all samples, and where the batch and the indices' common shape stand in what they pick.

    The dimensions of a picked tensor are (batch, common shape, rest) with the samples' numbers among the indices, and
    otherwise as the op puts them; `front` and `back` move them to a sample's order with the batch in front, and from
    it.
    """

    def __init__(self, b, indices, owned):
        """owned: whether what is indexed has a batch."""
        dims, at, self.common, first = [], 0, 0, None
        for i in indices:
            if i is None:
                at += 1
                continue
            rank, mask, own = i.dim(), i.dtype in _MASKS, b.owns(i)
            if own:
                if mask:
                    refuse("indexing with a mask", "mask")
                first = i if first is None else first
            taken = rank if mask else 1
            dims += range(at, at + taken)
            at += taken
            self.common = max(self.common, min(rank, 1) if mask else rank)
        self.rest = -len(dims)
        together = not dims or dims[-1] - dims[0] == len(dims) - 1
        place = dims[0] if dims and together else 0
        if first is None:
            self.indices, self.moves = [None, *indices], (0, 0) if together else (self.common, 0)
            return
        whole = [widened(b.whole(i), self.common) if b.owns(i) else i for i in indices]
        if not owned:
            self.indices, self.moves = whole, (place, 0)
            return
        number = numbers(b, widened(b.whole(first), self.common))
        start = tuple(range(1, self.common + 1)) if place else 0
        self.indices, self.moves = [number, *whole], (start, tuple(d + place for d in start) if place else 0)

    def front(self, picked):
        source, target = self.moves
        return picked if source == target else picked.movedim(source, target)

    def back(self, tensor):
        source, target = self.moves
        return tensor if source == target else tensor.movedim(target, source)

    def spread(self, b, values, rank):
        """Values that broadcast to what is picked of `rank` dimensions, with the batch where that has it."""
        rank += self.rest + self.common
        shape, extra = tuple(values.shape), values.dim() - rank
        if any(s != 1 for s in shape[: max(extra, 0)]):
            raise RuntimeError(f"shape mismatch: values of shape {list(shape)} have more than {rank} dimensions")
        shape = shape[extra:] if extra > 0 else (1,) * -extra + shape
        return self.back(b.whole(values).reshape((b.size, *shape)) if b.owns(values) else values.reshape((1, *shape)))


def _is_mask(index):
    return index is not None and index.dtype in _MASKS


@told("index.Tensor")
def index_of(b, self, indices):
    aim = _Aim(b, indices, b.owns(self))
    return aim.front(call("index.Tensor", b.whole(self) if b.owns(self) else self, aim.indices))


@told("_index_backward")
def index_backward(b, grad, size, indices):
    aim = _Aim(b, indices, True)
    return aim.spread(b, grad, len(size))._index_backward((b.size, *size), aim.indices)


@told("index_put")
def index_put(b, self, indices, values, accumulate=False):
    if any(b.owns(i) and _is_mask(i) for i in indices):
        return _put_one(b, self, indices, values, accumulate)
    aim = _Aim(b, indices, True)
    return b.whole(self).index_put(aim.indices, aim.spread(b, values, self.dim()), accumulate)


def _put_one(b, self, indices, values, accumulate):
    """Values of which each place under a batched mask gets the same, so that it does not matter how many there are."""
    *before, mask = [i for k, i in enumerate(indices) if any(later is not None for later in indices[k:])]
    behind = self.dim() - mask.dim() - len(before)
    shape = tuple(values.shape)
    split = max(len(shape) - behind, 0)
    front, one, rest = shape[: max(split - 1, 0)], shape[max(split - 1, 0) : split], shape[split:]
    if any(i is not None for i in before) or one not in ((), (1,)) or self.dtype != values.dtype:
        refuse("index_put with a mask", "mask")
    if tuple(mask.shape) != tuple(self.shape[len(before) : len(before) + mask.dim()]):
        raise IndexError(f"the mask {list(mask.shape)} does not match the indexed tensor {list(self.shape)}")
    whole = b.whole(self)
    under = b.whole(mask).to(tg.bool).reshape((b.size, *(1,) * len(before), *mask.shape, *(1,) * behind))
    shape = (*front, *(1,) * mask.dim(), *rest) if one else shape
    new = widened(b.whole(values).reshape((b.size, *shape)), self.dim()) if b.owns(values) else values.reshape(shape)
    return tg.where(under, whole + new if accumulate else new, whole)


# ---- one vector along one dimension --------------------------------------------------------------------------------


def _vector(self, index):
    """An index that fits; an error otherwise, where the batch would hide it."""
    if index.dim() > 1 or (not self.dim() and index.numel() != 1):
        raise IndexError(f"an index of shape {list(index.shape)} is no vector for {list(self.shape)}")


def _numbered(b, index, size):
    """A vector for each sample as one vector for the rows of all; what lies outside of its sample's lies outside."""
    index = b.whole(index).reshape((b.size, index.numel()))
    moved = index.to(tg.int64) + numbers(b, index) * size
    return tg.where((index >= 0) & (index < size), moved, b.size * size).reshape(-1)


def _as_rows(whole, dim):
    """Batch and dimension `dim` as one in front."""
    whole = whole.movedim(dim, 1)
    return whole.reshape((whole.shape[0] * whole.shape[1], *whole.shape[2:]))


def _from_rows(b, rows, size, dim):
    return rows.reshape((b.size, size, *rows.shape[1:])).movedim(1, dim)


@told("index_select")
def index_select(b, self, dim, index):
    _vector(self, index)
    at = after(dim, self.dim())
    if not b.owns(index):
        found = lifted(b.whole(self)).index_select(at, index)
    elif not b.owns(self):
        found = self.index_select(dim, b.whole(index).reshape(-1)) if self.dim() else self.expand(b.size)
        found = found.reshape((*self.shape[: at - 1], b.size, index.numel(), *self.shape[at:])).movedim(at - 1, 0)
    else:
        x = lifted(b.whole(self))
        picked = _as_rows(x, at).index_select(0, _numbered(b, index, x.shape[at]))
        found = _from_rows(b, picked, index.numel(), at)
    return found if self.dim() else found.squeeze(1)


@told("_index_select_backward")
def index_select_backward(b, grad, size, dim, index):
    at, sizes = after(dim, len(size)), tuple(size) or (1,)
    g = lifted(b.whole(grad))
    if b.owns(index):
        rest = (*sizes[: at - 1], *sizes[at:])
        places = _numbered(b, index, sizes[at - 1])
        found = _as_rows(g, at)._index_select_backward((b.size * sizes[at - 1], *rest), 0, places)
        found = _from_rows(b, found, sizes[at - 1], at)
    else:
        found = g._index_select_backward((b.size, *sizes), at, index)
    return found if size else found.squeeze(1)


def _into(name):
    """index_add and index_copy."""

    @told(name)
    def rule(b, self, dim, index, source, alpha=1):
        _vector(self, index)
        if name == "index_copy" and index.dtype is not tg.int64:
            raise RuntimeError(f"index_copy: expected int64 for index, got {index.dtype}")
        further = {} if alpha == 1 else {"alpha": alpha}
        at, x, s = after(dim, self.dim()), lifted(b.whole(self)), lifted(b.whole(source))
        if b.owns(index):
            size = x.shape[at]
            found = getattr(_as_rows(x, at), name)(0, _numbered(b, index, size), _as_rows(s, at), **further)
            found = _from_rows(b, found, size, at)
        else:
            found = getattr(x, name)(at, index, s, **further)
        return found if self.dim() else found.squeeze(1)

    return rule


index_add, index_copy = _into("index_add"), _into("index_copy")


def index_fill(kind):
    """index_fill with a number or a tensor; the vector may count from the end."""

    @told("index_fill.int_" + kind)
    def rule(b, self, dim, index, value):
        at, x = after(dim, self.dim()), lifted(b.whole(self))
        if not b.owns(index) and not b.owns(value):
            filled = x.index_fill(at, index, value)
        else:
            filled = fill_where(b, x, _named(b, x.shape[at], at, x.dim(), index), value)
        return filled if self.dim() else filled.squeeze(1)

    return rule


def _named(b, size, dim, rank, index):
    """A mask of the places along `dim` that the index names."""
    if index.dtype is not tg.int64 or index.dim() > 1:
        raise IndexError("expected a vector of int64 for index")
    named = tg.zeros((b.size, size), dtype=tg.bool, device=index.device)
    places = b.whole(index).reshape((b.size, index.numel()))
    named = named.index_put([numbers(b, places), places], tg.ones((), dtype=tg.bool, device=index.device))
    return named.reshape([b.size if d == 0 else size if d == dim else 1 for d in range(rank)])


def fill_where(b, whole, mask, value):
    """A tensor with a value of each sample, or of all, where a mask is true."""
    if not b.owns(value):
        return whole.masked_fill(mask, value)
    if value.dim():
        raise RuntimeError(f"expected a value without dimensions, got shape {list(value.shape)}")
    if value.is_complex() and not whole.is_complex():
        raise RuntimeError(
            f"vmap: whether complex values fit {whole.dtype} depends on their data: give value.real, or a complex self"
        )
    rank = max(whole.dim(), mask.dim())
    return tg.where(mask, b.whole(value).to(whole.dtype).reshape((b.size, *(1,) * (rank - 1))), whole)


@told("take")
def take(b, self, index):
    if not b.owns(self):
        return self.take(b.whole(index))
    if index.dtype is not tg.int64:
        raise RuntimeError(f"take: expected int64 for index, got {index.dtype}")
    return index_of(b, b.wrap(rows(b, self)), [index])


@told("put")
def put(b, self, index, source, accumulate):
    x, index, source = rows(b, self), rows(b, index), rows(b, source)
    if index.dtype is not tg.int64 or source.dtype is not x.dtype or source.shape != index.shape:
        raise unfit("put")
    index = tg.where(index < 0, index + x.shape[1], index)
    found = x.scatter_add(1, index, source) if accumulate else x.scatter(1, index, source)
    return found.reshape(b.whole(self).shape)


# ---- an index as large as the result -------------------------------------------------------------------------------


def along(name):
    """gather and the scatter family: every tensor has the batch, and a dimension besides."""

    @told(name)
    def rule(b, self, dim, *rest):
        row = [lifted(b.whole(a)) if isinstance(a, tg.Tensor) else a for a in rest]
        found = call(name, lifted(b.whole(self)), after(dim, self.dim()), *row)
        return found if (rest[0] if name == "gather" else self).dim() else found.squeeze(1)

    return rule


@told("_gather_backward")
def gather_backward(b, grad, size, dim, index):
    sizes = (b.size, *(size or (1,)))
    found = lifted(b.whole(grad))._gather_backward(sizes, after(dim, len(size)), lifted(b.whole(index)))
    return found if size else found.squeeze(1)
