"""A plugin with a fused op and a pass that puts it where a program spells it out.

>>> import tinygrad_ext as tg
>>> from tinygrad_ext import plugins
>>> from tinygrad_ext.graph import Graph, passes
>>> graph = Graph.parse('''graph layer(%x: Tensor, %g: Tensor) {
...   %1: Tensor = aten::sigmoid(%g)  # layer.py:3 in forward
...   %2: Tensor = aten::mul.Tensor(%x, %1)  # layer.py:4 in forward
...   return %2
... }''')
>>> x, g = tg.randn(3), tg.randn(3)
>>> before = graph.execute([x, g])[0][0]
>>> plugins.register("gated", Plugin()).state
'active'
>>> print(passes.optimize(graph))
graph layer(%x: Tensor, %g: Tensor) {
  %2: Tensor = gated::gate(%x, %g)  # layer.py:4 in forward
  return %2
}
>>> graph.execute([x, g])[0][0].equal(before)
True
"""

from tinygrad_ext import hookimpl
from tinygrad_ext.graph import passes


def gate(x, gate):
    """Stands for what a kernel in C would do in one go; as a composite it is planned as one group of tiles."""
    return gate.sigmoid() * x


GATES = passes.Rewrite(
    """\
graph pattern(%x: Tensor, %g: Tensor) {
  %1: Tensor = aten::sigmoid(%g)
  %2: Tensor = aten::mul.Tensor(%x, %1)
  return %2
}""",
    """\
graph fused(%x: Tensor, %g: Tensor) {
  %1: Tensor = gated::gate(%x, %g)
  return %1
}""",
)


class Plugin:  # in a package: the module that the entry point names
    @hookimpl
    def tgx_register_ops(self, register):
        register("gated::gate(Tensor x, Tensor gate) -> Tensor", compose=gate)

    @hookimpl
    def tgx_register_passes(self, register):
        register("gated::gates", GATES)
