"""The benchmark's own rules: libraries in turn, budgets for medians of ratios, missing parts do not end a run."""

import builtins
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import machine, report, runner
from benchmarks.cases import CASES, VARIANTS, Case, Variant
from benchmarks.libraries import Draw, Library

ROOT = Path(__file__).parent.parent
OURS = Library("tinygrad_ext", SimpleNamespace())
TORCH = Library("torch", SimpleNamespace())


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that only `spin` moves: other work of the machine cannot decide a test."""
    now = SimpleNamespace(time=0.0)
    monkeypatch.setattr(runner, "clock", lambda: now.time)
    monkeypatch.setattr(sys.modules[__name__], "elapsed", now)


elapsed = None


def spin(n):
    """A call that takes n microseconds."""

    def call():
        elapsed.time += n * 1e-6

    return call


def run(case, *libraries):
    return runner.run([case], libraries, seed=0, rounds=5, seconds=0.02)[0]


def test_names_are_unique_and_small_ops_come_in_all_variants():
    assert len({c.name for c in CASES}) == len(CASES)
    assert len(VARIANTS) == 6
    for name in ("add", "mul", "relu", "sum", "view", "t", "matmul 2x8x4", "cat", "sum(dim)"):
        assert next(c for c in CASES if c.name == name).variants == VARIANTS


def test_the_ratio_is_ours_over_pytorchs():
    row = run(Case("x", "g", 1.0, lambda lib, draw: spin(100 if lib is OURS else 2000)), OURS, TORCH)
    assert row.ratio < 0.5
    assert row.mark == "ok"


def test_a_ratio_beside_another_library_and_one_that_runs_named_cases_alone():
    jax = Library("jax", SimpleNamespace())
    times = {"tinygrad_ext": 100, "torch": 50, "jax": 2000}
    build = lambda lib, draw: spin(times[lib.name])
    assert run(Case("x", "g", 1.0, build, beside="jax"), OURS, TORCH, jax).ratio < 0.5
    row = run(Case("x", "g", 1.0, build), OURS, TORCH, jax)
    assert row.ratio > 1 and "jax" not in row.values


def test_why_a_library_did_not_run_is_kept():
    def build(lib, draw):
        if lib is TORCH:
            raise NotImplementedError("no loop over numbers")
        return spin(10)

    row = run(Case("x", "g", 1.0, build), OURS, TORCH)
    assert row.skipped == {"torch": "NotImplementedError: no loop over numbers"} and row.ratio is None


def test_the_budget_holds_for_the_median_over_the_variants():
    slow = {"a": 2000, "b": 2000, "c": 100}
    case = Case(
        "x",
        "g",
        1.0,
        lambda lib, draw: spin(slow[draw.dtype] if lib is OURS else 500),
        [Variant(d, False) for d in slow],
    )
    row = run(case, OURS, TORCH)
    assert [r > 1 for _, _, r in row.variants] == [True, True, False]
    assert row.mark == "over"


def test_a_missing_part_is_a_row_not_an_error():
    row = run(Case("x", "g", 1.0, lambda lib, draw: lib.module.no_such_op), OURS, TORCH)
    assert row.mark == "missing"
    assert "no_such_op" in row.missing


def test_without_pytorch_there_is_a_time_but_no_mark():
    row = run(Case("x", "g", 1.0, lambda lib, draw: spin(10)), OURS)
    assert row.values["tinygrad_ext"] > 0
    assert (row.ratio, row.mark) == (None, "")


def test_every_library_gets_the_same_values_and_each_run_others():
    same = [Draw(3).array(4).tolist() for _ in range(2)]
    assert same[0] == same[1]
    assert Draw(4).array(4).tolist() != same[0]


def test_a_strided_operand_is_every_second_element():
    import tinygrad_ext as tg

    t = Draw(0, "float64", True)(Library("tinygrad_ext", tg), 2, 4)
    assert (tuple(t.shape), t.stride(), t.is_contiguous()) == ((2, 4), (8, 2), False)


def test_what_others_use_is_all_that_was_busy_less_our_own_time(monkeypatch):
    busy, own, clock = iter((100.0, 100.4)), iter((7.0, 7.1)), iter((50.0, 50.1))
    monkeypatch.setattr(machine, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(machine, "_busy", lambda: next(busy))
    monkeypatch.setattr(machine, "_own", lambda: next(own))
    with machine.Watch() as watch:
        pass
    assert watch.foreign == pytest.approx(3.0)  # 0.3 seconds of a core in 0.1 seconds


def test_a_disturbed_run_says_so():
    row = runner.Row("x", "g", 1.0, {"tinygrad_ext": 1.0, "torch": 2.0}, 0.5, foreign=0.4)
    info = {"load": 0.1, "threads": 1}
    assert any("DOUBTFUL" in line for line in report.verdict([row], info, 0.1))
    row.foreign = 0.0
    assert not any("DOUBTFUL" in line for line in report.verdict([row], info, 0.1))


def test_quantities_are_readable():
    assert report.quantity(1.234e-6) == "1.23 µs"
    assert report.quantity(9.5e7, "B") == "95 MB"
    assert report.quantity(None) == ""


def test_without_rich_the_table_is_plain_text(monkeypatch, capsys):
    plain = builtins.__import__

    def no_rich(name, *args, **kwargs):
        if name.startswith("rich"):
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_rich)
    row = runner.Row("add", "small", 0.2, {"tinygrad_ext": 1e-7, "torch": 1e-6}, 0.1)
    info = {
        "load": 0.1,
        "threads": 1,
        "cpu": "c",
        "blas": None,
        "loops": "avx2",
        "python": "3",
        "versions": {"torch": "2"},
    }
    report.show([row], info, 0.1)
    out = capsys.readouterr().out
    assert "100 ns" in out
    assert "1 of 1 rows within budget" in out


@pytest.mark.slow
def test_the_command_runs_and_writes_json(tmp_path):
    path = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--filter", "small add", "--json", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "BLAS" in done.stdout
    rows = json.loads(path.read_text())["rows"]
    assert [r["name"] for r in rows] == ["add", "add with grad"]
    assert len(rows[0]["variants"]) == 6
