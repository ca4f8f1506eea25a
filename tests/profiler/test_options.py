"""What a profile may be asked for, and what its lists and tables then say; with PyTorch's where it says the same."""

import gzip
import json
import re

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.profiler import DeviceType, profile, record_function, schedule, tensorboard_trace_handler


def product():
    return tg.ones(3, 4) @ tg.ones(4, 5)


def test_stacks_are_the_programs_lines_the_innermost_first(tmp_path):
    def inner():
        return tg.ones(2)

    def outer():
        return inner()

    with profile(with_stack=True) as p:
        outer()
    (one,) = p.events()
    names = [line.rpartition(" in ")[2] for line in one.stack]
    assert names[:3] == ["inner", "outer", "test_stacks_are_the_programs_lines_the_innermost_first"]
    assert all(re.fullmatch(r".+:\d+", line.rpartition(" in ")[0]) for line in one.stack)
    p.export_stacks(tmp_path / "stacks")
    (line,) = (tmp_path / "stacks").read_text().splitlines()
    assert re.search(r"in outer;[^;]+in inner;aten::ones \d+$", line)


def test_rows_by_lines_shapes_and_overloads():
    with profile(with_stack=True, record_shapes=True) as p:
        for n in (2, 3, 3):
            x = tg.ones(n)
            x + x
        tg.ones(2) + 1.5
    by = {name: p.key_averages(**{name: value}) for name, value in _GROUPS.items()}
    adds = {name: sorted(r.count for r in rows if r.key == "aten::add") for name, rows in by.items()}
    assert adds == {"group_by_input_shape": [1, 1, 2], "group_by_stack_n": [1, 3], "group_by_overload_name": [4]}
    (row,) = [r for r in by["group_by_overload_name"] if r.key == "aten::add"]
    assert row.overload_name == "Tensor" and "Overload Name" in by["group_by_overload_name"].table()
    assert all(len(r.stack) == 2 for r in p.key_averages(group_by_stack_n=2))
    assert len(p.key_averages(group_by_stack_n=2).table(row_limit=1).split("\n")) == 8


_GROUPS = {"group_by_input_shape": True, "group_by_stack_n": 1, "group_by_overload_name": True}


def test_tables_are_cut_sorted_and_in_one_unit():
    with profile(record_shapes=True, with_stack=True) as p:
        with record_function("a name that is far too long to be shown"):
            product()
    events = p.events()
    text = events.table(max_name_column_width=12, max_shapes_column_width=8, max_src_column_width=20, header="mine")
    assert (
        text.startswith("mine\n")
        and "a name th..." in text
        and "((3, ..." in text
        and re.search(r" \.\.\.\S.{16}\n", text)
    )
    unit = events.table(time_unit="ms")
    assert re.search(r"\d\.\d{3}ms", unit) and not re.search(r"\d\.\d{3}us", unit)
    with pytest.raises(ValueError, match="time_unit"):
        events.table(time_unit="h")
    top = events.table(top_level_events_only=True)
    assert "a name that" in top and "aten::ones" not in top
    averages = p.key_averages()
    assert averages.table(sort_by="count", row_limit=1).count("aten::") == 1
    assert averages.table(row_limit=-1).count("aten::") == len(averages) - 1


def test_averages_have_what_pytorchs_have():
    torch = pytest.importorskip("torch")
    theirs = torch.autograd.profiler_util.FunctionEventAvg()
    names = {n for n in vars(theirs) if not n.startswith("_")} - {"scope", "cpu_children", "cpu_parent"}
    with profile() as p:
        product()
    (first, *_), total = p.key_averages(), p.key_averages().total_average()
    assert not [n for n in names if not hasattr(first, n)]
    assert total.key == "Total" and total.count == len(p.events()) and total.device_time_total == 0
    assert first.device_type is DeviceType.CPU and first.cpu_time == first.cpu_time_total / first.count
    with profile() as empty:
        pass
    assert empty.key_averages().total_average().count == 0 and "Self CPU" in empty.key_averages().table()


def test_operations_are_counted_as_pytorch_counts_them():
    torch = pytest.importorskip("torch")

    def run(t):
        x = t.ones(2, 6, 9, 8)
        t.nn.functional.conv2d(x, t.ones(4, 3, 3, 2), None, (2, 1), (1, 0), (1, 2), 2)
        t.mm(t.ones(3, 4), t.ones(4, 5))
        t.addmm(t.ones(5), t.ones(3, 4), t.ones(4, 5))
        t.bmm(t.ones(2, 3, 4), t.ones(2, 4, 5))
        t.ones(3, 4) * t.ones(3, 4)

    with profile(with_flops=True) as ours:
        run(tg)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_flops=True) as theirs:
        run(torch)
    mine = {r.key: r.flops for r in ours.key_averages() if r.flops}
    others = {r.key: r.flops for r in theirs.key_averages() if r.flops}
    assert mine == others and "Total MFLOPs" in ours.key_averages().table()


def test_shapes_come_with_the_plain_arguments():
    with profile(record_shapes=True) as p:
        tg.ones(2, 3).sum((0, 1), keepdim=True)
    total = p.events()[-1]
    assert total.name == "aten::sum" and total.input_shapes[0] == (2, 3)
    assert total.concrete_inputs[1:3] == ((0, 1), True)


def test_calls_of_modules_are_ranges():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    with profile(with_modules=True) as p:
        for _ in range(2):
            model(tg.ones(1, 2))
        with pytest.raises(RuntimeError):
            model(tg.ones(1, 3))
        tg.ones(1)
    modules = [e for e in p.events() if e.kind == "module"]
    assert {e.name: sum(m.name == e.name for m in modules) for e in modules} == {
        "nn.Module: Sequential_0": 3,
        "nn.Module: Linear_0": 3,
        "nn.Module: ReLU_0": 2,
        "nn.Module: Linear_1": 2,
    }
    linear = next(e for e in p.events() if e.name == "aten::linear")
    assert linear.cpu_parent.name == "nn.Module: Linear_0"
    assert linear.cpu_parent.cpu_parent.name == "nn.Module: Sequential_0"
    assert p.events()[-1].cpu_parent is None
    with profile() as after:
        model(tg.ones(1, 2))
    assert not any(e.kind == "module" for e in after.events())


def test_memory_over_time_is_written(tmp_path):
    with profile(profile_memory=True) as p:
        x = tg.ones(1000)
        y = x + 1
        del x, y
        tg.zeros(1)
    p.export_memory_timeline(tmp_path / "memory.json")
    times, used = json.loads((tmp_path / "memory.json").read_text())
    assert times == sorted(times) and len(times) == len(used) and max(used) - used[0] >= 8000
    p.export_memory_timeline(tmp_path / "memory.json.gz", device="cpu")
    assert json.loads(gzip.decompress((tmp_path / "memory.json.gz").read_bytes())) == [times, used]
    p.export_memory_timeline(tmp_path / "memory.html")
    assert "id=memory" in (tmp_path / "memory.html").read_text()
    with pytest.raises(RuntimeError, match="cuda"):
        p.export_memory_timeline(tmp_path / "m.json", device="cuda:0")
    with profile() as without:
        tg.ones(1)
    with pytest.raises(RuntimeError, match="profile_memory=True"):
        without.export_memory_timeline(tmp_path / "m.json")


def test_traces_hold_metadata_and_may_be_compressed(tmp_path):
    with profile(custom_trace_id_callback=lambda: "id 7") as p:
        tg.ones(1)
    p.add_metadata("model", "small")
    p.add_metadata_json("sizes", "[1, 2]")
    assert p.get_trace_id() == "id 7"
    with pytest.raises(ValueError):
        p.add_metadata_json("sizes", "no json")
    p.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    document = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert document["model"] == "small" and document["sizes"] == [1, 2]
    tensorboard_trace_handler(tmp_path / "many", "me", use_gzip=True)(p)
    assert [f.name.endswith(".pt.trace.json.gz") for f in (tmp_path / "many").iterdir()] == [True]


def test_recording_may_pause():
    with profile() as p:
        tg.ones(1)
        p.toggle_collection_dynamic(False)
        tg.zeros(1)
        p.toggle_collection_dynamic(True)
        tg.ones(2)
        p.toggle_collection_dynamic(False)
    assert [e.name for e in p.events()] == ["aten::ones", "aten::ones"]


def test_events_of_all_recordings_are_kept_if_asked():
    def count(**options):
        with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=3), **options) as p:
            for _ in range(6):
                tg.ones(1)
                p.step()
        return sum(e.name == "aten::ones" for e in p.events())

    assert (count(), count(acc_events=True)) == (1, 3)


def test_a_list_of_events_has_an_order_and_ids():
    with profile() as p:
        with record_function("r"):
            product()
    events = p.events()
    assert [e.id for e in events] == list(range(len(events)))
    begin, end = events[0].time_range
    assert end - begin == pytest.approx(events[0].cpu_time_total) == events[0].time_range.elapsed_us()
    assert events[0].is_user_annotation and events[0].cpu_time_total_str.endswith("s")
