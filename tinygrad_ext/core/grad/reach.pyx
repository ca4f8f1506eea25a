# cython: language_level=3
"""Which nodes a pass can come to, and which of them lead to what is wanted.

Nothing recurses, since graphs are deeper than any stack. Edges lead from newer to older nodes, so one walk from the oldest on
finds every answer ready that it needs; only passes with `inputs=` take it (the engine orders nodes without, engine.pyx).
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.grad.edges cimport AccumulateGrad
from tinygrad_ext.core.grad.node cimport Node


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


cdef dict needed_for(list roots, dict targets):
    """id(node) -> whether a target can be reached from it, for every node behind the roots."""
    cdef dict leads = {}
    cdef Node n
    cdef int i
    cdef bint wanted
    for n in nodes_behind(roots):       # a node comes after everything it feeds
        wanted = <size_t><PyObject *>n in targets
        for i in range(n.nedges):
            if not wanted and n.edges[i].node != NULL and leads.get(<size_t>n.edges[i].node, False):
                wanted = True
        leads[<size_t><PyObject *>n] = wanted
    return leads
