"""Attention: weighted means of values, by the likeness of queries and keys."""

import tinygrad_ext as tg
from tinygrad_ext.core.loops.loop_tables import multiplies_bfloat16
from tinygrad_ext.ops.attention_rows import weights_of
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_LONG = 1 << 16  # scores of a head from which on they are made a tile at a time
_LONG_CAUSAL = 1 << 14  # of which tiles leave out half
_FEW = 256  # rows, keys and columns of a head up to which it is computed as one step
_LONG_HALVES = 1 << 11 if multiplies_bfloat16() else _LONG


def _attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    by_step = query.dtype == tg.bfloat16 and _is_step(query, key, value, attn_mask, dropout_p, is_causal)
    attention = _composed if by_step else rounded_once(_composed)  # the step rounds once, or is widened, itself
    same = query.dtype == key.dtype == value.dtype
    if same and query.dtype in (tg.float16, tg.bfloat16) and attn_mask is not None and attn_mask.dtype == tg.float32:
        wide = [t.to(tg.float32) for t in (query, key, value)]
        return _composed(*wide, attn_mask, dropout_p, is_causal, scale, enable_gqa).to(query.dtype)
    return attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def _is_step(query, key, value, attn_mask, dropout_p, is_causal):
    """Whether the scores are so many that they are not made at once.

    Weights of bfloat16 are rounded where PyTorch rounds them: of heads in four dimensions whose values are as wide as
    their queries. A mask of float32 is added to scores of float32, whose weights are too."""
    if query.dim() < 2 or key.dim() < 2:
        return False
    scores = query.shape[-2] * key.shape[-2]
    if query.dtype != tg.bfloat16:
        return scores >= (_LONG_CAUSAL if is_causal else _LONG) and query.dtype in (tg.float32, tg.float64)
    alike = attn_mask is None or attn_mask.dtype in (tg.bool, tg.bfloat16)
    four = query.dim() == key.dim() == value.dim() == 4
    return scores >= _LONG_HALVES and not dropout_p and alike and four and query.shape[-1] == value.shape[-1]


def _is_heads(query, key, value):
    """Whether the heads are so small that each of them is computed in the cache."""
    if query.dtype not in (tg.float32, tg.float64) or query.shape[:-2] != key.shape[:-2]:
        return False
    sizes = *query.shape[-2:], key.shape[-2]
    return key.shape == value.shape and query.shape[-1] == key.shape[-1] and min(sizes) > 0 and max(sizes) <= _FEW


def _composed(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.dim() < 2:
            raise RuntimeError(f"scaled_dot_product_attention: Expected {name} to have at least 2 dims, got {t.dim()}")
        if t.dtype != query.dtype:
            raise RuntimeError(
                "Expected query, key, and value to have the same dtype, but got query.dtype: "
                f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
            )
    if is_causal and attn_mask is not None and (query.dim() != 4 or dropout_p):
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True, but for "
            f"tensors of four dimensions without dropout: query has {query.dim()}; put the triangle into the mask"
        )
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"scaled_dot_product_attention: dropout_p must be in [0, 1], got {dropout_p}")
    if enable_gqa:
        key, value = _repeated(query, key, "key"), _repeated(query, value, "value")
    scale = max(query.shape[-1], 1) ** -0.5 if scale is None else scale
    if attn_mask is not None and attn_mask.dtype not in (tg.bool, query.dtype, tg.float32):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype} and  query.dtype: {query.dtype} instead."
        )
    if _is_step(query, key, value, attn_mask, dropout_p, is_causal):
        if attn_mask is not None and attn_mask.dim() < 2:
            attn_mask = attn_mask.reshape(1, -1)
        kept = fused._attention_kept(query.detach(), key.detach(), dropout_p) if 0 < dropout_p < 1 else None
        result = fused._attention_step(query, key, value, attn_mask, is_causal, scale, kept, dropout_p)
        return result * 0 if dropout_p == 1 else result
    if attn_mask is None and not dropout_p and not is_causal and _is_heads(query, key, value):
        return fused._attention_heads(query, key, value, scale)[0]
    weights, blind = weights_of((query * scale) @ key.transpose(-2, -1), attn_mask, is_causal)
    if dropout_p:
        weights = fused.dropout(weights, dropout_p, True)
    result = weights @ value
    return result if blind is None else result.masked_fill(blind, 0)


def _repeated(query, t, name):
    if query.dim() < 3 or t.dim() < 3:
        raise RuntimeError(
            f"scaled_dot_product_attention: enable_gqa needs a dimension of heads, got query {list(query.shape)} and "
            f"{name} {list(t.shape)}"
        )
    heads, own = query.shape[-3], t.shape[-3]
    if own == 0 or heads % own:
        raise RuntimeError(
            f"scaled_dot_product_attention: Number of heads in {name} must divide the number of heads in query: got "
            f"{own} and {heads}"
        )
    return t.repeat_interleave(heads // own, -3)


def _samples(make):
    def triple(*batch, rows=3, keys=4, size=2, out=5):
        return make(*batch, rows, size), make(*batch, keys, size), make(*batch, keys, out)

    yield Sample(*triple(2, 2))
    yield Sample(*triple(2), is_causal=True)
    yield Sample(*triple(), scale=0.3)
    yield Sample(*triple(2), make.bools(3, 4) | tg.eye(3, 4, dtype=tg.bool))
    yield Sample(*triple(2), make(3, 4))
    yield Sample(make(1, 4, 3, 2), make(1, 2, 4, 2), make(1, 2, 4, 2), enable_gqa=True)


def _reference(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    import numpy

    if enable_gqa:
        k, v = (numpy.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ numpy.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = numpy.tril(numpy.ones(scores.shape[-2:], bool))
    if attn_mask is not None:
        scores = numpy.where(attn_mask, scores, -numpy.inf) if attn_mask.dtype == bool else scores + attn_mask
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


op(
    "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    compose=_attention,
    tags="draws",
    variants="function",
    where="nn.functional",
    types="float",
    samples=_samples,
    reference=_reference,
    errors=[
        (lambda: _attention(*[zeros(2)] * 3, None, 0.0, False, None, False), RuntimeError, "at least 2 dims, got 1"),
        (
            lambda: _attention(*[zeros(2, 3)] * 3, None, 0.0, False, None, True),
            RuntimeError,
            "enable_gqa needs a dimension of heads",
        ),
    ],
    doc="softmax(query key^T scale + mask) value: query (*, L, E), key (*, S, E), value (*, S, V) give (*, L, V) "
    "(Vaswani et al. 2017). scale is 1/sqrt(E) unless given; a mask of bools says which keys count, one of numbers is "
    "added; is_causal lets query i look at keys up to i; a query that may look at none gives zeros; with enable_gqa "
    "several heads of queries share one of keys.",
)
