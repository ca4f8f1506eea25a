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

from tinygrad_ext.registry import pass_registrar

from .base import Pass
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
    for each in passes:
        changed = True
        if each in _OWN:
            changed = each.changes(graph)
        else:
            each.run(graph)
        graph.executor = None
        if not changed:
            continue
        try:
            graph.check()
        except Exception as error:
            error.args = (f"after the pass {type(each).__name__}: {error}",)
            raise
    return graph
