"""`SubgraphMatcher`: the places of a graph that do what a pattern does."""

from dataclasses import dataclass, field

from ...graph import Graph
from ...node import Node, map_arg
from ...subgraph_rewriter import Matcher, placeholders, returned

__all__ = ["InternalMatch", "SubgraphMatcher", "SubgraphMatcherWithNameNodeMap"]


@dataclass
class InternalMatch:
    """A place.

    Attributes:
        anchors: nodes of the pattern that it was found by. nodes_map: node of the pattern -> what stands for it.
        placeholder_nodes, returning_nodes: what stands for what the pattern takes and gives.
        name_node_map: name that the pattern gives a node -> what stands for it.
    """

    anchors: list
    nodes_map: dict = field(default_factory=dict)
    placeholder_nodes: list = field(default_factory=list)
    returning_nodes: list = field(default_factory=list)
    name_node_map: dict = field(default_factory=dict)


class _Strict(Matcher):
    """A Matcher for which an argument of the pattern stands for an argument alone."""

    def fits(self, p, n):
        if p.op == "placeholder" and not (isinstance(n, Node) and n.op == "placeholder"):
            return False
        return super().fits(p, n)


class SubgraphMatcher:
    """Finds a pattern in graphs.

    Args:
        pattern: a Graph. Its arguments stand for anything, the same at each place; what is computed inside may not be
            used outside, unless the pattern returns it.
        match_output: the pattern's results are what the graph returns. match_placeholder: its arguments are arguments
            of the graph. remove_overlapping_matches: leave places that overlap one found before. ignore_literals:
            numbers and texts may be others.
    """

    def __init__(
        self,
        pattern,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        if not isinstance(pattern, Graph):
            raise TypeError(f"SubgraphMatcher(): argument 'pattern' must be a Graph, not {type(pattern).__name__}")
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users:
                raise AssertionError(f"SubgraphMatcher: nobody uses the pattern's {node}; erase it")
        ends = returned(pattern)
        inner = [n for n in ends if n.op != "placeholder" and len(n.users) == 1] or ends
        self.pattern_anchors = [pattern.output_node()] if match_output else inner

    def match(self, graph, node_name_match=""):
        """A list of InternalMatch, in the order of the graph. node_name_match: part of the name of the first anchor's
        node."""
        found, taken = [], set()
        for node in [graph.output_node()] if self.match_output else graph.nodes:
            if node_name_match not in node.name:
                continue
            match = self._at(graph, node)
            if match is None:
                continue
            inside = {n for p, n in match.nodes_map.items() if p.op not in ("placeholder", "output")}
            if inside & taken and self.remove_overlapping_matches:
                continue
            taken |= inside
            found.append(match)
        return found

    def _at(self, graph, node):
        """The place whose first anchor is a node."""
        kind = _Strict if self.match_placeholder else Matcher
        matcher, (first, *rest) = kind(graph, self.pattern, self.ignore_literals), self.pattern_anchors
        ends = returned(self.pattern)
        if not matcher.fits(first, node) or not all(map(matcher.fits_anywhere, (*rest, *ends))):
            return None
        if not self.match_output and not matcher.is_closed(ends):
            return None
        given = [matcher.map[p] for p in placeholders(self.pattern) if p in matcher.map]
        return InternalMatch(list(self.pattern_anchors), matcher.map, given, [matcher.map[p] for p in ends])


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A SubgraphMatcher for a GraphModule that returns, last, a dict of a name -> value: `name_node_map` of a match
    tells what stands for it."""

    def __init__(self, pattern_gm, *args, **kwargs):
        graph, values = Graph(), {}
        results = graph.graph_copy(pattern_gm.graph, values)
        *plain, names = results if isinstance(results, (tuple, list)) else (results,)
        if not isinstance(names, dict):
            raise ValueError(
                "SubgraphMatcherWithNameNodeMap: the pattern must return a dict of names as its last result"
            )
        graph.output(tuple(plain))
        graph.owning_module = pattern_gm
        self.names = names
        super().__init__(graph, *args, **kwargs)

    def match(self, graph, node_name_match=""):
        found = super().match(graph, node_name_match)
        for match in found:
            match.name_node_map = {name: map_arg(p, match.nodes_map.__getitem__) for name, p in self.names.items()}
        return found
