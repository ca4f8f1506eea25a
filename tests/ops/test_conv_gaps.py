"""Convolutions of random shapes beside windows that are cut and multiplied: gaps between windows, taps in the padding.

Memory is soiled before each call, for what a kernel leaves unwritten looks right where memory happens to be zero.
"""

import random

import pytest

import tinygrad_ext as tg

F = tg.nn.functional
TOLERANCE = {tg.float32: 1e-5, tg.float64: 1e-12, tg.complex64: 1e-5, tg.bfloat16: 2e-2, tg.float16: 3e-3}


def by_windows(x, w, stride, padding, dilation, groups):
    dims = len(stride)
    x = F.pad(x, [p for p in reversed(padding) for _ in range(2)])
    for d, (k, s, step) in enumerate(zip(w.shape[2:], stride, dilation)):
        x = x.unfold(2 + d, (k - 1) * step + 1, s)[..., ::step]
    at, taps = "xyz"[:dims], "uvw"[:dims]
    y = tg.einsum(f"ngc{at}{taps},goc{taps}->ngo{at}", x.unflatten(1, (groups, -1)), w.unflatten(0, (groups, -1)))
    return y.flatten(1, 2)


def drawn(random):
    dims, groups = random.choice([1, 2, 2, 3]), random.choice([1, 1, 1, 2, 4])
    kernel, stride = ([random.choice([1, 1, 2, 3, 4]) for _ in range(dims)] for _ in range(2))
    dilation, padding = ([random.choice(few) for _ in range(dims)] for few in ((1, 1, 2), (0, 0, 1, 2)))
    size = [(k - 1) * d + 1 + random.randint(0, 3) - 2 * p for k, d, p in zip(kernel, dilation, padding)]
    if min(size) < 1:
        return drawn(random)
    channels, outputs = (groups * random.choice([1, 3, 8, 33, 64, 256]) for _ in range(2))
    return random.choice([1, 2, 8]), channels, outputs, size, kernel, stride, padding, dilation, groups


def soil(random):
    used = [tg.full((random.randint(1, 40_000),), float("nan")) for _ in range(6)]
    del used


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_convolutions_and_their_gradients_equal_cut_windows(dtype, seed):
    draw = random.Random(seed)
    tg.manual_seed(seed)
    wide = tg.complex128 if dtype.is_complex else tg.float64
    for _ in range(20):
        images, channels, outputs, size, kernel, *how, groups = drawn(draw)
        x = tg.randn(images, channels, *size).to(dtype).requires_grad_()
        w = tg.randn(outputs, channels // groups, *kernel).to(dtype).requires_grad_()
        soil(draw)
        y = getattr(F, f"conv{len(size)}d")(x, w, None, *how, groups)
        slope = tg.ones_like(y)
        soil(draw)
        got = y, *tg.autograd.grad(y, (x, w), slope)
        x2, w2 = (t.detach().to(wide).requires_grad_() for t in (x, w))
        y2 = by_windows(x2, w2, *how, groups)
        wanted = y2, *tg.autograd.grad(y2, (x2, w2), tg.ones_like(y2))
        for name, a, b in zip(("output", "input", "weight"), got, wanted):
            error = (a.to(wide) - b).abs().max() / b.abs().max().clamp(min=1)
            assert error <= TOLERANCE[dtype], (name, images, channels, outputs, size, kernel, how, groups)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("outputs", [32, 100, 192])
@pytest.mark.parametrize(
    ("size", "kernel", "stride"), [((7, 7), 3, 1), ((14, 14), 3, 1), ((28, 28), 3, 1), ((13, 29), 5, 2)]
)
def test_threads_that_share_the_outputs_of_one_image_change_no_bit(dtype, outputs, size, kernel, stride):
    threads, generator = tg.get_num_threads(), tg.Generator().manual_seed(outputs)
    shapes = (1, 48, *size), (outputs, 48, kernel, kernel), (outputs,)
    drawn = [tg.randn(shape, dtype=dtype, generator=generator) for shape in shapes]
    found = []
    try:
        for count in (1, 2, 3, 5):
            tg.set_num_threads(count)
            x = drawn[0].clone().requires_grad_()
            y = F.conv2d(x, *drawn[1:], stride=stride, padding=1)
            found.append((y.detach(), *tg.autograd.grad(y.sum(), x)))
    finally:
        tg.set_num_threads(threads)
    assert all(tg.equal(a, b) for other in found[1:] for a, b in zip(found[0], other))
    exact = F.conv2d(*(t.double() for t in drawn), stride=stride, padding=1)
    assert tg.allclose(found[0][0].double(), exact, rtol=1e-3, atol=1e-3)
