"""Passes: changes of a graph that keep its results to the bit.

    >>> from tinygrad_ext.graph import Graph, passes
    >>> graph = Graph.parse('''graph f(%x: Tensor) {
    ...   %1: Tensor = aten::exp(%x)
    ...   %2: Tensor = aten::exp(%x)
    ...   %3: Tensor = aten::tanh(%x)
    ...   %4: Tensor = aten::add.Tensor(%1, %2, 1)
    ...   return %4
    ... }''')
    >>> print(passes.optimize(graph))
    graph f(%x: Tensor) {
      %1: Tensor = aten::exp(%x)
      %4: Tensor = aten::add.Tensor(%1, %1, 1)
      return %4
    }

A pass is an object with `run(graph)`. Plugins add theirs by the hook `tgx_register_passes`.
"""

from operator import is_

from tinygrad_ext.registry import pass_registrar

from .base import Pass, blocks
from .common import CommonSubexpressions
from .constants import Constants
from .dead import DeadCode
from .functional import Functional
from .peepholes import Peepholes
from .rewrite import Rewrite

__all__ = [
    "CommonSubexpressions",
    "Constants",
    "DeadCode",
    "Functional",
    "Pass",
    "Peepholes",
    "Rewrite",
    "optimize",
    "registered",
]


_OWN = (Constants(), CommonSubexpressions(), Peepholes(), DeadCode())


def _parts(graph):
    """What the package's own passes put something else in the place of."""
    parts = [part for block in blocks(graph) for node in block.nodes for part in (node, node.args)]
    return [*parts, *(block.outputs for block in blocks(graph)), *(s.new for s in graph.state)]


def registered():
    """The passes of plugins that are loaded, in the order of their names."""
    return [found.value for _, found in sorted(pass_registrar.passes.items())]


def optimize(graph, passes=None):
    """Run passes over a graph and check it after each that changed it; returns the graph, which is changed.

    Args:
        passes: objects with `run(graph)`; None for those of plugins that are loaded, then the package's own.

    Raises:
        ValueError: the graph has effects.
        GraphError: a pass broke a rule; the message names the pass.
    """
    if passes is None:
        passes = [*registered(), *_OWN]
    if graph.effects:
        raise ValueError(f"optimize: {graph.name} has effects, which say in which order its nodes stand: none may move")
    before = None  # what the graph was made of before a pass, where that is known
    for each in passes:
        before = before or (_parts(graph) if each in _OWN else None)
        each.run(graph)
        graph.executor = None
        after = _parts(graph) if before else None
        unchanged = before and len(after) == len(before) and all(map(is_, before, after))
        before = after
        if unchanged:
            continue
        try:
            graph.check()
        except Exception as error:
            error.args = (f"after the pass {type(each).__name__}: {error}",)
            raise
    return graph
