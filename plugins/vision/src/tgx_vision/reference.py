"""The same ops once more, slow and plain, in NumPy: what the compiled loops are checked against."""

import math

import numpy as np


def _samples(start, end, bins, sampling, length):
    """For each bin the list of its sample positions along one axis; None outside of [-1, length]."""
    size = max(end - start, 1.0)
    count = sampling if sampling > 0 else math.ceil(size / bins)
    step = size / bins / count
    at = [[start + b * size / bins + (i + 0.5) * step for i in range(count)] for b in range(bins)]
    return [[None if p < -1 or p > length else min(max(p, 0.0), length - 1.0) for p in row] for row in at]


def _neighbours(position, length):
    """((pixel, weight), (pixel, weight)) of the two pixels around a position."""
    low = min(int(position), length - 1)
    return (low, 1 - (position - low)), (min(low + 1, length - 1), position - low)


def _bin_weights(box, scale, pooled_height, pooled_width, sampling, height, width):
    """Weight of each pixel in each bin: (pooled_height, pooled_width, height, width)."""
    x1, y1, x2, y2 = (float(v) * scale for v in box)
    rows = _samples(y1, y2, pooled_height, sampling, height)
    columns = _samples(x1, x2, pooled_width, sampling, width)
    weights = np.zeros((pooled_height, pooled_width, height, width))
    for i, ys in enumerate(rows):
        for j, xs in enumerate(columns):
            for y in ys:
                for x in xs:
                    if y is None or x is None:
                        continue
                    for row, a in _neighbours(y, height):
                        for column, b in _neighbours(x, width):
                            weights[i, j, row, column] += a * b / (len(ys) * len(xs))
    return weights


def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    """Each bin as a weighted sum of all pixels."""
    out = np.zeros((len(rois), input.shape[1], pooled_height, pooled_width), input.dtype)
    for n, (image, *box) in enumerate(rois):
        weights = _bin_weights(box, spatial_scale, pooled_height, pooled_width, sampling_ratio, *input.shape[2:])
        out[n] = np.einsum("ijyx,cyx->cij", weights, input[int(image)])
    return out


def roi_align_backward(grad, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, *sizes):
    """The same weights the other way."""
    out = np.zeros(sizes, grad.dtype)
    for n, (image, *box) in enumerate(rois):
        weights = _bin_weights(box, spatial_scale, pooled_height, pooled_width, sampling_ratio, *sizes[2:])
        out[int(image)] += np.einsum("ijyx,cij->cyx", weights, grad[n])
    return out


def _round(value):
    """To the nearest integer, halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _windows(start, end, bins, length):
    """(first, last) pixel of each bin, the last one excluded."""
    start, end = _round(start), _round(end)
    size = max(end - start + 1, 1)
    cut = lambda v: min(max(v + start, 0), length)
    return [(cut(math.floor(b * (size / bins))), cut(math.ceil((b + 1) * (size / bins)))) for b in range(bins)]


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """The largest pixel of each window, and its place."""
    channels, height, width = input.shape[1:]
    out = np.zeros((len(rois), channels, pooled_height, pooled_width), input.dtype)
    argmax = np.full(out.shape, -1, np.int64)
    for n, (image, *box) in enumerate(rois):
        x1, y1, x2, y2 = (input.dtype.type(v * input.dtype.type(spatial_scale)) for v in box)
        for i, (top, bottom) in enumerate(_windows(y1, y2, pooled_height, height)):
            for j, (left, right) in enumerate(_windows(x1, x2, pooled_width, width)):
                for c in range(channels if top < bottom and left < right else 0):
                    window = input[int(image), c, top:bottom, left:right]
                    y, x = np.unravel_index(np.argmax(window), window.shape)
                    out[n, c, i, j] = window[y, x]
                    argmax[n, c, i, j] = (top + y) * width + left + x
    return out, argmax


def roi_pool_backward(grad, rois, argmax, *sizes):
    """Each bin's gradient at the place that it was taken from."""
    out = np.zeros(sizes, grad.dtype)
    planes = out.reshape(*sizes[:2], -1)
    for n, c, i, j in np.argwhere(argmax >= 0):
        planes[int(rois[n, 0]), c, argmax[n, c, i, j]] += grad[n, c, i, j]
    return out


def box_iou(boxes1, boxes2):
    """Overlap of every pair of boxes."""
    out = np.zeros((len(boxes1), len(boxes2)), boxes1.dtype if boxes1.dtype.kind == "f" else np.float32)
    for i, a in enumerate(boxes1.tolist()):
        for j, b in enumerate(boxes2.tolist()):
            out[i, j] = _iou(a, b)
    return out


def _iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0) * max(height, 0)
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    return common / both if both else math.nan


def batched_nms(boxes, scores, idxs, iou_threshold):
    """From the best box to the worst: those that no kept one of the same class overlaps too much."""
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        if all(idxs[i] != idxs[k] or not _iou(boxes[k], boxes[i]) > iou_threshold for k in kept):
            kept.append(i)
    return np.array(kept, np.int64)


def nms(boxes, scores, iou_threshold):
    """The same for boxes of one class."""
    return batched_nms(boxes, scores, np.zeros(len(boxes)), iou_threshold)
