# cython: language_level=3, boundscheck=True, wraparound=True
"""What is computed twice."""
from ..nodes cimport VALUE, args_of, blocks_of, graph_node, op_of, outputs_of, there, type_of
from ..walks cimport Facts

from ..check import type_of as type_of_constant
from .base import OwnPass, replace, shown

cdef set _EXACT = {int, bool, str, type(None)}      # equal ones of a type are one constant


class CommonSubexpressions(OwnPass):
    """Computes what two nodes of a block compute alike only once.

    Draws stay apart, and so do two values of which each may be a result's memory: who writes to one result in place
    would change the other.
    """

    def changes(self, graph):
        cdef Walk walk = Walk()
        walk.graph, walk.mapping, walk.facts, walk.visible = graph, {}, Facts(), None
        walk.block(graph.block, {})
        replace(graph, walk.mapping)
        return bool(walk.mapping)


cdef class Walk:
    """One run."""
    cdef object graph
    cdef dict mapping       # what is computed again: what was computed before
    cdef Facts facts
    cdef set visible

    cdef int block(self, block, dict outer) except -1:
        cdef dict known = dict(outer), mapping = self.mapping   # an inner block sees what stands before it
        cdef list kept = []
        for node in block.nodes:
            if blocks_of(node):
                for inner in blocks_of(node):
                    self.block(inner, known)
                kept.append(node)
                continue
            if self.facts.is_random(node) or self.facts.has_effect(node):
                kept.append(node)
                continue
            first = known.setdefault(self.key(node), node)
            if first is node or self.both_shown(first, node):
                kept.append(node)
                continue
            for old, new in zip(outputs_of(node), outputs_of(first)):
                mapping[old] = new
                if id(old) in self.visible:
                    self.visible.add(id(new))
        block.nodes[:] = kept
        return 0

    cdef bint both_shown(self, a, b) except -1:
        if self.visible is None:        # nothing was left out so far
            self.visible = shown(self.graph)
        return self.is_shown(a) and self.is_shown(b)

    cdef bint is_shown(self, node) except -1:
        for value in outputs_of(node):
            if id(value) in self.visible:
                return True
        return False

    cdef tuple key(self, node):
        """What nodes that compute the same have in common."""
        cdef list row = [op_of(node), there((<graph_node *>node).version)]
        for value in outputs_of(node):
            row.append(type_of(value))
        for a in args_of(node):
            self.name(a, row)
        return tuple(row)

    cdef int name(self, a, list row) except -1:
        """Add what tells an argument from others: 1 from 1.0 and True, 0.0 from -0.0."""
        cdef type kind = type(a)
        if kind is VALUE:
            while a in self.mapping:
                a = self.mapping[a]
            row.append(a)
        elif kind in _EXACT:
            row.append(kind)
            row.append(a)
        elif kind is tuple:
            row.append(kind)
            row.append(len(a))
            for x in a:
                self.name(x, row)
        else:
            row.append(str(type_of_constant(a)))
            row.append(repr(a))
        return 0
