"""Random boxes against the slow reference, far more of them than the samples of the records; and the schema."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops
from tinygrad_ext.testing import compare

reference = pytest.importorskip(
    "tgx_vision.reference", reason="tgx-vision is not installed: pip install ./plugins/vision"
)

SCHEMA = (
    "vision::roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio) -> Tensor"
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, more", [("roi_align", (3,)), ("roi_align", (0,)), ("roi_pool", ())])
def test_random_boxes_agree_with_the_reference(name, more, dtype):
    rng = np.random.default_rng(3)
    image = rng.standard_normal((2, 2, 11, 13)).astype(dtype)
    corners = rng.uniform(-4, 15, (40, 2))
    rois = np.concatenate([rng.integers(0, 2, (40, 1)), corners, corners + rng.uniform(-2, 14, (40, 2))], 1)
    rois = rois.astype(dtype)
    got = getattr(ops.vision, name)(tg.from_numpy(image), tg.from_numpy(rois), 0.7, 3, 4, *more)
    compare.assert_close(got, getattr(reference, name)(image, rois, 0.7, 3, 4, *more), dtype, name, check_dtype=False)


@pytest.mark.parametrize("classes", [1, 4])
def test_random_boxes_are_suppressed_as_by_the_reference(classes):
    rng = np.random.default_rng(4)
    corners = rng.uniform(0, 20, (80, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(1, 12, (80, 2))], 1)
    scores, idxs = rng.uniform(size=80).round(1), rng.integers(0, classes, 80)
    got = ops.vision.batched_nms(tg.from_numpy(boxes), tg.from_numpy(scores), tg.from_numpy(idxs), 0.4)
    assert got.tolist() == reference.batched_nms(boxes, scores, idxs, 0.4).tolist()


def test_the_schema_is_the_one_that_is_promised():
    assert str(ops.vision.roi_align.candidates[0].schema) == SCHEMA
