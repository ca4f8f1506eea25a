"""Effects stand only in graphs that say so; in those they happen in order, to what the values name."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.graph import Graph, GraphError
from tinygrad_ext.graph.interpret import run

TEXT = """\
graph f(%x: Tensor, %items: List[int]) effects {
  %1: Tensor = aten::select.int(%x, 0, 1)
  %2: Tensor = aten::add_.Tensor(%1, 5, 2)
  prim::list.append(%items, 3)
  %3: int = prim::len(%items)
  return %x, %3
}"""


def test_effects_reach_what_is_named():
    graph = Graph.parse(TEXT).check()
    assert str(graph) == TEXT and graph.effects
    x, items = tg.zeros(2), [1]
    outputs, _ = run(graph, [x, items])
    assert outputs[0] is x and x.tolist() == [0.0, 10.0] and items == [1, 3] and outputs[1] == 2


@pytest.mark.parametrize("line", ["%2: Tensor = aten::add_", "prim::list.append"])
def test_a_graph_without_effects_has_none(line):
    lines = [part for part in TEXT.replace(" effects", "").split("\n") if line in part or "add_" not in part]
    text = "\n".join(part for part in lines if line in part or "append" not in part)
    with pytest.raises(GraphError) as error:
        Graph.parse(text).check()
    assert "allowed only in a graph that says 'effects'" in str(error.value)


FUNCTION = """\
graph f(%x: Tensor) {
  %y: Tensor = prim::Function("F", %x) {
    block(%a: Tensor) {
      %1: Tensor = aten::mul.Tensor(%a, %a)
      yield %1, %a
    }
    block(%grad: Tensor, %kept: Tensor) {
      %2: Tensor = aten::mul.Tensor(%kept, 7)
      %3: Tensor = aten::mul.Tensor(%grad, %2)
      yield %3
    }
  }
  return %y
}"""


def test_the_derivative_of_a_function_is_its_backward_block():
    graph = Graph.parse(FUNCTION).check()
    x = tg.tensor([3.0], requires_grad=True)
    (y,), _ = run(graph, [x])
    (first,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tg.autograd.grad(first.sum(), x)
    assert (y.item(), first.item(), second.item()) == (9.0, 21.0, 7.0)


def test_a_graph_reads_no_attributes_of_pythons_own():
    graph = Graph.parse("""\
graph f(%x: Any) {
  %1: Any = prim::getattr(%x, "__class__")
  return %1
}""").check()
    with pytest.raises(AttributeError):
        run(graph, [1])
