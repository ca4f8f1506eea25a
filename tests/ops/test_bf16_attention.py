"""Attention of bfloat16: by products of the processor where it has them, in float32 elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from operands import drawn, guarded

import tinygrad_ext as tg

F = tg.nn.functional
# batch and heads, queries, keys, width of queries, of values
SIZES = [
    ((2, 3), 100, 100, 64, 64),
    ((1, 2), 131, 70, 33, 33),
    ((1, 1), 257, 600, 16, 16),
    ((1, 4), 70, 2500, 24, 24),
    ((2, 1), 50, 51, 130, 130),
    ((1, 2), 70, 131, 40, 24),
    ((3,), 64, 80, 32, 32),
]
each_size = pytest.mark.parametrize("sizes", SIZES, ids=str)


def operands(sizes):
    batch, rows, keys, depth, width = sizes
    shapes = (*batch, rows, depth), (*batch, keys, depth), (*batch, keys, width), (*batch, rows, width)
    return [drawn(*shape, dtype=tg.bfloat16, seed=i) for i, shape in enumerate(shapes)]


def with_gradients(sizes, change=lambda t: t, dtype=tg.bfloat16, **options):
    *inputs, grad = [change(t.to(dtype)) for t in operands(sizes)]
    leaves = [t.requires_grad_() for t in inputs]
    if "attn_mask" in options and options["attn_mask"].is_floating_point():
        options["attn_mask"] = options["attn_mask"].to(dtype)
    out = F.scaled_dot_product_attention(*leaves, **options)
    return [out, *tg.autograd.grad(out, leaves, grad)]


def masks(rows, keys):
    seen = tg.tensor(np.random.default_rng(9).random((rows, keys)) > 0.3)
    seen[3] = False
    yield {}
    yield {"is_causal": True}
    yield {"attn_mask": seen}
    yield {"attn_mask": drawn(rows, keys, dtype=tg.bfloat16, seed=5).masked_fill(~seen, -float("inf"))}


@each_size
def test_weights_are_rounded_once_more_at_most(sizes):
    for options in masks(*sizes[1:3]):
        for got, exact in zip(with_gradients(sizes, **options), with_gradients(sizes, dtype=tg.float64, **options)):
            exact = exact.detach().numpy()
            error = got.detach().double().numpy() - exact
            assert got.dtype is tg.bfloat16
            assert np.sqrt((error**2).mean()) <= 2.0**-8.5 * np.sqrt((exact**2).mean())
            assert np.abs(error).max() <= 2.0**-6 * np.abs(exact).max()


@each_size
def test_errors_are_those_of_pytorch(sizes):
    torch = pytest.importorskip("torch")
    for options in masks(*sizes[1:3]):
        *inputs, _ = [torch.from_numpy(t.float().numpy()).to(torch.bfloat16) for t in operands(sizes)]
        other = {k: torch.from_numpy(v.float().numpy()).to(torch.bfloat16) for k, v in options.items() if v is not True}
        other = {k: v.bool() if options[k].dtype is tg.bool else v for k, v in other.items()}
        if "is_causal" in options:
            other["is_causal"] = True
        theirs = torch.nn.functional.scaled_dot_product_attention(*inputs, **other).double().numpy()
        mine, exact = (with_gradients(sizes, dtype=dtype, **options)[0] for dtype in (tg.bfloat16, tg.float64))
        exact = exact.detach().numpy()
        seen = np.isfinite(theirs)
        own = np.where(seen, mine.detach().double().numpy() - exact, 0)
        assert np.sqrt((own**2).mean()) <= 1.05 * np.sqrt((np.where(seen, theirs - exact, 0) ** 2).mean())


def bits(tensors):
    return [t.detach().contiguous().view(tg.int16) for t in tensors]


@each_size
def test_bits_depend_neither_on_layout_nor_on_threads(sizes):
    def apart(t):
        room = tg.full((*t.shape[:-2], 2 * t.shape[-2], 3 * t.shape[-1]), float("nan"), dtype=t.dtype)
        return room[..., ::2, ::3].copy_(t)

    def heads_inside(t):
        return t.transpose(-2, -3).contiguous().transpose(-2, -3)

    def at_the_edge(t):
        return tg.from_numpy(guarded(t.contiguous().view(tg.int16).numpy())).view(tg.bfloat16)

    for options in ({}, {"is_causal": True}):
        want = bits(with_gradients(sizes, **options))
        for change in (apart, heads_inside, at_the_edge, lambda t: t.mT.contiguous().mT):
            assert all(tg.equal(a, b) for a, b in zip(bits(with_gradients(sizes, change, **options)), want))
        threads = tg.get_num_threads()
        try:
            for count in (1, 2, 3):
                tg.set_num_threads(count)
                assert all(tg.equal(a, b) for a, b in zip(bits(with_gradients(sizes, **options)), want))
        finally:
            tg.set_num_threads(threads)


def test_what_keys_come_later_says_nothing():
    q, k, v, _ = operands(SIZES[0])
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    k[:, :, 60:], v[:, :, 60:] = 3e38, 7
    assert tg.equal(F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, :, :48], whole[:, :, :48])


def test_infinities_and_nan_stay_in_their_row_or_column():
    q, k, v, _ = operands(SIZES[0])
    q[0, 1, 7, 3], v[1, 2, 5, 11] = float("nan"), float("inf")
    odd = ~tg.isfinite(F.scaled_dot_product_attention(q, k, v))
    assert odd[0, 1, 7].all() and odd[1, 2, :, 11].all()
    assert int(odd.sum()) == 64 + 100


def test_second_derivatives_and_tangents_are_those_of_floats():
    q, k, v, g = operands(((1, 1), 48, 50, 32, 32))

    def first(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    def twice(dtype):
        a, b, c = (t.to(dtype).detach().requires_grad_() for t in (q, k, v))
        grads = tg.autograd.grad(first(a, b, c), (a, b, c), g.to(dtype), create_graph=True)
        return tg.autograd.grad(sum((x * x.detach()).sum() for x in grads), (a, b, c))

    def moved(dtype):
        a, b, c = (t.to(dtype) for t in (q, k, v))
        return tg.func.jvp(first, (a, b, c), (b[..., :48, :], a[..., :1, :].expand(b.shape), c))

    for found, exact in ((twice(tg.bfloat16), twice(tg.float64)), (moved(tg.bfloat16), moved(tg.float64))):
        for x, y in zip(found, exact):
            error, y = x.double().numpy() - y.numpy(), y.numpy()
            assert x.dtype is tg.bfloat16
            assert np.sqrt((error**2).mean()) <= 2.0**-6 * np.sqrt((y**2).mean())


@pytest.mark.parametrize("level", ["avx512", "avx2"])
def test_less_able_processors_are_as_exact(level):
    """With a level named tiles are left out, and with them what a machine that has them would test alone."""
    code = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[1] / "helpers")!r}]
import test_bf16_attention as own
for sizes in own.SIZES:
    own.test_weights_are_rounded_once_more_at_most(sizes)
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"TINYGRAD_EXT_ISA": level})
