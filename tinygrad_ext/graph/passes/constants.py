"""Numbers that are known before the graph runs."""

from .. import primitives
from ..ir import Value, values_in
from ..text import write_arg
from .base import OwnPass, blocks, replace

# what looks at something else than numbers and texts, or has a type that its value does not tell
_SKIPPED = {
    "prim::list",
    "prim::tuple",
    "prim::dict",
    "prim::unpack",
    "prim::cast",
    "prim::item",
    "prim::undefined",
    "prim::grad_enabled",
}


class Constants(OwnPass):
    """Works out primitives over constants, and takes the block of an If whose condition is one."""

    def changes(self, graph):
        changed = False
        while True:
            mapping = {}
            for block in blocks(graph):
                made = []
                for node in block.nodes:
                    taken = self._node(node, mapping) if node.op.startswith("prim::") else None
                    changed = changed or taken is not None
                    made += (node,) if taken is None else taken
                block.nodes[:] = made
            if not mapping:
                return changed
            replace(graph, mapping)

    def _node(self, node, mapping):
        """The nodes that take the place of one; None where it stays."""
        if node.op == "prim::If" and type(node.args[0]) is bool:
            taken = node.blocks[0 if node.args[0] else 1]
            mapping.update(zip(node.outputs, taken.outputs))
            return taken.nodes
        row = primitives.TABLE.get(node.op)
        if row is None or row.effect or node.op in _SKIPPED or any(values_in(node.args)) or len(node.outputs) != 1:
            return None
        try:
            made = row.run(*node.args)
            write_arg(made)  # only what a graph can hold
        except Exception:  # it raises when it is run, at the user's line
            return None
        if isinstance(made, (list, tuple, dict, Value)):
            return None
        mapping[node.output] = made
        return []
