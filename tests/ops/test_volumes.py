"""Windows of volumes, regular and drawn, against NumPy; what is refused."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F


def _windows(x, starts, kernel):
    """All windows that begin at the given places of each dimension, flattened, and their elements' places."""
    places = np.arange(x.size).reshape(x.shape)
    corners = [(a, b, c) for a in starts[0] for b in starts[1] for c in starts[2]]
    parts = [tuple(slice(max(s, 0), s + k) for s, k in zip(corner, kernel)) for corner in corners]
    return [(x[part].ravel(), places[part].ravel()) for part in parts]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("kernel, stride, padding", [((2, 2, 2), (2, 2, 2), 0), ((3, 1, 2), (1, 2, 1), (1, 0, 1))])
def test_regular_windows(dtype, kernel, stride, padding):
    x = np.random.default_rng(0).permutation(5 * 4 * 6).reshape(5, 4, 6).astype(dtype)
    pad = (padding,) * 3 if isinstance(padding, int) else padding
    starts = [range(-p, n + p - k + 1, s) for n, k, s, p in zip(x.shape, kernel, stride, pad)]
    found = _windows(x, starts, kernel)
    values, places = F.max_pool3d(tg.from_numpy(x)[None], kernel, stride, padding, return_indices=True)
    assert values.flatten().tolist() == [v.max() for v, _ in found]
    assert places.flatten().tolist() == [at[v.argmax()] for v, at in found]
    mean = F.avg_pool3d(tg.from_numpy(x)[None], kernel, stride, padding).flatten()
    sums = np.array([v.sum(dtype="f8") for v, _ in found]) / np.prod(kernel)
    np.testing.assert_allclose(mean.numpy(), np.trunc(sums) if x.dtype.kind in "iu" else sums, rtol=1e-6)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("out", [1, 3, 5])
def test_drawn_windows(dims, out):
    random = np.random.default_rng(1)
    x, kernel, samples = random.random((2, *[9] * dims)), 2, random.random((1, 2, dims))
    got = getattr(F, f"fractional_max_pool{dims}d")(
        tg.from_numpy(x), kernel, out, return_indices=True, _random_samples=tg.from_numpy(samples)
    )
    for channel in range(2):
        starts = []
        for d in range(dims):
            u, step = samples[0, channel, dims - 1 - d if dims == 2 else d], (9 - kernel) / max(out - 1, 1)
            starts.append([int((i + u) * step) - int(u * step) for i in range(out - 1)] + [9 - kernel])
        volume = x[channel].reshape((1,) * (3 - dims) + (9,) * dims)
        found = _windows(volume, [[0]] * (3 - dims) + starts, [1] * (3 - dims) + [kernel] * dims)
        assert got[0][channel].flatten().tolist() == [v.max() for v, _ in found]
        assert got[1][channel].flatten().tolist() == [at[v.argmax()] for v, at in found]


def test_drawn_windows_with_a_gradient():
    x = tg.randn(2, 2, 6, 6, dtype=tg.float64).requires_grad_()
    samples = tg.rand(2, 2, 2, dtype=tg.float64)
    pool = F.fractional_max_pool2d
    assert tg.autograd.gradcheck(lambda t: pool(t, 2, 3, _random_samples=samples), x)
    many = tg.vmap(lambda t, u: pool(t, 2, 3, _random_samples=u))(x[:, None], samples[:, None])
    assert tg.equal(many[:, 0], pool(x, 2, 3, _random_samples=samples))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300, -1e300])
def test_samples_that_are_no_places_are_refused(number):
    samples = tg.full((1, 1, 2), number, dtype=tg.float64)
    with pytest.raises(RuntimeError, match="_random_samples must be finite"):
        F.fractional_max_pool2d(tg.zeros(1, 1, 5, 5, dtype=tg.float64), 2, 3, _random_samples=samples)


def test_what_does_not_fit_is_refused():
    x, drawn = tg.zeros(1, 1, 4, 4), tg.zeros(1, 1, 2)
    for kernel, out in (
        ([5, 1], [1, 1]),
        ([2, 2], [4, 1]),
        ([-1, 1], [1, 1]),
        ([1, 1], [-1, 1]),
        ([1, 1], [1 << 40, 1]),
    ):
        with pytest.raises(RuntimeError, match="do not fit into the input's"):
            x._fractional_max_pool(drawn, kernel, out, tg.float32)
    for wrong in (drawn.double(), tg.zeros(1, 2), tg.zeros(1, 2, 2), tg.zeros(1, 1, 3)):
        with pytest.raises(RuntimeError, match="2 numbers for each plane"):
            x._fractional_max_pool(wrong, [2, 2], [2, 2], tg.float32)
    with pytest.raises(RuntimeError, match="2 or 3 sizes of windows"):
        x._fractional_max_pool(drawn, [2], [2], tg.float32)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        x.long()._fractional_max_pool(drawn, [2, 2], [2, 2], tg.float32)
    for shape in ((1, 0, 4, 4), (1, 1, 0, 4)):
        with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
            F.fractional_max_pool2d(tg.zeros(*shape), 1, 1)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_values_alone_are_those_that_come_with_places(dims):
    x = tg.from_numpy(np.random.default_rng(2).permutation(2 * 7**dims).reshape(1, 2, *[7] * dims).astype("f8"))
    x[0, 0].reshape(-1)[3] = float("nan")
    pool = getattr(F, f"max_pool{dims}d")
    for options in ((3,), (3, 3), (2, 1, 1), (2, 2, 0, 3)):
        alone = pool(x, *options)
        values, places = pool(x, *options, return_indices=True)
        np.testing.assert_array_equal(alone.numpy(), values.numpy())
        found = x.reshape(2, -1).gather(1, places.reshape(2, -1))
        np.testing.assert_array_equal(found.numpy(), values.reshape(2, -1).numpy())


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_values_alone_have_the_gradients_of_those_with_places(dims):
    x = tg.randn(2, 2, *[5] * dims, dtype=tg.float64)
    pool = getattr(F, f"max_pool{dims}d")
    leaf = x.clone().requires_grad_()
    (pool(leaf, 2) ** 2).sum().backward()
    alone = x.clone().requires_grad_()
    functions = tg.func.grad(lambda t: (pool(t, 2) ** 2).sum())
    assert tg.equal(functions(x), leaf.grad)
    tangent = tg.randn_like(x)
    _, slope = tg.func.jvp(lambda t: (pool(t, 2) ** 2).sum(), (x,), (tangent,))
    assert tg.allclose(slope, (tangent * leaf.grad).sum())
    values = tg.ops.aten._max_pool_values(alone, [2], None, [0], [1], False, dims)
    (values**2).sum().backward()
    assert tg.equal(alone.grad, leaf.grad)
