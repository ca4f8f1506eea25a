# Arguments as the values of kernels/tgx.h. Part of kernel_call.pyx.

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


cdef inline int _set_int(Frame *f, tgx_value *v, ArgSpec *spec, object given) except -1:
    """An int, alone or as a list of as many as the schema says."""
    cdef int i
    cdef int64_t number = PyLong_AsLongLong(given)
    if not spec.flags & F_LIST:
        v.tag, v.i = TGX_INT, number
        return 0
    v.tag, v.n = TGX_INTS, max(spec.size, 1)
    v.ints = <int64_t *>_room(f, v.n)
    for i in range(v.n):
        v.ints[i] = number
    return 0


cdef inline bint _set_plain(Frame *f, tgx_value *v, object given) except -1:
    """A tuple of nothing but ints, which reading does not change; whether it was one."""
    cdef Py_ssize_t i, n = PyTuple_GET_SIZE(given)
    v.tag, v.n, v.ints = TGX_INTS, <int>n, <int64_t *>_room(f, n)
    for i in range(n):
        if not PyLong_CheckExact(<object>PyTuple_GET_ITEM(given, i)):
            return False
        v.ints[i] = PyLong_AsLongLong(<object>PyTuple_GET_ITEM(given, i))
    return True


cdef int _set_list(Frame *f, tgx_value *v, ArgSpec *spec, object given) except -1:
    cdef Py_ssize_t i, n
    if spec.kind == A_INT and is_row(given) and _set_plain(f, v, given):
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


cdef object _plain(Frame *f, object given):
    """The Python number of a 0-dim tensor or of another library's scalar; of a meta tensor a zero, which will do on meta alone."""
    cdef Tensor t
    if isinstance(given, Tensor) and (<Tensor>given).device_id == META:
        t = <Tensor>given
        f.unknown = <PyObject *>given
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


cdef int _set_number(Frame *f, Op op, tgx_value *v, object given) except -1:
    if not isinstance(given, (int, float, complex)):
        given = _plain(f, given)
    v.tag, v.number = TGX_NUMBER, <tgx_scalar *>_room(f, sizeof(tgx_scalar) // 8)
    v.number[0] = as_wide_scalar(given) if op.pair.flags & TGX_NATURAL else as_scalar(given)
    if isinstance(given, bool):
        v.kind = TGX_IS_BOOL
    elif isinstance(given, int):
        v.kind = TGX_IS_INT
    else:
        v.kind = TGX_IS_COMPLEX if isinstance(given, complex) else TGX_IS_FLOAT
    return 0


cdef int _set_attribute(Frame *f, Op op, tgx_value *v, ArgSpec *spec, object given) except -1:
    """What is no tensor, as C sees it. May run foreign code."""
    if spec.flags & F_LIST:
        return _set_list(f, v, spec, given)
    v.tag = TGX_INT
    if spec.kind == A_INT:
        v.i = as_int(<PyObject *>given)
    elif spec.kind == A_FLOAT:
        v.tag, v.f = TGX_FLOAT, as_float(<PyObject *>given)
    elif spec.kind == A_SCALAR or spec.kind == A_COMPLEX:
        _set_number(f, op, v, given)
    elif spec.kind == A_STR:
        v.tag, v.text = TGX_STRING, PyUnicode_AsUTF8(given)
    elif spec.kind == A_DTYPE:
        v.tag, v.i = TGX_DTYPE, dtype_id(given)
        if is_coded(v.i) and not op.is_view:
            f.unknown = <PyObject *>given
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
    cdef tgx_value *v
    cdef ArgSpec *spec
    for k in range(op.nattributes):
        i = op.attributes[k]
        o, v, spec = args[i], &f.values[i], &op.args[i]
        if o == <PyObject *>None:
            v.tag = TGX_NONE
            if spec.kind == A_GENERATOR:
                v.tag, v.pointer = TGX_POINTER, &as_generator(None).mt
            elif spec.kind == A_ANY:
                _set_any(f, op, i, None)
        elif spec.single == A_BOOL:
            v.tag, v.i = TGX_INT, (<object>o) is True
        elif spec.kind == A_INT and PyLong_CheckExact(<object>o):
            _set_int(f, v, spec, <object>o)
        elif spec.single == A_FLOAT and PyFloat_CheckExact(<object>o):
            v.tag, v.f = TGX_FLOAT, PyFloat_AS_DOUBLE(<object>o)
        elif spec.kind == A_ANY:
            _set_any(f, op, i, <object>o)
        else:
            _set_attribute(f, op, v, spec, <object>o)
    return 0


cdef inline tgx_tensor *fields(Tensor t) noexcept:
    """A tensor's own first fields."""
    return <tgx_tensor *>&t.data


cdef inline int _look(Frame *f, Tensor t) noexcept:
    if t.device_id != CPU:
        f.meta = True
        f.brought |= t.device_id != META or is_coded(t.tid)
    elif t.count >= HOLD_FROM:
        f.large = True
    return 0


cdef inline int _set_tensors(Frame *f, Op op, PyObject **args) except -1:
    """1 for tensors on a plugin's device, whose elements no kernel in C can read; a view reads none."""
    cdef int k
    cdef PyObject *o
    cdef tgx_value *v
    f.meta = f.large = f.brought = False
    f.call.needs = f.call.changes = 0
    for k in range(op.ntensors):
        o, v = args[op.tensors[k]], &f.values[op.tensors[k]]
        if o == <PyObject *>None:
            v.tag, v.tensor = TGX_NONE, NULL
        elif isinstance(<object>o, Tensor):
            v.tag, v.tensor = TGX_TENSOR, fields(<Tensor>o)
            _look(f, <Tensor>o)
        elif isinstance(<object>o, (list, tuple)):
            _set_tensor_list(f, v, <object>o)
        else:
            _set_number(f, op, v, <object>o)
    return _settle_where(f, op, args) if f.meta or f.large or op.options >= 0 else 0


cdef int _settle_where(Frame *f, Op op, PyObject **args) except -1:
    """The answer of _set_tensors where some tensor is large or not on the cpu, or where a factory is told where to make its own."""
    if op.options >= 0:
        return _set_device(f, op, args)
    if f.meta:
        if f.brought and not (op.is_view or op.any_device):
            return 1
        if op.pair.flags & TGX_READS:
            raise NotImplementedError(f"{op.title}(): the size of the result depends on the elements, and meta tensors have "
                                      "none; run it on the cpu")
    elif f.large and op.pair.run != NULL:
        if op.pair.flags & TGX_SERIAL:
            f.large = False
        elif not op.is_view:        # most views have nothing to run
            _hold(f, op, args)
    return 0


cdef int _set_device(Frame *f, Op op, PyObject **args) except -1:
    """Where a factory makes its result: where out= is, on the device that is named, or else beside the first tensor.
    1: on a plugin's."""
    cdef int where = CPU
    cdef PyObject **options = &args[op.options]     # dtype, layout, device, pin_memory, requires_grad
    cdef Tensor target
    if <object>options[3] is True:
        raise RuntimeError("pin_memory=True needs a device to pin memory for; this build has the cpu only")
    if <object>options[4] is True and options[0] != <PyObject *>None and not is_inexact(f.values[op.options].i):
        refuse_grad(f.values[op.options].i)
    f.large = False
    if f.call.target != NULL:
        target = _borrowed(<tgx_tensor *>f.call.target)
        where, f.large = target.device_id, target.count > TGX_SMALL and not op.pair.flags & TGX_SERIAL
    elif options[2] != <PyObject *>None:
        where = <int>f.values[op.options + 2].i
        if where == CPU and op.ntensors and f.values[op.tensors[0]].tag == TGX_TENSOR:
            where = device_for(f.values[op.tensors[0]].tensor.dtype, CPU)
    elif op.ntensors and f.values[op.tensors[0]].tag == TGX_TENSOR:
        where = f.values[op.tensors[0]].tensor.device
    f.meta, f.brought = where != CPU, where > META
    return f.brought


cdef int _set_tensor_list(Frame *f, tgx_value *v, object given) except -1:
    cdef Py_ssize_t i, n
    cdef PyObject *o
    if type(given) is not tuple:        # a subclass may lie about its length; another thread may change a list
        given = tuple(given)
        _keep(f, given)
    n = len(<tuple>given)
    v.tag, v.n, v.tensors = TGX_TENSORS, <int>n, <tgx_tensor **>_room(f, n)
    for i in range(n):
        o = PyTuple_GET_ITEM(given, i)
        v.tensors[i] = NULL
        if o != <PyObject *>None:
            v.tensors[i] = fields(<Tensor?><object>o)
            _look(f, <Tensor>o)
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
