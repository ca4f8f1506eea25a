"""Images read at points whose taps lie side by side, and at those near edges, where some lie elsewhere or outside."""

import numpy as np
import pytest

import tinygrad_ext as tg
import tinygrad_ext.nn.functional as F


def numbers(*sizes, dtype="f8", scale=1.0):
    return tg.from_numpy((np.random.default_rng(3).standard_normal(sizes) * scale).astype(dtype))


def bounded(at, size, padding, align):
    """The coordinate that a padding makes of one."""
    if padding == "reflection":
        low, span = (0, size - 1) if align else (-0.5, size)
        turns, rest = np.divmod(abs(at - low), span) if span else (0, 0)
        at = (span - rest if turns % 2 else rest) + low
    return at if padding == "zeros" else min(max(at, 0), size - 1)


def taps(at, size, mode, padding, align):
    """Pairs of a place, None outside, and its weight."""
    if mode != "bicubic":
        at = bounded(at, size, padding, align)
    low = np.floor(at)
    t = at - low
    if mode == "nearest":
        low, weights = np.rint(at), [1.0]
    elif mode == "bilinear":
        weights = [1 - t, t]
    else:
        a = -0.75
        near = [((a + 2) * s - (a + 3)) * s * s + 1 for s in (t, 1 - t)]
        far = [((a * s - 5 * a) * s + 8 * a) * s - 4 * a for s in (t + 1, 2 - t)]
        low, weights = low - 1, [far[0], *near, far[1]]
    places = [low + k for k in range(len(weights))]
    if mode == "bicubic":
        places = [bounded(p, size, padding, align) for p in places]
    return [(int(p) if 0 <= p < size else None, w) for p, w in zip(places, weights)]


def expected(image, grid, mode, padding, align):
    found = np.zeros((*image.shape[:2], *grid.shape[1:3]))
    height, width = image.shape[2:]
    for n, r, c in np.ndindex(*grid.shape[:3]):
        x, y = (
            (g + 1) / 2 * (s - 1) if align else ((g + 1) * s - 1) / 2 for g, s in zip(grid[n, r, c], (width, height))
        )
        for i, v in taps(y, height, mode, padding, align):
            for j, w in taps(x, width, mode, padding, align):
                if i is not None and j is not None:
                    found[n, :, r, c] += image[n, :, i, j] * v * w
    return found


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_points_near_edges_and_within(mode, padding, align):
    """Widths of fewer elements than taps too, and more points than a block has."""
    for dtype, rtol in (("f8", 1e-9), ("f4", 2e-4)):
        for height, width in ((6, 9), (1, 1), (5, 3), (2, 1), (7, 4)):
            image, grid = numbers(2, 3, height, width, dtype=dtype), numbers(2, 5, 15, 2, dtype=dtype, scale=0.8)
            got = F.grid_sample(image, grid, mode, padding, align)
            want = expected(image.double().numpy(), grid.double().numpy(), mode, padding, align)
            np.testing.assert_allclose(got.double().numpy(), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_what_a_point_does_not_read_does_not_reach_it(mode):
    """Elements at the beginning of a plane are infinite: points at other edges are not."""
    image = tg.ones(1, 2, 12, 12)
    image[:, :, :4, :8] = float("inf")
    grid = tg.from_numpy(np.random.default_rng(5).uniform(0.6, 1.4, (1, 10, 10, 2)).astype("f4"))
    grid.requires_grad_()
    read = F.grid_sample(image, grid, mode, "zeros", False)
    assert read.isfinite().all()
    assert tg.autograd.grad(read.sum(), grid)[0].isfinite().all()


def test_wide_images_are_not_read_behind_their_end():
    """Beside sizes of 25 bits the last float32 place rounds up to the size itself."""
    for size in (2**24 + 4, 2**24 + 2):
        image = tg.ones(1, 1, 1, size)
        grid = tg.tensor([[[[1.0, 0.0], [1.1, 0.0]]]])
        for mode in ("nearest", "bilinear", "bicubic"):
            for padding in ("zeros", "border", "reflection"):
                read = F.grid_sample(image, grid, mode, padding, True)
                assert ((read >= -0.2) & (read <= 1.2)).all()
