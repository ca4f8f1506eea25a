# Compiled kernels over Python objects that are worth a step. Part of lowering.pyx.

def _to_copy(Lowering self, Op op, list args):
    cdef PyObject *row[MAX_ARGS + 1]
    cdef int i
    cdef Tensor to
    if args[3] is not None and str(args[3]) not in ("cpu", "meta"):
        raise NotPlanned("_to_copy to another device")
    source = args[0]
    args = [_on_meta(<Tensor>source), args[1], None, None, None, False, args[6]]
    for i in range(op.nargs):
        row[i] = <PyObject *>args[i]
    to = self.made(<Tensor>op.kernel(row))
    self.copy(to, <Tensor>source)
    return to


def _copy(Lowering self, Op op, list args):
    cdef PyObject *row[MAX_ARGS + 1]
    cdef Tensor to
    cdef object source = args[1]
    if not isinstance(source, Tensor):
        raise NotPlanned("copy of a number")
    args = [_on_meta(<Tensor>args[0]), _on_meta(<Tensor>source)]
    row[0], row[1], row[2], row[3] = <PyObject *>args[0], <PyObject *>args[1], <PyObject *>None, <PyObject *>None
    to = self.made(<Tensor>op.kernel(row))
    self.copy(to, <Tensor>source)
    return to


def _index_backward(Lowering self, Op op, list args):
    """Zeros with the gradient in a window."""
    cdef int64_t shape[64]
    cdef PyObject *row[MAX_ARGS + 1]
    cdef Tensor to, grad = <Tensor>args[0]
    cdef Step step = Step("zero", self.node, op.name)
    cdef Op window = ops["aten::_select"]
    size = args[1]
    index = args[2]
    to = self.made(empty(shape, as_ints(<PyObject *>size, shape, 64, 1), grad.tid, META))
    step.to, step.work = self.describe(to), to.count
    step.writes.append(buffer_of(to))
    self.steps.append(step)
    row[0], row[1] = <PyObject *>to, <PyObject *>index
    self.write(<Tensor>window.kernel(row), grad)
    return to


def _item(Lowering self, Op op, list args):
    return self.item(<Tensor>args[0])


def _select(Lowering self, Op op, list args):
    """A part whose number is known while the plan runs: a copy of it."""
    cdef tgx_window *window = <tgx_window *>self.room.take(sizeof(tgx_window))
    cdef Tensor part, to, t = <Tensor>args[0]
    cdef Step finding, step = Step("copy", self.node, op.name)
    part = self.op(op, [t, args[1], 0])         # raises where there is no such dimension, or nothing in it
    at = args[1] + t.rank if args[1] < 0 else args[1]
    window.count, window.stride = t.sizes[<int>at], t.strides[<int>at] * ITEMSIZE[t.tid]
    self.fix(&window.data, t)
    step.source = <tgx_tensor *>self.room.take(sizeof(tgx_tensor))
    step.source[0] = self.describe(part)[0]
    window.where = &step.source.data
    finding = self._computed(TGX_CODE_WINDOW, None, [None, args[2]], "window")
    finding.a = <int>len(self.windows)
    self.windows.append(<size_t>window)
    mark = _mark()
    finding.writes.append(mark)
    to = self.made(empty_strided(part.sizes, part.strides, part.rank, part.tid, META))
    step.to, step.work = self.describe(to), to.count
    step.reads += [(buffer_of(t), False), (mark, False)]
    step.writes.append(buffer_of(to))
    self.steps.append(step)
    return to


def slot_like(Lowering self not None, Tensor t not None):
    """Memory of its own for tensors of this geometry, one after the other; None where elements share memory."""
    if not _dense(t):
        return None
    return self.made(empty_strided(t.sizes, t.strides, t.rank, t.tid, META))


def assign(Lowering self not None, to, source):
    """Let a slot, a register or the state of a generator, hold what source holds; None: nothing that is read."""
    cdef Step step
    if isinstance(to, Number):
        self.move(to, (0.0 if type(to.value) is float else 0) if source is None else source)
    elif isinstance(to, Generator):
        step = Step("move", self.node, "")
        step.target, step.origin, step.nbytes = &(<Generator>to).mt, &(<Generator>source).mt, sizeof((<Generator>to).mt)
        step.effect = step.changes = True
        self.steps.append(step)
    elif source is None:
        step = Step("zero", self.node, "zero")
        step.to, step.work, step.effect = self.describe(<Tensor>to), (<Tensor>to).count, True
        step.writes.append(buffer_of(<Tensor>to))
        self.steps.append(step)
    else:
        self.copy(<Tensor>to, <Tensor>source)
        step = <Step>self.steps[len(self.steps) - 1]
        step.effect = True
        if step.code == "tile":
            step.over = buffer_of(<Tensor>to), buffer_of(<Tensor>source)


def same_layout(Tensor a not None, Tensor b not None):
    """Whether two tensors have one dtype, sizes and strides."""
    cdef int i
    if a.tid != b.tid or a.rank != b.rank:
        return False
    for i in range(a.rank):
        if a.sizes[i] != b.sizes[i] or (a.strides[i] != b.strides[i]):
            return False
    return True


def lies_in(Tensor a not None, Tensor b not None):
    """Whether two stand-ins have one memory."""
    return buffer_of(a) is buffer_of(b)


_NATIVE = {"aten::item": _item, "aten::_to_copy": _to_copy, "aten::copy": _copy, "aten::_basic_index_backward": _index_backward}
