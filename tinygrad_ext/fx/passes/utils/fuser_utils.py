"""Nodes of a graph put into submodules."""

from operator import getitem as _getitem

from ...graph import Graph
from ...graph_module import GraphModule
from ..tools_common import legalize_graph, topo_sort


def validate_partition(partition):
    """Whether nodes can be one step: nothing that follows from them comes back to them."""
    inside = set(partition)
    todo = [user for node in inside for user in node.users if user not in inside]
    seen = set()
    while todo:
        node = todo.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            todo += node.users
    return True


def fuse_as_graphmodule(gm, nodes, module_name, partition_lookup_table=None, *, always_return_tuple=False):
    """(GraphModule of copies of the nodes, nodes that it takes, nodes whose values it gives).

    Args:
        nodes: of gm, each after those that it uses. module_name: name of the class.
        always_return_tuple: give a single value as a tuple too.

    AssertionError for nodes of another graph, erased ones, and those that something else stands between.
    """
    for node in nodes:
        if node.graph.owning_module is not gm or node._erased:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {type(gm).__name__}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside, graph, made, given = dict.fromkeys(nodes), Graph(), {}, {}

    def here(node):
        if node in inside:
            return made[node]
        if node not in given:
            given[node] = graph.placeholder(node.name, node.type)
            given[node].meta = dict(node.meta)
        return given[node]

    placeholders_end = None
    for node in nodes:
        for used in node.all_input_nodes:
            if used not in inside and used not in given:
                before = (
                    graph.inserting_before() if placeholders_end is None else graph.inserting_after(placeholders_end)
                )
                with before:
                    placeholders_end = here(used)
        made[node] = graph.node_copy(node, here)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    values = tuple([made[node] for node in outputs])
    graph.output(values[0] if len(values) == 1 and not always_return_tuple else values)
    graph.lint()
    return GraphModule(gm, graph, module_name), tuple(given), tuple(outputs)


def insert_subgm(gm, sub_gm, orig_inputs, orig_outputs, insertion_point=None):
    """Let a call of a submodule stand for nodes, which nobody uses any more; returns gm.

    insertion_point: the node behind which the call stands; the last of orig_outputs where it is None.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        insertion_point = next((node for node in reversed(gm.graph.nodes) if node in orig_outputs), None)
        if insertion_point is None:
            raise AssertionError("insert_subgm() needs an insertion_point where nothing is given out")
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, orig_inputs)
    if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    with gm.graph.inserting_before(call.next):
        for i, node in enumerate(orig_outputs):
            node.replace_all_uses_with(gm.graph.call_function(_getitem, (call, i)), propagate_meta=True)
    return gm


def erase_nodes(gm, nodes):
    """Erase nodes of a graph, the last one first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm, partitions, prefix="fused_", always_return_tuple=False):
    """Put each of several groups of nodes into a submodule `<prefix><number>`; returns gm."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    legalize_graph(gm)
    return gm
