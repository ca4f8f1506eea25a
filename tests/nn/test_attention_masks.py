"""nn.attention: switches, causal masks as a rule, and attention whose scores and mask are functions."""

import importlib
import sys
import warnings

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn.attention import SDPBackend, bias, sdpa_kernel
from tinygrad_ext.nn.attention import flex_attention as flex

attention = tg.nn.functional.scaled_dot_product_attention
MODS = {
    "causal": lambda b, h, q, k: q >= k,
    "near": lambda b, h, q, k: (q - k).abs() <= 70,
    "of one head": lambda b, h, q, k: (q >= k) & (h == 0),
    "nothing": lambda b, h, q, k: q < 0,
}
PARTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices")


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def by_hand(q, k, v, seen, more=0.0):
    """The formula over whole matrices, differentiated by what the parts are."""
    scores = q @ k.mT * q.shape[-1] ** -0.5 + more
    blind = ~seen.any(-1, True)
    weights = scores.masked_fill(~seen, -np.inf).masked_fill(blind, 0).softmax(-1).masked_fill(blind, 0)
    return weights @ v


def test_kernels_are_switched_inside_and_as_they_were_behind():
    switches = tg.backends.cuda
    with sdpa_kernel(SDPBackend.MATH):
        assert switches.math_sdp_enabled() and not switches.flash_sdp_enabled()
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION], set_priority=True):
            assert switches.flash_sdp_enabled() and not switches.math_sdp_enabled()
        assert switches.math_sdp_enabled()
    assert switches.flash_sdp_enabled() and switches.cudnn_sdp_enabled()
    for given in ("math", [1]):
        with pytest.raises(AssertionError, match="sdpa_kernel"), sdpa_kernel(given):
            pass
    for given in (SDPBackend.CUDNN_ATTENTION, []):
        with pytest.raises(RuntimeError, match="runs on the cpu"), sdpa_kernel(given):
            pass


@pytest.mark.parametrize("sizes", [(5, 7), (6, 6), (300, 310)])
@pytest.mark.parametrize("make, shift", [(bias.causal_upper_left, 0), (bias.causal_lower_right, 1)])
def test_a_causal_rule_gives_what_its_mask_does(sizes, make, shift):
    rule = make(*sizes)
    seen = np.tri(*sizes, k=shift * (sizes[1] - sizes[0]), dtype=bool)
    assert np.array_equal(rule._materialize().numpy(), seen)
    q, k = tg.tensor(drawn(2, 3, sizes[0], 4)), tg.tensor(drawn(2, 3, sizes[1], 4, seed=1))
    assert tg.allclose(attention(q, k, k, rule), by_hand(q, k, k, tg.tensor(seen)))
    assert repr(rule) == repr(rule._materialize()) and rule.dtype == tg.float32


def test_a_causal_rule_is_no_mask_for_anything_else():
    rule, x = bias.causal_upper_left(3, 3), tg.ones(1, 1, 3, 2)
    with pytest.raises(NotImplementedError, match=r"takes no rule for a mask.*_materialize"):
        rule + 1
    with pytest.raises(ValueError, match="leave is_causal out"):
        attention(x, x, x, rule, is_causal=True)
    with pytest.raises(AssertionError, match="seq_len_kv"):
        bias.causal_lower_right(3)
    with pytest.raises(TypeError, match="integers"):
        bias.causal_lower_right(3.0, 2)
    with pytest.warns(UserWarning, match="the first queries see nothing"):
        bias.causal_lower_right(4, 3)


@pytest.mark.parametrize("name", MODS)
@pytest.mark.parametrize("block", [128, (64, 32)])
def test_blocks_are_those_of_the_mask(name, block):
    mask = flex.create_block_mask(MODS[name], 1, 2, 300, 260, BLOCK_SIZE=block)
    seen = flex.create_mask(MODS[name], 1, 2, 300, 260)
    high, wide = flex.BlockMask.from_kv_blocks(*[getattr(mask, p) for p in PARTS[:4]], block).BLOCK_SIZE
    for (b, h, i, j), listed in np.ndenumerate(mask.to_dense().numpy()):
        part = seen[b, h, i * high : i * high + high, j * wide : j * wide + wide]
        assert listed == part.any(), (b, h, i, j)
    assert mask.shape == (1, 2, 300, 260) and mask.numel() == 156000
    assert mask[0, 1].shape == (1, 1, 300, 260) and tg.equal(mask[:, 1:].to_dense(), mask.to_dense()[:, 1:])
    assert f"sparsity={mask.sparsity():.2f}%" in str(mask) and "kv_indices" in repr(mask)


@pytest.fixture
def _functorch_as_it_was():
    """PyTorch's functions import it, and other tests ask whether it is there."""
    there = "functorch" in sys.modules
    yield
    if not there:
        sys.modules.pop("functorch", None)


@pytest.mark.usefixtures("_functorch_as_it_was")
@pytest.mark.parametrize("name", MODS)
@pytest.mark.parametrize("heads", [None, 2])
def test_blocks_agree_with_pytorch_s(name, heads):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    theirs = importlib.import_module("torch.nn.attention.flex_attention")
    mask = flex.create_block_mask(MODS[name], 1, heads, 300, 260, BLOCK_SIZE=(64, 128))
    want = theirs.create_block_mask(MODS[name], 1, heads, 300, 260, device="cpu", BLOCK_SIZE=(64, 128))
    for part in PARTS:
        got, expected = getattr(mask, part), getattr(want, part)
        assert got.tolist() == expected.tolist() and str(got.dtype) == str(expected.dtype), part
    assert mask.sparsity() == want.sparsity() and mask.shape == want.shape
    q, k = drawn(2, 2, 300, 8).astype(np.float32), drawn(2, 2, 260, 8, seed=1).astype(np.float32)
    call = {"scale": 0.3, "return_lse": True}
    got = flex.flex_attention(*map(tg.tensor, (q, k, k)), lambda s, b, h, i, j: s + (i - j) / 64, mask, **call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it is slow
        expected = theirs.flex_attention(
            *map(torch.from_numpy, (q, k, k)), lambda s, b, h, i, j: s + (i - j) / 64, want, **call
        )
    for a, b in zip(got, expected):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def test_functions_change_scores_and_what_they_hold_gets_a_gradient():
    shapes = (2, 4, 30, 8), (2, 2, 26, 8), (2, 2, 26, 5), (4, 30, 26)
    given = [tg.tensor(drawn(*s, seed=i), requires_grad=True) for i, s in enumerate(shapes)]
    q, k, v, more = given
    mask = flex.create_block_mask(flex.and_masks(MODS["causal"], lambda b, h, q, k: q > 2), None, None, 30, 26)
    got = flex.flex_attention(q, k, v, lambda s, b, h, i, j: s + more[h][i, j], mask, enable_gqa=True)
    seen = tg.ones(30, 26, dtype=tg.bool).tril() & (tg.arange(30) > 2).unsqueeze(1)
    want = by_hand(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), seen, more)
    assert tg.allclose(got, want) and not got[:, :, :3].any()
    seed = tg.tensor(drawn(*got.shape, seed=9))
    for a, b in zip(tg.autograd.grad(got, given, seed), tg.autograd.grad(want, given, seed)):
        assert tg.allclose(a, b)


def test_masks_are_joined_and_more_is_returned():
    either = flex.or_masks(MODS["causal"], lambda b, h, q, k: k == 3)
    assert flex.create_mask(either, None, None, 4, 5)[0, 0].tolist() == [
        [j <= i or j == 3 for j in range(5)] for i in range(4)
    ]
    hides = flex.create_mask(lambda s, b, h, q, k: tg.where(k > q, -np.inf, s), None, None, 4, 5)
    assert hides.tolist() == flex.create_mask(MODS["causal"], None, None, 4, 5).tolist()
    x = tg.tensor(drawn(1, 1, 6, 4))
    out, more = flex.flex_attention(x, x, x, return_aux=flex.AuxRequest(lse=True, max_scores=True))
    scores = x @ x.mT / 2
    assert tg.allclose(more.lse, scores.logsumexp(-1)) and tg.allclose(out, scores.softmax(-1) @ x)
    assert tg.allclose(more.max_scores, scores.amax(-1))
    with pytest.raises(RuntimeError, match="callable"):
        flex.or_masks(3)


def test_what_does_not_fit_is_refused_in_words():
    x, mask = tg.ones(1, 2, 6, 4), flex.create_block_mask(MODS["causal"], None, None, 5, 6)
    for error, text, call in (
        (NotImplementedError, "query must have 4 dimensions", lambda: flex.flex_attention(x[0], x, x)),
        (ValueError, "same dtype", lambda: flex.flex_attention(x, x.double(), x)),
        (ValueError, "Hq=2 and Hkv=1.*enable_gqa", lambda: flex.flex_attention(x, x[:, :1], x[:, :1])),
        (ValueError, "q_len=6 and kv_len=6", lambda: flex.flex_attention(x, x, x, block_mask=mask)),
        (ValueError, "not both", lambda: flex.flex_attention(x, x, x, return_lse=True, return_aux=flex.AuxRequest())),
        (ValueError, "as many features", lambda: flex.flex_attention(x, x[..., :3], x)),
        (ValueError, "same batch size", lambda: flex.flex_attention(x.repeat(2, 1, 1, 1), x, x)),
        (RuntimeError, "sliced BlockMask", lambda: flex.flex_attention(x[:, :, :5], x, x, block_mask=mask[:, 0])),
        (AssertionError, "4 arguments", lambda: flex.create_mask(lambda a, b, c: a, None, None, 5, 6)),
        (AssertionError, "four arguments", lambda: flex.create_block_mask(lambda b: b, None, None, 5, 6)),
        (RuntimeError, "at least 2 dimensions", lambda: flex.BlockMask.from_kv_blocks(tg.ones(1), tg.ones(1))),
    ):
        with pytest.raises(error, match=text):
            call()


def test_masks_are_merged_for_each_head():
    layer, query = tg.nn.MultiheadAttention(4, 2), tg.zeros(3, 5, 4)
    padding, square = tg.zeros(3, 5), tg.arange(25.0).view(5, 5)
    padding[1, 2] = 7.0
    assert layer.merge_masks(None, None, query) == (None, None)
    assert layer.merge_masks(None, padding, query)[0] is padding
    merged, kind = layer.merge_masks(square, padding, query)
    assert kind == 2 and tg.equal(merged, (square + padding.view(3, 1, 1, 5)).expand(3, 2, 5, 5))
    each = tg.randn(6, 5, 5, generator=tg.Generator().manual_seed(0))
    assert tg.equal(layer.merge_masks(each, None, query)[0], each.view(3, 2, 5, 5))
