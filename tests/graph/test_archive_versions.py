"""An archive whose ops are older is brought up, one whose ops are newer or not here says what to install."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import graph as tgx_graph
from tinygrad_ext.graph import Graph, Program, versions
from tinygrad_ext.ops.record import Owner
from tinygrad_ext.registry.op_registrar import OpRegistrar
from tinygrad_ext.registry.scope import Scope

TEXT = """\
graph f(%x: Tensor) {
  %1: Tensor = demov::scale(%x, 2.0)  # net.py:4 in f
  %2: Tensor = prim::If(True) {
    block() {
      %3: Tensor = demov::scale(%1, 3.0)
      yield %3
    }
    block() {
      yield %1
    }
  }
  return %2
}"""


@pytest.fixture
def plugin():
    """registered(schema, version=1): an op as a plugin of that version has it, in the place of the one before."""
    scopes = []

    def registered(schema, version=1, distribution="1.0", compose=None):
        while scopes:
            scopes.pop().undo()
        scopes.append(Scope(Owner("tgx-demov", distribution), ["demov"]))
        register = OpRegistrar(scopes[0])
        register(schema, version=version, compose=compose or (lambda self, by, *rest: self * by))
        register.finish()

    yield registered
    while scopes:
        scopes.pop().undo()
    versions.UPGRADERS.clear()


SCALE = "demov::scale(Tensor self, float by) -> Tensor"


def archive():
    file = io.BytesIO()
    tgx_graph.save(Program({"forward": Graph.parse(TEXT)}), file)
    return io.BytesIO(file.getvalue())


def test_version_and_owner_come_from_the_record(plugin):
    plugin(SCALE, version=3)
    found = tgx_graph.load(archive()).methods["forward"]
    assert [(n.version, n.owner) for n in found.walk() if n.op == "demov::scale"] == [(3, "tgx-demov 1.0")] * 2
    assert tgx_graph.info(archive())["owners"] == {"tgx-demov 1.0": "python -m pip install 'tgx-demov==1.0'"}


def test_a_missing_plugin_is_named_with_the_command(plugin):
    plugin(SCALE)
    saved = archive()
    versions_of = tgx_graph.info(saved)["ops"]
    saved.seek(0)
    plugin("demov::other(Tensor self, float by) -> Tensor")
    with pytest.raises(RuntimeError) as error:
        tgx_graph.load(saved)
    told = str(error.value)
    assert told.startswith("load: the file, graphs/forward.txt: demov::scale at net.py:4 in f: no op has the overload")
    assert told.endswith("It came with tgx-demov 1.0: python -m pip install 'tgx-demov==1.0'")
    saved.seek(0)
    assert tgx_graph.info(saved)["ops"] == versions_of  # which needs no plugin


def test_a_newer_op_is_refused_with_the_command(plugin):
    plugin(SCALE, version=2, distribution="2.1")
    saved = archive()
    plugin(SCALE, version=1)
    with pytest.raises(
        RuntimeError, match="was saved with version 2, and tgx-demov 1.0 has 1: python -m pip install"
    ) as error:
        tgx_graph.load(saved)
    assert str(error.value).endswith("python -m pip install --upgrade 'tgx-demov>=2.1'")


def test_an_older_op_is_brought_up_step_by_step(plugin):
    plugin(SCALE)
    saved = archive()
    plugin(
        "demov::scale(Tensor self, float by, float plus) -> Tensor", 3, compose=lambda self, by, plus: self * by + plus
    )
    with pytest.raises(RuntimeError, match="was saved with version 1, tgx-demov 1.0 has 3 and no upgrader"):
        tgx_graph.load(saved)

    @tgx_graph.upgrader("demov::scale", 1)
    def by_was_halved(graph, node):
        node.args, node.version = (node.args[0], node.args[1] * 2), 2

    @tgx_graph.upgrader("demov::scale", 2)
    def plus_was_one(graph, node):
        node.args, node.version = (*node.args, 1.0), 3

    saved.seek(0)
    found = tgx_graph.load(saved)
    assert found(tg.ones(2)).tolist() == [(4 + 1) * 6 + 1] * 2
    assert tgx_graph.load(io.BytesIO(_saved(found)))(tg.ones(1)).tolist() == [31]


def _saved(program):
    file = io.BytesIO()
    tgx_graph.save(program, file)
    return file.getvalue()


def test_an_upgrader_may_put_other_ops_in_the_place_of_one_that_is_gone(plugin):
    plugin(SCALE)
    saved = archive()
    plugin("demov::other(Tensor self, float by) -> Tensor")

    @tgx_graph.upgrader("demov::scale", 1)
    def in_two_steps(graph, node):
        block = versions.block_of(graph, node)
        at = block.nodes.index(node)
        first = graph.make(block, "aten::mul.Tensor", node.args)
        block.nodes.insert(at, block.nodes.pop())
        node.op, node.args = "aten::clone", (first.output, None)

    found = tgx_graph.load(saved)
    assert found(tg.ones(2)).tolist() == [6.0, 6.0]
    assert [n.op for n in found.methods["forward"].nodes] == ["aten::mul.Tensor", "aten::clone", "prim::If"]


def test_a_schema_may_grow_by_defaults_without_a_new_version(plugin):
    plugin(SCALE)
    saved = archive()
    plugin(
        "demov::scale(Tensor self, *, int times=1, float by) -> Tensor",
        compose=lambda self, times, by: self * by * times,
    )
    found = tgx_graph.load(saved)
    assert found.methods["forward"].nodes[0].args[1:] == (1, 2.0) and found(tg.ones(1)).item() == 6.0
    plugin("demov::scale(Tensor self, float by, int times) -> Tensor")
    saved.seek(0)
    with pytest.raises(RuntimeError, match="lacks 'times': it was saved as demov::scale.*without a new version"):
        tgx_graph.load(saved)
    plugin("demov::scale(Tensor self) -> Tensor", compose=lambda self: self * 2)
    saved.seek(0)
    with pytest.raises(RuntimeError, match="has 'by': it was saved as"):
        tgx_graph.load(saved)


def test_an_op_of_the_program_itself_says_so():
    register = OpRegistrar(scope := Scope(Owner("this program")))
    register("demov::own(Tensor self) -> Tensor", compose=lambda self: self + 1)
    register.finish()
    text = "graph f(%x: Tensor) {\n  %1: Tensor = demov::own(%x)\n  return %1\n}"
    saved = _saved(Program({"forward": Graph.parse(text)}))
    assert tgx_graph.load(io.BytesIO(saved))(tg.ones(1)).item() == 2
    scope.undo()
    with pytest.raises(RuntimeError, match="The program that saved it defines it itself: define it before loading"):
        tgx_graph.load(io.BytesIO(saved))


@pytest.mark.parametrize("owner", ["a; rm -rf ~", "--index-url=http://x y", "a' b'", "x" * 200, "a 1.0 2.0", "a $(b)"])
def test_no_file_writes_the_command(owner):
    assert versions.install(owner) == "" and versions.newer(owner) == "update what brings it"


@pytest.mark.parametrize("version", [0, -1, True, "2", 1.5])
def test_a_version_is_a_number_from_one_on(version):
    with pytest.raises(TypeError, match="must be a number from 1 on"):
        OpRegistrar(Scope(Owner("x"), ["demov"]))(SCALE, version=version, compose=lambda self, by: self)
