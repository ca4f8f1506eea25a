"""Padding by what is there: layouts, sums of halves, signs of zeros, beside NumPy."""

import numpy as np
import pytest

import tinygrad_ext as tg

F = tg.nn.functional
KINDS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def numbers(*shape, seed=0, dtype="float32"):
    return tg.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def padded(x, pad, mode):
    around = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2]))[::-1]
    return np.pad(x, around, KINDS[mode])


@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize(
    "shape, pad", [((2, 3, 7), (2, 5)), ((2, 3, 5, 70), (3, 1, 0, 4)), ((2, 3, 4, 3, 5), (1, 2, 2, 1, 0, 3))]
)
def test_every_layout_and_dtype_gives_the_same_places(mode, shape, pad):
    x = numbers(*shape)
    wide = tg.cat([x, x], -1)
    for t in (x, wide[..., : shape[-1]], x.transpose(0, 1).contiguous().transpose(0, 1), x.mT.contiguous().mT):
        assert np.array_equal(F.pad(t, pad, mode).numpy(), padded(x.numpy(), pad, mode))
    for dtype in (tg.uint8, tg.int16, tg.int64, tg.float16, tg.float64, tg.complex64, tg.complex128):
        t = (x * 20).abs().to(dtype)
        assert np.array_equal(F.pad(t, pad, mode).numpy(), padded(t.numpy(), pad, mode))


@pytest.mark.parametrize("mode", KINDS)
def test_channels_inside_stay_there_also_where_they_are_padded(mode):
    for shape, pad in (
        ((2, 5, 6, 7), (1, 2, 3, 0)),
        ((3, 5, 6, 7), (1, 2, 3, 0, 2, 1)),
        ((2, 3, 4, 5, 6), (1, 2, 3, 0, 2, 1)),
    ):
        inside = tg.channels_last if len(shape) == 4 else tg.channels_last_3d
        x, results = numbers(*shape), []
        for t in (
            x,
            x.contiguous(memory_format=inside),
            tg.cat([x, x], 1).contiguous(memory_format=inside)[:, : shape[1]],
        ):
            t.requires_grad_()
            y = F.pad(t, pad, mode)
            y.backward(numbers(*y.shape, seed=1).contiguous(memory_format=inside if results else tg.contiguous_format))
            assert y.is_contiguous(memory_format=inside if results else tg.contiguous_format)
            results.append((y, t.grad))
        for y, grad in results[1:]:
            assert tg.equal(y, results[0][0]) and tg.equal(grad, results[0][1])


@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
def test_gradients_of_halves_are_sums_in_float32_that_are_rounded_once(mode, dtype):
    x = numbers(3, 5, 6).to(dtype).requires_grad_()
    y = F.pad(x, (4, 3, 2, 4), mode)
    grad = numbers(*y.shape, seed=2).to(dtype)
    y.backward(grad)
    wide = x.detach().float().requires_grad_()
    F.pad(wide, (4, 3, 2, 4), mode).backward(grad.float())
    assert tg.equal(x.grad, wide.grad.to(dtype))


def test_places_that_went_nowhere_get_zeros_and_signs_of_zeros_are_kept():
    x = numbers(1, 5).requires_grad_()
    F.pad(x, (-2, -1), "reflect").backward(tg.ones(1, 2))
    assert x.grad.tolist() == [[0, 0, 1, 1, 0]]
    x.grad = None
    F.pad(x, (1, 1), "replicate").backward(-tg.zeros(1, 7))
    assert tg.signbit(x.grad).all()


def test_a_gradient_has_gradients_of_its_own():
    x = numbers(2, 3, 4, dtype="float64").requires_grad_()
    for mode in KINDS:
        assert tg.autograd.gradgradcheck(lambda x, mode=mode: F.pad(x, (2, 1), mode).sin(), (x,))
        tangent = numbers(2, 3, 4, seed=3, dtype="float64")
        _, moved = tg.func.jvp(lambda x, mode=mode: F.pad(x, (2, 1), mode), (x.detach(),), (tangent,))
        assert tg.equal(moved, F.pad(tangent, (2, 1), mode))
        each = tg.func.vmap(lambda x, mode=mode: F.pad(x, (2, 1), mode))(x.detach())
        assert tg.equal(each, F.pad(x.detach(), (2, 1), mode))
