# cython: language_level=3
"""Runs an op and writes down how to differentiate it: the autograd step of a call."""
from cpython.object cimport PyObject
from libc.stdlib cimport malloc
from tinygrad_ext.core.copy cimport clone
from tinygrad_ext.core.cuts import note_cut_of
from tinygrad_ext.core.dispatch cimport Op, forward, set_record, state
from tinygrad_ext.core.dtype cimport dtype_of, make_size
from tinygrad_ext.core.history cimport check_inplace, edge, rebase, set_node
from tinygrad_ext.core.inplace cimport forward_into
from tinygrad_ext.core.node cimport FRESH, Node, follow, hang, hooks_of, next_seq, reserve, reserve_outputs, set_meta, slot
from tinygrad_ext.core.places cimport here
from tinygrad_ext.core.saved cimport save, save_number
from tinygrad_ext.core.tensor cimport Tensor, version_of
from tinygrad_ext.core.types cimport P_GEOMETRY, P_INPUT, P_RESULT, P_SHAPE, is_inexact, uint64_t


cdef bint _count_edges(Op op, PyObject **args, int *total) except -1:
    """Edges of the call; true when some tensor argument is a list."""
    cdef int i
    cdef bint lists = False
    total[0] = 0
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if isinstance(o, (list, tuple)):
            total[0] += len(o)
            lists = True
        else:
            total[0] += 1
    return lists


cdef int _connect(Node n, Op op, PyObject **args, bint lists) except -1:
    cdef int i, e = 0
    cdef object o
    if lists:
        n.counts = <int *>malloc(op.ntensors * sizeof(int))
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if isinstance(o, (list, tuple)):
            for t in o:
                if isinstance(t, Tensor):
                    edge(n, e, <Tensor>t)
                e += 1
            n.counts[i] = len(o)
            continue
        if isinstance(o, Tensor):
            edge(n, e, <Tensor>o)
        if lists:
            n.counts[i] = 1
        e += 1
    return 0


cdef uint64_t _what_to_save(Node n, Op op) noexcept:
    """Mask over op.saved: what the rules of the inputs that need a gradient ask for."""
    cdef uint64_t mask = 0
    cdef int r, k, e, first
    for r in range(op.nrules):
        for k in range(op.rules[r].ntargets):
            first = n._first_edge(op.rules[r].targets[k])
            for e in range(first, first + n._edge_count(op.rules[r].targets[k])):
                if n.edges[e].node != NULL:
                    mask |= op.rules[r].saves | (<uint64_t>1 << 63)
    return mask


cdef Tensor _before(Node n, Tensor t):
    """A copy of what an in-place op is about to overwrite, with the history it has now."""
    cdef Tensor copy = clone(t)
    if n.edges[0].node != NULL:
        hang(copy, <Node>n.edges[0].node, n.edges[0].nr, FRESH)
    return copy


cdef int _save_inputs(Node n, Op op, PyObject **args, uint64_t mask, bint inplace) except -1:
    cdef int k, code
    cdef object o
    for k in range(op.nsaved):
        code = op.saved[k]
        if not mask & (<uint64_t>1 << k) or code & 0xff00 == P_RESULT:
            continue
        o = <object>args[code & 0xff]
        if code & 0xff00 == P_INPUT:
            save(n, k, _before(n, <Tensor>o) if inplace and code & 0xff == 0 else o, -1)
        else:
            save_number(n, k, _measure_of(o, code & 0xff00))
    return 0


cdef object _measure_of(object o, int kind):
    """What a rule asks of an argument instead of its values."""
    if kind == P_SHAPE:
        if isinstance(o, (list, tuple)):
            return tuple([t.shape for t in o])
        return make_size((<Tensor>o).sizes, (<Tensor>o).rank) if isinstance(o, Tensor) else ()
    if kind == P_GEOMETRY:
        return (<Tensor>o).shape, (<Tensor>o).stride(), (<Tensor>o).storage_offset()
    return dtype_of((<Tensor>o).tid) if isinstance(o, Tensor) else None


cdef int _save_results(Node n, Op op, object result, uint64_t mask) except -1:
    cdef int k, code
    for k in range(op.nsaved):
        code = op.saved[k]
        if mask & (<uint64_t>1 << k) and code & 0xff00 == P_RESULT:
            t = result if isinstance(result, Tensor) else result[code & 0xff]
            save(n, k, t, code & 0xff)
    return 0


cdef int _set_history(Node n, Op op, object result) except -1:
    cdef int i
    cdef Tensor t
    if isinstance(result, Tensor):
        t = <Tensor>result
        set_meta(n, 0, t)
        if is_inexact(t.tid):
            hang(t, n, 0, 2)        # `result` of record() and t here
        return 0
    for i, t in enumerate(result):
        if t is None:       # an output that the op's mask left out
            continue
        set_meta(n, i, t)
        if is_inexact(t.tid) and (op.output_mask == 0 or op.output_mask & (<uint64_t>1 << i)):
            hang(t, n, i, 2)        # the tuple's and t's
    return 0


cdef int _note_cut(Op op, PyObject **args) except -1:
    """op has no derivative for what it was given."""
    cdef int i
    note_cut_of(op.title, [<object>args[op.tensors[i]] for i in range(op.ntensors)])
    return 0


cdef object record(Op op, PyObject **args, PyObject *out, bint inplace):
    """Run op on arguments of which some need gradients. `out` is args[0] for the in-place form."""
    cdef Node n
    cdef int total
    cdef bint lists
    cdef uint64_t mask
    cdef object result
    if inplace:
        check_inplace(<Tensor><object>out, True)
    if not op.differentiable:
        _note_cut(op, args)
        return forward_into(op, args, <Tensor><object>out, True) if inplace else forward(op, args, NULL)
    n = Node.__new__(Node)
    lists = _count_edges(op, args, &total)
    reserve(n, total, 1, op.nsaved)
    n.op = op
    if op.loose:
        follow(n, op)
    _connect(n, op, args, lists)
    mask = _what_to_save(n, op)
    if mask == 0 and not inplace:
        _note_cut(op, args)
        return forward(op, args, NULL)
    _save_inputs(n, op, args, mask, inplace)
    if inplace:
        result = forward_into(op, args, <Tensor><object>out, True)
    else:
        result = forward(op, args, NULL)
        if <PyObject *>result == args[op.tensors[0]]:
            return result               # nothing to do, such as contiguous() of a contiguous tensor
        if not isinstance(result, Tensor):
            reserve_outputs(n, len(result))
    _save_results(n, op, result, mask)
    n.place = here()
    if state().anomaly:
        hooks_of(n).trace = slot("stack")()
        follow(n, n.hooks)
    n.seq = next_seq()
    if inplace:
        set_meta(n, 0, <Tensor>result)
        if op.is_view:                  # t_() and the like move the window, and nothing in memory
            set_node(<Tensor>result, n, 0)
            (<Tensor>result).view_version = version_of(<Tensor>result)
        else:
            rebase(<Tensor>result, n, 0, 0)
    else:
        _set_history(n, op, result)
    return result


set_record(record)
