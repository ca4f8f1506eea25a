# cython: language_level=3
"""Reads and checks the arguments of a pooling. See pool_window.pxd."""
from cpython.object cimport PyObject
from tinygrad_ext.core.dispatch cimport as_ints
from tinygrad_ext.core.tensor cimport Tensor, shape_text
from tinygrad_ext.core.types cimport TGX_MAX_DIMS, int64_t


cdef int read_pair(PyObject *arg, int dims, str op, str name, int64_t *into, int64_t neutral) except -1:
    """One number, or one for each dimension; a signal gets `neutral` in front."""
    cdef int64_t[TGX_MAX_DIMS] given
    cdef int i, n = as_ints(arg, given, TGX_MAX_DIMS, dims)
    if n != 1 and n != dims:
        raise RuntimeError(f"{op}: {name} must either be a single int, or a tuple of {'two ints' if dims == 2 else 'one int'}: got "
                           f"{n} numbers")
    for i in range(n):
        if given[i] > 1 << 31 or given[i] < -(1 << 31):
            raise RuntimeError(f"{op}: {name}={given[i]} is out of range: it must be below 2**31")
    into[1] = given[n - 1]
    into[0] = given[0] if dims == 2 else neutral
    return 0


cdef bint _empty_list(PyObject *arg):
    return arg == <PyObject *>None or (isinstance(<object>arg, (list, tuple)) and not <object>arg)


cdef int read_window(Window *w, PyObject **a, int dims, str op) except -1:
    """kernel_size, stride (default: the kernel size), padding."""
    w.dims = dims
    read_pair(a[0], dims, op, "kernel_size", w.kernel, 1)
    read_pair(a[0] if _empty_list(a[1]) else a[1], dims, op, "stride", w.stride, 1)
    read_pair(a[2], dims, op, "padding", w.pad, 0)
    w.dilation[0] = w.dilation[1] = 1
    return 0


cdef int read_input(Window *w, Tensor x, str op) except -1:
    """The input's planes; only the batch may be empty."""
    cdef int i, dims = w.dims
    if x.rank != dims + 1 and x.rank != dims + 2:
        if dims == 2:
            raise RuntimeError(f"non-empty 3D or 4D (batch mode) tensor expected for input: {op}() got shape {shape_text(x)}")
        if op.startswith("max"):
            raise RuntimeError("max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
                               f"got:{shape_text(x)}")
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {x.rank}-dimensional tensor for argument #1 'self' (while checking "
                           f"arguments for {op})")
    for i in range(x.rank - dims - 1, x.rank):
        if x.sizes[i] == 0:
            raise RuntimeError(f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
                               f"got:{shape_text(x)}: {op}() needs at least one channel and one position")
    w.size[0] = x.sizes[x.rank - 2] if dims == 2 else 1
    w.size[1] = x.sizes[x.rank - 1]
    return 0


cdef int check_window(Window *w, str op) except -1:
    cdef int i
    if w.stride[0] == 0 or w.stride[1] == 0:
        raise RuntimeError(f"stride should not be zero: {op}() got stride {_shown(w.stride, w.dims)}")
    if w.kernel[0] <= 0 or w.kernel[1] <= 0:
        raise RuntimeError(f"kernel size should be greater than zero: {op}() kernel_size must be greater than zero, but got "
                           f"{_shown(w.kernel, w.dims)}")
    if w.stride[0] < 0 or w.stride[1] < 0:
        raise RuntimeError(f"stride should be greater than zero: {op}() stride must be greater than zero, but got "
                           f"{_shown(w.stride, w.dims)}")
    if w.dilation[0] <= 0 or w.dilation[1] <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got dilationH: {w.dilation[0]} dilationW: {w.dilation[1]}")
    for i in range(2):
        if w.pad[i] < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {w.pad[i]}")
        if 2 * w.pad[i] > w.kernel[i]:     # PyTorch leaves the dilation out, whatever its message says
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={w.pad[i]}, "
                               f"kernel_size={w.kernel[i]} and dilation={w.dilation[i]}: {op}() padding should be at most half of "
                               f"kernel size, but got padding={w.pad[i]} and kernel_size={w.kernel[i]}")
    return 0


cdef list _shown(const int64_t *pair, int dims):
    return [pair[i] for i in range(2 - dims, 2)]


cdef int read_out_sizes(Window *w, bint ceil_mode, Tensor x, str op) except -1:
    cdef int i
    cdef int64_t free
    for i in range(2):
        free = w.size[i] + 2 * w.pad[i] - w.dilation[i] * (w.kernel[i] - 1) - 1
        if ceil_mode:
            free += w.stride[i] - 1
        w.out[i] = free // w.stride[i] + 1 if free >= 0 else 0
        if ceil_mode and w.out[i] > 0 and (w.out[i] - 1) * w.stride[i] >= w.size[i] + w.pad[i]:
            w.out[i] -= 1       # the last window would start behind the input
    if w.out[0] < 1 or w.out[1] < 1:
        channels = x.sizes[x.rank - w.dims - 1]
        raise RuntimeError(f"Given input size: ({'x'.join([str(v) for v in [channels] + _shown(w.size, w.dims)])}). Calculated output "
                           f"size: ({'x'.join([str(v) for v in [channels] + _shown(w.out, w.dims)])}). Output size is too small: "
                           f"{op}() Invalid computed output size")
    return 0


cdef object _output_size(object value, int place, str op, bint listed):
    """One size, or None in a list; TypeError for what is no int."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is None and listed:
        return None
    if isinstance(value, (bool, str)) or not hasattr(value, "__index__"):
        found = f"found element of type {type(value).__name__} at pos {place}" if listed else f"not {type(value).__name__}"
        raise TypeError(f"{op}(): argument 'output_size' (position 2) must be int or tuple of ints, {found}")
    return value.__index__()


cdef int read_adaptive(Window *w, Tensor x, PyObject *size, int dims, str op) except -1:
    """Output sizes; None keeps the input's."""
    cdef int i
    cdef object given = <object>size
    w.dims = dims
    w.dilation[0] = w.dilation[1] = 1
    if x.rank < dims + 1 or x.rank > dims + 2:
        if x.rank <= dims and isinstance(given, (tuple, list)) and dims > 1:
            raise ValueError(f"Input dimension should be at least {dims + 1}, got {x.rank}: {op}() takes an input of shape "
                             f"(N, C, ...) or (C, ...), this one is {shape_text(x)}")
        raise RuntimeError(f"Expected {dims + 1} to {dims + 2} dimensions, but got {x.rank}-dimensional tensor for argument #1 'self' "
                           f"(while checking arguments for {op})")
    w.size[0] = x.sizes[x.rank - 2] if dims == 2 else 1
    w.size[1] = x.sizes[x.rank - 1]
    if not isinstance(given, (tuple, list)):
        given = (given,) * dims
    if len(given) != dims:
        raise RuntimeError(f"{op}: output_size must be {dims}: one number, or {dims} numbers, got {len(given)}")
    w.out[0] = 1
    for i in range(dims):
        value = _output_size(given[i], i, op, isinstance(<object>size, (tuple, list)))
        if value is not None and value > 1 << 31:
            raise RuntimeError(f"{op}: output_size={value} is out of range: it must be below 2**31")
        w.out[2 - dims + i] = w.size[2 - dims + i] if value is None else value
    if w.out[0] < 0 or w.out[1] < 0:
        raise RuntimeError(f"{op}: elements of output_size must be greater than or equal to 0 but received {_shown(w.out, dims)}; a "
                           f"result would have a negative dimension")
    for i in range(x.rank - dims - 1, x.rank):
        if x.sizes[i] == 0:
            raise RuntimeError(f"{op}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                               f"{shape_text(x)} with dimension {i} being empty")
    return 0
