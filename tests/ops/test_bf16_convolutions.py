"""Convolutions of bfloat16: as products of the processor's own instruction where it has one, in float32 elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from operands import drawn, guarded

import tinygrad_ext as tg

F = tg.nn.functional
# images, channels, size, outputs, kernel; stride, padding, dilation, groups
SHAPES = [
    ((2, 16, (14, 14), 32, (3, 3)), (1, 1, 1, 1)),
    ((1, 64, (7, 7), 72, (3, 3)), (1, 1, 1, 1)),
    ((3, 24, (15, 17), 40, (3, 2)), (2, 1, 1, 2)),
    ((2, 33, (20, 20), 41, (1, 1)), (1, 0, 1, 1)),
    ((2, 32, (28, 27), 48, (1, 1)), (2, 0, 1, 1)),
    ((1, 3, (40, 40), 20, (7, 7)), (2, 3, 1, 1)),
    ((2, 16, (20, 20), 17, (3, 3)), (1, 2, 2, 1)),
    ((2, 17, (20, 21), 16, (3, 3)), (3, 0, 1, 1)),
    ((2, 32, (16, 16), 32, (2, 2)), (2, 0, 1, 1)),
    ((3, 128, (9, 9), 144, (3, 3)), (1, 1, 1, 1)),
    ((2, 16, (33, 40), 16, (3, 4)), ((2, 1), (0, 1), (1, 2), 1)),
    ((2, 16, (24, 24), 16, (6, 7)), (1, 3, 1, 1)),
    ((40, 16, (5, 1), 64, (3, 1)), (1, (1, 0), 1, 1)),
    ((1, 520, (6, 6), 300, (3, 3)), (1, 0, 1, 1)),
    ((1, 16, (2, 2), 64, (5, 5)), (1, 2, 1, 1)),
    ((1, 36, (3, 1100), 9, (1, 3)), (1, 0, 1, 1)),
    ((4, 24, (28, 28), 20, (3, 3)), (1, 1, 1, 4)),
]
each_shape = pytest.mark.parametrize("sizes, options", SHAPES, ids=str)


def operands(sizes):
    images, channels, size, outputs, kernel = sizes
    return channels, [
        drawn(images, channels, *size, dtype=tg.bfloat16),
        drawn(outputs, channels, *kernel, dtype=tg.bfloat16, seed=1),
        drawn(outputs, dtype=tg.bfloat16, seed=2),
    ]


def three_maps(sizes, options, change=lambda t: t, dtype=tg.bfloat16):
    """Result, and the gradients of input, weight and bias for a drawn gradient."""
    channels, (x, w, b) = operands(sizes)
    leaves = [change(t.to(dtype)).requires_grad_() for t in (x, w[:, : channels // options[-1]], b)]
    out = F.conv2d(*leaves, *options)
    return [out, *tg.autograd.grad(out, leaves, change(drawn(*out.shape, dtype=tg.bfloat16, seed=3).to(dtype)))]


def bits(tensors):
    return [t.detach().contiguous().view(tg.int16) for t in tensors]


@each_shape
def test_the_three_maps_round_once(sizes, options):
    wide = three_maps(sizes, options, dtype=tg.float64)
    for got, exact in zip(three_maps(sizes, options), wide):
        exact = exact.detach().numpy()
        error = np.abs(got.detach().double().numpy() - exact)
        assert got.dtype is tg.bfloat16
        assert (error <= 2.0**-8 * np.abs(exact) + 2e-5 * np.sqrt((exact**2).mean())).all()


@each_shape
def test_bits_depend_neither_on_layout_nor_on_threads_nor_on_the_batch(sizes, options):
    def apart(t):
        room = tg.full((2 * t.shape[0] + 1, *t.shape[1:], 3), float("nan"), dtype=t.dtype)
        return room[1::2, ..., 1].copy_(t)

    def channels_last(t):
        return t.to(memory_format=tg.channels_last) if t.dim() == 4 else t

    want = bits(three_maps(sizes, options))
    for change in (apart, channels_last):
        assert all(tg.equal(a, b) for a, b in zip(bits(three_maps(sizes, options, change)), want))
    threads = tg.get_num_threads()
    try:
        for count in (1, 2, 3):
            tg.set_num_threads(count)
            assert all(tg.equal(a, b) for a, b in zip(bits(three_maps(sizes, options)), want))
    finally:
        tg.set_num_threads(threads)


def test_images_of_a_batch_give_what_they_give_alone():
    channels, (x, w, b) = operands(SHAPES[0][0])
    x = drawn(5, channels, 14, 14, dtype=tg.bfloat16)
    whole = F.conv2d(x, w, b, padding=1)
    assert tg.equal(whole, tg.stack([F.conv2d(image, w, b, padding=1) for image in x]))


def test_a_signal_is_an_image_of_one_row():
    x, w = drawn(3, 24, 300, dtype=tg.bfloat16), drawn(40, 24, 5, dtype=tg.bfloat16, seed=1)
    assert tg.equal(F.conv1d(x, w, None, 2, 2), F.conv2d(x[:, :, None], w[:, :, None], None, (1, 2), (0, 2))[:, :, 0])


def at_the_edge(t):
    return tg.from_numpy(guarded(t.contiguous().view(tg.int16).numpy())).view(tg.bfloat16)


@each_shape
def test_nothing_is_read_outside_of_the_operands(sizes, options):
    want = bits(three_maps(sizes, options))
    assert all(tg.equal(a, b) for a, b in zip(bits(three_maps(sizes, options, at_the_edge)), want))


def test_infinities_and_nan_reach_their_windows_only():
    _, (x, w, b) = operands(SHAPES[0][0])
    x[1, 3, 5, 6], x[0, 2, 0, 0] = float("inf"), float("nan")
    odd = ~tg.isfinite(F.conv2d(x, w[:, :16], b, padding=1))
    assert odd[1, :, 4:7, 5:8].all()
    assert odd[0, :, :2, :2].all()
    assert int(odd.sum()) == 32 * (9 + 4)
    assert int(tg.isnan(F.conv2d(x[:1], w, b, padding=1)).sum()) == 32 * 4


def test_large_sums_are_infinite_and_bias_is_added_before_rounding():
    x, w = tg.full((1, 64, 8, 8), 2.0**100, dtype=tg.bfloat16), tg.full((64, 64, 1, 1), 2.0**30, dtype=tg.bfloat16)
    assert F.conv2d(x, w).isinf().all()
    x, w = x * 0 + 1, w * 0 + 1
    w[:, 0] = 1.25  # the sum is 64.25, halfway between two
    assert (F.conv2d(x, w) == 64).all()
    assert (F.conv2d(x, w, tg.full((64,), 0.25, dtype=tg.bfloat16)) == 64.5).all()


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
def test_refusals_of_halves_are_those_of_floats(dtype):
    x, w = tg.zeros(1, 3, 8, 8, dtype=dtype), tg.zeros(4, 2, 3, 3, dtype=dtype)
    with pytest.raises(RuntimeError, match="expected input.* to have 2 channels, but got 3"):
        F.conv2d(x, w)
    with pytest.raises(RuntimeError, match="should be the same"):
        F.conv2d(x[:, :2], w, tg.zeros(4))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater"):
        F.conv2d(x[:, :2, :2], w)
    assert F.conv2d(x[:, :2].to("meta"), w.to("meta")).dtype is dtype


@pytest.mark.parametrize("level", ["avx512", "avx2"])
def test_less_able_processors_are_as_exact(level):
    """With a level named tiles are left out, and with them what a machine that has them would test alone."""
    code = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[1] / "helpers")!r}]
import test_bf16_convolutions as own
for shape in own.SHAPES:
    own.test_the_three_maps_round_once(*shape)
own.test_infinities_and_nan_reach_their_windows_only()
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"TINYGRAD_EXT_ISA": level})
