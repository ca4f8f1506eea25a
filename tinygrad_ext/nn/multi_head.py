"""Attention with several heads as a function, which `nn.functional` shows; `nn.MultiheadAttention` has the weights."""

import math
import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.overridable import overridable as _overridable

from ..registry import functions

_linear, _pad, _dropout, _attention = (
    functions["nn.functional." + name] for name in ("linear", "pad", "dropout", "scaled_dot_product_attention")
)


@_overridable
def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
    dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None,
    static_v=None, average_attn_weights=True, is_causal=False,
):  # fmt: skip
    """Project query, key and value, attend with each head, and project the joined heads (Vaswani et al., 2017).

    Args:
        query: (L, N, E), or (L, E) without a batch; key and value (S, N, Ek) and (S, N, Ev), or without N.
        embed_dim_to_check: E.
        num_heads: a divisor of E.
        in_proj_weight: (3E, E), in_proj_bias: (3E,) or None; q_proj_weight, k_proj_weight and v_proj_weight instead of
            the first where ``use_separate_proj_weight``.
        bias_k, bias_v: (1, 1, E), one more key and value, or None; add_zero_attn adds one of zeros.
        dropout_p: probability of dropping a weight, while ``training``.
        key_padding_mask: (N, S) or (S,), True where a key does not count, or numbers to add.
        attn_mask: (L, S) or (N * num_heads, L, S), as before.
        static_k, static_v: (N * num_heads, S, E / num_heads), in place of the projected ones.
        is_causal: promises that attn_mask hides the keys after a query.

    Returns:
        The result, shaped as query, and the weights: None without ``need_weights``, (N, L, S) averaged over the heads,
        or (N, num_heads, L, S) without ``average_attn_weights``.

    Raises:
        AssertionError: sizes that do not fit; RuntimeError: a mask that does not fit, or is_causal without a mask.
    """
    batched = check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (part.unsqueeze(1) for part in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, size = query.shape
    heads = batch * num_heads
    padding, mask = _masks(key_padding_mask, attn_mask, query, is_causal, need_weights)
    is_causal = is_causal and padding is None
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    mask = _mask_for_heads(mask, heads, length, key.size(0))
    if bias_k is not None or bias_v is not None:
        _check_added(bias_k, bias_v, static_k, static_v)
        assert bias_k is not None and bias_v is not None
        k, v = (tg.cat([part, bias.repeat(1, batch, 1)]) for part, bias in ((k, bias_k), (v, bias_v)))
        mask, padding = _one_more(mask), _one_more(padding)
    q = _by_head(q, num_heads)
    k, v = (
        _fixed(part, static, name, batch, num_heads, size)
        for part, static, name in ((k, static_k, "static_k"), (v, static_v, "static_v"))
    )
    if add_zero_attn:
        k, v = (tg.cat([part, part.new_zeros(heads, 1, part.size(2))], 1) for part in (k, v))
        mask, padding = _one_more(mask), _one_more(padding)
    mask = _joined(mask, padding, batch, num_heads, k.size(1))
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        attended, shares = _weighed(q, k, v, mask, dropout_p)
        shares = shares.view(batch, num_heads, length, k.size(1))
        shares = shares.mean(1) if average_attn_weights else shares
    else:
        shares = None
        mask = mask if mask is None else mask.unsqueeze(0) if len(mask) == 1 else mask.unflatten(0, (batch, num_heads))
        q, k, v = (part.unflatten(0, (batch, num_heads)) for part in (q, k, v))
        attended = _attention(q, k, v, mask, dropout_p, is_causal and mask is None).flatten(0, 1)
    result = _linear(attended.transpose(0, 1).reshape(length, batch, size), out_proj_weight, out_proj_bias)
    if batched:
        return result, shares
    return result.squeeze(1), None if shares is None else shares.squeeze(0)


def check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the arguments have a batch; AssertionError where their dimensions do not fit each other."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    dims = query.dim()
    start = f"For {'batched (3-D)' if dims == 3 else 'unbatched (2-D)'} `query`, expected"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"{start} `key` and `value` to be {dims}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"{start} `key_padding_mask` to be `None` or {dims - 1}-D "
            f"but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"{start} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and dims == 2 and attn_mask.dim() == 3:
        expected = (num_heads, query.size(0), key.size(0))
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}")
    return dims == 3


def added_mask(mask, name, other, other_name, dtype):
    """A mask as numbers to add: -inf where one of bools is True.

    Raises:
        AssertionError: a mask of integers.
    """
    if mask is None:
        return None
    if mask.dtype != tg.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported, got {mask.dtype}")
    if other is not None and other.dtype != mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if mask.dtype == tg.bool:
        return tg.zeros_like(mask, dtype=dtype).masked_fill(mask, float("-inf"))
    return mask


def _masks(padding, mask, query, is_causal, need_weights):
    padding = added_mask(padding, "key_padding_mask", mask, "attn_mask", query.dtype)
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        return None, None
    return padding, added_mask(mask, "attn_mask", None, "", query.dtype)


def _check_sizes(query, key, value, expected, num_heads, separate):
    size = query.size(2)
    if size != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got {size}")
    if size % num_heads:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {num_heads}")
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _projected(query, key, value, weights, bias):
    """Query, key and value after their projections; self-attention takes one product for all three."""
    if isinstance(weights, tuple):
        for_query, for_key, for_value = weights
        _check_given(for_query, "q_proj_weight", True)
        _check_given(for_key, "k_proj_weight", True)
        _check_given(for_value, "v_proj_weight", True)
    else:
        _check_given(weights, "in_proj_weight", False)
        if query is key and key is value:
            q, k, v = _linear(query, weights, bias).chunk(3, -1)
            return q, k, v
        for_query, for_key, for_value = weights.chunk(3)
    if bias is None:
        return _linear(query, for_query), _linear(key, for_key), _linear(value, for_value)
    q, k, v = bias.chunk(3)
    return _linear(query, for_query, q), _linear(key, for_key, k), _linear(value, for_value, v)


def _check_given(weight, name, separate):
    if weight is None:
        raise AssertionError(f"use_separate_proj_weight is {separate} but {name} is None")


def _mask_for_heads(mask, heads, length, source):
    if mask is None:
        return None
    expected = [length, source] if mask.dim() == 2 else [heads, length, source]
    if list(mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {tuple(mask.shape)}, but should be {tuple(expected)}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _check_added(bias_k, bias_v, static_k, static_v):
    if bias_k is None or bias_v is None:
        given, missing = ("bias_v", "bias_k") if bias_k is None else ("bias_k", "bias_v")
        raise AssertionError(f"{given} is set but {missing} is None")
    for name, static in (("key", static_k), ("value", static_v)):
        if static is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")


def _one_more(mask):
    return None if mask is None else _pad(mask, (0, 1))


def _by_head(part, num_heads):
    length, batch, size = part.shape
    return part.reshape(length, batch * num_heads, size // num_heads).transpose(0, 1)


def _fixed(part, static, name, batch, num_heads, size):
    """The projected key or value by heads, or what the caller has put in its place."""
    if static is None:
        return _by_head(part, num_heads)
    for dim, expected in ((0, batch * num_heads), (2, size // num_heads)):
        if static.size(dim) != expected:
            raise AssertionError(f"expecting {name}.size({dim}) of {expected}, but got {static.size(dim)}")
    return static


def _joined(mask, padding, batch, num_heads, source):
    if padding is None:
        return mask
    for dim, expected in ((0, batch), (1, source)):
        if padding.size(dim) != expected:
            raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got {padding.size(dim)}")
    padding = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, source)
    return padding if mask is None else mask + padding


def _weighed(q, k, v, mask, dropout_p):
    q = q * math.sqrt(1.0 / q.size(2))
    scores = tg.bmm(q, k.mT) if mask is None else tg.baddbmm(mask, q, k.mT)
    shares = tg.softmax(scores, -1)
    if dropout_p:
        shares = _dropout(shares, dropout_p)
    return tg.bmm(shares, v), shares
