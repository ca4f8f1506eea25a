"""Transformers (Vaswani et al., 2017): layers of attention and of a small network on each position."""

import copy
import warnings

import tinygrad_ext as tg

from .. import functional as F
from .. import init
from ..module import Module
from ..multi_head import added_mask
from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .norm import LayerNorm

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip


def _causal_mask(size, device=None, dtype=None):
    return tg.triu(tg.full((size, size), float("-inf"), device=device, dtype=dtype), diagonal=1)


def _is_causal(mask, told, size):
    """Whether a mask hides exactly the later positions; ``told`` settles it unless None."""
    if told is not None or mask is None:
        return told is True
    if tuple(mask.shape) != (size, size):
        return False
    return bool((mask == _causal_mask(size, mask.device, mask.dtype)).all())


def _length(x, batch_first):
    return x.size(1 if x.dim() == 3 and batch_first else 0)


def _copies(module, count):
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _activation(given):
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}; pass any other as a function")
    return getattr(F, given)


class _Layer(Module):
    """What both layers share: the small network, and which norm follows or leads which block."""

    __constants__ = ("norm_first",)

    def _build(
        self, attentions, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
        norm_first, bias, device, dtype,
    ):  # fmt: skip
        made = {"device": device, "dtype": dtype}
        for name in attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        blocks = range(1, len(attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _attend(self, attention, x, memory, mask, padding, is_causal):
        return attention(x, memory, memory, padding, False, mask, is_causal=is_causal)[0]

    def _feed(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a network of two linear layers, each added to its input and normalised.

    Args:
        d_model: last size of the input and of the result.
        nhead: heads, a divisor of d_model.
        dim_feedforward: size between the two linear layers.
        dropout: probability of zeroing, while training.
        activation: ``relu``, ``gelu`` or a function.
        layer_norm_eps: added to the variance.
        batch_first: whether batched input is (N, L, d_model) instead of (L, N, d_model).
        norm_first: whether a block's input is normalised, rather than the sum with its output.
        bias: whether there are offsets.

        >>> import tinygrad_ext as tg
        >>> tg.nn.TransformerEncoderLayer(8, 2, batch_first=True)(tg.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 8])
    """

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
        batch_first=False, norm_first=False, bias=True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        self._build(
            ("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, device, dtype,
        )  # fmt: skip
        kinds = ((F.relu, ReLU), (F.gelu, GELU))
        known = (i for i, (f, kind) in enumerate(kinds, 1) if self.activation is f or isinstance(self.activation, kind))
        self.activation_relu_or_gelu = next(known, 0)

    def forward(
        self, src, src_mask: tg.Tensor | None = None, src_key_padding_mask: tg.Tensor | None = None,
        is_causal: bool = False,
    ):  # fmt: skip
        """Return a tensor shaped as ``src``; the masks are those of `MultiheadAttention`."""
        padding = added_mask(src_key_padding_mask, "src_key_padding_mask", src_mask, "src_mask", src.dtype)
        mask = added_mask(src_mask, "src_mask", None, "", src.dtype)
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(self._attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x):
        return self.dropout2(self._feed(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's result, then a network; arguments as `TransformerEncoderLayer`."""

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
        batch_first=False, norm_first=False, bias=True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        self._build(
            ("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
            batch_first, norm_first, bias, device, dtype,
        )  # fmt: skip

    def forward(
        self, tgt, memory, tgt_mask: tg.Tensor | None = None, memory_mask: tg.Tensor | None = None,
        tgt_key_padding_mask: tg.Tensor | None = None, memory_key_padding_mask: tg.Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ):  # fmt: skip
        """Return a tensor shaped as ``tgt``; ``memory`` is the encoder's result."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(self._attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout2(self._attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x):
        return self.dropout3(self._feed(x))


class TransformerEncoder(Module):
    """Copies of one encoder layer, one after the other.

    Args:
        encoder_layer: the layer, which is copied; the copies start from equal weights.
        num_layers: how many.
        norm: applied at the end, or None.
        enable_nested_tensor: whether, as in PyTorch, padded positions may be zero in the result, which happens only
            without gradients and training and where the layer is of the usual kind.
        mask_check: whether that is done only for padding behind the sequences.
    """

    __constants__ = ("norm",)

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        why_not = _unusual(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not why_not
        if enable_nested_tensor and why_not:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}", stacklevel=2
            )

    def forward(
        self, src, mask: tg.Tensor | None = None, src_key_padding_mask: tg.Tensor | None = None,
        is_causal: bool | None = None,
    ):  # fmt: skip
        """Return a tensor shaped as ``src``; ``is_causal=None`` looks whether the mask is."""
        padding = added_mask(src_key_padding_mask, "src_key_padding_mask", mask, "mask", src.dtype)
        mask = added_mask(mask, "mask", None, "", src.dtype)
        is_causal = _is_causal(mask, is_causal, _length(src, self.layers[0].self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        if padding is not None and self._blanks_padding(src, mask, padding):
            output = output.masked_fill((padding != 0).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _blanks_padding(self, src, mask, padding):
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3 or mask is not None:
            return False
        if tg.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in first.parameters())):
            return False
        kept = padding.logical_not()
        return not self.mask_check or not bool((kept[:, 1:] > kept[:, :-1]).any())


def _unusual(layer):
    """Why PyTorch would not treat padding of this layer as absent, or an empty text."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = {
        "norm_first was True": layer.norm_first,
        "self_attn.batch_first was not True(use batch_first for better inference performance)":
            not attention.batch_first,
        "self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        "self_attn was passed bias=False": attention.in_proj_bias is None,
        "activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        "norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        "self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }  # fmt: skip
    return next((f"encoder_layer.{reason}" for reason, holds in reasons.items() if holds), "")


class TransformerDecoder(Module):
    """Copies of one decoder layer, one after the other; arguments as for `TransformerEncoder`."""

    __constants__ = ("norm",)

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt, memory, tgt_mask: tg.Tensor | None = None, memory_mask: tg.Tensor | None = None,
        tgt_key_padding_mask: tg.Tensor | None = None, memory_key_padding_mask: tg.Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ):  # fmt: skip
        """Return a tensor shaped as ``tgt``; ``tgt_is_causal=None`` looks whether the mask is."""
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers[0].self_attn.batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder; weights of two dimensions start by Glorot's uniform rule.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: those of
            `TransformerEncoderLayer`.
        num_encoder_layers, num_decoder_layers: how many layers each has.
        custom_encoder, custom_decoder: modules to take instead.

        >>> import tinygrad_ext as tg
        >>> model = tg.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
        >>> model(tg.zeros(2, 5, 8), tg.zeros(2, 3, 8)).shape
        torch.Size([2, 3, 8])
    """

    def __init__(
        self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1,
        activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False,
        norm_first=False, bias=True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        given = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*given, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*given, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self, src, tgt, src_mask: tg.Tensor | None = None, tgt_mask: tg.Tensor | None = None,
        memory_mask: tg.Tensor | None = None, src_key_padding_mask: tg.Tensor | None = None,
        tgt_key_padding_mask: tg.Tensor | None = None, memory_key_padding_mask: tg.Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ):  # fmt: skip
        """Return a tensor shaped as ``tgt``, what the decoder makes of it and of the encoded ``src``."""
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError(
                "the batch number of src and tgt must be equal, "
                f"got {src.size(batch_dim)} and {tgt.size(batch_dim)} in dimension {batch_dim}"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                "the feature number of src and tgt must be equal to d_model, "
                f"got {src.size(-1)} and {tgt.size(-1)} for {self.d_model}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )  # fmt: skip
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """Return (sz, sz) numbers: -inf above the diagonal, zero elsewhere."""
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self):
        for weight in self.parameters():
            if weight.dim() > 1:
                init.xavier_uniform_(weight)
