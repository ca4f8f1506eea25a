# cython: language_level=3
"""Kernels of the convolution ops: they read and check the arguments for the maps of conv.pyx."""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport cast
from tinygrad_ext.core.dispatch cimport as_ints, register_kernel
from tinygrad_ext.core.tensor cimport Tensor, dtype_title, shape_text
from tinygrad_ext.core.types cimport TGX_F32, TGX_F64, TGX_I64, TGX_MAX_DIMS, int64_t, is_inexact
from tinygrad_ext.native.conv cimport conv_forward, conv_input_grad, conv_weight_grad
from tinygrad_ext.native.conv_geometry cimport (
    Geometry, check_operands, check_sizes, read_operands, read_padding, read_pair, read_planes, read_window,
)


# ---- kernels -------------------------------------------------------------------------------------------------------

cdef object _conv(PyObject **a, int dims):
    """conv(input, weight, bias, stride, padding, dilation, groups)."""
    cdef Tensor x = <Tensor><object>a[0], w = <Tensor><object>a[1]
    cdef Tensor bias = None if a[2] == <PyObject *>None else <Tensor><object>a[2]
    cdef Geometry g
    check_operands(x, w, bias, dims)
    read_operands(&g, x, w, a[3], a[5], a[6])
    check_sizes(&g, x, w, bias)
    read_padding(&g, a[4])
    if is_inexact(x.tid):
        return conv_forward(x, w, bias, &g)
    bias = None if bias is None else cast(bias, TGX_I64)
    return cast(conv_forward(cast(x, TGX_I64), cast(w, TGX_I64), bias, &g), x.tid)


cdef object k_conv1d(PyObject **a):
    return _conv(a, 1)


cdef object k_conv2d(PyObject **a):
    return _conv(a, 2)


cdef int _given_out(Geometry *g, PyObject *padding, const int64_t *image) except -1:
    """Padding in front, and the output's size, for the maps that get both."""
    read_pair(padding, g.dims, "padding", g.pad)
    g.out[0] = image[0] if g.dims == 2 else 1
    g.out[1] = image[g.dims - 1]
    return 0


cdef int _expect_shape(Tensor t, Geometry *g, int64_t channels, const int64_t *image, str name) except -1:
    """The tensor must be images of these sizes: the loops trust them."""
    cdef bint fits = t.rank == g.dims + (2 if g.batched else 1) and t.sizes[t.rank - g.dims - 1] == channels
    fits = fits and t.sizes[t.rank - 1] == image[1] and (g.dims == 1 or t.sizes[t.rank - 2] == image[0])
    if not fits or (g.batched and t.sizes[0] != g.n):
        raise RuntimeError(f"{name} of size {shape_text(t)} does not fit this convolution: expected {channels} channels and planes "
                           f"of {_shown(image, g.dims)}")
    return 0


cdef int _expect_float(Tensor t) except -1:
    if t.tid != TGX_F32 and t.tid != TGX_F64:
        raise NotImplementedError(f"\"convolution_backward\" not implemented for '{dtype_title(t.tid)}': use float32 or float64")
    return 0


cdef list _shown(const int64_t *pair, int dims):
    return [pair[i] for i in range(2 - dims, 2)]


cdef object k_conv_window(PyObject **a):
    """_conv_window(input, weight, stride, padding, dilation, groups, size): the output's planes have `size`."""
    cdef Tensor x = <Tensor><object>a[0], w = <Tensor><object>a[1]
    cdef int64_t[TGX_MAX_DIMS] image
    cdef Geometry g
    if w.rank < 3 or w.rank > 4:
        raise RuntimeError(f"weight must have 3 or 4 dimensions, got size {shape_text(w)}")
    check_operands(x, w, None, w.rank - 2)
    read_operands(&g, x, w, a[2], a[4], a[5])
    _expect_float(x)
    check_sizes(&g, x, w, None)
    if as_ints(a[6], image, TGX_MAX_DIMS, g.dims) != g.dims:
        raise RuntimeError(f"_conv_window(): size must have {g.dims} numbers, one for each dimension of the planes")
    _given_out(&g, a[3], image)
    return conv_forward(x, w, None, &g)


cdef object k_conv_input_grad(PyObject **a):
    """_conv_input_grad(grad, weight, input_size, stride, padding, dilation, groups)."""
    cdef Tensor grad = <Tensor><object>a[0], w = <Tensor><object>a[1]
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int rank = as_ints(a[2], sizes, TGX_MAX_DIMS, 1)
    cdef Geometry g
    if w.rank < 3 or w.rank > 4 or rank < w.rank - 1 or rank > w.rank:
        raise RuntimeError(f"weight of size {shape_text(w)} does not fit an input of {rank} dimensions")
    check_operands(grad, w, None, w.rank - 2)
    _expect_float(grad)
    read_operands(&g, grad, w, a[3], a[5], a[6])
    read_planes(&g, sizes, rank)
    if g.outputs % g.groups or g.channels != w.sizes[1] * g.groups:
        raise RuntimeError(f"weight of size {shape_text(w)} does not fit {g.channels} channels in {g.groups} groups")
    _given_out(&g, a[4], grad.sizes + grad.rank - g.dims)
    _expect_shape(grad, &g, g.outputs, g.out, "grad")
    return conv_input_grad(grad, w, &g)


cdef object k_conv_weight_grad(PyObject **a):
    """_conv_weight_grad(grad, input, weight_size, stride, padding, dilation, groups)."""
    cdef Tensor grad = <Tensor><object>a[0], x = <Tensor><object>a[1]
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int rank = as_ints(a[2], sizes, TGX_MAX_DIMS, 1)
    cdef Geometry g
    g.dims = rank - 2
    if rank < 3 or rank > 4 or x.rank < rank - 1 or x.rank > rank or grad.rank < g.dims or x.tid != grad.tid:
        raise RuntimeError(f"input of size {shape_text(x)} and {dtype_title(x.tid)} does not fit a weight of {rank} dimensions and "
                           f"grad of {dtype_title(grad.tid)}")
    _expect_float(grad)
    read_window(&g, a[3], a[5], a[6])
    read_planes(&g, x.sizes, x.rank)
    g.outputs = sizes[0]
    g.kernel[0] = sizes[2] if g.dims == 2 else 1
    g.kernel[1] = sizes[rank - 1]
    if g.outputs % g.groups or g.channels != sizes[1] * g.groups:
        raise RuntimeError(f"weight of size {[sizes[i] for i in range(rank)]} does not fit {g.channels} channels in {g.groups} groups")
    _given_out(&g, a[4], grad.sizes + grad.rank - g.dims)
    _expect_shape(grad, &g, g.outputs, g.out, "grad")
    return conv_weight_grad(grad, x, sizes, rank, &g)


register_kernel("conv1d", k_conv1d)
register_kernel("conv2d", k_conv2d)
register_kernel("conv_window", k_conv_window)
register_kernel("conv_input_grad", k_conv_input_grad)
register_kernel("conv_weight_grad", k_conv_weight_grad)
