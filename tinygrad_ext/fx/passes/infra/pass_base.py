"""`PassBase`: a change of a GraphModule with what it asks before and promises afterwards."""

from collections import namedtuple

PassResult = namedtuple("PassResult", "graph_module modified")
PassResult.__doc__ = "What a pass gives. Attributes: graph_module; modified, whether the pass changed anything."


class PassBase:
    """A pass: derive from it and write `call`; `requires` and `ensures` raise where a graph does not fit."""

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    def call(self, graph_module):
        """Change the module; returns a PassResult, or None."""
        raise NotImplementedError(f"{type(self).__name__} does not define call(self, graph_module)")

    def requires(self, graph_module):
        """Called before: raise where the module is not what the pass takes."""

    def ensures(self, graph_module):
        """Called afterwards: raise where the module is not what the pass promises."""
