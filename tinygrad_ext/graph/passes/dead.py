"""Nodes whose results nobody reads."""

from ..ir import values_in
from .base import OwnPass, blocks, has_effect, uses


class DeadCode(OwnPass):
    """Leaves out nodes that nobody needs: neither a result of the graph nor what it writes back follows from them.

    A node that does more than give its outputs stays: one that draws from the default generator, prints or raises, and
    a loop, which may not end.
    """

    def changes(self, graph):
        known, gone, count = uses(graph), set(), 0
        for block in reversed(blocks(graph)):
            if id(block) in gone:
                continue
            kept = []
            for node in reversed(block.nodes):
                if any([known.get(id(v)) for v in node.outputs]) or has_effect(node):
                    kept.append(node)
                else:
                    _forget(node, known, gone)
            count += len(block.nodes) - len(kept)
            block.nodes[:] = kept[::-1]
        return count > 0


def _forget(node, known, gone):
    """Take a node, and what its blocks hold, out of the readers; the blocks are gone with it."""
    for value in values_in(node.args):
        known[id(value)].remove(node)
    for block in node.blocks:
        gone.add(id(block))
        for inner in block.nodes:
            _forget(inner, known, gone)
        for value in values_in(block.outputs):
            known[id(value)].remove(None)
