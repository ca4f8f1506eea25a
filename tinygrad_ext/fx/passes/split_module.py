"""`split_module`: a GraphModule of several, one for each part of its nodes."""

import operator

from tinygrad_ext.fx.graph import Graph
from tinygrad_ext.fx.graph_module import GraphModule
from tinygrad_ext.fx.node import map_arg

_ENDS = ("placeholder", "output")


def split_module(m, root_m, split_callback):
    """A GraphModule that calls the modules `submod_0`, `submod_1`, ... which the nodes of `m` were divided into.

    Args:
        m: a GraphModule. root_m: the Module that its nodes' paths lead into, None for m itself.
        split_callback: gives the part of a node, anything that can stand in a name; called in the order of the nodes.

    Raises RuntimeError where two parts need each other.
    """
    root = m if root_m is None else root_m
    nodes = [n for n in m.graph.nodes if n.op not in _ENDS]
    part_of = {n: split_callback(n) for n in nodes}
    inside = {}
    for n in nodes:
        inside.setdefault(part_of[n], []).append(n)
    main, values, parts = Graph(), {}, {}
    for n in m.graph.nodes:
        if n.op == "placeholder":
            values[n] = main.node_copy(n)
    for part in _ordered(inside, part_of):
        given = list(dict.fromkeys(u for n in inside[part] for u in n.all_input_nodes if part_of.get(u, n) != part))
        taken = [n for n in inside[part] if any(part_of.get(user) != part for user in n.users)]
        parts[f"submod_{part}"] = GraphModule(root, _graph_of(inside[part], given, taken), f"submod_{part}")
        call = main.call_module(f"submod_{part}", tuple([values[n] for n in given]))
        if len(taken) == 1:
            values[taken[0]] = call
        else:
            values.update((n, main.call_function(operator.getitem, (call, i))) for i, n in enumerate(taken))
    main.output(map_arg(m.graph.output_node().args[0], values.__getitem__))
    made = GraphModule(parts, main, type(m).__name__)
    made.training = m.training
    return made


def _graph_of(nodes, given, taken):
    graph = Graph()
    values = {n: graph.placeholder(n.name) for n in given}
    for n in nodes:
        values[n] = graph.node_copy(n, values.__getitem__)
    graph.output(values[taken[0]] if len(taken) == 1 else tuple([values[n] for n in taken]))
    return graph


def _ordered(inside, part_of):
    """The parts, each behind those that it needs."""
    needs = {p: {part_of[u] for n in ns for u in n.all_input_nodes if u in part_of} - {p} for p, ns in inside.items()}
    done = []
    while len(done) < len(needs):
        ready = [p for p in needs if p not in done and needs[p] <= set(done)]
        if not ready:
            left = ", ".join(str(p) for p in needs if p not in done)
            raise RuntimeError(f"split_module: the parts {left} need each other, so none of them can run first")
        done.append(ready[0])
    return done
