"""Records of nms, batched_nms and box_iou. A box is x1, y1, x2, y2 with x1 <= x2 and y1 <= y2."""

import tinygrad_ext as tg
from tgx_vision import boxes as loops
from tgx_vision.checks import require_float, require_shape
from tinygrad_ext import ops
from tinygrad_ext.ops.samples import Sample

_SUPPRESSION = """The result holds the numbers of the boxes that stay (int64), the best first. A box goes when a better
        one that stays has an intersection over union with it above iou_threshold; of equal scores the first is the
        better one. boxes is (n, 4), scores is (n), float32 or float64. RuntimeError for other shapes."""


def _check(op, boxes, scores):
    require_float(op, boxes=boxes, scores=scores)
    require_shape(op, "boxes", boxes, "n", 4)
    require_shape(op, "scores", scores, boxes.shape[0])


def _best(boxes, scores, idxs, iou_threshold):
    """Numbers of the boxes that stay."""
    order = scores.detach().argsort(descending=True, stable=True)
    if not len(order):
        return order
    kept = tg.ones(len(order), dtype=tg.uint8)
    loops.keep(boxes.detach().contiguous(), order, idxs.contiguous(), kept, iou_threshold)
    return order[kept[order].bool()]


def _nms(boxes, scores, iou_threshold):
    _check("nms", boxes, scores)
    return _best(boxes, scores, tg.zeros(len(boxes), dtype=tg.int64), iou_threshold)


def _batched_nms(boxes, scores, idxs, iou_threshold):
    _check("batched_nms", boxes, scores)
    require_shape("batched_nms", "idxs", idxs, boxes.shape[0])
    if idxs.is_floating_point() or idxs.is_complex():
        raise RuntimeError(f"vision::batched_nms: idxs must be numbers of classes (int64), not {idxs.dtype}")
    return _best(boxes, scores, idxs.long(), iou_threshold)


def _no_answer(*_):
    raise NotImplementedError("how many boxes stay depends on their values, which meta tensors do not have")


def _area(boxes):
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def _box_iou(boxes1, boxes2):
    require_shape("box_iou", "boxes1", boxes1, "n", 4)
    require_shape("box_iou", "boxes2", boxes2, "m", 4)
    boxes1, boxes2 = (b if b.is_floating_point() else b.long() for b in (boxes1, boxes2))  # uint8 would wrap around
    one, two = boxes1.unsqueeze(1), boxes2.unsqueeze(0)
    sides = (tg.minimum(one[..., 2:], two[..., 2:]) - tg.maximum(one[..., :2], two[..., :2])).clamp(min=0)
    common = sides[..., 0] * sides[..., 1]
    return common / (_area(boxes1).unsqueeze(1) + _area(boxes2) - common)


# ---- samples -------------------------------------------------------------------------------------------------------


def _boxes(make, n):
    corners, sides = make(n, 2, low=0, high=8), make(n, 2, low=1, high=6)
    return tg.cat([corners, corners + sides], 1).detach()


def _nms_samples(make):
    for n in (12, 1, 0):
        yield Sample(_boxes(make, n), make(n).detach(), 0.3)


def _batched_samples(make):
    for n in (12, 0):
        yield Sample(_boxes(make, n), make(n).detach(), make.ints(0, 3, (n,)), 0.3)


def _iou_samples(make):
    for n, m in ((4, 3), (0, 2), (1, 1)):
        one, two = _boxes(make, n), _boxes(make, m)
        if make.requires_grad and make.dtype.is_floating_point:
            one.requires_grad_(), two.requires_grad_()
        yield Sample(one, two)


def _call(name, *shapes, dtype=tg.float32):
    return lambda: getattr(ops.vision, name)(*[tg.zeros(s, dtype=dtype) for s in shapes], 0.5)


def register_all(register):
    """Add the ops of this file."""
    register(
        "vision::nms(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor",
        kernel=_nms,
        shape=_no_answer,
        tags="data_dependent",
        types="float",
        reference="tgx_vision.reference.nms",
        samples=_nms_samples,
        errors=[
            (_call("nms", (3, 5), (3,)), RuntimeError, "boxes must have the shape (n, 4)"),
            (_call("nms", (3, 4), (2,)), RuntimeError, "scores must have the shape (3)"),
            (_call("nms", (3, 4), (3,), dtype=tg.int64), NotImplementedError, "not implemented for"),
        ],
        doc=f"""Non-maximum suppression: of boxes that overlap, the one with the highest score.

        {_SUPPRESSION}""",
    )
    register(
        "vision::batched_nms(Tensor boxes, Tensor scores, Tensor idxs, float iou_threshold) -> Tensor",
        kernel=_batched_nms,
        shape=_no_answer,
        tags="data_dependent",
        types="float",
        reference="tgx_vision.reference.batched_nms",
        samples=_batched_samples,
        errors=[(_call("batched_nms", (3, 4), (3,), (3,)), RuntimeError, "idxs must be numbers of classes")],
        doc=f"""Non-maximum suppression within each class; idxs (n) holds the classes as integers.

        {_SUPPRESSION}""",
    )
    register(
        "vision::box_iou(Tensor boxes1, Tensor boxes2) -> Tensor",
        compose=_box_iou,
        types="int float",
        reference="tgx_vision.reference.box_iou",
        samples=_iou_samples,
        errors=[
            (
                lambda: ops.vision.box_iou(tg.zeros(3, 4), tg.zeros(4)),
                RuntimeError,
                "boxes2 must have the shape (m, 4), but has [4]",
            )
        ],
        doc="""Intersection over union of every pair: boxes1 (n, 4) and boxes2 (m, 4) give (n, m).

        Any real dtype; integers give the default float dtype. NaN stands for two boxes without area at one place.
        RuntimeError for other shapes.""",
    )
