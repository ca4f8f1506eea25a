"""Attention over long sequences as one step, and its derivative: kernels/attention.c, which never has all scores.

What dropout keeps is drawn before, a bit for each score. Other derivatives are those of attention_rows.py.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops.attention_rows import mask_tangent_back, mask_twice, tangent, tangent_back, twice
from tinygrad_ext.ops.batching import told
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.matrices import together
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _backward(grad, query, key, value, attn_mask, is_causal, scale, kept, dropout_p, needs):
    args = query, key, value, attn_mask, is_causal, scale, grad, kept, dropout_p
    whole = [w.sum_to_size(t.shape) for w, t in zip(fused._attention_step_backward(*args), (query, key, value))]
    return *whole, in_float(fused._attention_mask_backward)(*args) if needs[3] else None


def _batched(name, *last):
    """The rule of vmap; a mask, and what is kept, may be there or not. last: ranks of the tensors behind the scale."""
    call = lambda *args: getattr(fused, name)(*args)
    rules = {(m, k): together(name, call, (2, 2, 2, m, None, None, *last, k)) for m in (None, 2) for k in (None, 2)}

    @told(name)
    def rule(b, *args):
        given = [None if args[i] is None else 2 for i in (3, 6 + len(last))]
        return rules[tuple(given)](b, *args)

    return rule


@told("_attention_mask_backward")
def _mask_batched(b, *args):
    return _together_mask(b, *args).reshape(b.size, *args[3].shape)


_together_mask = _batched("_attention_mask_backward", 2)


def _kept(rows, *bits):
    """What dropout keeps, the bits of each row's keys."""
    return tg.tensor([list(bits)] * rows, dtype=tg.uint8)


def _samples(make):
    yield Sample(make(2, 20, 3), make(2, 18, 3), make(2, 18, 2), None, True, 0.5)
    yield Sample(make(1, 2, 5, 3), make(1, 1, 4, 3), make(1, 2, 4, 2), make.of([[True] * 4] * 5), False, 0.7)
    yield Sample(make(2, 5, 3), make(2, 5, 3), make(2, 5, 2), make(5, 5), True, 0.7)
    yield Sample(make(2, 4, 3), make(2, 9, 3), make(2, 9, 2), make(1, 9), False, 0.5, _kept(4, 0b10110110, 1), 0.25)


def _back_samples(make):
    for sample in _samples(make):
        query, _, value, *rest = sample.args
        yield Sample(*sample.args[:6], make(*query.shape[:-1], value.shape[-1]), *sample.args[6:])


def _mask_samples(make):
    yield from [*_back_samples(make)][2:]


def _weights(q, k, mask, is_causal, scale):
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
    return weights / numpy.maximum(weights.sum(-1, keepdims=True), 1e-30)


def _factors(kept, keys, dropout_p):
    import numpy

    if kept is None:
        return 1
    bits = numpy.unpackbits(kept, -1, bitorder="little")[..., :keys]
    return bits / (1 - dropout_p) if dropout_p < 1 else bits * 0.0


def _reference(q, k, v, mask, is_causal, scale, kept=None, dropout_p=0.0):
    return _weights(q, k, mask, is_causal, scale) * _factors(kept, k.shape[-2], dropout_p) @ v


def _reference_slopes(q, k, v, mask, is_causal, scale, grad, kept=None, dropout_p=0.0):
    """(weights, factors of dropout, gradient of the scores) by the derivative of the softmax."""
    import numpy

    weights, factors = _weights(q, k, mask, is_causal, scale), _factors(kept, k.shape[-2], dropout_p)
    by_weights = grad @ numpy.swapaxes(v, -1, -2) * factors
    return weights, factors, weights * (by_weights - (by_weights * weights).sum(-1, keepdims=True))


def _reference_back(q, k, v, mask, is_causal, scale, grad, kept=None, dropout_p=0.0):
    import numpy

    weights, factors, slopes = _reference_slopes(q, k, v, mask, is_causal, scale, grad, kept, dropout_p)
    of_k = numpy.swapaxes(slopes, -1, -2) @ numpy.broadcast_to(q, (*slopes.shape[:-1], q.shape[-1]))
    return slopes @ k * scale, of_k * scale, numpy.swapaxes(weights * factors, -1, -2) @ grad


def _reference_mask(q, k, v, mask, *rest):
    """The scores' gradients, summed over what shares a number of the mask."""
    slopes = _reference_slopes(q, k, v, mask, *rest)[2]
    missing = slopes.ndim - mask.ndim
    shared = *range(missing), *(i + missing for i, n in enumerate(mask.shape) if n == 1)
    return slopes.sum(shared).reshape(mask.shape)


op(
    "aten::_attention_kept(Tensor query, Tensor key, float p, *, Generator? generator=None) -> Tensor",
    kernel="dropout_kept",
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(2, 3, 4), make(2, 10, 4), 0.5), Sample(make(3, 4), make(2, 1, 8, 4), 0.1)],
    tags="random",
    doc="What dropout with probability p keeps of the scores of query (*, L, E) and key (*, S, E): bytes (*, L, "
    "ceil(S / 8)) of a bit for each, that of the first key the lowest. Drawn as dropout draws for the scores.",
)

op(
    "aten::_attention_step(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float scale, "
    "Tensor? kept=None, float dropout_p=0) -> Tensor",
    kernel="attention",
    batch=_batched("_attention_step"),
    jvp=tangent,
    grad={"query, key, value, attn_mask": _backward},
    variants="function",
    where="_fused",
    types="float",
    samples=_samples,
    reference=_reference,
    doc="scaled_dot_product_attention, some rows at a time, so that the scores stay in the cache. kept: what dropout "
    "keeps (_attention_kept).",
)

op(
    "aten::_attention_step_backward(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, "
    "float scale, Tensor grad_output, Tensor? kept=None, float dropout_p=0) -> (Tensor, Tensor, Tensor)",
    kernel="attention_backward",
    batch=_batched("_attention_step_backward", 2),
    jvp=tangent_back,
    grad={"query, key, value, attn_mask, grad_output": twice},
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

op(
    "aten::_attention_mask_backward(Tensor query, Tensor key, Tensor value, Tensor attn_mask, bool is_causal, "
    "float scale, Tensor grad_output, Tensor? kept=None, float dropout_p=0) -> Tensor",
    kernel="attention_mask_backward",
    batch=_mask_batched,
    jvp=mask_tangent_back,
    grad={"query, key, value, attn_mask, grad_output": mask_twice},
    variants="function",
    where="_fused",
    types="float",
    samples=_mask_samples,
    reference=_reference_mask,
    doc="Derivative of _attention_step by a mask that is added.",
)
