"""Rules of the convolution of volumes that the sweep over the op table cannot know."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F
from tinygrad_ext.ops.conv import _reference
from tinygrad_ext.ops.transposed import _transposed_reference


def randn(*shape, dtype=tg.float64):
    return tg.randn(shape, dtype=dtype)


def by_planes(x, w, stride, padding):
    """conv3d as a sum of convolutions of images, one for each tap plane: what the derivatives are measured by."""
    x = F.pad(x, [padding] * 6)
    depth = (x.shape[2] - w.shape[2]) // stride + 1
    total = 0
    for v in range(w.shape[2]):
        planes = x[:, :, v : v + (depth - 1) * stride + 1 : stride].transpose(1, 2).flatten(0, 1)
        total = total + F.conv2d(planes, w[:, :, v], stride=stride)
    return total.unflatten(0, (x.shape[0], depth)).transpose(1, 2)


@pytest.mark.parametrize(
    "size", [(1, 1, 1), (2, 2, 2), (3, 4, 4), (5, 7, 7), (2, 8, 8), (9, 5, 33), (3, 30, 30)], ids=str
)
@pytest.mark.parametrize("channels, outputs", [(1, 1), (1, 17), (3, 8), (30, 9), (30, 21)])
def test_every_block_shape_equals_the_definition(size, channels, outputs):
    x, w = randn(5, channels, *size), randn(outputs, channels, 3, 3, 3)
    want = _reference(x.numpy(), w.numpy(), padding=1)
    assert abs(F.conv3d(x, w, padding=1).numpy() - want).max() < 1e-10


@pytest.mark.parametrize("padding", [0, 1, 4], ids=str)
@pytest.mark.parametrize("stride", [1, 2], ids=str)
@pytest.mark.parametrize("channels, outputs", [(2, 1), (3, 20)])
def test_derivatives_are_those_of_images_added_up(padding, stride, channels, outputs):
    x, w = randn(3, channels, 4, 4, 5).requires_grad_(), randn(outputs, channels, 3, 3, 3).requires_grad_()
    out, want = F.conv3d(x, w, stride=stride, padding=padding), by_planes(x, w, stride, padding)
    assert out.shape == want.shape
    assert abs((out - want).detach().numpy()).max() < 1e-11
    seed = randn(*out.shape)
    for got, wanted in zip(tg.autograd.grad(out, (x, w), seed), tg.autograd.grad(want, (x, w), seed)):
        assert abs((got - wanted).numpy()).max() < 1e-10


def test_planes_of_padding_alone_give_the_bias_and_their_taps_no_gradient():
    x, w, b = randn(2, 3, 2, 4, 4), randn(5, 3, 2, 3, 3), randn(5)
    out = F.conv3d(x, w, b, padding=(3, 1, 1))
    for z in (0, 1, 5, 6):
        assert (out[:, :, z] == b.view(1, 5, 1, 1)).all()
    w, b = randn(3, 1, 1, 3, 3), randn(3)
    out = F.conv3d(x, w, b, padding=(2, 1, 1), groups=3)
    assert (out[:, :, [0, 1, 4, 5]] == b.view(1, 3, 1, 1, 1)).all()
    out = F.conv3d(
        randn(2, 8, 1, 8, 3), randn(8, 1, 1, 1, 2), b := randn(8), stride=(3, 3, 1), padding=(1, 4, 4), groups=8
    )
    assert (out == b.view(1, 8, 1, 1, 1)).all()
    for outputs in (1, 2, 20):
        w = randn(outputs, 3, 5, 1, 1).requires_grad_()
        F.conv3d(randn(2, 3, 1, 4, 4), w, padding=(2, 0, 0)).sum().backward()
        assert (w.grad[:, :, [0, 1, 3, 4]] == 0).all()
        assert (w.grad[:, :, 2] != 0).all()


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize("size, stride", [((6, 8, 8), 1), ((6, 8, 8), 2), ((4, 4, 4), 1), ((3, 2, 2), 1)], ids=str)
def test_bits_depend_neither_on_the_batch_nor_on_the_threads(dtype, size, stride):
    x, w = randn(6, 32, *size, dtype=dtype), randn(24, 32, 3, 3, 3, dtype=dtype)
    before = tg.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            tg.set_num_threads(threads)
            found.append(F.conv3d(x, w, stride=stride, padding=1))
            back = F.conv_transpose3d(found[-1], w, stride=stride, padding=1)
            found[-1] = (found[-1], back)
        for out, back in found[1:]:
            assert out.equal(found[0][0])
            assert back.equal(found[0][1])
        alone = tg.cat([F.conv3d(image, w, stride=stride, padding=1) for image in x.split(1)])
        assert alone.equal(found[0][0])
    finally:
        tg.set_num_threads(before)


def test_integers_are_exact_and_complex_numbers_are_their_parts():
    x, w = tg.randint(-9, 9, (2, 4, 4, 5, 20)), tg.randint(-9, 9, (6, 2, 3, 2, 3))
    got = F.conv3d(x, w, stride=(2, 1, 1), padding=(2, 1, 0), groups=2)
    wide = F.conv3d(x.double(), w.double(), stride=(2, 1, 1), padding=(2, 1, 0), groups=2)
    assert got.dtype == tg.int64
    assert (got.double() == wide).all()
    a, b, u, v = randn(1, 2, 3, 4, 4), randn(1, 2, 3, 4, 4), randn(3, 2, 2, 2, 2), randn(3, 2, 2, 2, 2)
    got = F.conv3d(tg.complex(a, b), tg.complex(u, v), padding=1)
    real = F.conv3d(a, u, padding=1) - F.conv3d(b, v, padding=1)
    imag = F.conv3d(a, v, padding=1) + F.conv3d(b, u, padding=1)
    assert abs((got - tg.complex(real, imag)).numpy()).max() < 1e-12


@pytest.mark.parametrize("kernel", [(2, 4, 4), (1, 1, 1), (3, 2, 2)], ids=str)
def test_windows_apart_from_each_other_equal_the_definition(kernel):
    x, w = randn(2, 16, 6, 9, 8).requires_grad_(), randn(64, 16, *kernel).requires_grad_()
    out = F.conv3d(x, w, stride=kernel)
    assert abs(out.detach().numpy() - _reference(x.detach().numpy(), w.detach().numpy(), stride=kernel)).max() < 1e-10
    assert tg.autograd.gradcheck(lambda w: F.conv3d(x.detach(), w, stride=kernel), w, fast_mode=True)
    assert tg.autograd.gradcheck(lambda x: F.conv3d(x, w.detach(), stride=kernel), x, fast_mode=True)


@pytest.mark.parametrize("stride, padding, more", [(2, 1, 0), (2, 0, 1), (3, 2, 2), (1, 1, 0), (4, 0, 3)], ids=str)
def test_transposed_equals_the_definition(stride, padding, more):
    x, w, b = randn(2, 16, 3, 5, 4), randn(16, 18, 4, 4, 4), randn(18)
    got = F.conv_transpose3d(x, w, b, stride, padding, more).numpy()
    want = _transposed_reference(3)(x.numpy(), w.numpy(), b.numpy(), stride, padding, more)
    assert abs(got - want).max() < 1e-10
    assert abs(F.conv_transpose3d(x.float(), w.float(), b.float(), stride, padding, more).numpy() - want).max() < 1e-3


def test_second_derivatives_and_forward_mode():
    x, w = randn(1, 2, 3, 3, 4).requires_grad_(), randn(2, 2, 2, 3, 2).requires_grad_()

    def run(x, w):
        return F.conv3d(x, w, stride=(2, 1, 1), padding=(1, 1, 0), dilation=(1, 1, 2))

    assert tg.autograd.gradcheck(run, (x, w), check_forward_ad=True)
    assert tg.autograd.gradgradcheck(run, (x, w))


def test_samples_of_vmap_fold_into_volumes():
    x, w = randn(3, 2, 4, 3, 4, 4), randn(3, 5, 4, 2, 3, 3)
    for got, each in (
        (tg.vmap(F.conv3d)(x, w), [F.conv3d(a, b) for a, b in zip(x, w)]),
        (tg.vmap(F.conv3d, in_dims=(0, None))(x, w[0]), [F.conv3d(a, w[0]) for a in x]),
        (tg.vmap(F.conv3d, in_dims=(None, 0))(x[0], w), [F.conv3d(x[0], b) for b in w]),
    ):
        assert np.allclose(got.numpy(), tg.stack(each).numpy(), rtol=0, atol=1e-12)
