"""Attention and transformers are compiled, with every kind of mask, and give what they give outside of scripts."""

import io
import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn

WAYS = [
    {},
    {"batch_first": True},
    {"bias": False},
    {"kdim": 6, "vdim": 4},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
]


def same(a, b):
    return (a is None and b is None) or (a is not None and b is not None and a.equal(b))


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_multihead_attention(way):
    plain = nn.MultiheadAttention(8, 2, **way).eval()
    scripted = jit.script(plain)
    query, key, value = (tg.randn(4, 4, way.get(size, 8)) for size in ("", "kdim", "vdim"))
    padding = tg.zeros(4, 4, dtype=tg.bool)
    padding[0, 1] = True
    for given in (
        {},
        {"average_attn_weights": False},
        {"need_weights": False},
        {"key_padding_mask": padding},
        {"attn_mask": tg.randn(4, 4)},
    ):
        rows = zip(plain(query, key, value, **given), scripted(query, key, value, **given))
        assert all(same(a, b) for a, b in rows), given
    if "kdim" not in way:
        assert same(plain(query, query, query)[0], scripted(query, query, query)[0])
    file = io.BytesIO()
    jit.save(scripted, file)
    file.seek(0)
    assert same(jit.load(file)(query, key, value)[0], plain(query, key, value)[0])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_transformers(norm_first, batch_first):
    given = {"norm_first": norm_first, "batch_first": batch_first}
    x, y = tg.randn(4, 4, 8), tg.randn(4, 4, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = nn.TransformerEncoderLayer(8, 2, 16, **given)
        rows = [
            (layer, (x,)),
            (nn.TransformerDecoderLayer(8, 2, 16, **given), (x, y)),
            (nn.TransformerEncoder(layer, 2), (x,)),
            (nn.Transformer(8, 2, 1, 1, 16, **given), (x, y)),
        ]
    padding = tg.zeros(4, 4, dtype=tg.bool)
    padding[0, 3] = True
    for plain, args in rows:
        scripted = jit.script(plain.eval())
        assert same(plain(*args), scripted(*args)), type(plain)
        if len(args) == 1:
            a, b = (m(x, src_key_padding_mask=padding) for m in (plain, scripted))
            assert same(a, b), type(plain)
        mask = nn.Transformer.generate_square_subsequent_mask(4)
        a, b = (m(*args, mask) for m in (plain, scripted))
        assert same(a, b), type(plain)


def test_gradients_of_a_scripted_layer():
    plain = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    scripted = jit.script(plain)
    x = tg.randn(3, 2, 8)
    grads = []
    for each in (plain, scripted):
        plain.zero_grad()
        each(x).sum().backward()
        grads.append([p.grad.clone() for p in plain.parameters()])
    assert all(tg.allclose(a, b, atol=1e-5) for a, b in zip(*grads))
