# cython: language_level=3
"""The one builder of history, for ops, Functions and custom ops alike.

Who runs a step that has a derivative makes a node and goes through these, in this order:

    check_targets   may the tensors that the step will write to be written to, without losing a gradient
    connect         an edge for each operand, before the step runs: it may write to its operands
    keep            what the derivative asks for; operands before the step runs, results after it
    enter           the node takes its place in time and in the user's program
    give_history    each result comes from the node; `rewrite` for a tensor that the step wrote to

The callers say what operands, results and targets are, in the terms of a schema (record.pyx), of a forward (apply.pyx) or
of both (custom_call.pyx). Below stand the edges (edges.pyx) and how values are kept (saved.pyx).
Rejected: handing `connect` the schema, since a Function has none.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdlib cimport malloc
from tinygrad_ext.core.call cimport dispatch
from tinygrad_ext.core.call.dispatch cimport state
from tinygrad_ext.core.call.outputs cimport check_inference, shows_history
from tinygrad_ext.core.grad.edges cimport CopySlices, check_origin, edge, set_node, share_edges
from tinygrad_ext.core.grad.node cimport (
    Node, follow, follow_node, hang, hooks_of, next_seq, reserve, set_meta,
)
from tinygrad_ext.core.call.places cimport here
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.tensor cimport (
    DETACHED_VIEW, DIFF_VIEW, REQUIRES_GRAD, Tensor, alias, version_of,
)
from tinygrad_ext.core.data.types cimport ITEMSIZE, is_inexact


# ---- targets -------------------------------------------------------------------------------------------------------

cdef int check_targets(PyObject **targets, int count, bint recording, int noutputs, str who) except -1:
    """Refuse a write (under grad mode) that would lose a gradient.

    recording: some operand needs one. noutputs: results of the step, targets included. who: what is written in messages.
    """
    cdef int i
    for i in range(count):
        _check_target(<Tensor><object>targets[i], recording)
        if recording and noutputs > 1 and (<Tensor><object>targets[i]).bits & DIFF_VIEW:
            raise RuntimeError(f"{who}: a tensor to write to is a view, and gradients are recorded: then the call cannot return more "
                               "than one Tensor, those it writes to included. Pass a clone, or split it in two.")
    return 0


cdef int _check_target(Tensor t, bint recording) except -1:
    check_inference(t)
    check_origin(t, "is a view and is being modified inplace")
    if t.node is None and t.bits & REQUIRES_GRAD:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation. "
                           "Wrap the update in no_grad(), or work on a clone.")
    if t.bits & DIFF_VIEW and t.base is not None and (recording or shows_history(t)):
        if t.bits & DETACHED_VIEW:
            raise RuntimeError("A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
                               "Make the view in the same mode as the update.")
        if shows_history(t) and (<Tensor>t.base).node is None:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation. "
                               "Wrap the update in no_grad(), or work on a clone.")
    return 0


dispatch.check_written = check_targets


# ---- operands ------------------------------------------------------------------------------------------------------

cdef int connect(Node n, PyObject **operands, int count, int nsaved) except -1:
    """An edge for each operand to what it came from: an empty one where no gradient is wanted, one for each item of a list.

    Makes room in n, for one output and for `nsaved` kept values too.
    """
    cdef int i, total = count
    cdef bint lists = False
    cdef object o
    for i in range(count):
        o = <object>operands[i]
        if isinstance(o, (list, tuple)):
            lists = True
            total += len(o) - 1
    reserve(n, total, 1, nsaved)
    if lists:
        return _connect_lists(n, operands, count)
    for i in range(count):
        o = <object>operands[i]
        if isinstance(o, Tensor):
            edge(n, i, <Tensor>o)
    return 0


cdef int _connect_lists(Node n, PyObject **operands, int count) except -1:
    cdef int i, e = 0
    cdef tuple row
    n.counts = <int *>malloc(count * sizeof(int))
    if n.counts == NULL:
        raise MemoryError()
    for i in range(count):
        o = <object>operands[i]
        row = tuple(o) if isinstance(o, (list, tuple)) else (o,)
        if e + len(row) > n.nedges:
            raise RuntimeError("a list of tensors changed its length while it was read")
        n.counts[i] = len(row)
        for t in row:
            if isinstance(t, Tensor):
                edge(n, e, <Tensor>t)
            e += 1
    return 0


# ---- the node and its results --------------------------------------------------------------------------------------

cdef int locate(Node n) except -1:
    """Write down where the user made the call."""
    if n.place.code == NULL:
        n.place = here()
    return 0


cdef int enter(Node n) except -1:
    """n takes its place in time: it is newer than all that it has edges to."""
    locate(n)
    if state().anomaly:
        hooks_of(n).trace = slot("stack")()
        follow(n, n.hooks)
    n.seq = next_seq()
    return 0


cdef int give_history(Node n, int nr, Tensor t, Py_ssize_t own) except -1:
    """t is output nr of n, where it can carry a gradient. own: references to t that are the caller's, see node.hang."""
    set_meta(n, nr, t)
    if is_inexact(t.tid):
        hang(t, n, nr, own)
    return 0


cdef int rewrite(Node n, int nr, Tensor t, int at) except -1:
    """n wrote to t: t, and the base it is a view of, is output nr of n, where it had edge `at`."""
    cdef CopySlices c
    cdef Tensor base
    locate(n)
    set_meta(n, nr, t)
    if not (t.bits & DIFF_VIEW and t.base is not None):
        return set_node(t, n, nr)
    base = <Tensor>t.base
    c = CopySlices.__new__(CopySlices)
    reserve(c, n.nedges if n.nedges else 1, 1, 0)
    share_edges(c, n, at)
    edge(c, at, base)
    c.at, c.nr = at, nr
    set_meta(c, 0, base)
    c.fn = n
    follow_node(c, n)
    c.base_like, c.view_like = alias(base), alias(t)
    c.offset = (t.data - base.data) // ITEMSIZE[t.tid]
    for like in (c.base_like, c.view_like):
        (<Tensor>like).storage = None
    c.place = n.place
    if c.place.code != NULL:
        Py_INCREF(<object>c.place.code)
    c.seq = next_seq()
    set_node(base, c, 0)
    # one less than the version after the bump: the view's own node is made anew when it is asked for
    set_node(t, n, nr)
    t.view_version = version_of(t) - 1
    return 0
