# Tensors for what shape said, and run. Part of kernel_call.pyx.

cdef int _convert(Frame *f, Op op) except -1:
    """Operands as the kernel wants them."""
    cdef int i
    cdef list copied
    cdef uint64_t left = f.call.needs
    cdef Tensor t
    if f.call.changes:
        copied = []
        _keep(f, copied)
        f.copied = <PyObject *>copied
    for i in range(f.call.nargs):
        if not left >> i:
            break
        if left >> i & 1 and f.values[i].tag == TGX_TENSORS:
            _convert_list(f, &f.values[i])
        elif left >> i & 1:
            t = cast(_borrowed(f.values[i].tensor), f.values[i].want)
            t = contiguous(t) if f.values[i].dense else t
            _keep(f, t)
            if f.call.changes >> i & 1:
                _check_written(op, i, _borrowed(f.values[i].tensor))
                copied.append((_borrowed(f.values[i].tensor), t))
            f.values[i].tensor = fields(t)
    return 0


cdef int _convert_list(Frame *f, tgx_value *v) except -1:
    """The halves of a list."""
    cdef int k
    cdef Tensor t
    for k in range(v.n):
        if v.tensors[k] != NULL and is_half(v.tensors[k].dtype):
            t = cast(_borrowed(v.tensors[k]), v.want)
            _keep(f, t)
            v.tensors[k] = fields(t)
    return 0


cdef inline int _ready(Frame *f, Op op, PyObject **args) except -1:
    """Operands as run finds them; whether there is anything to run."""
    if f.meta:
        return False
    if f.call.needs:
        _convert(f, op)
    if op.pair.run == NULL or f.call.outputs.origin == TGX_SAME or f.call.outputs.origin == TGX_VIEW:
        return False
    if op.options >= 0:             # nobody else has the result yet
        f.large |= f.call.outputs.tensor.count > TGX_SMALL and not op.pair.flags & TGX_SERIAL
    elif f.large and op.is_view:      # was left out when tensors were read, as most views have nothing to run
        _hold(f, op, args)
    return True


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
        _fail(f, op, code)
    return 0


cdef int _fail(Frame *f, Op op, int code) except -1:
    if f.call.target != NULL:
        _note_begun(f, op)
    return _raise_code(f, op, code)


cdef int _check_changed(Frame *f, Op op) except -1:
    """Refuse to change what may not be written to, before anything is changed."""
    cdef int i, k
    cdef tgx_value *v
    for i in range(f.call.nargs):
        if not f.call.changes >> i:
            break
        if not f.call.changes >> i & 1:
            continue
        v = &f.values[i]
        if v.tag == TGX_TENSOR:
            _check_written(op, i, _borrowed(v.tensor))
            continue
        for k in range(v.n):
            if v.tensors[k] != NULL:
                _check_written(op, i, _borrowed(v.tensors[k]))
    return 0


cdef inline int _check_written(Op op, int i, Tensor t) except -1:
    """Argument i, or a tensor of its list. What is row-major and not lent is writable."""
    if t.bits & (CONTIGUOUS | READONLY) != CONTIGUOUS:
        check_writable(t, f"{op.title}(): {<object>op.args[i].name}")
    return 0


cdef int _note_changed(Frame *f) except -1:
    cdef int i, k
    cdef tgx_value *v
    for i in range(f.call.nargs):
        if not f.call.changes >> i:
            break
        if not f.call.changes >> i & 1:
            continue
        v = &f.values[i]
        if v.tag == TGX_TENSOR:
            note_write(_borrowed(v.tensor))
            continue
        for k in range(v.n):
            if v.tensors[k] != NULL:
                note_write(_borrowed(v.tensors[k]))
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
    if f.call.changes & f.call.needs:
        for to, source in <list>f.copied:
            copy_into(<Tensor>to, <Tensor>source)
            note_write(<Tensor>to)
    if f.call.changes:
        _note_changed(f)
    if code:
        _fail(f, op, code)
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
        return t if t.tid == o.dtype else _shown_as(op, t, o.dtype)
    elif o.origin == TGX_WRITES:
        if f.meta and is_host((<Tensor>args[o.of]).device_id):      # nothing would be written to the copy
            raise RuntimeError(f"{op.title}(): Expected all tensors to be on the same device, but the one that is written to is on the "
                               "cpu and another is not. Give all tensors from one, as with .to('cpu')")
        t = clone(<Tensor>args[o.of]) if o.via < 0 else cast(<Tensor>args[o.of], o.via)
    elif o.origin == TGX_SAME:
        return <object>args[o.of]
    else:
        return None
    o.tensor = fields(t)
    return t


cdef object _shown_as(Op op, Tensor t, int dtype):
    """A window that shows its memory as another dtype, or with the conjugate or negative bit turned."""
    cdef PyObject *args[MAX_ARGS + 1]
    cdef int flips = flips_of(t.device_id)
    if dtype == TGX_CONJUGATED or dtype == TGX_NEGATED:
        if t.device_id == META:         # there are no elements, and so no bits
            return t
        if not is_host(t.device_id):    # kernels of a plugin know no bits
            args[0] = <PyObject *>t
            return forward(<Op>_ops["aten::_conj_physical" if dtype == TGX_CONJUGATED else "aten::neg"], args)
        t.device_id = device_flipped(t.tid, flips ^ (1 if dtype == TGX_CONJUGATED else 2))
        return t
    if flips & 1 or (flips and not (is_complex(t.tid) and real_of(t.tid) == dtype)
                     and not (is_complex(dtype) and real_of(dtype) == t.tid)):
        raise RuntimeError(f"{op.title}: the tensor has the {flips_words(t)} bit, and as {dtype_of(dtype)} its memory would show other "
                           f"numbers. resolve_{'conj' if flips & 1 else 'neg'}() gives a copy without it")
    t.tid = dtype
    t.device_id = device_flipped(dtype, flips) if flips else device_for(dtype, t.device_id)
    return t


cdef inline object _as_asked(tgx_output *o, object made):
    """A result converted to its dtype, where run wrote another."""
    if o.via < 0 or o.via == o.dtype or (o.origin != TGX_FRESH and o.origin != TGX_WRITES):
        return made
    return cast(<Tensor>made, o.dtype)


cdef tuple _results(Frame *f, Op op, PyObject **args):
    cdef tuple made = PyTuple_New(f.call.noutputs)
    cdef int i
    for i in range(f.call.noutputs):
        t = _result(f, op, args, &f.call.outputs[i])
        Py_INCREF(t)
        PyTuple_SET_ITEM(made, i, t)
    return made
