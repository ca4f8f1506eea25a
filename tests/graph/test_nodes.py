"""Nodes and Values are classes of Python whose slots compiled code reads by their places."""

import copy
import gc
import pickle
import weakref

import pytest
from tinygrad_ext.graph.nodes import Names, laid_out
from tinygrad_ext.graph.values import Copy, replaced, values_in
from tinygrad_ext.graph.walks import ops_in, read_in, readers, uses, walked

import tinygrad_ext as tg
from tinygrad_ext.graph import Graph, GraphError, interpret, passes
from tinygrad_ext.graph.ir import Block, Node, Value
from tinygrad_ext.graph.types import FLOAT, TENSOR

BRANCH = """\
graph f(%x: Tensor, %c: bool) {
  %1: Tensor = aten::exp(%x)
  %2: Tensor = aten::tanh(%x)
  %3: Tensor = prim::If(%c) {
    block() {
      %4: Tensor = aten::neg(%2)
      %5: Tensor = aten::sin(%1)
      yield %5
    }
    block() {
      yield %x
    }
  }
  return %3
}"""


def test_made_by_compiled_code_they_are_as_made_by_the_classes():
    graph = Graph()
    x = graph.input("x")
    node = graph.make(
        graph.block, "aten::add.Tensor", [x, 2, 1], (FLOAT, TENSOR), ("seen", None), line="here", version=3
    )
    assert type(node) is Node
    assert [type(v) for v in node.outputs] == [Value, Value]
    assert (node.op, node.args, node.blocks, node.line, node.version) == ("aten::add.Tensor", (x, 2, 1), (), "here", 3)
    assert (node.owner, node.seq, node.derives) == ("tinygrad_ext", 0, 0)
    assert [(v.name, v.type, v.node, v.hint) for v in node.outputs] == [
        ("1", FLOAT, node, "seen"),
        ("2", TENSOR, node, None),
    ]
    assert graph.nodes == [node]


def test_names_are_taken_once():
    names = Names()
    assert [names.value(name=n).name for n in ("x", "x", "x", None, "1", None)] == ["x", "x.1", "x.2", "1", "1.1", "2"]
    names.know(Value("3"))
    assert names.value().name == "3.1"


def test_what_they_hold_lives_as_long_as_they_do():
    class Hint:
        pass

    hint = Hint()
    alive, graph = weakref.ref(hint), Graph()
    node = graph.make(graph.block, "aten::exp", (graph.input("x"),), hints=(hint,))
    del hint
    gc.collect()
    assert node.output.hint is alive()
    del graph, node  # a node and its output hold each other
    gc.collect()
    assert alive() is None


def test_a_class_with_other_slots_is_refused():
    class Other:
        __slots__ = ("a", "b")

    class Not:
        __slots__ = ()
        a = 1

    with pytest.raises(ImportError, match="Other has other slots than compiled code knows"):
        laid_out(Other)
    with pytest.raises(ImportError, match="Not has other slots"):
        laid_out(Not)
    assert type(Graph().input("x")) is Value  # and nothing else became the class of values


def test_a_pass_may_leave_lists_in_a_node():
    graph = Graph.parse(BRANCH)
    for node in graph.walk():
        node.args, node.outputs, node.blocks = list(node.args), list(node.outputs), list(node.blocks)
    assert "aten::neg" not in str(passes.DeadCode().run(graph.check()))
    assert str(passes.CommonSubexpressions().run(graph).copy()) == str(graph)


def test_what_is_no_node_is_refused():
    graph = Graph.parse(BRANCH)
    graph.nodes.append("aten::exp")
    for look in (graph.check, graph.copy, lambda: uses(graph), lambda: passes.DeadCode().run(graph)):
        with pytest.raises(TypeError, match="a block of a graph holds Nodes, not a str"):
            look()
    graph.nodes[-1] = Node("aten::exp", graph.inputs[:1])
    graph.nodes[-1].outputs = ("y",)
    with pytest.raises(TypeError, match="gives Values, not a str"):
        graph.copy()


def test_what_walks_find():
    graph = Graph.parse(BRANCH)
    assert [node.op for node in walked(graph.block)] == [node.op for node in graph.walk()]
    assert ops_in(graph.block) == {"aten::exp", "aten::tanh", "prim::If", "aten::neg", "aten::sin"}
    found = {v.name: readers(graph.block).get(id(v)) for v in (*graph.inputs, *(n.output for n in graph.walk()))}
    assert [getattr(n, "op", n) for n in found["x"]] == ["aten::exp", "aten::tanh", None]
    assert found["4"] is None
    assert [n.op for n in found["2"]] == ["aten::neg"]
    branch = graph.nodes[-1].blocks[0]
    assert {v.name for n in branch.nodes for v in n.outputs if id(v) in read_in(branch)} == {"5"}


def test_what_only_dead_nodes_of_a_branch_read_is_dead():
    graph = passes.DeadCode().run(Graph.parse(BRANCH)).check()
    assert [node.op for node in graph.walk()] == ["aten::exp", "prim::If", "aten::sin"]


def test_copies_have_nodes_of_their_own():
    graph = Graph.parse(BRANCH)
    other = graph.copy()
    assert str(other) == str(graph)
    assert not {id(n) for n in graph.walk()} & {id(n) for n in other.walk()}
    assert all(v.node is n for n in other.check().walk() for v in n.outputs)
    for made in (pickle.loads(pickle.dumps(tg.jit.trace(tg.exp, tg.ones(2)).graph)), copy.deepcopy(graph)):
        assert made.check().value().name not in {v.name for n in made.walk() for v in n.outputs}


def test_values_are_found_and_replaced_in_containers():
    a, b = Value("a"), Value("b")
    args = (a, (1, b), [a], slice(b, None, 2), "a")
    assert values_in(args) == [a, b, a, b]
    assert replaced(args, {a: 5})[:3] == (5, (1, b), (5,))
    filled = Copy().fill(Block([a], (), [a, (a, 1)]), Block())
    assert filled.outputs == [filled.inputs[0], (filled.inputs[0], 1)]


@pytest.mark.parametrize(
    "line, what",
    [
        ("%4: Tensor = aten::add.Tensor(%1, %2, None)", "NoneType for argument 'alpha'"),
        ('%4: Tensor = aten::sum.dim_IntList(%1, ["a"], False, None)', "argument 'dim'"),
        ("%4: int = aten::exp(%1)", "outputs of types"),
        ("%4: bool = prim::eq(%n)", "has 1 arguments"),
    ],
)
def test_the_checker_sees_what_is_wrong_behind_what_is_right(line, what):
    """Nodes of the same op and types are looked at once; a wrong one is none of those."""
    text = f"""\
graph f(%x: Tensor, %n: int) {{
  %1: Tensor = aten::add.Tensor(%x, %x, 1)
  %2: Tensor = aten::add.Tensor(%1, %x, 2.5)
  %3: bool = prim::eq(%n, 1)
  %5: bool = prim::eq(%n, 2)
  {line}
  return %2
}}"""
    with pytest.raises(GraphError, match=what):
        Graph.parse(text).check()


NODE = ("args", "blocks", "line", "op", "outputs", "owner", "version", "seq", "derives")
WAYS = {
    "str": str,
    "check": lambda g: g.check(),
    "code": lambda g: g.code,
    "expressions": lambda g: passes.CommonSubexpressions().run(g),
    "plan": lambda g: g.plan(tg.ones(3)),
    "run": lambda g: interpret.run(g, [tg.ones(3)]),
    "traced again": lambda g: tg.graph.capture(lambda x: interpret.run(g, [x]))(tg.ones(3)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*(f"node.{n}" for n in NODE), "value.hint", "value.name", "value.node", "value.type"])
def test_what_somebody_deleted_is_missed_by_name(name, way):
    g = tg.graph.capture(lambda x: (x + 1).exp().sum() * 2)(tg.ones(3))
    node = g.block.nodes[0]
    kind, name = name.split(".")
    delattr(node if kind == "node" else node.outputs[0], name)
    try:
        WAYS[way](g)
    except AttributeError as error:
        assert name in str(error) or "lacks one of its attributes" in str(error)
