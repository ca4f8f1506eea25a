"""Laws of transposed convolution, windows, resizing, grids and pools; copies, modes and slopes; attention by tiles."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F

X = np.random.default_rng(0)


def numbers(*shape):
    return tg.tensor(X.standard_normal(shape))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtypes", [("float16", "float32"), ("bfloat16", "float16"), ("float32", "complex64")])
def test_transposed_convolution_needs_one_dtype(dims, dtypes):
    own, other = (getattr(tg, name) for name in dtypes)
    x, weight = tg.ones(1, 2, *[3] * dims, dtype=own), tg.ones(2, 2, *[2] * dims)
    convolve = getattr(tg, f"conv_transpose{dims}d")
    with pytest.raises(
        RuntimeError, match=rf"expected scalar type .*: conv_transpose{dims}d\(\) needs input and weight"
    ):
        convolve(x, weight.to(other))
    if dims == 3:
        with pytest.raises(RuntimeError, match="needs input and bias of one dtype"):
            convolve(x, weight.to(own), tg.ones(2, dtype=other))
    else:
        assert convolve(x, weight.to(own), tg.ones(2, dtype=tg.float64)).dtype is own


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolution_is_the_adjoint_of_convolution(dims):
    weight, big, small = numbers(3, 2, *[3] * dims), numbers(1, 2, *[7] * dims), numbers(1, 3, *[3] * dims)
    convolve, back = getattr(tg, f"conv{dims}d"), getattr(tg, f"conv_transpose{dims}d")
    left = (convolve(big, weight, stride=2) * small).sum()
    right = (big * back(small, weight, stride=2)).sum()
    assert left.item() == pytest.approx(right.item())


def test_fold_is_the_adjoint_of_unfold():
    image, options = numbers(2, 3, 5, 6), {"kernel_size": (2, 3), "stride": (2, 1), "padding": 1}
    columns = F.unfold(image, **options)
    other = numbers(*columns.shape)
    assert (columns * other).sum().item() == pytest.approx((image * F.fold(other, (5, 6), **options)).sum().item())


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_resizing_keeps_constants_and_the_same_size(mode):
    image = numbers(1, 2, 4, 5)
    np.testing.assert_allclose(F.interpolate(image, (4, 5), mode=mode).numpy(), image.numpy(), atol=1e-6)
    flat = F.interpolate(tg.full((1, 1, 4, 5), 3.0), (7, 2), mode=mode)
    np.testing.assert_allclose(flat.numpy(), 3, rtol=1e-5)


def test_the_grid_of_the_identity_gives_the_image_back():
    image, theta = numbers(2, 3, 4, 5), tg.eye(2, 3, dtype=tg.float64).expand(2, 2, 3)
    for align in (False, True):
        grid = F.affine_grid(theta, (2, 3, 4, 5), align_corners=align)
        for mode in ("bilinear", "nearest", "bicubic"):
            got = F.grid_sample(image, grid, mode=mode, align_corners=align)
            np.testing.assert_allclose(got.numpy(), image.numpy(), atol=1e-12)


def test_pooling_of_volumes_is_that_of_windows():
    x = numbers(1, 1, 4, 4, 4)
    windows = x.unfold(2, 2, 2).unfold(3, 2, 2).unfold(4, 2, 2).reshape(1, 1, 2, 2, 2, 8)
    values, places = F.max_pool3d(x, 2, return_indices=True)
    assert (values == windows.amax(-1)).all()
    assert (x.reshape(-1)[places.reshape(-1)] == values.reshape(-1)).all()
    np.testing.assert_allclose(F.avg_pool3d(x, 2).numpy(), windows.mean(-1).numpy())
    back = F.max_unpool3d(values, places, 2)
    assert back.shape == x.shape and back.count_nonzero() == 8


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.int8])
def test_the_largest_of_many_planes_is_that_of_each(dtype):
    """Beside NumPy, for planes of several stretches of equal windows: at both ends there is padding."""
    images = (numbers(3, 17, 7, 601) * 50).to(dtype)
    for x, pool in ((images, F.max_pool2d), (images[:, :, 0], F.max_pool1d)):
        values, places = pool(x, 3, 2, 1, return_indices=True)
        flat, planes = x.reshape(51, -1), values.reshape(51, -1)
        assert tg.equal(flat.gather(1, places.reshape(51, -1)), planes)
        around = np.pad(x.numpy().astype(float), [(0, 0)] * 2 + [(1, 1)] * (x.dim() - 2), constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(around, (3,) * (x.dim() - 2), tuple(range(2, x.dim())))
        windows = windows[:, :, ::2, ::2].max((-1, -2)) if x.dim() == 4 else windows[:, :, ::2].max(-1)
        np.testing.assert_array_equal(values.numpy().astype(float), windows)
        for n, c in ((0, 0), (1, 9), (2, 16)):
            alone, place = pool(x[n : n + 1, c : c + 1], 3, 2, 1, return_indices=True)
            assert tg.equal(alone[0, 0], values[n, c]) and tg.equal(place[0, 0], places[n, c])


def test_copies_of_strided_windows():
    x = tg.arange(6.0)
    assert tg.as_strided_copy(x, (2, 2), (3, 1), 1).tolist() == [[1, 2], [4, 5]]
    copy = tg.view_copy(x, (3, 2))
    copy.zero_()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_the_mode_is_the_smallest_of_the_most_frequent():
    values, places = tg.mode(tg.tensor([[3, 1, 3, 1, 2], [5, 5, 0, 0, 5]]))
    assert values.tolist() == [1, 5]
    assert [row[p] for row, p in zip([[3, 1, 3, 1, 2], [5, 5, 0, 0, 5]], places.tolist())] == [1, 5]


def test_gradient_is_numpys():
    x, where = numbers(5, 4), np.array([0.0, 1.0, 1.5, 4.0])
    for order in (1, 2):
        for got, want in zip(tg.gradient(x, edge_order=order), np.gradient(x.numpy(), edge_order=order)):
            np.testing.assert_allclose(got.numpy(), want)
        got = tg.gradient(x, spacing=[tg.tensor(where)], dim=1, edge_order=order)[0]
        np.testing.assert_allclose(got.numpy(), np.gradient(x.numpy(), where, axis=1, edge_order=order))


def test_alpha_dropout_keeps_mean_and_variance():
    tg.manual_seed(0)
    y = F.alpha_dropout(tg.randn(200_000), 0.3, training=True)
    assert abs(y.mean().item()) < 0.02 and abs(y.var().item() - 1) < 0.03


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("kind", [None, "bool", "float"])
@pytest.mark.parametrize("rows", [300, 20])
def test_attention_by_tiles_is_attention(is_causal, kind, rows):
    """300 rows go by tiles, 20 do not; both without the first row of the mask, which lets nothing be seen."""
    arguments = [numbers(1, 2, rows, 4), numbers(1, 2, 280, 4), numbers(1, 2, 280, 3)]
    seed, triangle = numbers(1, 2, rows, 3), tg.ones(rows, 280, dtype=tg.bool).tril()
    if kind is not None:
        arguments.append(numbers(rows, 280))
        arguments[3][0] = -np.inf
    tiled, plain = ([a.clone().requires_grad_() for a in arguments] for _ in range(2))
    if kind == "bool":
        tiled[3] = plain[3] = arguments[3] > 0.5
    got = F.scaled_dot_product_attention(*tiled, is_causal=is_causal)
    scores = plain[0] @ plain[1].mT * 0.5
    if kind is not None:
        scores = scores.masked_fill(plain[3].logical_not(), -np.inf) if kind == "bool" else scores + plain[3]
    if is_causal:
        scores = scores.masked_fill(triangle.logical_not(), -np.inf)
    seen = tg.isfinite(scores).any(-1, True).detach()
    weights = scores.masked_fill(seen.logical_not(), 0.0).softmax(-1)
    wanted = weights.masked_fill(seen.logical_not(), 0.0) @ plain[2]
    np.testing.assert_allclose(got.detach().numpy(), wanted.detach().numpy(), atol=1e-12)
    tiled, plain = ([t for t in given if t.requires_grad] for given in (tiled, plain))
    for a, b in zip(tg.autograd.grad(got, tiled, seed), tg.autograd.grad(wanted, plain, seed), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-11)


def test_attention_adds_one_mask_for_many_heads():
    """Its gradient, by tiles, is summed over heads and rows that share it."""
    query, key, value = numbers(2, 3, 300, 4), numbers(2, 3, 280, 4), numbers(2, 3, 280, 3)
    for shape in ((280,), (300, 1), (2, 1, 1, 280), (3, 300, 280)):
        mask = numbers(*shape).requires_grad_()
        got = F.scaled_dot_product_attention(query, key, value, mask)
        wanted = ((query @ key.mT * 0.5) + mask).softmax(-1) @ value
        (a,), (b,) = tg.autograd.grad(got.sin().sum(), mask), tg.autograd.grad(wanted.sin().sum(), mask)
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-11)


def test_attention_takes_a_mask_and_a_triangle_of_four_dimensions_only():
    with pytest.raises(RuntimeError, match="Explicit attn_mask should not be set when is_causal=True"):
        F.scaled_dot_product_attention(*[numbers(3, 5, 4)] * 3, numbers(5, 5), is_causal=True)


@pytest.mark.parametrize("factor", [float("inf"), float("-inf"), float("nan"), (2.0, float("inf"))])
def test_interpolate_refuses_a_factor_that_is_not_finite(factor):
    with pytest.raises(RuntimeError, match="without overflow: interpolate got scale_factor"):
        tg.nn.functional.interpolate(tg.ones(1, 1, 2, 2), scale_factor=factor, mode="bilinear")


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_has_the_same_bits_for_every_split(mode):
    image, grid = numbers(3, 5, 40, 30).float(), numbers(3, 70, 50, 2).float()

    def found(image, grid):
        image, grid = image.detach().requires_grad_(), grid.detach().requires_grad_()
        read = F.grid_sample(image, grid, mode, "reflection", False)
        return [read, *tg.autograd.grad(read.sin().sum(), [image, grid])]

    before = tg.get_num_threads()
    try:
        tg.set_num_threads(1)
        whole = found(image, grid)
        tg.set_num_threads(2)
        assert all(tg.equal(a, b) for a, b in zip(whole, found(image, grid)))
    finally:
        tg.set_num_threads(before)
    piece = F.grid_sample(image[1:2], grid[1:2, 7:8, 11:18], mode, "reflection", False)
    assert tg.equal(piece, whole[0][1:2, :, 7:8, 11:18])
    turned = image.transpose(2, 3).contiguous().transpose(2, 3)
    assert tg.equal(F.grid_sample(turned, grid, mode, "reflection", False), whole[0])


@pytest.mark.parametrize("count", [1, 63, 64, 65, 130])
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_grid_sample_of_rows_around_a_block(count, dtype):
    """Bilinear values as NumPy finds them, and the bits and slopes of each point as of the point alone."""
    image, grid = numbers(1, 2, 5, 7).to(dtype), numbers(1, 1, count, 2).to(dtype).requires_grad_()
    read = F.grid_sample(image, grid, align_corners=True)
    (slope,) = tg.autograd.grad(read.sum(), grid)
    padded = np.pad(image[0].double().numpy(), ((0, 0), (1, 2), (1, 2)))
    x, y = np.clip((grid.detach()[0, 0].double().numpy().T + 1) * [[3], [2]], -1, [[7], [5]])
    i, j = np.floor(y).astype(int), np.floor(x).astype(int)
    t, u = y - i, x - j
    upper = padded[:, i + 1, j + 1] * (1 - u) + padded[:, i + 1, j + 2] * u
    lower = padded[:, i + 2, j + 1] * (1 - u) + padded[:, i + 2, j + 2] * u
    atol = 1e-5 if dtype == tg.float32 else 1e-12
    np.testing.assert_allclose(read[0, :, 0].detach().double().numpy(), upper * (1 - t) + lower * t, atol=atol)
    for k in {0, count // 2, count - 1}:
        point = grid.detach()[:, :, k : k + 1].clone().requires_grad_()
        alone = F.grid_sample(image, point, align_corners=True)
        assert tg.equal(alone[..., 0], read[..., k])
        assert tg.equal(tg.autograd.grad(alone.sum(), point)[0][..., 0, :], slope[..., k, :])


def test_grid_sample_reads_nothing_outside():
    image = tg.full((1, 1, 2, 2), float("inf"))
    for far in (3.0, 1e30, -1e30):
        for mode in ("bilinear", "nearest", "bicubic"):
            assert F.grid_sample(image, tg.full((1, 1, 1, 2), far), mode, "zeros", False).item() == 0
    image = tg.arange(4.0).reshape(1, 1, 2, 2)
    for far, value in ((float("nan"), 0), (float("-inf"), 0), (float("inf"), 3)):
        assert F.grid_sample(image, tg.full((1, 1, 1, 2), far), "nearest", "border", False).item() == value
    assert F.grid_sample(image, tg.full((1, 1, 1, 2), float("nan")), "nearest", "zeros", False).item() == 0


def test_grid_sample_refuses_what_does_not_fit():
    for image, grid, mode, message in (
        (tg.ones(1, 1, 2, 2), tg.ones(1, 1, 1, 2, dtype=tg.float64), "bilinear", "same dtype"),
        (tg.ones(1, 1, 0, 2), tg.ones(1, 1, 1, 2), "bilinear", "non-empty spatial"),
        (tg.ones(1, 1, 2, 2, 2), tg.ones(1, 1, 1, 1, 3), "bicubic", "only supports 4D"),
    ):
        with pytest.raises(RuntimeError, match=message):
            F.grid_sample(image, grid, mode, align_corners=False)


def test_lanczos_is_scipys_window_where_the_image_shrinks_and_needs_antialias():
    """Each place is a mean of the elements within three steps, by sinc(t) sinc(t / 3)."""
    image = numbers(1, 1, 9, 8)
    got = F.interpolate(image, (4, 8), mode="lanczos", antialias=True)
    step, at = 9 / 4, np.arange(9)
    for row in range(4):
        center = (row + 0.5) * step
        t = (at + 0.5 - center) / step
        weight = np.where(abs(t) < 3, np.sinc(t) * np.sinc(t / 3), 0)
        weight[at < int(center - 3 * step + 0.5)] = 0
        wanted = weight / weight.sum() @ image[0, 0].numpy()
        np.testing.assert_allclose(got[0, 0, row].numpy(), wanted, atol=1e-12)
    with pytest.raises(ValueError, match="requires antialias=True"):
        F.interpolate(image, (4, 8), mode="lanczos")
    with pytest.raises(ValueError, match="does not support align_corners=True"):
        F.interpolate(image, (4, 8), mode="lanczos", antialias=True, align_corners=True)


def test_as_strided_moves_the_window_of_the_tensor_itself():
    x = tg.arange(12.0)
    assert x.as_strided_((3, 2), (2, 3), 1) is x
    assert (x.shape, x.stride(), x.storage_offset()) == ((3, 2), (2, 3), 1)
    leaf = tg.arange(6.0).requires_grad_()
    moved = leaf * 2
    tg.as_strided_(moved, (2, 2), (1, 2), 1).sum().backward()
    assert leaf.grad.tolist() == [0, 2, 2, 2, 2, 0]


@pytest.mark.parametrize("mode, reach", [("bilinear", 1), ("bicubic", 2), ("lanczos", 3)])
def test_what_is_not_finite_stays_within_a_window_of_antialias(mode, reach):
    image = numbers(1, 1, 40, 3)
    image[0, 0, 20, 1] = np.nan
    got = F.interpolate(image, scale_factor=(0.5, 1), mode=mode, antialias=True)
    rows = tg.isnan(got[0, 0]).any(1).nonzero()[:, 0].tolist()
    assert rows and all(abs((row + 0.5) * 2 - 20.5) <= 2 * reach + 1 for row in rows)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("out", [(3, 5), (4, 31), (23, 2), (1, 1)])
def test_windows_of_antialias_and_their_gradient_are_one_matrix(mode, out):
    """Rows are read some at a time: of seven planes of eleven rows the last stand alone."""
    image = tg.randn(1, 7, 11, 13, dtype=tg.float64, requires_grad=True)
    got = F.interpolate(image, out, mode=mode, antialias=True)
    rows = F.interpolate(tg.eye(11, dtype=tg.float64)[None, None], (out[0], 11), mode=mode, antialias=True)[0, 0]
    columns = F.interpolate(tg.eye(13, dtype=tg.float64)[None, None], (13, out[1]), mode=mode, antialias=True)[0, 0]
    np.testing.assert_allclose(got.detach().numpy(), (rows @ image.detach() @ columns).numpy(), atol=1e-12)
    given = tg.randn(got.shape, dtype=tg.float64)
    (slope,) = tg.autograd.grad(got, image, given)
    np.testing.assert_allclose(slope.numpy(), (rows.mT @ given @ columns.mT).numpy(), atol=1e-12)


@pytest.mark.parametrize("out", [(3, 5), (16, 5), (3, 16), (9, 30)])
def test_nearest_elements_are_those_of_both_dimensions_in_any_order(out):
    image = tg.arange(2 * 8 * 10.0).reshape(1, 2, 8, 10).requires_grad_()
    got = F.interpolate(image, out, mode="nearest")
    rows, columns = (tg.arange(n) * size // n for n, size in zip(out, (8, 10)))
    assert got.equal(image[:, :, rows][:, :, :, columns])
    (slope,) = tg.autograd.grad(got.sum(), image)
    assert slope.equal(tg.bincount(rows, minlength=8)[:, None] * tg.bincount(columns, minlength=10).float() + 0 * image)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(2, 2), (5, 33), (33, 1), (40, 40)])
def test_few_points_of_any_layout_have_the_bits_of_a_dense_image(mode, size):
    x = tg.randn(2, 3, 33, 40, dtype=tg.float64)
    layouts = [x.transpose(2, 3).contiguous().transpose(2, 3), x.contiguous(memory_format=tg.channels_last)]
    layouts += [x[:, ::2, :, 1::2], x[:1].expand(4, 3, 33, 40), x.flip(3)[:, :, 1:]]
    for image in layouts:
        found = tg.nn.functional.interpolate(image, size, mode=mode)
        assert found.equal(tg.nn.functional.interpolate(image.contiguous(), size, mode=mode))
        laid = image.is_contiguous(memory_format=tg.channels_last)
        assert found.is_contiguous(memory_format=tg.channels_last if laid else tg.contiguous_format)


def test_images_of_few_points_are_resized_where_they_lie_below_transforms():
    x = tg.randn(2, 3, 12, 10, dtype=tg.float64).contiguous(memory_format=tg.channels_last)
    small = lambda image: F.interpolate(image, (3, 4), mode="bilinear")
    assert tg.func.vmap(small)(x[:, None]).equal(small(x)[:, None])
    way = tg.randn(2, 3, 12, 10, dtype=tg.float64)
    assert tg.func.jvp(small, (x,), (way,))[1].allclose(small(way))
    (slope,) = tg.autograd.grad(small(x.requires_grad_()).sum(), x)
    dense = x.detach().contiguous().requires_grad_()
    assert slope.allclose(tg.autograd.grad(small(dense).sum(), dense)[0])
    assert tg.compile(small)(x.detach()).equal(small(x.detach()))


@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (3, 5, 7), (0, 3, 5, 7), (2, 70, 100, 3)])
def test_one_window_for_all_is_their_mean_in_every_layout(shape):
    x = tg.randn(shape)
    for image in (
        x,
        x.mT.contiguous().mT,
        x.movedim(-3, -1).contiguous().movedim(-1, -3),
        tg.stack([x, x], -1)[..., 1],
    ):
        found = F.adaptive_avg_pool2d(image, (1, 1))
        assert found.equal(x.mean((-2, -1), True)) and found.is_contiguous()
        rows = image.flatten(0, -3)
        assert F.adaptive_avg_pool1d(rows, 1).equal(rows.mean(-1, True))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 4])
def test_transposed_convolution_of_no_places_is_refused_but_of_no_images(dims, groups):
    """With a channel a group the kernel of the gradient divides by the number of places."""
    transposed, weight = getattr(F, f"conv_transpose{dims}d"), tg.ones(4, 4 // groups, *[2] * dims)
    for image in ([4, 0, 3, 3], [2, 4, 0, 3, 3]):
        with pytest.raises(RuntimeError, match="Only zero batch or zero channel inputs are supported"):
            transposed(tg.ones(image[: dims + len(image) - 3]), weight, groups=groups)
    assert transposed(tg.ones([0, 4, 0, 3, 3][: dims + 2]), weight, groups=groups).shape[:3] == (0, 4, 1)
