"""Profiles of several threads: rings of their own, one list of events, nothing left behind."""

import json
import sys
import threading

import pytest
from tinygrad_ext.core.call.levels import active_levels

import tinygrad_ext as tg
from tinygrad_ext.profiler import profile, record_function
from tinygrad_ext.profiler.profiler import _ExperimentalConfig

EVERYWHERE = {"experimental_config": _ExperimentalConfig(profile_all_threads=True)}


def together(*functions):
    threads = [threading.Thread(target=f) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_threads_that_start_meanwhile_are_recorded_if_asked(tmp_path):
    def work(n):
        with record_function(f"thread {n}"):
            for _ in range(n):
                tg.ones(2) + 1

    with profile(**EVERYWHERE) as p:
        tg.zeros(1)
        together(*(lambda n=n: work(n) for n in (3, 5, 7)))
    events = p.events()
    assert len({e.thread for e in events}) == 4
    for n in (3, 5, 7):
        (outer,) = [e for e in events if e.name == f"thread {n}"]
        assert [e.name for e in outer.cpu_children] == ["aten::ones", "aten::add"] * n
        assert {e.thread for e in outer.cpu_children} == {outer.thread}
    assert {r.key: r.count for r in p.key_averages()}["aten::add"] == 15
    p.export_chrome_trace(tmp_path / "t.json")
    rows = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert len({r["tid"] for r in rows if r["ph"] == "X"}) == 4
    assert sum(r["name"] == "thread_name" for r in rows) == 4
    p.export_html(tmp_path / "t.html")
    assert (tmp_path / "t.html").read_text().count('["thread ') == 4


def test_others_are_not():
    with profile() as p:
        together(lambda: tg.ones(1))
    assert not p.events() and threading.getprofile() is None


def test_a_backward_pass_in_another_thread_takes_arrows_from_here(tmp_path):
    x = tg.ones(3, requires_grad=True)
    with profile(**EVERYWHERE) as p:
        loss = (x * 2).sum()
        together(loss.backward)
    nodes = [e for e in p.events() if e.kind == "backward"]
    forward = next(e for e in p.events() if e.name == "aten::mul")
    assert len(nodes) >= 2 and {e.thread for e in nodes} != {forward.thread}
    assert forward.sequence_nr in {e.sequence_nr for e in nodes}
    p.export_chrome_trace(tmp_path / "t.json")
    rows = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {r["tid"] for r in rows if r["ph"] == "s"} == {forward.thread} != {r["tid"] for r in rows if r["ph"] == "f"}


def test_a_thread_that_goes_on_after_the_end_is_let_go():
    ready, over, found = threading.Event(), threading.Event(), []

    def work():
        tg.ones(1)
        ready.set()
        over.wait(10)
        tg.ones(1)
        found.append((tg.ones(2) + 1).tolist())
        found.append(active_levels())

    with profile(**EVERYWHERE) as p:
        thread = threading.Thread(target=work)
        thread.start()
        ready.wait(10)
    count = len(p.events())
    over.set()
    thread.join()
    assert found == [[2.0, 2.0], []] and len(p.events()) == count == 1


def test_the_profile_function_of_the_program_is_put_back():
    seen = []

    def mine(frame, event, argument):
        seen.append(event)

    threading.setprofile(mine)
    try:
        with profile(**EVERYWHERE):
            together(lambda: tg.ones(1))
        assert seen and threading.getprofile() is mine
    finally:
        threading.setprofile(None)
    assert sys.getprofile() is None


def test_plans_of_several_threads_are_seen_each_in_its_own():
    traced = tg.jit.trace(lambda x: (x.exp() * 2).sum(), (tg.ones(50),))
    with tg.no_grad():
        traced(tg.ones(50))

    def work():
        with tg.no_grad():
            for _ in range(20):
                traced(tg.ones(50))

    with profile(**EVERYWHERE) as p:
        together(work, work, work)
    runs = [e for e in p.events() if e.kind == "plan"]
    inner = [e for e in p.events() if e.plan]
    assert runs and inner and all(e.cpu_parent.thread == e.thread and e.cpu_parent.kind == "plan" for e in inner)


def test_settings_for_what_is_not_here_are_refused():
    with pytest.raises(NotImplementedError, match="profiler_metrics"):
        _ExperimentalConfig(profiler_metrics=["kineto__tensor_core_insts"])
    assert not _ExperimentalConfig(profiler_metrics=[]).profile_all_threads
