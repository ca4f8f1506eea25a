"""A program that was saved and loaded is the program: graphs, state, and every bit of what it gives."""

import io
import os
import subprocess
import sys
import zipfile

import pytest
from tinygrad_ext.core.call.interop import storage_of

import tinygrad_ext as tg
from tests.helpers import graphs
from tinygrad_ext import graph as tgx_graph
from tinygrad_ext.graph import Graph, GraphError, Program
from tinygrad_ext.graph.interpret import run
from tinygrad_ext.testing import sweep

SHARED = """\
graph f(%x: Tensor) {
  state %a: Tensor = parameter "net.a"
  state %b: Tensor = buffer "net.row"
  %1: Tensor = aten::add.Tensor(%x, %a, 1)
  %2: Tensor = aten::add.Tensor(%1, %b, 1)  # net.py:3 in f
  return %2
}"""


def everything():
    graph, inputs, state = graphs.everything()
    return Program({"forward": graph}, {s.name: v for s, v in zip(graph.state, state)}), inputs


def shared():
    a = tg.nn.Parameter(tg.arange(6.0).reshape(2, 3))
    return Program(
        {"forward": Graph.parse(SHARED), "again.b": Graph.parse(SHARED)}, {"net.a": a, "net.row": a.detach()[1]}
    )


def kept(program, load=None, **more):
    file = io.BytesIO()
    tgx_graph.save(program, file, **more)
    file.seek(0)
    return tgx_graph.load(file, **(load or {}))


def test_a_program_with_every_construct_comes_back():
    program, inputs = everything()
    found = kept(program)
    assert found.methods == program.methods and set(found.state) == set(program.state)
    for _ in range(2):  # the state is written
        assert graphs.same_bits(found(*inputs), program(*inputs))


def test_memory_order_and_kind_of_state_are_kept():
    program = shared()
    program.state.update(
        columns=tg.ones(3, 2).t(), number=3, text="x", none=None, flag=True, z=tg.ones(2, dtype=tg.complex64)
    )
    found = kept(program).state
    assert type(found["net.a"]) is tg.nn.Parameter and found["net.a"].requires_grad
    assert storage_of(found["net.row"]) is storage_of(found["net.a"])
    assert found["columns"].stride() == (1, 2)
    assert [found[k] for k in ("number", "text", "none", "flag")] == [3, "x", None, True]
    assert all(graphs.same_bits(found[k], program.state[k]) for k in program.state if k != "default")


def test_own_generators_are_kept_and_the_process_has_its_own():
    text = (
        str(graphs.everything()[0])
        .replace('generator "default"', 'generator "mine"')
        .replace('write "default"', 'write "mine"')
    )
    state = {"fc.weight": tg.ones(3), "mine": tg.Generator().manual_seed(9)}
    found = kept(Program({"forward": Graph.parse(text)}, state))
    assert found.state["mine"].get_state().equal(state["mine"].get_state())
    assert found.state["default"] is tg.default_generator


def test_methods_of_several_names_and_notes_are_kept():
    program = shared()
    program.notes = {"forward": {"inputs": ["x", {"y": 1.5}], "n": None}}
    found = kept(program)
    assert list(found.methods) == ["forward", "again.b"] and found.notes == program.notes
    assert found.run("again.b", tg.ones(3)).equal(program(tg.ones(3)))


def test_extra_files():
    wanted = {"vocab/words.txt": "", "raw": ""}
    kept(
        shared(), {"extra_files": wanted}, extra_files={"vocab/words.txt": "ä b", "raw": bytes(range(256)), "more": b""}
    )
    assert wanted == {"vocab/words.txt": "ä b".encode(), "raw": bytes(range(256))}
    with pytest.raises(RuntimeError, match="load: the file has no extra file 'x'; it has a"):
        kept(shared(), {"extra_files": {"x": ""}}, extra_files={"a": b""})


@pytest.mark.parametrize("name", ["", "..", "a/../b", "/a", "a//b", "a\\b", "a\n", "ä" * 200, "a/", "\0"])
def test_names_that_mean_other_places_are_refused(name):
    with pytest.raises(ValueError, match="an extra file's name"):
        kept(shared(), extra_files={name: b""})
    with pytest.raises(ValueError, match="a method's name"):
        kept(Program({name: Graph.parse(SHARED)}, shared().state))


def test_map_location():
    found = kept(everything()[0], {"map_location": "meta"})
    assert found.state["fc.weight"].is_meta
    with pytest.raises(RuntimeError, match="cuda"):
        kept(everything()[0], {"map_location": "cuda"})


def test_a_path_is_replaced_whole_and_weights_can_be_mapped(tmp_path):
    path, program = tmp_path / "net.tgx", shared()
    path.write_bytes(b"old")
    tgx_graph.save(program, path, examples={"forward": [(tg.ones(3),)]})
    assert os.listdir(tmp_path) == ["net.tgx"]
    found = tgx_graph.load(path, mmap=True, verify=True)
    assert found(tg.ones(3)).equal(program(tg.ones(3)))
    with pytest.raises(GraphError):
        tgx_graph.save(Program({"forward": Graph.parse(SHARED.replace("aten::add", "aten::ad"))}, program.state), path)
    tgx_graph.load(path)


def test_entries_are_stored_aligned_and_the_same_each_time():
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        tgx_graph.save(shared(), file, extra_files={"a": "b"})
    assert files[0].getvalue() == files[1].getvalue()
    with zipfile.ZipFile(files[0]) as archive:
        assert archive.testzip() is None
        for entry in archive.infolist():
            head = files[0].getvalue()[entry.header_offset :][:30]
            begin = (
                entry.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            )
            assert entry.compress_type == zipfile.ZIP_STORED and begin % 64 == 0
        assert "forward" in archive.read("manifest.json").decode()
        assert archive.read("graphs/forward.txt").decode() == SHARED
        weights = tg.load(io.BytesIO(archive.read("weights.safetensors")))
        assert list(weights) == ["net.a", "net.row"]


class Forward:
    """A file that can only be written on."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += bytes(data)
        return len(data)

    def flush(self):
        pass


def test_a_stream_that_cannot_go_back_is_enough():
    stream = Forward()
    tgx_graph.save(shared(), stream)
    assert tgx_graph.load(io.BytesIO(stream.data))(tg.ones(3)).equal(shared()(tg.ones(3)))


def test_info_tells_what_is_inside():
    file = io.BytesIO()
    tgx_graph.save(shared(), file, {"a.txt": "abc"}, {"forward": [(tg.ones(3),)] * 2})
    told = tgx_graph.info(io.BytesIO(file.getvalue()))
    assert told["methods"]["forward"] == {"signature": "(x: Tensor) -> 1 value", "nodes": 2, "examples": 2}
    assert told["state"] == {"net.a": "float32[2, 3]", "net.row": "float32[3]"}
    assert told["ops"] == {"aten::add.Tensor": {"version": 1, "owner": "tinygrad_ext"}}
    assert told["extra_files"] == {"a.txt": 3} and told["bytes"] == len(file.getvalue())


# ---- verify


def test_examples_are_replayed_and_their_bits_compared():
    program, inputs = everything()
    before = program.state["fc.weight"].clone()
    again = kept(program, {"verify": True}, examples={"forward": [tuple(inputs), tuple(inputs)]})
    assert program.state["fc.weight"].equal(before) and again.state["fc.weight"].equal(before)


def changed(program, examples, old, new):
    """The error of verifying an archive in which bytes were exchanged."""
    file = io.BytesIO()
    tgx_graph.save(program, file, examples=examples)
    assert file.getvalue().count(old) >= 1
    with pytest.raises(RuntimeError) as error:
        tgx_graph.load(io.BytesIO(file.getvalue().replace(old, new)), verify=True)
    return str(error.value)


def test_one_wrong_bit_is_found():
    examples = {"forward": [(tg.full((3,), 0.5),)]}
    told = changed(shared(), examples, b"aten::add.Tensor(%x, %a, 1)", b"aten::add.Tensor(%x, %a, 2)")
    assert "verify: method 'forward', example 0: the outputs[0]: 5 of 6 elements differ, the first at 1" in told
    assert "5.5 was recorded, got 6.5" in told
    program, inputs = everything()
    told = changed(program, {"forward": [tuple(inputs)]}, b'write "fc.weight" = %1', b'write "fc.weight" = %2')
    assert "the hashes of the state written['fc.weight']" in told


def test_verify_needs_examples_and_numbers():
    with pytest.raises(RuntimeError, match="no examples to verify: save it with examples="):
        kept(shared(), {"verify": True})
    with pytest.raises(ValueError, match="map_location='meta'"):
        kept(shared(), {"verify": True, "map_location": "meta"}, examples={"forward": [(tg.ones(3),)]})


def test_what_cannot_be_saved_is_told():
    with pytest.raises(TypeError, match="argument 'program' must be a Program, not Graph"):
        tgx_graph.save(Graph.parse(SHARED), io.BytesIO())
    with pytest.raises(ValueError, match="examples are given for 'g', which is no method"):
        kept(shared(), examples={"g": [()]})
    with pytest.raises(TypeError, match="an example of 'forward' must be a tuple of inputs, not Tensor"):
        kept(shared(), examples={"forward": [tg.ones(3)]})
    with pytest.raises(TypeError, match=r"state\['thing'\] is a builtins.object"):
        kept(Program({}, {"thing": object()}))
    with pytest.raises(TypeError, match="extra file 'a' must be bytes or str, not int"):
        kept(shared(), extra_files={"a": 1})


def test_a_node_that_could_not_be_captured_is_refused_by_its_line():
    graph = Graph("f")
    graph.make(graph.block, "function::Cube", (graph.input("x"),), line="net.py:7 in forward")
    with pytest.raises(GraphError, match=r"function::Cube that makes %1 is no op.*net\.py:7 in forward"):
        kept(Program({"forward": graph}))


# ---- everything


def test_every_op_comes_back_and_gives_the_same_bits():
    program, given = Program({}), {}
    for i, op in enumerate(sweep.ops()):
        if "unset" in (op.record.tags or "").split() or op.name == "aten::_basic_index_backward":
            continue
        dtypes = sweep.supported(op)
        found = graphs.graph_of_sample(op, sweep.samples(op, "float32" if "float32" in dtypes else dtypes[0])[0])
        if found is not None:
            program.methods[f"m{i}"], given[f"m{i}"] = found
    assert len(given) > 400
    found = kept(program)
    for name, inputs in given.items():
        tg.manual_seed(1)
        wanted = run(program.methods[name], inputs)[0]
        tg.manual_seed(1)
        assert graphs.same_bits(wanted, run(found.methods[name], inputs)[0]), program.methods[name]


def test_another_process_reads_it_without_what_made_it(tmp_path):
    program, inputs = everything()
    tgx_graph.save(program, tmp_path / "a.tgx", examples={"forward": [tuple(inputs)]})
    code = "import sys; from tinygrad_ext import graph; print(graph.load(sys.argv[1], verify=True))"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.tgx"], capture_output=True, text=True, check=True)
    assert done.stdout == "<Program of forward: 2 of state>\n"
