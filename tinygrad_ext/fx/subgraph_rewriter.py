"""`replace_pattern`: where a graph does what one function does, let it do what another does."""

import copy
from collections import namedtuple

from tinygrad_ext.nn.module import Module
from tinygrad_ext.registry.op_namespace import OpOverload

from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from .tracer import symbolic_trace

# anchor: the node of the pattern that gives its result; nodes_map: node of the pattern -> node of the graph
Match = namedtuple("Match", "anchor nodes_map")
ReplacedPatterns = namedtuple("ReplacedPatterns", "anchor nodes_map replacements")


def replace_pattern(gm, pattern, replacement):
    """Replace each place of a GraphModule that does what `pattern` does; returns a list of Match.

    Args:
        pattern, replacement: functions or modules of the same arguments, GraphModules or Graphs. An argument of the
            pattern stands for anything, the same at each place; what is computed inside may not be used outside, unless
            it is returned. Places that overlap one replaced before are left. Attributes of a replacement that is a
            module are copied into the GraphModule where it has none of that name.
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(m.anchor, m.nodes_map) for m in found]


def replace_pattern_with_filters(
    gm, pattern, replacement=None, match_filters=None, ignore_literals=False, replacement_callback=None
):
    """`replace_pattern` where all match_filters(match, gm.graph, pattern graph) are true, and for any literals if told;
    returns a list of ReplacedPatterns.

    replacement_callback: function of the same that gives the replacement of one match, in the place of `replacement`.
    """
    if (replacement is None) is (replacement_callback is None):
        raise AssertionError("replace_pattern_with_filters(): give one of replacement and replacement_callback")
    pattern, root = _graph(pattern), replacement
    replacement = None if replacement is None else _graph(replacement)
    matches = [
        m
        for m in _matches(gm.graph, pattern, ignore_literals)
        if all(f(m, gm.graph, pattern) for f in match_filters or ())
    ]
    replaced, new_of = [], {}
    for match in matches:
        by = replacement or _graph(replacement_callback(match, gm.graph, pattern))
        _check_alike(pattern, by)
        made = _replace(gm.graph, pattern, by, match, new_of)
        replaced.append(ReplacedPatterns(match.anchor, match.nodes_map, made))
    if replaced and isinstance(root, Module):
        _bring(gm, root)
    gm.recompile()
    return replaced


def _check_alike(pattern, replacement):
    given, wanted = placeholders(pattern), placeholders(replacement)
    if len(given) != len(wanted):
        raise AssertionError(f"the pattern has {len(given)} arguments, and the replacement {len(wanted)}")


def _bring(gm, root):
    """Copy what nodes ask for of the replacement's attributes; drop modules that nobody asks for any more."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _at(gm, node.target) is not None:
            continue
        found = _at(root, node.target)
        if found is not None and isinstance(found, Module):
            gm.add_submodule(node.target, copy.deepcopy(found))
        elif found is not None and "." not in node.target:
            setattr(gm, node.target, copy.deepcopy(found))
    gm.graph.lint()


def _at(module, path):
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


def _graph(of):
    if isinstance(of, Graph):
        return of
    return of.graph if isinstance(of, GraphModule) else symbolic_trace(of).graph


def placeholders(graph):
    return [n for n in graph.nodes if n.op == "placeholder"]


def returned(graph):
    """The nodes that a graph returns, in order."""
    found = []
    map_arg(graph.output_node().args, found.append)
    return found


# ---- finding -------------------------------------------------------------------------------------------------------


def _matches(graph, pattern, ignore_literals):
    ends, found, taken = returned(pattern), [], set()
    anchor = ends[0]
    for node in graph.nodes:
        match = Matcher(graph, pattern, ignore_literals)
        if not match.fits(anchor, node) or not all(match.fits_anywhere(end) for end in ends[1:]):
            continue
        inside = {n for p, n in match.map.items() if p.op != "placeholder"}
        if inside & taken or not match.is_closed(ends):
            continue
        taken |= inside
        found.append(Match(anchor, match.map))
    return found


class Matcher:
    """Tries to lay a pattern over a graph; `map` says which node stands for which of the pattern."""

    def __init__(self, graph, pattern, ignore_literals):
        self.graph, self.pattern, self.ignore_literals = graph, pattern, ignore_literals
        self.map = {}

    def fits(self, p, n):
        """Whether a node of the pattern may stand for one of the graph; notes it in the map."""
        if p in self.map:
            return self.map[p] is n or (not isinstance(n, Node) and self.map[p] == n)
        if isinstance(n, Node) and n in self.map.values():  # two names of the pattern are two nodes
            return False
        if p.op == "placeholder":
            self.map[p] = n
            return True
        if not isinstance(n, Node) or n.op != p.op or not self._same_target(p, n):
            return False
        before = dict(self.map)
        self.map[p] = n
        if self._same(*map(_arguments, (p, n))):
            return True
        self.map = before
        return False

    def fits_anywhere(self, p):
        return p in self.map or any(self.fits(p, n) for n in self.graph.nodes)

    def _same_target(self, p, n):
        module = self.graph.owning_module
        if p.op == "call_module" and module is not None and self.pattern.owning_module is not None:
            return type(self.pattern.owning_module.get_submodule(p.target)) is type(module.get_submodule(n.target))
        return p.target == n.target

    def _same(self, p, n):
        if isinstance(p, Node):
            return self.fits(p, n)
        if isinstance(p, (tuple, list)) and isinstance(n, (tuple, list)):
            return len(p) == len(n) and all(map(self._same, p, n))
        if isinstance(p, dict) and isinstance(n, dict):
            return p.keys() == n.keys() and all(self._same(p[k], n[k]) for k in p)
        if isinstance(p, slice) and isinstance(n, slice):
            return all(map(self._same, (p.start, p.stop, p.step), (n.start, n.stop, n.step)))
        if self.ignore_literals:  # as PyTorch does, a node may stand there too
            return True
        return not isinstance(n, Node) and type(p) is type(n) and p == n

    def is_closed(self, ends):
        """Whether nobody outside uses what is computed inside and not returned."""
        inside = {n for n in self.map.values() if isinstance(n, Node)}
        kept = {self.map[end] for end in ends}
        parts = [n for p, n in self.map.items() if p.op != "placeholder" and n not in kept]
        return all(user in inside for n in parts for user in n.users)


def _arguments(node):
    """(args, kwargs) of a node; of an op all that its schema names, with the defaults, however they were passed."""
    if not isinstance(node.target, OpOverload):
        return node.args, node.kwargs
    names = {a.name: a.default for a in node.target.candidates[0].schema.args}
    given = {**names, **dict(zip(names, node.args)), **node.kwargs}
    return (), {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}


# ---- replacing -----------------------------------------------------------------------------------------------------


def _replace(graph, pattern, replacement, match, new_of):
    """Put the replacement in the place of a match; returns its nodes. new_of: node replaced -> what stands for it."""
    latest = lambda n: new_of.get(n, n) if isinstance(n, Node) else n
    values = {r: latest(match.nodes_map.get(p)) for p, r in zip(placeholders(pattern), placeholders(replacement))}
    inside = [n for p, n in match.nodes_map.items() if p.op != "placeholder"]
    ends = [match.nodes_map[end] for end in returned(pattern)]
    order = {n: i for i, n in enumerate(graph.nodes)}
    users = [user for end in ends for user in end.users]
    point = min(users, key=order.__getitem__) if users else max(ends, key=order.__getitem__).next
    made = []
    with graph.inserting_before(point):
        for node in replacement.nodes:
            if node.op not in ("placeholder", "output"):
                values[node] = graph.node_copy(node, values.__getitem__)
                made.append(values[node])
    for old, new in zip(returned(pattern), returned(replacement)):
        if old.op != "placeholder":
            match.nodes_map[old].replace_all_uses_with(values[new])
            new_of[match.nodes_map[old]] = values[new]
    for node in sorted(inside, key=order.__getitem__, reverse=True):
        if not node.users:
            graph.erase_node(node)
    return made
