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


cdef bint _direct(Frame *f, Op op, PyObject **args, tgx_output *o, int at):
    """Whether run may write straight into a target, which fits: neither it nor another result disturbs what is still wanted."""
    cdef Tensor out = <Tensor>f.targets[at]
    cdef int i
    if (o.origin != TGX_FRESH and o.origin != TGX_OVER) or o.strides != NULL:
        return False
    if not (out.bits & CONTIGUOUS or op.pair.flags & TGX_ANY_LAYOUT):
        return False
    for i in range(op.nreturns):
        if i != at and (<Tensor>f.targets[i]).storage is out.storage:
            return False
    return out.tid == (o.dtype if o.via < 0 else o.via) and out.tid == o.dtype and not _shared(op, args, out, -1)


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


cdef int kernel_into(Op op, PyObject **args, PyObject **targets, bint inplace) except -1:
    """The in-place form (the target is the first argument) and the form with out=, of one result or several."""
    cdef Frame *f = _take_frame()
    f.targets = targets
    try:
        return _call_into(f, op, args, inplace)
    finally:
        _free_frame(f)


cdef inline int _call_into(Frame *f, Op op, PyObject **args, bint inplace) except -1:
    cdef uint64_t before
    cdef bint runs
    cdef int i
    if _begin(f, op, args, fields(<Tensor>f.targets[0])):
        return _fill_targets(f, op, args, inplace)
    while True:
        before = geometry_changes
        _find_targets(f, op, args, inplace)
        runs = _ready(f, op, args)
        if before == geometry_changes:
            break
        if _ask_shape(f, op, args):
            return _fill_targets(f, op, args, inplace)
    if runs:
        _run(f, op)
    if op.options >= 0 and <object>args[op.options + 4] is True:
        require_grad(<Tensor>f.targets[0])
    for i in range(op.nreturns):
        if f.made[i] != NULL:
            return _deliver_made(f, op, inplace)
    return 0


cdef int _fill_targets(Frame *f, Op op, PyObject **args, bint inplace) except -1:
    """Compute elsewhere, where no target is written to, and copy."""
    cdef object made = _elsewhere(op, args, f.targets[0])
    if op.nreturns == 1:
        return deliver(op, <Tensor>f.targets[0], <Tensor?>made, False, inplace)
    return deliver_all(op, f.targets, op.nreturns, list(made), False)


cdef int64_t _count(tgx_output *o) noexcept:
    cdef int64_t n = 1
    cdef int i
    for i in range(o.rank):
        n *= o.sizes[i]
    return n


cdef inline int _find_targets(Frame *f, Op op, PyObject **args, bint inplace) except -1:
    """Refuse what cannot take a result, before anything is changed; else let run find what it writes to."""
    cdef tgx_output *o
    cdef unsigned char fit[MAX_ARGS]
    cdef int i
    for i in range(op.nreturns):
        o = &f.call.outputs[i]
        fit[i] = check_target(op, <Tensor>f.targets[i], f.meta, o.sizes, o.rank, o.dtype, inplace)
        if op.apart and not fit[i]:
            check_inputs(op, args, <Tensor>f.targets[i], _count(o), inplace)
        _find_target(f, op, args, i, fit[i], inplace)
    return check_apart(op, f.targets, op.nreturns, fit) if op.nreturns > 1 else 0


cdef inline int _find_target(Frame *f, Op op, PyObject **args, int at, bint fits, bint inplace) except -1:
    cdef tgx_output *o = &f.call.outputs[at]
    f.made[at] = NULL
    if (o.origin == TGX_WRITES or o.origin == TGX_OVER) and o.via < 0 and inplace and f.targets[at] == args[o.of]:
        _part_operands(f, op, args, <Tensor>f.targets[at], o.of)
    elif not fits or not _direct(f, op, args, o, at):
        made = _result(f, op, args, o)
        _keep(f, made)
        f.made[at] = <PyObject *>made
        return 0
    o.tensor = fields(<Tensor>f.targets[at])
    if f.large:
        t = alias(<Tensor>f.targets[at])
        _keep(f, t)
        o.tensor = fields(t)
    return 0


cdef int _deliver_made(Frame *f, Op op, bint inplace) except -1:
    cdef tgx_output *o = f.call.outputs
    cdef bint own = o.origin == TGX_FRESH or o.origin == TGX_WRITES or o.origin == TGX_OVER
    cdef list made
    cdef int i
    if op.nreturns == 1:
        return deliver(op, <Tensor>f.targets[0], <Tensor>_as_asked(o, <object>f.made[0]), own, inplace)
    made = []
    for i in range(op.nreturns):        # a handler of a warning may change a target that run wrote to
        made.append(alias(<Tensor>f.targets[i]) if f.made[i] == NULL else <Tensor>_as_asked(&o[i], <object>f.made[i]))
    return deliver_all(op, f.targets, op.nreturns, made, own)


cdef int _note_begun(Frame *f, Op op) except -1:
    """run failed: what it had written to targets by then stays there."""
    cdef int i
    for i in range(op.nreturns):
        if f.made[i] == NULL:
            note_write(<Tensor>f.targets[i])
    return 0
