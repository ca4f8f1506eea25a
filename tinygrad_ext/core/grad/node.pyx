# cython: language_level=3
"""Node: one step of a history, which is a backward graph.

Ownership runs one way, from newer to older: a tensor owns its node, a node owns its edges' nodes and what it
saved, an AccumulateGrad owns its leaf and the leaf only points back. A saved output would close a circle, so
a detached alias is saved in its place. `let_go` keeps the freeing of a long chain off the C stack, for all kinds of
nodes; Cython's trashcan would ask the interpreter for each node, and knows no tensors between them.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdlib cimport calloc, free, malloc
from tinygrad_ext.core.data.dtype cimport CPU, FLIPPED, META, device as Device, device_of, dtype, dtype_of, make_size
from tinygrad_ext.core.call.places cimport place_text
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.storage cimport let_go
from tinygrad_ext.core.data.tensor cimport settle, shown_device
from tinygrad_ext.core.data.tracking cimport PyObject_GC_UnTrack, add_ring, tgx_link_into, tgx_unlink, track_all

from collections import namedtuple

from tinygrad_ext.core.data.dtype import Size

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(object t, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(object t)

ctypedef int (*visitproc)(PyObject *o, void *arg)
cdef extern from *:
    """
    typedef int (*tgx_traverse)(PyObject *, visitproc, void *);
    #define TGX_TYPE(o) ((PyTypeObject *)(o))
    """
    ctypedef int (*traverseproc "tgx_traverse")(PyObject *o, visitproc visit, void *arg) noexcept
    ctypedef int (*inquiry)(PyObject *o) noexcept
    ctypedef struct CType "PyTypeObject":
        traverseproc tp_traverse
        inquiry tp_clear
    CType *TGX_TYPE(object t)

ctypedef void (*destructor)(PyObject *o) noexcept

cdef extern from "own_dealloc.h":
    destructor tgx_own_dealloc(object type, destructor dealloc)

cdef extern from "untracked.h":
    tgx_link tgx_ring
    int tgx_start_untracked(object type, Py_ssize_t link_offset) except -1

cdef extern from "node_type.h":
    void tgx_become(object o, object type)
    Py_ssize_t TGX_NODE_LINK
    ctypedef struct Fields "TGX_NODE":          # of an instance that goes
        int nedges
        int noutputs
        int nsaved
        Edge *edges
        PyObject **saved
        uint32_t *versions
        int *counts
        Meta *metas
        tgx_place place
        tgx_link link
        Edge *inline_edges
        PyObject **inline_saved
        Meta inline_meta

InputMetadata = namedtuple("InputMetadata", "shape dtype device")

cdef uint64_t _seq = 0
cdef dict _types = {}           # of nodes, by name
cdef object _plain_type = None  # the class of most nodes, which takes on another when it is shown


cdef uint64_t next_seq() noexcept:
    global _seq
    _seq += 1
    return _seq


@cython.final
cdef class Hooks:
    pass


# ---- Node ----------------------------------------------------------------------------------------------------------

cdef bint _is_plain(object v) noexcept:
    """A number, shape, dtype or basic index, which costs nothing to keep."""
    cdef Py_ssize_t i
    if isinstance(v, tuple):
        for i in range(PyTuple_GET_SIZE(v)):
            if not _is_plain(<object>PyTuple_GET_ITEM(v, i)):
                return False
        return True
    if isinstance(v, list):
        for item in v:
            if not _is_plain(item):
                return False
        return True
    return v is None or v is Ellipsis or isinstance(v, (int, float, complex, str, slice, dtype))


cdef class Node:
    """A step of the backward graph."""

    def __cinit__(self):
        self.edges = self.inline_edges
        self.saved = self.inline_saved
        self.versions = self.inline_versions
        self.metas = &self.inline_meta
        self.inline_meta.sizes = self.inline_meta.inline_sizes

    cdef void release(self) noexcept:
        """Let go of the tensors saved for backward. A node that saved none can be run again, as in PyTorch."""
        cdef int i
        cdef PyObject *o
        for i in range(self.nsaved):
            o = self.saved[i]
            if o != NULL and (isinstance(<object>o, Tensor) or not _is_plain(<object>o)):
                self.released = True
                self.saved[i] = NULL
                Py_XDECREF(o)

    cdef bint settled(self) noexcept:
        """Take the node out of the collector's lists if it may be; whether. Those of ops stay: what they hold is known too."""
        return self.link.next != NULL

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        """Gradients of the inputs from those of the outputs: results[e] for edge e, where needed[e]."""
        return 0

    # ---- what users see

    def name(self):
        """Name as PyTorch shows it, such as 'AddBackward0'."""
        return self.op.node_type if self.op is not None else type(self).__name__

    def __repr__(self):
        return f"<{self.name()} object at {<size_t><PyObject *>self:#x}>"

    def __reduce_ex__(self, protocol):
        raise TypeError(f"cannot pickle '{self.name()}' object: a graph lives in memory only. Save the tensors, without their "
                        "history.")

    def __call__(self, *grads):
        return slot("call_node")(self, grads)

    def _sequence_nr(self):
        return self.seq

    @property
    def next_functions(self):
        """((node, input number), ...) of the inputs; (None, 0) where no gradient is wanted."""
        return tuple([(shown(<Node>self.edges[i].node), self.edges[i].nr) if self.edges[i].node != NULL else (None, 0)
                      for i in range(self.nedges)])

    def _has_hooks(self):
        """Whether hooks would see or change gradients here."""
        h = self.hooks
        return h is not None and bool(h.pre or h.post or h.accumulated or (h.tensor and any(h.tensor.values())))

    def _edge_names(self):
        """Names of the arguments that next_functions belong to."""
        return [str(i) for i in range(self.nedges)]

    @property
    def metadata(self):
        """A dict of one's own for notes on this node."""
        h = _open_hooks(self)
        if h.metadata is None:
            h.metadata = {}
        return h.metadata

    @property
    def _input_metadata(self):
        """(shape, dtype, device) of each output of the forward, which is what a gradient must fit; None for no tensor."""
        return tuple([InputMetadata(make_size(self.metas[i].sizes, self.metas[i].rank), dtype_of(self.metas[i].tid),
                                    device_of(self.metas[i].device_id)) if self.metas[i].rank >= 0 else None
                      for i in range(self.noutputs)])

    def register_hook(self, fn):
        """Call fn(grad_inputs, grad_outputs) after this node has run; a returned tuple replaces grad_inputs."""
        h = _open_hooks(self)
        if h.post is None:
            h.post = []
        return _handle(h.post, fn)

    def register_prehook(self, fn):
        """Call fn(grad_outputs) before this node runs; a returned tuple replaces them."""
        h = _open_hooks(self)
        if h.pre is None:
            h.pre = []
        return _handle(h.pre, fn)

    def _register_tensor_hook(self, int nr, fn):
        h = _open_hooks(self)
        if h.tensor is None:
            h.tensor = {}
        return _handle(h.tensor.setdefault(nr, []), fn)

    def _retain(self, int nr, reference):
        h = hooks_of(self)               # weak references alone: no circle goes through them
        if h.retain is None:
            h.retain = {}
        h.retain[nr] = reference


cdef object shown(Node n):
    """n as users see it: type(n).__name__ is the name of its op's derivative, such as AddBackward0."""
    if type(n) is _plain_type and n.op is not None:
        if n.link.next != NULL:         # types made in Python free their instances in their own way
            track(<PyObject *>n, &n.link)
        name = n.op.node_type
        if name not in _types:
            _types[name] = type(name, (_plain_type,), {"__slots__": (), "__module__": "builtins"})
        tgx_become(n, _types[name])
    return n


cdef Hooks hooks_of(Node n):
    if n.hooks is None:
        n.hooks = Hooks.__new__(Hooks)
    return n.hooks


cdef Hooks _open_hooks(Node n):
    """n's hooks, to hang something on them."""
    track_all()
    return hooks_of(n)


cdef object _handle(list hooks, fn):
    return slot("handle")(hooks, fn)


# ---- the garbage collector -----------------------------------------------------------------------------------------

cdef int _traverse(PyObject *o, visitproc visit, void *arg) noexcept:
    cdef Node n = <Node>o
    cdef int i, code
    code = _plain_traverse(o, visit, arg)
    for i in range(n.nedges):
        if code == 0 and n.edges[i].node != NULL:
            code = visit(n.edges[i].node, arg)
    for i in range(n.nsaved):
        if code == 0 and n.saved[i] != NULL:
            code = visit(n.saved[i], arg)
    return code


cdef inline void _give_up(PyObject *o) noexcept:
    if o != NULL and o.ob_refcnt > 1:
        Py_XDECREF(o)
    else:
        let_go(o)


cdef void _dealloc(PyObject *o) noexcept:
    """Free a node. (Cython's __dealloc__ would put the current exception aside and back each time.)"""
    cdef Fields *n = <Fields *>o
    cdef int i
    PyObject_GC_UnTrack(o)
    tgx_unlink(&n.link)
    for i in range(n.nsaved):
        _give_up(n.saved[i])
    for i in range(n.nedges):
        _give_up(n.edges[i].node)
    if n.edges != n.inline_edges:
        free(n.edges)
    if n.saved != n.inline_saved:
        free(n.saved)
        free(n.versions)
    for i in range(n.noutputs):
        if n.metas[i].sizes != n.metas[i].inline_sizes:
            free(n.metas[i].sizes)
    if n.metas != &n.inline_meta:
        free(n.metas)
    if n.counts != NULL:
        free(n.counts)
    Py_XDECREF(n.place.code)
    n.nedges = n.nsaved = n.noutputs = 0
    _plain_dealloc(o)


cdef int start_untracked(node_type, bint plain) except -1:
    """Instances of exactly this class start untracked: whoever links one says so by `follow`, and by `track_all`. The memory
    of freed ones is kept for the next.

    plain: it is the class of most nodes, and has no fields of its own.
    """
    global _plain_type
    tgx_start_untracked(node_type, TGX_NODE_LINK)
    if plain:
        _plain_type = node_type
        tgx_own_dealloc(node_type, _dealloc)
    return 0


cdef bint untrack(Node n) noexcept:
    """Take n out of the collector's lists; its class starts untracked."""
    if n.link.next == NULL:
        PyObject_GC_UnTrack(<PyObject *>n)
        tgx_link_into(&tgx_ring, &n.link)
    return True


cdef bint harmless(object o, int depth=3) noexcept:
    """Whether no circle can go through what a node is to hold, as long as nothing is hung on it."""
    if not tgx_is_gc(o):
        return True
    if isinstance(o, Tensor):
        return settle(<Tensor>o)
    if isinstance(o, Node):
        return (<Node>o).settled()
    if depth and (type(o) is tuple or type(o) is Size):
        for item in <tuple>o:
            if not harmless(item, depth - 1):
                return False
        return True
    return depth and type(o) is slice and harmless(o.start, 0) and harmless(o.stop, 0) and harmless(o.step, 0)


cdef traverseproc _plain_traverse = TGX_TYPE(Node).tp_traverse
TGX_TYPE(Node).tp_traverse = _traverse
cdef destructor _plain_dealloc = tgx_own_dealloc(Node, _dealloc)
add_ring(&tgx_ring, TGX_NODE_LINK)


# ---- building ------------------------------------------------------------------------------------------------------

cdef int reserve(Node n, int nedges, int noutputs, int nsaved) except -1:
    cdef int i
    if nedges > INLINE_EDGES:
        n.edges = <Edge *>malloc(nedges * sizeof(Edge))
        if n.edges == NULL:
            raise MemoryError()
    if nsaved > INLINE_SAVED:
        n.saved = <PyObject **>malloc(nsaved * sizeof(PyObject *))
        n.versions = <uint32_t *>malloc(nsaved * sizeof(uint32_t))
        if n.saved == NULL or n.versions == NULL:
            raise MemoryError()
    if noutputs > 1:
        n.metas = <Meta *>calloc(noutputs, sizeof(Meta))
        if n.metas == NULL:
            n.metas = &n.inline_meta
            raise MemoryError()
        for i in range(noutputs):
            n.metas[i].sizes = n.metas[i].inline_sizes
    for i in range(nedges):
        n.edges[i].node = NULL
        n.edges[i].nr = 0
    for i in range(nsaved):
        n.saved[i] = NULL
    n.nedges, n.noutputs, n.nsaved = nedges, noutputs, nsaved
    return 0


cdef int reserve_outputs(Node n, int count) except -1:
    """Meta rows for an op of several outputs; the other rows are as reserved before."""
    cdef int nedges = n.nedges, nsaved = n.nsaved
    n.nedges = n.nsaved = 0          # reserve() must not touch them
    reserve(n, 0, count, 0)
    n.nedges, n.nsaved = nedges, nsaved
    return 0


cdef int set_meta(Node n, int nr, Tensor t) except -1:
    cdef Meta *m = &n.metas[nr]
    cdef int i
    if m.sizes != m.inline_sizes:
        free(m.sizes)
        m.sizes = m.inline_sizes
    if t.rank > INLINE_META:
        m.sizes = <int64_t *>malloc(t.rank * sizeof(int64_t))
        if m.sizes == NULL:
            m.sizes = m.inline_sizes
            raise MemoryError()
    for i in range(t.rank):
        m.sizes[i] = t.sizes[i]
    m.rank, m.tid, m.device_id = t.rank, t.tid, t.device_id
    if t.device_id == META and t.extra is not None:
        m.device_id = (<Device>shown_device(t)).id
    if t.device_id >= FLIPPED:      # its gradient may be of another dtype, and is converted
        m.device_id = CPU
    return 0


cdef object zeros_for(Node n, int nr):
    """Zeros in the shape of output nr."""
    cdef Meta *m = &n.metas[nr]
    return slot("zeros")(make_size(m.sizes, m.rank), dtype_of(m.tid), device_of(m.device_id))


def place_of(Node n):
    """File, line and function where the user made the node, as text."""
    return place_text(n.place)
