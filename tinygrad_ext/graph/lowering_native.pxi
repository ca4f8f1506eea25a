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


_NATIVE = {"aten::item": _item, "aten::_to_copy": _to_copy, "aten::copy": _copy, "aten::_basic_index_backward": _index_backward}
