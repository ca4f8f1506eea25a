"""Profiles: what is recorded, how slices nest, and that names, schedules and counts are PyTorch's."""

import itertools
import json
import re
import threading
import warnings

import pytest
from tinygrad_ext.core.grad.events import Recorder

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.profiler import (
    ExecutionTraceObserver,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)
from tinygrad_ext.registry import scope


def training_step(steps=1):
    tg.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        with record_function("forward"):
            loss = nn.functional.cross_entropy(model(tg.ones(2, 1, 4, 4)), tg.zeros(2, dtype=tg.int64))
        loss.backward()
        optimizer.step()


def written(prof, tmp_path):
    prof.export_chrome_trace(tmp_path / "trace.json")
    return json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def us(ns):
    """As the file says it: half a nanosecond later, for readers that cut."""
    return round((ns + 0.5) / 1000, 4)


def assert_nested(spans):
    """Each of the spans (begin, end) lies inside another or beside it."""
    ends = []
    for begin, end in sorted(spans, key=lambda s: (s[0], -s[1])):
        assert begin <= end
        while ends and ends[-1] <= begin:
            ends.pop()
        assert not ends or end <= ends[-1]
        ends.append(end)


def names(prof):
    return [e.name for e in prof.events()]


def test_a_training_step_is_recorded_with_arrows_from_forward_to_backward(tmp_path):
    with profile() as p:
        training_step()
    found = p.events()
    assert_nested([(e.begin, e.end) for e in found])
    conv = next(e for e in found if e.name.startswith("aten::conv2d"))
    assert conv.cpu_parent.name == "forward" and found[0].kind == "operation"
    rows = written(p, tmp_path)
    begin = {r["ts"]: r["name"] for r in reversed(rows) if r["ph"] == "X"}
    starts = {r["id"]: r for r in rows if r["ph"] == "s"}
    ends = {r["id"]: r for r in rows if r["ph"] == "f"}
    nodes = [e for e in found if e.kind == "backward"]
    assert set(starts) == set(ends) and len(starts) == len(nodes) >= 4
    assert all(begin[ends[i]["ts"]].endswith("Backward0") and starts[i]["ts"] < ends[i]["ts"] for i in starts)
    relu = next(e for e in nodes if e.name == "ReluBackward0")
    (arrow,) = [i for i in ends if ends[i]["ts"] == us(relu.begin)]
    assert begin[starts[arrow]["ts"]] == "aten::relu"


def test_an_op_that_passes_its_argument_on_takes_no_arrow(tmp_path):
    x = tg.ones(2, requires_grad=True)
    with profile() as p:
        (x * 2).contiguous().sum().backward()
    first = next(e for e in p.events() if e.name == "aten::mul")
    assert us(first.begin) in [r["ts"] for r in written(p, tmp_path) if r["ph"] == "s"]


def test_composites_are_seen_and_what_they_are_written_in():
    with profile() as p:
        nn.functional.cross_entropy(tg.ones(2, 3), tg.zeros(2, dtype=tg.int64))
    inner = next(e for e in p.events() if e.name == "aten::_cross_entropy")
    assert inner.cpu_parent.name == "aten::cross_entropy"
    assert names(p).count("aten::cross_entropy") == 1
    assert inner.cpu_parent.self_cpu_time_total < inner.cpu_parent.cpu_time_total


def test_exceptions_inside_ranges_and_ops_leave_nothing_open():
    with profile() as p:
        for _ in range(2):
            with pytest.raises(RuntimeError), record_function("range"):
                tg.ones(2, 3) @ tg.ones(2, 3)
        tg.ones(1)
    found = p.events()
    assert_nested([(e.begin, e.end) for e in found])
    assert [e.name for e in found if e.cpu_parent is None] == ["range", "range", "aten::ones"]


def test_a_backward_that_raises_leaves_nothing_open():
    class Fails(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("no")

    with profile() as p:
        with pytest.raises(ValueError, match="no"):
            Fails.apply(tg.ones(2, requires_grad=True)).sum().backward()
        tg.ones(1)
    assert p.events()[-1].name == "aten::ones" and p.events()[-1].cpu_parent is None


def test_ranges_that_end_out_of_order_stay_nested():
    outer, inner = record_function("outer"), record_function("inner")
    with profile() as p:
        outer.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)
        record_function("left open").__enter__()
    assert_nested([(e.begin, e.end) for e in p.events()])
    assert sorted(names(p)) == ["inner", "left open", "outer"]


def test_lines_owners_shapes_and_bytes(tmp_path):
    x = tg.ones(256, 4)
    with profile(with_stack=True, record_shapes=True, profile_memory=True) as p:
        made = x + x
        with record_function("mine"):
            pass
    add, mine = p.events()
    assert re.fullmatch(r".*test_profile\.py:\d+ in test_lines_owners_shapes_and_bytes", add.stack[0])
    assert add.stack != mine.stack and "test_profile.py" in mine.stack[0]
    assert add.owner == "tinygrad_ext" and add.input_shapes[:2] == ((256, 4), (256, 4))
    assert add.cpu_memory_usage == made.numel() * 4 and mine.cpu_memory_usage == 0
    counters = [r["args"]["bytes"] for r in written(p, tmp_path) if r["ph"] == "C"]
    assert max(counters) - counters[0] == 4096
    text = p.key_averages().table()
    assert "4.00 KB" in text and "test_profile.py" in text


def test_an_op_of_a_program_has_another_owner_than_those_it_calls():
    mark = scope.application.mark()
    try:

        @tg.library.custom_op("profiled::twice", mutates_args=())
        def twice(x: tg.Tensor) -> tg.Tensor:
            return x * 2

        with profile(with_stack=True) as p:
            twice(tg.ones(3))
    finally:
        scope.application.undo(mark)
    assert [(e.name, e.owner) for e in p.events()][:2] == [
        ("aten::ones", "tinygrad_ext"),
        ("profiled::twice", "this program"),
    ]


def test_only_what_is_asked_for_is_noted():
    with profile() as p:
        tg.ones(1000)
    (one,) = p.events()
    assert (one.stack, one.owner, one.input_shapes, one.cpu_memory_usage) == ([], "", (), 0)


def test_each_thread_has_its_own_profile():
    found = {}

    def work(n):
        with profile() as p:
            for _ in range(n):
                tg.ones(2) + 1
        found[n] = p

    threads = [threading.Thread(target=work, args=(10 * n,)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for n, p in found.items():
        assert {r.key: r.count for r in p.key_averages()} == {"aten::ones": n, "aten::add": n}
        assert_nested([(e.begin, e.end) for e in p.events()])


def test_a_full_ring_keeps_the_newest_and_says_so():
    with profile(capacity=3) as p:
        for _ in range(5):
            tg.ones(1)
        tg.zeros(1)
    assert names(p) == ["aten::ones", "aten::ones", "aten::zeros"] and p.dropped == 3
    assert "3 older slices are missing" in p.key_averages().table()
    with pytest.raises(ValueError, match="capacity"):
        Recorder(0)


def test_schedules_are_pytorchs():
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for wait, warmup, active, repeat, skip in itertools.product((0, 1, 3), (0, 2), (1, 2), (0, 1, 2), (0, 2)):
            numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip}
            for first in (0, 1):
                ours = schedule(**numbers, skip_first_wait=first)
                theirs = torch.profiler.schedule(**numbers, skip_first_wait=first)
                assert [ours(n).name for n in range(20)] == [theirs(n).name for n in range(20)], (numbers, first)
    with pytest.raises(AssertionError, match="active is 0"):
        schedule(wait=0, warmup=1, active=0)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_counts_and_columns_are_pytorchs():
    torch = pytest.importorskip("torch")

    def rows(t, prof):
        with prof as p:
            x = t.ones(4, 4)
            for _ in range(3):
                x = t.relu(x)
            t.sigmoid(x)
        averages = p.key_averages()
        counts = {r.key: r.count for r in averages if r.key in ("aten::relu", "aten::sigmoid", "aten::ones")}
        return counts, re.split(r"\s{2,}", averages.table(sort_by="self_cpu_time_total").split("\n")[1].strip())

    cpu = [torch.profiler.ProfilerActivity.CPU]
    assert rows(tg, profile()) == rows(torch, torch.profiler.profile(activities=cpu))


def test_steps_record_by_the_schedule_and_hand_over(tmp_path):
    seen = []

    def ready(prof):
        seen.append([e.name for e in prof.events() if e.cpu_parent is None])
        tensorboard_trace_handler(tmp_path / "traces", "me")(prof)

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as p:
        for _ in range(10):
            tg.ones(1)
            p.step()
    assert seen == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]
    assert len(list((tmp_path / "traces").glob("me.*.pt.trace.json"))) == 2


def test_files_for_flame_graphs_and_a_page_without_network(tmp_path):
    with profile() as p, record_function("a</script><b>;c"):
        tg.ones(2)
    p.export_stacks(tmp_path / "stacks")
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert [re.sub(r" \d+$", "", line) for line in lines] == ["a</script><b>,c", "a</script><b>,c;aten::ones"]
    p.export_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text.count("</script>") == 1 and "http" not in text and "<b>" not in text and "aten::ones" in text
    with pytest.raises(ValueError, match="metric"):
        p.export_stacks(tmp_path / "stacks", "cuda_time")


def test_what_is_not_there_is_refused():
    with pytest.raises(NotImplementedError, match="execution_trace_observer"):
        profile(execution_trace_observer=ExecutionTraceObserver())
    with pytest.raises(RuntimeError, match="CUDA"):
        profile(activities=[ProfilerActivity.CUDA])
    with pytest.raises(RuntimeError, match="nothing is recorded"):
        profile().events()
    with profile() as p:
        tg.ones(1)
    with pytest.raises(AttributeError, match="sort_by"):
        p.key_averages().table(sort_by="cuda_time")


def test_rows_by_shape_and_by_line():
    with profile(record_shapes=True, with_stack=True) as p:
        for n in (1, 2, 2):
            tg.relu(tg.zeros(n))
        tg.relu(tg.zeros(2))
    counts = {r.input_shapes: r.count for r in p.key_averages(group_by_input_shape=True) if r.key == "aten::relu"}
    assert counts == {((1,),): 1, ((2,),): 3}
    assert sorted(r.count for r in p.key_averages(group_by_stack_n=1) if r.key == "aten::relu") == [1, 3]
    assert p.key_averages().total_average().count == 8
