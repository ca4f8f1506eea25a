"""roi_align from C: what its node holds, and that no Python lies between the engine and the backward."""

import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops

pytest.importorskip("tgx_vision", reason="tgx-vision is not installed: pip install ./plugins/vision")

BOXES = [[0, 1.0, 1.5, 6.25, 5.0], [1, -3.0, -2.0, 9.5, 12.0]]


def frames(call):
    entered = []
    sys.setprofile(lambda frame, event, arg: event == "call" and entered.append(frame.f_code.co_name))
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


def test_the_node_has_one_edge_and_keeps_nothing_of_the_input():
    image, rois = tg.rand(2, 3, 8, 8, requires_grad=True), tg.tensor(BOXES)
    node = ops.vision.roi_align(image, rois, 1.0, 2, 2, 2).grad_fn
    assert node.name() == "RoiAlignBackward0"
    assert [n.name() for n, _ in node.next_functions] == ["AccumulateGrad"]
    assert [t is rois for t in node._saved_tensors] == [True]


def test_boxes_that_require_grad_get_none():
    image, rois = tg.rand(2, 3, 8, 8), tg.tensor(BOXES, requires_grad=True)
    assert not ops.vision.roi_align(image, rois, 1.0, 2, 2, 2).requires_grad


def test_forward_and_backward_enter_no_frame_of_python():
    image, rois = tg.rand(2, 3, 8, 8, requires_grad=True), tg.tensor(BOXES)
    for _ in range(9):  # the first calls of an op are watched
        pooled = ops.vision.roi_align(image, rois, 1.0, 2, 2, 2)
        seed = tg.ones_like(pooled)
        tg.autograd.grad(pooled, image, seed)
    doubled = image * image
    tg.autograd.grad(doubled, image, tg.ones_like(doubled))
    pooled, doubled = ops.vision.roi_align(image, rois, 1.0, 2, 2, 2), image * image
    one = tg.ones_like(doubled)
    builtin = frames(lambda: tg.autograd.grad(doubled, image, one))
    assert frames(lambda: tg.autograd.grad(pooled, image, seed)) == builtin
    roi_align = ops.vision.roi_align
    assert frames(lambda: roi_align(image, rois, 1.0, 2, 2, 2)) == ["<lambda>"]


def test_derivatives_of_every_order():
    image = tg.rand(2, 1, 5, 5, dtype=tg.float64, requires_grad=True)
    rois = tg.tensor(BOXES, dtype=tg.float64)
    f = lambda x: ops.vision.roi_align(x, rois, 0.5, 2, 2, 2)
    assert tg.autograd.gradcheck(f, (image,)) and tg.autograd.gradgradcheck(f, (image,))


def test_a_graph_of_it_is_good_for_other_sizes():
    def loss(image, rois):
        (g,) = tg.autograd.grad(ops.vision.roi_align(image, rois, 1.0, 2, 2, 2).sum(), image)
        return g

    rois = tg.tensor(BOXES)
    traced = tg.jit.trace(lambda x: loss(x.detach().requires_grad_(), rois), tg.rand(2, 3, 8, 8))
    for shape in ((2, 3, 8, 8), (2, 1, 6, 9)):
        image = tg.rand(shape)
        assert traced(image).equal(loss(image.requires_grad_(), rois))


def test_windows_on_larger_tensors_are_as_good():
    image, rois = tg.rand(2, 6, 16, 8)[:, ::2, ::2].transpose(2, 3), tg.tensor([[9, *b] for b in BOXES])[:, 1:]
    assert not image.is_contiguous() and not rois.is_contiguous()
    wanted = ops.vision.roi_align(image.contiguous(), rois.contiguous(), 1.0, 2, 2, 2)
    assert ops.vision.roi_align(image, rois, 1.0, 2, 2, 2).equal(wanted)
