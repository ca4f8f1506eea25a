"""Attention and transformers beside PyTorch's: the same seed gives the same weights, results and gradients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg
from tinygrad_ext import nn

torch = pytest.importorskip("torch", reason="compares with PyTorch")


def pair(kind, *args, **kwargs):
    tg.manual_seed(3)
    ours = getattr(nn, kind)(*args, **kwargs)
    torch.manual_seed(3)
    theirs = getattr(torch.nn, kind)(*args, **kwargs)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    same(ours.state_dict().values(), theirs.state_dict().values())
    return ours, theirs


def same(ours, theirs):
    for one, other in zip(list(ours), list(theirs), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-4, atol=1e-5)


def draw(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def compared(modules, *inputs, **options):
    """Results and gradients of both for the same arrays."""
    found = []
    for library, module in zip((tg, torch), modules):
        put = {name: library.tensor(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
        result = module(*[library.tensor(x) for x in inputs], **put)
        result = result if isinstance(result, tuple) else (result,)
        sum((part * part).sum() for part in result if part is not None).backward()
        found.append((*result, *[p.grad for p in module.parameters()]))
        module.zero_grad()
    same(*found)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_multihead_attention_agrees(data):
    flag = lambda: data.draw(st.booleans())
    heads, other = data.draw(st.sampled_from([1, 2, 4])), flag()
    batched, batch_first, is_float = flag(), flag(), flag()
    n, length, source = (data.draw(st.integers(1, 4)) for _ in range(3))
    modules = pair(
        "MultiheadAttention", 8, heads, bias=flag(), add_bias_kv=flag(), add_zero_attn=flag(), batch_first=batch_first,
        **({"kdim": 5, "vdim": 6} if other else {}),
    )  # fmt: skip

    def part(steps, size):
        shape = ((n, steps) if batch_first else (steps, n)) if batched else (steps,)
        return draw(*shape, size)

    def mask(*shape):
        # The first key always counts: where none does, every library gives something else.
        hidden = (draw(*shape) > 0.5) & (np.arange(source) > 0)
        return hidden.astype("float32") * -3 if is_float else hidden

    options = {"need_weights": flag(), "average_attn_weights": flag()}
    if flag():
        options["attn_mask"] = mask(*([(n if batched else 1) * heads] if flag() else []), length, source)
    if flag():
        options["key_padding_mask"] = mask(*([n] if batched else []), source)
    inputs = part(length, 8), part(source, 5 if other else 8), part(source, 6 if other else 8)
    compared(modules, *inputs, **options)


def test_self_attention_projects_once_and_agrees():
    x = draw(3, 5, 8)
    results = []
    for library, module in zip((tg, torch), pair("MultiheadAttention", 8, 2, batch_first=True)):
        given = library.tensor(x)
        mask = library.nn.Transformer.generate_square_subsequent_mask(5)
        results.append(module(given, given, given, attn_mask=mask, is_causal=True, need_weights=False))
    same(*results)


def test_static_keys_and_values_agree():
    weights = [draw(24, 8), draw(24), None, None, False, 0.0, draw(8, 8), None]
    results = []
    for library in (tg, torch):
        made = [library.tensor(w) if isinstance(w, np.ndarray) else w for w in weights]
        query = library.tensor(draw(3, 2, 8))
        static = {name: library.tensor(draw(4, 6, 4)) for name in ("static_k", "static_v")}
        results.append(library.nn.functional.multi_head_attention_forward(query, query, query, 8, 2, *made, **static))
    same(*results)


@pytest.mark.parametrize("sizes, error", [((0, 2), ValueError), ((8, 3), AssertionError)])
def test_sizes_of_attention_that_do_not_fit(sizes, error):
    for library in (tg, torch):
        with pytest.raises(error, match="embed_dim"):
            library.nn.MultiheadAttention(*sizes)


@pytest.mark.parametrize("shapes, options, error, message", [
    (((3, 8), (3, 2, 8), (3, 8)), {}, AssertionError, "to be 2-D"),
    (((8,), (8,), (8,)), {}, AssertionError, "unbatched 2D or batched 3D"),
    (((3, 2, 8),) * 3, {"attn_mask": (3, 4)}, RuntimeError, "2D attn_mask is"),
    (((3, 2, 8),) * 3, {"attn_mask": (3, 3, 3)}, RuntimeError, "3D attn_mask is"),
    (((3, 2, 8),) * 3, {"attn_mask": (3,)}, AssertionError, "`attn_mask` to be"),
    (((3, 8),) * 3, {"attn_mask": (3, 3, 3)}, AssertionError, "`attn_mask` shape to be"),
    (((3, 2, 8),) * 3, {"key_padding_mask": (3,)}, AssertionError, "`key_padding_mask` to be"),
    (((3, 2, 8),) * 3, {"key_padding_mask": (3, 3)}, AssertionError, "key_padded_mask.shape"),
    (((3, 2, 8),) * 3, {"is_causal": True}, RuntimeError, "Need attn_mask"),
    (((3, 2, 6),) * 3, {}, AssertionError, "embedding dimension of 8"),
    (((3, 2, 8), (3, 2, 8), (4, 2, 8)), {}, AssertionError, "does not match value"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_as_in_pytorch(shapes, options, error, message):
    for library, module in zip((tg, torch), pair("MultiheadAttention", 8, 2)):
        put = {name: library.zeros(x) if isinstance(x, tuple) else x for name, x in options.items()}
        with pytest.raises(error, match=message):
            module(*[library.zeros(shape) for shape in shapes], **put)


def test_masks_of_integers_are_refused_and_two_kinds_warn():
    for library, module in zip((tg, torch), pair("MultiheadAttention", 8, 2)):
        x = library.zeros(3, 2, 8)
        with pytest.raises(AssertionError, match="only bool and floating"):
            module(x, x, x, attn_mask=library.zeros(3, 3, dtype=library.int64))
        with pytest.warns(UserWarning, match="mismatched"):
            module(x, x, x, attn_mask=library.zeros(3, 3), key_padding_mask=library.zeros(2, 3, dtype=library.bool))


LAYER = {"dim_feedforward": 6, "dropout": 0.0}


@pytest.mark.parametrize("options", [
    {}, {"norm_first": True, "batch_first": True}, {"activation": "gelu", "bias": False},
])  # fmt: skip
@pytest.mark.parametrize("unbatched", [False, True])
def test_layers_of_transformers_agree(options, unbatched):
    x, memory = (draw(4, 8), draw(3, 8)) if unbatched else (draw(4, 4, 8), draw(4, 4, 8) + 1)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(4).numpy()
    encoders = pair("TransformerEncoderLayer", 8, 2, **LAYER, **options)
    compared(encoders, x)
    compared(encoders, x, src_mask=causal, is_causal=True)
    decoders = pair("TransformerDecoderLayer", 8, 2, **LAYER, **options)
    compared(decoders, x, memory, tgt_mask=causal)


def test_a_transformer_agrees():
    models = pair("Transformer", 8, 2, 2, 2, 16, 0.0, batch_first=True)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(3).numpy()
    padding = np.array([[False] * 5, [False] * 3 + [True] * 2])
    compared(models, draw(2, 5, 8), draw(2, 3, 8), src_key_padding_mask=padding, memory_key_padding_mask=padding)
    compared(models, draw(2, 5, 8), draw(2, 3, 8), tgt_mask=causal, tgt_is_causal=None)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("enable", [True, False])
def test_padding_is_blank_where_it_is_in_pytorch(enable):
    padding = np.array([[False] * 5, [False] * 3 + [True] * 2])
    results = []
    for library in (tg, torch):
        library.manual_seed(3)
        layer = library.nn.TransformerEncoderLayer(8, 2, **LAYER, batch_first=True)
        encoder = library.nn.TransformerEncoder(layer, 2, enable_nested_tensor=enable, norm=library.nn.LayerNorm(8))
        with library.no_grad():
            given = library.tensor(draw(2, 5, 8)), None, library.tensor(padding)
            results.append([encoder(*given), encoder.eval()(*given)])
    same(*results)


def test_arguments_of_transformers_that_do_not_fit():
    for library, model in zip((tg, torch), pair("Transformer", 8, 2, 1, 1, 16, batch_first=True)):
        with pytest.raises(RuntimeError, match="batch number"):
            model(library.zeros(2, 3, 8), library.zeros(1, 3, 8))
        with pytest.raises(RuntimeError, match="feature number"):
            model(library.zeros(2, 3, 8), library.zeros(2, 3, 6))
        with pytest.raises(RuntimeError, match="relu/gelu"):
            library.nn.TransformerEncoderLayer(8, 2, activation="tanh")
        with pytest.warns(UserWarning, match="self_attn.batch_first was not True"):
            library.nn.TransformerEncoder(library.nn.TransformerEncoderLayer(8, 2), 1)


def test_traced_attention_gives_the_same():
    layer = nn.TransformerEncoderLayer(8, 2, **LAYER)
    traced = tg.jit.trace(layer, (tg.zeros(5, 2, 8),))
    x = tg.tensor(draw(5, 2, 8))
    same([traced(x)], [layer(x)])


@pytest.mark.parametrize("training", [True, False])
def test_a_batch_of_none_goes_through(training):
    nothing = tg.zeros(3, 0, 8)
    for layer, args in (
        (nn.MultiheadAttention(8, 2), (nothing,) * 3),
        (nn.MultiheadAttention(8, 2), (tg.zeros(0, 3, 8),) * 3),
        (nn.TransformerEncoderLayer(8, 2, 16), (nothing,)),
        (nn.TransformerDecoderLayer(8, 2, 16), (nothing, tg.zeros(5, 0, 8))),
    ):
        made = layer.train(training)(*args)
        made, weights = made if isinstance(made, tuple) else (made, None)
        assert made.shape == args[0].shape
        assert weights is None or weights.shape == (args[0].shape[1], args[0].shape[0], args[0].shape[0])
