# cython: language_level=3, boundscheck=True, wraparound=True
"""Nodes whose results nobody reads."""
from ..nodes cimport args_of, blocks_of, outputs_of
from ..walks cimport Facts

from ..values import values_in
from .base import OwnPass


class DeadCode(OwnPass):
    """Leaves out nodes that nobody needs: neither a result of the graph nor what it writes back follows from them.

    A node that does more than give its outputs stays: one that draws from the default generator, prints or raises, and
    a loop, which may not end.
    """

    def changes(self, graph):
        cdef set read = set()
        for state in graph.state:
            read.update(values_in((state.new,)))
        return leave_out(graph.block, read, Facts()) > 0


cdef Py_ssize_t leave_out(block, set read, Facts facts) except -1:
    """Leave out nodes of a block from the last to the first; how many. read: Values that something behind it reads."""
    cdef list kept = []
    cdef Py_ssize_t count = 0
    read.update(values_in(block.outputs))
    for node in reversed(block.nodes):
        if not is_read(node, read) and not facts.has_effect(node):
            count += 1
            continue
        kept.append(node)
        for inner in reversed(blocks_of(node)):
            count += leave_out(inner, read, facts)
        read.update(values_in(args_of(node)))
    if count:
        kept.reverse()
        block.nodes[:] = kept
    return count


cdef bint is_read(node, set read) except -1:
    for value in outputs_of(node):
        if value in read:
            return True
    return False
