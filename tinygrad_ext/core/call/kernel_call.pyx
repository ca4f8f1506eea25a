# cython: language_level=3
"""The caller of kernels: everything that an op with a C kernel has in common with all others.

Arguments become the values of kernels/tgx.h, tensors a pointer to their own first fields; `shape` is asked, memory is
found for the results (fresh, an `out=` brought into shape, the target of an in-place form), operands are converted
where the kernel wants them otherwise, and `run` fills the results, without the interpreter's lock where the work is
large. No kernel does any of this itself. Parts of this file: kernel_arguments.pxi, kernel_results.pxi (and run),
kernel_targets.pxi, kernel_later.pxi. kernels/alone.c is the same for programs without Python.

Foreign code (an attribute's `__index__`, a handler of a warning, a finalizer that the collector runs) may change a
tensor between shape and run. Every change of a window counts in `geometry_changes`; when the count moved before run
began, shape is asked again. Large tensors are replaced by aliases, because run lets go of the lock. Copying
sizes and strides into the call instead would cost a small kernel more than it does itself.
"""
from cpython.float cimport PyFloat_CheckExact, PyFloat_AS_DOUBLE
from cpython.mem cimport PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from tinygrad_ext.core.loops.blas cimport find_blas
from tinygrad_ext.core.loops.copy cimport cast, casts, clone, contiguous, copy_into, tgx_use_casts
from tinygrad_ext.core.data.memory_error import AllocationError
from tinygrad_ext.core.data.boxed cimport as_float, as_int, as_ints, as_scalar, as_wide_scalar
from tinygrad_ext.core.call.matrix_error import LinAlgError
from tinygrad_ext.core.call.dispatch cimport ArgSpec, MAX_ARGS, Op, forward, on_device, register_pair, set_kernel_caller
from tinygrad_ext.core.data.dtype cimport (
    CPU, META, default_id, device_flipped, device_for, device_id, dtype_id, dtype_of, flips_of, is_host, is_row, real_of,
)
from tinygrad_ext.core.data.geometry cimport ANY_ROOM
from tinygrad_ext.core.call.kernel cimport *
from tinygrad_ext.core.call.outputs cimport (
    check_apart, check_inputs, check_target, check_writable, deliver, deliver_all, note_write, refuse_grad, require_grad,
)
from tinygrad_ext.core.loops.parallel cimport count_processors, mark_region, num_threads, parallel_for
from tinygrad_ext.core.data.random cimport as_generator
from tinygrad_ext.core.data.storage cimport Storage, new_storage
from tinygrad_ext.core.data.tensor cimport (
    CONTIGUOUS, READONLY, Tensor, alias, empty, empty_strided, flips_words, geometry_changes, view,
)
from tinygrad_ext.core.data.types cimport (
    A_ANY, A_BOOL, A_COMPLEX, A_DEVICE, A_DTYPE, A_FLOAT, A_FORMAT, A_GENERATOR, A_INT, A_LAYOUT, A_SCALAR, A_STR, F_LIST,
    ITEMSIZE, is_coded,
    TGX_BOOL, TGX_INDEX, TGX_NO_MEMORY, TGX_ZERO_DIVISION, int64_t, is_complex, is_half, is_inexact, tgx_scalar,
)

from tinygrad_ext.core.call.op_tables import ops as _ops

cdef extern from *:
    const int64_t INT64_MIN, INT64_MAX

cdef extern from "Python.h":
    bint PyLong_CheckExact(object o)
    int64_t PyLong_AsLongLong(object o) except? -1
    PyObject *PyErr_Occurred()
    PyObject *PyTuple_GET_ITEM(object o, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(object o)
    const char *PyUnicode_AsUTF8(object o) except NULL

cdef extern from "walk.h" nogil:
    int tgx_copy(const tgx_services *services, const tgx_tensor *to, const tgx_tensor *source)

cdef extern from "view.h" nogil:
    enum:
        TGX_WINDOW, TGX_CONJUGATED, TGX_NEGATED

cdef extern from "kernel_table.h":
    const tgx_kernel **tgx_kernels

cdef enum:
    MANY = 12               # results for which there is room in the frame
    WORDS = 96              # of lists and numbers
    REFS = 24
    SCRATCH = 512
    HOLD_FROM = 1024        # elements from which a tensor is replaced by an alias: kernels on less keep the lock

cdef struct Frame:          # one call; too large to be cleared, so each part is set when it is needed
    tgx_call call
    tgx_value[MAX_ARGS] values
    tgx_output[MANY] outputs
    int64_t[MANY][2 * TGX_MAX_DIMS] dims
    int64_t[WORDS] words
    PyObject *refs[REFS]    # what must live as long as the call
    PyObject **targets      # of the in-place form and that with out=, and what was made instead; NULL: run writes to it itself
    PyObject *made[MANY]
    PyObject *unknown       # a meta tensor given for a number, a plugin's dtype that is asked for, or NULL
    PyObject *copied        # list of (argument, wide copy that run changes), or NULL; set where operands are converted
    PyObject *more_refs     # list of what found no place there, or NULL
    int nrefs
    int used                # of words
    bint meta               # there is nothing to run on
    bint brought            # ... because a plugin's device has it
    bint large
    Frame *next             # that is free
    char[SCRATCH] scratch

tgx_use_casts(casts())
services.parallel_for, services.num_threads, services.copy = parallel_for, num_threads, _copy
services.processors, services.mark_region, services.blas = count_processors, mark_region, find_blas
services.offset, services.default_dtype = _offset, _default_dtype       # asked by shape, which has the lock


cdef int _copy(const tgx_tensor *to, const tgx_tensor *source) noexcept nogil:
    return tgx_copy(&services, to, source)


cdef int64_t _offset(const tgx_tensor *fields, int64_t *nbytes) noexcept:
    cdef Tensor t = _borrowed(<tgx_tensor *>fields)
    nbytes[0] = ANY_ROOM if t.device_id == META else 0 if t.storage is None else <int64_t>t.storage.nbytes
    return 0 if t.storage is None else (t.data - t.storage.data) // ITEMSIZE[t.tid]


cdef int _default_dtype() noexcept:
    return default_id()


# ---- frames --------------------------------------------------------------------------------------------------------
#
# Not on the stack: an op within an op within a handler would soon need a thread's all, and much of a frame is the same
# in each call.

cdef Frame *free_frames = NULL


cdef inline Frame *_take_frame() except NULL:
    global free_frames
    cdef Frame *f = free_frames
    if f == NULL:
        return _new_frame()
    free_frames = f.next
    return f


cdef Frame *_new_frame() except NULL:
    cdef int i
    cdef Frame *f = <Frame *>PyMem_RawMalloc(sizeof(Frame))
    if f == NULL:
        raise MemoryError()
    f.call.services, f.call.args, f.call.outputs, f.call.capacity = &services, f.values, f.outputs, MANY
    for i in range(MANY):
        f.outputs[i].dims = f.dims[i]
    f.nrefs, f.more_refs = 0, NULL
    return f


cdef inline int _free_frame(Frame *f) noexcept:
    global free_frames
    if f.nrefs:
        _let_go(f)
    f.next = free_frames
    free_frames = f
    return 0


cdef int _let_go(Frame *f) noexcept:
    """Give up what the call kept, which may run foreign code."""
    cdef int i
    for i in range(f.nrefs):
        Py_DECREF(<object>f.refs[i])
    Py_XDECREF(f.more_refs)
    f.nrefs, f.more_refs = 0, NULL
    f.call.outputs, f.call.capacity = f.outputs, MANY
    return 0


cdef int _keep(Frame *f, object o) except -1:
    """Let an object live as long as the call."""
    if f.nrefs < REFS:
        Py_INCREF(o)
        f.refs[f.nrefs] = <PyObject *>o
        f.nrefs += 1
        return 0
    if f.more_refs == NULL:
        more = []
        Py_INCREF(more)
        f.more_refs = <PyObject *>more
    (<list>f.more_refs).append(o)
    return 0


cdef extern from "lapack.h" nogil:
    enum:
        TGX_LINALG_ERROR
        TGX_DTYPE_REFUSED

include "kernel_arguments.pxi"
include "kernel_results.pxi"


# ---- shape ---------------------------------------------------------------------------------------------------------

cdef int _raise(Frame *f) except -1:
    if PyErr_Occurred():        # by a service
        return -1
    text = f.call.text.decode("utf-8", "replace")
    if f.call.error_kind == TGX_INDEX_ERROR:
        raise IndexError(text)
    if f.call.error_kind == TGX_TYPE_ERROR:
        raise TypeError(text)
    if f.call.error_kind == TGX_VALUE_ERROR:
        raise ValueError(text)
    if f.call.error_kind in (TGX_NOT_IMPLEMENTED_ERROR, TGX_DTYPE_REFUSED):
        raise NotImplementedError(text)
    if f.call.error_kind == TGX_MEMORY_ERROR:
        raise AllocationError(text)
    if f.call.error_kind == TGX_LINALG_ERROR:
        raise LinAlgError(text)
    raise RuntimeError(text)


cdef int _raise_code(Frame *f, Op op, int code) except -1:
    """The error for what shape or run returned."""
    if code == TGX_FAILED:
        _raise(f)
    if code == TGX_NO_MEMORY:
        raise AllocationError(f"{op.title}(): no memory for what it keeps while it works")
    if code == TGX_ZERO_DIVISION:
        raise RuntimeError("ZeroDivisionError")
    if code == TGX_INDEX:
        raise IndexError(f"{op.title}(): index out of range")
    raise RuntimeError(f"{op.title}(): {op.failure or 'a value is not in the range that the op is defined for'}")


cdef int _warn(Frame *f) except -1:
    import warnings
    warnings.warn(f.call.text.decode("utf-8", "replace"), UserWarning, stacklevel=1)
    return 0


cdef int _more(Frame *f) except -1:
    """Room for as many results as shape found."""
    cdef Py_ssize_t i, n = f.call.noutputs
    cdef Storage outputs = new_storage(n * sizeof(tgx_output)), dims = new_storage(2 * n * f.call.room * sizeof(int64_t))
    _keep(f, outputs)
    _keep(f, dims)
    f.call.outputs, f.call.capacity = <tgx_output *>outputs.data, f.call.noutputs
    for i in range(n):
        f.call.outputs[i].dims = <int64_t *>dims.data + 2 * i * f.call.room
    return 0


cdef inline int _ask_shape(Frame *f, Op op, PyObject **args) except -1:
    """Tensors, then shape, until it has what it needs; 1: they are on a plugin's device, which must compute or copy."""
    cdef int code
    while True:
        if _set_tensors(f, op, args):
            return 1
        if f.unknown != NULL and _is_for_coded(f):
            return 1
        f.call.meta = f.meta
        f.call.noutputs, f.call.work, f.call.scratch_bytes, f.call.warning = op.nreturns, 0, 0, 0
        code = tgx_ask(op.pair, &f.call)
        if code == 0 and f.call.warning == 0:
            return f.brought and f.call.outputs[0].origin != TGX_VIEW and f.call.outputs[0].origin != TGX_SAME
        _settle(f, op, code)


cdef int _settle(Frame *f, Op op, int code) except -1:
    """Raise an error; make more room, or show a warning, whose handlers may change a tensor: shape is asked again."""
    if code == TGX_MORE:
        return _more(f)
    if code:
        return _raise_code(f, op, code)
    f.call.warned = 1
    return _warn(f)


cdef bint _is_for_coded(Frame *f) except -1:
    """Whether a plugin's dtype is asked for; refuses a meta tensor for a number where there is something to compute."""
    if not isinstance(<object>f.unknown, Tensor):
        return True
    if not f.meta:
        (<Tensor>f.unknown)._only_element()         # refuses
    return False


cdef inline int _begin(Frame *f, Op op, PyObject **args, tgx_tensor *target) except -1:
    f.used, f.unknown = 0, NULL
    f.call.title, f.call.nargs, f.call.target, f.call.warned = op.c_title, op.nargs, target, 0
    _set_attributes(f, op, args)
    return _ask_shape(f, op, args)


# ---- the functional form ----------------------------------------------------------------------------------------------

cdef object call_kernel(Op op, PyObject **args):
    """The functional form."""
    cdef Frame *f = _take_frame()
    try:
        if op.pair.flags & TGX_WINDOW and op.ntensors == 1:
            made = _window(f, op, args)
            if made is not None:
                return made
        return _call(f, op, args)
    finally:
        _free_frame(f)


cdef object _window(Frame *f, Op op, PyObject **args):
    """The short way of a kernel whose results are windows on its one tensor; None where it is not enough."""
    cdef uint64_t before
    cdef Tensor t
    f.used = 0
    f.values[0].tag, f.values[0].tensor = TGX_TENSOR, fields(<Tensor>args[0])
    f.call.title, f.call.target, f.call.noutputs = op.c_title, NULL, 1
    _set_attributes(f, op, args)
    before = geometry_changes
    if op.pair.shape(&f.call):
        return None
    if op.makes_list:
        made = _results(f, op, args)
        return made if before == geometry_changes else None
    if f.outputs[0].origin == TGX_VIEW:
        t = view(<Tensor>args[0], f.outputs[0].sizes, f.outputs[0].strides, f.outputs[0].rank, f.outputs[0].offset)
        if before == geometry_changes:
            return t if t.tid == f.outputs[0].dtype else _shown_as(op, t, f.outputs[0].dtype)
    elif f.outputs[0].origin == TGX_SAME:
        return <object>args[0]
    return None


cdef object _elsewhere(Op op, PyObject **args, PyObject *out):
    """The plugin's device computes."""
    result = on_device(op, args, out)
    if result is NotImplemented:            # a list that tells each reader something else
        raise RuntimeError(f"{op.title}(): its tensors changed their device while they were read")
    if op.options >= 0 and <object>args[op.options + 4] is True:
        require_grad(<Tensor>result)
    return result


cdef inline object _call(Frame *f, Op op, PyObject **args):
    cdef uint64_t before
    cdef bint runs
    cdef object made
    if _begin(f, op, args, NULL):
        return _elsewhere(op, args, NULL)
    if op.nreturns != 1 or op.makes_list:
        return _call_for_several(f, op, args)
    while True:
        before = geometry_changes
        made = _result(f, op, args, f.call.outputs)
        runs = _ready(f, op, args)
        if before == geometry_changes:
            break
        if _ask_shape(f, op, args):
            return _elsewhere(op, args, NULL)
    if runs:
        _run(f, op)
    if f.call.outputs.via >= 0:
        made = _as_asked(f.call.outputs, made)
    if op.options >= 0 and <object>args[op.options + 4] is True:
        require_grad(<Tensor>made)
    return made


cdef object _call_for_several(Frame *f, Op op, PyObject **args):
    cdef uint64_t before
    cdef int i
    cdef bint runs
    cdef tuple made
    while True:
        before = geometry_changes
        made = _results(f, op, args)
        runs = _ready(f, op, args)
        if before == geometry_changes:
            break
        if _ask_shape(f, op, args):
            return _elsewhere(op, args, NULL)
    if runs:
        _run(f, op)
    for i in range(f.call.noutputs):
        if f.call.outputs[i].via >= 0:
            return tuple([_as_asked(&f.call.outputs[i], made[i]) for i in range(f.call.noutputs)])
    return made


include "kernel_targets.pxi"


include "kernel_later.pxi"
include "kernel_load.pxi"
