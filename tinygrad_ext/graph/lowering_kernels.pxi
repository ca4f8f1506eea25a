# Kernels in C: their shape is asked now, and the call is kept for each run. Part of lowering.pyx.

cdef object _kernel(Lowering self, Op op, list args):
    cdef PyObject *row[MAX_ARGS + 1]
    cdef tgx_call *call
    cdef int i
    if op.pair.flags & (TGX_READS | TGX_MAY_READ) and _reads_elements(op, args):
        raise NotPlanned(f"{op.name}: the size of its result depends on elements")
    if op.options >= 0 and (args[op.options + 4] is True or args[op.options + 3] is True):
        raise NotPlanned(f"{op.name} with requires_grad or pin_memory")
    if op.options >= 0 and args[op.options + 2] is not None and str(args[op.options + 2]) != "cpu":
        if str(args[op.options + 2]) != "meta" or not _beside(args):
            raise NotPlanned(f"{op.name} on another device than the cpu")
        args[op.options + 2] = None
    for i in range(op.nargs):
        row[i] = <PyObject *>args[i]
    call = begin_call(op, row)
    try:
        return _call(self, op, call, args)
    finally:
        end_call(call)


cdef object _call(Lowering self, Op op, tgx_call *given, list args):
    """The steps of a call whose shape was asked."""
    cdef Step step = Step("raw", self.node, op.name)
    cdef tgx_call *c = <tgx_call *>self.room.take(sizeof(tgx_call))
    cdef tgx_value *v
    cdef int i, k
    cdef list after = [], back = []
    cdef Tensor t
    cdef Buffer scratch
    memcpy(c, given, sizeof(tgx_call))
    c.args = <tgx_value *>self.room.take(op.nargs * sizeof(tgx_value))
    memcpy(c.args, given.args, op.nargs * sizeof(tgx_value))
    self.kept.append((op, args))
    step.kernel, step.call, step.work = op.pair, c, c.work
    for i in range(op.nargs):
        v = &c.args[i]
        if v.tag == TGX_TENSOR:
            t = <Tensor>args[i]
            if c.needs >> i & 1:
                t = self.converted(t, v.want, v.dense)
                if c.changes >> i & 1:
                    back.append((args[i], t))
            _takes(self, step, c.changes >> i & 1, i, t)
            v.tensor = self.describe(t)
        elif v.tag == TGX_TENSORS:
            v.tensors = <tgx_tensor **>self.room.take(v.n * sizeof(tgx_tensor *))
            for k in range(v.n):
                if args[i][k] is not None:
                    t = <Tensor>args[i][k]
                    if c.needs >> i & 1 and is_half(t.tid):
                        t = self.converted(t, v.want, False)
                    _takes(self, step, c.changes >> i & 1, i, t)
                    v.tensors[k] = self.describe(t)
        elif v.tag == TGX_INTS or v.tag == TGX_FLOATS:
            v.ints = _copied(self.room, v.ints, v.n)
        elif v.tag == TGX_NUMBER:
            v.number = <tgx_scalar *>_copied(self.room, <int64_t *>v.number, sizeof(tgx_scalar) // 8)
        if op.args[i].kind == A_GENERATOR:
            step.effect = True
            self.serial |= args[i] is None
    c.outputs = <tgx_output *>self.room.take(max(c.noutputs, 1) * sizeof(tgx_output))
    memcpy(c.outputs, given.outputs, max(c.noutputs, 1) * sizeof(tgx_output))
    made = [_result(self, op, c, k, step, args, after) for k in range(c.noutputs)]
    if op.pair.run != NULL and c.outputs.origin != TGX_SAME and c.outputs.origin != TGX_VIEW:
        if c.scratch_bytes:
            scratch = Buffer(c.scratch_bytes)
            step.writes.append(scratch)
            self.fixups.append((<size_t>&c.scratch, scratch, 0))
        self.steps.append(step)
    for to, source in back:         # what run changed in a wide copy
        self.write(to, source)
    for k, t in after:
        made[k] = self.converted(t, c.outputs[<int>k].dtype, False)
    if op.nreturns == 1 and not op.makes_list:
        return made[0] if made else None
    return tuple(made)


cdef int _takes(Lowering self, Step step, bint changed, int i, Tensor t) except -1:
    step.reads.append((buffer_of(t), False))
    step.work = max(step.work, t.count)
    if changed:
        if buffer_of(t).base >= 0 or buffer_of(t).constant is not None:
            raise NotPlanned(f"{step.op} would write to an input")
        step.writes.append(buffer_of(t))
        step.changes = True


cdef object _result(Lowering self, Op op, tgx_call *c, int k, Step step, list args, list after):
    """The stand-in of a kernel's result."""
    cdef tgx_output *o = &c.outputs[k]
    cdef Tensor t
    cdef int dtype = o.dtype if o.via < 0 else o.via
    if o.origin == TGX_ABSENT:
        return None
    if o.origin == TGX_SAME:
        return args[o.of]
    if o.origin == TGX_VIEW:
        t = view(<Tensor>args[o.of], o.sizes, o.strides, o.rank, o.offset)
        if is_coded(o.dtype):
            raise NotPlanned("it shows memory as a dtype that a plugin brought")
        t.tid = o.dtype
        return t
    o.dims = NULL
    if o.origin == TGX_WRITES:
        t = self.converted(<Tensor>args[o.of], (<Tensor>args[o.of]).tid if o.via < 0 else o.via, False)
    elif o.strides == NULL:
        t = self.made(empty(o.sizes, o.rank, dtype, META))
    else:
        t = self.made(empty_strided(o.sizes, o.strides, o.rank, dtype, META))
        o.strides = _copied(self.room, o.strides, o.rank)
    if o.origin == TGX_OVER and not c.needs >> o.of & 1:
        _may_lie_over(self, step, t, <Tensor>args[o.of])
    o.sizes = _copied(self.room, o.sizes, o.rank)
    o.tensor = self.describe(t)
    step.work = max(step.work, t.count)
    step.writes.append(buffer_of(t))
    if o.via >= 0 and o.via != o.dtype and (o.origin == TGX_FRESH or o.origin == TGX_WRITES):
        after.append((k, t))
    return t


cdef int _may_lie_over(Lowering self, Step step, Tensor result, Tensor t) except -1:
    """Note that a kernel may write its result over an operand, where both lie alike and nothing else reads it."""
    alike = t.bits & CONTIGUOUS and result.bits & CONTIGUOUS and t.tid == result.tid and t.data == t.storage.data
    if alike and [b for b, _ in step.reads].count(buffer_of(t)) == 1:
        step.over = buffer_of(t), buffer_of(result)


cdef bint _beside(list args):
    """Whether there is a tensor among arguments: what composites ask for its device is told meta."""
    for a in args:
        if isinstance(a, Tensor):
            return True
    return False


cdef bint _reads_elements(Op op, list args):
    """Whether shape would look at elements. Those of a list of indices are read where they are masks."""
    if op.pair.flags & TGX_READS:
        return True
    listed = False
    for a in args:
        if isinstance(a, (list, tuple)):
            for t in a:
                if isinstance(t, Tensor):
                    listed = True
                    if (<Tensor>t).tid == TGX_BOOL or (<Tensor>t).tid == TGX_U8:
                        return True
    return not listed
