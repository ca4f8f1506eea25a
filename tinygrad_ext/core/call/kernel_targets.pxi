# The in-place form and the one with out=. Part of kernel_call.pyx.

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
        return check_readonly(out, op.title) if op.pair.flags & TGX_REPEATS else check_writable(out, op.title)
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
    cdef Frame *f = _take_frame()
    try:
        return _call_into(f, op, args, out, inplace)
    finally:
        _free_frame(f)


cdef int _call_into(Frame *f, Op op, PyObject **args, Tensor out, bint inplace) except -1:
    cdef tgx_output *o
    cdef uint64_t before
    cdef bint runs
    cdef object made
    if _begin(f, op, args, fields(out)):
        _elsewhere(op, args, <PyObject *>out)       # refuses the target
    while True:
        before = geometry_changes
        o = f.call.outputs
        _check_target(f, op, args, o, out, inplace)
        made = _target(f, op, args, o, out, inplace)
        runs = _ready(f, op, args)
        if before == geometry_changes:
            break
        if _ask_shape(f, op, args):
            _elsewhere(op, args, <PyObject *>out)
    if runs:
        _run(f, op)
    if op.options >= 0 and <object>args[op.options + 4] is True:
        require_grad(out)
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
