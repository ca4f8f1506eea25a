"""What recorders write, and who tells them: the engine, and whoever runs plans."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport TGX_LEVELS, state
from tinygrad_ext.core.call.levels cimport Observer
from tinygrad_ext.core.data.types cimport int32_t, int64_t, uint32_t, uint64_t
from tinygrad_ext.core.grad.node cimport Node

cdef extern from "events.h" nogil:
    enum:
        TGX_WATCHERS
    ctypedef struct tgx_event:
        int64_t begin
        int64_t end
        int64_t used_before
        int64_t used_after
        uint64_t seq
        uint32_t name
        uint32_t line
        uint32_t shapes
        uint32_t owner
        uint32_t depth
        uint32_t kind
    ctypedef struct tgx_ring:
        tgx_event *events
        int64_t capacity
        int64_t written
    ctypedef struct tgx_about:
        uint32_t name
        uint32_t line
        uint32_t shapes
        uint32_t owner
        uint32_t kind
    ctypedef struct tgx_watched_row "struct { tgx_ring *ring; const tgx_about *about; int64_t used; uint32_t depth; }":
        tgx_ring *ring
        const tgx_about *about
        int64_t used
        uint32_t depth
    ctypedef struct tgx_watched_run:
        int n
        tgx_watched_row *rows
    int64_t tgx_event_clock()
    tgx_event *tgx_next_event(tgx_ring *ring)
    void tgx_instruction_seen(void *run, int32_t which, int64_t begin, int64_t end)

cdef enum EventKind:
    OPERATION
    RANGE
    BACKWARD
    GRAPH                   # a call of a graph, with history
    PLAN                    # a run of a plan
    NODE                    # an instruction of one: what one node of the graph says,
    TILE                    # or a group of pointwise ones, tile by tile

cdef struct Open:           # a slice that has begun
    int64_t begin
    int64_t used
    uint64_t seq
    uint32_t name
    uint32_t line
    uint32_t shapes
    uint32_t owner
    uint32_t kind

cdef int watching           # recorders that are on, in all threads; above zero while somebody profiles a plan, too

cdef class Recorder(Observer):
    cdef tgx_ring ring
    cdef Open *opened               # ranges, backward nodes, graphs
    cdef Py_ssize_t nopened
    cdef Py_ssize_t room
    cdef uint32_t depth
    cdef Py_ssize_t floor           # those that began before the operation that runs
    cdef dict numbers               # text or tuple -> its number
    cdef list texts
    cdef dict names                 # Op, or OpForm -> number of its name
    cdef dict stacks                # bytes of places -> number of the lines
    cdef list codes                 # keeps their code objects
    cdef dict plans                 # id of a routine -> (the routine, bytes of its tgx_abouts)
    cdef object skipped             # a composite that was recorded and is to be opened
    cdef bint lines
    cdef bint shapes
    cdef bint memory
    cdef bint on
    cdef bint stopped               # from another thread: this one takes it off its stack
    cdef uint32_t number(self, object text) except? 0xffffffff
    cdef int64_t _used(self) noexcept
    cdef uint32_t _lines(self) except? 0xffffffff
    cdef int _describe(self, Open *at, object key, str name, object args) except -1
    cdef int _ended(self, Open *at, Py_ssize_t floor) except -1
    cdef int _write(self, Open *at) noexcept
    cdef int open(self, str name, int kind, uint64_t seq) except -1
    cdef int _close(self, Py_ssize_t count) except -1
    cdef int end_kind(self, int kind, uint64_t seq) except -1

cdef int apply_seen(Node n, PyObject **grads, PyObject **results, const unsigned char *needed) except -1
cdef list recorders_here()
cdef void count_watching(int change) noexcept

cdef inline int apply_node(Node n, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
    if state().flags & TGX_LEVELS:
        return apply_seen(n, grads, results, needed)
    return n.apply(grads, results, needed)
