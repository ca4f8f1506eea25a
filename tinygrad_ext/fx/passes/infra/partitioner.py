"""`CapabilityBasedPartitioner`: nodes that a backend takes, in as few submodules as the graph allows."""

from operator import getitem as _getitem

from ...node import qualified_name
from ..utils.fuser_utils import fuse_by_partitions

_NO_WORK = {"tinygrad_ext.ops.aten.view", "operator.getitem", "_operator.getitem"}


class Partition:
    """Nodes that go together. Attributes: id; nodes, a dict whose keys are the nodes, in the order of the graph."""

    def __init__(self, id=None, nodes=None, node_orders=None):
        self.id, self.nodes = id, dict.fromkeys(nodes or ())

    def __repr__(self):
        return str(list(self.nodes))

    def add_node(self, node, node_order=None):
        """Put a node in."""
        self.nodes[node] = node_order

    def remove_node(self, node):
        """Take a node out."""
        del self.nodes[node]

    def size(self):
        """How many nodes it has."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Finds partitions of a graph and makes submodules of them.

    Args:
        graph_module: the GraphModule. operator_support: says which nodes may go into a partition.
        allows_single_node_partition: keep partitions in which no two nodes compute something.
        non_compute_ops: paths of functions that compute nothing, besides views and getitem.
        allowed_single_node_partition_ops: paths of functions that are worth a partition alone.
        skip_horizontal_fusion: put only those together that use each other.
    """

    def __init__(
        self,
        graph_module,
        operator_support,
        allows_single_node_partition=False,
        non_compute_ops=None,
        allowed_single_node_partition_ops=None,
        skip_horizontal_fusion=False,
    ):
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self):
        """The Partitions. A node whose values are only taken apart keeps the parts with it."""
        submodules, groups, of = dict(self.graph_module.named_modules()), [], {}
        order = {node: i for i, node in enumerate(self.graph_module.graph.nodes)}
        for node in reversed(self.graph_module.graph.nodes):
            wanted = list(groups)
            if self.operator_support.is_node_supported(submodules, node) and node.op not in ("placeholder", "output"):
                made = {node}
                groups.append(made)
                of[node] = made
                users = [of[user] for user in node.users if user in of]
                wanted = [made, *(g for g in wanted if not self.skip_horizontal_fusion or g in users)]
            elif self.skip_horizontal_fusion:
                continue
            for other in wanted[1:]:
                if _may_merge(wanted[0], other, of):
                    wanted[0] = _merged(wanted[0], other, groups, of)
        _keep_parts(self.graph_module.graph, groups, of)
        groups = [g for g in groups if g and (self.allows_single_node_partition or self._is_worth(g))]
        return [Partition(i, sorted(g, key=order.__getitem__)) for i, g in enumerate(groups)]

    def _is_worth(self, group):
        idle, count = _NO_WORK.union(self.non_compute_ops), 0
        for node in group:
            if node.op == "call_function":
                name = qualified_name(node.target)
                count += (name not in idle) + (name in self.allowed_single_node_partition_ops)
            else:
                count += node.op in ("call_module", "call_method")
        return count > 1

    def fuse_partitions(self, partitions, prefix="fused_"):
        """Make a submodule of each Partition; returns the GraphModule."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions):
        """Take nodes that compute nothing out of partitions where only such ones stand before, or behind them."""
        for partition in partitions:
            idle = {
                node
                for node in partition.nodes
                if node.op == "call_function" and qualified_name(node.target) in self.non_compute_ops
            }
            for near in (lambda node: node.all_input_nodes, lambda node: node.users):
                before = None
                while before != len(partition.nodes):
                    before = len(partition.nodes)
                    for node in [n for n in partition.nodes if n in idle]:
                        if not any(other in partition.nodes for other in near(node)):
                            partition.remove_node(node)

    def partition_and_fuse(self, prefix="fused_"):
        """Find the partitions and make submodules of them; returns the GraphModule."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _may_merge(one, other, of):
    """Whether nothing that follows from two groups comes back to them, where each other group is one step."""
    inside = one | other
    todo, seen = [user for node in inside for user in node.users if user not in inside], set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        together = of.get(node, (node,))
        if node in inside:
            return False
        seen.update(together)
        todo += [user for each in together for user in each.users]
    return True


def _merged(one, other, groups, of):
    """Two groups as one, where the earlier of them stands."""
    place = min(_index(groups, one), _index(groups, other))
    for gone in (one, other):
        del groups[_index(groups, gone)]
    made = one | other
    groups.insert(place, made)
    of.update(dict.fromkeys(made, made))
    return made


def _index(groups, group):
    return next(i for i, g in enumerate(groups) if g is group)


def _keep_parts(graph, groups, of):
    """Put getitem nodes into the group of the node that they take apart, where it has no other users."""
    changed = True
    while changed:
        changed = False
        for node in graph.nodes:
            parts = [user for user in node.users if user.op == "call_function" and user.target is _getitem]
            if len(parts) != len(node.users):
                continue
            for part in parts:
                if of.get(part) is not of.get(node):
                    changed = True
                    if part in of:
                        of.pop(part).discard(part)
                    if node in of:
                        of[node].add(part)
                        of[part] = of[node]
