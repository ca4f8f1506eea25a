"""Records of roi_align and roi_pool.

The derivative is for the input alone. It needs the shape of the input and not its values, so nothing of it is kept. The
backward of roi_align is linear in `grad` and roi_align is its transpose, which gives derivatives of every order.
"""

import math
from pathlib import Path

import tinygrad_ext as tg
from tgx_vision import regions
from tgx_vision.checks import require_float, require_positive, require_rois, require_shape
from tinygrad_ext import ops
from tinygrad_ext.ops.samples import Sample

_GEOMETRY = "float spatial_scale, int pooled_height, int pooled_width"
_SIZES = "int batch, int channels, int height, int width"


# ---- what all four ops check -------------------------------------------------------------------------------------


def _check(op, input, rois, spatial_scale, pooled_height, pooled_width):
    require_float(op, input=input, rois=rois)
    require_shape(op, "input", input, "batch", "channels", "height", "width")
    _check_rois(op, rois, spatial_scale, pooled_height, pooled_width)


def _check_rois(op, rois, spatial_scale, pooled_height, pooled_width):
    require_shape(op, "rois", rois, "regions", 5)
    require_positive(op, pooled_height=pooled_height, pooled_width=pooled_width)
    if not math.isfinite(spatial_scale):
        raise ValueError(f"vision::{op}: spatial_scale must be finite, not {spatial_scale}")


def _ready(op, rois, spatial_scale, batch):
    """The memory of checked rois."""
    rois = rois.detach().contiguous()
    if rois.numel():
        require_rois(op, rois, regions.first_bad_roi(rois, spatial_scale, batch), batch)
    return rois


def _pooled_shape(op):
    def shape(input, rois, spatial_scale, pooled_height, pooled_width, *_):
        _check(op, input, rois, spatial_scale, pooled_height, pooled_width)
        return input.new_empty((rois.shape[0], input.shape[1], pooled_height, pooled_width))

    return shape


def _check_grad(op, grad, rois, pooled_height, pooled_width, channels):
    require_float(op, grad=grad, rois=rois)
    require_shape(op, "rois", rois, "regions", 5)
    require_shape(op, "grad", grad, rois.shape[0], channels, pooled_height, pooled_width)


# ---- roi_align, whose kernels and backward are in roi_align.c ------------------------------------------------------


def _align_back(grad, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, input_shape):
    return ops.vision.roi_align_backward(
        grad, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, *input_shape
    )


def _align_twice(grad, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    return ops.vision.roi_align(grad, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio)


# ---- roi_pool ------------------------------------------------------------------------------------------------------


def _pool(input, rois, spatial_scale, pooled_height, pooled_width):
    _check("roi_pool", input, rois, spatial_scale, pooled_height, pooled_width)
    rois = _ready("roi_pool", rois, spatial_scale, input.shape[0])
    pooled = input.new_zeros((rois.shape[0], input.shape[1], pooled_height, pooled_width))
    argmax = tg.full(pooled.shape, -1, dtype=tg.int64)
    if pooled.numel() and input.numel():
        regions.pool_forward(input.detach().contiguous(), rois, pooled, argmax, spatial_scale)
    return pooled, argmax


def _pool_backward(grad, rois, argmax, batch, channels, height, width):
    _check_grad("roi_pool_backward", grad, rois, *grad.shape[2:], channels)
    require_shape("roi_pool_backward", "argmax", argmax, *grad.shape)
    if argmax.dtype != tg.int64:
        raise RuntimeError(f"vision::roi_pool_backward: argmax must be int64, not {argmax.dtype}")
    rois = _ready("roi_pool_backward", rois, 1.0, batch)
    image = grad.new_zeros((batch, channels, height, width))
    if grad.numel() and not regions.pool_backward(image, rois, grad.detach().contiguous(), argmax.contiguous()):
        raise IndexError(f"vision::roi_pool_backward: argmax has a place outside the {height} x {width} pixels")
    return image


def _pool_twice(grad, rois, argmax):
    """The gradient's own gradient: each bin reads the pixel that it was taken from."""
    if not argmax.numel() or not grad.numel():
        return grad.new_zeros(argmax.shape)
    planes = grad.flatten(2)[rois[:, 0].long()]
    taken = planes.gather(2, argmax.flatten(2).clamp(min=0)).reshape(argmax.shape)
    return taken * (argmax >= 0)


# ---- samples -------------------------------------------------------------------------------------------------------

# in one image of two: inside, over the edges, smaller than a pixel, outside, turned around
_BOXES = [
    [0, 1.0, 1.5, 6.25, 5.0],
    [1, -3.0, -2.0, 9.5, 12.0],
    [1, 2.2, 2.7, 2.4, 2.9],
    [0, 30.0, 30.0, 40.0, 35.0],
    [0, 5.0, 4.0, 1.0, 2.0],
]


def _images(make):
    yield make(2, 2, 5, 6), make.like(_BOXES)
    yield make(1, 1, 4, 3), make.like([_BOXES[0], _BOXES[4]])
    yield make(2, 2, 5, 5), make.like(_BOXES).reshape(-1)[:0].reshape(0, 5)


def _align_samples(make):
    for (input, rois), (scale, sampling) in zip(_images(make), ((0.8, 2), (1.0, 0), (1.0, 2))):
        yield Sample(input, rois.detach(), scale, 3, 2, sampling)


def _align_backward_samples(make):
    for input, rois in _images(make):
        grad = make(rois.shape[0], input.shape[1], 3, 2)
        yield Sample(grad, rois.detach(), 0.8, 3, 2, 0, *input.shape)


def _pool_samples(make):
    for input, rois in _images(make):
        yield Sample(make.distinct(*input.shape), rois.detach(), 0.8, 3, 2)


def _pool_backward_samples(make):
    for input, rois in _images(make):
        rois = rois.detach()
        argmax = make.ints(-1, input.shape[2] * input.shape[3], (rois.shape[0], input.shape[1], 3, 2))
        yield Sample(make(rois.shape[0], input.shape[1], 3, 2), rois, argmax, *input.shape)


# ---- what must be refused ------------------------------------------------------------------------------------------


def _refused(name, *more):
    """Calls with one image and one box, and how each must fail."""

    def call(box, input=(1, 1, 4, 4), height=2, **options):
        return lambda: getattr(ops.vision, name)(tg.zeros(input, **options), tg.tensor([box]), 1.0, height, 2, *more)

    return [
        (call([1.0, 0, 0, 1, 1]), IndexError, "must be the number of an image of the batch, 0 to 0"),
        (call([-1.0, 0, 0, 1, 1]), IndexError, "must be the number of an image of the batch"),
        (call([math.nan, 0, 0, 1, 1]), IndexError, "must be the number of an image of the batch"),
        (call([0.0, 0, math.nan, 1, 1]), ValueError, "is no box"),
        (call([0.0, 0, 0, math.inf, 1]), ValueError, "is no box"),
        (call([0.0, -3e38, 0, 3e38, 1]), ValueError, "is no box"),
        (call([0.0, 0, 0, 1]), RuntimeError, "rois must have the shape (regions, 5)"),
        (call([0.0, 0, 0, 1, 1], (4, 4)), RuntimeError, "input must have the shape (batch, channels, height, width)"),
        (call([0.0, 0, 0, 1, 1], height=0), ValueError, "pooled_height must be positive"),
        (call([0.0, 0, 0, 1, 1], dtype=tg.float64), RuntimeError, "they must be of one dtype"),
        (call([0.0, 0, 0, 1, 1], dtype=tg.int64), NotImplementedError, "not implemented for 'torch.int64'"),
    ]


# ---- records -------------------------------------------------------------------------------------------------------


# What C does not say. The rules are for graphs, in which sizes stay free; eager mode goes by the backward in C.
_ALIGN = {
    "roi_align": {
        "grad": {"input": _align_back, "rois": "none"},
        "types": "float",
        "reference": "tgx_vision.reference.roi_align",
        "samples": _align_samples,
        "errors": _refused("roi_align", 2),
        "doc": """Average of each bin of each region, over samples between the pixels.

        input is (batch, channels, height, width). A row of rois is the number of an image and a box x1, y1, x2, y2,
        which spatial_scale turns into pixels of the input. The result is (regions, channels, pooled_height,
        pooled_width). A bin takes sampling_ratio x sampling_ratio bilinear samples; for 0 or less, one for each pixel
        that it covers. A box is at least one pixel large, and samples outside the image are zero. float32 and float64.
        The boxes get no gradient. IndexError for the number of an image that is not there, ValueError for a box that
        is not finite. Source: He et al., Mask R-CNN, 2017, section 3.""",
    },
    "roi_align_backward": {
        "grad": {"grad": _align_twice, "rois": "none"},
        "types": "float",
        "reference": "tgx_vision.reference.roi_align_backward",
        "samples": _align_backward_samples,
        "doc": "Gradient of roi_align by its input, of the given sizes.",
    },
}


def register_all(register):
    """Add the ops of this file."""
    register.library(Path(__file__).with_name("_roi_align.so"), _ALIGN)
    register(
        f"vision::roi_pool(Tensor input, Tensor rois, {_GEOMETRY}) -> (Tensor output, Tensor argmax)",
        kernel=_pool,
        shape=lambda *args: (_pooled_shape("roi_pool")(*args), _pooled_shape("roi_pool")(*args).to(tg.int64)),
        grad={
            "input": lambda grad_output, rois, argmax, input_shape: ops.vision.roi_pool_backward(
                grad_output, rois, argmax, *input_shape
            ),
            "rois": "none",
        },
        types="float",
        reference="tgx_vision.reference.roi_pool",
        samples=_pool_samples,
        errors=_refused("roi_pool"),
        doc="""Largest pixel of each bin of each region.

        Arguments, shapes and errors are those of roi_align; corners are rounded to pixels, and bins may share some. An
        empty bin gives 0, one with a NaN gives NaN. argmax is the place of the pixel in its plane, -1 for an empty bin.
        Source: Girshick, Fast R-CNN, 2015, section 2.1.""",
    )
    register(
        f"vision::roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_SIZES}) -> Tensor",
        kernel=_pool_backward,
        shape=lambda grad, rois, argmax, *sizes: grad.new_empty(sizes),
        grad={"grad": _pool_twice, "rois": "none", "argmax": "none"},
        types="float",
        reference="tgx_vision.reference.roi_pool_backward",
        samples=_pool_backward_samples,
        doc="Gradient of roi_pool by its input, of the given sizes.",
    )
