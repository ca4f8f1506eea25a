"""Attention whose scores a function changes, and whose mask is one: ``flex_attention`` (Dong et al. 2024).

The whole matrix of scores is made; the functions run under ``vmap``, so they are written for one score.
"""

import math
from typing import NamedTuple

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.errors import refuse_unknown

from .block_mask import (
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    indices,
    noop_mask,
    or_masks,
    over_scores,
)  # fmt: skip

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]


class AuxRequest(NamedTuple):
    """What ``flex_attention`` is to return besides."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What it returned besides, or None: logarithms of sums and largest scores, (B, H, queries) each."""

    lse: object = None
    max_scores: object = None


def _check(query, key, value, block_mask, enable_gqa):
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.dim() != 4:
            raise NotImplementedError(
                f"flex_attention: {name} must have 4 dimensions (batch, heads, length, features), got {list(t.shape)}"
            )
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "flex_attention: Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.shape[3] != key.shape[3]:
        raise ValueError(
            f"flex_attention: query and key must have as many features, got {query.shape[3]} and {key.shape[3]}"
        )
    if query.shape[0] != key.shape[0] and (block_mask is None or block_mask.kv_num_blocks.shape[0] != query.shape[0]):
        raise ValueError(
            f"flex_attention: query and key must have the same batch size, or a block_mask for each of query's, got "
            f"{query.shape[0]} and {key.shape[0]}"
        )
    if query.shape[1] != key.shape[1]:
        if not enable_gqa:
            raise ValueError(
                "flex_attention: Expect query and key/value to have the same number of heads but got "
                f"Hq={query.shape[1]} and Hkv={key.shape[1]}. Try setting enable_gqa=True for GQA."
            )
        if key.shape[1] == 0 or query.shape[1] % key.shape[1]:
            raise ValueError(
                "flex_attention: Expect number of query heads to be a multiple of kv heads for GQA but got "
                f"Hq={query.shape[1]} and Hkv={key.shape[1]}."
            )
    if block_mask is not None and block_mask.seq_lengths != (query.shape[2], key.shape[2]):
        raise ValueError(
            f"flex_attention: block_mask was created for block_mask.shape={block_mask.shape} but got "
            f"q_len={query.shape[2]} and kv_len={key.shape[2]}. Make it anew for these lengths"
        )


@boundary
def flex_attention(
    query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False,
    kernel_options=None, *, return_aux=None,
):  # fmt: skip
    """softmax(score_mod(query . key^T scale, ...)) . value, with the scores that ``block_mask`` hides left out.

    Args:
        query: (B, Hq, queries, E). key: (B, Hkv, keys, E). value: (B, Hkv, keys, Ev).
        score_mod: function of (score, batch, head, query, key), all without dimensions, to the score it becomes; it may
            use tensors from around it, indexed by those numbers, and they get gradients.
        block_mask: of ``create_block_mask``; of its blocks nothing is read but its function.
        scale: 1 / sqrt(E) if None.
        enable_gqa: whether heads of keys may serve several of queries each.
        return_lse: whether the logarithms of the sums of exponentials are returned too, (B, Hq, queries).
        kernel_options: accepted; there is one kernel.
        return_aux: an ``AuxRequest`` of what else is returned, as ``AuxOutput``.

    Returns:
        (B, Hq, queries, Ev), zeros for queries that see nothing.

    Raises:
        NotImplementedError: for tensors without 4 dimensions.
        ValueError: for dtypes, heads or lengths that do not fit.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError("flex_attention: give return_aux=AuxRequest(lse=True) or return_lse=True, not both")
    groups = query.shape[1] // max(key.shape[1], 1)
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scale = max(query.shape[-1], 1) ** -0.5 if scale is None else scale
    precision = tg.float64 if query.dtype == tg.float64 else tg.float32
    scores = ((query @ key.mT).to(precision)) * scale
    places = indices(scores.shape, query.device)
    if score_mod is not None:
        scores = over_scores(score_mod, True)(scores, *places).to(precision)
    if block_mask is not None:
        scores = scores.masked_fill(~over_scores(block_mask.mask_mod, False)(*places), -math.inf)
    blind = (scores == -math.inf).all(-1, True)
    weights = scores.masked_fill(blind, 0).softmax(-1).masked_fill(blind, 0)
    result = weights.to(query.dtype) @ value
    if not return_lse and return_aux is None:
        return result
    lse = scores.logsumexp(-1)
    if return_lse:
        return result, lse
    largest = scores.amax(-1) if return_aux.max_scores else None
    return result, AuxOutput(lse if return_aux.lse else None, largest)


__getattr__ = refuse_unknown(__name__)
