"""What a pass is, and what passes ask of graphs."""

from ..walks import blocks, has_effect, is_op, is_random, may_share, replace, shown, uses

__all__ = ["OwnPass", "Pass", "blocks", "has_effect", "is_op", "is_random", "may_share", "replace", "shown", "uses"]


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
