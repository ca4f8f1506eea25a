"""What a pass is, and what passes ask of graphs."""

from .. import primitives
from ..ir import Value, replaced, values_in
from ..signature import signature_of


class Pass:
    """A change of graphs that keeps results to the bit. Derive from it, or write any class with `run`."""

    def run(self, graph):
        """Change the graph, inner blocks too, in place."""
        raise NotImplementedError(f"{type(self).__name__} does not define run(self, graph)")


class OwnPass(Pass):
    """One of the package's own: it says whether it changed anything."""

    def run(self, graph):
        self.changes(graph)
        return graph

    def changes(self, graph):
        """Change the graph; whether there was anything to change."""
        raise NotImplementedError


def blocks(graph):
    """All blocks, inner ones before the block that holds them."""

    found = []

    def below(block):
        for node in block.nodes:
            for inner in node.blocks:
                below(inner)
        found.append(block)

    below(graph.block)
    return found


def is_op(node):
    return not node.op.startswith("prim::")


def is_random(node):
    """Whether a node draws, or gives what nobody has set."""
    return is_op(node) and signature_of(node.op).random


def has_effect(node):
    """Whether a node does more than give its outputs: it draws from the default generator, prints, raises."""
    if is_op(node):
        signature = signature_of(node.op)
        generator = signature.generator
        drawn = generator is not None and not isinstance(node.args[generator], Value)
        return signature.inplace or not node.outputs or drawn
    if node.op in primitives.CONTROL:
        return node.op == "prim::Loop" or any(has_effect(inner) for block in node.blocks for inner in block.walk())
    return bool(getattr(primitives.TABLE.get(node.op), "effect", False))


def uses(graph):
    """{id of a Value: nodes that read it}; None stands for what a block, or the graph, returns or writes back."""
    found = {}
    for block in blocks(graph):
        for node in block.nodes:
            for value in values_in(node.args):
                found.setdefault(id(value), []).append(node)
        for value in values_in(block.outputs):
            found.setdefault(id(value), []).append(None)
    for state in graph.state:
        for value in values_in((state.new,)):
            found.setdefault(id(value), []).append(None)
    return found


def replace(graph, mapping):
    """Put other values in the place of some everywhere. mapping: {Value: Value or constant}."""
    if not mapping:
        return
    mapping = {old: _last(new, mapping) for old, new in mapping.items()}
    for block in blocks(graph):
        for node in block.nodes:
            node.args = tuple([replaced(a, mapping) for a in node.args])
        block.outputs = [replaced(a, mapping) for a in block.outputs]
    for state in graph.state:
        if state.written:
            state.new = replaced(state.new, mapping)


def _last(new, mapping):
    while isinstance(new, Value) and new in mapping:
        new = mapping[new]
    return new


def shown(graph):
    """Ids of values whose memory a result of the graph may show: what is returned, and what views of it are taken of.

    Two such values may not become one, because who writes to one result would change the other.
    """
    found = {id(v) for block in blocks(graph) for v in values_in(block.outputs)}
    found |= {id(v) for state in graph.state for v in values_in((state.new,))}
    for block in reversed(blocks(graph)):
        for node in reversed(block.nodes):
            if may_share(node) and any(id(v) in found for v in node.outputs):
                found.update(map(id, values_in(node.args)))
    return found


def may_share(node):
    """Whether an output may show the memory of an argument: all but ops that are known to make their own."""
    return not is_op(node) or signature_of(node.op).shares
