"""Masks of attention that are a rule instead of numbers: causal, from the upper left or the lower right corner."""

import enum
import warnings

import tinygrad_ext as tg
from tinygrad_ext.errors import refuse_unknown
from tinygrad_ext.registry import functions

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a causal mask ends: which matters where there are more keys than queries."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(tg.Tensor):
    """A causal mask of (seq_len_q, seq_len_kv), which ``scaled_dot_product_attention`` takes as ``attn_mask``.

    Query i sees the keys up to i (upper left), or up to i + seq_len_kv - seq_len_q (lower right), so that the last
    query sees all. Every other function refuses it; ``_materialize()`` gives the mask of bools.
    """

    def __new__(cls, variant, seq_len_q, seq_len_kv):
        return tg.Tensor._make_subclass(cls, tg.empty(0))

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"CausalBias: variant must be a CausalVariant, got {variant!r}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                f"CausalBias: with {seq_len_q} queries and {seq_len_kv} keys the first queries see nothing from the "
                "lower right, and get zeros",
                stacklevel=2,
            )

    def _materialize(self, device=None):
        shift = self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0
        return tg.ones(self.seq_len_q, self.seq_len_kv, dtype=tg.bool, device=device).tril(shift)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        attention = functions["nn.functional.scaled_dot_product_attention"]
        if getattr(func, "__name__", "") == "__get__":  # an attribute
            return super().__torch_function__(func, types, args, kwargs or {})
        if func is not attention:
            raise NotImplementedError(
                f"CausalBias: {getattr(func, '__name__', func)} takes no rule for a mask, as "
                "scaled_dot_product_attention does: use ._materialize() for a mask of bools"
            )
        return _attention(attention, *args, **(kwargs or {}))

    def __repr__(self):
        return repr(self._materialize())


def _attention(attention, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **rest):
    if not isinstance(attn_mask, CausalBias) or any(isinstance(t, CausalBias) for t in (query, key, value)):
        raise ValueError("scaled_dot_product_attention: a CausalBias can be the attn_mask, not query, key or value")
    if is_causal:
        raise ValueError("scaled_dot_product_attention: attn_mask is a CausalBias already: leave is_causal out")
    if attn_mask.variant is CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv:
        return attention(query, key, value, None, dropout_p, True, **rest)
    return attention(query, key, value, attn_mask._materialize(query.device), dropout_p, False, **rest)


def _two(name, size):
    if len(size) != 2:
        raise AssertionError(f"{name}: takes seq_len_q and seq_len_kv, got {size}")
    if not all(isinstance(n, int) for n in size):
        raise TypeError(f"{name}: seq_len_q and seq_len_kv must be integers, got {size}")
    return size


def causal_upper_left(*size):
    """A CausalBias of (seq_len_q, seq_len_kv) whose diagonal begins at the first query and the first key."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_two("causal_upper_left", size))


def causal_lower_right(*size):
    """A CausalBias of (seq_len_q, seq_len_kv) whose diagonal ends at the last query and the last key."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two("causal_lower_right", size))


__getattr__ = refuse_unknown(__name__)
