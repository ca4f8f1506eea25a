"""Rules of convolution and pooling that the sweep over the op table cannot know."""

import os
import subprocess
import sys

import numpy as np
import pytest
from operands import guarded

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F
from tinygrad_ext.ops.conv import _reference


def randn(*shape, dtype=tg.float64):
    return tg.randn(shape, dtype=dtype)


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (4, 4), (7, 7), (8, 8), (5, 33), (30, 70)], ids=str)
@pytest.mark.parametrize("channels, outputs", [(1, 1), (1, 17), (3, 8), (70, 9), (70, 21)])
def test_every_block_shape_equals_the_definition(size, channels, outputs):
    x, w = randn(5, channels, *size), randn(outputs, channels, 3, 3)
    want = _reference(x.numpy(), w.numpy(), padding=1)
    assert abs(F.conv2d(x, w, padding=1).numpy() - want).max() < 1e-10


@pytest.mark.parametrize("channels, outputs", [(4, 32), (20, 61), (20, 64), (350, 30)])
@pytest.mark.parametrize(
    "size, kernel, options",
    [
        ((7, 7), 3, {"padding": 1}),
        ((9, 14), 3, {"padding": 1}),
        ((6, 27), (3, 5), {"padding": (1, 2)}),
        ((13, 28), 3, {"padding": 1, "stride": 2}),
        ((5, 33), 3, {"padding": 4, "dilation": 4}),
        ((4, 56), (2, 17), {"padding": (0, 8)}),
        ((1, 198), (1, 9), {"padding": (0, 4)}),
        ((8, 8), 3, {"padding": 1}),
        ((9, 17), (3, 4), {"padding": 1, "stride": 2}),
        ((11, 13), 3, {"padding": 5, "dilation": 5}),
        ((12, 13), 4, {"padding": 2, "stride": (1, 3)}),
    ],
    ids=str,
)
@pytest.mark.parametrize("images", [3, 8, 17])
def test_vectors_along_the_outputs_equal_the_definition(images, channels, outputs, size, kernel, options):
    """Elements of several images lie in turn, in groups of as many as leave few places empty: 3, 8, and 9 and 8."""
    x, w = randn(images, channels, *size), randn(outputs, channels, *np.broadcast_to(kernel, 2))
    bias = randn(outputs)
    want = _reference(x.numpy(), w.numpy(), bias.numpy(), **options)
    for dtype, close in ((tg.float64, 1e-12), (tg.float32, 1e-4)):
        a, b, c = tg.from_numpy(guarded(x.to(dtype).numpy())).requires_grad_(), w.to(dtype), bias.to(dtype)
        got = F.conv2d(a, b, c, **options)
        assert abs(got.detach().numpy() - want).max() < close * abs(want).max()
        grad = randn(*got.shape, dtype=dtype)
        (slope,) = tg.autograd.grad(got, a, tg.from_numpy(guarded(grad.numpy())))
        # the map is linear: <A d, g> = <d, A^T g>
        d = randn(*x.shape, dtype=dtype)
        one, other = F.conv2d(d, b, **options) * grad, d * slope
        assert abs(one.sum() - other.sum()) < close * (abs(one).sum() + abs(other).sum())


@pytest.mark.parametrize("level", ["avx2", "base"])
def test_less_able_processors_compute_the_same(level):
    """Images in turn have loops for vectors of 32 bytes; what is shorter goes the general way."""
    script = (
        "import numpy as np, tinygrad_ext as tg\n"
        "from tinygrad_ext.ops.conv import _reference\n"
        "rng = np.random.default_rng(0)\n"
        "for n, size, o, stride in ((8, 8, 33, 1), (5, 13, 24, 1), (3, 9, 47, 2), (1, 30, 16, 1), (17, 7, 8, 2)):\n"
        "    x, w = rng.standard_normal((n, 20, size, size)), rng.standard_normal((o, 20, 3, 3))\n"
        "    want = _reference(x, w, padding=1, stride=stride)\n"
        "    for dtype, close in (('f4', 1e-4), ('f8', 1e-12)):\n"
        "        got = tg.conv2d(*(tg.from_numpy(t.astype(dtype)) for t in (x, w)), padding=1, stride=stride)\n"
        "        np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=close * abs(want).max())\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | {"TINYGRAD_EXT_ISA": level})


@pytest.mark.parametrize("kernel", [(3, 3), (1, 3), (3, 1), (2, 2), (1, 9)], ids=str)
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 2), (3, 1)], ids=str)
def test_a_plane_for_each_output_equals_the_definition(kernel, stride):
    for size, padding, dilation in (
        ((7, 7), 1, 1),
        ((14, 15), (1, 4), 1),
        ((5, 9), 4, 2),
        ((3, 16), (2, 4), (1, 2)),
        ((6, 90), 4, (2, 11)),
    ):
        x, w = randn(3, 5, *size), randn(5, 1, *kernel)
        want = {"stride": stride, "padding": padding, "dilation": dilation, "groups": 5}
        for dtype, close in ((tg.float64, 1e-12), (tg.float32, 1e-5)):
            got = F.conv2d(x.to(dtype), w.to(dtype), **want).numpy()
            assert abs(got - _reference(x.numpy(), w.numpy(), **want)).max() < close


@pytest.mark.parametrize("kernel", [(3, 3), (1, 3), (2, 2)], ids=str)
@pytest.mark.parametrize("stride", [1, 2], ids=str)
def test_gradients_of_a_plane_for_each_output(kernel, stride):
    x, w = randn(2, 5, 7, 6).requires_grad_(), randn(5, 1, *kernel).requires_grad_()
    assert tg.autograd.gradcheck(
        lambda x, w: F.conv2d(x, w, stride=stride, padding=1, groups=5), (x, w), fast_mode=True
    )


@pytest.mark.parametrize(
    "size, kernel, stride",
    [((9, 8), 1, 2), ((11, 12), 2, 2), ((11, 12), 2, 3), ((8, 8), (1, 3), (1, 3)), ((3, 9), (3, 2), (1, 4))],
    ids=str,
)
def test_windows_apart_from_each_other_equal_the_definition(size, kernel, stride):
    x, w = randn(2, 64, *size), randn(128, 64, *np.broadcast_to(kernel, 2))
    x.requires_grad_(), w.requires_grad_()
    out = F.conv2d(x, w, stride=stride)
    assert abs(out.detach().numpy() - _reference(x.detach().numpy(), w.detach().numpy(), stride=stride)).max() < 1e-10
    grads = tg.autograd.grad((out * out.detach()).sum(), (x, w))
    wanted = tg.autograd.grad(_by_loops(x, w, stride, out.detach()), (x, w))
    for got, want in zip(grads, wanted):
        assert abs((got - want).numpy()).max() < 1e-9


def _by_loops(x, w, stride, seed):
    """Sum of a convolution times `seed`, tap by tap."""
    sy, sx = np.broadcast_to(stride, 2).tolist()
    rows, cols = seed.shape[2:]
    taps = [(v, u) for v in range(w.shape[2]) for u in range(w.shape[3])]
    parts = [
        tg.einsum(
            "nchw,oc->nohw", x[:, :, v : v + sy * (rows - 1) + 1 : sy, u : u + sx * (cols - 1) + 1 : sx], w[:, :, v, u]
        )
        for v, u in taps
    ]
    return (sum(parts) * seed).sum()


def test_gradients_do_not_depend_on_the_number_of_threads():
    before = tg.get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            tg.manual_seed(0)
            tg.set_num_threads(threads)
            x, w = randn(9, 16, 12, 12, dtype=tg.float32), randn(20, 16, 3, 3, dtype=tg.float32)
            y = F.conv2d(x.requires_grad_(), w.requires_grad_(), padding=1)
            results.append([y, *tg.autograd.grad(y.sum() + (y * y).sum(), (x, w))])
    finally:
        tg.set_num_threads(before)
    for one, three in zip(*results):
        assert bool((one == three).all())


def test_images_far_from_each_other_in_memory_are_read_right():
    x, w = randn(2, 3, 6, 6), randn(4, 3, 3, 3)
    want = F.conv2d(x, w)
    assert bool((F.conv2d(x.permute(2, 3, 0, 1).contiguous().permute(2, 3, 0, 1), w) == want).all())


def test_the_weight_gradient_needs_no_input_gradient():
    x, w = randn(2, 3, 6, 6), randn(4, 3, 3, 3).requires_grad_()
    (grad,) = tg.autograd.grad(F.conv2d(x, w).sum(), (w,))
    assert grad.shape == w.shape


@pytest.mark.parametrize("size", [2**33, 2**62], ids=str)
def test_huge_windows_are_refused(size):
    with pytest.raises(RuntimeError):
        F.conv2d(tg.zeros((1, 1, 4, 4)), tg.zeros((1, 1, 1, 1)), padding=size)
    with pytest.raises(RuntimeError):
        F.max_pool2d(tg.zeros((1, 1, 4, 4)), size)


def test_the_private_maps_check_sizes():
    x, w = tg.zeros((1, 2, 5, 5)), tg.zeros((3, 2, 3, 3))
    window = ([1, 1], [0, 0], [1, 1], 1)
    with pytest.raises(RuntimeError, match="does not fit"):
        tg.zeros((1, 4, 3, 3))._conv_input_grad(w, (1, 2, 5, 5), *window)
    with pytest.raises(RuntimeError, match="does not fit"):
        tg.zeros((2, 3, 3, 3))._conv_weight_grad(x, (3, 2, 3, 3), *window)


def test_max_pool_propagates_nan_and_ignores_padding():
    x = tg.full((1, 1, 3, 3), -5.0)
    x[0, 0, 1, 1] = float("nan")
    out = F.max_pool2d(x, 2, 1)
    assert bool(tg.isnan(out).all())
    assert F.max_pool2d(tg.full((1, 1, 2, 2), -5.0), 2, 2, 1).max().item() == -5


def test_max_pool_gives_indices_on_request():
    x = tg.arange(16.0).reshape(1, 1, 4, 4)
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    assert values.flatten().tolist() == [5, 7, 13, 15]
    assert indices.flatten().tolist() == [5, 7, 13, 15]
    assert isinstance(F.max_pool2d(x, 2), tg.Tensor)


def test_indices_outside_the_plane_are_refused():
    with pytest.raises(RuntimeError, match="max index"):
        tg.zeros((1, 2))._max_pool_gather(tg.tensor([[0, 2]]), 1)
    with pytest.raises(RuntimeError, match="max index"):
        tg.zeros((1, 2))._max_pool_backward(tg.tensor([[-1, 0]]), (1, 2), 1)


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (7, 7), (14, 14), (9, 40), (150, 200)], ids=str)
@pytest.mark.parametrize("kernel, stride, dilation", [(3, 1, 1), (3, 2, 1), (2, 3, 2), (7, 2, 1), (5, 1, 3)])
def test_planes_one_by_one_equal_the_definition(size, kernel, stride, dilation):
    padding = dilation * (kernel - 1) // 2 + (kernel == 2)
    x, w = randn(2, 3, *size).requires_grad_(), randn(3, 1, kernel, kernel).requires_grad_()
    window = {"stride": stride, "padding": padding, "dilation": dilation}
    y = F.conv2d(x, w, groups=3, **window)
    want = _reference(x.detach().numpy(), w.detach().numpy(), groups=3, **window)
    assert abs(y.detach().numpy() - want).max() < 1e-10
    # the same as in a group of two channels, of which one is zero: that way has other loops
    wide = tg.stack([x, tg.zeros_like(x)], 2).reshape(2, 6, *size).detach().requires_grad_()
    both = tg.cat([w, tg.zeros_like(w)], 1).detach().requires_grad_()
    grad = tg.randn_like(y)
    grads = tg.autograd.grad(y, (x, w), grad)
    others = tg.autograd.grad(F.conv2d(wide, both, groups=3, **window), (wide, both), grad)
    assert abs(grads[0] - others[0][:, ::2]).max() < 1e-10
    assert abs(grads[1] - others[1][:, :1]).max() < 1e-9


def test_the_weight_gradient_of_planes_reads_only_its_windows():
    x, w = tg.ones((1, 1, 4, 10)), tg.ones((1, 1, 1, 3)).requires_grad_()
    x[..., -1] = float("nan")  # only the last tap reaches the last column
    (grad,) = tg.autograd.grad(F.conv2d(x, w).sum(), (w,))
    assert grad.isnan().flatten().tolist() == [False, False, True]


@pytest.mark.parametrize("kernel, stride, dilation", [(3, 1, 1), (4, 2, 1), (2, 1, 64), (20, 3, 1)])
def test_parts_of_a_long_row_equal_the_definition(kernel, stride, dilation):
    x, w = randn(2, 5, 700).requires_grad_(), randn(9, 5, kernel).requires_grad_()
    y = F.conv1d(x, w, stride=stride, padding=3, dilation=dilation)
    want = _reference(x.detach().numpy(), w.detach().numpy(), stride=stride, padding=3, dilation=dilation)
    assert abs(y.detach().numpy() - want).max() < 1e-10
    grad = tg.randn_like(y)
    found = tg.autograd.grad(y, (x, w), grad)
    # as images of two rows, of which one is zero, rows are not cut
    x2, w2 = tg.stack([x, tg.zeros_like(x)], 2).detach().requires_grad_(), w.detach().unsqueeze(2).requires_grad_()
    y2 = F.conv2d(x2, w2, stride=(1, stride), padding=(0, 3), dilation=(1, dilation))
    others = tg.autograd.grad(y2, (x2, w2), tg.stack([grad, tg.zeros_like(grad)], 2))
    assert abs(found[0] - others[0][:, :, 0]).max() < 1e-10
    assert abs(found[1] - others[1][:, :, 0]).max() < 1e-9


@pytest.mark.parametrize("kernel", [1, 3])
def test_few_positions_give_the_bits_of_many(kernel):
    """For a few positions the weights are read where they lie."""
    x, w = randn(9, 24, 7, 7, dtype=tg.float32), randn(16, 24, kernel, kernel, dtype=tg.float32)
    many = F.conv2d(x, w, padding=kernel // 2)
    assert all(bool((F.conv2d(one, w, padding=kernel // 2) == want).all()) for one, want in zip(x, many))


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("batch", [2, 5, 8, 17])
@pytest.mark.parametrize("height, width", [(7, 7), (4, 4), (3, 6), (13, 13), (1, 33), (17, 1)])
def test_images_that_share_vectors_give_the_bits_of_each_alone(height, width, batch, dtype):
    """Positions of all images lie in a row where fewer lanes are empty then; 70 channels are summed in parts."""
    x, w, b = (randn(*size, dtype=dtype) for size in ((batch, 70, height, width), (21, 70, 3, 3), (21,)))
    alone = [F.conv2d(one[None], w, b, padding=1)[0] for one in x]
    assert bool((F.conv2d(x, w, b, padding=1) == tg.stack(alone)).all())
    want = F.conv2d(x.double(), w.double(), b.double(), padding=1)
    assert tg.allclose(tg.stack(alone).double(), want, rtol=0, atol=1e-3 if dtype == tg.float32 else 1e-11)


@pytest.mark.parametrize(
    "image, weight, stride",
    [
        ((2, 24, 28, 28), (32, 24, 1, 1), 1),
        ((3, 8, 32, 48), (40, 8, 4, 6), (4, 6)),
        ((3, 40, 1, 99), (50, 40, 1, 2), (1, 2)),
        ((170, 24, 5, 5), (40, 24, 2, 2), 2),
        ((4, 64, 5, 7), (64, 64, 5, 7), 3),
    ],
)
def test_windows_side_by_side_are_products(image, weight, stride):
    """Beside the same windows as one of two groups, which are no product; and with the same bits for two threads."""
    rng = np.random.default_rng(0)
    x, w, b = (tg.tensor(rng.standard_normal(s)) for s in (image, weight, weight[:1]))
    whole = [tg.cat([t, tg.zeros_like(t)], d).requires_grad_() for t, d in ((x, 1), (w, 0), (b, 0))]
    plain = [t.clone().requires_grad_() for t in (x, w, b)]
    got, grouped = tg.conv2d(*plain, stride), tg.conv2d(*whole, stride, groups=2)[:, : weight[0]]
    np.testing.assert_allclose(got.detach().numpy(), grouped.detach().numpy(), atol=1e-10)
    seed = tg.tensor(rng.standard_normal(tuple(got.shape)))
    found = tg.autograd.grad(got, plain, seed, retain_graph=True)
    for a, b, n in zip(found, tg.autograd.grad(grouped, whole, seed), (image[1], weight[0], weight[0])):
        b = b[:, :n] if a.dim() == 4 and a.shape == x.shape else b[:n]
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-10)
    before = tg.get_num_threads()
    try:
        for threads in (1, 2):
            tg.set_num_threads(threads)
            again = [tg.conv2d(*plain, stride), *tg.autograd.grad(got, plain, seed, retain_graph=True)]
            assert all(tg.equal(a, b) for a, b in zip(again, [got, *found]))
    finally:
        tg.set_num_threads(before)


@pytest.mark.parametrize(
    "image, weight, options",
    [
        ((9, 64, 3, 3), (64, 32, 5, 4), {"stride": (2, 3)}),
        ((2, 64, 9, 11), (64, 24, 4, 4), {"stride": 2, "padding": 1}),
        ((1, 40, 12, 12), (40, 24, 3, 3), {"stride": 2, "padding": 3, "dilation": 2, "output_padding": 1}),
    ],
)
def test_transposed_convolution_with_a_step_is_the_sum_of_its_groups(image, weight, options):
    """Columns of one product, beside groups of channels too few for one; the same bits for two threads."""
    rng = np.random.default_rng(0)
    x, w = tg.tensor(rng.standard_normal(image)), tg.tensor(rng.standard_normal(weight))
    got = tg.conv_transpose2d(x, w, **options)
    each = image[1] // 8
    parts = sum(tg.conv_transpose2d(*pair, **options) for pair in zip(x.split(each, 1), w.split(each)))
    np.testing.assert_allclose(got.numpy(), parts.numpy(), atol=1e-10)
    before = tg.get_num_threads()
    try:
        for threads in (1, 2):
            tg.set_num_threads(threads)
            assert tg.equal(tg.conv_transpose2d(x, w, **options), got)
    finally:
        tg.set_num_threads(before)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "more", "dilation"),
    [(1, 1, 0, 1), (2, 1, 1, 1), (2, 3, 1, 2), (1, 2, 1, 2), (3, 0, 2, 1), (2, 5, 0, 1), (1, 3, 0, 1)],
)
def test_padding_of_a_transposed_convolution_leaves_its_edges_out(dims, stride, padding, more, dilation):
    """Also more of it than the window is wide, and output padding that holds one window more."""
    rng = np.random.default_rng(dims)
    x, w, b = [tg.tensor(rng.standard_normal(s)) for s in ((2, 4, *(9, 8, 7)[:dims]), (4, 3, *[3] * dims), 6)]
    transposed = getattr(tg, f"conv_transpose{dims}d")
    whole = np.pad(transposed(x, w, None, stride, 0, 0, 2, dilation).numpy(), [(0, 0)] * 2 + [(0, more)] * dims)
    part = tuple(slice(padding, n - padding) for n in whole.shape[2:])
    wanted = whole[(..., *part)] + b.numpy().reshape(-1, *[1] * dims)
    got = transposed(x, w, b, stride, padding, more, 2, dilation)
    np.testing.assert_allclose(got.numpy(), wanted, atol=1e-12)
    pulled = tg.ones(got.shape, dtype=tg.float64)
    slope = tg.func.grad(lambda x: (transposed(x, w, b, stride, padding, more, 2, dilation) * pulled).sum())(x)
    step = tg.tensor(rng.standard_normal(x.shape))
    moved = transposed(x + step, w, b, stride, padding, more, 2, dilation) - got
    assert (slope * step).sum().item() == pytest.approx(moved.sum().item())


def test_a_transposed_convolution_of_halves_rounds_once():
    rng = np.random.default_rng(0)
    for dtype in (tg.float16, tg.bfloat16):
        x, w, b = [tg.tensor(rng.standard_normal(s)).to(dtype) for s in ((2, 4, 9), (4, 3, 4), 3)]
        got = tg.conv_transpose1d(x, w, b, 2, 1)
        wide = tg.conv_transpose1d(x.float(), w.float(), b.float(), 2, 1)
        assert tg.equal(got, wide.to(dtype))


@pytest.mark.parametrize("outputs, groups", [(1, 1), (3, 1), (4, 1), (9, 1), (6, 2)])
@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (2, 1, 1), (1, 3, 2), (3, 2, 1)])
def test_integers_equal_the_definition(outputs, groups, stride, padding, dilation):
    draw = np.random.default_rng(outputs)
    for width in (7, 16, 45, 70):
        x, w = draw.integers(-99, 99, (2, 4, 7, width)), draw.integers(-99, 99, (outputs, 4 // groups, 3, 3))
        bias, options = draw.integers(-99, 99, outputs), {"stride": stride, "padding": padding, "dilation": dilation}
        want = _reference(x, w, bias, **options, groups=groups)
        got = F.conv2d(tg.tensor(x), tg.tensor(w), tg.tensor(bias), **options, groups=groups)
        assert got.dtype is tg.int64
        np.testing.assert_array_equal(got.numpy(), want)
    big = tg.tensor([[[2**62, 2**62 + 1, 5]]])  # what does not fit 64 bits wraps
    assert F.conv1d(big, tg.tensor([[[4, 1]]])).tolist() == [[[2**62 + 1, 9]]]


@pytest.mark.parametrize("groups, channels", [(1, 4), (4, 4), (2, 4)])
def test_gradients_of_convolutions_without_positions_are_zeros(groups, channels):
    """No window fits, or there is no image: the gradient of what was there is zero."""
    weight = tg.ones(4, channels // groups, 2)
    for batch in (0, 2):
        grad = tg.nn.grad.conv1d_input((batch, channels, 1), weight, tg.ones(batch, 4, 0), groups=groups)
        assert grad.shape == (batch, channels, 1) and not grad.any()
        found = tg.nn.grad.conv1d_weight(tg.ones(batch, channels, 1), weight.shape, tg.ones(batch, 4, 0), groups=groups)
        assert found.shape == weight.shape and not found.any()


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("kernel, stride, size", [(1, 2, 2), (1, 3, 3), (2, 2, 3), (2, 3, 4)])
def test_elements_that_the_only_window_leaves_out_have_no_gradient(kernel, stride, size, dtype):
    for images, channels, outputs in ((1, 512, 512), (2, 256, 512), (8, 64, 128)):
        x = tg.ones(images, channels, size, size, dtype=dtype, requires_grad=True)
        w = tg.full((outputs, channels, kernel, kernel), 0.5, dtype=dtype)
        F.conv2d(x, w, stride=stride).sum().backward()
        wanted = tg.zeros_like(x)
        wanted[..., :kernel, :kernel] = outputs / 2
        assert x.grad.equal(wanted)
