"""Every op of tgx-vision against its slow reference, over the samples of its record, and its derivatives."""

import warnings

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops, registry
from tinygrad_ext.testing import compare, sweep

pytest.importorskip("tgx_vision", reason="tgx-vision is not installed: pip install ./plugins/vision")

NAMES = ["roi_align", "roi_align_backward", "roi_pool", "roi_pool_backward", "nms", "batched_nms", "box_iou"]
every_op = pytest.mark.parametrize("name", NAMES)


def record_of(name):
    """The compiled op; asking for it loads the plugin."""
    return getattr(ops.vision, name).candidates[0]


def samples(name, requires_grad=False, dtypes=("float32", "float64")):
    op = record_of(name)
    return [(op, s, d) for d in dtypes for s in sweep.samples(op, d, requires_grad)]


def test_these_are_all():
    ops.vision.nms
    assert sorted(n for n in registry.ops if n.startswith("vision::")) == sorted(f"vision::{n}" for n in NAMES)


@every_op
def test_equals_the_reference(name):
    for op, sample, dtype in samples(name):
        arrays = [compare.to_numpy(a) if isinstance(a, tg.Tensor) else a for a in sample.args]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 0 / 0 of boxes without area
            want = op.record.reference(*arrays)
        compare.assert_close(sweep.call(op, sample.args, {}), want, dtype, f"{name} {sample} in {dtype}")


@every_op
def test_every_layout_gives_the_same_bits(name):
    for op, sample, dtype in samples(name):
        sweep.layout_independent(op, sample, dtype)


@every_op
def test_the_shape_rule_tells_the_truth(name):
    for op, sample, dtype in samples(name):
        sweep.shape_rule_agrees(op, sample, dtype)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", [n for n in NAMES if "nms" not in n])
def test_derivatives(name, order):
    for op, sample, _ in samples(name, True, ("float64",)):
        sweep.derivatives_check(op, sample, order)


@every_op
def test_what_is_wrong_is_refused_with_a_word_on_it(name):
    for call, error, words in record_of(name).record.errors or ():
        with pytest.raises(error) as refusal:
            call()
        assert words in str(refusal.value)


def test_random_boxes_agree_too(seed=3):
    rng = np.random.default_rng(seed)
    image = rng.standard_normal((2, 2, 11, 13))
    corners = rng.uniform(-4, 15, (20, 2))
    rois = np.concatenate([rng.integers(0, 2, (20, 1)), corners, corners + rng.uniform(-2, 14, (20, 2))], 1)
    for name, more in (("roi_align", (3,)), ("roi_align", (0,)), ("roi_pool", ())):
        got = getattr(ops.vision, name)(tg.from_numpy(image), tg.from_numpy(rois), 0.7, 3, 4, *more)
        compare.assert_close(got, record_of(name).record.reference(image, rois, 0.7, 3, 4, *more), "float64", name)
