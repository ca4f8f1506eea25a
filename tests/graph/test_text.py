"""A graph prints to text that reads back to the same graph, and text that is none says where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_ext.graph import Graph, GraphError

TEXT = """\
graph f(%x: Tensor, %n: int) {
  state %w: Tensor = parameter "fc.weight"
  state %g: Generator = generator "default"
  %1: Tensor = aten::mul.Tensor(%x, %w)  # a.py:3 in f
  %2: Tensor = aten::sum.dim_IntList(%1, [0, -1], False, float64)
  %c: bool = prim::gt(%n, 3)
  %3: Tensor = prim::If(%c) {  # a.py:4 in f
    block() {
      %4: Tensor = aten::exp(%2)
      yield %4
    }
    block() {
      yield %2
    }
  }
  %5: Tensor = prim::Loop(%n, True, %3) {
    block(%i: int, %acc: Tensor) {
      %6: Tensor = aten::add.Tensor(%acc, -1.5e-05, 1)
      yield True, %6
    }
  }
  %7: Tensor, %g2: Generator = aten::bernoulli(%x, %g)
  %8: Tensor = demo::roll@2(%7, "\\"q\\" #", [slice(None, %n, 1), ..., complex(0.0, inf)])  ! demo 1.0  # b.py:1
  return %5, [%8, None]
  write "fc.weight" = %1
  write "default" = %g2
}"""


def test_text_is_read_back():
    graph = Graph.parse(TEXT)
    assert str(graph) == TEXT
    assert Graph.parse(str(graph)) == graph


def test_parts_of_what_was_read():
    graph = Graph.parse(TEXT)
    assert [v.name for v in graph.inputs] == ["x", "n"]
    assert [(s.name, s.kind, s.written) for s in graph.state] == [
        ("fc.weight", "parameter", True),
        ("default", "generator", True),
    ]
    last = graph.nodes[-1]
    assert (last.op, last.version, last.owner, last.line) == ("demo::roll", 2, "demo 1.0", "b.py:1")
    assert last.values() == [graph.nodes[-2].outputs[0], graph.inputs[1]]
    assert len(list(graph.walk())) == 9


def test_a_new_value_takes_no_name_that_was_read():
    graph = Graph.parse(TEXT)
    assert graph.value().name not in TEXT.replace("%", "").split()


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("%x, %w)", "%x, %y)", "line 4: expected a value made before; %y is not"),
        ("%2: Tensor =", "%1: Tensor =", "%1 is made twice"),
        ("%n: int)", "%n: List[int, int])", "List takes 1 type in brackets"),
        ("float64", "float65", "line 5: expected an argument"),
        ('write "default"', 'write "other"', "the name of a state before 'other'"),
        ("\n}", "", "the graph has no end '}'"),
        ("  return %5, [%8, None]", "  yield %5", "expected 'return'"),
        ("graph f(", "f(", "expected 'graph name('"),
    ],
)
def test_text_that_is_none_says_where(old, new, told):
    assert TEXT.count(old) >= 1
    with pytest.raises(ValueError) as error:
        Graph.parse(TEXT.replace(old, new, 1) if old != "\n}" else TEXT.removesuffix(old))
    assert told in str(error.value)


@given(st.integers(0, len(TEXT) - 1), st.integers(0, 12), st.text(' %:=()[]{}",.@#!1aInf\n', max_size=4))
def test_text_that_was_tampered_with_is_refused_or_stands_for_a_graph(at, length, new):
    try:
        graph = Graph.parse(TEXT[:at] + new + TEXT[at + length :])
    except ValueError:
        return
    assert Graph.parse(str(graph)) == graph


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("aten::exp(%2)", "aten::exq(%2)", "aten::exq that makes %4 is no op"),
        ("aten::exp(%2)", "aten::exp(%2, 1)", "has 2 arguments; the schema aten::exp(Tensor self) -> Tensor has 1"),
        ("aten::exp(%2)", "aten::exp(%n)", "has int for argument 'self', which is Tensor"),
        ("%4: Tensor", "%4: int", "outputs of types (int), but the op gives (Tensor)"),
        ("prim::If(%c)", "prim::If(%n)", "prim::If that makes %3 takes one bool and two blocks (a.py:4 in f)"),
        ("yield %2", "yield %c", "yields bool for %3, which is Tensor"),
        ("yield True, %6", "yield %6", "does not yield a bool first"),
        ("prim::Loop(%n, True, %3)", "prim::Loop(%n, True)", "are not the number of the turn and what is carried"),
        ("prim::gt(%n, 3)", "prim::gt(%n)", "has 1 arguments; it takes 2"),
        ("prim::gt(%n, 3)", "prim::greater(%n, 3)", "is no primitive"),
        ('write "fc.weight" = %1', 'write "fc.weight" = %6', "is made in the outermost block"),
    ],
)
def test_the_checker_names_the_broken_rule(old, new, told):
    text = "\n".join(line for line in TEXT.split("\n") if "demo::roll" not in line).replace(", [%8, None]", "")
    Graph.parse(text).check()
    assert text.count(old) == 1
    with pytest.raises((GraphError, ValueError)) as error:
        Graph.parse(text.replace(old, new)).check()
    assert told in str(error.value)
