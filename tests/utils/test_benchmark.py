"""Measuring: statistics of times, how often statements run, threads, tables. Time itself is a counter here."""

import statistics

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils import benchmark
from tinygrad_ext.utils.benchmark import Compare, Measurement, TaskSpec, Timer


class Clock:
    """Each run of the statement takes `cost` seconds, each reading of the time a little."""

    def __init__(self, cost):
        self.now, self.cost, self.runs = 0.0, cost, 0

    def __call__(self):
        self.now += 1e-9
        return self.now

    def run(self):
        self.now += self.cost if not callable(self.cost) else self.cost()
        self.runs += 1


def timer(cost, **more):
    clock = Clock(cost)
    return clock, Timer("run()", timer=clock, globals={"run": clock.run}, **more)


def measured(times, **spec):
    return Measurement(10, [10 * t for t in times], TaskSpec("f()", "pass", **spec))


def test_a_time_is_that_of_one_run():
    clock, t = timer(2e-3)
    m = t.timeit(50)
    assert m.median == pytest.approx(2e-3, rel=1e-3) and m.number_per_run == 50 and clock.runs == 52


def test_blocks_are_long_enough_and_fill_the_time():
    _, t = timer(3e-6)
    m = t.blocked_autorange(min_run_time=0.5)
    assert sum(m.raw_times) >= 0.5 and len(m.raw_times) > 5 and m.median == pytest.approx(3e-6, rel=1e-2)
    heard = []
    t.blocked_autorange(callback=lambda n, s: heard.append((n, s)), min_run_time=0.01)
    assert heard and all(s == pytest.approx(3e-6 * n, rel=0.1) for n, s in heard)
    _, slow = timer(2.0)
    assert len(slow.blocked_autorange(min_run_time=0.2).raw_times) == 1


def test_adaptive_measuring_stops_when_times_agree_or_time_is_up():
    _, steady = timer(1e-3)
    assert sum(steady.adaptive_autorange(max_run_time=10).raw_times) < 1
    costs = iter([1e-3, 5e-3] * 10**6)
    _, shaky = timer(lambda: next(costs) * (1 + int(next(costs) > 2e-3) * 9))
    rng = np.random.default_rng(0)
    _, shaky = timer(lambda: float(rng.choice([1e-2, 9e-2])))
    assert sum(shaky.adaptive_autorange(threshold=1e-6, max_run_time=2).raw_times) >= 2


def test_statistics_are_numpys():
    times = [1e-6, 2e-6, 4e-6, 9e-6, 3e-6]
    m = measured(times)
    assert m.times == pytest.approx(times) and m.mean == pytest.approx(statistics.fmean(times))
    assert m.median == pytest.approx(np.median(times))
    assert m.iqr == pytest.approx(np.quantile(times, 0.75) - np.quantile(times, 0.25))
    assert not m.meets_confidence() and m.has_warnings and "of the median apart" in repr(m)
    assert measured([1e-6] * 4).significant_figures == 4 and "quartiles" not in repr(measured([1e-6] * 4))


@pytest.mark.parametrize("times", [[1e-6, 1.01e-6, 1.3e-6], [1e-3] * 8, [2.5], [1e-6, 2e-6] * 20])
def test_numbers_are_pytorchs(times):
    theirs = pytest.importorskip("torch.utils.benchmark")
    ours = measured(times)
    other = theirs.Measurement(10, [10 * t for t in times], theirs.TaskSpec("f()", "pass"))
    for name in ("median", "mean", "iqr", "significant_figures", "has_warnings", "title", "as_row_name"):
        assert getattr(ours, name) == pytest.approx(getattr(other, name)), name


@pytest.mark.parametrize("x", [0.0, 1234.56, 0.00123456, 9.996, 5e-7])
def test_helpers_are_pytorchs(x):
    theirs = pytest.importorskip("torch.utils.benchmark")
    for n in (1, 2, 3) if x else ():
        assert benchmark.trim_sigfig(x, n) == pytest.approx(theirs.trim_sigfig(x, n))
    assert benchmark.select_unit(x) == theirs.select_unit(x) if x else True
    assert benchmark.unit_to_english("us") == theirs.unit_to_english("us")


def test_threads_are_set_and_put_back():
    before, seen = tg.get_num_threads(), []
    Timer("f()", globals={"f": lambda: seen.append(tg.get_num_threads())}, num_threads=before + 1).timeit(1)
    assert set(seen) == {before + 1} and tg.get_num_threads() == before


def test_setup_runs_before_each_measurement_and_code_may_be_indented():
    found = []
    t = Timer(
        """
        y = x + 1
        found.append(y)
        """,
        setup="x = base * 2",
        global_setup="base = 20",
        globals={"found": found},
    )
    t.timeit(1)
    assert set(found) == {41}
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0").timeit(1)
    with pytest.raises(SyntaxError):
        Timer("1 +")
    with pytest.raises(TypeError, match="stmt must be code"):
        Timer(print)


def test_measurements_of_one_task_are_merged():
    a, b, c = measured([1e-6, 2e-6]), measured([3e-6]), measured([5e-6], label="other")
    merged = Measurement.merge([a, b, c])
    assert [len(m.raw_times) for m in merged] == [3, 1] and merged[0].median == pytest.approx(2e-6)


def test_a_table_has_rows_columns_and_threads():
    spec = {"label": "add", "description": "eager"}
    table = Compare(
        [
            measured([12.34e-6], sub_label="8", **spec),
            measured([40e-6], sub_label="9", **spec),
            measured([6e-6], label="add", sub_label="8", description="graph"),
            measured([1e-6], label="add", sub_label="8", description="graph", num_threads=2),
        ]
    )
    lines = str(table).split("\n")
    assert " add " in lines[0] and lines[1].split("|")[1:] == ["  eager  ", "  graph"]
    assert lines[2].startswith("1 thread:") and lines[5].startswith("2 threads:")
    assert [cell.strip() for cell in lines[3].split("|")] == ["8", "12.3", "6.0"]
    assert [cell.strip() for cell in lines[6].split("|")] == ["8", "", "1.0"]
    assert "microseconds (us)" in str(table)
    table.colorize()
    assert "\033[92m" in str(table)
    with pytest.raises(ValueError, match="Measurements"):
        table.extend_results([3])


def test_figures_that_are_not_known_are_left_out():
    table = Compare([measured([1.111e-6, 1.9e-6, 1.5e-6, 1.2e-6], label="a", sub_label="b", description="c")])
    table.trim_significant_figures()
    table.highlight_warnings()
    assert "(!)" in str(table) and "1.350" not in str(table)


def test_what_is_not_there_says_so():
    with pytest.raises(NotImplementedError, match="language"):
        Timer("x", language="cpp")
    with pytest.raises(NotImplementedError, match="callgrind"):
        Timer("1").collect_callgrind()
    with pytest.raises(AttributeError, match="Fuzzy"):
        benchmark.Fuzzy
