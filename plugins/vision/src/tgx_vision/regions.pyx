# cython: language_level=3
"""Loops of roi_align and roi_pool over plain memory: any buffer of float or double, no tensor library.

A sample of roi_align lies at (y, x) between four pixels, and y is the same for a whole row of samples. So each region
first gets two tables of taps (two neighbours and their weights), one for y and one for x; the loops over channels and
bins only look up. Samples outside the image count but add nothing, so they get no tap: that also bounds the tables by
the size of the image, whatever the box says.

Every function returns what is wrong as a number and leaves the words to ops.py.
"""
from libc.math cimport ceil, floor, isfinite, round
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

ctypedef fused real:
    float
    double

cdef enum:
    TOO_MANY = 1000000000   # taps of one region: many gigabytes
cdef double FAR = 4e18      # samples behind this one are not looked at; an integer can still count to it

cdef struct Taps:
    Py_ssize_t *first       # bin b has the taps first[b] to first[b + 1] - 1
    Py_ssize_t *low         # nearer to the origin
    Py_ssize_t *high
    double grid             # samples of a bin, those outside included


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


# ---- roi_align -----------------------------------------------------------------------------------------------------

cdef void free_taps(Taps *t) noexcept nogil:
    free(t.first)
    free(t.low)
    free(t.high)


cdef double clamped(double value, double most) noexcept nogil:
    """value in [0, most]; 0 for NaN."""
    if not value > 0:
        return 0
    return value if value < most else most


cdef bint make_taps(real start, real end, Py_ssize_t bins, Py_ssize_t samples, Py_ssize_t length, Py_ssize_t pitch,
                    Taps *t, real **weights) noexcept nogil:
    """Fill the table of one direction, freed by the caller whatever comes; False when there is no memory.

    weights holds, for tap i, that of low at 2 i and that of high at 2 i + 1.
    """
    cdef real size, bin_size, at, base
    cdef Py_ssize_t b, n = 0, i, lower, upper, room
    cdef double step, places, most
    size = end - start
    if not size > 1:
        size = 1
    bin_size = size / <real>bins
    t.grid = <double>samples if samples > 0 else ceil(<double>(size / <real>bins))
    step = <double>bin_size / t.grid
    most = t.grid if t.grid < FAR else FAR
    # no bin has more samples in [-1, length] than fit there, and two for the rounding at each end
    places = clamped((length + 1) / step + 4, most) * bins
    if places > TOO_MANY:
        return False
    room = <Py_ssize_t>places
    t.first = <Py_ssize_t *>malloc((bins + 1) * sizeof(Py_ssize_t))
    t.low = <Py_ssize_t *>malloc((room + 1) * sizeof(Py_ssize_t))
    t.high = <Py_ssize_t *>malloc((room + 1) * sizeof(Py_ssize_t))
    weights[0] = <real *>malloc((2 * room + 2) * sizeof(real))
    if t.first == NULL or t.low == NULL or t.high == NULL or weights[0] == NULL:
        return False
    for b in range(bins):
        t.first[b] = n
        base = start + <real>b * bin_size
        lower = <Py_ssize_t>clamped(floor((-1 - <double>base) / step - 0.5) - 1, most)
        upper = <Py_ssize_t>clamped(ceil((length - <double>base) / step - 0.5) + 1, most)
        for i in range(lower, upper):
            at = base + (<real>i + <real>0.5) * bin_size / <real>t.grid
            if at < -1 or at > length or n >= room:
                continue
            if at <= 0:
                at = 0
            t.low[n] = <Py_ssize_t>at
            if t.low[n] >= length - 1:
                t.low[n] = length - 1
                t.high[n] = t.low[n]
                at = <real>t.low[n]
            else:
                t.high[n] = t.low[n] + 1
            weights[0][2 * n + 1] = at - <real>t.low[n]
            weights[0][2 * n] = 1 - weights[0][2 * n + 1]
            t.low[n] *= pitch
            t.high[n] *= pitch
            n += 1
    t.first[bins] = n
    return True


cdef void average(const real *plane, real *out, Taps *ys, Taps *xs, const real *wy, const real *wx, real count,
                  Py_ssize_t bins_y, Py_ssize_t bins_x) noexcept nogil:
    """All bins of one region in one channel."""
    cdef Py_ssize_t by, bx, i, j
    cdef const Py_ssize_t *left = xs.low
    cdef const Py_ssize_t *right = xs.high
    cdef const real *low
    cdef const real *high
    cdef real total, upper, lower
    for by in range(bins_y):
        for bx in range(bins_x):
            total = 0
            for i in range(ys.first[by], ys.first[by + 1]):
                low, high = plane + ys.low[i], plane + ys.high[i]
                for j in range(xs.first[bx], xs.first[bx + 1]):
                    upper = wx[2 * j] * low[left[j]] + wx[2 * j + 1] * low[right[j]]
                    lower = wx[2 * j] * high[left[j]] + wx[2 * j + 1] * high[right[j]]
                    total += wy[2 * i] * upper + wy[2 * i + 1] * lower
            out[0] = total / count
            out += 1


cdef void spread(real *plane, const real *grad, Taps *ys, Taps *xs, const real *wy, const real *wx, real count,
                 Py_ssize_t bins_y, Py_ssize_t bins_x) noexcept nogil:
    """Add to a plane what each pixel had to do with the bins: the transpose of `average`."""
    cdef Py_ssize_t by, bx, i, j, first, last
    cdef const Py_ssize_t *left = xs.low
    cdef const Py_ssize_t *right = xs.high
    cdef real *low
    cdef real *high
    cdef real share, upper, lower, one, two
    for by in range(bins_y):
        for bx in range(bins_x):
            share = grad[0] / count
            grad += 1
            first, last = xs.first[bx], xs.first[bx + 1]
            for i in range(ys.first[by], ys.first[by + 1]):
                low, high = plane + ys.low[i], plane + ys.high[i]
                upper, lower = share * wy[2 * i], share * wy[2 * i + 1]
                for j in range(first, last):
                    one, two = wx[2 * j], wx[2 * j + 1]
                    low[left[j]] += upper * one
                    low[right[j]] += upper * two
                    high[left[j]] += lower * one
                    high[right[j]] += lower * two


cdef bint align(real *image, real *pooled, const real *rois, bint backward, Py_ssize_t regions, real scale,
                Py_ssize_t samples, Py_ssize_t channels, Py_ssize_t height, Py_ssize_t width, Py_ssize_t bins_y,
                Py_ssize_t bins_x) noexcept nogil:
    """Forward from image to pooled, or backward from pooled into image; False when there is no memory."""
    cdef Py_ssize_t n, c, area = height * width, bins = bins_y * bins_x
    cdef const real *roi
    cdef real *plane
    cdef Taps ys, xs
    cdef real *wy
    cdef real *wx
    cdef real count
    cdef double grid
    cdef bint made = True
    for n in range(regions):
        roi = rois + 5 * n
        ys.first = ys.low = ys.high = xs.first = xs.low = xs.high = NULL
        wy = wx = NULL
        made = make_taps(roi[2] * scale, roi[4] * scale, bins_y, samples, height, width, &ys, &wy) and make_taps(
            roi[1] * scale, roi[3] * scale, bins_x, samples, width, 1, &xs, &wx)
        if made:
            grid = ys.grid * xs.grid
            count = <real>grid
            for c in range(channels):
                plane = image + (<Py_ssize_t>roi[0] * channels + c) * area
                if backward:
                    spread(plane, pooled, &ys, &xs, wy, wx, count, bins_y, bins_x)
                else:
                    average(plane, pooled, &ys, &xs, wy, wx, count, bins_y, bins_x)
                pooled += bins
        free_taps(&ys)
        free_taps(&xs)
        free(wy)
        free(wx)
        if not made:
            return False
    return True


def align_forward(const real[:, :, :, ::1] image, const real[:, ::1] rois, real[:, :, :, ::1] pooled, double scale,
                  Py_ssize_t samples):
    """Fill pooled (regions, channels, bins, bins). No array may be empty, and first_bad_roi must be None."""
    cdef bint made
    with nogil:
        made = align[real](<real *>&image[0, 0, 0, 0], &pooled[0, 0, 0, 0], &rois[0, 0], False, rois.shape[0],
                           <real>scale, samples, image.shape[1], image.shape[2], image.shape[3], pooled.shape[2],
                           pooled.shape[3])
    if not made:
        raise MemoryError("roi_align: no memory for the samples of a region")


def align_backward(real[:, :, :, ::1] image, const real[:, ::1] rois, const real[:, :, :, ::1] grad, double scale,
                   Py_ssize_t samples):
    """Add to image (which starts as zeros) the gradient of the pooled bins. Conditions as for align_forward."""
    cdef bint made
    with nogil:
        made = align[real](&image[0, 0, 0, 0], <real *>&grad[0, 0, 0, 0], &rois[0, 0], True, rois.shape[0],
                           <real>scale, samples, image.shape[1], image.shape[2], image.shape[3], grad.shape[2],
                           grad.shape[3])
    if not made:
        raise MemoryError("roi_align: no memory for the samples of a region")


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
