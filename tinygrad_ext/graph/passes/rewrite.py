"""Patterns: a few nodes that become others."""

from ..graph import Graph
from ..ir import Node, Value, replaced
from .base import Pass, blocks, uses


class Rewrite(Pass):
    """Puts one graph in the place of each occurrence of another.

        Rewrite('''graph pattern(%x: Tensor, %g: Tensor) {
          %1: Tensor = aten::sigmoid(%g)
          %2: Tensor = aten::mul.Tensor(%x, %1)
          return %2
        }''', '''graph better(%x: Tensor, %g: Tensor) {
          %1: Tensor = demo::gated(%x, %g)
          return %1
        }''')

    Args:
        pattern: graph, or its text, with one output, whose inputs stand for any values or constants.
        replacement: graph with the same inputs and one output.
        accepts: function of {name of an input: what it stands for}; False leaves an occurrence alone.

    What the pattern makes on the way may have no reader outside of it. The line of the user's program is kept.
    Raises ValueError for graphs that do not fit each other.
    """

    def __init__(self, pattern, replacement, accepts=None):
        self.pattern, self.replacement = (Graph.parse(g) if isinstance(g, str) else g for g in (pattern, replacement))
        self.accepts = accepts
        names = [[v.name for v in g.inputs] for g in (self.pattern, self.replacement)]
        if names[0] != names[1] or not all(len(g.outputs) == 1 and g.nodes for g in (self.pattern, self.replacement)):
            raise ValueError(
                "Rewrite: pattern and replacement need the same inputs, at least one node and one output each; "
                f"the pattern has inputs {names[0]} and {len(self.pattern.outputs)} outputs, the replacement "
                f"{names[1]} and {len(self.replacement.outputs)}"
            )
        if not isinstance(self.pattern.outputs[0], Value) or self.pattern.outputs[0].node is not self.pattern.nodes[-1]:
            raise ValueError("Rewrite: the pattern's output must be what its last node makes")

    def run(self, graph):
        known = uses(graph)
        for block in blocks(graph):
            for node in list(block.nodes):
                found = self._match(node, known)
                if found is not None:
                    self._replace(graph, block, node, *found)
                    known = uses(graph)
        return graph

    def _match(self, node, known):
        """({id of a pattern's value: what it stands for}, nodes that go), or None."""
        bound, matched = {}, []
        if not self._fits(self.pattern.nodes[-1], node, bound, matched) or len(matched) != len(self.pattern.nodes):
            return None
        for inner in matched:
            for value in inner.outputs if inner is not node else ():
                if any(reader not in matched for reader in known.get(id(value), ())):
                    return None
        given = {v.name: bound.get(id(v)) for v in self.pattern.inputs}
        return (bound, matched) if self.accepts is None or self.accepts(given) else None

    def _fits(self, wanted, node, bound, matched):
        if wanted.op != node.op or node.blocks or len(wanted.args) != len(node.args):
            return False
        if not all(self._binds(w, a, bound, matched) for w, a in zip(wanted.args, node.args)):
            return False
        for w, v in zip(wanted.outputs, node.outputs):
            bound[id(w)] = v
        if node not in matched:
            matched.append(node)
        return True

    def _binds(self, wanted, a, bound, matched):
        if isinstance(wanted, Value):
            if id(wanted) in bound:
                return bound[id(wanted)] is a or (not isinstance(a, Value) and repr(bound[id(wanted)]) == repr(a))
            if wanted.node is None:
                bound[id(wanted)] = a
                return True
            made = isinstance(a, Value) and a.node is not None and self._fits(wanted.node, a.node, bound, matched)
            return made and bound[id(wanted)] is a
        if type(wanted) is tuple and type(a) is tuple and len(wanted) == len(a):
            return all(self._binds(w, x, bound, matched) for w, x in zip(wanted, a))
        return type(wanted) is type(a) and repr(wanted) == repr(a)

    def _replace(self, graph, block, node, bound, matched):
        """The replacement's nodes in the place of the last node; its output keeps the value that others read."""
        names = {v.name: bound.get(id(v)) for v in self.pattern.inputs}
        mapping = {v: names[v.name] for v in self.replacement.inputs}
        at = block.nodes.index(node)
        for inner in matched:
            block.nodes.remove(inner)
        at -= sum(inner is not node for inner in matched)
        for wanted in self.replacement.nodes:
            made = Node(
                wanted.op, [replaced(a, mapping) for a in wanted.args], (), node.line, wanted.version, wanted.owner
            ).numbered_as(node)
            made.outputs = tuple([graph.value(v.type, made) for v in wanted.outputs])
            mapping.update(zip(wanted.outputs, made.outputs))
            block.nodes.insert(at, made)
            at += 1
        last = mapping[self.replacement.outputs[0]]
        maker, old = last.node, node.output
        old.node = maker
        maker.outputs = tuple([old if v is last else v for v in maker.outputs])
