# cython: language_level=3
"""Edges of a history: where a tensor's gradient goes.

A leaf's goes into its `.grad`, by a node that owns the leaf; a view's whose base was written to goes to the base. The leaf
only points back at its node: were it the owner, a graph would let the leaf die whose gradient it computes. When the last graph
lets go of the node before the leaf goes, it sleeps: its memory, with no reference to it and none from it, is the leaf's, and the
next graph wakes it. Each step of a training loop would else make and free a node for each parameter.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from tinygrad_ext.core.call.dispatch cimport state, tgx_state
from tinygrad_ext.core.data.dtype cimport flips_of, make_size, real_of
from tinygrad_ext.core.grad.node cimport (
    Edge, Hooks, Node, follow_node, follow_tensor, hang, next_seq, set_meta, start_untracked, untrack,
)
from tinygrad_ext.core.data cimport tensor
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.tensor cimport (
    DETACHED_VIEW, DIFF_VIEW, FRESH, REQUIRES_GRAD, RETAINS_GRAD, Tensor, alias, needs_grad, settle, version_of,
)
from tinygrad_ext.core.data.tracking cimport PyObject_GC_UnTrack, tgx_unlink
from tinygrad_ext.core.data.types cimport ITEMSIZE, int64_t, is_complex

ctypedef void (*destructor)(PyObject *o) noexcept

cdef extern from "own_dealloc.h":
    destructor tgx_own_dealloc(object type, destructor dealloc)
    destructor TGX_DEALLOC(object type)

cdef extern from "sleep.h":
    bint tgx_may_sleep(PyObject *o) noexcept
    void tgx_wake(PyObject *o) noexcept


@cython.no_gc_clear       # the way to the leaf must last until the node is freed
cdef class AccumulateGrad(Node):
    """Adds what arrives to the `.grad` of a leaf."""

    cdef bint settled(self) noexcept:
        return self.hooks is None and settle(self.variable) and untrack(self)


cdef class CopySlices(Node):
    """Backward of an in-place op on a view, seen from the base."""

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        cdef Tensor b = self.base_like, v = self.view_like
        cdef PyObject *inner[1]
        if grads[0] == NULL:
            return 0
        grad = slot("copy_strided")(<object>grads[0], make_size(b.sizes, b.rank), b.stride())
        window = _window(grad, b, v, self.offset)
        slice_grad = slot("clone")(window)
        cdef tgx_state *st = state()
        cdef PyObject *around = st.slices
        inner[0] = <PyObject *>slice_grad
        Py_INCREF(slice_grad)           # fn may take it over
        st.slices = <PyObject *>self
        try:
            self.fn.apply(inner, results, needed)
        finally:
            st.slices = around
            Py_XDECREF(inner[0])
        if results[self.at] == NULL:
            slot("zero_")(window)
        else:
            slot("copy_")(window, <object>results[self.at])
            Py_DECREF(<object>results[self.at])
            results[self.at] = NULL
        if needed[self.at]:
            Py_INCREF(grad)
            results[self.at] = <PyObject *>grad
        return 0

    cdef void release(self) noexcept:
        if self.fn is not None:
            self.fn.release()
            self.released = self.fn.released

    def name(self):
        return "CopySlices"


cdef Node accumulator(Tensor leaf):
    """The leaf's AccumulateGrad, made when first needed."""
    cdef AccumulateGrad a
    if leaf.accumulator == NULL:
        a = AccumulateGrad.__new__(AccumulateGrad)
        a.noutputs = 1
        set_meta(a, 0, leaf)
        a.variable = leaf
        leaf.accumulator = <void *>a
    elif living_accumulator(leaf) != NULL:
        return <Node>leaf.accumulator
    else:
        tgx_wake(<PyObject *>leaf.accumulator)
        a = <AccumulateGrad><PyObject *>leaf.accumulator
        Py_DECREF(a)                    # the reference that it woke with is ours
        Py_INCREF(leaf)
        untrack(a)                      # (the leaf is of the same shape: set_geometry leaves its node else)
    follow_tensor(a, leaf)
    a.seq = next_seq()
    if leaf.extra is not None and "hooks" in leaf.extra:
        a.hooks = leaf.extra["hooks"]
    return a


cdef int gradient_edge(Tensor t, Edge *into) except -1:
    """Where t's gradient goes: its grad_fn, or its accumulator; nowhere when it needs none."""
    cdef object n
    n = grad_fn_of(t) if t.bits & DIFF_VIEW else t.node
    if n is not None:
        into.nr = t.output_nr
    elif t.bits & REQUIRES_GRAD:
        n = accumulator(t)
        into.nr = 0
    else:
        into.node = NULL
        return 0
    Py_INCREF(n)
    into.node = <PyObject *>n
    return 0


cdef int edge(Node n, int i, Tensor t) except -1:
    """Edge i of n leads where t's gradient goes."""
    gradient_edge(t, &n.edges[i])
    if n.edges[i].node != NULL:
        follow_node(n, <Node>n.edges[i].node)
    return 0


cdef int _pairs(Tensor base, Tensor t) noexcept:
    """2 for a view that shows the parts of a complex base, -2 for one that shows a base's pairs as complex, else 0."""
    if is_complex(base.tid) and real_of(base.tid) == t.tid:
        return 2
    if is_complex(t.tid) and real_of(t.tid) == base.tid and not (t.data - base.data) % ITEMSIZE[t.tid]:
        return -2
    return 0


cdef object _window(object of, Tensor base, Tensor t, int64_t offset):
    """What t shows of its base, or of the gradient of it."""
    cdef int before = flips_of(base.device_id), after = flips_of(t.device_id)
    cdef int pairs = 0 if base.tid == t.tid else _pairs(base, t)
    strides = tuple([t.strides[i] for i in range(t.rank)])
    if not (pairs | before | after):
        return slot("restride")(of, make_size(t.sizes, t.rank), strides, offset)
    return slot("window")(of, make_size(t.sizes, t.rank), strides, offset, pairs, before, after)


cdef object grad_fn_of(Tensor t):
    """t's node; a view whose base was written to since gets a new one, made by restriding the base."""
    cdef Tensor base, fresh
    if t.bits & DIFF_VIEW and t.base is not None and t.view_version != version_of(t):
        check_origin(t, "is a view and its base or another view of its base has been modified inplace")
        base = <Tensor>t.base
        if t.bits & DETACHED_VIEW and t.node is None and needs_grad(base):
            raise RuntimeError("A view was created in no_grad mode and its base or another view of its base has been modified "
                               "inplace with grad mode enabled: what it shows has a history now, and it has none. Make the view in "
                               "the same mode as the update, or a detach() of it.")
        if needs_grad(base):
            offset = (t.data - base.data) // ITEMSIZE[t.tid] + base.storage_offset() * ITEMSIZE[base.tid] // ITEMSIZE[t.tid]
            was = state().no_grad
            state().no_grad = 0
            try:
                fresh = _window(base, base, t, offset)
            finally:
                state().no_grad = was
            set_node(t, <Node>fresh.node, fresh.output_nr)
        t.view_version = version_of(t)
    return t.node


cdef bint _lies_as(Tensor t, Tensor view) noexcept:
    """Whether t is the window that was written to. What an unpack hook made lies elsewhere."""
    cdef int i
    if t.data != view.data or t.tid != view.tid or t.rank != view.rank:
        return False
    for i in range(t.rank):
        if t.sizes[i] != view.sizes[i] or t.strides[i] != view.strides[i]:
            return False
    return True


cdef int hang_output(Tensor t, Node n, int output) except -1:
    """Give t, which n saved of its results, the history of that. What was written to a view comes from its base, whose node runs n:
    beside that, n would be run and let go twice."""
    cdef PyObject *running = state().slices
    cdef CopySlices c
    cdef Tensor base, shown
    if running == NULL or (<CopySlices>running).fn is not n or (<CopySlices>running).nr != output or not _lies_as(
            t, (<CopySlices>running).view_like):
        hang(t, n, output, FRESH)
        return 0
    c = <CopySlices>running
    base = alias(c.base_like)
    base.storage, base.data = t.storage, t.data - c.offset * ITEMSIZE[t.tid]
    hang(base, c, 0, FRESH)
    was = state().no_grad
    state().no_grad = 0
    try:
        shown = _window(base, base, t, t.storage_offset())
    finally:
        state().no_grad = was
    if shown.node is None:          # in inference mode nothing has a history
        hang(t, n, output, FRESH)
    else:
        hang(t, <Node>shown.node, shown.output_nr, FRESH)
    return 0


cdef int check_origin(Tensor t, str problem) except -1:
    """Refuse what goes wrong for a view that a Function returned: a write would go around its backward."""
    if t.extra is not None and "made_by" in t.extra:
        name, count = t.extra["made_by"]
        raise RuntimeError(f"Output of {name} {problem}. This view was created inside a custom Function (or because an input was "
                           "returned as-is) and the autograd logic to handle view+inplace would override the custom backward"
                           + (", and the function returned multiple views" if count > 1 else "") + ". Return a clone of it.")
    return 0


cdef int set_node(Tensor t, Node n, int nr) except -1:
    """t, whose value has changed, comes from n. Its .grad is that of the new value, where it is retained; hooks stay
    with the value that they were registered for."""
    cdef Hooks h
    if t.bits & RETAINS_GRAD and t.node is not None:
        h = (<Node>t.node).hooks
        if h is not None and h.retain is not None and t.output_nr in h.retain:
            n._retain(nr, h.retain.pop(t.output_nr))
    hang(t, n, nr, 0)
    return 0


cdef int share_edges(Node n, Node source, int but) except -1:
    """The first edges of n lead where those of source do, but for one (-1: none)."""
    cdef int i
    for i in range(source.nedges):
        if i != but:
            n.edges[i] = source.edges[i]
            if n.edges[i].node != NULL:
                Py_INCREF(<object>n.edges[i].node)
                follow_node(n, <Node>n.edges[i].node)
    return 0


cdef void _dealloc(PyObject *o) noexcept:
    """Free an AccumulateGrad, or let it sleep where its leaf stays. (Cython's __dealloc__ would put the current exception
    aside and back each time.)"""
    cdef PyObject *leaf = <PyObject *>(<AccumulateGrad>o).variable
    PyObject_GC_UnTrack(o)
    if leaf != <PyObject *>None and (<Tensor>leaf).accumulator == <void *>o:
        if leaf.ob_refcnt > 1 and (<Node>o).hooks is None and tgx_may_sleep(o):
            Py_DECREF(<object>leaf)
            return
        (<Tensor>leaf).accumulator = NULL
    tgx_unlink(&(<Node>o).link)              # before the leaf goes, with what hangs on it
    Py_DECREF(<object>leaf)
    TGX_DEALLOC(Node)(o)


cdef void _leave(Tensor leaf) noexcept:
    """The leaf goes, or is another tensor from now on: graphs that have its node keep it, one that sleeps is freed."""
    cdef PyObject *o = <PyObject *>leaf.accumulator
    leaf.accumulator = NULL
    if not o.ob_refcnt:
        tgx_unlink(&(<Node>o).link)
        TGX_DEALLOC(Node)(o)


tensor.leave_accumulator = _leave
tgx_own_dealloc(AccumulateGrad, _dealloc)
start_untracked(AccumulateGrad, False)
start_untracked(CopySlices, False)
