"""`CSEPass`: what is computed twice from the same is computed once."""

from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node, map_arg
from ...infra.pass_base import PassBase, PassResult

_KEPT = ("placeholder", "output", "get_attr", "call_module")


class CSEPass(PassBase):
    """Lets calls of functions and methods with the same arguments be one; gives a new GraphModule where there were any.

    For graphs of calls that only compute: nothing knows whether one of your own writes somewhere. Calls that draw
    random numbers or that `has_side_effect` stay, and so do those of modules.

    Args:
        banned_ops: functions that stay as well.
    """

    def __init__(self, banned_ops=None):
        self.banned_ops = set(banned_ops or ())

    def call(self, graph_module):
        made, values, known = Graph(tracer_cls=graph_module.graph._tracer_cls), {}, {}
        for node in graph_module.graph.nodes:
            key = None if self._stays(node) else _key(node, values)
            if key is not None and key in known:
                values[node] = known[key]
                continue
            values[node] = made.node_copy(node, values.__getitem__)
            if key is not None:
                known[key] = values[node]
        if len(made.nodes) == len(graph_module.graph.nodes):
            return PassResult(graph_module, False)
        made.set_codegen(graph_module.graph._codegen)
        return PassResult(GraphModule(graph_module, made, type(graph_module).__name__), True)

    def _stays(self, node):
        target = getattr(node.target, "overloadpacket", node.target)
        return node.op in _KEPT or node.is_impure() or target in self.banned_ops or node.target in self.banned_ops


def _key(node, values):
    """What two calls have in common that give the same; None for arguments that nothing can be said of."""
    args, kwargs = map_arg(node.args, values.__getitem__), map_arg(node.kwargs, values.__getitem__)
    key = node.op, node.target, _told(args), _told(dict(kwargs))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _told(a):
    """An argument with its type, for 1 == 1.0 == True."""
    if isinstance(a, Node):
        return a
    if isinstance(a, (tuple, list)):
        return type(a), tuple([_told(x) for x in a])
    if isinstance(a, dict):
        return dict, tuple([(key, _told(x)) for key, x in a.items()])
    if isinstance(a, slice):
        return slice, _told((a.start, a.stop, a.step))
    return type(a), repr(a) if isinstance(a, float) else a
