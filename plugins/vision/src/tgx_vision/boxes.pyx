# cython: language_level=3
"""The loop of nms over plain memory. Boxes are rows x1, y1, x2, y2."""
from libc.stdint cimport int64_t

ctypedef fused real:
    float
    double


def keep(const real[:, ::1] boxes, const int64_t[::1] order, const int64_t[::1] classes, unsigned char[::1] kept,
         double threshold):
    """Set kept[i], which is 1 for all at the start, to 0 where box i overlaps a better one of its class too much.

    order: the boxes from the best to the worst. No array may be empty.
    """
    cdef Py_ssize_t i, j, a, b, n = boxes.shape[0]
    cdef real area, width, height, common, together
    with nogil:
        for i in range(n):
            a = order[i]
            if not kept[a]:
                continue
            area = (boxes[a, 2] - boxes[a, 0]) * (boxes[a, 3] - boxes[a, 1])
            for j in range(i + 1, n):
                b = order[j]
                if not kept[b] or classes[a] != classes[b]:
                    continue
                width = (boxes[a, 2] if boxes[a, 2] < boxes[b, 2] else boxes[b, 2]) - (
                    boxes[a, 0] if boxes[a, 0] > boxes[b, 0] else boxes[b, 0])
                height = (boxes[a, 3] if boxes[a, 3] < boxes[b, 3] else boxes[b, 3]) - (
                    boxes[a, 1] if boxes[a, 1] > boxes[b, 1] else boxes[b, 1])
                common = width * height if width > 0 and height > 0 else 0
                together = area + (boxes[b, 2] - boxes[b, 0]) * (boxes[b, 3] - boxes[b, 1]) - common
                if <double>(common / together) > threshold:       # not for 0 / 0 and other NaNs
                    kept[b] = 0
