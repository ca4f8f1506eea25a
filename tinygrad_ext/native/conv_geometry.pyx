# cython: language_level=3
"""Reads and checks the arguments of a convolution. See conv_geometry.pxd."""
from cpython.object cimport PyObject
from tinygrad_ext.core.dispatch cimport as_int, as_ints
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, empty, shape_text
from tinygrad_ext.core.types cimport TGX_BOOL, TGX_MAX_DIMS, int64_t, is_integer, is_native_float


cdef int read_pair(PyObject *arg, int dims, str name, int64_t *into) except -1:
    """One number, or one for each dimension; a signal gets a neutral first dimension."""
    cdef int64_t[TGX_MAX_DIMS] given
    cdef int i, n = as_ints(arg, given, TGX_MAX_DIMS, dims)
    if n != dims and n != 1:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {dims} values to match the convolution "
                           f"dimensions, but got {name}={[given[i] for i in range(n)]}")
    for i in range(n):
        if not -(1 << 31) <= given[i] <= 1 << 31:
            raise RuntimeError(f"{name}={given[i]} is out of range: it must lie between -2**31 and 2**31")
    into[1] = given[n - 1]
    into[0] = given[0] if dims == 2 else (0 if name == "padding" else 1)
    return 0


cdef list _shown(int64_t *pair, int dims):
    return [pair[i] for i in range(2 - dims, 2)]


cdef int read_window(Geometry *g, PyObject *stride, PyObject *dilation, PyObject *groups) except -1:
    read_pair(stride, g.dims, "stride", g.stride)
    read_pair(dilation, g.dims, "dilation", g.dilation)
    g.groups = as_int(groups)
    if g.groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported: got groups={g.groups}")
    if g.stride[0] <= 0 or g.stride[1] <= 0:
        raise RuntimeError(f"non-positive stride is not supported: got stride={_shown(g.stride, g.dims)}")
    if g.dilation[0] <= 0 or g.dilation[1] <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {_shown(g.dilation, g.dims)}")
    return 0


cdef int read_planes(Geometry *g, const int64_t *sizes, int rank) except -1:
    """Batch and image size from the shape of an input, of rank dims + 1 or dims + 2."""
    g.batched = rank == g.dims + 2
    g.n = sizes[0] if g.batched else 1
    g.channels = sizes[rank - g.dims - 1]
    g.size[0] = sizes[rank - 2] if g.dims == 2 else 1
    g.size[1] = sizes[rank - 1]
    return 0


cdef int read_operands(Geometry *g, Tensor x, Tensor w, PyObject *stride, PyObject *dilation, PyObject *groups) except -1:
    """All but padding and output size; dimensions are counted from the weight."""
    g.dims = w.rank - 2
    read_window(g, stride, dilation, groups)
    read_planes(g, x.sizes, x.rank)
    g.outputs = w.sizes[0]
    g.kernel[0] = w.sizes[2] if g.dims == 2 else 1
    g.kernel[1] = w.sizes[w.rank - 1]
    return 0


cdef int check_operands(Tensor x, Tensor w, Tensor bias, int dims) except -1:
    op = f"conv{dims}d"
    if x.rank != dims + 1 and x.rank != dims + 2:
        raise RuntimeError(f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {op}, but got input of size: "
                           f"{shape_text(x)}")
    if w.rank != dims + 2:
        raise RuntimeError(f"{op}(): weight must have {dims + 2} dimensions (out_channels, in_channels / groups, kernel...), got "
                           f"size {shape_text(w)}")
    if x.tid != w.tid:
        raise RuntimeError(f"expected scalar type {dtype_title(x.tid)} but found {dtype_title(w.tid)}: {op}() needs input and "
                           "weight of one dtype; convert one, for example with .to(input.dtype)")
    if bias is not None and bias.tid != x.tid:
        raise RuntimeError(f"Input type ({dtype_title(x.tid)}) and bias type ({dtype_title(bias.tid)}) should be the same")
    if not is_native_float(x.tid) and not is_integer(x.tid) and (x.tid != TGX_BOOL or x.count):
        raise NotImplementedError(f"\"{op}\" not implemented for '{dtype_title(x.tid)}': convert the input and the weight, for "
                                  "example with .float()")
    return 0


cdef int check_sizes(Geometry *g, Tensor x, Tensor w, Tensor bias) except -1:
    if g.outputs < g.groups:
        raise RuntimeError(f"Given groups={g.groups}, expected weight to be at least {g.groups} at dimension 0, but got weight of "
                           f"size {shape_text(w)} instead")
    if g.outputs % g.groups:
        raise RuntimeError(f"Given groups={g.groups}, expected weight to be divisible by {g.groups} at dimension 0, but got weight "
                           f"of size [{shape_text(w)}] instead")
    if g.channels != w.sizes[1] * g.groups:
        raise RuntimeError(f"Given groups={g.groups}, weight of size {shape_text(w)}, expected input{shape_text(x)} to have "
                           f"{w.sizes[1] * g.groups} channels, but got {g.channels} channels instead")
    if bias is not None and (bias.rank != 1 or bias.sizes[0] != g.outputs):
        raise RuntimeError(f"Given weight of size {shape_text(w)}, expected bias to be 1-dimensional with {g.outputs} elements, but "
                           f"got bias of size {shape_text(bias)} instead")
    if g.size[0] == 0 or g.size[1] == 0:
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {shape_text(x)}")
    if g.kernel[0] == 0 or g.kernel[1] == 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kernel_height: {g.kernel[0]} kernel_width: "
                           f"{g.kernel[1]}")
    return 0


cdef int read_padding(Geometry *g, PyObject *padding) except -1:
    """Padding given as numbers or as 'same' or 'valid', and the size of the output."""
    cdef object text = <object>padding
    cdef int i
    cdef int64_t reach
    cdef int64_t[2] padded
    g.pad[0] = g.pad[1] = 0
    if isinstance(text, str) and text not in ("same", "valid"):
        raise RuntimeError(f"Invalid padding string: '{text}': it must be 'same', 'valid', or numbers")
    if not isinstance(text, str):
        read_pair(padding, g.dims, "padding", g.pad)
    if g.pad[0] < 0 or g.pad[1] < 0:
        raise RuntimeError(f"negative padding is not supported: got padding={_shown(g.pad, g.dims)}")
    if isinstance(text, str) and text == "same":
        if g.stride[0] != 1 or g.stride[1] != 1:
            raise RuntimeError(f"padding='same' is not supported for strided convolutions: got stride={_shown(g.stride, g.dims)}")
        for i in range(2):
            g.pad[i] = g.dilation[i] * (g.kernel[i] - 1) // 2
            g.out[i] = g.size[i]
        return 0
    for i in range(2):
        padded[i] = g.size[i] + 2 * g.pad[i]
        reach = g.dilation[i] * (g.kernel[i] - 1) + 1
        if padded[i] < reach:
            seen = [g.size[k] + 2 * g.pad[k] for k in range(2 - g.dims, 2)]
            wide = [g.dilation[k] * (g.kernel[k] - 1) + 1 for k in range(2 - g.dims, 2)]
            raise RuntimeError(f"Calculated padded input size per channel: ({' x '.join([str(s) for s in seen])}). Kernel size: "
                               f"({' x '.join([str(s) for s in wide])}). Kernel size can't be greater than actual input size")
        g.out[i] = (padded[i] - reach) // g.stride[i] + 1
    return 0


cdef Tensor new_images(Geometry *g, int64_t channels, const int64_t *image, Tensor like):
    """Uninitialized images, with or without a batch dimension, one- or two-dimensional."""
    cdef int64_t[4] sizes
    cdef int at = 0
    if g.batched:
        sizes[0] = g.n
        at = 1
    sizes[at] = channels
    if g.dims == 2:
        at += 1
        sizes[at] = image[0]
    sizes[at + 1] = image[1]
    return empty(sizes, at + 2, like.tid, like.device_id)
