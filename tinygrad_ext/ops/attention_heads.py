"""Attention of heads with few scores as one step, and its derivative: kernels/attention_heads.c keeps the weights."""

import tinygrad_ext as tg
from tinygrad_ext.ops.attention_step import _reference, _weights
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import together
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _slopes(by_weights, weights):
    """What weights that are a softmax pass on to their scores."""
    return fused._softmax_backward_data(by_weights, weights, -1, weights.dtype)


def _backward(arrived, query, key, value, scale, weights):
    grad, by_weights = arrived
    found = [None] * 3
    if grad is not None:
        found = [*fused._attention_heads_backward(query, key, value, scale, weights, grad)]
    if by_weights is not None:
        slopes = _slopes(by_weights, weights)
        more = scale * (slopes @ key), scale * (slopes.mT @ query)
        found[:2] = more if grad is None else (found[0] + more[0], found[1] + more[1])
    return tuple(found)


def _tangent(query, key, value, scale, weights, query_tangent, key_tangent, value_tangent):
    moved = 0
    if query_tangent is not None:
        moved = scale * (query_tangent @ key.mT)
    if key_tangent is not None:
        moved = moved + scale * (query @ key_tangent.mT)
    if query_tangent is None and key_tangent is None:
        return weights @ value_tangent, None
    of_weights = _slopes(moved, weights)
    found = of_weights @ value
    return (found if value_tangent is None else found + weights @ value_tangent), of_weights


def _twice(arrived, query, key, value, scale, weights, grad_output):
    """By query, key, value, weights and the gradient, of which each gradient is linear in all but the weights."""
    by_query, by_key, by_value = (
        t.new_zeros(t.shape) if by is None else by for by, t in zip(arrived, (query, key, value))
    )
    by_weights = grad_output @ value.mT
    slopes = _slopes(by_weights, weights)
    of_slopes = scale * (by_query @ key.mT + query @ by_key.mT)
    of_by_weights = _slopes(of_slopes, weights)
    shared = (of_slopes * weights).sum(-1, True)
    mean = (by_weights * weights).sum(-1, True)
    return (
        scale * (slopes @ by_key),
        scale * (slopes.mT @ by_query),
        of_by_weights.mT @ grad_output,
        grad_output @ by_value.mT + of_slopes * (by_weights - mean) - shared * by_weights,
        of_by_weights @ value + weights @ by_value,
    )


def _tangent_back(
    query,
    key,
    value,
    scale,
    weights,
    grad_output,
    query_tangent,
    key_tangent,
    value_tangent,
    weights_tangent,
    grad_output_tangent,
):
    by_weights, moved = grad_output @ value.mT, 0
    if grad_output_tangent is not None:
        moved = grad_output_tangent @ value.mT
    if value_tangent is not None:
        moved = moved + grad_output @ value_tangent.mT
    slopes, of_value = _slopes(by_weights, weights), 0
    of_slopes = _slopes(moved, weights) if isinstance(moved, tg.Tensor) else weights.new_zeros(weights.shape)
    if weights_tangent is not None:
        mean, of_mean = ((by_weights * w).sum(-1, True) for w in (weights, weights_tangent))
        of_slopes = of_slopes + weights_tangent * (by_weights - mean) - weights * of_mean
        of_value = weights_tangent.mT @ grad_output
    if grad_output_tangent is not None:
        of_value = of_value + weights.mT @ grad_output_tangent
    of_query, of_key = of_slopes @ key, of_slopes.mT @ query
    if key_tangent is not None:
        of_query = of_query + slopes @ key_tangent
    if query_tangent is not None:
        of_key = of_key + slopes.mT @ query_tangent
    return scale * of_query, scale * of_key, of_value if isinstance(of_value, tg.Tensor) else None


def _samples(make):
    yield Sample(make(2, 5, 3), make(2, 4, 3), make(2, 4, 3), 0.5)
    yield Sample(make(2, 1, 20, 8), make(2, 1, 18, 8), make(2, 1, 18, 8), 0.3)
    yield Sample(make(1, 1), make(1, 1), make(1, 1), 1.0)


def _back_samples(make):
    for query, key, value, scale in (sample.args for sample in _samples(make)):
        yield Sample(query, key, value, scale, make(*query.shape[:-1], key.shape[-2]), make(*query.shape))


def _reference_back(query, key, value, scale, weights, grad):
    import numpy

    turned = lambda x: numpy.swapaxes(x, -1, -2)
    by_weights = grad @ turned(value)
    slopes = weights * (by_weights - (by_weights * weights).sum(-1, keepdims=True))
    return slopes @ key * scale, turned(slopes) @ query * scale, turned(weights) @ grad


op(
    "aten::_attention_heads(Tensor query, Tensor key, Tensor value, float scale) -> (Tensor result, Tensor weights)",
    kernel="attention_heads",
    batch=together("_attention_heads", lambda *args: fused._attention_heads(*args), (2, 2, 2)),
    jvp=_tangent,
    grad={"query, key, value": _backward},
    variants="function",
    where="_fused",
    types="float",
    samples=_samples,
    reference=lambda q, k, v, scale: (_reference(q, k, v, None, False, scale), _weights(q, k, None, False, scale)),
    errors=[
        (lambda: fused._attention_heads(*[zeros(300, 2)] * 3, 1.0), RuntimeError, "1 to 256 rows and columns"),
        (lambda: fused._attention_heads(*[zeros(2, 2)] * 2, zeros(2, 3), 1.0), RuntimeError, "as many columns"),
        (lambda: fused._attention_heads(*[zeros(2, 2)] * 2, zeros(3, 2), 1.0), RuntimeError, "as many rows"),
        (lambda: fused._attention_heads(*[zeros(2, 2)] * 2, zeros(1, 2, 2), 1.0), RuntimeError, "many dimensions"),
    ],
    doc="scaled_dot_product_attention of heads of at most 256 rows, keys and columns, and its weights: query "
    "(*, L, E), key and value (*, S, E) of one batch.",
)

op(
    "aten::_attention_heads_backward(Tensor query, Tensor key, Tensor value, float scale, Tensor weights, "
    "Tensor grad_output) -> (Tensor, Tensor, Tensor)",
    kernel="attention_heads_backward",
    batch=together(
        "_attention_heads_backward", lambda *args: fused._attention_heads_backward(*args), (2, 2, 2, None, 2, 2)
    ),
    grad={"query, key, value, weights, grad_output": _twice},
    jvp=_tangent_back,
    variants="function",
    where="_fused",
    types="float",
    samples=_back_samples,
    reference=_reference_back,
    errors=[
        (
            lambda: fused._attention_heads_backward(*[zeros(2, 2)] * 3, 1.0, zeros(2, 3), zeros(2, 2)),
            RuntimeError,
            "the weights must be of dtype",
        ),
        (
            lambda: fused._attention_heads_backward(*[zeros(2, 2)] * 3, 1.0, zeros(2, 2), zeros(2, 3)),
            RuntimeError,
            "the gradient must be of dtype",
        ),
    ],
    doc="Derivatives of _attention_heads by query, key and value, from its weights.",
)
