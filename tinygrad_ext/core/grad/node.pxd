"""Nodes of the backward graph."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.call.places cimport tgx_place
from tinygrad_ext.core.data.tensor cimport FRESH
from tinygrad_ext.core.data.tensor cimport Tensor, let_know, settle
from tinygrad_ext.core.data.tracking cimport tgx_is_gc, tgx_link, track
from tinygrad_ext.core.data.types cimport int8_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    INLINE_EDGES = 3
    INLINE_SAVED = 4
    INLINE_META = 4             # dimensions

cdef struct Edge:
    PyObject *node              # owned; NULL: no gradient wanted
    int nr

cdef struct Meta:               # shape and dtype of one output of the forward
    int rank
    int8_t tid
    uint8_t device_id
    int64_t *sizes              # inline_sizes or malloc'd
    int64_t[INLINE_META] inline_sizes

cdef class Hooks:               # what hangs on few nodes
    cdef list pre               # (id, fn) on the tuple of incoming gradients
    cdef list post              # (id, fn) on the results and the incoming gradients
    cdef dict tensor            # output number -> [(id, fn)]
    cdef dict retain            # output number -> weak reference to the tensor whose .grad is filled
    cdef list accumulated       # (id, fn) called after accumulation into a leaf
    cdef object trace           # anomaly mode: stack of the forward
    cdef dict metadata

cdef class Node:
    cdef Op op                  # of a RuleNode
    cdef uint64_t seq
    cdef int nedges
    cdef int noutputs
    cdef int nsaved
    cdef unsigned char released
    cdef unsigned char packed   # some saved values went through hooks
    cdef Edge *edges
    cdef PyObject **saved       # owned
    cdef uint32_t *versions
    cdef int *counts            # edges of each tensor argument, when some are lists; else NULL
    cdef Meta *metas
    cdef tgx_place place        # where the user made it
    cdef void *task             # engine: the backward that has gradients for it, and where they are
    cdef void *entry
    cdef Hooks hooks
    cdef tgx_link link          # of the nodes that the garbage collector does not know, see tracking.pyx
    cdef Edge[INLINE_EDGES] inline_edges
    cdef PyObject *inline_saved[INLINE_SAVED]
    cdef uint32_t[INLINE_SAVED] inline_versions
    cdef Meta inline_meta
    cdef object __weakref__

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1
    cdef void release(self) noexcept
    cdef bint settled(self) noexcept

cdef Hooks hooks_of(Node n)             # made where there are none
cdef int start_untracked(node_type, bint plain) except -1
cdef bint untrack(Node n) noexcept      # True
cdef bint harmless(object o, int depth=?) noexcept

cdef inline void follow(Node n, object o) noexcept:
    """n, which nothing untracked owns yet, holds o from now on."""
    if tgx_is_gc(o) and n.link.next != NULL and not harmless(o):
        track(<PyObject *>n, &n.link)

cdef inline void follow_tensor(Node n, Tensor t) noexcept:
    if t.link.next == NULL and n.link.next != NULL and not settle(t):
        track(<PyObject *>n, &n.link)

cdef inline void follow_node(Node n, Node behind) noexcept:
    if behind.link.next == NULL and n.link.next != NULL and not behind.settled():
        track(<PyObject *>n, &n.link)

cdef inline void hang(Tensor t, Node n, int nr, Py_ssize_t own) noexcept:
    """t is output nr of n. own: references to t that are the caller's; others may be those of untracked owners."""
    t.node, t.output_nr = n, nr
    if n.link.next == NULL:
        let_know(t, own)

cdef int reserve(Node n, int nedges, int noutputs, int nsaved) except -1
cdef int reserve_outputs(Node n, int count) except -1
cdef int set_meta(Node n, int nr, Tensor t) except -1
cdef uint64_t next_seq() noexcept
cdef object zeros_for(Node n, int nr)
cdef object shown(Node n)              # n as users see it
