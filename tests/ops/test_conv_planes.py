"""Convolutions with a channel a group whose taps lie row below row: tiles of seven rows read each line once."""

import os
import subprocess
import sys

import pytest
from operands import guarded

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F

SIZES = [(7, 7), (7, 3), (8, 16), (14, 14), (15, 17), (13, 1), (9, 40), (150, 33)]


def compare(size, kernel, padding, channels=19):
    """Forward and the gradient by the input of floats beside those of doubles, which have other loops."""
    tg.manual_seed(0)
    x, w, b = tg.randn(2, channels, *size), tg.randn(channels, 1, *kernel), tg.randn(channels)
    found = []
    for dtype in (tg.float32, tg.float64):
        a, c, d = (tg.from_numpy(guarded(t.to(dtype).numpy())) for t in (x, w, b))
        a.requires_grad_()
        y = F.conv2d(a, c, d, padding=padding, groups=channels)
        (slope,) = tg.autograd.grad(y, a, tg.cos(y.detach().double()).to(dtype))
        found.append((y.detach(), slope))
    for got, want in zip(*found):
        assert got.shape == want.shape
        assert float(abs(got.double() - want).max()) < 1e-4
    return found[0]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (7, 7), (3, 1), (5, 9), (7, 2), (3, 12)], ids=str)
@pytest.mark.parametrize("shift", [0, 1, -1])
def test_floats_equal_doubles(size, kernel, shift):
    padding = [max(k // 2 + shift, 0) for k in kernel]
    if any(n + 2 * p < k for n, p, k in zip(size, padding, kernel)):
        pytest.skip("no window fits")
    compare(size, kernel, padding)


@pytest.mark.parametrize("kernel", [3, 5, 7])
@pytest.mark.parametrize("size", [(7, 7), (14, 14), (9, 40)], ids=str)
def test_an_image_has_the_bits_of_itself_alone_on_any_number_of_threads(size, kernel):
    x, w = tg.randn(5, 64, *size), tg.randn(64, 1, kernel, kernel)
    whole = F.conv2d(x, w, padding=kernel // 2, groups=64)
    before = tg.get_num_threads()
    try:
        for threads in (1, 2):
            tg.set_num_threads(threads)
            assert tg.equal(F.conv2d(x, w, padding=kernel // 2, groups=64), whole)
    finally:
        tg.set_num_threads(before)
    for i in range(5):
        assert tg.equal(F.conv2d(x[i : i + 1], w, padding=kernel // 2, groups=64)[0], whole[i])
    some = F.conv2d(x[:, 3:20], w[3:20], padding=kernel // 2, groups=17)
    assert tg.equal(some, whole[:, 3:20])


@pytest.mark.parametrize("level", ["avx2", "base"])
def test_less_able_processors_compute_the_same(level):
    script = (
        "from test_conv_planes import SIZES, compare\n"
        "for size in SIZES:\n"
        "    for k in (3, 5, 7):\n"
        "        compare(size, (k, k), k // 2)\n"
    )
    here = os.path.dirname(__file__)
    paths = os.pathsep.join([here, *sys.path])
    environment = dict(os.environ, TINYGRAD_EXT_ISA=level, PYTHONPATH=paths)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
