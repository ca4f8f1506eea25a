"""Attention of long sequences by blocks of rows: beside NumPy, in any layout, and each row with the same bits."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tinygrad_ext as tg
from tinygrad_ext.ops.attention_step import _reference, _reference_back
from tinygrad_ext.ops.fused import fused

sizes = st.sampled_from([1, 2, 5, 6, 7, 13, 49, 96, 255, 257, 600])
few = st.sampled_from([0, 1, 3, 16, 33])


def drawn(rng, *shape, dtype=np.float32, turned=False):
    """Numbers whose last dimensions lie in memory the other way round if turned."""
    x = rng.standard_normal(shape).astype(dtype)
    t = tg.tensor(x)
    return x, (t.transpose(-1, -2).contiguous().transpose(-1, -2) if turned else t)


@given(
    sizes, sizes, few, few, st.booleans(), st.sampled_from(["none", "bool", "float", "row", "blind"]),
    st.lists(st.booleans(), min_size=3, max_size=3), st.sampled_from([np.float32, np.float64]), st.integers(0, 99),
)  # fmt: skip
def test_blocks_of_rows_agree_with_numpy(rows, keys, depth, width, is_causal, mask, turned, dtype, seed):
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
    got = fused._attention_step(q[1], k[1], v[1], None if m is None else tg.tensor(m), is_causal, 0.5).numpy()
    want = _reference(q[0].astype(np.float64), k[0], v[0], m, is_causal, 0.5)
    assert got.dtype == dtype and got.shape == (2, 3, rows, width)
    np.testing.assert_allclose(got, want, atol=1e-5 if dtype is np.float32 else 1e-13, rtol=1e-5)
    g, given_grad = drawn(rng, 2, 3, rows, width, dtype=dtype, turned=turned[0])
    given_mask = None if m is None else tg.tensor(m)
    back = fused._attention_step_backward(q[1], k[1], v[1], given_mask, is_causal, 0.5, given_grad)
    for got, want in zip(back, _reference_back(q[0].astype(np.float64), k[0], v[0], m, is_causal, 0.5, g)):
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
    try:
        for n in (1, 2, 3):
            tg.set_num_threads(n)
            assert tg.equal(whole, fused._attention_step(q, k, v, None, False, 0.3))
            back = fused._attention_step_backward(q, k, v, None, True, 0.3, grad)
            first = first or back
            assert all(tg.equal(a, b) for a, b in zip(first, back))
    finally:
        tg.set_num_threads(threads)


def test_what_does_not_fit_is_refused_in_words():
    x = tg.ones(2, 300, 4)
    attention = tg.nn.functional.scaled_dot_product_attention
    for args, text in (
        ((x, tg.ones(2, 300, 5), x), r"as many columns: got query \[2, 300, 4\], key \[2, 300, 5\]"),
        ((x, x, tg.ones(2, 301, 4)), "key and value must have as many rows"),
        ((x, tg.ones(3, 300, 4), x), "the leading dimensions must be equal, or 1"),
        ((x, x, x, tg.ones(7, 300)), r"attn_mask has shape \[7, 300\], and the scores have \[2, 300, 300\]"),
    ):
        with pytest.raises(RuntimeError, match=text):
            attention(*args)
