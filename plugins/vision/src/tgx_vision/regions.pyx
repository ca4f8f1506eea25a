# cython: language_level=3
"""Loops of roi_pool over plain memory: any buffer of float or double, no tensor library. Those of roi_align are in C.

Every function returns what is wrong as a number and leaves the words to ops.py.
"""
from libc.math cimport ceil, floor, isfinite, round
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

ctypedef fused real:
    float
    double


# ---- the regions themselves ----------------------------------------------------------------------------------------

def first_bad_roi(const real[:, ::1] rois, double scale, Py_ssize_t batch):
    """(row, column) of the first entry of rois that cannot be used, or None: a batch number, or what is not finite."""
    cdef Py_ssize_t n, k
    for n in range(rois.shape[0]):
        if not (0 <= rois[n, 0] < batch) or rois[n, 0] != floor(rois[n, 0]):
            return n, 0
        for k in range(1, 5):
            if not isfinite(<real>(rois[n, k] * <real>scale)):
                return n, k
        for k in range(1, 3):       # the extent may be too large where both ends are not
            if not isfinite(<real>((rois[n, k + 2] - rois[n, k]) * <real>scale)):
                return n, k + 2
    return None


cdef double clamped(double value, double most) noexcept nogil:
    """value in [0, most]; 0 for NaN."""
    if not value > 0:
        return 0
    return value if value < most else most


# ---- roi_pool ------------------------------------------------------------------------------------------------------

cdef void edges(double start, double end, Py_ssize_t bins, Py_ssize_t length, Py_ssize_t *first,
                Py_ssize_t *last) noexcept nogil:
    """Pixels [first, last) of each bin between two corners, which are rounded to pixels."""
    cdef double origin = round(start), size = round(end) - round(start) + 1
    cdef double bin_size
    cdef Py_ssize_t b
    if size < 1:
        size = 1
    bin_size = size / bins
    for b in range(bins):
        first[b] = <Py_ssize_t>clamped(floor(b * bin_size) + origin, length)
        last[b] = <Py_ssize_t>clamped(ceil((b + 1) * bin_size) + origin, length)


cdef Py_ssize_t largest(const real *plane, Py_ssize_t y0, Py_ssize_t y1, Py_ssize_t x0, Py_ssize_t x1,
                        Py_ssize_t width) noexcept nogil:
    """Place of the first largest pixel of a window, of a NaN if there is one; -1 for an empty window."""
    cdef Py_ssize_t y, x, place, best = -1
    for y in range(y0, y1):
        for x in range(x0, x1):
            place = y * width + x
            if plane[place] != plane[place]:
                return place
            if best < 0 or plane[place] > plane[best]:
                best = place
    return best


def pool_forward(const real[:, :, :, ::1] image, const real[:, ::1] rois, real[:, :, :, ::1] pooled,
                 int64_t[:, :, :, ::1] argmax, double scale):
    """Fill pooled and argmax (place of the largest pixel in its plane, -1 for an empty bin)."""
    cdef Py_ssize_t n, c, by, bx, place
    cdef Py_ssize_t height = image.shape[2], width = image.shape[3]
    cdef Py_ssize_t bins_y = pooled.shape[2], bins_x = pooled.shape[3]
    cdef const real *plane
    cdef Py_ssize_t *at = <Py_ssize_t *>malloc(2 * (bins_y + bins_x) * sizeof(Py_ssize_t))
    cdef Py_ssize_t *y0 = at
    cdef Py_ssize_t *y1 = at + bins_y
    cdef Py_ssize_t *x0 = at + 2 * bins_y
    cdef Py_ssize_t *x1 = at + 2 * bins_y + bins_x
    if at == NULL:
        raise MemoryError("roi_pool: no memory for the bins of a region")
    with nogil:
        for n in range(rois.shape[0]):
            edges(<real>(rois[n, 2] * <real>scale), <real>(rois[n, 4] * <real>scale), bins_y, height, y0, y1)
            edges(<real>(rois[n, 1] * <real>scale), <real>(rois[n, 3] * <real>scale), bins_x, width, x0, x1)
            for c in range(image.shape[1]):
                plane = &image[<Py_ssize_t>rois[n, 0], c, 0, 0]
                for by in range(bins_y):
                    for bx in range(bins_x):
                        place = largest(plane, y0[by], y1[by], x0[bx], x1[bx], width)
                        argmax[n, c, by, bx] = place
                        pooled[n, c, by, bx] = plane[place] if place >= 0 else 0
    free(at)


def pool_backward(real[:, :, :, ::1] image, const real[:, ::1] rois, const real[:, :, :, ::1] grad,
                  const int64_t[:, :, :, ::1] argmax):
    """Add to image (which starts as zeros) each bin's gradient at its argmax; False for a place outside the plane."""
    cdef Py_ssize_t n, c, by, bx, place, area = image.shape[2] * image.shape[3]
    cdef real *plane
    cdef bint inside = True
    with nogil:
        for n in range(rois.shape[0]):
            for c in range(image.shape[1]):
                plane = &image[0, 0, 0, 0] + (<Py_ssize_t>rois[n, 0] * image.shape[1] + c) * area
                for by in range(grad.shape[2]):
                    for bx in range(grad.shape[3]):
                        place = argmax[n, c, by, bx]
                        inside = inside and place < area
                        if 0 <= place < area:
                            plane[place] += grad[n, c, by, bx]
    return inside
