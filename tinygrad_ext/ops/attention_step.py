"""Attention over long sequences as one step, and its derivative: kernels/attention.c, which never has all scores.

The gradient of a mask, second derivatives and tangents take the whole matrix.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops.batching import told
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import in_float, rounded_once
from tinygrad_ext.ops.matrices import together
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.recurrent_rules import zeros_unless
from tinygrad_ext.ops.samples import Sample, zeros


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


@in_float
def _parts(query, key, value, attn_mask, is_causal, scale, grad):
    """(weights, slopes of the result by them, slopes by the scores, gradient that reaches the rows) of all heads."""
    weights, blind = weights_of((query * scale) @ key.mT, attn_mask, is_causal)
    if blind is not None:
        weights, grad = weights.masked_fill(blind, 0), grad.masked_fill(blind, 0)
    by_weights = grad @ value.mT
    return weights, by_weights, fused._softmax_backward_data(by_weights, weights, -1, weights.dtype), grad


def _backward(grad, query, key, value, attn_mask, is_causal, scale, needs):
    found = fused._attention_step_backward(query, key, value, attn_mask, is_causal, scale, grad)
    whole = [w.sum_to_size(t.shape) for w, t in zip(found, (query, key, value))]
    if not needs[3]:
        return *whole, None
    return *whole, _parts(query, key, value, attn_mask, is_causal, scale, grad)[2].sum_to_size(attn_mask.shape)


@in_float
def _twice(grads, query, key, value, attn_mask, is_causal, scale, grad_output, needs):
    """Gradients of the gradients of query, key and value."""
    by_query, by_key, by_value = (zeros_unless(g, t) for g, t in zip(grads, (query, key, value)))
    weights, by_weights, slopes, seen = _parts(query, key, value, attn_mask, is_causal, scale, grad_output)
    of_slopes = scale * (by_query @ key.mT + query @ by_key.mT)
    shared = (of_slopes * weights).sum(-1, True)
    of_by_weights = weights * (of_slopes - shared)
    mean = (by_weights * weights).sum(-1, True)
    of_weights = seen @ by_value.mT + of_slopes * (by_weights - mean) - shared * by_weights
    of_scores = fused._softmax_backward_data(of_weights, weights, -1, weights.dtype)
    found = [
        scale * (of_scores @ key + slopes @ by_key),
        scale * (of_scores.mT @ query + slopes.mT @ by_query),
        of_by_weights.mT @ seen,
        of_scores if needs[3] else None,
        of_by_weights @ value + weights @ by_value,
    ]
    inputs = query, key, value, attn_mask, grad_output
    return tuple([None if w is None else w.sum_to_size(t.shape) for w, t in zip(found, inputs)])


@rounded_once
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


@rounded_once
def _tangent_back(
    query, key, value, attn_mask, is_causal, scale, grad_output,
    query_tangent, key_tangent, value_tangent, attn_mask_tangent, grad_output_tangent,
):  # fmt: skip
    q, k, v, m, g = (
        tg.zeros_like(t) if moved is None and t is not None else moved
        for t, moved in zip(
            (query, key, value, attn_mask, grad_output),
            (query_tangent, key_tangent, value_tangent, attn_mask_tangent, grad_output_tangent),
        )
    )
    weights, by_weights, slopes, seen = _parts(query, key, value, attn_mask, is_causal, scale, grad_output)
    scores = scale * (q @ key.mT + query @ k.mT)
    if m is not None and m.is_floating_point():
        scores = scores + m
    w = fused._softmax_backward_data(scores, weights, -1, weights.dtype)
    b = g @ value.mT + seen @ v.mT
    mean = (by_weights * weights).sum(-1, True)
    s = w * (by_weights - mean) + weights * (b - (w * by_weights + weights * b).sum(-1, True))
    found = [scale * (s @ key + slopes @ k), scale * (s.mT @ query + slopes.mT @ q), w.mT @ seen + weights.mT @ g]
    return tuple([f.expand(*weights.shape[:-2], *f.shape[-2:]) for f in found])


def _batched(name, more):
    call = lambda *args: getattr(fused, name)(*args)
    plain, masked = (together(name, call, (2, 2, 2, rank, None, None, *more)) for rank in (None, 2))

    @told(name)
    def rule(b, *args):
        return (plain if args[3] is None else masked)(b, *args)

    return rule


def _samples(make):
    yield Sample(make(2, 20, 3), make(2, 18, 3), make(2, 18, 2), None, True, 0.5)
    yield Sample(make(1, 2, 5, 3), make(1, 1, 4, 3), make(1, 2, 4, 2), make.of([[True] * 4] * 5), False, 0.7)
    yield Sample(make(2, 5, 3), make(2, 5, 3), make(2, 5, 2), make(5, 5), True, 0.7)


def _back_samples(make):
    for sample in _samples(make):
        query, _, value = sample.args[:3]
        yield Sample(*sample.args, make(*query.shape[:-1], value.shape[-1]))


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


def _reference_back(q, k, v, mask, is_causal, scale, grad):
    """Of the formula, by the derivative of the softmax."""
    import numpy

    size = q.shape[-1]
    eye = numpy.broadcast_to(numpy.eye(k.shape[-2], dtype=v.dtype), (*v.shape[:-2], k.shape[-2], k.shape[-2]))
    weights = _reference(q, k, eye, mask, is_causal, scale)
    by_weights = grad @ numpy.swapaxes(v, -1, -2)
    slopes = weights * (by_weights - (by_weights * weights).sum(-1, keepdims=True)) * scale
    of_k = numpy.swapaxes(slopes, -1, -2) @ numpy.broadcast_to(q, (*slopes.shape[:-1], size))
    return slopes @ k, of_k, numpy.swapaxes(weights, -1, -2) @ grad


op(
    "aten::_attention_step(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float scale) -> "
    "Tensor",
    kernel="attention",
    batch=_batched("_attention_step", ()),
    jvp=_tangent,
    grad={"query, key, value, attn_mask": _backward},
    variants="function",
    where="_fused",
    types="float",
    samples=_samples,
    reference=_reference,
    doc="scaled_dot_product_attention without dropout, some rows at a time, so that the scores stay in the cache.",
)

op(
    "aten::_attention_step_backward(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, "
    "float scale, Tensor grad_output) -> (Tensor, Tensor, Tensor)",
    kernel="attention_backward",
    batch=_batched("_attention_step_backward", (2,)),
    jvp=_tangent_back,
    grad={"query, key, value, attn_mask, grad_output": _twice},
    variants="function",
    where="_fused",
    types="float",
    samples=_back_samples,
    errors=[
        (
            lambda: fused._attention_step_backward(*[zeros(2, 3, 2)] * 3, None, False, 1.0, zeros(3, 2)),
            RuntimeError,
            "the gradient must be of dtype",
        ),
    ],
    reference=_reference_back,
    doc="Derivatives of _attention_step by query, key and value, each as large as the whole batch: it makes the "
    "weights of some rows again (Dao et al. 2022).",
)
