"""Names of `autograd.profiler` and `torch.profiler`: those that record, and those that say what is not here."""

import importlib
import types

import pytest

import tinygrad_ext as tg
from tinygrad_ext import profiler
from tinygrad_ext.autograd import profiler as old


def test_all_of_pytorchs_names_are_there():
    torch = pytest.importorskip("torch")
    importlib.import_module("torch.profiler")

    assert not [n for n in torch.autograd.profiler.__all__ if not hasattr(old, n)]
    assert not [n for n in torch.profiler.__all__ if not hasattr(profiler, n)]
    assert not [n for n in torch.profiler.profiler.__all__ if not hasattr(profiler.profiler, n)]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        old.nothing


def test_the_older_profile_records_and_prints(tmp_path):
    x = tg.ones(3, requires_grad=True)
    with tg.autograd.profiler.profile(record_shapes=True, profile_memory=True) as p:
        with tg.autograd.profiler.record_function("part"):
            y = x * 2
        y.sum().backward()
    assert {e.name for e in p.function_events} >= {"part", "aten::mul", "MulBackward0"}
    assert p.key_averages(group_by_input_shape=True)[0].count == 1 and p.total_average().count == len(p.function_events)
    assert "part" in p.table(sort_by="cpu_time_total") and "part" in str(p) and p.self_cpu_time_total > 0
    p.export_chrome_trace(tmp_path / "t.json")
    p.export_stacks(tmp_path / "s.txt")
    assert "part;aten::mul" in (tmp_path / "s.txt").read_text() and (tmp_path / "t.json").stat().st_size > 100


def test_the_older_profile_may_be_off_and_is_entered_once():
    with tg.autograd.profiler.profile(enabled=False) as p:
        tg.ones(1)
    assert p is None
    p = tg.autograd.profiler.profile()
    assert str(p) == "<unfinished profile>"
    with pytest.raises(RuntimeError, match="not finished"):
        p.function_events
    with p:
        with pytest.raises(RuntimeError, match="entered before"):
            p.__enter__()
    with pytest.raises(RuntimeError, match="use_device"):
        tg.autograd.profiler.profile(use_device="cuda")


@pytest.mark.parametrize("name", ["emit_nvtx", "emit_itt"])
def test_ranges_for_tools_that_are_not_here_fail_when_entered(name):
    made = getattr(old, name)(record_shapes=True)
    with pytest.raises(RuntimeError, match=name), made:
        pass
    with getattr(old, name)(enabled=False):
        pass


def test_what_is_not_here_says_so():
    with pytest.raises(RuntimeError, match="nvprof"):
        old.load_nvprof("file.nvvp")
    with pytest.raises(RuntimeError, match="nvprof"):
        old.parse_nvprof_trace("file.nvvp")
    assert not profiler.kineto_available() and not profiler.itt.is_available()
    for name in ("range_push", "mark", "range"):
        with pytest.raises(RuntimeError, match="ITT"):
            getattr(profiler.itt, name)("x")
    with pytest.raises(RuntimeError, match="ITT"):
        profiler.itt.range_pop()
    observer = profiler.ExecutionTraceObserver()
    observer.stop()
    with pytest.raises(NotImplementedError, match="ExecutionTraceObserver"):
        observer.register_callback("file")


def test_small_helpers():
    once = old.EnforceUnique()
    once.see("a", 1)
    once.see("a", 2)
    with pytest.raises(RuntimeError, match="seen before"):
        once.see("a", 1)
    steps = old.KinetoStepTracker
    before = steps.current_step()
    steps.init_step_count("me")
    assert steps.increment_step("me") == before + 1 == steps.current_step()
    steps.init_step_count("you")
    assert steps.increment_step("you") == before + 2
    assert steps.erase_step_count("me") and not steps.erase_step_count("me") and steps.erase_step_count("you")
    rows = [(types.SimpleNamespace(start_ns=lambda t=t: t), t) for t in (30, 10, 20)]
    assert [t for _, t in old.MemRecordsAcc(rows).in_interval(10, 20)] == [10, 20]


def test_importing_autograds_profiler_loads_no_other(tmp_path):
    import subprocess
    import sys

    code = "import sys, tinygrad_ext.autograd.profiler; print([n for n in sys.modules if 'tinygrad_ext.profiler' in n])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
