"""roi_align, roi_pool and their modules: values worked out by hand, hostile boxes, gradients."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, ops

pytest.importorskip("tgx_vision", reason="tgx-vision is not installed: pip install ./plugins/vision")

BOTH = pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=["float32", "float64"])


def ramp(height, width, dtype=tg.float32):
    """One image whose pixels are 10 * row + column: what lies between pixels is known."""
    rows, columns = tg.arange(height, dtype=dtype), tg.arange(width, dtype=dtype)
    return (10 * rows[:, None] + columns)[None, None]


@BOTH
def test_a_bin_is_the_value_at_its_middle_where_the_image_is_linear(dtype):
    rois = tg.tensor([[0, 1, 2, 5, 6]], dtype=dtype)
    pooled = ops.vision.roi_align(ramp(8, 8, dtype), rois, 1.0, 2, 2, 2)
    assert pooled.tolist() == [[[[32, 34], [52, 54]]]]
    assert pooled.dtype is dtype


def test_the_scale_turns_units_of_the_boxes_into_pixels():
    pooled = ops.vision.roi_align(ramp(8, 8), tg.tensor([[0.0, 4, 8, 20, 24]]), 0.25, 2, 2, 2)
    assert pooled.tolist() == [[[[32, 34], [52, 54]]]]


def test_samples_outside_are_zero_and_count():
    ones = tg.ones(1, 1, 4, 4)
    # two samples in each direction, at -2 and 2: one of four lies inside
    assert ops.vision.roi_align(ones, tg.tensor([[0.0, -4, -4, 4, 4]]), 1.0, 1, 1, 2).item() == 0.25


def test_pooling_takes_the_largest_pixel_and_says_where():
    pooled, argmax = ops.vision.roi_pool(ramp(4, 4), tg.tensor([[0.0, 0, 0, 3, 3], [0, 9, 9, 12, 12]]), 1.0, 2, 2)
    assert pooled.tolist() == [[[[11, 13], [31, 33]]], [[[0, 0], [0, 0]]]]
    assert argmax.tolist() == [[[[5, 7], [13, 15]]], [[[-1, -1], [-1, -1]]]]


def test_a_nan_in_a_bin_is_its_maximum():
    image = ramp(2, 2)
    image[0, 0, 0, 1] = float("nan")
    assert ops.vision.roi_pool(image, tg.tensor([[0.0, 0, 0, 1, 1]]), 1.0, 1, 1).output.isnan().all()


@BOTH
@pytest.mark.parametrize("name, more", [("roi_align", (0,)), ("roi_align", (2,)), ("roi_pool", ())])
@pytest.mark.parametrize("far", [1e5, 1e18, 1e30, 1e37])
def test_a_box_larger_than_any_image_ends_and_stays_inside(dtype, name, more, far):
    boxes = [[0, -far, -far, far, far], [0, far, far, 2 * far, 2 * far], [0, far, far, -far, -far], [0, -far, 0, 1, 1]]
    image = tg.ones(1, 2, 5, 6, dtype=dtype, requires_grad=True)
    pooled = getattr(ops.vision, name)(image, tg.tensor(boxes, dtype=dtype), 1.0, 3, 3, *more)
    pooled = pooled if isinstance(pooled, tg.Tensor) else pooled.output
    pooled.sum().backward()
    assert ((pooled >= 0) & (pooled <= 1)).all()
    assert image.grad.isfinite().all()


def test_too_many_samples_for_the_memory_are_an_error():
    with pytest.raises(MemoryError, match="no memory for the samples"):
        ops.vision.roi_align(tg.ones(1, 1, 2, 2), tg.tensor([[0.0, 0, 0, 1, 1]]), 1.0, 1, 1, 1 << 40)


@pytest.mark.parametrize("shape, regions", [((1, 0, 4, 4), 2), ((1, 2, 0, 4), 2), ((0, 2, 4, 4), 0), ((1, 2, 4, 4), 0)])
def test_empty_inputs_give_empty_or_zero_results(shape, regions):
    input, rois = tg.ones(shape, requires_grad=True), tg.zeros(regions, 5)
    for pooled in (ops.vision.roi_align(input, rois, 1.0, 2, 3, 2), ops.vision.roi_pool(input, rois, 1.0, 2, 3)[0]):
        assert pooled.shape == (regions, shape[1], 2, 3)
        assert not pooled.any()
        pooled.sum().backward()
        assert not input.grad.any()


def test_an_argmax_from_elsewhere_is_not_followed():
    with pytest.raises(IndexError, match="argmax has a place outside"):
        ops.vision.roi_pool_backward(tg.ones(1, 1, 1, 1), tg.zeros(1, 5), tg.full((1, 1, 1, 1), 99), 1, 1, 2, 2)


@pytest.mark.parametrize("name, more", [("roi_align", (2,)), ("roi_pool", ())])
def test_the_gradient_is_for_the_input_alone_and_keeps_nothing_of_it(name, more):
    input = tg.rand(1, 1, 4, 4, requires_grad=True)
    rois = tg.tensor([[0.0, 0, 0, 3, 3]], requires_grad=True)
    pooled = getattr(ops.vision, name)(input, rois, 1.0, 2, 2, *more)
    pooled = pooled if isinstance(pooled, tg.Tensor) else pooled.output
    with tg.no_grad():
        input.zero_()  # would be refused by backward had it been saved
    pooled.sum().backward()
    assert rois.grad is None
    assert input.grad.sum() == 4


def test_the_average_of_a_gradient_comes_back_whole():
    input = tg.zeros(1, 1, 9, 9, requires_grad=True)
    ops.vision.roi_align(input, tg.tensor([[0.0, 1.3, 2.1, 6.8, 7.7]]), 1.0, 3, 3, 0).sum().backward()
    assert tg.allclose(input.grad.sum(), tg.tensor(9.0))


def test_modules_come_by_name_and_take_boxes_by_image():
    features = tg.rand(2, 3, 8, 8)
    align = nn.create("vision::RoIAlign", output_size=(2, 3), spatial_scale=0.5, sampling_ratio=2)
    assert repr(align) == "RoIAlign(output_size=(2, 3), spatial_scale=0.5, sampling_ratio=2)"
    boxes = [tg.tensor([[0.0, 0, 8, 8]]), tg.tensor([[2.0, 2, 9, 9], [1.0, 1, 4, 4]])]
    rois = tg.tensor([[0.0, 0, 0, 8, 8], [1, 2, 2, 9, 9], [1, 1, 1, 4, 4]])
    assert align(features, boxes).equal(align(features, rois))
    assert align(features, rois).equal(ops.vision.roi_align(features, rois, 0.5, 2, 3, 2))
    pool = nn.plugins.vision.RoIPool(2)
    assert pool(features, rois).equal(ops.vision.roi_pool(features, rois, 1.0, 2, 2)[0])


def test_boxes_of_the_wrong_shape_name_their_image():
    align = nn.plugins.vision.RoIAlign(2)
    with pytest.raises(RuntimeError, match=r"the boxes of image 1 must have the shape \(n, 4\), but have \[4\]"):
        align(tg.zeros(2, 1, 4, 4), [tg.zeros(1, 4), tg.zeros(4)])
    with pytest.raises(ValueError, match="one tensor for each image"):
        align(tg.zeros(2, 1, 4, 4), [])
