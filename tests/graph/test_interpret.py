"""The interpreter gives what eager mode gives, and changes nothing that it was given."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.graph import Graph
from tinygrad_ext.graph.interpret import run

LOOP = """\
graph f(%x: Tensor, %n: int) {
  %c: bool = prim::gt(%n, 3)
  %1: Tensor = prim::If(%c) {
    block() {
      %2: Tensor = aten::exp(%x)
      yield %2
    }
    block() {
      yield %x
    }
  }
  %3: Tensor = prim::Loop(%n, True, %1) {
    block(%i: int, %acc: Tensor) {
      %4: Tensor = aten::add.Tensor(%acc, %i, 2)
      %go: bool = prim::lt(%i, 4)
      yield %go, %4
    }
  }
  return %3
}"""


def test_control_flow():
    graph = Graph.parse(LOOP).check()
    x = tg.tensor([0.0, 1.0])
    assert run(graph, [x, 2])[0][0].tolist() == [2.0, 3.0]
    assert run(graph, [x, 9])[0][0].equal(x.exp() + 0 + 2 + 4 + 6 + 8)


def test_state_is_given_back_and_not_changed():
    graph = Graph.parse("""\
graph f(%x: Tensor) {
  state %m: Tensor = buffer "mean"
  state %g: Generator = generator "default"
  %1: Tensor = aten::lerp.Scalar(%m, %x, 0.5)
  %2: Tensor, %h: Generator = aten::bernoulli(%x, %g)
  %3: Tensor, %k: Generator = aten::bernoulli(%x, %h)
  return %2, %3
  write "mean" = %1
  write "default" = %k
}""").check()
    x, mean = tg.full((100,), 0.5), tg.zeros(100)
    drawn = tg.Generator().manual_seed(3)
    before = drawn.get_state()
    outputs, (new_mean, new_generator) = run(graph, [x], [mean, drawn])
    assert mean.sum() == 0 and new_mean.sum() == 25
    assert drawn.get_state().equal(before)
    again = tg.Generator().manual_seed(3)
    assert [tg.bernoulli(x, generator=again).tolist() for _ in range(2)] == [o.tolist() for o in outputs]
    assert new_generator.get_state().equal(again.get_state())


def test_a_list_of_one_is_unpacked():
    graph = Graph.parse("""\
graph f(%x: List[Tensor]) {
  %1: Tensor = prim::unpack(%x)
  %2: Tensor = aten::exp(%1)
  return %2
}""").check()
    x = tg.ones(2)
    assert run(graph, [[x]])[0][0].equal(x.exp())


@pytest.mark.parametrize("text", ["{0.__class__}", "{0[__x__]}", "{0:{1.__init__}}", "{0!r:{1.__a.b}}"])
def test_a_text_reaches_no_attributes_of_pythons_own(text):
    graph = Graph.parse("""\
graph f(%x: Tensor, %t: str) {
  %1: str = prim::format(%t, %x, %x)
  return %1
}""").check()
    with pytest.raises(AttributeError, match="no access to the attribute"):
        run(graph, [tg.ones(1), text])
    assert run(graph, [tg.ones(2), "__{0.shape}__ {1:}__"])[0] == [f"__{tg.ones(2).shape}__ {tg.ones(2)}__"]
