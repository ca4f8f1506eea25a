"""An Interpreter can be told what a kind of node does, a Transformer makes a module of it."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import fx, nn


def program(x, y=2.0, *rest):
    return {"a": [tg.relu(x) * y, (x.neg(), None)], "rest": rest}


class Swapped(fx.Interpreter):
    def call_function(self, target, args, kwargs):
        return super().call_function(tg.sigmoid if target is tg.relu else target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return super().call_method("exp" if target == "neg" else target, args, kwargs)


def test_it_runs_what_it_is_told():
    made, x = fx.symbolic_trace(program), tg.tensor([-1.0, 1.0])
    assert fx.Interpreter(made).run(x)["a"][0].tolist() == [0.0, 2.0]
    found = Swapped(made).run(x, 1.0, 3, 4)
    assert found["a"][0].equal(x.sigmoid()) and found["a"][1][0].equal(x.exp()) and found["rest"] == [3, 4]
    found["a"].append(1)  # lists that are returned are lists


def test_values_are_forgotten_after_their_last_use():
    made = fx.symbolic_trace(lambda x: x.exp().sin().cos())
    held = []

    class Watching(fx.Interpreter):
        def run_node(self, n):
            held.append(len(self.env))
            return super().run_node(n)

    Watching(made).run(tg.ones(1))
    assert max(held) == 1
    held.clear()
    Watching(made, garbage_collect_values=False).run(tg.ones(1))
    assert max(held) == 4


def test_nodes_with_values_are_not_run():
    made = fx.symbolic_trace(lambda x: x.exp() + 1)
    node = made.graph.find_nodes(op="call_method")[0]
    placeholder = made.graph.find_nodes(op="placeholder")[0]
    assert fx.Interpreter(made).run(initial_env={placeholder: None, node: tg.ones(1)}).item() == 2


def test_boxed_arguments_are_given_away():
    made, box = fx.symbolic_trace(lambda x: x + 1), [tg.ones(1)]
    assert fx.Interpreter(made).boxed_run(box).item() == 2 and box == []


def test_a_failing_node_is_named():
    made = fx.symbolic_trace(lambda x: tg.relu(x) @ x)
    with pytest.raises(RuntimeError, match=r"While executing %matmul.*call_function\[target=operator\.matmul\]"):
        fx.Interpreter(made).run(tg.ones(2, 3))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(made).run()


class Doubled(fx.Transformer):
    def call_module(self, target, args, kwargs):
        return super().call_module(target, args, kwargs) * 2

    def call_function(self, target, args, kwargs):
        return tg.sigmoid(*args) if target is tg.relu else super().call_function(target, args, kwargs)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.w = nn.Linear(2, 2), nn.Parameter(tg.ones(2))

    def forward(self, x):
        return tg.relu(self.fc(x)) + self.w


def test_a_transformer_makes_a_module_that_shares_the_parameters():
    net, x = Net(), tg.ones(3, 2)
    made = Doubled(fx.symbolic_trace(net)).transform()
    assert made(x).equal(tg.sigmoid(net.fc(x) * 2) + net.w)
    assert made.fc is net.fc and made.w is net.w
    made.graph.lint()
