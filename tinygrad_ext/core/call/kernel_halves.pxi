# Kernels that have no loops for float16 and bfloat16 are run in float32. Part of kernel_call.pyx.
#
# A kernel that refuses a half is asked again with wide copies of its tensors, and what it makes in float32 is rounded
# once. Left out: kernels that draw numbers, since the same seed would give others than a native draw, and those that
# change an argument or give a window on it, since it would be the copy's.

cdef int _half_among(Frame *f, Op op, PyObject **args) except -1:
    """The one half that all floating tensors have, or that a dtype asks for; 0 where there is none or there are others."""
    cdef int i, k, half = 0
    for i in range(f.call.nargs):
        if f.values[i].tag == TGX_TENSOR:
            half = _agreed(half, f.values[i].tensor.dtype)
        elif f.values[i].tag == TGX_TENSORS:
            for k in range(f.values[i].n):
                if f.values[i].tensors[k] != NULL:
                    half = _agreed(half, f.values[i].tensors[k].dtype)
        elif op.args[i].kind == A_DTYPE and f.values[i].tag == TGX_INT and is_half(<int>f.values[i].i):
            half = <int>f.values[i].i
    return half if half > 0 and not op.is_view and not op.record.draws else 0


cdef inline int _agreed(int half, int dtype) noexcept:
    """-1 once there is another floating dtype."""
    if not is_inexact(dtype) or half == dtype:
        return half
    return dtype if half == 0 and is_half(dtype) else -1


cdef int _widen(Frame *f, Op op) except -1:
    """Wide copies in the place of the tensors, and float32 in the place of the dtype that was asked for."""
    cdef int i, k
    for i in range(f.call.nargs):
        if f.values[i].tag == TGX_TENSOR:
            f.values[i].tensor = _wide(f, f.values[i].tensor)
        elif f.values[i].tag == TGX_TENSORS:
            for k in range(f.values[i].n):
                if f.values[i].tensors[k] != NULL:
                    f.values[i].tensors[k] = _wide(f, f.values[i].tensors[k])
        elif op.args[i].kind == A_DTYPE and f.values[i].tag == TGX_INT and f.values[i].i == f.half:
            f.values[i].i = TGX_F32
    return 0


cdef tgx_tensor *_wide(Frame *f, tgx_tensor *given) except NULL:
    cdef Tensor t
    if not is_half(given.dtype):
        return given
    t = cast(_borrowed(given), TGX_F32)
    _keep(f, t)
    return fields(t)


cdef int _narrow(Frame *f, Op op, PyObject **args) except -1:
    """Results in float32 become halves, unless float32 was asked for."""
    cdef int i
    cdef tgx_output *o
    for i in range(op.nargs):
        if op.args[i].kind == A_DTYPE and args[i] != <PyObject *>None and dtype_id(<object>args[i]) != f.half:
            return 0
    for i in range(f.call.noutputs):
        o = &f.call.outputs[i]
        if o.origin == TGX_WRITES or o.origin == TGX_VIEW or f.call.changes or is_complex(o.dtype):
            raise NotImplementedError(f"\"{op.title}\" not implemented for '{dtype_title(f.half)}': convert the argument "
                                      "first, for example with .float()")
        if o.dtype == TGX_F32 and (o.origin == TGX_FRESH or o.origin == TGX_OVER):
            o.origin, o.dtype = TGX_FRESH, f.half
            o.via = TGX_F32 if o.via < 0 else o.via
    return 0
