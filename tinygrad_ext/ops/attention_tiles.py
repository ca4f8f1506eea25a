"""Attention over long sequences: some rows of queries at a time, so that the whole matrix of scores never exists.

Forward is a kernel (kernels/attention.c). Backward makes each tile again (Dao et al. 2022) and keeps none; half a
megabyte of scores stays in the cache between the products. Rejected: tiles over the keys too, with running maxima; they
save memory only where one row of scores is larger than that, and cost a second pass over the result.
"""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops.batching import told
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import together
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

_TILE = 1 << 17  # scores of one tile


def _heads(*tensors):
    """(common batch shape, each tensor as (heads, rows, columns))."""
    batch = tg.broadcast_shapes(*[t.shape[:-2] for t in tensors])
    return batch, [t.expand(*batch, *t.shape[-2:]).reshape(math.prod(batch), *t.shape[-2:]) for t in tensors]


def _tiles(rows, columns, is_causal):
    """(first row, behind the last one, keys that these rows may look at)."""
    step = max(16, min(rows, _TILE // max(columns, 1)))
    for first in range(0, rows, step):
        last = min(first + step, rows)
        yield first, last, min(last, columns) if is_causal else columns


def _matrices(attn_mask, batch):
    """A mask with a matrix for each head, without its being repeated in memory."""
    if attn_mask is None:
        return None
    rows, columns = (1, 1, *attn_mask.shape)[-2:]
    return attn_mask.expand(*batch, rows, columns)


def _place(batch, head):
    """Which head it is in each dimension of the batch."""
    place = []
    for size in reversed(batch):
        place.append(head % size)
        head //= size
    return tuple(place[::-1])


def _leading(attn_mask, batch):
    """The sizes of a mask in front of its matrices, as many as those of the batch."""
    own = tuple(attn_mask.shape[:-2])
    return (*[1] * (len(batch) - len(own)), *own)


def _mask_of(masks, batch, head, first, last, keys):
    """The part of a mask for some rows of one head."""
    if masks is None:
        return None
    mask = masks[_place(batch, head)]
    mask = mask[first:last] if mask.shape[0] > 1 else mask
    return mask[:, :keys] if mask.shape[1] > 1 else mask


def weights_of(scores, mask, is_causal, first=0):
    """(softmax of scores whose rows are those from `first` on, the rows that may look at nothing or None).

    The result of such rows is zero, and so must their gradients be: their weights are finite and meet no gradient."""
    if is_causal:
        seen = tg.ones(scores.shape[-2:], dtype=tg.bool, device=scores.device).tril(first)
        if mask is None:
            return scores.masked_fill(seen.logical_not(), -float("inf")).softmax(-1), None
        mask = mask & seen if mask.dtype == tg.bool else mask.masked_fill(seen.logical_not(), -float("inf"))
    if mask is None:
        return scores.softmax(-1), None
    if mask.dtype == tg.bool:
        weights = scores.masked_fill(mask.logical_not(), -float("inf")).softmax(-1)
        return fused.where(mask.any(-1, True), weights, 0.0), None
    blind = mask.isneginf().all(-1, True)
    return (scores + mask.masked_fill(blind, 0)).softmax(-1), blind


def _forward(query, key, value, attn_mask, is_causal, scale):
    batch, (q, k, v) = _heads(query, key, value)
    rows, columns = q.shape[1], k.shape[1]
    masks = _matrices(attn_mask, batch)
    found = []
    for head in range(q.shape[0]):
        for first, last, keys in _tiles(rows, columns, is_causal):
            mask = _mask_of(masks, batch, head, first, last, keys)
            scores = (q[head, first:last] * scale) @ k[head, :keys].transpose(0, 1)
            weights, blind = weights_of(scores, mask, is_causal, first)
            result = weights @ v[head, :keys]
            found.append(result if blind is None else result.masked_fill(blind, 0))
    if not found:
        return query.new_zeros(*batch, rows, v.shape[2])
    return tg.cat(found).reshape(*batch, rows, v.shape[2])


def _backward(grad, query, key, value, attn_mask, is_causal, scale, needs):
    batch, (q, k, v, g) = _heads(query, key, value, grad)
    rows, columns = q.shape[1], k.shape[1]
    masks = _matrices(attn_mask, batch)
    of_q, of_k, of_v = [], [], []
    of_masks = {}
    for head in range(q.shape[0]):
        more_k, more_v = tg.zeros_like(k[head]), tg.zeros_like(v[head])
        parts = []
        for first, last, keys in _tiles(rows, columns, is_causal):
            mask = _mask_of(masks, batch, head, first, last, keys)
            part, into, from_ = q[head, first:last], k[head, :keys], v[head, :keys]
            weights, blind = weights_of((part * scale) @ into.transpose(0, 1), mask, is_causal, first)
            seen = g[head, first:last]
            seen = seen if blind is None else seen.masked_fill(blind, 0)
            slopes = fused._softmax_backward_data(seen @ from_.transpose(0, 1), weights, -1, weights.dtype)
            if needs[3]:
                parts.append(tg.cat([slopes, slopes.new_zeros(last - first, columns - keys)], 1))
            slopes = slopes * scale
            of_q.append(slopes @ into)
            more_k.narrow(0, 0, keys).add_(slopes.transpose(0, 1) @ part)
            more_v.narrow(0, 0, keys).add_(weights.transpose(0, 1) @ seen)
        if needs[3]:
            place = tuple([i if n > 1 else 0 for i, n in zip(_place(batch, head), _leading(attn_mask, batch))])
            own = tg.cat(parts).sum_to_size((1, *attn_mask.shape)[-2:])
            of_masks[place] = of_masks[place] + own if place in of_masks else own
        of_k.append(more_k)
        of_v.append(more_v)
    if not of_k:
        return query * 0, key * 0, value * 0, attn_mask * 0 if needs[3] else None
    whole = [tg.cat(of_q), tg.stack(of_k), tg.stack(of_v)]
    whole = [w.reshape(*batch, *t.shape[-2:]).sum_to_size(t.shape) for w, t in zip(whole, (query, key, value))]
    if not needs[3]:
        return *whole, None
    return *whole, tg.stack([of_masks[place] for place in sorted(of_masks)]).reshape(attn_mask.shape)


def _samples(make):
    yield Sample(make(2, 20, 3), make(2, 18, 3), make(2, 18, 2), None, True, 0.5)
    yield Sample(make(1, 2, 5, 3), make(1, 1, 4, 3), make(1, 2, 4, 2), make.of([[True] * 4] * 5), False, 0.7)
    yield Sample(make(2, 5, 3), make(2, 5, 3), make(2, 5, 2), make(5, 5), True, 0.7)


op(
    "aten::_attention_tiles(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, "
    "float scale) -> Tensor",
    compose=_forward,
    variants="function",
    where="_fused",
    types="float",
    samples=_samples,
    doc="scaled_dot_product_attention without dropout, a tile of rows at a time: for transforms and captured graphs.",
)


def _reference(q, k, v, mask, is_causal, scale):
    import numpy

    scores = (q * scale) @ numpy.swapaxes(k, -1, -2)
    seen = numpy.ones(scores.shape, bool)
    if is_causal:
        seen &= numpy.tri(*scores.shape[-2:], dtype=bool)
    if mask is not None:
        seen &= mask if mask.dtype == bool else mask > -numpy.inf
        scores = scores if mask.dtype == bool else scores + mask
    scores = numpy.where(seen, scores, -numpy.inf)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    return weights / numpy.maximum(weights.sum(-1, keepdims=True), 1e-30) @ v


def _tangent(
    query, key, value, attn_mask, is_causal, scale, query_tangent, key_tangent, value_tangent, attn_mask_tangent
):
    """Of the whole matrix at once: the tangent of the softmax times the values, and the weights times theirs."""
    weights, blind = weights_of((query * scale) @ key.mT, attn_mask, is_causal)
    moved = tg.zeros_like(weights) if attn_mask_tangent is None else attn_mask_tangent.expand(weights.shape)
    if query_tangent is not None:
        moved = moved + (query_tangent * scale) @ key.mT
    if key_tangent is not None:
        moved = moved + (query * scale) @ key_tangent.mT
    found = (weights * (moved - (weights * moved).sum(-1, True))) @ value
    if value_tangent is not None:
        found = found + weights @ value_tangent
    return found if blind is None else found.masked_fill(blind, 0)


_tiles_of = lambda *args: fused._attention_tiles(*args)
_MASKED, _PLAIN = (together("_attention_step", _tiles_of, (2, 2, 2, rank)) for rank in (2, None))


@told("_attention_step")
def _batched(b, *args):
    return (_PLAIN if args[3] is None else _MASKED)(b, *args)


op(
    "aten::_attention_step(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float scale) -> "
    "Tensor",
    kernel="attention",
    batch=_batched,
    jvp=_tangent,
    grad={"query, key, value, attn_mask": _backward},
    variants="function",
    where="_fused",
    types="float",
    samples=_samples,
    reference=_reference,
    doc="_attention_tiles as one step, whose derivative makes each tile again instead of keeping it.",
)
