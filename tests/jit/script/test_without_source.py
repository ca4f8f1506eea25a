"""A scripted program runs from its archive in a process that has neither its source nor its classes."""

import pickle
import subprocess
import sys
from typing import NamedTuple

import pytest

import tinygrad_ext as tg
from tests.helpers import script_programs as table
from tinygrad_ext import jit
from tinygrad_ext.graph.archive import save
from tinygrad_ext.graph.program import Program


class Tally:
    def __init__(self, step: int):
        self.step = step
        self.counts: dict[str, int] = {}

    def add(self, word: str):
        self.counts[word] = self.counts.get(word, 0) + self.step


class Result(NamedTuple):
    total: int
    longest: str


class Cube(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 1000 * x


@jit.script
def count(words: list[str], step: int):
    tally, longest = Tally(step), ""
    for word in words:
        if word == "stop":
            break
        tally.add(word)
        if len(word) > len(longest):
            longest = word
    if len(tally.counts) == 0:
        raise ValueError("no words")
    return Result(sum(tally.counts.values()), longest), tally.counts


@jit.script
def cubes(x, n: int):
    while n > 0:
        if n % 2 == 0:
            x = Cube.apply(x)
        else:
            x = x + 1
        n -= 1
    return x


CODE = """
import sys
import pytest

import tinygrad_ext as tg
from tinygrad_ext.graph.archive import load
program = load(sys.argv[1])
result, counts = program.run("count", ["a", "bb", "a", "stop", "ccc"], 2)
assert (result.total, result.longest) == (6, "bb") and counts == {"a": 4, "bb": 2}
try:
    program.run("count", ["stop"], 1)
    raise SystemExit("no error")
except ValueError as error:
    assert str(error) == "ValueError: no words"
x = tg.ones(1, requires_grad=True)
y = program.run("cubes", x, 4)
y.sum().backward()
assert y.item() == 9.0 and x.grad.item() == 1000 * 1 * 1000 * 2
assert program.run("cubes", x, 0) is x and program.run("cubes", x, 1).item() == 2.0
"""


def test_from_an_archive_alone(tmp_path):
    path = tmp_path / "program.tgx"
    save(Program({"count": count.graph, "cubes": cubes.graph}), path)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


class Model(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = tg.nn.ModuleList([tg.nn.Linear(2, 2), tg.nn.BatchNorm1d(2)])
        self.calls = 0

    def forward(self, x, times: int):
        self.calls += 1
        for _ in range(times):
            for layer in self.layers:
                x = layer(x)
            if float(x.abs().max()) > 100.0:
                break
        return x

    @jit.export
    def count(self) -> int:
        return self.calls


def test_modules_with_state_and_methods(tmp_path):
    model = jit.script(Model())
    x = tg.randn(3, 2)
    model(x, 1)
    jit.save(model, tmp_path / "model.tgx")
    again = jit.load(tmp_path / "model.tgx")
    for times in (0, 1, 5):
        assert again(x, times).equal(model(x, times))
    assert again.count() == model.count() == 4
    assert list(again.state_dict()) and all(
        again.state_dict()[name].equal(value) for name, value in model.state_dict().items()
    )


def test_functions_are_saved_too(tmp_path):
    cubes.save(tmp_path / "cubes.tgx")
    assert jit.load(tmp_path / "cubes.tgx")(tg.ones(1), 4).item() == 9.0


def test_what_calls_python_is_not_saved(tmp_path):
    @jit.ignore
    def outside(x: int) -> int:
        return x + 1

    @jit.script
    def program(x: int):
        return outside(x)

    assert program(1) == 2
    with pytest.raises(RuntimeError, match="outside.*marked ignore.*test_without_source.py"):
        jit.save(program, tmp_path / "no.tgx")


TABLE = """
import importlib.util, pickle, sys
from tinygrad_ext import jit

spec = importlib.util.spec_from_file_location("table", sys.argv[1])
table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(table)
with open("rows.pickle", "rb") as file:
    rows = pickle.load(file)
for name, cases in rows.items():
    program = jit.load(name + ".tgx")
    for row, expected in cases:
        kind, found = table.outcome(program, row)
        if kind == expected[0] == "raises":  # behind the words of an error stands where it happened
            told = [type(found).__name__, " ".join(map(str, found.args))[: len(expected[1][1])]]
            found = told if told[0] != "Error" else [expected[1][0], told[1]]  # of a class that is not here
        assert [kind, found] == expected, (name, row, expected, found)
print(len(rows), sum(map(len, rows.values())))
"""


def _storable(row):
    """Whether arguments hold no object of a class of the program: a process without it cannot make one."""
    try:
        return pickle.loads(pickle.dumps(row)) is not None and "_of_tinygrad_ext" not in str(pickle.dumps(row))
    except (TypeError, AttributeError, pickle.PicklingError):
        return False


@pytest.mark.slow
def test_the_whole_table_runs_in_a_process_without_it(tmp_path):
    rows, left_out = {}, 0
    for stem in table.FILES:
        for name, case in table.load(stem, tg).items():
            kept = [row for row in case.rows if _storable(row)]
            left_out += len(case.rows) - len(kept)
            if not kept:
                continue
            scripted = jit.script(case.function)
            jit.save(scripted, tmp_path / f"{stem}-{name}.tgx")
            rows[f"{stem}-{name}"] = cases = []
            for row in kept:
                told, found = table.outcome(scripted, row)
                if told == "raises":
                    words = " ".join(map(str, found.args))
                    found = [type(found).__name__, words.partition("\n  in the graph")[0]]
                cases.append((row, [told, found]))
    (tmp_path / "rows.pickle").write_bytes(pickle.dumps(rows))
    done = subprocess.run(
        [sys.executable, "-c", TABLE, table.__file__], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    programs, runs = map(int, done.stdout.split()[-2:])
    assert programs > 230 and runs > 330 and left_out < 10
