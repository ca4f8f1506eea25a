# cython: language_level=3
"""The way from bound arguments to a kernel. Op, which it follows, and the slots on it are in the parts.

A call arrives from callables.pyx with its arguments bound to the schema, after overrides were asked. `call_op`
offers it to the levels, where there are any, and decides whether autograd records it; `forward` runs the kernel: a
pointwise loop (pointwise.pyx), a pair in C (kernel_call.pyx), a boxed kernel of native/, a Python kernel, or a composite
written in other ops. That a call is recorded is decided here, how stands behind the slot `record_op`. In-place and out= forms
come by inplace.pyx instead of `call_op`. The parts are one translation unit with this file, because a call of a few
elements has no time for functions that the compiler cannot see into.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from tinygrad_ext.core.data.dtype cimport CPU, META, dtype_of
from tinygrad_ext.core.call.kernel cimport TGX_APART, tgx_kernel
from tinygrad_ext.core.data.tensor cimport (
    DERIVED, DETACHED_VIEW, DIFF_VIEW, INFERENCE, REQUIRES_GRAD, Tensor, is_tensor, needs_grad, set_base, version_of,
)
from tinygrad_ext.core.data.tracking cimport track_all
from tinygrad_ext.core.data.types cimport (
    A_ANY, A_DEVICE, A_DTYPE, A_TENSOR, F_DEFAULT, F_KEYWORD, F_LIST, F_NESTED, F_WRITE, is_coded,
)

cdef extern from *:
    """
    /* In the static block of the thread it is read by one instruction; a module that is loaded later would ask a function
     * each time, which costs a small op 3 % of its instructions. glibc keeps room there for modules loaded later. */
    #ifdef __GLIBC__
    __attribute__((tls_model("initial-exec")))
    #endif
    static __thread tgx_state tgx_thread_state;
    """
    tgx_state tgx_thread_state

cdef extern from "Python.h":
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)
    const char *PyUnicode_AsUTF8(object o) except NULL


cdef tgx_state *state() noexcept nogil:
    return &tgx_thread_state


include "dispatch_slots.pxi"
include "dispatch_op.pxi"
include "dispatch_marks.pxi"


# ---- the call ------------------------------------------------------------------------------------------------------

cdef bint any_needs_grad(Op op, PyObject **args) noexcept:
    """Whether some tensor among the arguments takes part in autograd."""
    cdef int i
    cdef PyObject *o
    for i in range(op.ntensors):
        o = args[op.tensors[i]]
        if is_tensor(o):
            if needs_grad(<Tensor>o):
                return True
        elif o != <PyObject *>None and _any_in_list(<object>o):
            return True
    return False


cdef bint _any_in_list(object o) noexcept:
    if isinstance(o, (list, tuple)):
        for t in o:
            if isinstance(t, Tensor) and needs_grad(<Tensor>t):
                return True
    return False


cdef object call_op(Op op, PyObject **args):
    """Levels, autograd, then the kernel."""
    if tgx_thread_state.flags & TGX_LEVELS:
        result = _levels(op, args, FUNCTIONAL)
        if result is not NotImplemented:
            return result
    return call_below(op, args)


cdef object call_below(Op op, PyObject **args):
    """Autograd, then the kernel."""
    return call_plain(op, args, UNKNOWN)


cdef inline bint _recorded(Op op, PyObject **args, int needed) noexcept:
    return any_needs_grad(op, args) if needed == UNKNOWN else needed


cdef object call_plain(Op op, PyObject **args, int needed):
    cdef tgx_state *st = &tgx_thread_state
    cdef object result
    if op.kind == POINTWISE and op.custom is None and not (st.inference | st.in_forward) \
            and (st.no_grad or not _recorded(op, args, needed)):
        return _pointwise(op, args, NULL)           # what it makes is a new tensor with nothing to be said about it
    if op.pair != NULL and not st.no_grad:
        if _recorded(op, args, needed):
            result = record_op(op, args, NULL, False)
        else:
            result = _call_kernel(op, args)
    elif op.custom is not None:
        result = op.custom.call(op, args)
    elif st.no_grad:
        result = forward(op, args)
        if st.in_forward:
            mark_derived(op, args, result)
    elif op.kind == COMPOSITE or not _recorded(op, args, needed):
        result = forward(op, args)
    else:
        result = record_op(op, args, NULL, False)
    if op.is_view and op.differentiable:        # (the same bytes as another dtype have no derivative)
        _link_views(op, <object>args[op.tensors[0]], result, 2)
    if op.returns is not None and type(result) is tuple:
        return _tuple_new(named(op), result)
    if st.inference and _made_here(op, args, result):
        _mark_inference(result)
    return result


cdef object _tuple_new = tuple.__new__


cdef object forward(Op op, PyObject **args):
    """The kernel alone."""
    cdef int traits
    if tgx_thread_state.instead != NULL:
        return _instead(op, args, False)
    if op.kind == POINTWISE:
        return _pointwise(op, args, NULL)
    if op.pair != NULL:
        return _call_kernel(op, args)
    if op.kind == KERNEL:
        traits = 0 if op.is_view else _traits(op, args)
        if traits & BROUGHT and not op.any_device:
            result = _on_device(op, args, NULL)
            if result is not NotImplemented:
                return result
        if traits & ON_META and not op.knows_meta:
            return _meta_result(op, args)
        if op.out_kernel:
            args[op.nargs] = <PyObject *>None
        return op.kernel(args)
    if op.custom is not None:
        return op.custom.run(op, args)
    return run_python(op, args)


cdef object run_python(Op op, PyObject **args):
    """A Python kernel or composite: nobody is asked about what it calls. Levels see the inside of a composite that they
    did not take as a whole; under a kernel there are none, and grad mode is off."""
    cdef tgx_state *st = &tgx_thread_state
    cdef uint32_t flags = st.flags
    cdef int32_t active = st.active
    cdef uint8_t no_grad = st.no_grad
    if op.kind == PYTHON_KERNEL:
        if any_away(op, args):
            result = _on_device(op, args, NULL)
            if result is not NotImplemented:
                return result
            if not op.knows_meta:
                return _meta_result(op, args)
        st.no_grad = 1
        st.flags, st.active = 0, 0
    st.flags &= TGX_LEVELS
    st.below += 1
    try:
        if op.kernel != NULL:
            return op.kernel(args)
        if op.keywords is not None:
            return PyObject_Vectorcall(op.python, args, op.nargs - len(op.keywords), <PyObject *>op.keywords)
        return PyObject_Vectorcall(op.python, args, op.nargs, NULL)
    finally:
        st.flags, st.active = flags, active
        st.no_grad = no_grad
        st.below -= 1


cdef bint any_away(Op op, PyObject **args) noexcept:
    cdef int i
    cdef object o
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if isinstance(o, Tensor):
            if (<Tensor>o).device_id != 0:
                return True
        elif isinstance(o, (list, tuple)):
            for t in o:
                if isinstance(t, Tensor) and (<Tensor>t).device_id != 0:
                    return True
    return False


cdef enum:                  # what is among the tensors of a call
    ON_META = 1
    BROUGHT = 2             # on a device or of a dtype of a plugin, or an op that may be asked for one


cdef inline int _traits_of(Tensor t) noexcept:
    return 0 if t.device_id == CPU else ON_META if t.device_id == META and not is_coded(t.tid) else BROUGHT


cdef int _traits(Op op, PyObject **args) noexcept:
    cdef int i, found = op.traits
    cdef PyObject *o
    for i in range(op.ntensors):
        o = args[op.tensors[i]]
        if is_tensor(o):
            found |= _traits_of(<Tensor>o)
        elif o != <PyObject *>None:
            found |= _traits_of_list(<object>o)
    return found


cdef int _traits_of_list(object o) noexcept:
    cdef int found = 0
    if isinstance(o, (list, tuple)):
        for t in o:
            if isinstance(t, Tensor):
                found |= _traits_of(<Tensor>t)
    return found


cdef object _meta_result(Op op, PyObject **args):
    if op.shape_rule is None:
        raise NotImplementedError(f"{op.name} has no shape rule, so it cannot run on meta tensors; "
                                  "give its record `shape=` or run it on the cpu")
    return op.shape_rule(*[<object>args[i] for i in range(op.nargs)])
