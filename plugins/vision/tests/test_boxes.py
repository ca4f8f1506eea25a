"""nms, batched_nms and box_iou on boxes whose overlaps are known."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops

pytest.importorskip("tgx_vision", reason="tgx-vision is not installed: pip install ./plugins/vision")

# the second overlaps the first by 1/2 of its area (1/3 of the union), the third touches nothing
BOXES = tg.tensor([[0.0, 0, 2, 2], [1, 0, 3, 2], [8, 8, 9, 9]])


def test_overlap_is_shared_area_over_the_whole():
    iou = ops.vision.box_iou(BOXES, BOXES)
    assert tg.allclose(iou, tg.tensor([[1, 1 / 3, 0], [1 / 3, 1, 0], [0, 0, 1]]))
    assert ops.vision.box_iou(BOXES.to(tg.uint8), BOXES.to(tg.uint8)).allclose(iou)
    assert ops.vision.box_iou(tg.zeros(1, 4), tg.zeros(1, 4)).isnan().all()


def test_the_better_of_two_that_overlap_stays():
    scores = tg.tensor([0.5, 0.9, 0.7])
    assert ops.vision.nms(BOXES, scores, 0.3).tolist() == [1, 2]
    assert ops.vision.nms(BOXES, scores, 0.34).tolist() == [1, 2, 0]
    assert ops.vision.nms(BOXES, tg.ones(3), 0.3).tolist() == [0, 2]


def test_what_went_suppresses_nobody():
    chain = tg.tensor([[0.0, 0, 4, 1], [1, 0, 5, 1], [2, 0, 6, 1]])  # neighbours overlap by 3/5, the ends by 1/3
    assert ops.vision.nms(chain, tg.tensor([3.0, 2, 1]), 0.5).tolist() == [0, 2]


def test_classes_do_not_suppress_each_other():
    scores, classes = tg.tensor([0.5, 0.9, 0.7]), tg.tensor([0, 1, 0])
    assert ops.vision.batched_nms(BOXES, scores, classes, 0.3).tolist() == [1, 2, 0]
    assert ops.vision.batched_nms(BOXES, scores, tg.zeros(3, dtype=tg.int32), 0.3).tolist() == [1, 2]


def test_no_boxes_give_no_numbers():
    kept = ops.vision.nms(tg.zeros(0, 4), tg.zeros(0), 0.5)
    assert kept.shape == (0,)
    assert kept.dtype is tg.int64


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_boxes_that_are_none_suppress_nothing(bad):
    boxes = tg.cat([tg.full((1, 4), bad), BOXES])
    assert ops.vision.nms(boxes, tg.tensor([4.0, 3, 2, 1]), 0.5).tolist() == [0, 1, 2, 3]
    assert sorted(ops.vision.nms(boxes, tg.tensor([bad, 3, 2, 1]), 0.5).tolist()) == [0, 1, 2, 3]


def test_numbers_of_boxes_carry_no_gradient():
    assert not ops.vision.nms(BOXES.clone().requires_grad_(), tg.ones(3), 0.5).requires_grad
