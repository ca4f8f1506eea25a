"""A GraphModule is a Module: parts, copies, states, and a forward that follows its graph."""

import copy
import operator
import pickle
import traceback

import pytest

import tinygrad_ext as tg
from tinygrad_ext import fx, nn
from tinygrad_ext.graph.interpret import run


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.unused = nn.Linear(5, 5)
        self.register_buffer("mean", tg.ones(3))

    def forward(self, x):
        return (self.fc(x) - self.mean).relu().sum()


def traced():
    tg.manual_seed(0)
    return fx.symbolic_trace(Net())


def test_it_has_the_parts_that_the_graph_names_and_the_name_of_the_class():
    made = traced()
    assert type(made).__name__ == "Net" and isinstance(made, fx.GraphModule)
    assert list(made.state_dict()) == ["mean", "fc.weight", "fc.bias"]
    made(tg.ones(4, 2)).backward()
    assert made.fc.weight.grad is not None


def test_a_changed_graph_runs_after_recompile():
    made = traced()
    for node in made.graph.nodes:
        if node.target == "relu":
            node.target = "exp"
    x = tg.ones(4, 2)
    before = made(x)
    made.recompile()
    assert made(x).item() == pytest.approx((made.fc(x) - 1).exp().sum().item()) and made(x).item() != before.item()
    assert "exp()" in made.code


def test_two_modules_do_not_share_a_forward():
    one, two = traced(), traced()
    one.graph = fx.symbolic_trace(lambda x: x + 1).graph
    assert one(tg.ones(1)).item() == 2 and two(tg.ones(1, 2)).dim() == 0


def test_copies_are_of_their_own():
    made, x = traced(), tg.ones(4, 2)
    for other in (copy.deepcopy(made), copy.copy(made)):
        assert other(x).equal(made(x)) and other.graph is not made.graph and other.graph.owning_module is other
        other.graph.output_node().args = (other.graph.find_nodes(op="call_module")[0],)
        other.recompile()
        assert other(x).shape == (4, 3) and made(x).dim() == 0
    assert copy.deepcopy(made).fc is not made.fc and copy.copy(made).fc is made.fc


def test_a_dict_can_be_the_root():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (graph.call_module("a.b", (x,)), graph.get_attr("c.d"))))
    made = fx.GraphModule({"a.b": nn.ReLU(), "c.d": tg.ones(2)}, graph, "Made")
    assert made(tg.tensor([-1.0, 1.0])).tolist() == [1.0, 2.0] and list(made.state_dict()) == ["c.d"]
    with pytest.raises(RuntimeError, match=r"'a\.b', which is not among the keys"):
        fx.GraphModule({}, graph)
    with pytest.raises(RuntimeError, match="Unsupported type"):
        fx.GraphModule(3, graph)


def test_submodules_come_and_go():
    made = traced()
    assert made.add_submodule("new.part", nn.ReLU()) and isinstance(made.new.part, nn.ReLU)
    assert not made.add_submodule("mean.part", nn.ReLU())
    made.graph.lint()
    assert made.delete_submodule("new.part") and not made.delete_submodule("new.part")
    made.delete_all_unused_submodules()
    assert [name for name, _ in made.named_modules()] == ["", "fc"]
    made.delete_submodule("fc")
    with pytest.raises(RuntimeError, match="references nonexistent attribute fc"):
        made.graph.lint()


def test_a_traceback_shows_the_code():
    made = fx.symbolic_trace(lambda x: x.exp().foo())
    try:
        made(tg.ones(1))
    except AttributeError:
        assert "exp.foo()" in traceback.format_exc()


def test_it_prints(capsys):
    made = traced()
    made.graph.print_tabular()
    assert capsys.readouterr().out.split("\n")[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert made.print_readable(False).startswith("class Net(torch.nn.Module):\n    def forward(self, x):")
    assert "self.fc(x)" in str(made)


def test_what_users_note_goes_with_copies_and_not_with_pickles():
    made = fx.symbolic_trace(nn.Linear(2, 3))
    assert made.meta == {}
    made.meta["note"] = [1]
    deep, flat = copy.deepcopy(made), copy.copy(made)
    assert deep.meta == flat.meta == {"note": [1]} and deep.meta["note"] is not made.meta["note"]
    flat.meta["other"] = 2
    assert made.meta == {"note": [1]} and pickle.loads(pickle.dumps(made)).meta == {}


def test_a_pickle_runs_and_can_be_changed():
    made = traced()
    again = pickle.loads(pickle.dumps(made))
    x = tg.ones(4, 2)
    assert again(x).equal(made(x)) and again.code == made.code and str(again.graph) == str(made.graph)
    assert list(again.state_dict()) == list(made.state_dict()) and type(again).__name__ == "Net"
    node = again.graph.find_nodes(op="call_method", target="relu")[0]
    node.target = "exp"
    again.recompile()
    assert not again(x).equal(made(x))


def test_arguments_of_every_kind_are_pickled():
    def f(x, y=2.5):
        return {"a": [tg.cat([x, x])[1:, None], (x, y)], "b": operator.getitem(x, slice(None, 1))}

    made = fx.symbolic_trace(f)
    again = pickle.loads(pickle.dumps(made))
    assert again.code == made.code and again(tg.ones(3))["a"][0].equal(made(tg.ones(3))["a"][0])


def test_values_that_are_no_literals_get_names():
    graph = fx.Graph()
    x = graph.placeholder("x")
    made = graph.call_function(tg.full, ((2,), float("nan")), {"dtype": tg.float64, "device": tg.device("cpu")})
    graph.output((x, made, slice(1, None), {"a": [1, ...]}, complex(1, 2), b"x"))
    found = fx.GraphModule({}, graph)(1)
    assert found[0] == 1 and found[1].dtype is tg.float64 and found[1].isnan().all()
    assert found[2:] == (slice(1, None), {"a": [1, ...]}, complex(1, 2), b"x")


def test_a_recorded_module_can_be_captured_as_a_graph_of_ops():
    made, x = traced(), tg.arange(8.0).reshape(4, 2)
    graph = made.to_graph(x)
    assert {(s.name, s.kind) for s in graph.state} == {
        ("fc.weight", "parameter"),
        ("fc.bias", "parameter"),
        ("mean", "buffer"),
    }
    state = dict([*made.named_parameters(), *made.named_buffers()])
    for size in (4, 1, 7):
        x = tg.randn(size, 2)
        (found,), _ = run(graph, [x], [state[s.name] for s in graph.state])
        assert found.equal(made(x))


def test_a_place_to_insert_at_holds_from_the_call_on():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.neg, (x,))
    graph.output(y)
    place = graph.inserting_after(y)
    first = graph.call_function(operator.pos, (y,))
    with place:
        second = graph.call_function(operator.pos, (y,))
    last = graph.call_function(operator.pos, (y,))
    assert [*graph.nodes][2:4] == [second, first] and [*graph.nodes][-1] is last


def test_ops_that_write_are_kept_though_nobody_reads_them():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(tg.ops.aten.add_.Tensor, (x, 1))
    graph.call_function(tg.ops.aten.exp.out, (x,), {"out": x})
    graph.call_function(tg.ops.aten.exp.default, (x,))
    graph.output(x)
    assert graph.eliminate_dead_code() and [n.op for n in graph.nodes].count("call_function") == 2
    assert fx.GraphModule({}, graph)(tg.zeros(1)).item() == tg.tensor(1.0).exp().item()
