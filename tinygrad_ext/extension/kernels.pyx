# cython: language_level=3
"""The functions of an extension as callables, for the common way: devices, watched calls, levels, forward mode, batches."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op
from tinygrad_ext.core.data.tensor cimport Carried, Tensor
from tinygrad_ext.core.data.types cimport uint8_t
from tinygrad_ext.core.grad.custom cimport MAX_RETURNS
from tinygrad_ext.core.grad.guard cimport convert
from tinygrad_ext.core.grad.node cimport reserve
from tinygrad_ext.extension.calls cimport TableCall
from tinygrad_ext.extension.nodes cimport TableNode, settle_error
from tinygrad_ext.extension.public cimport *
from tinygrad_ext.extension.values cimport drop, pack, pack_result, take


cdef class Kernel:
    """The kernel of an op as a function of all its arguments; those by keyword stand last."""

    cdef readonly TableCall call

    def bind(self, TableCall call not None):
        """Say whose kernel it is, once there is an op."""
        self.call = call

    def __call__(self, *args, **keywords):
        cdef PyObject *row[MAX_ARGS]
        cdef Op op = self.call.op
        cdef int i, n = len(args)
        for i in range(op.nargs):
            row[i] = <PyObject *>args[i] if i < n else <PyObject *>keywords[<object>op.args[i].name]
        _owners = convert(self.call, row) if self.call.values else None
        return self.call.compute(row)

    def __repr__(self):
        where = f"{self.call.definition.source}:{self.call.definition.line}" if self.call.definition.source else "C"
        return f"<kernel of {self.call.op.name} in {where}>"


cdef list _rows(TableCall call, tuple args, PyObject **row, value_t *inputs, tgx_ctx *c):
    """All arguments of a call, converted, as C has them; what keeps them alive."""
    cdef list owners = [args]
    cdef int i
    for i in range(call.op.nargs):
        row[i] = <PyObject *>args[i]
    if call.values:
        owners.append(convert(call, row))
    for i in range(call.op.nargs):
        pack(c, &call.op.args[i], row[i], &inputs[i])
    return owners


cdef int _pack_outputs(TableCall call, tgx_ctx *c, object result, value_t *outputs) except -1:
    cdef int i
    for i in range(call.nreturns):
        r = result[i] if call.nreturns > 1 else result
        pack_result(c, call.op.schema.returns[i].is_list and call.op.schema.returns[i].type == "Tensor", r, &outputs[i])
    return 0


# ---- a derivative outside of the graph ---------------------------------------------------------------------------------

def set_up(TableCall call not None, tuple args, result, tuple wanted):
    """(what a setup made, the tensors that it saved). args: all of the op; wanted: for each edge, whether it is asked for."""
    cdef PyObject *row[MAX_ARGS]
    cdef value_t inputs[MAX_ARGS]
    cdef value_t outputs[MAX_RETURNS]
    cdef tgx_op_def *d = &call.definition.row
    cdef TableNode n = TableNode.__new__(TableNode)
    cdef tgx_ctx c
    cdef int code
    n.title, n.who, n.wanted = call.node_title, call.op.name, wanted
    n.backward, n.forget, n.flags = d.backward, d.release, d.flags
    n.prepare(d.saved, d.state_size)
    n.kept = [None] * d.saved
    if d.setup == NULL:
        return n, ()
    if d.state_size:        # sizes may go into it: whoever writes down what is computed has to know
        for a in args:
            for t in a if isinstance(a, (list, tuple)) else (a,):
                if type(t) is Carried:
                    [int(size) for size in t.shape]
    tgx_open(&c, <PyObject *>call.op.name)
    try:
        _owners = _rows(call, args, row, inputs, &c)
        _pack_outputs(call, &c, result, outputs)
        code = d.setup(&c, d.self, <node_t *><PyObject *>n, n.state, inputs, call.op.nargs, outputs, call.nreturns)
        if code:
            settle_error(&c, code, "the setup")
    finally:
        tgx_close(&c)
    saved = tuple(n.kept)
    n.kept = None
    return n, saved


def run_backward(TableNode made not None, tuple saved, grads, tuple wanted):
    """A gradient or None for each edge, of what set_up made."""
    cdef TableNode n = TableNode.__new__(TableNode)
    cdef int i, count = len(grads), m = len(wanted)
    cdef tensor_t **row = <tensor_t **>malloc((count + m + 1) * sizeof(tensor_t *))
    cdef tgx_ctx c
    if row == NULL:
        raise MemoryError()
    n.title, n.who, n.wanted, n.whole = made.title, made.who, wanted, made
    n.backward, n.flags = made.backward, made.flags
    n.prepare(made.places, 0)
    n.state, n.kept = made.state, list(saved)
    tgx_open(&c, <PyObject *>n.who)
    found = [None] * m
    try:
        reserve(n, 0, 1, 0)
        for i in range(count):
            row[i] = NULL if grads[i] is None else <tensor_t *><PyObject *>grads[i]
        for i in range(m):
            row[count + i] = NULL
        n.begin(&c, row, count, row + count, m)
        for i in range(m):
            if row[count + i] != NULL:
                t = <object><PyObject *>row[count + i]
                Py_DECREF(t)
                found[i] = t
    finally:
        tgx_close(&c)
        free(row)
    return found


# ---- forward mode and batches --------------------------------------------------------------------------------------

def run_jvp(TableCall call not None, tuple args, result, tangents):
    """The tangents of the results, of those of all arguments."""
    cdef PyObject *row[MAX_ARGS]
    cdef value_t inputs[MAX_ARGS]
    cdef value_t outputs[MAX_RETURNS]
    cdef tensor_t *slopes[MAX_ARGS]
    cdef tensor_t *made[MAX_RETURNS]
    cdef tgx_op_def *d = &call.definition.row
    cdef tgx_ctx c
    cdef int i, code
    cdef list found = []
    for i in range(call.op.nargs):
        t = tangents[i]
        if t is not None and not isinstance(t, Tensor):
            raise NotImplementedError(f"{call.op.name}: its jvp in C takes tangents of tensors, not of the list "
                                      f"'{<object>call.op.args[i].name}'")
        slopes[i] = NULL if t is None else <tensor_t *><PyObject *>t
    memset(made, 0, sizeof(made))
    tgx_open(&c, <PyObject *>call.op.name)
    try:
        _owners = _rows(call, args, row, inputs, &c)
        _pack_outputs(call, &c, result, outputs)
        code = d.jvp(&c, d.self, inputs, slopes, call.op.nargs, outputs, made, call.nreturns)
        if code:
            settle_error(&c, code, "the jvp")
        for i in range(call.nreturns):
            if made[i] == NULL:
                found.append(None)
                continue
            t = <object><PyObject *>made[i]
            found.append(t)
            if not any([t is s for s in tangents]):
                Py_DECREF(t)
    finally:
        tgx_close(&c)
    return found[0] if call.nreturns == 1 else tuple(found)


def run_batch(TableCall call not None, size, batched, tuple args):
    """The results for a batch; batched: for each argument, whether dimension 0 is the batch."""
    cdef PyObject *row[MAX_ARGS]
    cdef value_t inputs[MAX_ARGS]
    cdef value_t outputs[MAX_RETURNS]
    cdef uint8_t flags[MAX_ARGS]
    cdef tgx_op_def *d = &call.definition.row
    cdef tgx_ctx c
    cdef int i, code
    memset(outputs, 0, sizeof(outputs))
    for i in range(call.op.nargs):
        flags[i] = batched[i]
    tgx_open(&c, <PyObject *>call.op.name)
    try:
        _owners = _rows(call, args, row, inputs, &c)
        code = d.batch(&c, d.self, size, flags, inputs, call.op.nargs, outputs, call.nreturns)
        if code:
            for i in range(call.nreturns):
                drop(&outputs[i], row, call.op.nargs)
            settle_error(&c, code, "the batch rule")
        found = [take(&c, &outputs[i], row, call.op.nargs) for i in range(call.nreturns)]
    finally:
        tgx_close(&c)
    return found[0] if call.nreturns == 1 else tuple(found)
