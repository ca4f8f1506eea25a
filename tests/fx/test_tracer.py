"""Recording: what is a leaf, what is left whole, and that nothing of it stays behind."""

import math

import pytest

import tinygrad_ext as tg
from tinygrad_ext import fx, nn


@fx.wrap
def left_whole(x, n):
    return x if n == 0 else left_whole(x + 1, n - 1)


fx.wrap("len")


def test_wrapped_functions_are_recorded_whole():
    traced = fx.symbolic_trace(lambda x: left_whole(x, 3) * len(x))
    calls = [n.target.__name__ for n in traced.graph.nodes if n.op == "call_function"]
    assert calls == ["left_whole", "len", "mul"]
    assert traced(tg.ones(2)).tolist() == [8.0, 8.0]
    assert left_whole(1, 2) == 3 and len([1]) == 1


def test_operands_of_einsum_stand_in_a_row():
    traced = fx.symbolic_trace(lambda x: tg.einsum("ij,jk->ik", (x, x)))
    (call,) = [n for n in traced.graph.nodes if n.op == "call_function"]
    assert len(call.args) == 3 and traced(tg.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_wrap_stands_at_module_level():
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("len")
    with pytest.raises(RuntimeError, match="callable or string name"):
        fx.wrap(3)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x).relu()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), nn.Sequential(Block(), nn.ReLU())

    def forward(self, x):
        return self.second(self.first(x)) + math.sqrt(4)


class Blocks(fx.Tracer):
    def is_leaf_module(self, m, path):
        return isinstance(m, Block) or super().is_leaf_module(m, path)


def test_a_tracer_says_what_is_a_leaf():
    net = Net()
    paths = lambda tracer: [n.target for n in tracer.trace(net).nodes if n.op == "call_module"]
    assert paths(fx.Tracer()) == ["first.fc", "second.0.fc", "second.1"]
    assert paths(Blocks()) == ["first", "second.0", "second.1"]
    made = fx.GraphModule(net, Blocks().trace(net))
    assert made(tg.ones(2)).equal(net(tg.ones(2))) and made.first is net.first


def test_nothing_of_the_recording_stays():
    before = dict(vars(math)), dict(vars(nn.Module)), dict(globals())
    fx.symbolic_trace(Net())
    with pytest.raises(ValueError, match="control flow"):
        fx.symbolic_trace(lambda x: math.sqrt(x) if x else x)
    assert (dict(vars(math)), dict(vars(nn.Module)), dict(globals())) == before
    assert math.sqrt(4) == 2.0


def test_modules_called_while_another_is_recorded_in_vain_work_again():
    net = Net()
    with pytest.raises(NameError, match="not installed as a submodule"):
        fx.symbolic_trace(lambda x: net.first(x))
    assert net(tg.ones(2)).shape == (2,)


def test_lines_are_noted_where_they_are_wanted():
    class Noting(fx.Tracer):
        record_stack_traces = True

    graph = Noting().trace(lambda x: x.exp())
    assert "test_tracer.py" in next(n for n in graph.nodes if n.op == "call_method").stack_trace


def test_types_of_arguments_stay():
    def f(x: tg.Tensor, n: int = 2, *, flag: "str" = "a") -> tg.Tensor:
        return x * n

    traced = fx.symbolic_trace(f)
    assert [n.type for n in traced.graph.nodes][:3] == [tg.Tensor, int, "str"]
    assert traced(tg.ones(1)).item() == 2 and "n : int = 2" in traced.code


def test_plugin_ops_and_functions_are_nodes():
    with tg.library.Library("fxdemo", "DEF") as library:
        library.define("double(Tensor self) -> Tensor")
        library.impl("double", lambda self: self + self, "CompositeImplicitAutograd")
        traced = fx.symbolic_trace(lambda x: tg.ops.fxdemo.double(x) + 1)
        assert "tinygrad_ext.ops.fxdemo.double" in traced.code
        assert traced(tg.ones(1)).item() == 3


def test_objects_made_of_proxies_are_recorded():
    class Pair(metaclass=fx.ProxyableClassMeta):
        def __init__(self, a, b):
            self.a, self.b = a, b

        def sum(self):
            return self.a + self.b

    made = fx.symbolic_trace(lambda x, y: Pair(x, b=[y, 1][0]).sum() * Pair(2, 3).sum())
    assert next(n.target for n in made.graph.nodes if n.op == "call_function") is Pair
    assert made(1, 4) == 25 and len(made.graph.find_nodes(op="call_method", target="sum")) == 1


def test_nodes_tell_the_calls_of_modules_that_they_are_made_in():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    module = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.ReLU())
    graph = Whole().trace(module)
    told = {n.name: n.meta.get("nn_module_stack") for n in graph.nodes}
    assert told["linear"] == {"0": ("0", nn.Sequential), "0.0": ("0.0", nn.Linear)} == told["_0_0_weight"]
    assert told["relu"] == {"1": ("1", nn.ReLU)} and told["output"] is None
    assert list(
        fx.symbolic_trace(module).graph.find_nodes(op="call_module", target="0.0")[0].meta["nn_module_stack"]
    ) == [
        "0",
        "0.0",
    ]


def test_shapes_of_parameters_are_constants_where_that_is_asked_for():
    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(tg.ones(3, 2))

        def forward(self, x):
            w = self.weight
            if w.shape[0] == 3 and w.size(1) == 2 and w.size() == (3, 2) and w.dim() == w.ndim == 2:
                return x + w * w.numel() + w.nelement()
            return x

    root = Rows()
    graph = fx.Tracer(param_shapes_constant=True).trace(root)
    assert tg.equal(fx.GraphModule(root, graph)(tg.zeros(3, 2)), root(tg.zeros(3, 2)))
    with pytest.raises(fx.proxy.TraceError, match="control flow"):
        fx.Tracer().trace(root)


def test_calls_of_one_module_have_keys_of_their_own():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Sequential(nn.Linear(2, 2))

        def forward(self, x):
            return self.part(self.part(x).relu()).relu()

    for graph in (fx.symbolic_trace(Twice()).graph, tg.export.export(Twice(), (tg.ones(1, 2),)).graph):
        stacks = [n.meta.get("nn_module_stack", {}) for n in graph.nodes if n.op.startswith("call")]
        keys = [[key for key in stack if key] for stack in stacks]
        assert keys == [["part", "part.0"], [], ["part@1", "part.0@1"], []]
        assert stacks[2]["part.0@1"][0] == "part.0"
