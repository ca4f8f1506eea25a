"""Which nodes a pass can come to."""
from cpython.object cimport PyObject
from tinygrad_ext.core.grad.node cimport Node

cdef enum:
    FEW_MARKS = 16              # nodes of a graph that needs no malloc; a power of two
    FEW_SPOTS = 4

cdef struct Mark:               # what is known of a node
    PyObject *node
    int first                   # the last told of its outputs that are inputs of the pass, a number into spots; -1: none
    bint leads                  # an input can be reached from it
    bint walked

cdef struct Spot:               # an input of the pass
    int nr                      # which output of its node it is
    int next                    # one more of the same node, or -1

cdef class Reach:
    cdef int count
    cdef int room
    cdef int nspots
    cdef int spot_room
    cdef Py_ssize_t mask
    cdef Mark *marks
    cdef int *slots             # number of a mark and one, or 0; twice the room, found by the node's address
    cdef Spot *spots
    cdef Mark[FEW_MARKS] few_marks
    cdef int[2 * FEW_MARKS] few_slots
    cdef Spot[FEW_SPOTS] few_spots

    cdef Mark *find(self, PyObject *node) noexcept
    cdef bint leads(self, PyObject *node) noexcept
    cdef int want(self, Node n, int nr) except -1
    cdef int walk(self, Node root) except -1
    cdef Mark *_mark(self, PyObject *node) except NULL
    cdef void _enter(self, int number) noexcept
    cdef int _grow(self) except -1
