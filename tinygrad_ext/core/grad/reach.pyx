# cython: language_level=3
"""Which nodes a pass can come to, and which of them lead to what is wanted.

Nothing recurses, since graphs are deeper than any stack. Only passes with `inputs=` walk through the graph before they run
(the engine orders nodes without, engine.pyx).
"""
cimport cython
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy
from tinygrad_ext.core.grad.edges cimport AccumulateGrad
from tinygrad_ext.core.grad.node cimport Node


cdef enum:
    FEW_STEPS = 32


cdef struct Step:               # on the way from the root
    int mark
    int edge                    # the next to go along


cdef inline size_t _hash(PyObject *p) noexcept:
    return (<size_t>p >> 4) ^ (<size_t>p >> 12)


def nodes_behind(roots):
    """All nodes that can be reached from the given ones, these included, oldest first."""
    cdef set seen = set()
    cdef list found = [], stack = list(roots)
    cdef Node n
    cdef int i
    while stack:
        n = stack.pop()
        if <size_t><PyObject *>n in seen:
            continue
        seen.add(<size_t><PyObject *>n)
        found.append(n)
        for i in range(n.nedges):
            if n.edges[i].node != NULL and <size_t>n.edges[i].node not in seen:
                stack.append(<object>n.edges[i].node)
    found.sort(key=_sequence)
    return found


def leads_elsewhere(roots, set leaves not None):
    """Whether a leaf can be reached from these nodes whose id is not among `leaves`."""
    cdef set seen = set()
    cdef list stack = list(roots)
    cdef Node n
    cdef int i
    while stack:
        n = stack.pop()
        if isinstance(n, AccumulateGrad) and <size_t><PyObject *>(<AccumulateGrad>n).variable not in leaves:
            return True
        for i in range(n.nedges):
            if n.edges[i].node != NULL and <size_t>n.edges[i].node not in seen:
                seen.add(<size_t>n.edges[i].node)
                stack.append(<object>n.edges[i].node)
    return False


def _sequence(Node n):
    return n.seq


# ---- passes with inputs --------------------------------------------------------------------------------------------

@cython.freelist(4)
cdef class Reach:
    """The nodes behind the roots of a pass with inputs, and which of them lead to one.

    A table of pointers in C: with a dictionary of ids, finding the way through a graph of two nodes costs more than what
    these compute. The pass holds its roots, so no node goes while this is asked about it.
    """

    def __cinit__(self):
        self.marks, self.slots, self.room, self.mask = self.few_marks, self.few_slots, FEW_MARKS, 2 * FEW_MARKS - 1
        self.spots, self.spot_room = self.few_spots, FEW_SPOTS

    def __dealloc__(self):
        if self.marks != self.few_marks:
            free(self.marks)
            free(self.slots)
        if self.spots != self.few_spots:
            free(self.spots)

    cdef Mark *find(self, PyObject *node) noexcept:
        """What is known of a node; NULL: it is not among those behind the roots."""
        cdef Py_ssize_t at = _hash(node) & self.mask
        while self.slots[at]:
            if self.marks[self.slots[at] - 1].node == node:
                return &self.marks[self.slots[at] - 1]
            at = (at + 1) & self.mask
        return NULL

    cdef bint leads(self, PyObject *node) noexcept:
        """Whether an input can be reached from a node."""
        cdef Mark *m = self.find(node)
        return m != NULL and m.leads

    cdef Mark *_mark(self, PyObject *node) except NULL:
        cdef Mark *m = self.find(node)
        if m != NULL:
            return m
        if self.count == self.room:
            self._grow()
        m = &self.marks[self.count]
        m.node, m.first, m.leads, m.walked = node, -1, False, False
        self.count += 1
        self._enter(self.count)
        return m

    cdef void _enter(self, int number) noexcept:
        cdef Py_ssize_t at = _hash(self.marks[number - 1].node) & self.mask
        while self.slots[at]:
            at = (at + 1) & self.mask
        self.slots[at] = number

    cdef int _grow(self) except -1:
        cdef Mark *marks = <Mark *>malloc(2 * self.room * sizeof(Mark))
        cdef int *slots = <int *>calloc(4 * self.room, sizeof(int))
        cdef int i
        if marks == NULL or slots == NULL:
            free(marks)
            free(slots)
            raise MemoryError()
        memcpy(marks, self.marks, self.count * sizeof(Mark))
        if self.marks != self.few_marks:
            free(self.marks)
            free(self.slots)
        self.marks, self.slots = marks, slots
        self.room *= 2
        self.mask = 2 * self.room - 1
        for i in range(self.count):
            self._enter(i + 1)
        return 0

    cdef int want(self, Node n, int nr) except -1:
        """Output nr of n is the next input. All are told before the walk."""
        cdef Mark *m = self._mark(<PyObject *>n)
        cdef Spot *spots
        if self.nspots == self.spot_room:
            spots = <Spot *>malloc(2 * self.spot_room * sizeof(Spot))
            if spots == NULL:
                raise MemoryError()
            memcpy(spots, self.spots, self.nspots * sizeof(Spot))
            if self.spots != self.few_spots:
                free(self.spots)
            self.spots, self.spot_room = spots, 2 * self.spot_room
        self.spots[self.nspots].nr, self.spots[self.nspots].next = nr, m.first
        m.first, m.leads = self.nspots, True
        self.nspots += 1
        return 0

    cdef int walk(self, Node root) except -1:
        """Mark what is behind a root: a node when all that it has edges to is done."""
        cdef Mark *m = self._mark(<PyObject *>root)
        cdef Step few[FEW_STEPS]
        cdef Step *path = few
        cdef Step *longer
        cdef Py_ssize_t depth = 1, room = FEW_STEPS
        cdef PyObject *behind
        cdef int at
        cdef Node n
        if m.walked:
            return 0
        m.walked = True
        path[0].mark, path[0].edge = <int>(m - self.marks), 0
        try:
            while depth:
                at = path[depth - 1].mark           # marks move when there are more
                n = <Node>self.marks[at].node
                if path[depth - 1].edge == n.nedges:
                    depth -= 1
                    if depth and self.marks[at].leads:
                        self.marks[path[depth - 1].mark].leads = True
                    continue
                behind = n.edges[path[depth - 1].edge].node
                path[depth - 1].edge += 1
                if behind == NULL:
                    continue
                m = self._mark(behind)
                if m.walked:
                    if m.leads:
                        self.marks[at].leads = True
                    continue
                m.walked = True
                if depth == room:
                    longer = <Step *>malloc(2 * room * sizeof(Step))
                    if longer == NULL:
                        raise MemoryError()
                    memcpy(longer, path, room * sizeof(Step))
                    if path != few:
                        free(path)
                    path, room = longer, 2 * room
                path[depth].mark, path[depth].edge = <int>(m - self.marks), 0
                depth += 1
        finally:
            if path != few:
                free(path)
        return 0
