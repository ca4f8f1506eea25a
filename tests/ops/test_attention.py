"""Attention of long sequences by blocks of rows: beside NumPy, in any layout, and each row with the same bits.

Dropout, the gradients of masks and second derivatives are those of the whole matrix, which never exists.
"""

import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tinygrad_ext as tg
from tinygrad_ext.ops.attention_step import _reference, _reference_back, _reference_mask
from tinygrad_ext.ops.fused import fused

attention = tg.nn.functional.scaled_dot_product_attention

sizes = st.sampled_from([1, 2, 5, 6, 7, 13, 49, 96, 255, 257, 600])
few = st.sampled_from([0, 1, 3, 16, 33])


def drawn(rng, *shape, dtype=np.float32, turned=False):
    """Numbers whose last dimensions lie in memory the other way round if turned."""
    x = rng.standard_normal(shape).astype(dtype)
    t = tg.tensor(x)
    return x, (t.transpose(-1, -2).contiguous().transpose(-1, -2) if turned else t)


@given(
    sizes, sizes, few, few, st.booleans(), st.sampled_from([0, 0.3, 1]),
    st.sampled_from(["none", "bool", "float", "row", "blind"]),
    st.lists(st.booleans(), min_size=3, max_size=3), st.sampled_from([np.float32, np.float64]), st.integers(0, 99),
)  # fmt: skip
def test_blocks_of_rows_agree_with_numpy(rows, keys, depth, width, is_causal, p, mask, turned, dtype, seed):
    rng = np.random.default_rng(seed)
    q, k, v = (
        drawn(rng, *shape, dtype=dtype, turned=t)
        for shape, t in zip(((2, 1, rows, depth), (3, keys, depth), (1, 1, keys, width)), turned)
    )
    m = {
        "none": None,
        "bool": rng.random((3, rows, keys)) > 0.4,
        "float": rng.standard_normal((2, 1, rows, keys)).astype(dtype),
        "row": rng.random((1, keys)) > 0.2,
        "blind": np.where(rng.random((rows, 1)) > 0.5, 0, -np.inf).astype(dtype),
    }[mask]
    kept = fused._attention_kept(q[1], k[1], p).expand(2, 3, rows, -1) if p else None
    bits, given_mask = None if kept is None else kept.numpy(), None if m is None else tg.tensor(m)
    got = fused._attention_step(q[1], k[1], v[1], given_mask, is_causal, 0.5, kept, p).numpy()
    want = _reference(q[0].astype(np.float64), k[0], v[0], m, is_causal, 0.5, bits, p)
    assert got.dtype == dtype and got.shape == (2, 3, rows, width)
    np.testing.assert_allclose(got, want, atol=1e-5 if dtype is np.float32 else 1e-13, rtol=1e-5)
    g, given_grad = drawn(rng, 2, 3, rows, width, dtype=dtype, turned=turned[0])
    args = q[1], k[1], v[1], given_mask, is_causal, 0.5, given_grad, kept, p
    wanted = q[0].astype(np.float64), k[0], v[0], m, is_causal, 0.5, g, bits, p
    found = [*zip(fused._attention_step_backward(*args), _reference_back(*wanted))]
    if m is not None and m.dtype == dtype:
        found.append((fused._attention_mask_backward(*args), _reference_mask(*wanted)))
    for got, want in found:
        want = np.broadcast_to(want, got.shape)
        largest = max(1, np.abs(want).max(initial=0))
        np.testing.assert_allclose(
            got.numpy(), want, atol=(3e-5 if dtype is np.float32 else 1e-12) * largest, rtol=1e-5
        )


def test_a_row_has_the_same_bits_alone_and_with_any_number_of_threads():
    q, k, v = tg.randn(3, 100, 24), tg.randn(3, 700, 24), tg.randn(3, 700, 40)
    whole = fused._attention_step(q, k, v, None, False, 0.3)
    for first, last in ((0, 1), (41, 60), (99, 100)):
        assert tg.equal(whole[:, first:last], fused._attention_step(q[:, first:last], k, v, None, False, 0.3))
    threads, grad, first = tg.get_num_threads(), tg.randn(3, 100, 40), None
    masks = tg.randn(3, 100, 700), tg.randn(100, 700), tg.randn(1, 700), tg.randn(3, 100, 1)
    try:
        for n in (1, 2, 3):
            tg.set_num_threads(n)
            assert tg.equal(whole, fused._attention_step(q, k, v, None, False, 0.3))
            back = fused._attention_step_backward(q, k, v, None, True, 0.3, grad)
            back = *back, *[fused._attention_mask_backward(q, k, v, m, False, 0.3, grad) for m in masks]
            first = first or back
            assert all(tg.equal(a, b) for a, b in zip(first, back))
    finally:
        tg.set_num_threads(threads)


def test_what_does_not_fit_is_refused_in_words():
    x = tg.ones(2, 300, 4)
    for args, text in (
        ((x, tg.ones(2, 300, 5), x), r"as many columns: got query \[2, 300, 4\], key \[2, 300, 5\]"),
        ((x, x, tg.ones(2, 301, 4)), "key and value must have as many rows"),
        ((x, tg.ones(3, 300, 4), x), "the leading dimensions must be equal, or 1"),
        ((x, x, x, tg.ones(7, 300)), r"attn_mask has shape \[7, 300\], and the scores have \[2, 300, 300\]"),
    ):
        with pytest.raises(RuntimeError, match=text):
            attention(*args)
    kept, grad = tg.zeros(300, 38, dtype=tg.uint8), tg.ones(2, 300, 4)
    for more in (kept[:, :37], kept[:7], kept.to(tg.int32), kept.expand(3, 300, 38), kept[:, :1]):
        with pytest.raises(RuntimeError, match=r"must be torch.uint8 of shape \[2, 300, 38\], got"):
            fused._attention_step(x, x, x, None, False, 1.0, more, 0.5)
        with pytest.raises(RuntimeError, match=r"must be torch.uint8 of shape \[2, 300, 38\], got"):
            fused._attention_step_backward(x, x, x, None, False, 1.0, grad, more, 0.5)
    with pytest.raises(NotImplementedError, match="has a gradient of masks of float32 or float64.*got Bool"):
        fused._attention_mask_backward(x, x, x, tg.ones(300, 300, dtype=tg.bool), False, 1.0, grad)
    refused = (x[0, 0], x, 0.5), (x, tg.ones(3, 2, 4), 0.5), (x, x, 1.5)
    for (q, k, p), text in zip(refused, ("two dimensions at least", "must be equal, or 1", "p=-0.5"), strict=True):
        with pytest.raises(RuntimeError, match=text):
            fused._attention_kept(q, k, p)


def derivatives(q, k, v, m, p, is_causal):
    """The result, its gradients and the gradients of these; what the next draw from the generator is."""
    tg.manual_seed(5)
    inputs = [t for t in (q, k, v, m) if t is not None and t.requires_grad]
    result = attention(q, k, v, m, p, is_causal)
    first = tg.autograd.grad(result, inputs, result.detach().cos(), create_graph=True)
    second = tg.autograd.grad(sum((g * g.detach().sin()).sum() for g in first), inputs)
    return [result, *first, *second, tg.rand(1)]


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("mask", [None, "causal", (1, 2, 600, 310), (600, 310), (310,), "bool"])
def test_the_matrix_of_scores_never_exists(monkeypatch, mask, p):
    generator = tg.Generator().manual_seed(1)
    draw = lambda *shape: tg.randn(*shape, dtype=tg.float64, generator=generator).requires_grad_()
    q, k, v = draw(4, 2, 600, 4), draw(1, 2, 310, 4), draw(4, 1, 310, 3)
    m = draw(*mask) if isinstance(mask, tuple) else None
    if mask == "bool":
        m = tg.rand(600, 310, generator=generator) > 0.4
    attends, rows = (sys.modules["tinygrad_ext.ops." + name] for name in ("attention", "attention_rows"))
    monkeypatch.setattr(rows, "_SCORES", 20_000)
    tg.reset_peak_memory_stats()
    before = tg.memory_stats()["allocated"]
    by_rows = derivatives(q, k, v, m, p, mask == "causal")
    of_mask = 12 * m.nbytes if isinstance(mask, tuple) and m.dim() > 1 else 0  # gradients, their factors and sums
    assert tg.memory_stats()["peak"] - before < 8 * 600 * 310 * 8 / 2 + of_mask  # half of one matrix
    monkeypatch.setattr(attends, "_LONG", 1 << 40)
    monkeypatch.setattr(attends, "_LONG_CAUSAL", 1 << 40)
    for a, b in zip(by_rows, derivatives(q, k, v, m, p, mask == "causal"), strict=True):
        assert tg.allclose(a, b, atol=1e-10)


def test_dropout_of_a_long_sequence_draws_for_each_sample():
    q = tg.randn(300, 4)
    call = lambda x: attention(x, q, q, dropout_p=0.5)
    many = tg.func.vmap(call, randomness="different")(q.expand(3, 300, 4))
    assert not tg.equal(many[0], many[1])
    tg.manual_seed(3)
    same = tg.func.vmap(call, randomness="same")(q.expand(3, 300, 4))
    tg.manual_seed(3)
    assert tg.equal(same[0], same[1]) and tg.allclose(same[0], call(q), atol=1e-6)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        tg.func.vmap(call)(q.expand(3, 300, 4))
    half = attention(*[q.to(tg.bfloat16)] * 3, dropout_p=0.5)
    assert half.dtype == tg.bfloat16 and not half.isnan().any()


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
@pytest.mark.parametrize("length", [5, 300])
def test_a_mask_of_float32_is_added_in_float32_to_scores_of_halves(dtype, length):
    """-1e9 is no number of float16; keys that have it weigh nothing, and alone they weigh the same."""
    query, key, value = (drawn(np.random.default_rng(i), 1, 2, length, 8)[1].to(dtype) for i in range(3))
    mask = tg.zeros(length, length)
    mask[:, length // 2 :] = -1e9
    mask[0] = -1e9
    got = attention(query.requires_grad_(), key, value, mask)
    want = attention(query.float(), key.float(), value.float(), mask)
    assert got.dtype == dtype and tg.equal(got, want.to(dtype))
    got.sum().backward()
    assert query.grad.dtype == dtype and query.grad.isfinite().all()
