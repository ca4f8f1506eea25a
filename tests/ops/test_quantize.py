"""Fake quantization: the steps, which way ties go, and gradients that pass the steps by."""

import numpy as np
import pytest

import tinygrad_ext as tg

DTYPES = [tg.float32, tg.float64, tg.float16, tg.bfloat16]
EDGES = [-1.0, -0.5625, -0.25, -0.125, 0.0, 0.125, 0.375, 0.5, 1.0, float("inf"), -float("inf"), float("nan")]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_steps_of_a_whole_zero_point(dtype):
    """Halves go to the even one before the zero point is added; a nan is the least step."""
    x = tg.tensor(EDGES, dtype=dtype)
    found = tg.fake_quantize_per_tensor_affine(x, 0.25, 1, -1, 3)
    assert found.dtype is dtype
    assert found.tolist() == [-0.5, -0.5, -0.25, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5, -0.5, -0.5]


def test_a_floating_zero_point_is_added_before_rounding():
    x = tg.tensor([[0.125, 0.125]])
    scale = tg.tensor([0.25, 0.25])
    whole = tg.fake_quantize_per_channel_affine(x, scale, tg.tensor([1, 0], dtype=tg.int32), 1, 0, 5)
    other = tg.fake_quantize_per_channel_affine(x, scale, tg.tensor([1.0, 0.5]), 1, 0, 5)
    assert whole.tolist() == [[0.0, 0.0]] and other.tolist() == [[0.25, 0.125]]


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
def test_the_gradient_is_one_where_no_step_was_cut(dtype):
    x = tg.tensor(EDGES, dtype=dtype, requires_grad=True)
    found = tg.fake_quantize_per_tensor_affine(x, 0.25, 1, -1, 3)
    (slope,) = tg.autograd.grad(found.sum(), x)
    assert slope.tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    scale, zero_point = tg.tensor(0.25), tg.tensor(1, dtype=tg.int32)
    _, moved = tg.func.jvp(
        lambda y: tg.fake_quantize_per_tensor_affine(y, scale, zero_point, -1, 3), (x.detach(),), (x.detach() * 0 + 2,)
    )
    assert moved[:9].tolist() == [0, 2, 2, 2, 2, 2, 2, 2, 0]


def test_the_gradient_is_linear_so_that_a_second_one_is_none():
    x = tg.linspace(-1, 1, 7, requires_grad=True)
    (slope,) = tg.autograd.grad((tg.fake_quantize_per_tensor_affine(x, 0.5, 0, -1, 1) ** 2).sum(), x, create_graph=True)
    (second,) = tg.autograd.grad(slope.sum(), x)
    assert second.tolist() == [0.0 if abs(v) > 0.75 else 2.0 for v in x.tolist()]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_each_channel_has_its_own_scale(axis):
    x = tg.arange(24 * 300.0).sin().reshape(2, 3 * 100, 12)
    n = x.shape[axis]
    scale, zero_point = tg.arange(1.0, n + 1) / 64, tg.arange(n, dtype=tg.int32) % 3
    found = tg.fake_quantize_per_channel_affine(x, scale, zero_point, axis, 0, 40)
    for k in range(n):
        want = tg.fake_quantize_per_tensor_affine(x.select(axis, k), float(scale[k]), int(zero_point[k]), 0, 40)
        assert found.select(axis, k).equal(want)


def test_scales_of_samples_go_through_vmap():
    x = tg.arange(24.0).sin().reshape(2, 3, 4)
    scale, zero_point = tg.tensor([[0.5, 0.25, 0.125], [0.1, 0.2, 0.3]]), tg.tensor([0, 1, 2], dtype=tg.int32)

    def call(y, s):
        return tg.fake_quantize_per_channel_affine(y, s, zero_point, 0, 0, 5)

    want = tg.stack([call(*a) for a in zip(x, scale)])
    assert tg.func.vmap(call)(x, scale).equal(want)
    assert tg.func.vmap(call, (None, 0))(x[0], scale).equal(tg.stack([call(x[0], s) for s in scale]))
    assert tg.func.vmap(call, (0, None))(x, scale[0]).equal(tg.stack([call(y, scale[0]) for y in x]))
    whole = tg.func.vmap(lambda y, s: tg.fake_quantize_per_tensor_affine(y, s, tg.tensor(1), 0, 5))(x, scale[:, 0])
    assert whole.equal(
        tg.stack([tg.fake_quantize_per_tensor_affine(y, float(s), 1, 0, 5) for y, s in zip(x, scale[:, 0])])
    )


def test_layouts_and_threads_give_the_same_bits():
    x = tg.arange(60_000.0).cos().reshape(300, 200)
    want = tg.fake_quantize_per_tensor_affine(x, 0.01, 3, -20, 90)
    assert tg.fake_quantize_per_tensor_affine(x.t().contiguous().t(), 0.01, 3, -20, 90).equal(want)
    step = np.clip(np.rint(x.numpy() * (np.float32(1) / np.float32(0.01))) + 3, -20, 90) - 3
    np.testing.assert_array_equal(want.numpy(), step * np.float32(0.01))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_order_of_dimensions_is_kept(dtype):
    x = tg.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 4, 1, 1, 5))).to(dtype)
    scale, zero_point = tg.tensor([0.25, 0.5, 0.125]), tg.tensor([0, 1, 2], dtype=tg.int32)
    for turned in (x.permute(0, 2, 3, 4, 5, 1), x.permute(5, 1, 2, 3, 4, 0), x.transpose(0, 5)[:, :, ::2]):
        axis = turned.shape.index(3)
        found = tg.fake_quantize_per_channel_affine(turned, scale, zero_point, axis, -3, 3)
        one = tg.fake_quantize_per_tensor_affine(turned, 0.25, 1, -3, 3)
        assert found.stride() == one.stride() == tg.empty_like(turned).stride()
        assert found.equal(tg.fake_quantize_per_channel_affine(turned.contiguous(), scale, zero_point, axis, -3, 3))
        assert one.equal(tg.fake_quantize_per_tensor_affine(turned.contiguous(), 0.25, 1, -3, 3))
        assert tg.fake_quantize_per_tensor_affine(turned.to("meta"), 0.25, 1, -3, 3).stride() == one.stride()
    assert tg.fake_quantize_per_tensor_affine(x[:1].expand_as(x), 0.25, 1, -3, 3).is_contiguous()
