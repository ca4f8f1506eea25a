"""Attention over long sequences: some rows of queries at a time, so that the whole matrix of scores never exists.

A tile of scores is half a megabyte: it stays in the cache between the product, the softmax and the second product.
Backward makes each tile again (Dao et al. 2022) instead of keeping it. Rejected: tiles over the keys too, with running
maxima; they save memory only where one row of scores is larger than that, and cost a second pass over the result.
"""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
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


def _mask_of(masks, batch, head, first, last, keys):
    """The part of a mask for some rows of one head."""
    if masks is None:
        return None
    place = []
    for size in reversed(batch):
        place.append(head % size)
        head //= size
    mask = masks[(*place[::-1],)]
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
    of_mask = tg.zeros_like(attn_mask) if needs[3] else None
    of_masks = _matrices(of_mask, batch)
    for head in range(q.shape[0]):
        more_k, more_v = tg.zeros_like(k[head]), tg.zeros_like(v[head])
        for first, last, keys in _tiles(rows, columns, is_causal):
            mask = _mask_of(masks, batch, head, first, last, keys)
            part, into, from_ = q[head, first:last], k[head, :keys], v[head, :keys]
            weights, blind = weights_of((part * scale) @ into.transpose(0, 1), mask, is_causal, first)
            seen = g[head, first:last]
            seen = seen if blind is None else seen.masked_fill(blind, 0)
            slopes = fused._softmax_backward_data(seen @ from_.transpose(0, 1), weights, -1, weights.dtype)
            if needs[3]:
                target = _mask_of(of_masks, batch, head, first, last, keys)
                target.add_(slopes.sum_to_size(target.shape))
            slopes = slopes * scale
            of_q.append(slopes @ into)
            more_k.narrow(0, 0, keys).add_(slopes.transpose(0, 1) @ part)
            more_v.narrow(0, 0, keys).add_(weights.transpose(0, 1) @ seen)
        of_k.append(more_k)
        of_v.append(more_v)
    if not of_k:
        return query * 0, key * 0, value * 0, of_mask
    whole = [tg.cat(of_q), tg.stack(of_k), tg.stack(of_v)]
    whole = [w.reshape(*batch, *t.shape[-2:]).sum_to_size(t.shape) for w, t in zip(whole, (query, key, value))]
    return *whole, of_mask


def _samples(make):
    yield Sample(make(2, 20, 3), make(2, 18, 3), make(2, 18, 2), None, True, 0.5)
    yield Sample(make(1, 2, 5, 3), make(1, 1, 4, 3), make(1, 2, 4, 2), make.of([[True] * 4] * 5), False, 0.7)
    yield Sample(make(2, 5, 3), make(2, 5, 3), make(2, 5, 2), make(5, 5), True, 0.7)


op(
    "aten::_attention_tiles(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, "
    "float scale) -> Tensor",
    compose=_forward,
    grad={"query, key, value, attn_mask": _backward},
    variants="function",
    where="_fused",
    types="float",
    samples=_samples,
    doc="scaled_dot_product_attention without dropout, a tile of rows at a time.",
)
