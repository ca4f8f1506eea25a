"""Attention with several heads."""

import tinygrad_ext as tg

from .. import functional as F
from .. import init
from ..module import Module
from ..multi_head import added_mask, exchanged
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Let each query look at all keys, with several heads (Vaswani et al., 2017).

    Args:
        embed_dim: last size of the query and of the result, E.
        num_heads: a divisor of embed_dim.
        dropout: probability of dropping a weight, while training.
        bias: whether the projections have offsets.
        add_bias_kv: whether there is one more, learned, key and value.
        add_zero_attn: whether there is one more key and value of zeros.
        kdim, vdim: last sizes of key and value; E by default.
        batch_first: whether batched arguments are (N, L, E) instead of (L, N, E).

    Raises:
        ValueError: a size is not positive; AssertionError: the heads do not divide embed_dim.

        >>> import tinygrad_ext as tg
        >>> x = tg.zeros(5, 2, 8)
        >>> result, weights = tg.nn.MultiheadAttention(8, 2)(x, x, x)
        >>> result.shape, weights.shape
        (torch.Size([5, 2, 8]), torch.Size([2, 5, 5]))
    """

    __constants__ = ("batch_first",)

    def __init__(
        self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
        vdim=None, batch_first=False, device=None, dtype=None,
    ):  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, "
                f"got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError(f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads, self.dropout, self.batch_first = num_heads, dropout, batch_first
        self.head_dim = embed_dim // num_heads
        made = {"device": device, "dtype": dtype}
        self._add_projections(made)
        self.register_parameter("in_proj_bias", Parameter(tg.empty(3 * embed_dim, **made)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, Parameter(tg.empty((1, 1, embed_dim), **made)) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _add_projections(self, made):
        """One weight for all three where the sizes are equal, in PyTorch's order of names."""
        size, same = self.embed_dim, self._qkv_same_embed_dim
        for name, columns in (("q", size), ("k", self.kdim), ("v", self.vdim)):
            weight = None if same else Parameter(tg.empty((size, columns), **made))
            self.register_parameter(f"{name}_proj_weight", weight)
        self.register_parameter("in_proj_weight", Parameter(tg.empty((3 * size, size), **made)) if same else None)

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for weight in (self.bias_k, self.bias_v):
            if weight is not None:
                init.xavier_normal_(weight)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self, query, key, value, key_padding_mask: tg.Tensor | None = None, need_weights: bool = True,
        attn_mask: tg.Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ):  # fmt: skip
        """Return the result and the weights; what the arguments are says `nn.functional.multi_head_attention_forward`.

        With ``batch_first`` batched arguments and the result have the batch in front.
        """
        key_padding_mask = added_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
        attn_mask = added_mask(attn_mask, "attn_mask", None, "", query.dtype)
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = exchanged(query, key, value)
        result, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return result.transpose(0, 1) if turned else result, weights

    def merge_masks(self, attn_mask: tg.Tensor | None, key_padding_mask: tg.Tensor | None, query: tg.Tensor):
        """Return the masks as one for each head of each batch, and what it is: 1 for a padding mask alone, else 2.

        A padding mask alone comes back as it is, (batch, steps); without masks both are None. ``query`` has the batch
        in front.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, steps, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, steps, steps)
        else:
            merged = attn_mask.view(1, 1, steps, steps).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, steps).expand(-1, self.num_heads, -1, -1)
        return merged, 2
