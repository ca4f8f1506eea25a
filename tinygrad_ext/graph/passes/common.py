"""What is computed twice."""

from ..check import type_of
from ..ir import Value
from .base import OwnPass, has_effect, is_random, replace, shown

_EXACT = {int, bool, str, type(None)}  # equal ones of a type are one constant


class CommonSubexpressions(OwnPass):
    """Computes what two nodes of a block compute alike only once.

    Draws stay apart, and so do two values of which each may be a result's memory: who writes to one result in place
    would change the other.
    """

    def changes(self, graph):
        mapping = {}
        _Walk(graph, mapping).block(graph.block, {})
        replace(graph, mapping)
        return bool(mapping)


class _Walk:
    """One run. mapping: {what is computed again: what was computed before}."""

    def __init__(self, graph, mapping):
        self.graph, self.mapping, self.visible = graph, mapping, None

    def block(self, block, outer):
        known, mapping = dict(outer), self.mapping  # an inner block sees what stands before it
        kept = []
        for node in block.nodes:
            for inner in node.blocks:
                self.block(inner, known)
            key = None if node.blocks or is_random(node) or has_effect(node) else _key(node, mapping)
            first = known.setdefault(key, node) if key is not None else node
            if first is node or self.both_shown(first, node):
                kept.append(node)
                continue
            for old, new in zip(node.outputs, first.outputs):
                mapping[old] = new
                if id(old) in self.visible:
                    self.visible.add(id(new))
        block.nodes[:] = kept

    def both_shown(self, a, b):
        if self.visible is None:  # nothing was left out so far
            self.visible = shown(self.graph)
        visible = self.visible
        return any(id(v) in visible for v in a.outputs) and any(id(v) in visible for v in b.outputs)


def _key(node, mapping):
    return (node.op, node.version, *[v.type for v in node.outputs], *[_name(a, mapping) for a in node.args])


def _name(a, mapping):
    """What tells an argument from others: 1 from 1.0 and True, 0.0 from -0.0."""
    if type(a) is Value:
        while a in mapping:
            a = mapping[a]
        return "%", id(a)
    if type(a) in _EXACT:
        return type(a), a
    if type(a) is tuple:
        return tuple([_name(x, mapping) for x in a])
    return str(type_of(a)), repr(a)
