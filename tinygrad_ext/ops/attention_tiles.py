"""Attention over long sequences: some rows of queries at a time, so that the whole matrix of scores never exists.

A tile of scores is about a megabyte: it stays in the cache between the product, the softmax and the second product.
Backward makes each tile again (Dao et al. 2022) instead of keeping it. Rejected: tiles over the keys too, with running
maxima; they save memory only where one row of scores is larger than that, and cost a second pass over the result.
"""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

_TILE = 1 << 18  # scores of one tile


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


def _mask_of(attn_mask, batch, head, first, last):
    """The rows of a mask for one head, without its being repeated for all."""
    if attn_mask is None:
        return None
    place = []
    for size in reversed(batch):
        place.append(head % size)
        head //= size
    return attn_mask[(*place[::-1], slice(first, last))]


def _weights(query, key, mask, first, is_causal, scale):
    scores = (query * scale) @ key.transpose(-2, -1)
    if is_causal and key.shape[-2] > first:
        part = scores.narrow(-1, first, key.shape[-2] - first)
        hidden = tg.ones(part.shape[-2:], dtype=tg.bool, device=query.device).triu(1)
        part.masked_fill_(hidden, -float("inf"))
    if mask is None:
        return scores.softmax(-1)
    if mask.dtype != tg.bool:
        return (scores + mask).softmax(-1)
    weights = scores.masked_fill(mask.logical_not(), -float("inf")).softmax(-1)
    return fused.where(mask.any(-1, True), weights, 0.0)


def _forward(query, key, value, attn_mask, is_causal, scale):
    batch, (q, k, v) = _heads(query, key, value)
    rows, columns = q.shape[1], k.shape[1]
    attn_mask = None if attn_mask is None else attn_mask.expand(*batch, rows, columns)
    found = []
    for head in range(q.shape[0]):
        for first, last, keys in _tiles(rows, columns, is_causal):
            mask = _mask_of(attn_mask, batch, head, first, last)
            weights = _weights(q[head, first:last], k[head, :keys], mask, first, is_causal, scale)
            found.append(weights @ v[head, :keys])
    if not found:
        return query.new_zeros(*batch, rows, v.shape[2])
    return tg.cat(found).reshape(*batch, rows, v.shape[2])


def _backward(grad, query, key, value, attn_mask, is_causal, scale):
    batch, (q, k, v, g) = _heads(query, key, value, grad)
    rows, columns = q.shape[1], k.shape[1]
    attn_mask = None if attn_mask is None else attn_mask.expand(*batch, rows, columns)
    of_q, of_k, of_v = [], [], []
    for head in range(q.shape[0]):
        more_k, more_v = tg.zeros_like(k[head]), tg.zeros_like(v[head])
        for first, last, keys in _tiles(rows, columns, is_causal):
            mask = _mask_of(attn_mask, batch, head, first, last)
            part, into, from_ = q[head, first:last], k[head, :keys], v[head, :keys]
            weights = _weights(part, into, mask, first, is_causal, scale)
            seen = g[head, first:last]
            slopes = fused._softmax_backward_data(seen @ from_.transpose(0, 1), weights, -1, weights.dtype) * scale
            of_q.append(slopes @ into)
            more_k.narrow(0, 0, keys).add_(slopes.transpose(0, 1) @ part)
            more_v.narrow(0, 0, keys).add_(weights.transpose(0, 1) @ seen)
        of_k.append(more_k)
        of_v.append(more_v)
    if not of_k:
        return query * 0, key * 0, value * 0
    whole = [tg.cat(of_q), tg.stack(of_k), tg.stack(of_v)]
    return tuple([w.reshape(*batch, *t.shape[-2:]).sum_to_size(t.shape) for w, t in zip(whole, (query, key, value))])


def _samples(make):
    yield Sample(make(2, 20, 3), make(2, 18, 3), make(2, 18, 2), None, True, 0.5)
    yield Sample(make(1, 2, 5, 3), make(1, 1, 4, 3), make(1, 2, 4, 2), make.of([[True] * 4] * 5), False, 0.7)


op(
    "aten::_attention_tiles(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, "
    "float scale) -> Tensor",
    compose=_forward,
    grad={"query, key, value": _backward, "attn_mask": "none"},
    variants="function",
    where="_fused",
    types="float",
    samples=_samples,
    doc="scaled_dot_product_attention without dropout, a tile of rows at a time.",
)
