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
    padding, mask = _masks(key_padding_mask, attn_mask, query, is_causal, need_weights)
    is_causal = is_causal and padding is None
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    mask = _mask_for_heads(mask, batch * num_heads, length, key.size(0))
    front = _batch_in_front(query, bias_k)
    if front:
        query, key, value = exchanged(query, key, value)
    q, k, v = _projected(query, key, value, weights, in_proj_bias, num_heads)
    if bias_k is not None or bias_v is not None:
        _check_added(bias_k, bias_v, static_k, static_v)
        k, v = (
            tg.cat([part, _by_head(bias.repeat(1, batch, 1), num_heads)]) for part, bias in ((k, bias_k), (v, bias_v))
        )
        mask, padding = _one_more(mask), _one_more(padding)
    q, k, v = (part.transpose(1, 2) if front else part.permute(1, 2, 0, 3) for part in (q, k, v))
    k = k if static_k is None else _fixed(static_k, "static_k", batch, num_heads, size)
    v = v if static_v is None else _fixed(static_v, "static_v", batch, num_heads, size)
    if add_zero_attn:
        k, v = (tg.cat([part, part.new_zeros(batch, num_heads, 1, part.size(3))], 2) for part in (k, v))
        mask, padding = _one_more(mask), _one_more(padding)
    mask = _joined(mask, padding, batch, num_heads, k.size(2))
    mask = mask if mask is None else mask.unsqueeze(0) if len(mask) == 1 else mask.unflatten(0, (batch, num_heads))
    dropout_p, shares = dropout_p if training else 0.0, None
    if need_weights:
        attended, shares = _weighed(q, k, v, mask, dropout_p)
        shares = shares.mean(1) if average_attn_weights else shares
    else:
        attended = _attention(q, k, v, mask, dropout_p, is_causal and mask is None)
    joined = (attended.transpose(1, 2) if front else attended.permute(2, 0, 1, 3)).flatten(2)
    result = _linear(joined, out_proj_weight, out_proj_bias)
    result = result.transpose(0, 1) if front else result
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


def _batch_in_front(query, bias_k):
    """Whether (L, N, E) lies in memory as (N, L, E) does, which is then how it is multiplied: no row is moved."""
    return bias_k is None and not query.is_contiguous() and query.transpose(0, 1).is_contiguous()


def exchanged(*parts):
    """The tensors with their first two dimensions exchanged; one that was given twice stays one."""
    found = {id(part): part.transpose(0, 1) for part in parts}
    return [found[id(part)] for part in parts]


def _by_head(part, num_heads):
    """(.., .., E) as (.., .., heads, E / heads)."""
    return part.unflatten(2, (num_heads, part.size(2) // num_heads))


def _projected(query, key, value, weights, bias, num_heads):
    """Query, key and value after their projections, by heads; self-attention takes one product for all three."""
    if isinstance(weights, tuple):
        for_query, for_key, for_value = weights
        _check_given(for_query, "q_proj_weight", True)
        _check_given(for_key, "k_proj_weight", True)
        _check_given(for_value, "v_proj_weight", True)
    else:
        _check_given(weights, "in_proj_weight", False)
        if query is key and key is value:
            joint = _linear(query, weights, bias)
            return joint.unflatten(2, (3, num_heads, joint.size(2) // (3 * num_heads))).unbind(2)
        for_query, for_key, for_value = weights.chunk(3)
    q, k, v = (None, None, None) if bias is None else bias.chunk(3)
    rows = (query, for_query, q), (key, for_key, k), (value, for_value, v)
    return [_by_head(_linear(*row), num_heads) for row in rows]


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


def _fixed(static, name, batch, num_heads, size):
    """What the caller has put in the place of the projected key or value, by heads."""
    for dim, expected in ((0, batch * num_heads), (2, size // num_heads)):
        if static.size(dim) != expected:
            raise AssertionError(f"expecting {name}.size({dim}) of {expected}, but got {static.size(dim)}")
    return static.unflatten(0, (batch, num_heads))


def _joined(mask, padding, batch, num_heads, source):
    if padding is None:
        return mask
    for dim, expected in ((0, batch), (1, source)):
        if padding.size(dim) != expected:
            raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got {padding.size(dim)}")
    padding = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, source)
    return padding if mask is None else mask + padding


def _weighed(q, k, v, mask, dropout_p):
    scores = (q * math.sqrt(1.0 / q.size(3))) @ k.mT
    shares = tg.softmax(scores if mask is None else scores + mask, -1)
    if dropout_p:
        shares = _dropout(shares, dropout_p)
    return shares @ v, shares
