# cython: language_level=3
"""Convolution: forward, gradient of the input, gradient of the weights, in one and two dimensions.

All three are maps linear in each operand, so the derivative of each is made of the other two and any order follows.
A signal is an image of height one. The work is done by kernels/conv_loops.h, block by block of output rows: no matrix
of windows is made, and the memory beyond the result is one buffer of a few hundred kilobytes for each thread.
"""
from libc.string cimport memcpy, memset
from tinygrad_ext.core.copy cimport contiguous, zero
from tinygrad_ext.core.parallel cimport num_threads, parallel_for
from tinygrad_ext.core.storage cimport Storage, new_storage
from tinygrad_ext.core.tensor cimport Tensor, empty
from tinygrad_ext.core.types cimport ITEMSIZE, TGX_F32, TGX_I64, int64_t
from tinygrad_ext.native.conv_geometry cimport Geometry, new_images

cdef extern from "conv.h" nogil:
    ctypedef struct tgx_conv:
        ptrdiff_t channels, height, width, outputs, rows, cols, step_y, step_x, taps_y, taps_x
        const ptrdiff_t *at_y
        const ptrdiff_t *at_x
        ptrdiff_t block, images, depth, base_y, phases, phase_rows, plane, buffer, pad_outputs
        ptrdiff_t *offset
    ctypedef struct tgx_conv_part:
        ptrdiff_t row, rows, channel, channels, images, src_image, out_image, out_plane
    ctypedef struct tgx_conv_kernels:
        void (*load)(const tgx_conv *p, const tgx_conv_part *part, const void *src, void *buf) noexcept nogil
        void (*pack)(const tgx_conv *p, const void *weight, ptrdiff_t step_o, ptrdiff_t step_c, const ptrdiff_t *tap,
                     void *packed) noexcept nogil
        void (*apply)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *packed, const void *bias,
                      void *out) noexcept nogil
        void (*turn)(const tgx_conv *p, const tgx_conv_part *part, const void *grad, void *turned) noexcept nogil
        void (*collect)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *turned,
                        void *sums) noexcept nogil
        void (*collect_few)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *grad,
                            void *sums) noexcept nogil
    ctypedef struct tgx_conv_table:
        tgx_conv_kernels f32
        tgx_conv_kernels f64
    void tgx_conv_plan(tgx_conv *p, ptrdiff_t size, ptrdiff_t images)
    const tgx_conv_table *tgx_conv_pick()
    void tgx_conv_integers(const tgx_conv *p, const int64_t *src, const int64_t *weight, const ptrdiff_t *tap, const int64_t *bias,
                           int64_t *out)

cdef extern from *:
    """
    #define tgx_take_slot(counter) __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED)
    """
    int tgx_take_slot(int *counter) nogil

cdef enum:
    MIN_WORK = 1 << 20          # multiplications that pay for a second thread
    QUIET_WORK = 1 << 15        # ... for letting go of the GIL
    FEW_OUTPUTS = 2             # outputs of a group below which vectors run along positions

cdef double MOST_ROOM = 1 << 45     # bytes


# ---- jobs ----------------------------------------------------------------------------------------------------------

cdef struct Job:
    tgx_conv p
    const tgx_conv_kernels *k
    Geometry *g
    int64_t size                # bytes of an element
    char *src                   # images of p.channels * groups planes
    char *out                   # or, for the gradient of the weights, the gradient of the output
    char *packed
    char *bias
    char *sums
    char *room                  # one buffer for each thread
    int64_t room_size
    int slots
    int64_t packed_group        # elements of packed in one group
    int64_t blocks
    # where results go when they do not lie side by side
    bint scatter
    int64_t first_y, first_x, out_h, out_w


cdef const tgx_conv_kernels *_kernels(int tid) noexcept:
    return &tgx_conv_pick().f32 if tid == TGX_F32 else &tgx_conv_pick().f64


cdef void _scatter(const Job *j, const char *block, int64_t row, int64_t count, int64_t images, char *planes) noexcept nogil:
    """Rows of a block to every stride-th row and column of the result."""
    cdef int64_t _i, o, y, x, size = j.size, step = j.g.stride[1] * j.size
    cdef char *to
    for _i in range(images):
        for o in range(j.p.outputs):
            for y in range(count):
                to = planes + ((o * j.out_h + j.first_y + (row + y) * j.g.stride[0]) * j.out_w + j.first_x) * size
                for x in range(j.p.cols):
                    if size == 4:
                        (<float *>(to + x * step))[0] = (<const float *>block)[x]
                    else:
                        (<double *>(to + x * step))[0] = (<const double *>block)[x]
                block += j.p.cols * size
        planes += j.g.groups * j.p.outputs * j.out_h * j.out_w * size


cdef void _apply_part(Job *j, tgx_conv_part *part, int64_t image, int64_t group, char *buf) noexcept nogil:
    """Some rows of some images in one group, a few channels of the source at a time."""
    cdef const tgx_conv *p = &j.p
    cdef char *result = buf + p.images * p.buffer * j.size
    cdef char *planes = j.out + (image * j.g.groups + group) * p.outputs * j.out_h * j.out_w * j.size
    cdef char *bias = j.bias + group * p.outputs * j.size if j.bias != NULL else NULL
    cdef char *packed = j.packed + group * j.packed_group * j.size
    cdef char *src = j.src + (image * j.g.groups + group) * p.channels * p.height * p.width * j.size
    cdef char *to = result if j.scatter else planes + part.row * p.cols * j.size
    part.channel = 0
    while True:
        part.channels = min(p.depth, p.channels - part.channel)
        j.k.load(p, part, src + part.channel * p.height * p.width * j.size, buf)
        j.k.apply(p, part, buf, packed, bias, to)
        part.channel += part.channels
        if part.channel >= p.channels:
            break
    if j.scatter:
        _scatter(j, result, part.row, part.rows, part.images, planes)


cdef int _apply_items(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    """Items are (images, group, block of rows)."""
    cdef Job *j = <Job *>ctx
    cdef const tgx_conv *p = &j.p
    cdef tgx_conv_part part
    cdef int64_t item, image
    cdef char *buf = j.room + tgx_take_slot(&j.slots) * j.room_size
    part.src_image = j.g.groups * p.channels * p.height * p.width
    for item in range(lo, hi):
        image = item // j.blocks // j.g.groups * p.images
        part.images = min(p.images, j.g.n - image)
        part.row = item % j.blocks * p.block
        part.rows = min(p.block, p.rows - part.row)
        part.out_plane = part.rows * p.cols if j.scatter else j.out_h * j.out_w
        part.out_image = (1 if j.scatter else j.g.groups) * p.outputs * part.out_plane
        _apply_part(j, &part, image, item // j.blocks % j.g.groups, buf)
    return 0


cdef int _plan(tgx_conv *p, int64_t size, int64_t images) except -1:
    """tgx_conv_plan, once its numbers are known to fit: a dilation may be 2**31, and a block's buffer spans the taps."""
    cdef int64_t reach = 0
    cdef ptrdiff_t v, w
    for v in range(p.taps_y):
        for w in (0, p.taps_y - 1):
            reach = max(reach, p.at_y[v] - p.at_y[w])
    if (<double>min(reach + 1, p.step_y) * <double>(p.rows + reach // p.step_y) * <double>p.taps_x * <double>p.cols
            * <double>p.channels * <double>size) > MOST_ROOM:
        raise MemoryError(f"convolution: taps that are {reach} rows apart need a buffer beyond any memory; use a smaller dilation "
                          "or kernel")
    tgx_conv_plan(p, size, images)
    return 0


cdef int _run_apply(Job *j, char *weight, int64_t step_o, int64_t step_c, const ptrdiff_t *tap) except -1:
    """Plan, pack the weights of every group, and go through the images."""
    cdef tgx_conv *p = &j.p
    cdef int64_t group, items, work, kernel = j.g.kernel[0] * j.g.kernel[1]
    cdef Storage packed, room
    if p.rows <= 0 or p.cols <= 0 or j.g.n == 0:
        return 0
    _plan(p, j.size, (j.g.n + num_threads() - 1) // num_threads())
    j.blocks = (p.rows + p.block - 1) // p.block
    j.packed_group = p.taps_x * p.taps_y * p.channels * p.pad_outputs
    packed = new_storage(j.packed_group * j.g.groups * j.size)
    j.packed = packed.data
    for group in range(j.g.groups):
        j.k.pack(p, weight + group * p.outputs * p.channels * kernel * j.size, step_o, step_c, tap,
                 j.packed + group * j.packed_group * j.size)
    j.room_size = p.images * (p.buffer + (p.outputs * p.block * p.cols if j.scatter else 0)) * j.size
    room = new_storage(j.room_size * num_threads())
    j.room, j.slots = room.data, 0
    items = (j.g.n + p.images - 1) // p.images * j.g.groups * j.blocks
    work = p.images * p.block * p.cols * p.taps_x * p.taps_y * p.channels * p.outputs + 1
    if work * items < QUIET_WORK:
        _apply_items(j, 0, items)
    else:
        with nogil:
            parallel_for(_apply_items, j, items, MIN_WORK // work + 1)
    return 0


# ---- taps ----------------------------------------------------------------------------------------------------------

cdef struct Taps:               # places of the taps and their numbers, along one dimension
    ptrdiff_t count
    ptrdiff_t *at
    ptrdiff_t *which


cdef Storage _room_for_taps(Geometry *g, Taps *y, Taps *x, ptrdiff_t **offset, ptrdiff_t **tap):
    """Memory for the tables of taps; keep the result as long as they are used."""
    cdef int64_t kernel = g.kernel[0] * g.kernel[1]
    cdef Storage s = new_storage((2 * (g.kernel[0] + g.kernel[1]) + 2 * kernel) * sizeof(ptrdiff_t))
    y.at = <ptrdiff_t *>s.data
    y.which = y.at + g.kernel[0]
    x.at = y.which + g.kernel[0]
    x.which = x.at + g.kernel[1]
    offset[0] = x.which + g.kernel[1]
    tap[0] = offset[0] + kernel
    return s


cdef void _all_taps(Taps *t, int64_t n, int64_t first, int64_t dilation) noexcept:
    cdef int64_t v
    t.count = n
    for v in range(n):
        t.at[v] = first + v * dilation
        t.which[v] = v


cdef void _taps_reaching(Taps *t, int64_t n, int64_t first, int64_t dilation, int64_t stride) noexcept:
    """Taps v for which an output position (first - v * dilation) / stride exists, and that position."""
    cdef int64_t v
    t.count = 0
    for v in range(n):
        if (first - v * dilation) % stride == 0:
            t.at[t.count] = (first - v * dilation) // stride
            t.which[t.count] = v
            t.count += 1


cdef void _use_taps(tgx_conv *p, Taps *y, Taps *x, ptrdiff_t *offset, ptrdiff_t *tap, int64_t width) noexcept:
    """Hand the taps to the plan, and number them in the weights' (height, width) order."""
    cdef int64_t u, v
    p.taps_y, p.taps_x, p.at_y, p.at_x, p.offset = y.count, x.count, y.at, x.at, offset
    for u in range(x.count):
        for v in range(y.count):
            tap[u * y.count + v] = y.which[v] * width + x.which[u]


# ---- the three maps ------------------------------------------------------------------------------------------------

cdef void _begin(Job *j, Geometry *g, Tensor src, Tensor out) noexcept:
    j.g, j.k, j.size = g, _kernels(src.tid), ITEMSIZE[src.tid]
    j.src, j.out, j.bias, j.scatter = src.data, out.data, NULL, False


cdef void _forward_plan(tgx_conv *p, Geometry *g) noexcept:
    p.channels, p.height, p.width = g.channels // g.groups, g.size[0], g.size[1]
    p.outputs, p.rows, p.cols = g.outputs // g.groups, g.out[0], g.out[1]
    p.step_y, p.step_x = g.stride[0], g.stride[1]


cdef Tensor conv_forward(Tensor x, Tensor w, Tensor bias, Geometry *g):
    cdef Tensor out = new_images(g, g.outputs, g.out, x)
    cdef Job j
    cdef Taps y, across
    cdef ptrdiff_t *offset
    cdef ptrdiff_t *tap
    cdef int64_t kernel = g.kernel[0] * g.kernel[1]
    cdef Storage _owner, _x_memory, _w_memory, _bias_memory     # stay while other threads run
    if x.device_id or w.device_id:
        return out
    x, w = contiguous(x), contiguous(w)
    bias = None if bias is None else contiguous(bias)
    _x_memory, _w_memory, _bias_memory = x.storage, w.storage, None if bias is None else bias.storage
    _owner = _room_for_taps(g, &y, &across, &offset, &tap)
    _begin(&j, g, x, out)
    _forward_plan(&j.p, g)
    j.out_h, j.out_w = g.out[0], g.out[1]
    if bias is not None:
        j.bias = bias.data
    _all_taps(&y, g.kernel[0], -g.pad[0], g.dilation[0])
    _all_taps(&across, g.kernel[1], -g.pad[1], g.dilation[1])
    _use_taps(&j.p, &y, &across, offset, tap, g.kernel[1])
    if x.tid == TGX_I64:
        _integers(&j, w.data, tap)
    else:
        _run_apply(&j, w.data, j.p.channels * kernel, kernel, tap)
    return out


cdef void _integers(Job *j, char *weight, const ptrdiff_t *tap) noexcept:
    """Convolution of int64: exact, plain loops."""
    cdef int64_t i, group, kernel = j.p.taps_x * j.p.taps_y
    for i in range(j.g.n * j.g.groups):
        group = i % j.g.groups
        tgx_conv_integers(&j.p, <int64_t *>j.src + i * j.p.channels * j.p.height * j.p.width,
                          <int64_t *>weight + group * j.p.outputs * j.p.channels * kernel, tap,
                          <int64_t *>j.bias + group * j.p.outputs if j.bias != NULL else NULL,
                          <int64_t *>j.out + i * j.p.outputs * j.p.rows * j.p.cols)


cdef Tensor conv_input_grad(Tensor grad, Tensor w, Geometry *g):
    """Every position of the input gathers from the output positions whose windows hold it. With a stride the
    positions fall into stride[0] * stride[1] classes, each with taps of its own."""
    cdef Tensor out = new_images(g, g.channels, g.size, grad)
    cdef Job j
    cdef Taps y, across
    cdef ptrdiff_t *offset
    cdef ptrdiff_t *tap
    cdef int64_t a, b, kernel = g.kernel[0] * g.kernel[1]
    cdef Storage _owner
    if grad.device_id or w.device_id:
        return out
    grad, w = contiguous(grad), contiguous(w)
    _owner = _room_for_taps(g, &y, &across, &offset, &tap)
    _begin(&j, g, grad, out)
    j.scatter = g.stride[0] > 1 or g.stride[1] > 1
    if j.scatter or kernel == 0:
        zero(out)
    j.out_h, j.out_w = g.size[0], g.size[1]
    j.p.channels, j.p.height, j.p.width = g.outputs // g.groups, g.out[0], g.out[1]
    j.p.outputs, j.p.step_y, j.p.step_x = g.channels // g.groups, 1, 1
    for a in range(min(g.stride[0], g.size[0])):
        for b in range(min(g.stride[1], g.size[1])):
            _taps_reaching(&y, g.kernel[0], a + g.pad[0], g.dilation[0], g.stride[0])
            _taps_reaching(&across, g.kernel[1], b + g.pad[1], g.dilation[1], g.stride[1])
            if y.count == 0 or across.count == 0:
                continue
            j.first_y, j.first_x = a, b
            j.p.rows = (g.size[0] - a + g.stride[0] - 1) // g.stride[0]
            j.p.cols = (g.size[1] - b + g.stride[1] - 1) // g.stride[1]
            _use_taps(&j.p, &y, &across, offset, tap, g.kernel[1])
            _run_apply(&j, w.data, kernel, j.p.outputs * kernel, tap)
    return out


cdef void _collect_images(Job *j, tgx_conv_part *part, int64_t image, int64_t channel, char *buf) noexcept nogil:
    """Some images' share of the sums, for some channels of one group."""
    cdef const tgx_conv *p = &j.p
    cdef int64_t group = channel // p.channels
    cdef char *src = j.src + (image * j.g.channels + channel) * p.height * p.width * j.size
    cdef char *grad = j.out + (image * j.g.groups + group) * p.outputs * part.out_plane * j.size
    cdef char *sums = j.sums + channel * p.taps_x * p.taps_y * p.pad_outputs * j.size
    cdef char *turned = buf + p.images * p.buffer * j.size
    part.row = 0
    while part.row < p.rows:
        part.rows = min(p.block, p.rows - part.row)
        j.k.load(p, part, src, buf)
        if p.outputs <= FEW_OUTPUTS:
            j.k.collect_few(p, part, buf, grad + part.row * p.cols * j.size, sums)
        else:
            j.k.turn(p, part, grad + part.row * p.cols * j.size, turned)
            j.k.collect(p, part, buf, turned, sums)
        part.row += part.rows


cdef int _collect_items(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    """Items are channels of the input, groups one after the other; each sums over all images by itself."""
    cdef Job *j = <Job *>ctx
    cdef tgx_conv_part part
    cdef int64_t image, channel = lo, left
    cdef char *buf = j.room + tgx_take_slot(&j.slots) * j.room_size
    cdef int64_t together = 1 if j.p.outputs <= FEW_OUTPUTS else j.p.images
    part.channel, part.out_plane = 0, j.p.rows * j.p.cols
    part.src_image = j.g.channels * j.p.height * j.p.width
    part.out_image = j.g.outputs * part.out_plane
    while channel < hi:
        left = j.p.channels - channel % j.p.channels        # of this group
        part.channels = min(min(hi - channel, left), j.p.depth)
        image = 0
        while image < j.g.n:
            part.images = min(together, j.g.n - image)
            _collect_images(j, &part, image, channel, buf)
            image += together
        channel += part.channels
    return 0


cdef int _spread_sums(Job *j, char *out, const ptrdiff_t *tap) noexcept:
    """sums[channel][tap][output] to the weights' order."""
    cdef int64_t c, o, t, taps = j.p.taps_x * j.p.taps_y, size = j.size, group
    for c in range(j.g.channels):
        group = c // j.p.channels
        for t in range(taps):
            for o in range(j.p.outputs):
                memcpy(out + (((group * j.p.outputs + o) * j.p.channels + c % j.p.channels) * taps + tap[t]) * size,
                       j.sums + ((c * taps + t) * j.p.pad_outputs + o) * size, size)
    return 0


cdef Tensor conv_weight_grad(Tensor grad, Tensor x, const int64_t *sizes, int rank, Geometry *g):
    cdef Tensor out = empty(sizes, rank, x.tid, x.device_id or grad.device_id)
    cdef Job j
    cdef Taps y, across
    cdef ptrdiff_t *offset
    cdef ptrdiff_t *tap
    cdef int64_t work
    cdef Storage _owner, sums, room, _grad_memory, _x_memory
    if out.device_id or out.count == 0:
        return out
    if grad.count == 0:
        zero(out)
        return out
    grad, x = contiguous(grad), contiguous(x)
    _grad_memory, _x_memory = grad.storage, x.storage
    _owner = _room_for_taps(g, &y, &across, &offset, &tap)
    _begin(&j, g, x, grad)
    _forward_plan(&j.p, g)
    _all_taps(&y, g.kernel[0], -g.pad[0], g.dilation[0])
    _all_taps(&across, g.kernel[1], -g.pad[1], g.dilation[1])
    _use_taps(&j.p, &y, &across, offset, tap, g.kernel[1])
    _plan(&j.p, j.size, g.n)
    work = g.channels * y.count * across.count * j.p.pad_outputs * j.size
    sums = new_storage(work)
    memset(sums.data, 0, work)
    j.sums = sums.data
    j.room_size = j.p.images * (j.p.buffer + j.p.block * j.p.cols * j.p.pad_outputs) * j.size
    room = new_storage(j.room_size * num_threads())
    j.room, j.slots = room.data, 0
    work = g.n * y.count * across.count * j.p.rows * j.p.cols * j.p.outputs + 1
    if work * g.channels < QUIET_WORK:
        _collect_items(&j, 0, g.channels)
    else:
        with nogil:
            parallel_for(_collect_items, &j, g.channels, MIN_WORK // work + 1)
    _spread_sums(&j, out.data, tap)
    return out
