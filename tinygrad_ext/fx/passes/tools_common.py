"""What a node calls, and graphs put in order."""

import heapq

from ..graph import Graph
from ..node import qualified_name

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules, node):
    """What a node calls as text: the path of a function, the path of a module's class, the name of a method.

    submodules: dict of a module's `named_modules()`. AssertionError for a node that calls nothing.
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_module":
        if not isinstance(node.target, str):
            raise AssertionError(f"Expected a path as the target of call_module, got {node.target!r}")
        cls = type(submodules[node.target])
        return f"{cls.__module__}.{cls.__qualname__}"
    return qualified_name(node.target) if node.op == "call_function" else node.target


def topo_sort(nodes):
    """Nodes in an order in which each comes after those that it uses, else as they are. AssertionError for a circle."""
    place = {node: i for i, node in enumerate(nodes)}
    waits = {node: sum(used in place for used in node.all_input_nodes) for node in nodes}
    ready = [place[node] for node in nodes if not waits[node]]
    heapq.heapify(ready)
    found = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        found.append(node)
        for user in node.users:
            if user in waits:
                waits[user] -= 1
                if not waits[user]:
                    heapq.heappush(ready, place[user])
    if len(found) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return found


def legalize_graph(gm):
    """Put the nodes of a GraphModule in an order in which each comes after those that it uses; returns the module.

    RuntimeError where they use each other in a circle.
    """
    nodes = list(gm.graph.nodes)
    nodes.sort(key=lambda node: (node.op == "output", node.op != "placeholder"))
    try:
        ordered = topo_sort(nodes)
    except AssertionError:
        raise RuntimeError("the graph has a circle: nodes that use each other have no order") from None
    made, values = Graph(tracer_cls=gm.graph._tracer_cls), {}
    for node in ordered:
        values[node] = made.node_copy(node, values.__getitem__)
    made.set_codegen(gm.graph._codegen)
    gm.graph = made
    return gm


stable_topological_sort = legalize_graph
