"""A pass that puts `curves::bend` where a program spells it out: one loop in the place of four, with the same bits."""

from tinygrad_ext.graph import passes

_FUSED = """\
graph fused(%x: Tensor, %y: Tensor) {
  %1: Tensor = curves::bend(%x, %y)
  return %1
}"""


def _spelled_out(product):
    return f"""\
graph pattern(%x: Tensor, %y: Tensor) {{
  %1: Tensor = aten::abs(%y)
  %2: Tensor = aten::neg(%1)
  %3: Tensor = aten::exp(%2)
  %4: Tensor = aten::mul.Tensor({product})
  return %4
}}"""


def _same_bits(operands):
    """Whether both are seen to be float32, or both float64: half types round after each step, and bend once."""
    seen = {getattr(getattr(a, "hint", None), "dtype", None) for a in operands.values()}
    return {str(dtype) for dtype in seen} in ({"torch.float32"}, {"torch.float64"})


class Bends(passes.Pass):
    """x * exp(-|y|), its factors in either order. A step whose result is read elsewhere, as by a derivative, stays."""

    def __init__(self):
        self.ways = [passes.Rewrite(_spelled_out(product), _FUSED, _same_bits) for product in ("%x, %3", "%3, %x")]

    def run(self, graph):
        for way in self.ways:
            way.run(graph)
        return graph
