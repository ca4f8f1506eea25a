"""No archive of graphs makes load crash, hang, run anything, or take memory beyond its own size."""

import io
import json
import random
import tracemalloc

import pytest

import tinygrad_ext as tg
from tests.helpers import hostile_archives as hostile
from tests.helpers import hostile_graphs as lies
from tinygrad_ext import graph as tgx_graph
from tinygrad_ext import jit
from tinygrad_ext.config import memory_stats, reset_peak_memory_stats
from tinygrad_ext.graph import interpret, primitives
from tools.fuzz import graph_archives
from tools.fuzz.case import generator

GOOD = lies.everything()


def changed(name, change):
    """The good archive with another entry of this name; None leaves it out."""
    parts = lies.entries(GOOD)
    new = change(parts.get(name))
    parts = {k: v for k, v in parts.items() if k != name} if new is None else {**parts, name: new}
    return lies.zipped(parts)


def manifest(**fields):
    return changed("manifest.json", lambda data: json.dumps({**json.loads(data), **fields}).encode())


def text(old, new):
    def exchanged(data):
        assert data.count(old.encode()) >= 1
        return data.replace(old.encode(), new.encode(), 1)

    return changed("graphs/forward.txt", exchanged)


def deep(opening, closing, count=100_000):
    return "%1: Tensor = aten::mul.Tensor(%x, " + opening * count + closing * count + ")"


def _safetensors(obj):
    file = io.BytesIO()
    tg.save(obj, file)
    return file.getvalue()


FIRST = "%1: Tensor = aten::mul.Tensor(%x, %w)"
NESTED = "  %q: int = prim::If(True) {\n    block() {\n" * 2000
LIES = {
    "no manifest": (changed("manifest.json", lambda _: None), "manifest.json: it has none"),
    "no weights": (
        changed("weights.safetensors", lambda _: None),
        "the entry 'weights.safetensors' is told by it or is",
    ),
    "no graph": (changed("graphs/forward.txt", lambda _: None), "the entry 'graphs/forward.txt' is told by it or is"),
    "an entry nobody names": (
        changed("extra/more", lambda _: b"x"),
        "the entry 'extra/more' is told by it or is there",
    ),
    "a path": (manifest(extra_files=["../../etc/passwd"]), "an extra file's name is made of letters"),
    "a method that is a path": (manifest(methods={"../forward": {}}), "a method's name is made of letters"),
    "another format": (manifest(format="tinygrad_ext graphs 2"), "this version reads 'tinygrad_ext graphs 1': update"),
    "no format": (manifest(format=3), "it says of no format"),
    "ops that are a list": (manifest(ops=[]), "its 'ops' is no dict"),
    "an op without a version": (manifest(ops={"aten::exp": {}}), "its op 'aten::exp' has no version"),
    "generators that are none": (manifest(generators=["fc.weight"]), "weights.safetensors: TypeError: set_state"),
    "a generator that is not there": (manifest(generators=["x"]), "it has no state of the generator 'x'"),
    "a manifest nested 100,000 deep": (changed("manifest.json", lambda _: b"[" * 100_000), "manifest.json: "),
    "a manifest that is no text": (
        changed("manifest.json", lambda _: b"\xff\xfe"),
        "manifest.json: UnicodeDecodeError",
    ),
    "lists nested 100,000 deep": (text(FIRST, deep("[", "]")), "line 4: expected at most 30 lists within each other"),
    "slices nested 100,000 deep": (text(FIRST, deep("slice(", ")")), "expected at most 30 lists within each other"),
    "types nested 100,000 deep": (text("%x: Tensor", "%x: " + "List[" * 100_000), "at most 30 types within each other"),
    "blocks nested 2,000 deep": (text("  " + FIRST, NESTED), "graph text, line"),
    "a number of 100,000 digits": (text(FIRST, deep("9", "")), "a number of at most 4300 digits"),
    "a value from nowhere": (text(FIRST, FIRST.replace("%w", "%acc")), "expected a value made before; %acc is not"),
    "a type that is not the op's": (text(FIRST, FIRST.replace(" Tensor", " int")), "outputs of types"),
    "a state of another kind": (
        text("%w: Tensor", "%w: int"),
        "the parameter 'fc.weight' is a Tensor, and net.forward wants int",
    ),
    "a constant of another kind": (text("state %w: Tensor", "state %w: Generator"), "graphs/forward.txt: "),
    "a newer op": (text("aten::mul.Tensor(%x, %w)", "aten::mul.Tensor@7(%x, %w)"), "was saved with version 7"),
    "a newer primitive": (text("prim::gt(%n", "prim::gt@2(%n"), "version 2 of it is newer than this tinygrad_ext"),
    "weights that are a list": (
        changed("weights.safetensors", lambda _: _safetensors([1])),
        "it holds no dict of names",
    ),
    "weights of another shape": (
        changed("weights.safetensors", lambda _: _safetensors({"x": 1})),
        "no state of the generator 'default'",
    ),
    "weights that are a pickle": (
        changed("weights.safetensors", lambda _: hostile.pickled({})),
        "weights.safetensors: it",
    ),
    "a number for a weight": (
        changed("weights.safetensors", lambda _: _safetensors({"fc.weight": 1, "default": tg.Generator().get_state()})),
        "the parameter 'fc.weight' is a int, and net.forward wants Tensor",
    ),
    "compressed entries": (hostile.zipped(lies.entries(GOOD), 8), "is compressed, and a small one can hold gigabytes"),
    "an entry that is another": (hostile.edited(GOOD, 1, "header", 0), "the table of contents: its entry"),
    "an entry that goes on": (hostile.edited(GOOD, 1, "size", 2**31), "the table of contents: its entry"),
    "an encrypted entry": (hostile.edited(GOOD, 1, "flags", 1), "is encrypted"),
    "half a zip": (GOOD[: len(GOOD) // 2], "the table of contents: File is not a zip file"),
    "nothing": (b"", "the table of contents: File is not a zip file"),
    "a file of torch.save": (
        hostile.pytorch(hostile.pickled({})),
        "a file of torch.save, which tinygrad_ext.load reads",
    ),
    "a TorchScript archive": (
        hostile.pytorch(b"", **{"constants.pkl": b""}),
        "it is a TorchScript archive, whose code",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_an_archive_that_lies_is_refused_with_file_and_entry(name):
    data, words = LIES[name]
    with pytest.raises(RuntimeError) as error:
        tgx_graph.load(io.BytesIO(data))
    assert str(error.value).startswith("load: the file") and words in str(error.value)
    assert len(str(error.value)) < 2000


@pytest.mark.parametrize("name", LIES)
def test_refusing_takes_little_memory(name):
    data = LIES[name][0]
    reset_peak_memory_stats()
    before = memory_stats()["allocated"]
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError):
            tgx_graph.load(io.BytesIO(data), map_location="meta")
        python = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert memory_stats()["peak"] - before <= len(data) + 1024
    assert python < 200 * len(data) + 2_000_000


def test_nothing_is_run_by_loading(monkeypatch):
    def never(*args):
        raise AssertionError("something of the archive was run")

    monkeypatch.setattr(interpret, "run_block", never)
    monkeypatch.setattr(interpret, "_run_node", never)
    monkeypatch.setattr("builtins.exec", never)
    monkeypatch.setattr("builtins.eval", never)
    table = {name: row._replace(run=never) for name, row in primitives.TABLE.items()}
    monkeypatch.setattr(primitives, "TABLE", table)
    found = tgx_graph.load(io.BytesIO(GOOD))
    assert tgx_graph.info(io.BytesIO(GOOD))["methods"]["forward"]["nodes"] == len(list(found.methods["forward"].walk()))


def test_many_values_blocks_and_types_are_read_in_linear_time():
    """Lists of a line, blocks after each other, and types that are all different: each once looked at for ever."""
    lines = [f"  %a{i}: Tensor = prim::If(True) {{\n    block() {{\n      yield %x\n    }}\n" for i in range(3000)]
    text = "".join(f"{line}    block() {{\n      yield %x\n    }}\n  }}\n" for line in lines)
    constants = ", ".join("[1, [2]]" for _ in range(20_000))
    whole = f"graph f(%x: Tensor) {{\n{text}  %z: List[Any] = prim::list({constants})\n  return %z\n}}"
    graph = tgx_graph.Graph.parse(whole).check()
    assert len(graph.nodes) == 3001 and len(graph.nodes[-1].args) == 20_000


def test_more_values_than_allowed_are_refused_and_can_be_allowed():
    with pytest.raises(RuntimeError, match=r"more than 100 objects.*max_objects=1000"):
        tgx_graph.load(io.BytesIO(GOOD), max_objects=100)
    tgx_graph.load(io.BytesIO(GOOD), max_objects=5000)


def test_mutated_archives_give_whole_programs_or_the_documented_error():
    """A short run of `python -m tools.fuzz --only graph_archives`, whose target raises Fault for anything else."""
    for number in range(100):
        graph_archives.case(generator("graph_archives", 26, number)).run()


def test_the_mutations_reach_behind_the_first_check():
    rng, told = random.Random(3), set()
    for data in lies.mutations(GOOD, rng, 120):
        try:
            tgx_graph.load(io.BytesIO(data))
            told.add("read")
        except RuntimeError as error:
            told.add(str(error).partition("; ")[2].partition(":")[0])
    assert {"read", "the table of contents", "manifest.json", "graphs/forward.txt", "weights.safetensors"} <= told


@pytest.mark.parametrize("n", [0, 3])
def test_a_program_of_lists_runs_from_its_file_by_every_way(n):
    def outcomes(call):
        items = [tg.full((2,), float(k + 1), requires_grad=True) for k in range(2)]
        whole, parts = call(items, {"last": items[1]}, n)
        grads = tg.autograd.grad(whole.sum() + parts[1].sum(), items)
        return [t.tolist() for t in (whole, *parts, *grads)]

    loaded = jit.load(io.BytesIO(lies.listed()))
    graph = tgx_graph.load(io.BytesIO(lies.listed())).methods["forward"]
    expected = outcomes(lies._of_lists)
    assert outcomes(loaded) == outcomes(loaded) == expected
    assert outcomes(lambda *args: interpret.run(graph, args)[0][0]) == expected
