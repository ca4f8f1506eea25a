# What layers above the dispatcher fill in: the functions it calls, and the compiled kernels by name. Part of dispatch.pyx.

cdef pointwise_fn _pointwise = NULL
cdef device_fn _on_device = NULL
cdef levels_fn _levels = NULL
cdef instead_fn _instead = NULL
cdef call_kernel_fn _call_kernel = NULL
cdef kernel_into_fn _kernel_into = NULL
cdef dict _kernels = {}
cdef dict _pairs = {}


cdef int set_pointwise(pointwise_fn fn) except -1:
    """The function that runs every pointwise op."""
    global _pointwise
    _pointwise = fn
    return 0


cdef int set_on_device(device_fn fn) except -1:
    """The function that computes on the devices of plugins."""
    global _on_device
    _on_device = fn
    return 0


cdef object on_device(Op op, PyObject **args, PyObject *out):
    return _on_device(op, args, out)


cdef int set_levels(levels_fn fn) except -1:
    """The function that offers an operation to the levels of the thread."""
    global _levels
    _levels = fn
    return 0


cdef int set_instead(instead_fn fn) except -1:
    """The function that runs what stands in the place of a kernel."""
    global _instead
    _instead = fn
    return 0


cdef object run_instead(Op op, PyObject **args, bint inplace):
    return _instead(op, args, inplace)


cdef object through_levels(Op op, PyObject **args, int form):
    return _levels(op, args, form)


cdef int register_kernel(str name, kernel_fn fn) except -1:
    """Offer a compiled kernel to the records, which name it."""
    if name in _kernels:
        raise RuntimeError(f"kernel '{name}' is registered twice")
    _kernels[name] = PyCapsule_New(<void *>fn, NULL, NULL)
    return 0


cdef int register_pair(str name, const tgx_kernel *pair) except -1:
    """Offer a kernel in C to the records, which name it."""
    if name in _pairs or name in _kernels:
        raise RuntimeError(f"kernel '{name}' is registered twice")
    _pairs[name] = PyCapsule_New(<void *>pair, NULL, NULL)
    return 0


cdef int set_kernel_caller(call_kernel_fn call, kernel_into_fn into) except -1:
    """The functions that call a kernel in C, see core/call/kernel_call.pyx."""
    global _call_kernel, _kernel_into
    _call_kernel, _kernel_into = call, into
    return 0


cdef int kernel_into(Op op, PyObject **args, PyObject **targets, bint inplace) except -1:
    return _kernel_into(op, args, targets, inplace)


cdef int pointwise_into(Op op, PyObject **args, PyObject *target) except -1:
    _pointwise(op, args, target)
    return 0


def kernel_names():
    """Names of the kernels loaded so far: those in C, and those that speak Python."""
    return sorted(_pairs), sorted(_kernels)
