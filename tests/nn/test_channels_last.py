"""Layers of channels_last images and volumes: their results lie so too, with the bits that row-major ones have."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.nn import functional as F

IMAGES, VOLUMES = (2, 8, 9, 12), (2, 8, 4, 5, 6)


def of(*shape):
    tg.manual_seed(len(shape))
    return tg.randn(*shape)


def norm(x, training):
    return F.batch_norm(x, of(8), of(8).abs(), of(8), of(8), training=training)


OPS = {
    "max_pool": (IMAGES, lambda x: F.max_pool2d(x, 2)),
    "max_pool_with_places": (IMAGES, lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[0]),
    "max_pool3d": (VOLUMES, lambda x: F.max_pool3d(x, 2)),
    "avg_pool": (IMAGES, lambda x: F.avg_pool2d(x, 3, 2, 1)),
    "lp_pool": (IMAGES, lambda x: F.lp_pool2d(x, 2, 2)),
    "adaptive_max_pool": (IMAGES, lambda x: F.adaptive_max_pool2d(x, (4, 5))),
    "adaptive_avg_pool": (IMAGES, lambda x: F.adaptive_avg_pool2d(x, (4, 5))),
    "batch_norm": (IMAGES, lambda x: norm(x, False)),
    "batch_norm_training": (IMAGES, lambda x: norm(x, True)),
    "batch_norm3d": (VOLUMES, lambda x: norm(x, False)),
    "batch_norm3d_training": (VOLUMES, lambda x: norm(x, True)),
    "group_norm": (IMAGES, lambda x: F.group_norm(x, 4, of(8), of(8))),
    "group_norm3d": (VOLUMES, lambda x: F.group_norm(x, 2)),
    "conv": (IMAGES, lambda x: F.conv2d(x, of(4, 8, 3, 3), of(4), padding=1)),
    "conv_of_one_tap": (IMAGES, lambda x: F.conv2d(x, of(4, 8, 1, 1))),
    "conv_depthwise": (IMAGES, lambda x: F.conv2d(x, of(8, 1, 3, 3), groups=8)),
    "conv_transposed": (IMAGES, lambda x: F.conv_transpose2d(x, of(8, 4, 3, 3), stride=2)),
    "conv3d": (VOLUMES, lambda x: F.conv3d(x, of(4, 8, 3, 3, 3), padding=1)),
    "max_unpool": (IMAGES, lambda x: F.max_unpool2d(*F.max_pool2d(x, 3, return_indices=True), 3)),
    "pad": (IMAGES, lambda x: F.pad(x, [1, 2, 0, 1], value=2.0)),
    "pad_reflect": (IMAGES, lambda x: F.pad(x, [1, 2, 0, 1], mode="reflect")),
    "cat": (IMAGES, lambda x: tg.cat([x, x * 2], 1)),
    "roll": (IMAGES, lambda x: x.roll((1, 2), (1, 3))),
    "pixel_shuffle": (IMAGES, lambda x: F.pixel_shuffle(x, 2)),
    "pixel_unshuffle": (IMAGES, lambda x: F.pixel_unshuffle(x, 3)),
    "channel_shuffle": (IMAGES, lambda x: F.channel_shuffle(x, 4)),
    "nearest": (IMAGES, lambda x: F.interpolate(x, (13, 5))),
    "bilinear": (IMAGES, lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "bilinear_smaller": (IMAGES, lambda x: F.interpolate(x, (3, 4), mode="bilinear", align_corners=True)),
    "bicubic_smooth": (IMAGES, lambda x: F.interpolate(x, (3, 4), mode="bicubic", antialias=True)),
    "area": (IMAGES, lambda x: F.interpolate(x, (3, 4), mode="area")),
    "trilinear": (VOLUMES, lambda x: F.interpolate(x, scale_factor=2, mode="trilinear")),
}
# gradients that are put together by ops of other shapes are row-major
PLAIN_GRADIENTS = {"conv3d", "max_unpool", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"}


def inside(x):
    return tg.channels_last if x.dim() == 4 else tg.channels_last_3d


def rows(x):
    return x.clone(memory_format=tg.contiguous_format)


def both(run, x):
    """Result and gradient of a row-major tensor and of the same as channels_last."""
    made = []
    for given in (x, x.contiguous(memory_format=inside(x))):
        leaf = given.detach().requires_grad_()
        y = run(leaf)
        weights = tg.arange(y.numel(), dtype=y.dtype).view(y.shape) % 7 - 3
        if given is not x:
            weights = weights.contiguous(memory_format=inside(x))
        made.append((y.detach(), tg.autograd.grad(y, leaf, weights)[0]))
    return made


@pytest.mark.parametrize("name", OPS)
def test_results_and_gradients_keep_the_format_and_the_bits(name):
    shape, run = OPS[name]
    (y, grad), (laid, laid_grad) = both(run, of(*shape))
    assert y.is_contiguous() and laid.is_contiguous(memory_format=inside(laid)) and not laid.is_contiguous()
    assert tg.equal(y, rows(laid)) and tg.equal(grad, rows(laid_grad))
    assert name in PLAIN_GRADIENTS or laid_grad.is_contiguous(memory_format=inside(laid))


@pytest.mark.parametrize("name", ["max_pool", "adaptive_avg_pool", "batch_norm", "bilinear", "cat", "conv", "pad"])
def test_windows_with_gaps_are_taken_as_channels_last_too(name):
    shape, run = OPS[name]
    n, channels, height, width = shape
    wide = of(n, channels, 2 * height, width).contiguous(memory_format=tg.channels_last)
    more = of(n, 2 * channels, height, width).contiguous(memory_format=tg.channels_last)
    for narrow in (wide[:, :, ::2], more[:, ::2], more[:, :channels]):
        y = run(narrow)
        assert y.is_contiguous(memory_format=tg.channels_last) and tg.equal(run(rows(narrow)), rows(y))
    assert run(wide[:, :1].expand(n, channels, -1, -1)[:, :, ::2]).is_contiguous()


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16, tg.float64])
@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "bilinear", "pixel_shuffle", "cat"])
def test_other_dtypes_keep_it(name, dtype):
    shape, run = OPS[name]
    x = of(*shape).to(dtype)
    y = run(x.contiguous(memory_format=tg.channels_last))
    assert y.is_contiguous(memory_format=tg.channels_last) and tg.equal(run(x), rows(y))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(4, 5), (20, 30)])
def test_bytes_that_are_resized_keep_their_order(mode, size):
    x = (of(*IMAGES) * 40 + 100).to(tg.uint8)
    y, laid = [F.interpolate(t, size, mode=mode) for t in (x, x.contiguous(memory_format=tg.channels_last))]
    assert y.is_contiguous() and laid.is_contiguous(memory_format=tg.channels_last) and tg.equal(y, laid)


def test_a_single_volume_and_stacks_of_images_are_no_images():
    volume = of(8, 4, 5, 6).contiguous(memory_format=tg.channels_last)
    for run in (lambda x: F.conv3d(x, of(4, 8, 3, 3, 3)), lambda x: F.avg_pool3d(x, 2), lambda x: F.max_pool3d(x, 2)):
        assert tg.equal(run(volume), run(rows(volume)))
    stacks = of(2, 3, 4, 6, 6).contiguous(memory_format=tg.channels_last_3d)
    for run in (lambda x: F.pixel_shuffle(x, 2), lambda x: F.pixel_unshuffle(x, 3), lambda x: F.channel_shuffle(x, 3)):
        assert tg.equal(run(stacks), run(rows(stacks)))


def test_what_is_both_stays_row_major():
    one_place = of(2, 8, 1, 1)
    assert F.interpolate(one_place, (2, 3)).is_contiguous()
    assert F.max_pool2d(of(2, 1, 8, 8), 2).is_contiguous()


def test_a_weight_that_lies_so_gives_images_that_do():
    weight = of(4, 8, 3, 3).contiguous(memory_format=tg.channels_last)
    assert F.conv2d(of(*IMAGES), weight).is_contiguous(memory_format=tg.channels_last)
    assert F.conv2d(of(*IMAGES).double(), weight.double()).is_contiguous(memory_format=tg.channels_last)


@pytest.mark.parametrize("run", [F.conv_transpose3d, F.conv3d])
def test_volumes_lie_as_the_input_or_the_weight(run):
    x, weight = of(2, 3, 4, 5, 6), of(3, 3, 2, 2, 2)
    laid = [t.contiguous(memory_format=tg.channels_last_3d) for t in (x, weight)]
    for given in ((laid[0], weight), (x, laid[1])):
        y = run(*given)
        assert y.is_contiguous(memory_format=tg.channels_last_3d) and tg.equal(y, run(x, weight))
    assert run(x, weight).is_contiguous()


def test_stacked_images_lie_each_as_before():
    x = of(*IMAGES).contiguous(memory_format=tg.channels_last)
    y = tg.stack([x, -x])
    assert all(part.is_contiguous(memory_format=tg.channels_last) for part in y)
    assert tg.equal(y, tg.stack([rows(x), rows(-x)])) and tg.stack([x, x], 1).is_contiguous()
    out = tg.empty(2, *x.shape)
    assert tg.stack([x, -x], out=out) is out and out.is_contiguous() and tg.equal(out, y)


def test_a_module_goes_to_a_memory_format():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 5, 3, bias=False))
    x = of(2, 3, 9, 8)
    before, weight = module(x), module[0].weight
    module(x).sum().backward()
    assert module.to(memory_format=tg.channels_last) is module and module[0].weight is weight
    for layer in (module[0], module[2]):
        assert layer.weight.is_contiguous(memory_format=tg.channels_last) and not layer.weight.is_contiguous()
    assert weight.grad.is_contiguous(memory_format=tg.channels_last) and not weight.grad.is_contiguous()
    tg.testing.assert_close(module.eval()(x), module.to(memory_format=tg.contiguous_format)(x), rtol=0, atol=0)
    tg.testing.assert_close(module.train().to(memory_format=tg.channels_last)(x), before)
    assert module(x).is_contiguous(memory_format=tg.channels_last)
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        nn.Conv3d(2, 2, 2).to(memory_format=tg.channels_last)


@pytest.mark.parametrize("laid", [False, True])
@pytest.mark.parametrize("name", ["max_pool", "relu", "conv"])
def test_the_gradient_of_a_leaf_lies_as_the_leaf(name, laid):
    weight = of(8, 8, 3, 3)
    run = {"max_pool": lambda x: F.max_pool2d(x, 2), "relu": F.relu, "conv": lambda x: F.conv2d(x, weight)}[name]
    x = of(*IMAGES).contiguous(memory_format=tg.channels_last if laid else tg.contiguous_format).requires_grad_()
    grads = []
    for other in (False, True):
        x.grad = None
        y = run(x)
        y.backward(of(*y.shape).contiguous(memory_format=tg.channels_last if other else tg.contiguous_format))
        assert x.grad.stride() == x.stride()
        grads.append(x.grad)
    assert tg.equal(*grads)


def test_out_and_the_target_in_place_keep_their_own_layout():
    x = of(*IMAGES).contiguous(memory_format=tg.channels_last)
    out = tg.empty(2, 16, 9, 12)
    tg.cat([x, x], 1, out=out)
    assert out.is_contiguous() and tg.equal(out[:, :8], x)


def test_programs_that_are_traced_keep_it():
    x = of(*IMAGES).contiguous(memory_format=tg.channels_last)
    traced = tg.jit.trace(lambda x: F.max_pool2d(F.relu(norm(x, False)), 2), (x,))
    y = traced(x)
    assert y.is_contiguous(memory_format=tg.channels_last)
    assert tg.equal(rows(y), F.max_pool2d(F.relu(norm(rows(x), False)), 2))


def test_images_of_both_orders_are_stacked_in_rows():
    rows = tg.randn(1, 2, 3, 4)
    images = rows.to(memory_format=tg.channels_last)
    assert tg.stack([images, images])[0].is_contiguous(memory_format=tg.channels_last)
    for mixed in ([images, rows], [rows, images]):
        assert tg.stack(mixed).is_contiguous() and tg.stack(mixed)[1].equal(rows)


def test_a_memory_format_is_asked_for_by_itself():
    with pytest.raises(TypeError, match="to be a memory format, .* got .channels_last. of type str"):
        tg.nn.Linear(2, 2).to(memory_format="channels_last")
