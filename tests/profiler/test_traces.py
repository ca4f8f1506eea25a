"""Traces of a CNN's training step and of the same step as a graph, by the rules of the trace processor."""

import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.profiler import profile, record_function

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from trace_rules import imported

HERE = Path(__file__).name
ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.fc = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(36, 3)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.norm(self.conv(x)).relu(), 2)
        return self.fc(x.flatten(1))


def make():
    tg.manual_seed(0)
    model = Cnn()
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, optimizer, tg.rand(5, 1, 8, 8), tg.tensor([0, 1, 2, 0, 1])


def in_program(args):
    return HERE in args.get("Line", "")


def test_the_trace_of_a_training_step_is_nested_with_arrows_owners_lines_and_bytes(tmp_path):
    model, optimizer, x, y = make()
    with profile(**ALL) as p:
        for _ in range(2):
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    p.export_chrome_trace(tmp_path / "trace.json")
    slices, arrows, counters = imported(tmp_path / "trace.json")
    assert len(slices) == len(p.events()) > 60 and {s.row["tid"] for s in slices} == {p.events()[0].thread}
    ops = [s for s in slices if s.name.startswith("aten::")]
    assert all(in_program(s.row["args"]) and s.row["args"]["Owner"] == "tinygrad_ext" for s in ops)
    assert {"forward", "aten::conv2d", "aten::cross_entropy", "optim::sgd"} <= {s.name for s in slices}
    told = {(a.name, b.name) for a, b in arrows}
    assert {("aten::relu", "ReluBackward0"), ("aten::conv2d", "ConvolutionBackward0")} <= told
    assert all(b.name.endswith("Backward0") and a.end <= b.begin for a, b in arrows)
    nodes = [s for s in slices if s.name.endswith("Backward0")]
    assert {id(b) for _, b in arrows} == {id(s) for s in nodes}
    relu = next(s for s in ops if s.name == "aten::relu")
    assert relu.row["args"]["Input Dims"][0] == [5, 4, 6, 6]
    assert 5 * 4 * 6 * 6 * 4 <= relu.row["args"]["Bytes"] <= 5 * 4 * 6 * 6 * 4 + 512  # a block may be a little larger
    used = counters["bytes in use"]
    assert len(used) > 20 and max(n for _, n in used) > used[0][1]
    inside = next(s for s in slices if s.name == "forward")
    assert all(inside.begin <= s.begin < inside.end for s in [next(s for s in ops if s.name == "aten::conv2d")])


def test_the_trace_of_a_step_as_a_graph_shows_its_nodes_and_tiles(tmp_path):
    model, optimizer, x, y = make()

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    traced = tg.jit.trace(step, (x, y))
    for _ in range(3):
        traced(x, y)
    with profile(**ALL) as p:
        before = traced(x, y).item()
        after = traced(x, y).item()
    assert after < before
    p.export_chrome_trace(tmp_path / "trace.json")
    slices, arrows, _ = imported(tmp_path / "trace.json")
    plans = [s for s in slices if s.name == "plan::step"]
    inner = [s for s in slices if s.row["cat"] == "graph_node"]
    assert len(plans) == 2 and len(inner) > 20 and all(s.parent in plans for s in inner)
    assert any(s.name.startswith("tile: ") for s in inner)
    assert any(s.name == "aten::conv2d" for s in inner)
    for s in inner:
        args = s.row["args"]
        assert args["Owner"] == "tinygrad_ext" and args["Bytes"] >= 0 and args["Ops"], s.name
    assert sum(in_program(s.row["args"]) for s in inner) > len(inner) * 0.8
    assert arrows and all(a.parent is b.parent for a, b in arrows)
    conv = next(s for s in inner if s.name == "aten::conv2d")
    assert any(a is conv and "conv" in b.name for a, b in arrows)
    assert conv.row["args"]["Input Dims"][0] == [5, 1, 8, 8]
    assert 5 * 4 * 6 * 6 * 4 <= conv.row["args"]["Bytes"] <= 5 * 4 * 6 * 6 * 4 * 3  # what it keeps for itself, too


def test_a_traced_model_with_eager_gradients_has_arrows_into_the_backward_plan(tmp_path):
    model, _, x, y = make()
    model.eval()
    traced = tg.jit.trace(model, (x,))
    for _ in range(2):
        nn.functional.cross_entropy(traced(x), y).backward()
    with profile(**ALL) as p:
        nn.functional.cross_entropy(traced(x), y).backward()
    p.export_chrome_trace(tmp_path / "trace.json")
    slices, arrows, _ = imported(tmp_path / "trace.json")
    graph = next(s for s in slices if s.name == "graph::Cnn")
    forward = next(s for s in slices if s.name == "plan::Cnn")
    assert forward.parent is graph
    assert any(a is graph and b.name.startswith("Derived") for a, b in arrows)
    conv = next(s for s in slices if s.name == "aten::conv2d")
    assert conv.parent is forward and any(a is conv and b.begin > forward.end for a, b in arrows)


@pytest.mark.parametrize("train", [False, True])
def test_a_profile_changes_no_result_and_no_way_of_running(train):
    model, _, x, _ = make()
    model.train(train)
    traced = tg.jit.trace(model, (x,))
    with tg.set_grad_enabled(train):
        expected, plain = model(x), traced(x)
        with profile() as p:
            seen = traced(x)
    kinds = {e.kind for e in p.events() if e.name != "aten::clone"}  # of statistics that are written to
    assert kinds <= {"graph", "plan", "node", "tile"} and "plan" in kinds
    if not train:  # batch statistics are the same each time then
        assert seen.tolist() == plain.tolist() == expected.tolist()
    with profile() as after:
        pass
    assert not after.events()


def test_loops_and_branches_are_seen_turn_by_turn():
    @tg.jit.script
    def f(x, n: int):
        for _ in range(n):
            x = (x @ x).tanh()
        return x

    x = tg.eye(3)
    with tg.no_grad():
        for _ in range(3):
            f(x, 4)
        with profile(with_stack=True) as p:
            f(x, 4)
    products = [e for e in p.events() if e.name == "aten::matmul" or e.name == "aten::mm"]
    assert len(products) == 4 and all(HERE in e.stack[0] for e in products)
    assert len({e.begin for e in products}) == 4


def test_a_graph_that_fails_leaves_nothing_open():
    @tg.jit.script
    def f(x, y):
        return (x * 2) @ y

    with tg.no_grad(), profile() as p:
        f(tg.ones(2, 3), tg.ones(3, 2))
        f(tg.ones(2, 3), tg.ones(3, 2))
        with pytest.raises(RuntimeError):
            f(tg.ones(2, 3), tg.ones(2, 3))
        tg.ones(1)
    last = p.events()[-1]
    assert last.name == "aten::ones" and last.cpu_parent is None


def test_two_profiles_of_one_thread_see_the_inside_of_a_plan():
    traced = tg.jit.trace(lambda x: (x.exp() * 2).sum(), (tg.ones(5),))
    with profile() as outer:
        traced(tg.ones(5))
        with profile() as inner:
            traced(tg.ones(5))
    inside = [e.name for e in inner.events() if e.plan]
    assert inside and [e.name for e in outer.events() if e.plan] == inside * 2


def test_a_plan_that_is_profiled_by_itself_may_be_watched_too():
    traced = tg.jit.trace(lambda x: x.exp().sum(), (tg.ones(5),))
    with tg.no_grad():
        plan = traced.plan(tg.ones(5))
        with profile() as p:
            lines = plan.lines(profile=True, runs=3)
    assert all(line.microseconds > 0 for line in lines) and sum(e.kind == "plan" for e in p.events()) == 3
