# cython: language_level=3
"""Runs an op and writes down how to differentiate it: the autograd step of a call.

The dispatcher calls `record` through its slot `record_op` when an argument needs a gradient. What a node is given, in which
order, is history.pyx's; here it is read off the schema and the rules of the op. Only what the rules of the inputs that need a
gradient ask for is kept. Rejected: keeping what any rule of the op asks for, which is known once for all calls; but x * w with
frozen w would keep x as long as the graph lives, though no gradient asks for it.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call cimport dispatch
from tinygrad_ext.core.loops.copy cimport clone
from tinygrad_ext.core.grad.cuts import note_cut_of
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op, forward, settle_rules, state
from tinygrad_ext.core.data.dtype cimport dtype_of, make_size
from tinygrad_ext.core.grad.edges cimport set_node
from tinygrad_ext.core.grad.history cimport check_targets, connect, enter, give_history, keep, keep_number, rewrite
from tinygrad_ext.core.call.inplace cimport forward_into
from tinygrad_ext.core.grad.node cimport FRESH, Node, follow, hang, reserve_outputs, set_meta
from tinygrad_ext.core.grad.rules cimport RuleNode
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.tensor cimport Tensor, needs_grad, shown_device, version_of
from tinygrad_ext.core.data.types cimport P_DEVICE, P_GEOMETRY, P_INPUT, P_RESULT, P_SHAPE, uint64_t

cdef uint64_t NEEDED = <uint64_t>1 << 63


cdef uint64_t _what_to_keep(RuleNode n, Op op) noexcept:
    """Mask over op.saved: what the rules of the inputs that need a gradient ask for, and NEEDED if there are such."""
    cdef uint64_t mask = 0
    cdef int r, k, e, first
    for r in range(op.nrules):
        for k in range(op.rules[r].ntargets):
            first = n.first_edge(op.rules[r].targets[k])
            for e in range(first, first + n.edge_count(op.rules[r].targets[k])):
                if n.edges[e].node != NULL:
                    mask |= op.rules[r].saves | NEEDED
    return mask


cdef Tensor _before(Node n, Tensor t):
    """A copy of what an in-place op is about to overwrite, with the history it has now."""
    cdef Tensor copy = <Tensor>slot("detached_clone")(t) if state().instead != NULL else clone(t)
    if n.edges[0].node != NULL:
        hang(copy, <Node>n.edges[0].node, n.edges[0].nr, FRESH)
    return copy


cdef int _keep_operands(Node n, Op op, PyObject **args, uint64_t *mask, bint inplace) except -1:
    """Leaves in the mask what is kept of the results."""
    cdef int k, code
    cdef object o
    for k in range(op.nsaved):
        code = op.saved[k]
        if not mask[0] & (<uint64_t>1 << k) or code & 0xff00 == P_RESULT:
            continue
        mask[0] &= ~(<uint64_t>1 << k)
        o = <object>args[code & 0xff]
        if code & 0xff00 == P_INPUT:
            keep(n, k, _before(n, <Tensor>o) if inplace and code & 0xff == 0 else o, -1)
        else:
            keep_number(n, k, _measure_of(o, code & 0xff00))
    return 0


cdef object _measure_of(object o, int kind):
    """What a rule asks of an argument instead of its values."""
    if kind == P_SHAPE:
        if isinstance(o, (list, tuple)):
            return tuple([t.shape for t in o])
        return make_size((<Tensor>o).sizes, (<Tensor>o).rank) if isinstance(o, Tensor) else ()
    if kind == P_GEOMETRY:
        return (<Tensor>o).shape, (<Tensor>o).stride(), (<Tensor>o).storage_offset()
    if kind == P_DEVICE:
        return shown_device(<Tensor>o) if isinstance(o, Tensor) else None
    return dtype_of((<Tensor>o).tid) if isinstance(o, Tensor) else None


cdef int _keep_results(Node n, Op op, object result, uint64_t mask) except -1:
    cdef int k
    for k in range(op.nsaved):
        if mask & (<uint64_t>1 << k):
            t = result if isinstance(result, Tensor) else result[op.saved[k] & 0xff]
            keep(n, k, t, op.saved[k] & 0xff)
    return 0


cdef int _give_history(Node n, Op op, object result) except -1:
    cdef int i
    if isinstance(result, Tensor):
        return give_history(n, 0, <Tensor>result, 1)        # `result` of record()
    for i, t in enumerate(result):
        if t is None:                   # an output that the op's mask left out
            continue
        if op.output_mask == 0 or op.output_mask & (<uint64_t>1 << i):
            give_history(n, i, <Tensor>t, 2)                # the tuple's and t
        else:
            set_meta(n, i, <Tensor>t)
    return 0


cdef int _note_cut(Op op, PyObject **args) except -1:
    """op has no derivative for what it was given."""
    cdef int i
    note_cut_of(op.title, [<object>args[op.tensors[i]] for i in range(op.ntensors)])
    return 0


cdef object record(Op op, PyObject **args, PyObject *out, bint inplace):
    """Run op on arguments of which some need gradients. `out` is args[0] for the in-place form."""
    cdef PyObject *operands[MAX_ARGS]
    cdef RuleNode n
    cdef int i
    cdef uint64_t mask
    cdef object result
    if op.rules_from is not None:
        settle_rules(op)
    if inplace:
        check_targets(&out, 1, True, 1, op.title)
    if not op.differentiable:
        _note_cut(op, args)
        if not inplace:
            return forward(op, args)
        if not needs_grad(<Tensor><object>out):
            return forward_into(op, args, <Tensor><object>out, True)
    n = RuleNode.__new__(RuleNode)
    n.op = op
    if op.loose:
        follow(n, op)
    for i in range(op.ntensors):
        operands[i] = args[op.tensors[i]]
    connect(n, operands, op.ntensors, op.nsaved)
    mask = _what_to_keep(n, op)
    if mask == 0 and not inplace:
        _note_cut(op, args)
        return forward(op, args)
    _keep_operands(n, op, args, &mask, inplace)
    if inplace:
        return _record_write(n, op, args, <Tensor><object>out, mask)
    result = forward(op, args)
    if <PyObject *>result == args[op.tensors[0]]:
        return result                   # nothing to do, such as contiguous() of a contiguous tensor
    if not isinstance(result, Tensor):
        reserve_outputs(n, len(result))
    if mask != NEEDED:
        _keep_results(n, op, result, mask)
    enter(n)
    _give_history(n, op, result)
    return result


cdef object _record_write(Node n, Op op, PyObject **args, Tensor out, uint64_t mask):
    forward_into(op, args, out, True)
    if mask != NEEDED:
        _keep_results(n, op, out, mask)
    enter(n)
    if op.is_view:                      # t_() and the like move the window, and nothing in memory
        set_meta(n, 0, out)
        set_node(out, n, 0)
        out.view_version = version_of(out)
    else:
        rewrite(n, 0, out, 0)
    return out


dispatch.record_op = record
