"""What a profile records stands in the file: nested, with lines, shapes and nodes; a failed write leaves nothing."""

import sqlite3
import threading

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, plugins
from tinygrad_ext.profiler import profile, receiver, record_function, schedule

pytest.importorskip("tgx_recordings", reason="tgx-recordings is not installed: pip install ./plugins/recordings")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.db"


def ask(path, query, *values):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def test_the_receiver_comes_by_entry_point():
    receiver("recordings::sqlite", "unused.db")
    assert plugins.info("recordings").state == "active"


def test_events_stand_in_the_file_with_what_is_known_of_them(path):
    options = {"record_shapes": True, "with_stack": True, "profile_memory": True}
    with profile(**options, on_trace_ready=receiver("recordings::sqlite", path, label="one")) as p:
        with record_function("part"):
            x = tg.ones(4, 3, requires_grad=True)
            (x * 2).sum().backward()
    events = p.events()
    assert ask(path, "SELECT label, dropped FROM recordings") == [("one", 0)]
    rows = ask(path, "SELECT id, parent, name, end_ns - begin_ns FROM events ORDER BY id")
    assert rows == [(e.id, e.cpu_parent.id if e.cpu_parent else None, e.name, e.end - e.begin) for e in events]
    ((overload, owner, line, shapes, size),) = ask(
        path, "SELECT overload, owner, line, shapes, bytes FROM events WHERE name = 'aten::mul'"
    )
    assert (overload, owner) == ("Tensor", "tinygrad_ext") and "test_recordings.py" in line
    assert size >= 48  # a block may be a little larger
    assert shapes.startswith("[[4, 3]")
    outside = """SELECT count(*) FROM events a JOIN events b ON b.id = a.parent AND b.recording = a.recording
        WHERE a.begin_ns < b.begin_ns OR a.end_ns > b.end_ns"""
    assert ask(path, outside) == [(0,)]
    ((calls, total),) = ask(path, "SELECT calls, total_us FROM by_name WHERE name = 'part'")
    assert calls == 1 and total == pytest.approx(events[0].cpu_time_total)


def test_the_nodes_of_compiled_programs_are_rows(path):
    model = nn.Linear(3, 2)
    step = tg.jit.trace(lambda x: (model(x).relu() * 2).sum(), (tg.ones(4, 3),))
    with tg.no_grad(), profile(on_trace_ready=receiver("recordings::sqlite", path)):
        step(tg.ones(4, 3))
    ops = [op for (op,) in ask(path, "SELECT op FROM nodes")]
    assert {"aten::linear", "aten::relu", "aten::mul.Tensor", "aten::sum"} <= set(ops)
    kinds = {kind for (kind,) in ask(path, "SELECT DISTINCT kind FROM events JOIN nodes ON event = id")}
    assert kinds <= {"node", "tile"}


def test_each_recording_of_a_schedule_is_one(path):
    plan = schedule(wait=0, warmup=1, active=1, repeat=3)
    with profile(schedule=plan, on_trace_ready=receiver("recordings::sqlite", path)) as p:
        for _ in range(8):
            tg.ones(1)
            p.step()
    assert ask(path, "SELECT count(*) FROM recordings") == [(3,)]
    assert ask(path, "SELECT DISTINCT calls FROM by_name WHERE name = 'aten::ones'") == [(1,)]


def test_several_threads_write_to_one_file(path):
    def work():
        with profile(on_trace_ready=receiver("recordings::sqlite", path)):
            tg.ones(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert ask(path, "SELECT count(*), count(DISTINCT recording) FROM events") == [(4, 4)]


def test_a_write_that_fails_leaves_nothing(path):
    with profile() as p:
        tg.ones(1)
    events = p.events()
    events[0].name = object()  # which SQLite cannot keep
    with pytest.raises(sqlite3.Error):
        receiver("recordings::sqlite", path)(type("Recorded", (), {"events": lambda self: events})())
    assert ask(path, "SELECT count(*) FROM recordings") == [(0,)]


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "text").write_text("no database, for it is far too much of a text to be one" * 30)
    with (
        pytest.raises(sqlite3.DatabaseError),
        profile(on_trace_ready=receiver("recordings::sqlite", tmp_path / "text")),
    ):
        tg.ones(1)
    assert (tmp_path / "text").read_text().startswith("no database")
