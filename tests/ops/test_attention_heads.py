"""Attention of small heads as one step: the same bits in any layout and on any number of threads."""

import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext.func import jvp
from tinygrad_ext.ops.fused import fused

attention = tg.nn.functional.scaled_dot_product_attention
PARTS = sys.modules["tinygrad_ext.ops.attention"]
SHAPES = [(2, 3, 64, 64, 16), (1, 2, 7, 19, 5), (8, 8, 40, 256, 32), (3, 1, 1, 1, 1), (2, 2, 250, 33, 64)]


def drawn(shape, dtype=tg.float32):
    batch, heads, rows, keys, depth = shape
    tg.manual_seed(sum(shape))
    q = tg.randn(batch, heads, rows, depth, dtype=dtype)
    k, v = (tg.randn(batch, heads, keys, depth, dtype=dtype) for _ in range(2))
    return q, k, v, tg.randn(batch, heads, rows, depth, dtype=dtype)


def both(q, k, v, grad):
    q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
    result = attention(q, k, v)
    return result.detach(), *tg.autograd.grad(result, (q, k, v), grad)


LAYOUTS = {
    "heads behind rows": lambda t: t.transpose(1, 2).contiguous().transpose(1, 2),
    "turned": lambda t: t.mT.contiguous().mT,
    "cut": lambda t: tg.cat([t, t], -1).repeat_interleave(2, -1)[..., : 2 * t.shape[-1] : 2],
    "shifted": lambda t: tg.cat([t[:1, :1, :1, 0].flatten(), t.flatten()])[1:].view(t.shape),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
def test_any_layout_and_number_of_threads_has_the_same_bits(shape, dtype):
    given = drawn(shape, dtype)
    want = both(*given)
    before = tg.get_num_threads()
    try:
        for threads in (1, 2, 5):
            tg.set_num_threads(threads)
            for name, laid in LAYOUTS.items():
                got = both(*(laid(t) for t in given))
                assert all(a.equal(b) for a, b in zip(got, want)), (threads, name)
    finally:
        tg.set_num_threads(before)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_as_exact_as_one_op_after_the_other(shape, monkeypatch):
    given = drawn(shape)
    exact = both(*(t.double() for t in given))
    got = both(*given)
    monkeypatch.setattr(PARTS, "_FEW", 0)
    apart = both(*given)
    for a, b, x in zip(got, apart, exact):
        scale = x.abs().max().clamp_min(1e-30)  # of one key the weight is 1, whose gradients are zeros
        assert (a - x).abs().max() / scale < 1.5 * (b - x).abs().max() / scale + 1e-7


def test_results_lie_as_what_they_come_from():
    joint = tg.randn(2, 10, 3, 4, 8)
    q, k, v = (part.transpose(1, 2).requires_grad_() for part in joint.unbind(2))
    result = attention(q, k, v)
    assert result.transpose(1, 2).is_contiguous()
    assert all(g.transpose(1, 2).is_contiguous() for g in tg.autograd.grad(result.sum(), (q, k, v)))


def test_what_is_not_finite_is_not_hidden():
    q, k, v, _ = drawn((1, 1, 4, 4, 2))
    v[0, 0, 1, 0] = float("nan")
    k[0, 0, 2, 1] = float("inf")
    assert attention(q, k, v).isnan().any()
    got, weights = fused._attention_heads(q, k, v, 1.0)
    assert tg.equal(got.isnan(), (weights @ v).isnan())


def test_derivatives_go_through_the_weights():
    q, k, v, grad = drawn((1, 2, 3, 4, 2), tg.float64)
    inputs = [t.requires_grad_() for t in (q, k, v)]
    step = lambda *given: fused._attention_heads(*given, 0.7)
    assert tg.autograd.gradcheck(step, inputs)
    assert tg.autograd.gradgradcheck(step, inputs)
    assert tg.autograd.gradgradcheck(attention, inputs, [grad.requires_grad_()])


@pytest.mark.parametrize("moved", [(0,), (1,), (2,), (0, 2), (0, 1, 2)], ids=str)
def test_tangents_are_those_of_one_op_after_the_other(moved, monkeypatch):
    given = drawn((1, 2, 5, 4, 3), tg.float64)[:3]
    tangents = [tg.randn_like(given[i]) for i in moved]

    def f(*some):
        inputs = list(given)
        for i, t in zip(moved, some):
            inputs[i] = t
        return attention(*inputs)

    got = jvp(f, tuple(given[i] for i in moved), tuple(tangents))
    monkeypatch.setattr(PARTS, "_FEW", 0)
    want = jvp(f, tuple(given[i] for i in moved), tuple(tangents))
    assert all(tg.allclose(a, b) for a, b in zip(got, want))
