"""Modules over the ops of regions."""

import tinygrad_ext as tg
from tinygrad_ext import nn, ops
from tinygrad_ext.ops.samples import Sample


def as_rois(boxes):
    """One tensor (regions, 5) from a list with the boxes (n, 4) of each image; a tensor as it is."""
    if isinstance(boxes, tg.Tensor):
        return boxes
    numbered = []
    for number, b in enumerate(boxes):
        if b.dim() != 2 or b.shape[1] != 4:
            raise RuntimeError(f"the boxes of image {number} must have the shape (n, 4), but have {list(b.shape)}")
        numbered.append(tg.cat([b.new_full((len(b), 1), number), b], 1))
    if not numbered:
        raise ValueError("a list of boxes has one tensor for each image, and there is none")
    return tg.cat(numbered)


class _Regions(nn.Module):
    def __init__(self, output_size, spatial_scale=1.0):
        super().__init__()
        self.output_size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
        self.spatial_scale = float(spatial_scale)

    def extra_repr(self):
        return f"output_size={self.output_size}, spatial_scale={self.spatial_scale}"


class RoIAlign(_Regions):
    """Averages the bins of regions with `ops.vision.roi_align`.

    Args:
        output_size: bins of a region, an int or (height, width).
        spatial_scale: pixels of the input for one unit of the boxes.
        sampling_ratio: samples of a bin in each direction; 0 or less for one for each pixel.

    `forward(input, rois)`: input (batch, channels, height, width); rois (regions, 5) with the number of the image
    first, or a list with the boxes (n, 4) of each image. Returns (regions, channels, *output_size).
    """

    def __init__(self, output_size, spatial_scale=1.0, sampling_ratio=-1):
        super().__init__(output_size, spatial_scale)
        self.sampling_ratio = int(sampling_ratio)

    def forward(self, input, rois):
        return ops.vision.roi_align(input, as_rois(rois), self.spatial_scale, *self.output_size, self.sampling_ratio)

    def extra_repr(self):
        return f"{super().extra_repr()}, sampling_ratio={self.sampling_ratio}"


class RoIPool(_Regions):
    """Takes the largest pixels of the bins of regions with `ops.vision.roi_pool`.

    Arguments and shapes are those of RoIAlign, which has the better gradients.
    """

    def forward(self, input, rois):
        return ops.vision.roi_pool(input, as_rois(rois), self.spatial_scale, *self.output_size).output


def samples(make):
    """What `plugins check` makes both modules with and feeds them: rois as a tensor, and as a list of boxes."""
    first, second = [0.0, 0.0, 4.0, 3.0], [1.0, 2.0, 5.0, 5.0]
    yield Sample(make(2, 3, 6, 6), make.of([[0.0, *first], [1.0, *second]], dtype=make.dtype), output_size=2)
    boxes = [make.of([first], dtype=make.dtype), make.of([second, first], dtype=make.dtype)]
    yield Sample(make(2, 1, 6, 6), boxes, output_size=(3, 2), spatial_scale=0.5)
