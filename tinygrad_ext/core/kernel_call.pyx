# cython: language_level=3
"""The caller of kernels: everything that an op with a C kernel has in common with all others.

Arguments become the values of kernels/tgx.h, tensors a pointer to their own first fields; `shape` is asked, memory is
found for the results (fresh, an `out=` brought into shape, the target of an in-place form), operands are converted
where the kernel wants them otherwise, and `run` fills the results, without the interpreter's lock where the work is
large. No kernel does any of this itself.

Foreign code (an attribute's `__index__`, a handler of a warning, a finalizer that the collector runs) may change a
tensor between shape and run. Every change of a window counts in `geometry_changes`; when the count moved before run
began, shape is asked again. Large tensors are replaced by aliases, because run lets go of the lock. Copying
sizes and strides into the call instead would cost a small kernel more than it does itself.
"""
from cpython.float cimport PyFloat_CheckExact, PyFloat_AS_DOUBLE
from cpython.list cimport PyList_GET_SIZE, PyList_GetSlice
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from tinygrad_ext.core.copy cimport cast, clone, contiguous, copy_into
from tinygrad_ext.core.dispatch cimport (
    ArgSpec, MAX_ARGS, Op, as_float, as_int, as_ints, as_scalar, register_pair, set_kernel_caller,
)
from tinygrad_ext.core.dtype cimport device_id, dtype_id, dtype_of
from tinygrad_ext.core.geometry cimport ANY_ROOM
from tinygrad_ext.core.kernel cimport *
from tinygrad_ext.core.outputs cimport check_readonly, check_writable, refuse_cast, warn_resized
from tinygrad_ext.core.parallel cimport num_threads, parallel_for
from tinygrad_ext.core.places cimport note_mutation
from tinygrad_ext.core.random cimport as_generator
from tinygrad_ext.core.storage cimport Storage, new_storage
from tinygrad_ext.core.tensor cimport (
    CONTIGUOUS, Tensor, alias, bump, dtype_title, empty, empty_strided, geometry_changes, set_geometry, shape_text, view,
)
from tinygrad_ext.core.types cimport (
    A_ANY, A_BOOL, A_COMPLEX, A_DEVICE, A_DTYPE, A_FLOAT, A_FORMAT, A_GENERATOR, A_INT, A_LAYOUT, A_SCALAR, A_STR, F_LIST,
    ITEMSIZE,
    TGX_BOOL, TGX_INDEX, TGX_NO_MEMORY, TGX_ZERO_DIVISION, int64_t, is_complex, is_inexact, tgx_scalar,
)

from tinygrad_ext.core.dtype import can_cast

cdef extern from *:
    const int64_t INT64_MIN, INT64_MAX

cdef extern from "Python.h":
    bint PyLong_CheckExact(object o)
    int64_t PyLong_AsLongLong(object o) except? -1
    PyObject *PyTuple_GET_ITEM(object o, Py_ssize_t i)
    const char *PyUnicode_AsUTF8(object o) except NULL

cdef extern from "walk.h" nogil:
    int tgx_copy(const tgx_services *services, const tgx_tensor *to, const tgx_tensor *source)

cdef extern from "view.h" nogil:
    enum:
        TGX_WINDOW

cdef extern from "kernel_table.h":
    const tgx_kernel **tgx_kernels

cdef enum:
    FEW = 3                 # results of an op that makes no list
    MANY = 12               # results of a list for which there is room in the frame
    WORDS = 96              # of lists and numbers
    SCRATCH = 512
    HOLD_FROM = 1024        # elements from which a tensor is replaced by an alias: kernels on less keep the lock

cdef struct Frame:          # one call; too large to be cleared, so each part is set when it is needed
    tgx_call call
    tgx_value[MAX_ARGS] values
    tgx_output[MANY] outputs
    int64_t[MANY][2 * TGX_MAX_DIMS] dims
    int64_t[WORDS] words
    PyObject *kept          # list of what must live as long as the call; NULL: nothing yet
    int used                # of words
    bint meta
    bint large
    char[SCRATCH] scratch

cdef tgx_services services
services.parallel_for, services.num_threads, services.copy = parallel_for, num_threads, _copy
services.offset = _offset       # asked by shape, which has the lock


cdef int _copy(const tgx_tensor *to, const tgx_tensor *source) noexcept nogil:
    return tgx_copy(&services, to, source)


cdef int64_t _offset(const tgx_tensor *fields, int64_t *nbytes) noexcept:
    cdef Tensor t = _borrowed(<tgx_tensor *>fields)
    nbytes[0] = ANY_ROOM if t.device_id else 0 if t.storage is None else <int64_t>t.storage.nbytes
    return 0 if t.storage is None else (t.data - t.storage.data) // ITEMSIZE[t.tid]


# ---- arguments -----------------------------------------------------------------------------------------------------

cdef int _keep(Frame *f, object o) except -1:
    """Let an object live as long as the call."""
    if f.kept == NULL:
        kept = []
        f.kept = <PyObject *>kept
        Py_INCREF(kept)
    (<list>f.kept).append(o)
    return 0


cdef void *_room(Frame *f, Py_ssize_t words) except NULL:
    """Memory for so many words that lasts as long as the call."""
    cdef int at = f.used
    cdef Storage more
    if at + words <= WORDS:
        f.used = at + <int>words
        return &f.words[at]
    more = new_storage(8 * words)
    _keep(f, more)
    return more.data


cdef inline bint _set_plain(Frame *f, tgx_value *v, object given) except -1:
    """A tuple of nothing but ints, which reading does not change; whether it was one."""
    cdef Py_ssize_t i, n = len(<tuple>given)
    v.tag, v.n, v.ints = TGX_INTS, <int>n, <int64_t *>_room(f, n)
    for i in range(n):
        if not PyLong_CheckExact(<object>PyTuple_GET_ITEM(given, i)):
            return False
        v.ints[i] = PyLong_AsLongLong(<object>PyTuple_GET_ITEM(given, i))
    return True


cdef int _set_list(Frame *f, tgx_value *v, ArgSpec *spec, object given) except -1:
    cdef Py_ssize_t i, n
    if type(given) is tuple and spec.kind == A_INT and _set_plain(f, v, given):
        return 0
    if PyLong_CheckExact(given) and spec.kind == A_INT and spec.size == 1:
        v.tag, v.n, v.ints = TGX_INTS, 1, <int64_t *>_room(f, 1)
        v.ints[0] = PyLong_AsLongLong(given)
        return 0
    n = len(given) if isinstance(given, (list, tuple)) else max(spec.size, 1)
    if spec.kind == A_FLOAT:
        v.tag, v.floats = TGX_FLOATS, <double *>_room(f, n)
        for i in range(n):
            item = given[i] if isinstance(given, (list, tuple)) else given
            v.floats[i] = as_float(<PyObject *>item)
    else:
        v.tag, v.ints = TGX_INTS, <int64_t *>_room(f, n)
        if as_ints(<PyObject *>given, v.ints, <int>n, <int>n) != n:
            raise RuntimeError("a list of numbers changed its length while it was read")
    v.n = <int>n
    return 0


cdef object _plain(object given):
    """The Python number of a 0-dim tensor or of another library's scalar; of a meta tensor a zero of its kind."""
    cdef Tensor t
    if isinstance(given, Tensor) and (<Tensor>given).device_id:
        t = <Tensor>given
        return 0j if is_complex(t.tid) else 0.0 if is_inexact(t.tid) else False if t.tid == TGX_BOOL else 0
    return given.item() if hasattr(given, "item") else given


cdef int64_t _size(Op op, int i, object given, object place) except? -1:
    """A number of what is declared Any; `place` in its list, or None."""
    if given is None and place is not None:
        return INT64_MIN
    if isinstance(given, (bool, str)) or not hasattr(given, "__index__"):
        found = f"not {type(given).__name__}" if place is None else f"found element of type {type(given).__name__} at pos {place}"
        raise TypeError(f"{op.title}(): argument '{<object>op.args[i].name}' (position {i + 1}) must be int or tuple of ints, {found}")
    return max(min(given.__index__(), INT64_MAX), -INT64_MAX)


cdef int _set_any(Frame *f, Op op, int i, object given) except -1:
    """An int, or a list of ints and None."""
    cdef tgx_value *v = &f.values[i]
    cdef Py_ssize_t k
    if not isinstance(given, (list, tuple)):
        v.tag, v.i = TGX_INT, _size(op, i, given, None)
        return 0
    row = tuple(given)          # an element's __index__ may change the list
    v.tag, v.n, v.ints = TGX_INTS, <int>len(row), <int64_t *>_room(f, len(row))
    for k in range(v.n):
        v.ints[k] = _size(op, i, row[k], k)
    return 0


cdef int _set_number(Frame *f, tgx_value *v, object given) except -1:
    if not isinstance(given, (int, float, complex)):
        given = _plain(given)
    v.tag, v.number = TGX_NUMBER, <tgx_scalar *>_room(f, sizeof(tgx_scalar) // 8)
    v.number[0] = as_scalar(given)
    if isinstance(given, bool):
        v.kind = TGX_IS_BOOL
    elif isinstance(given, int):
        v.kind = TGX_IS_INT
    else:
        v.kind = TGX_IS_COMPLEX if isinstance(given, complex) else TGX_IS_FLOAT
    return 0


cdef int _set_attribute(Frame *f, tgx_value *v, ArgSpec *spec, object given) except -1:
    """What is no tensor, as C sees it. May run foreign code."""
    if spec.flags & F_LIST:
        return _set_list(f, v, spec, given)
    v.tag = TGX_INT
    if spec.kind == A_INT:
        v.i = as_int(<PyObject *>given)
    elif spec.kind == A_FLOAT:
        v.tag, v.f = TGX_FLOAT, as_float(<PyObject *>given)
    elif spec.kind == A_SCALAR or spec.kind == A_COMPLEX:
        _set_number(f, v, given)
    elif spec.kind == A_STR:
        v.tag, v.text = TGX_STRING, PyUnicode_AsUTF8(given)
    elif spec.kind == A_DTYPE:
        v.i = dtype_id(given)
    elif spec.kind == A_DEVICE:
        v.i = device_id(given)
    elif spec.kind == A_FORMAT or spec.kind == A_LAYOUT:
        v.i = given.number
    elif spec.kind == A_GENERATOR:
        v.tag, v.pointer = TGX_POINTER, &as_generator(given).mt
    else:
        raise NotImplementedError(f"kernels in C take no {type(given).__name__}")
    return 0


cdef inline int _set_attributes(Frame *f, Op op, PyObject **args) except -1:
    cdef int i, k
    cdef PyObject *o
    for k in range(op.nattributes):
        i = op.attributes[k]
        o = args[i]
        if o == <PyObject *>None:
            if op.args[i].kind == A_GENERATOR:
                f.values[i].tag, f.values[i].pointer = TGX_POINTER, &as_generator(None).mt
            elif op.args[i].kind == A_ANY:
                _set_any(f, op, i, None)
            else:
                f.values[i].tag = TGX_NONE
        elif op.args[i].kind == A_BOOL and not op.args[i].flags & F_LIST:
            f.values[i].tag, f.values[i].i = TGX_INT, (<object>o) is True
        elif op.args[i].kind == A_INT and not op.args[i].flags & F_LIST and PyLong_CheckExact(<object>o):
            f.values[i].tag, f.values[i].i = TGX_INT, PyLong_AsLongLong(<object>o)
        elif op.args[i].kind == A_FLOAT and not op.args[i].flags & F_LIST and PyFloat_CheckExact(<object>o):
            f.values[i].tag, f.values[i].f = TGX_FLOAT, PyFloat_AS_DOUBLE(<object>o)
        else:
            if op.args[i].kind == A_ANY:
                _set_any(f, op, i, <object>o)
            else:
                _set_attribute(f, &f.values[i], &op.args[i], <object>o)
    return 0


cdef inline tgx_tensor *fields(Tensor t) noexcept:
    """A tensor's own first fields."""
    return <tgx_tensor *>&t.data


cdef inline int _look(Frame *f, Tensor t) noexcept:
    if t.device_id:
        f.meta = True
    elif t.count >= HOLD_FROM:
        f.large = True
    return 0


cdef inline int _set_tensors(Frame *f, Op op, PyObject **args) except -1:
    cdef int i, k
    cdef PyObject *o
    cdef tgx_value *v
    f.meta = f.large = False
    f.call.needs = f.call.changes = 0
    for k in range(op.ntensors):
        i = op.tensors[k]
        o = args[i]
        v = &f.values[i]
        if o == <PyObject *>None:
            v.tag, v.tensor = TGX_NONE, NULL
        elif isinstance(<object>o, Tensor):
            v.tag, v.tensor = TGX_TENSOR, fields(<Tensor>o)
            _look(f, <Tensor>o)
        elif isinstance(<object>o, (list, tuple)):
            _set_tensor_list(f, v, <object>o)
        else:
            _set_number(f, v, <object>o)
    if f.meta:
        if op.pair.flags & TGX_READS:
            raise NotImplementedError(f"{op.title}(): the size of the result depends on the elements, and meta tensors have "
                                      "none; run it on the cpu")
    elif f.large and op.pair.run != NULL:
        if op.pair.flags & TGX_SERIAL:
            f.large = False
        elif not op.is_view:        # most views have nothing to run
            _hold(f, op, args)
    return 0


cdef int _set_tensor_list(Frame *f, tgx_value *v, object given) except -1:
    cdef Py_ssize_t i, n
    # a copy: a subclass may lie about its length; another thread may change it
    row = PyList_GetSlice(given, 0, PyList_GET_SIZE(given)) if type(given) is list else list(given)
    n = len(row)
    if f.kept == NULL:
        f.kept = <PyObject *>row
        Py_INCREF(row)
    else:
        _keep(f, row)
    v.tag, v.n, v.tensors = TGX_TENSORS, <int>n, <tgx_tensor **>_room(f, n)
    for i in range(n):
        v.tensors[i] = NULL
        if row[i] is not None:
            v.tensors[i] = fields(<Tensor?>row[i])
            _look(f, <Tensor>row[i])
    return 0


cdef int _hold(Frame *f, Op op, PyObject **args) except -1:
    """Aliases in the place of all tensors, which keep memory and geometry as they are."""
    cdef int i, k, j
    cdef Tensor t
    cdef tgx_value *v
    for k in range(op.ntensors):
        i = op.tensors[k]
        v = &f.values[i]
        if v.tag == TGX_TENSOR:
            t = alias(<Tensor>args[i])
            _keep(f, t)
            v.tensor = fields(t)
        elif v.tag == TGX_TENSORS:
            row = list(<object>args[i])
            if len(row) != v.n:
                raise RuntimeError(f"{op.title}(): a list of tensors changed its length while it was read")
            for j in range(v.n):
                if row[j] is not None:
                    t = alias(<Tensor?>row[j])
                    _keep(f, t)
                    v.tensors[j] = fields(t)
    return 0


# ---- shape ---------------------------------------------------------------------------------------------------------

cdef int _raise(Frame *f) except -1:
    text = f.call.text.decode("utf-8", "replace")
    if f.call.error_kind == TGX_INDEX_ERROR:
        raise IndexError(text)
    if f.call.error_kind == TGX_TYPE_ERROR:
        raise TypeError(text)
    if f.call.error_kind == TGX_VALUE_ERROR:
        raise ValueError(text)
    if f.call.error_kind == TGX_NOT_IMPLEMENTED_ERROR:
        raise NotImplementedError(text)
    if f.call.error_kind == TGX_MEMORY_ERROR:
        raise MemoryError(text)
    raise RuntimeError(text)


cdef int _raise_code(Frame *f, Op op, int code) except -1:
    """The error for what run returned."""
    if code == TGX_FAILED:
        _raise(f)
    if code == TGX_NO_MEMORY:
        raise MemoryError(f"{op.title}(): no memory for what it keeps while it works")
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
    """Tensors, then shape, until it has what it needs."""
    cdef int code
    while True:
        _set_tensors(f, op, args)
        f.call.meta = f.meta
        f.call.noutputs, f.call.work, f.call.scratch_bytes, f.call.warning = op.nreturns, 0, 0, 0
        code = op.pair.shape(&f.call)
        if code == 0 and f.call.warning == 0:
            return 0
        _settle(f, op, code)


cdef int _settle(Frame *f, Op op, int code) except -1:
    """Raise an error; make more room, or show a warning, whose handlers may change a tensor: shape is asked again."""
    if code == TGX_MORE:
        return _more(f)
    if code:
        return _raise_code(f, op, code)
    f.call.warned = 1
    return _warn(f)


cdef int _make_room(Frame *f) noexcept:
    """Room for a list of results."""
    cdef int i
    for i in range(FEW, MANY):
        f.outputs[i].dims = f.dims[i]
    f.call.capacity = MANY
    return 0


cdef inline int _begin(Frame *f, Op op, PyObject **args, tgx_tensor *target) except -1:
    f.used = 0
    f.call.services, f.call.title = &services, op.c_title
    f.call.args, f.call.nargs, f.call.target = f.values, op.nargs, target
    f.call.outputs, f.call.capacity = f.outputs, FEW
    f.outputs[0].dims, f.outputs[1].dims, f.outputs[2].dims = f.dims[0], f.dims[1], f.dims[2]
    if op.makes_list:
        _make_room(f)
    f.call.warned = 0
    _set_attributes(f, op, args)
    return _ask_shape(f, op, args)


# ---- run -----------------------------------------------------------------------------------------------------------

cdef int _convert(Frame *f) except -1:
    """Operands as the kernel wants them."""
    cdef int i
    cdef uint64_t left = f.call.needs
    cdef Tensor t
    for i in range(f.call.nargs):
        if not left >> i:
            break
        if left >> i & 1:
            t = cast(_borrowed(f.values[i].tensor), f.values[i].want)
            t = contiguous(t) if f.values[i].dense else t
            _keep(f, t)
            f.values[i].tensor = fields(t)
    return 0


cdef inline Tensor _borrowed(tgx_tensor *t):
    """The object whose first fields these are."""
    return <Tensor><object><PyObject *>(<char *>t - offset_of_fields)


cdef inline int _run(Frame *f, Op op) except -1:
    """run, without the interpreter's lock where it is worth it."""
    cdef int code
    if f.large or f.call.scratch_bytes or f.call.changes:
        return _run_large(f, op)
    code = op.pair.run(&f.call)
    if code:
        _raise_code(f, op, code)
    return 0


cdef int _check_changed(Frame *f, Op op) except -1:
    """Refuse to change what may not be written to, before anything is changed."""
    cdef int i, k
    for i in range(f.call.nargs):
        if f.call.changes >> i & 1:
            if f.values[i].tag == TGX_TENSOR:
                check_writable(_borrowed(f.values[i].tensor), f"{op.title}(): {<object>op.args[i].name}")
                continue
            for k in range(f.values[i].n):
                if f.values[i].tensors[k] != NULL:
                    check_writable(_borrowed(f.values[i].tensors[k]), f"{op.title}(): {<object>op.args[i].name}")
    return 0


cdef int _note_changed(Frame *f) except -1:
    cdef int i, k
    for i in range(f.call.nargs):
        if f.call.changes >> i & 1:
            if f.values[i].tag == TGX_TENSOR:
                _wrote(_borrowed(f.values[i].tensor))
                continue
            for k in range(f.values[i].n):
                if f.values[i].tensors[k] != NULL:
                    _wrote(_borrowed(f.values[i].tensors[k]))
    return 0


cdef int _wrote(Tensor t) except -1:
    bump(t)
    note_mutation(t)
    return 0


cdef int _run_large(Frame *f, Op op) except -1:
    cdef int code
    cdef int64_t work = f.call.work
    cdef Storage room
    if f.call.changes:
        _check_changed(f, op)
    if f.call.scratch_bytes > <int64_t>(SCRATCH - 64):
        room = new_storage(f.call.scratch_bytes)
        _keep(f, room)
        f.call.scratch = room.data
    else:
        f.call.scratch = <void *>((<size_t>&f.scratch[0] + 63) & ~<size_t>63)
    if f.large and (work == 0 or work > TGX_SMALL):
        with nogil:
            code = op.pair.run(&f.call)
    else:
        code = op.pair.run(&f.call)
    if f.call.changes:
        _note_changed(f)
    if code:
        _raise_code(f, op, code)
    return 0


cdef inline object _result(Frame *f, Op op, PyObject **args, tgx_output *o):
    """The tensor of one result; run has still to fill it."""
    cdef Tensor t
    if o.origin != TGX_FRESH or o.strides != NULL:
        return _special_result(f, op, args, o)
    t = empty(o.sizes, o.rank, o.dtype if o.via < 0 else o.via, f.meta)
    o.tensor = fields(t)
    return t


cdef object _special_result(Frame *f, Op op, PyObject **args, tgx_output *o):
    cdef Tensor t
    if o.origin == TGX_OVER and o.strides == NULL:
        t = empty(o.sizes, o.rank, o.dtype, f.meta)
    elif o.origin == TGX_FRESH or o.origin == TGX_OVER:
        t = empty_strided(o.sizes, o.strides, o.rank, o.dtype if o.via < 0 else o.via, f.meta)
    elif o.origin == TGX_VIEW:
        t = view(<Tensor>args[o.of], o.sizes, o.strides, o.rank, o.offset)
        t.tid = o.dtype
        return t
    elif o.origin == TGX_WRITES:
        t = clone(<Tensor>args[o.of])
    elif o.origin == TGX_SAME:
        return <object>args[o.of]
    else:
        return None
    o.tensor = fields(t)
    return t


cdef inline object _as_asked(tgx_output *o, object made):
    """A result converted to its dtype, where run wrote another."""
    return made if o.origin != TGX_FRESH or o.via < 0 or o.via == o.dtype else cast(<Tensor>made, o.dtype)


cdef object call_kernel(Op op, PyObject **args):
    """The functional form."""
    cdef Frame f
    f.kept = NULL
    try:
        if op.pair.flags & TGX_WINDOW and op.ntensors == 1:
            return _window(&f, op, args)
        return _call(&f, op, args)
    finally:
        Py_XDECREF(f.kept)


cdef object _window(Frame *f, Op op, PyObject **args):
    """The short way of a kernel whose results are windows on its one tensor; where it is not enough, the long one."""
    cdef uint64_t before
    cdef Tensor t
    f.used = 0
    f.values[0].tag, f.values[0].tensor = TGX_TENSOR, fields(<Tensor>args[0])
    f.call.services, f.call.title, f.call.args, f.call.target = &services, op.c_title, f.values, NULL
    f.call.outputs, f.call.noutputs, f.call.capacity = f.outputs, 1, 1
    f.outputs[0].dims = f.dims[0]
    if op.makes_list:
        f.outputs[1].dims, f.outputs[2].dims = f.dims[1], f.dims[2]
        _make_room(f)
    _set_attributes(f, op, args)
    before = geometry_changes
    if op.pair.shape(&f.call):
        return _call(f, op, args)
    if op.makes_list:
        made = _results(f, op, args)
        return made if before == geometry_changes else _call(f, op, args)
    if f.outputs[0].origin == TGX_VIEW:
        t = view(<Tensor>args[0], f.outputs[0].sizes, f.outputs[0].strides, f.outputs[0].rank, f.outputs[0].offset)
        if before == geometry_changes:
            t.tid = f.outputs[0].dtype
            return t
    elif f.outputs[0].origin == TGX_SAME:
        return <object>args[0]
    return _call(f, op, args)


cdef inline object _call(Frame *f, Op op, PyObject **args):
    cdef uint64_t before
    cdef int i
    cdef bint runs
    cdef object made
    _begin(f, op, args, NULL)
    while True:
        before = geometry_changes
        if f.call.noutputs == 1 and not op.makes_list:
            made = _result(f, op, args, f.call.outputs)
        else:
            made = _results(f, op, args)
        if f.call.needs and not f.meta:
            _convert(f)
        runs = op.pair.run != NULL and not f.meta and f.call.outputs[0].origin != TGX_SAME and f.call.outputs[0].origin != TGX_VIEW
        if runs and f.large and op.is_view:
            _hold(f, op, args)
        if before == geometry_changes:
            break
        _ask_shape(f, op, args)
    if runs:
        _run(f, op)
    if f.call.noutputs == 1 and not op.makes_list:
        return _as_asked(f.call.outputs, made)
    for i in range(f.call.noutputs):
        if f.call.outputs[i].via >= 0:
            return tuple([_as_asked(&f.call.outputs[i], made[i]) for i in range(f.call.noutputs)])
    return made


cdef tuple _results(Frame *f, Op op, PyObject **args):
    cdef tuple made = PyTuple_New(f.call.noutputs)
    cdef int i
    for i in range(f.call.noutputs):
        t = _result(f, op, args, &f.call.outputs[i])
        Py_INCREF(t)
        PyTuple_SET_ITEM(made, i, t)
    return made


# ---- into given tensors --------------------------------------------------------------------------------------------

cdef bint _shared(Op op, PyObject **args, Tensor out, int but) noexcept:
    """Whether some tensor argument other than number `but` lies in the memory of out."""
    cdef int k
    if out.storage is None:
        return False
    for k in range(op.ntensors):
        if op.tensors[k] != but and _lies_in(<object>args[op.tensors[k]], out.storage):
            return True
    return False


cdef bint _lies_in(object o, Storage memory) noexcept:
    if isinstance(o, Tensor):
        return (<Tensor>o).storage is memory
    if isinstance(o, (list, tuple)):
        for t in o:
            if isinstance(t, Tensor) and (<Tensor>t).storage is memory and (<Tensor>t).count:
                return True
    return False


cdef bint _fits(tgx_output *o, Tensor out) noexcept:
    cdef int i
    if o.rank != out.rank:
        return False
    for i in range(o.rank):
        if o.sizes[i] != out.sizes[i]:
            return False
    return True


cdef bint _direct(Op op, PyObject **args, tgx_output *o, Tensor out):
    """Whether run may write straight into out, which fits."""
    if (o.origin != TGX_FRESH and o.origin != TGX_OVER) or o.strides != NULL:
        return False
    if not (out.bits & CONTIGUOUS or op.pair.flags & TGX_ANY_LAYOUT):
        return False
    return out.tid == (o.dtype if o.via < 0 else o.via) and out.tid == o.dtype and not _shared(op, args, out, -1)


cdef int _check_target(Frame *f, Op op, PyObject **args, tgx_output *o, Tensor out, bint inplace) except -1:
    """Refuse what cannot take the result, before anything is changed."""
    if f.meta != (out.device_id != 0) and (op.ntensors or not out.device_id):
        raise RuntimeError(f"{op.title}(): Expected out tensor to have device {'meta' if f.meta else 'cpu'}, but got {out.device} "
                           "instead")
    if op.pair.flags & TGX_JOINS and not can_cast(dtype_of(o.dtype), dtype_of(out.tid)):
        raise TypeError(f"torch.{op.title}(): input types can't be cast to the desired output type {dtype_title(out.tid)}: together "
                        f"they make {dtype_title(o.dtype)}")
    refuse_cast(o.dtype, out.tid)
    if op.pair.flags & TGX_APART and out.count and _shared(op, args, out, 0 if inplace else -1):
        raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                           f"single memory location. {op.title}() cannot write to its own input; clone() it first.")
    if _fits(o, out):
        return check_writable(out, op.title)
    if inplace:
        raise RuntimeError(f"output with shape {shape_text(out)} doesn't match the broadcast shape "
                           f"{[o.sizes[i] for i in range(o.rank)]}")
    return check_readonly(out, "out=")


cdef int _part_operands(Frame *f, Op op, PyObject **args, Tensor out, int but) except -1:
    """Copies of the operands that lie in the memory that is about to be changed."""
    cdef int i, k
    cdef Tensor t
    for k in range(op.ntensors):
        i = op.tensors[k]
        if i != but and f.values[i].tag == TGX_TENSOR and (<Tensor>args[i]).storage is out.storage:
            t = clone(_borrowed(f.values[i].tensor))
            _keep(f, t)
            f.values[i].tensor = fields(t)
    return 0


cdef int kernel_into(Op op, PyObject **args, Tensor out, bint inplace) except -1:
    """The in-place form (out is the first argument) and the form with out=, of an op with one result."""
    cdef Frame f
    f.kept = NULL
    try:
        return _call_into(&f, op, args, out, inplace)
    finally:
        Py_XDECREF(f.kept)


cdef int _call_into(Frame *f, Op op, PyObject **args, Tensor out, bint inplace) except -1:
    cdef tgx_output *o
    cdef uint64_t before
    cdef object made
    _begin(f, op, args, fields(out))
    while True:
        before = geometry_changes
        o = f.call.outputs
        _check_target(f, op, args, o, out, inplace)
        made = _target(f, op, args, o, out, inplace)
        if f.call.needs and not f.meta:
            _convert(f)
        if before == geometry_changes:
            break
        _ask_shape(f, op, args)
    if not f.meta and o.origin != TGX_SAME and o.origin != TGX_VIEW:
        _run(f, op)
    if made is not None:
        _deliver(o, out, <Tensor>_as_asked(o, made))
    return 0


cdef object _target(Frame *f, Op op, PyObject **args, tgx_output *o, Tensor out, bint inplace):
    """Let run find what it writes to: out itself, and None; or a result that is still to be delivered."""
    cdef Tensor t
    if (o.origin == TGX_WRITES or o.origin == TGX_OVER) and inplace and out is <object>args[o.of]:
        _part_operands(f, op, args, out, o.of)
    elif not _fits(o, out) or not _direct(op, args, o, out):
        return _result(f, op, args, o)
    t = out
    if f.large:
        t = alias(out)
        _keep(f, t)
    o.tensor = fields(t)
    return None


cdef int _deliver(tgx_output *o, Tensor out, Tensor made) except -1:
    """Leave a finished result in out. Only now out is resized: a handler of the warning can change nothing any more."""
    if _fits(o, out):
        return copy_into(out, made)
    if out.count:
        warn_resized(out, made.sizes, made.rank)
    if made.tid == out.tid and (o.origin == TGX_FRESH or o.origin == TGX_WRITES or o.origin == TGX_OVER):
        return set_geometry(out, made)
    set_geometry(out, empty(made.sizes, made.rank, out.tid, out.device_id))
    return copy_into(out, made)


# ---- the table -----------------------------------------------------------------------------------------------------

cdef Tensor _probe = Tensor.__new__(Tensor)
cdef size_t offset_of_fields = <char *>&_probe.data - <char *><PyObject *>_probe


cdef int _check_layout() except -1:
    """The fields of a Tensor must lie as those of a tgx_tensor."""
    cdef char *at = <char *>&_probe.data
    cdef tgx_tensor *t = <tgx_tensor *>at
    if (<char *>&_probe.sizes != <char *>&t.sizes or <char *>&_probe.strides != <char *>&t.strides
            or <char *>&_probe.count != <char *>&t.count or <char *>&_probe.rank != <char *>&t.rank
            or <char *>&_probe.tid != <char *>&t.dtype or <char *>&_probe.device_id != <char *>&t.device
            or <char *>&_probe.bits != <char *>&t.flags):
        raise ImportError("core/tensor.pxd and kernels/tgx.h disagree about the fields of a tensor: build all of the package again")
    return 0


cdef int _load() except -1:
    cdef const tgx_kernel **row = <const tgx_kernel **>tgx_kernels
    while row[0] != NULL:
        register_pair(row[0].name.decode(), row[0])
        row += 1
    return 0


_check_layout()
_load()
set_kernel_caller(call_kernel, kernel_into)
