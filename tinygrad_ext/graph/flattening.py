"""What an Executor does to a graph of its own before it cuts it, so that plans see tensors and numbers.

A Function is opened: its forward half stands among the nodes around it, since nobody asks for its derivative while
the graph runs. A list, tuple or dict that is passed in is taken apart: for each form (which containers, how many parts,
which keys) there is a graph with one input for each part, in which a node puts the container together; while a plan is
made that node is nothing but a list of what stands for the parts.

Rejected: guards for containers in a plan, which would have to take them apart at each call just the same.
"""

from .ir import Node
from .keys import form_of
from .passes.base import blocks, replace, uses
from .passes.dead import DeadCode
from .types import ANY
from .walks import ops_in

_CONTAINERS = {"List", "Tuple", "Dict"}
_READ = {f"prim::{name}" for name in ("unpack", "getitem", "len", "cast", "is", "isnot")}  # what does not hand it on
_UNSAID = 3  # containers in each other that are looked for where the type says Any
FORMS = 64  # that are kept


def without_functions(graph):
    """A copy with the nodes of Functions' forward halves in their place; the graph itself where there are none."""
    if "prim::Function" not in ops_in(graph.block):
        return graph
    graph, mapping = graph.copy(), {}
    for block in blocks(graph):
        nodes = []
        for node in block.nodes:
            if node.op != "prim::Function":
                nodes.append(node)
                continue
            forward = node.blocks[0]
            mapping.update(zip(forward.inputs, node.args[1:]))
            mapping.update(zip(node.outputs, forward.outputs))
            nodes += forward.nodes
        block.nodes[:] = nodes
    replace(graph, mapping)
    DeadCode().run(graph)  # what only the backward halves read
    return graph


def depths_of(graph):
    """For each input how deep containers stand in each other; 0 where the graph does more than look into them, because
    then it matters which ones they are."""
    depths = [_depth(v.type) for v in graph.inputs]
    users = uses(graph) if any(depths) else None
    return [depth and (depth if _is_only_read(v, users) else 0) for v, depth in zip(graph.inputs, depths)]


def _depth(type):
    inner = max(map(_depth, type.args)) if type.args else 0
    if type.word in _CONTAINERS:
        return 1 + max(inner, _UNSAID * (ANY in type.args))
    return inner


def _is_only_read(value, users):
    """Whether neither a container nor one within it goes anywhere as what it is."""
    for node in users.get(id(value), ()):
        if node is None or (node.op.startswith("prim::") and node.op not in _READ):
            return False
        parts = node.outputs if node.op in _READ else ()
        if not all(_is_only_read(part, users) for part in parts if _depth(part.type)):
            return False
    return True


def spread(graph, form):
    """A copy that takes the parts of containers. form: see keys.form_of."""
    graph = graph.copy()
    inputs, nodes = [], []
    for value, inner in zip(graph.inputs, form):
        _take_apart(graph, value, inner, inputs, nodes)
    graph.block.inputs[:], graph.block.nodes[:0] = inputs, nodes
    return graph


def _take_apart(graph, value, form, inputs, nodes):
    if form is None:
        if _depth(value.type):  # None in the place of a list: nothing to take apart, nor when the copy is run
            value.type = ANY
        inputs.append(value)
        return
    word, keys, inner = form
    parts = [graph.value(ANY, name=f"{value.name}.{i}") for i in range(len(inner))]
    for part, below in zip(parts, inner):
        _take_apart(graph, part, below, inputs, nodes)
    value.node = Node(f"prim::{word}", [x for pair in zip(keys, parts) for x in pair] if word == "dict" else parts)
    value.node.outputs = (value,)
    nodes.append(value.node)


class Spread:
    """Runs a graph whose inputs are containers: an Executor for each form that they come in.

    Attributes: made, {form: Executor}, the one made last at the end.
    """

    def __init__(self, graph, depths, executor_of):
        """depths: see depths_of; executor_of: makes an Executor of a graph."""
        self.graph, self.depths, self.executor_of, self.made = graph, depths, executor_of, {}

    def __call__(self, *values):
        found, parts = self.find(values)
        return found.function(*parts)

    def find(self, values):
        """(the Executor for values, what it is called with)."""
        expected = len(self.graph.inputs) + len(self.graph.state)
        if len(values) != expected:
            raise TypeError(f"{self.graph.name}: the graph takes {expected} values, {len(values)} are given")
        form, parts = form_of(values, self.depths)
        found = self.made.get(form)
        if found is None:
            if len(self.made) == FORMS:
                del self.made[next(iter(self.made))]
            found = self.made[form] = self.executor_of(spread(self.graph, form))
        return found, parts

    def explain(self):
        """What each of them says."""
        if not self.made:
            return f"{self.graph.name}: 0 plans made"
        return "\n".join(found.explain() for found in self.made.values())
