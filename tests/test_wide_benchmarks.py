"""The wide benchmark: its rows, boxes of time, children that stop, runs that go on, comparisons of two files."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tinygrad_ext as tg
from benchmarks import wide, wide_report, wide_run
from benchmarks.conv_shapes import SHAPES, title
from benchmarks.libraries import Library
from benchmarks.wide import Spec
from benchmarks.workloads import WORKLOADS

ROOT = Path(__file__).parent.parent
OURS = Library("tinygrad_ext", tg)
INFO = {"cpu": "c", "blas": None, "loops": "avx2", "threads": 1, "load": 0.1, "python": "3", "versions": {}}


@pytest.fixture(scope="module")
def rows():
    return list(wide.specs())


# ---- what is timed --------------------------------------------------------------------------------------------------


def test_every_row_has_a_name_of_its_own_and_every_axis_is_there(rows):
    assert len({s.name for s in rows}) == len(rows)
    exp = [s for s in rows if s.what == "aten::exp"]
    assert {s.size for s in exp} == set(wide.SIZES) and {s.layout for s in exp} == set(wide.LAYOUTS)
    assert {"float32", "float64", "bfloat16"} <= {s.dtype for s in exp}
    assert {s.way for s in exp} == {wide.FORWARD, wide.BOTH} and {s.family for s in exp} == {"elementary"}


def test_convolutions_differ_and_each_comes_forward_and_backward_in_two_batches(rows):
    assert len(SHAPES) >= 133 and len({title(s) for s in SHAPES}) == len(SHAPES)
    assert sum(s.kind == "conv" for s in rows) == 4 * len(SHAPES)
    assert all(s.input[0] % s.groups == 0 == s.out % s.groups for s in SHAPES)


@pytest.mark.parametrize("layout", wide.LAYOUTS)
def test_a_layout_keeps_shape_and_gives_what_its_name_says(layout):
    t = wide.LAYOUTS[layout](tg.arange(6.0).reshape(2, 3))
    assert tuple(t.shape) == (2, 3)
    strides = {"contiguous": (3, 1), "transposed": (1, 2), "broadcast": (0, 1), "strided": (6, 2)}
    assert t.stride() == strides[layout]


@pytest.mark.parametrize("way", (wide.FORWARD, wide.BOTH))
@pytest.mark.parametrize("name, dtype", [("aten::mul.Tensor", "float32"), ("aten::cat", "float64")])
def test_an_op_can_be_called_in_every_size_and_layout(name, dtype, way):
    for size in ("8", "10k"):
        for layout in wide.LAYOUTS:
            wide.build(Spec("op", "f", name, size, dtype, layout, way), OURS)()


def test_both_libraries_get_the_same_values_in_the_same_layout():
    torch = pytest.importorskip("torch")
    spec = Spec("op", "f", "aten::add.Tensor", "10k", "float32", "transposed", wide.FORWARD)
    ours, theirs = (wide.build(spec, Library(m.__name__, m))() for m in (tg, torch))
    assert ours.stride() == theirs.stride() and ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("shape", [s for s in SHAPES if s.net in ("LeNet", "HiFi-GAN", "ShuffleNet")], ids=title)
def test_a_convolution_runs_forward_and_backward(shape):
    x, w = wide.build(Spec("conv", "c", title(shape), "batch 1", way=wide.BOTH), OURS)()
    assert tuple(x.shape) == (1, *shape.input) and w.shape[-1] == shape.kernel


@pytest.mark.parametrize("name", [n for n in WORKLOADS if "ResNet" not in n])
def test_a_workload_runs(name):
    wide.build(Spec("workload", "workloads", name), OURS)()


def test_what_pytorch_keeps_among_layers_is_found_and_what_it_lacks_is_refused():
    torch = Library("torch", pytest.importorskip("torch"))
    wide.build(Spec("op", "f", "aten::elu", "8", "float32", "contiguous", wide.FORWARD), torch)()
    with pytest.raises(LookupError, match="no such function"):
        wide.build(Spec("op", "f", "aten::mul_conj", "8", "float32", "contiguous", wide.FORWARD), torch)


def test_a_row_without_a_gradient_is_refused():
    with pytest.raises(LookupError, match="no gradient"):
        wide.build(Spec("op", "f", "aten::eq.Tensor", "8", "float32", "contiguous", wide.BOTH), OURS)


def test_rows_are_chosen_by_pattern_sample_and_shard(rows):
    found = wide_run.chosen(rows, "elementary exp 8")
    assert found and all("exp 8" in s.name for s in found)
    some = wide_run.chosen(rows, sample=100)
    assert len(some) == 100 and some == wide_run.chosen(rows, sample=100)
    parts = [wide_run.chosen(some, shard=(k, 3)) for k in (1, 2, 3)]
    assert sorted(s.name for part in parts for s in part) == sorted(s.name for s in some)


# ---- timing ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def spin(monkeypatch):
    """`spin(n, library)` is a call of n microseconds on a clock that nothing else moves; `spin.count` counts them."""
    now = [0.0]
    monkeypatch.setattr(wide_run, "clock", lambda: now[0])

    def make(micros):
        def call():
            make.count += 1
            now[0] += 1e-6 * (micros if not callable(micros) else micros())

        return call

    make.count, make.now = 0, now
    return make


def test_a_call_longer_than_the_box_is_made_once(spin):
    assert wide_run.timed({"a": spin(50_000), "b": spin(90_000)}, 0.03, 7) == pytest.approx({"a": 0.05, "b": 0.09})
    assert spin.count == 2


@pytest.mark.parametrize("micros", (0.1, 3, 500, 9000))
def test_a_row_keeps_to_its_box(spin, micros):
    times = wide_run.timed({"a": spin(micros), "b": spin(2 * micros)}, 0.03, 7)
    assert times["b"] / times["a"] == pytest.approx(2)
    assert spin.now[0] < 3 * 0.03


def test_a_suspicious_row_is_timed_again_before_it_is_believed(spin, monkeypatch):
    disturbed = spin(lambda: 20 if spin.now[0] < 0.03 else 10)
    calls = {"tinygrad_ext": disturbed, "torch": spin(15)}
    monkeypatch.setattr(wide_run.wide, "build", lambda spec, lib: calls[lib.name])
    row = wide_run.measured(Spec("op", "f", "x"), [OURS, Library("torch", None)], 0.03)
    assert len(row["tries"]) == 2 and row["tries"][0] > 1.05 and row["ratio"] == pytest.approx(10 / 15)


def test_what_one_library_refuses_is_told_and_what_both_refuse_is_left_out(monkeypatch):
    def build(spec, lib):
        if lib.name in spec.what:
            raise ValueError("not this\nat all")
        return lambda: None

    monkeypatch.setattr(wide_run.wide, "build", build)
    libraries = [OURS, Library("torch", None)]
    row = wide_run.measured(Spec("op", "f", "tinygrad_ext"), libraries, 0.001)
    assert row["missing"] == "ValueError: not this"
    row = wide_run.measured(Spec("op", "f", "torch"), libraries, 0.001)
    assert row["skipped"] == "ValueError: not this" and row["ratio"] is None and row["values"]
    row = wide_run.measured(Spec("op", "f", "torch tinygrad_ext"), libraries, 0.001)
    assert row["left out"] and not row["missing"]


def _serve(pipe, threads, seconds):
    """A child that hangs, dies or answers, as the row's name says."""
    pipe.send([])
    while (spec := pipe.recv()) is not None:
        if spec.what == "hang":
            time.sleep(600)
        if spec.what == "die":
            os._exit(3)
        pipe.send({"name": spec.name, "group": spec.family, "size": "", "values": {"tinygrad_ext": 1e-6}, "ratio": 0.5})


def test_a_row_that_hangs_or_dies_costs_itself_alone():
    child = wide_run.Child(1, 0.01, stop=3, serve=_serve)
    rows, whole = wide_run.run([Spec("op", "f", n) for n in ("a", "die", "b", "hang", "c")], child)
    assert whole and [r.get("stopped", "") for r in rows] == [
        "",
        "the process died (3)",
        "",
        "took longer than 3 seconds",
        "",
    ]


class Asked:
    """Instead of a child: notes what it was asked, and how long a call took."""

    def __init__(self, took=1e-6):
        self.names, self.took = [], took

    def measure(self, spec):
        self.names.append(spec.name)
        return {"name": spec.name, "group": "f", "size": spec.size, "values": {"torch": self.took}, "ratio": 1.0}

    def close(self):
        pass


def test_an_interrupted_run_goes_on_where_it_ended(tmp_path):
    part, specs = tmp_path / "figures.json.part", [Spec("op", "f", n) for n in "abc"]
    wide_run.run(specs[:2], Asked(), part)
    part.write_text(part.read_text() + '{"name": "c", "cut')
    asked = Asked()
    rows, whole = wide_run.run(specs, asked, part)
    assert asked.names == ["c"] and whole and [r["name"] for r in rows] == ["a", "b", "c"]
    again = Asked()
    wide_run.run(specs, again, part)
    assert again.names == []


def test_a_run_ends_after_its_minutes(tmp_path):
    rows, whole = wide_run.run([Spec("op", "f", "a")] * 3, Asked(), minutes=1e-9)
    assert (rows, whole) == ([], False)


def test_what_is_slow_when_small_is_not_tried_large():
    asked = Asked(took=0.05)
    specs = [Spec("op", "f", "x", size) for size in ("8", "10k", "1M")]
    rows, _ = wide_run.run(specs, asked)
    assert asked.names == ["x 8", "x 10k"] and rows[2]["left out"]


# ---- reports --------------------------------------------------------------------------------------------------------


def row(name, ratio, ours=1e-6, **more):
    values = {"tinygrad_ext": ours, "torch": ours / ratio} if ratio else {"tinygrad_ext": ours}
    return {"name": name, "group": "f", "size": "8", "values": values, "ratio": ratio, "missing": "", **more}


def test_the_summary_has_means_by_family_and_what_is_above():
    lines = wide_report.summary([row("a", 0.5), row("b", 2.0), row("c", None, missing="no such op")], INFO)
    text = "\n".join(lines)
    assert any(line.split() == ["f", "2", "1.00", "1", "2.00"] for line in lines)
    assert "f: b" in text and "f: a" not in text and "c: no such op" in text
    assert lines[-1] == "1 of 2 rows above 1.05, geometric mean 1.000; 0 left out"


def test_a_comparison_shows_what_changed_by_more_than_the_threshold():
    one = {"info": INFO, "rows": [row("a", 1.0), row("b", 1.0), row("c", None, 1e-6), row("gone", 1.0)]}
    two = {"info": {**INFO, "cpu": "d"}, "rows": [row("a", 1.1), row("b", 2.0), row("c", None, 4e-6), row("new", 1.0)]}
    text = "\n".join(wide_report.compared(one, two, 0.15))
    assert "cpu: c before, d after" in text
    assert "1.000     2.000    +100%  f: b" in text and "1 µs      4 µs    +300%  f: c" in text
    assert "f: a" not in text
    assert "2 rows changed by more than 15%, 1 did not" in text
    assert "only before: 1, such as f: gone" in text and "only after: 1, such as f: new" in text


def test_what_halved_is_shown_as_what_doubled():
    one, two = ({"info": INFO, "rows": [row("a", r)]} for r in (1.0, 0.5))
    assert "-50%" in "\n".join(wide_report.compared(one, two, 0.6))


@pytest.mark.slow
def test_the_command_measures_writes_and_compares(tmp_path):
    beside = importlib.util.find_spec("torch") is not None  # without it times are written, and no ratios

    def run(*words):
        command = [sys.executable, "-m", "benchmarks", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    path = str(tmp_path / "figures.json")
    said = run("--wide", "--only", "elementary exp 8 float32 contiguous", "--seconds", "0.002", "--json", path)
    assert ("of 2 rows above 1.05" in said) == beside
    data = json.loads(Path(path).read_text())
    assert data["whole"] and data["info"]["cpu"]
    assert [r["name"] for r in data["rows"]] == ["exp 8 float32 contiguous fwd", "exp 8 float32 contiguous fwd+bwd"]
    assert os.listdir(tmp_path) == ["figures.json"]
    assert "0 rows changed by more than 15%" in run("--compare", path, path)
