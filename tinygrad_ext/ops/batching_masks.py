"""How masks, searches, counts and systems of equations go through vmap."""

import tinygrad_ext as tg
from tinygrad_ext.core.data.dtype import by_name
from tinygrad_ext.ops.batching import rows, widened
from tinygrad_ext.ops.batching_index import call, fill_where, numbers, refuse, told
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.shapes import broadcast_sizes

# ---- masks ---------------------------------------------------------------------------------------------------------


def _aligned(b, tensor, rank):
    """With the batch in front of `rank` dimensions; what is shared as it is."""
    return widened(b.whole(tensor), rank) if b.owns(tensor) else tensor


def _checked(mask):
    if mask.dtype is not by_name["bool"]:
        raise RuntimeError(f"expected a mask of bool, got {mask.dtype}")
    return mask


def _common(self, mask):
    """The shape that a sample of self and the mask have together."""
    return broadcast_sizes(self.shape, _checked(mask).shape)


def masked_fill(kind):
    """masked_fill with a number or a tensor."""

    @told("masked_fill." + kind)
    def rule(b, self, mask, value):
        rank = max(self.dim(), _checked(mask).dim())
        x = widened(b.whole(self), rank) if b.owns(self) or b.owns(value) else self
        return fill_where(b, x, _aligned(b, mask, rank), value)

    return rule


@told("masked_scatter")
def masked_scatter(b, self, mask, source):
    """Each true place gets the element of source whose number is that of the true ones before it."""
    if self.dtype != source.dtype:
        raise RuntimeError(f"expected self and source to have same dtypes but got {self.dtype} and {source.dtype}")
    shape = _common(self, mask)
    count, none = _count(shape), not source.numel()
    under = _aligned(b, mask, len(shape)).expand((b.size, *shape) if b.owns(mask) else shape)
    flat = under.reshape((b.size, count) if b.owns(mask) else (count,))
    place = tg.where(flat, flat.to(tg.int64).cumsum(-1) - (0 if none else 1), 0)
    elements = rows(b, source) if b.owns(source) else source.reshape(-1)
    if none:  # which lets only a mask pass that is nowhere true
        elements = elements.new_zeros((*elements.shape[:-1], 1))
    if not b.owns(mask):
        taken = elements.index_select(-1, place)
    else:
        taken = elements.gather(1, place) if b.owns(source) else elements.take(place)
    taken = taken.reshape((*taken.shape[:-1], *shape))
    return tg.where(under, taken, _aligned(b, self, len(shape)))


def _count(shape):
    count = 1
    for size in shape:
        count *= size
    return count


@told("masked_select")
def masked_select(b, self, mask):
    if b.owns(mask):
        refuse("masked_select", "mask")
    shape = _common(self, mask)
    x = widened(b.whole(self), len(shape)).expand((b.size, *shape))
    return call(
        "index.Tensor", x.reshape((b.size, *(shape or (1,)))), [None, mask.expand(shape).reshape(shape or (1,))]
    )


@told("_masked_select_backward")
def masked_select_backward(b, grad, size, mask):
    shape = broadcast_sizes(size, mask.shape)
    if b.owns(mask):
        return masked_scatter(b, tg.zeros(shape, dtype=grad.dtype, device=grad.device), mask, grad)
    spread = mask.expand(shape).reshape(shape or (1,))
    return b.whole(grad)._index_backward((b.size, *(shape or (1,))), [None, spread]).reshape((b.size, *shape))


def nonzero(b, self):
    refuse("nonzero", "self")


# ---- places and counts ---------------------------------------------------------------------------------------------


@told("_searchsorted")
def searchsorted(b, sorted_sequence, self, right, sorter):
    """One row for all values, or one for each vector of them: a batch of either makes the first case the second."""
    ours, rank = b.owns(sorted_sequence) or b.owns(sorter), sorted_sequence.dim()
    if ours:
        sequence, order = b.whole(sorted_sequence), sorter if sorter is None else b.whole(sorter)
        values = rows(b, self) if rank == 1 else b.whole(self)
        if rank > 1 and rank != self.dim():
            raise RuntimeError(f"values {list(self.shape)} have no rows for {list(sorted_sequence.shape)}")
        return sequence._searchsorted(values, right, order).reshape((b.size, *self.shape))
    values = b.whole(self)
    if rank == 1:
        return sorted_sequence._searchsorted(values, right, sorter)
    aside = values.movedim(0, -2)  # the values of all samples in the rows that they share
    found = sorted_sequence._searchsorted(aside.flatten(-2), right, sorter)
    return found.reshape(aside.shape).movedim(-2, 0)


@told("repeat_interleave.Tensor")
def repeat_counts(b, repeats, output_size=None):
    """The counts of all samples in turn; index_select refuses a number that ended up in another sample's part."""
    if output_size is None:
        refuse("repeat_interleave without output_size=", "repeats")
    if repeats.dim() != 1:
        raise RuntimeError(f"expected a vector of repeats, got {list(repeats.shape)}")
    size = repeats.numel()
    found = tg.repeat_interleave(rows(b, repeats).reshape(-1), output_size=b.size * output_size)
    found = found.reshape((b.size, output_size))
    each = tg.arange(size, dtype=found.dtype, device=found.device)
    return each.index_select(0, (found - numbers(b, found) * size).reshape(-1)).reshape(found.shape)


@told("bincount")
def bincount(b, self, weights=None, minlength=0):
    """Where the samples count equally far, which is read off their largest numbers: each in bins of its own."""
    if self.dim() != 1 or minlength < 0 or self.is_floating_point() or self.is_complex():
        raise RuntimeError(f"expected a vector of integers and no negative length, got {list(self.shape)} {self.dtype}")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError(f"expected weights of shape {list(self.shape)}, got {list(weights.shape)}")
    values, size = b.whole(self).to(tg.int64), minlength
    if values.numel():
        sizes = set((values.amax(1) + 1).clamp(min=minlength).tolist())
        if len(sizes) > 1:
            refuse("bincount", "self")
        size = sizes.pop()
        if values.min().item() < 0:
            raise RuntimeError("a negative number would be counted for another sample")
    binned = (values + numbers(b, values) * size).reshape(-1)
    each = None if weights is None else b.whole(weights).reshape(-1)
    return tg.bincount(binned, each, b.size * size).reshape((b.size, size))


def counts(b, self, weights, size):
    values = b.whole(self).to(tg.int64)
    each = None if weights is None else b.whole(weights).reshape(-1)
    binned = fused._bincount((values + numbers(b, values) * size).reshape(-1), each, b.size * size)
    return binned.reshape((b.size, size))


@told("_count_between")
def count_between(b, self, edges, weight=None):
    """The op counts between rows of borders too: those of all samples."""
    borders = b.whole(edges).flatten(0, -2)
    values, each = [None if t is None else b.whole(t).reshape(len(borders), -1) for t in (self, weight)]
    return values._count_between(borders, each).reshape((b.size, *edges.shape[:-1], -1))


# ---- equations -----------------------------------------------------------------------------------------------------


@told("_solve")
def solve(b, A, B):
    """Systems of one matrix for all samples are one system with more columns."""
    if not b.owns(A) and A.dim() == B.dim() == 2:
        columns = b.whole(B).movedim(0, 1)
        found = fused._solve(A, columns.reshape((B.shape[0], b.size * B.shape[1])))
        return found.reshape(columns.shape).movedim(1, 0)
    rank = max(A.dim(), B.dim())
    return fused._solve(_aligned(b, A, rank), _aligned(b, B, rank))
