"""Graphs are equal exactly where their texts are."""

import itertools

import pytest

from tinygrad_ext.graph import Graph

BASE = """graph f(%x: Tensor, %n: int) {
  state %w: Tensor = buffer "w"
  %1: Tensor = aten::add.Tensor(%x, 0.0, 1)  # a.py:1 in f
  %2: bool = prim::eq(%n, 1)
  %3: Tensor = prim::If(%2) {
    block() {
      yield %1
    }
    block() {
      %4: Tensor = aten::mul.Tensor(%1, %w)
      yield %4
    }
  }
  %5: Tensor = aten::sum.dim_IntList(%3, [0, 1], False, None)
  return %5, nan
  write "w" = %3
}"""
CHANGES = [
    ("0.0, 1", "-0.0, 1"), ("0.0, 1", "0.0, True"), ("0.0, 1", "0, 1"), ("graph f", "graph g"), ("%n: int", "%m: int"),
    ("%n: int", "%n: float"), ("a.py:1", "a.py:2"), ("[0, 1]", "[0]"), ("[0, 1]", "[0, 2]"), ("mul", "div"),
    ("yield %4", "yield %1"), ("return %5, nan", "return %5, inf"), ("return %5, nan", "return %5"),
    ('write "w" = %3', 'write "w" = %1'), ("buffer", "parameter"), ('"w"', '"v"'), ("%5", "%6"),
    ("sum.dim_IntList(", "sum.dim_IntList@2("), ('  write "w" = %3\n', ""), ("False, None", "False, float32"),
]  # fmt: skip


def changed(old, new):
    text = BASE.replace("%n", "%m") if new == "%m: int" else BASE.replace(old, new)
    return Graph.parse(text)


def test_equal_as_the_texts_are():
    graphs = [Graph.parse(BASE), *[changed(*c) for c in CHANGES]]
    assert len({str(g) for g in graphs}) == len(graphs)
    for a, b in itertools.product(graphs, graphs):
        assert (a == b.copy()) == (str(a) == str(b))


@pytest.mark.parametrize("other", ["text", None, 1])
def test_a_graph_is_equal_to_graphs_alone(other):
    assert Graph.parse(BASE) != other
