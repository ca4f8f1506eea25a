"""Single elements of several images in one product, and windows laid out behind each other: values and gradients."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F


def drawn(dtype, *shape):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def windows(x, kernel, stride):
    """(images, windows, elements of one) of images with two dimensions or three."""
    dims = x.ndim - 2
    found = np.lib.stride_tricks.sliding_window_view(x, (kernel,) * dims, tuple(range(2, x.ndim)))
    found = found[(slice(None), slice(None), *[slice(None, None, stride)] * dims)]
    places = tuple(range(2, 2 + dims))
    found = found.transpose(0, *places, 1, *range(2 + dims, 2 + 2 * dims))
    return found.reshape(x.shape[0], -1, x.shape[1] * kernel**dims)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("float64", 1e-12)])
@pytest.mark.parametrize(
    "images, channels, outputs, size, kernel, stride",
    [
        (6, 260, 256, (14, 14), 1, 1),
        (20, 256, 300, (7, 7), 1, 1),
        (3, 256, 256, (13, 14), 1, 2),
        (5, 300, 256, (2, 5, 5), 1, 1),
        (3, 256, 256, (3, 5, 5), 1, 2),
        (1, 256, 256, (7, 7), 1, 1),
        (3, 3, 64, (64, 48), 16, 16),
        (3, 8, 64, (31, 31), 4, 4),
        (2, 64, 64, (28, 30), 2, 2),
        (2, 64, 64, (28, 30), 2, 3),
        (2, 8, 64, (6, 9, 9), 3, 3),
    ],
)
def test_joined_images_equal_the_definition(dtype, tolerance, images, channels, outputs, size, kernel, stride):
    dims = len(size)
    x, w = drawn(dtype, images, channels, *size), drawn(dtype, outputs, channels, *[kernel] * dims) / 16
    bias = drawn(dtype, outputs)
    conv = getattr(F, f"conv{dims}d")
    a, b, c = (tg.from_numpy(t).requires_grad_() for t in (x, w, bias))
    rows, weights = windows(x.astype("float64"), kernel, stride), w.reshape(outputs, -1).astype("float64")
    want = np.einsum("iwk,ok->iow", rows, weights)
    plain, found = conv(a, b, stride=stride), conv(a, b, c, stride=stride)
    scale = tolerance * abs(want).max()
    assert abs(plain.detach().numpy().reshape(want.shape) - want).max() < scale
    assert abs(found.detach().numpy().reshape(want.shape) - want - bias[:, None]).max() < scale
    slope = drawn(dtype, *found.shape)
    by_x, by_w, by_c = tg.autograd.grad(found, (a, b, c), tg.from_numpy(slope))
    flat = slope.reshape(want.shape).astype("float64")
    of_w = np.einsum("iow,iwk->ok", flat, rows).reshape(w.shape)
    assert abs(by_w.numpy() - of_w).max() < tolerance * abs(of_w).max()
    # <grad, conv(d)> = <by_x, d> for any d, and elements that no window has get nothing
    moved = drawn(dtype, *x.shape)
    wanted = (np.einsum("iwk,ok->iow", windows(moved.astype("float64"), kernel, stride), weights) * flat).sum()
    assert abs((by_x.numpy().astype("float64") * moved).sum() - wanted) < 10 * tolerance * abs(flat).sum()
    assert abs(by_c.numpy() - flat.sum((0, 2))).max() < tolerance * abs(flat).sum()
    ones = tg.ones(x.shape, dtype=a.dtype).requires_grad_()
    (reached,) = tg.autograd.grad(conv(ones, tg.ones_like(b), stride=stride).sum(), ones)
    assert ((reached.numpy() == 0) <= (by_x.numpy() == 0)).all()


def test_joined_images_have_the_same_bits_in_every_layout_and_number_of_threads():
    x, w = tg.from_numpy(drawn("float32", 20, 256, 7, 7)), tg.from_numpy(drawn("float32", 256, 256, 1, 1))
    before, found = tg.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            tg.set_num_threads(threads)
            for t in (x, x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)):
                a, b = t.detach().requires_grad_(), w.detach().requires_grad_()
                y = F.conv2d(a, b)
                found.append((y, *tg.autograd.grad(y, (a, b), tg.ones_like(y).detach() / 3)))
    finally:
        tg.set_num_threads(before)
    for others in found[1:]:
        assert all(t.equal(o) for t, o in zip(found[0], others))
