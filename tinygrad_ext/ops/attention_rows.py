"""Derivatives of attention that no kernel has, over some rows of queries at a time.

Of the rows at hand the scores of all heads exist at once, of the others they do not: the gradient of a mask, second
derivatives and tangents of long sequences take no more memory than those of the queries. With W the weights and D the
factors of dropout the result is (W D) value; the rest is the product rule.
"""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import in_float, rounded_once
from tinygrad_ext.ops.recurrent_rules import zeros_unless

_SCORES = 1 << 22  # of all heads that exist at once


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


def _by_rows(found, sums, query, key, value, *of_rows):
    """What found(first, query, *of_rows) gives for some rows of them at a time, as if it had been given all.

    found: gives a tuple of tensors, or None; `first` is the number of the first row.
    sums: which of these are sums over rows; the others have rows of their own.
    of_rows: matrices with a row for each query, or one for all, or None.
    """
    heads = math.prod(tg.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2]))
    step, rows = max(1, _SCORES // max(1, heads * key.shape[-2])), query.shape[-2]
    if rows <= step:
        return found(0, query, *of_rows)
    parts = None
    for first in range(0, rows, step):
        n = min(step, rows - first)
        new = found(first, *[t if t is None or t.shape[-2] == 1 else t.narrow(-2, first, n) for t in (query, *of_rows)])
        if parts is None:
            parts = [w if w is None or added else [w] for w, added in zip(new, sums)]
            continue
        for i, w in enumerate(new):
            if w is not None and sums[i]:
                parts[i] = parts[i] + w
            elif w is not None:
                parts[i].append(w)
    return tuple([tg.cat(p, -2) if isinstance(p, list) else p for p in parts])


def _dropped(weights, kept, dropout_p):
    """Times the factors of dropout, whose bits are eight to a byte."""
    if kept is None:
        return weights
    bits = kept.unsqueeze(-1) >> tg.arange(8, dtype=tg.uint8, device=kept.device)
    factors = (bits & 1).flatten(-2)[..., : weights.shape[-1]].to(weights.dtype)
    return weights * factors * (0.0 if dropout_p == 1 else 1 / (1 - dropout_p))


class _Part:
    """Weights of some rows, and what a gradient of their result is worth.

    by_weights is that of the weights, slopes that of the scores; rows that see nothing have none of them."""

    def __init__(self, first, query, key, value, attn_mask, kept, grad, is_causal, scale, dropout_p):
        weights, blind = weights_of((query * scale) @ key.mT, attn_mask, is_causal, first)
        if blind is not None:
            weights, grad = weights.masked_fill(blind, 0), grad.masked_fill(blind, 0)
        self.weights, self.grad = weights, grad
        self.drop = lambda t: _dropped(t, kept, dropout_p)
        self.by_weights = self.drop(grad @ value.mT)
        self.slopes = fused._softmax_backward_data(self.by_weights, weights, -1, weights.dtype)


# ---- second derivatives ----------------------------------------------------------------------------------------------


def twice(grads, query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p, needs):
    """Gradients of the gradients of query, key and value."""
    args = query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p
    return _twice([*grads, None], *args, needs)


def mask_twice(grad, query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p, needs):
    """Gradients of the gradient of the mask."""
    args = query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p
    return _twice([None, None, None, grad], *args, needs)


@in_float
def _twice(grads, query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p, needs):
    by_query, by_key, by_value = (zeros_unless(g, t) for g, t in zip(grads, (query, key, value)))
    by_mask = grads[3]

    def of_rows(first, query, attn_mask, kept, grad, by_query, by_mask):
        part = _Part(first, query, key, value, attn_mask, kept, grad, is_causal, scale, dropout_p)
        of_slopes = scale * (by_query @ key.mT + query @ by_key.mT)
        if by_mask is not None:
            of_slopes = of_slopes + by_mask
        weights, shared = part.weights, (of_slopes * part.weights).sum(-1, True)
        of_by_weights = part.drop(weights * (of_slopes - shared))
        mean = (part.by_weights * weights).sum(-1, True)
        of_weights = (
            part.drop(part.grad @ by_value.mT) + of_slopes * (part.by_weights - mean) - shared * part.by_weights
        )
        of_scores = fused._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        found = [
            scale * (of_scores @ key + part.slopes @ by_key),
            scale * (of_scores.mT @ query + part.slopes.mT @ by_query),
            of_by_weights.mT @ part.grad,
            of_scores if needs[3] else None,
            of_by_weights @ value + part.drop(weights) @ by_value,
        ]
        inputs = query, key, value, attn_mask, grad
        return tuple([None if w is None else w.sum_to_size(t.shape) for w, t in zip(found, inputs)])

    sums = False, True, True, attn_mask is not None and attn_mask.shape[-2] == 1, False
    return _by_rows(of_rows, sums, query, key, value, attn_mask, kept, grad_output, by_query, by_mask)


# ---- tangents --------------------------------------------------------------------------------------------------------


@rounded_once
def tangent(
    query, key, value, attn_mask, is_causal, scale, kept, dropout_p,
    query_tangent, key_tangent, value_tangent, attn_mask_tangent,
):  # fmt: skip
    """The tangent of the softmax times the values, and the weights times theirs."""

    def of_rows(first, query, attn_mask, kept, query_tangent, attn_mask_tangent):
        weights, blind = weights_of((query * scale) @ key.mT, attn_mask, is_causal, first)
        moved = tg.zeros_like(weights) if attn_mask_tangent is None else attn_mask_tangent.expand(weights.shape)
        if query_tangent is not None:
            moved = moved + (query_tangent * scale) @ key.mT
        if key_tangent is not None:
            moved = moved + (query * scale) @ key_tangent.mT
        found = _dropped(weights * (moved - (weights * moved).sum(-1, True)), kept, dropout_p) @ value
        if value_tangent is not None:
            found = found + _dropped(weights, kept, dropout_p) @ value_tangent
        return (found if blind is None else found.masked_fill(blind, 0),)

    return _by_rows(of_rows, [False], query, key, value, attn_mask, kept, query_tangent, attn_mask_tangent)[0]


@rounded_once
def tangent_back(
    query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p,
    query_tangent, key_tangent, value_tangent, attn_mask_tangent, grad_output_tangent,
):  # fmt: skip
    tangents = query_tangent, key_tangent, value_tangent, attn_mask_tangent, grad_output_tangent
    found = _moved(query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p, tangents)
    batch = tg.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    return tuple([f.expand(*batch, *f.shape[-2:]) for f in found[:3]])


@rounded_once
def mask_tangent_back(
    query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p,
    query_tangent, key_tangent, value_tangent, attn_mask_tangent, grad_output_tangent,
):  # fmt: skip
    tangents = query_tangent, key_tangent, value_tangent, attn_mask_tangent, grad_output_tangent
    return _moved(query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p, tangents)[3]


def _moved(query, key, value, attn_mask, is_causal, scale, grad_output, kept, dropout_p, tangents):
    """Tangents of the gradients of query, key and value, and of those of a mask of numbers."""
    inputs = query, key, value, attn_mask, grad_output
    q, k, v, m, g = (tg.zeros_like(t) if d is None and t is not None else d for d, t in zip(tangents, inputs))

    def of_rows(first, query, attn_mask, kept, grad, q, m, g):
        part = _Part(first, query, key, value, attn_mask, kept, grad, is_causal, scale, dropout_p)
        weights, by_weights, slopes = part.weights, part.by_weights, part.slopes
        scores, added = scale * (q @ key.mT + query @ k.mT), m is not None and m.is_floating_point()
        w = fused._softmax_backward_data(scores + m if added else scores, weights, -1, weights.dtype)
        b = part.drop(g @ value.mT + part.grad @ v.mT)
        mean = (by_weights * weights).sum(-1, True)
        s = w * (by_weights - mean) + weights * (b - (w * by_weights + weights * b).sum(-1, True))
        of_query, of_key = scale * (s @ key + slopes @ k), scale * (s.mT @ query + slopes.mT @ q)
        of_value = part.drop(w).mT @ part.grad + part.drop(weights).mT @ g
        return of_query, of_key, of_value, s.sum_to_size(attn_mask.shape) if added else None

    sums = False, True, True, attn_mask is not None and attn_mask.shape[-2] == 1
    return _by_rows(of_rows, sums, query, key, value, attn_mask, kept, grad_output, q, m, g)
