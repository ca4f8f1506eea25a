# Calls whose shape is asked now and that a plan runs later. Part of kernel_call.pyx.

cdef tgx_call *begin_call(Op op, PyObject **args) except NULL:
    cdef Frame *f = _take_frame()
    try:
        if _begin(f, op, args, NULL) or f.meta:
            raise NotImplementedError(f"{op.title}(): only the cpu's kernels can be run later")
    except BaseException:
        _free_frame(f)
        raise
    return &f.call


cdef void end_call(tgx_call *call) noexcept:
    _free_frame(<Frame *>call)          # whose first field it is
