"""Attention of heads with few scores as one step, and its derivative: kernels/attention_heads.c keeps the weights.

Other derivatives are those of attention_rows.py, which make the weights of queries and keys again.
"""

from tinygrad_ext.ops.attention_rows import tangent, tangent_back, twice
from tinygrad_ext.ops.attention_step import _reference, _reference_back, _weights
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.matrices import together
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _backward(grad, query, key, value, scale, weights):
    return fused._attention_heads_backward(query, key, value, scale, weights, grad)


def _twice(grads, query, key, value, scale, grad_output, needs):
    wanted = *needs[:3], False, needs[3]
    found = twice(grads, query, key, value, None, False, scale, grad_output, None, 0.0, wanted)
    return *found[:3], found[4]


def _tangent(query, key, value, scale, query_tangent, key_tangent, value_tangent):
    tangents = query_tangent, key_tangent, value_tangent, None
    return tangent(query, key, value, None, False, scale, None, 0.0, *tangents), None


def _tangent_back(
    query, key, value, scale, grad_output, query_tangent, key_tangent, value_tangent, grad_output_tangent
):
    tangents = query_tangent, key_tangent, value_tangent, None, grad_output_tangent
    return tangent_back(query, key, value, None, False, scale, grad_output, None, 0.0, *tangents)


def _samples(make):
    yield Sample(make(2, 5, 3), make(2, 4, 3), make(2, 4, 3), 0.5)
    yield Sample(make(2, 1, 20, 8), make(2, 1, 18, 8), make(2, 1, 18, 8), 0.3)
    yield Sample(make(1, 1), make(1, 1), make(1, 1), 1.0)


def _shares(query, key, scale):
    return _weights(query, key, None, False, scale)


def _back_samples(make):
    for query, key, value, scale in (sample.args for sample in _samples(make)):
        weights = ((query.detach() * scale) @ key.detach().mT).softmax(-1)
        yield Sample(query, key, value, scale, weights, make(*query.shape))


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
    reference=lambda q, k, v, scale: (_reference(q, k, v, None, False, scale), _shares(q, k, scale)),
    errors=[
        (lambda: fused._attention_heads(*[zeros(300, 2)] * 3, 1.0), RuntimeError, "1 to 256 rows and columns"),
        (lambda: fused._attention_heads(*[zeros(2, 2)] * 2, zeros(2, 3), 1.0), RuntimeError, "as many columns"),
        (lambda: fused._attention_heads(*[zeros(2, 2)] * 2, zeros(3, 2), 1.0), RuntimeError, "as many rows"),
        (lambda: fused._attention_heads(*[zeros(2, 2)] * 2, zeros(1, 2, 2), 1.0), RuntimeError, "many dimensions"),
    ],
    doc="scaled_dot_product_attention of heads of at most 256 rows, keys and columns, and its weights, which have no "
    "derivative: query (*, L, E), key and value (*, S, E) of one batch.",
)

op(
    "aten::_attention_heads_backward(Tensor query, Tensor key, Tensor value, float scale, Tensor weights, "
    "Tensor grad_output) -> (Tensor, Tensor, Tensor)",
    kernel="attention_heads_backward",
    batch=together(
        "_attention_heads_backward", lambda *args: fused._attention_heads_backward(*args), (2, 2, 2, None, 2, 2)
    ),
    jvp=_tangent_back,
    grad={"query, key, value, grad_output": _twice},
    variants="function",
    where="_fused",
    types="float",
    samples=_back_samples,
    reference=lambda q, k, v, scale, weights, grad: _reference_back(q, k, v, None, False, scale, grad),
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
    doc="Derivatives of _attention_heads by query, key and value, from its weights, which follow from query and key.",
)
