"""Partitions of graphs, what backends take of them, and passes in order: the same as PyTorch's."""

import importlib
import operator

import pytest

import tinygrad_ext as tg
from tests.helpers import fx_programs as programs
from tinygrad_ext.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from tinygrad_ext.fx.passes.infra.pass_base import PassBase, PassResult
from tinygrad_ext.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from tinygrad_ext.fx.passes.operator_support import (
    OperatorSupport,
    OpSupports,
    any_chain,
    chain,
    create_op_support,
)
from tinygrad_ext.fx.passes.tools_common import get_node_target, legalize_graph
from tinygrad_ext.fx.passes.utils.fuser_utils import fuse_as_graphmodule, validate_partition

TAKEN = {"add", "relu", "mul", "getitem", "cat"}


def passes_of(fx, name):
    return importlib.import_module(f"{fx.__name__}.passes.{name}")


def chain_of(T):
    return lambda x, y: T.relu(T.add(x, y)) * T.add(T.sin(T.relu(T.add(x, 1))), y)


def around(T):
    """What is not taken stands between."""

    def f(x, y):
        a = T.add(x, y)
        b = T.sin(a)
        c = T.relu(a)
        d = T.mul(b, c)
        return T.add(d, a), T.cos(d)

    return f


def beside(T):
    def f(x, y):
        a, b = T.relu(T.add(x, 1)), T.relu(T.add(y, 2))
        return T.sin(a), T.cos(b), T.mul(x, y)

    return f


def parts(T):
    def f(x, y):
        first, second = T.split(T.add(x, y), 1)
        return T.relu(T.add(first, second)), T.sin(first)

    return f


def lonely(T):
    return lambda x, y: T.sin(T.add(T.sin(x), y))


def deep(T):
    def f(x, y):
        for i in range(4):
            x = T.add(T.relu(x), y)
            y = T.sin(y) if i % 2 else T.mul(y, x)
        return x, y

    return f


PROGRAMS = [chain_of, around, beside, parts, lonely, deep]


def partitioned(T, fx, program, **how):
    made = fx.symbolic_trace(program(T))
    support = passes_of(fx, "operator_support").create_op_support(
        lambda modules, node: node.op == "call_function" and node.target.__name__ in TAKEN
    )
    part = passes_of(fx, "infra.partitioner").CapabilityBasedPartitioner(made, support, **how)
    found = part.propose_partitions()
    told = sorted(sorted(n.name for n in p.nodes) for p in found)
    fused = part.fuse_partitions(found)
    fused.graph.lint()
    calls = [n.op for n in fused.graph.nodes]
    fused.recompile()
    x, y = T.arange(4.0).reshape(2, 2) / 4, T.ones(2, 2)
    wanted, got = program(T)(x, y), fused(x, y)
    same = [bool(T.equal(a, b)) for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (wanted, got)))]
    return told, sorted(calls), same


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("how", [{}, {"allows_single_node_partition": True}, {"skip_horizontal_fusion": True}], ids=str)
def test_partitions_are_those_of_pytorch(program, how):
    found = partitioned(tg, tg.fx, program, **how)
    assert all(found[2])
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    pytest.importorskip("torch.fx")
    assert found == partitioned(torch, torch.fx, program, **how)


def test_what_computes_nothing_is_taken_from_the_ends():
    made = tg.fx.symbolic_trace(lambda x: tg.relu(tg.relu(tg.square(tg.square(x))).exp()))
    relus = made.graph.find_nodes(op="call_function", target=tg.relu)
    squares = made.graph.find_nodes(op="call_function", target=tg.square)
    part = CapabilityBasedPartitioner(made, OperatorSupport(), non_compute_ops=["tinygrad_ext.square"])
    one, two = Partition(0, [*squares, relus[0]]), Partition(1, [squares[0], relus[0], squares[1]])
    part.remove_bookend_non_compute_ops([one, two])
    assert list(one.nodes) == [relus[0]] and list(two.nodes) == [relus[0]] and one.size() == 1


def test_nodes_that_something_stands_between_are_no_partition():
    made = tg.fx.symbolic_trace(around(tg))
    add, sin, relu, mul, last, _ = made.graph.find_nodes(op="call_function", target=None)
    assert validate_partition([add, sin, mul, relu]) and not validate_partition([add, mul])
    with pytest.raises(AssertionError, match="dependency cycles"):
        fuse_as_graphmodule(made, [add, mul], "part")
    with pytest.raises(AssertionError, match="doesn't belong"):
        fuse_as_graphmodule(tg.fx.symbolic_trace(around(tg)), [add], "part")
    part, given, gives = fuse_as_graphmodule(made, [relu, mul], "part", always_return_tuple=True)
    assert given == (add, sin) and gives == (mul,) and type(part).__name__ == "part"
    assert part(tg.ones(1), tg.ones(1) * 3)[0].item() == 3


def test_graphs_are_put_in_order():
    made = tg.fx.symbolic_trace(chain_of(tg))
    x, y = tg.ones(2), tg.ones(2) * 2
    wanted, nodes = made(x, y), list(made.graph.nodes)
    nodes[3].append(nodes[2])
    with pytest.raises(RuntimeError, match="before it has been defined"):
        made.graph.lint()
    legalize_graph(made).graph.lint()
    assert made(x, y).equal(wanted)
    first, second = made.graph.find_nodes(op="call_function", target=tg.relu)
    first.args, second.args = (second,), (first,)
    with pytest.raises(RuntimeError, match="circle"):
        legalize_graph(made)


# ---- what is supported


class Net(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = tg.nn.Linear(2, 2)

    def forward(self, x):
        return tg.relu(self.fc(x)).exp() + x.long()


def supported(support, made):
    modules = dict(made.named_modules())
    return [n.name for n in made.graph.nodes if n.op.startswith("call") and support.is_node_supported(modules, n)]


def test_support_by_tables_names_and_dtypes():
    made = tg.fx.symbolic_trace(Net())
    tg.fx.passes.shape_prop.ShapeProp(made).propagate(tg.ones(2))
    table = {"tinygrad_ext.nn.modules.linear.Linear": None, "exp": None, "operator.add": (((tg.float32,),), {})}
    targets = {n.name: get_node_target(dict(made.named_modules()), n) for n in made.graph.nodes if "call" in n.op}
    assert targets["relu"] == "tinygrad_ext.relu" and targets["exp"] == "exp" and targets["fc"].endswith(".Linear")
    table = {targets["fc"]: None, "exp": None, targets["add"]: (((tg.float32,), (tg.float32,)), {})}
    by_table = OperatorSupport(table)
    assert supported(by_table, made) == ["fc", "exp"]
    named = OpSupports.decline_if_node_in_names({"exp"})
    assert supported(chain(by_table, named), made) == ["fc"]
    integers = OpSupports.decline_if_input_dtype(tg.int64)
    assert supported(integers, made) == ["fc", "relu", "exp", "long"]
    every = create_op_support(lambda modules, node: node.name == "relu")
    assert supported(any_chain(by_table, every), made) == ["fc", "relu", "exp"]
    with pytest.raises(RuntimeError, match="run ShapeProp"):
        supported(integers, tg.fx.symbolic_trace(Net()))
    with pytest.raises(AssertionError, match="placeholder"):
        get_node_target({}, next(iter(made.graph.nodes)))


# ---- passes in order


class Replace(PassBase):
    def __init__(self, old, new):
        self.old, self.new, self.seen = old, new, []

    def requires(self, graph_module):
        self.seen.append("requires")

    def ensures(self, graph_module):
        self.seen.append("ensures")

    def call(self, graph_module):
        found = graph_module.graph.find_nodes(op="call_function", target=self.old)
        for node in found:
            node.target = self.new
        return PassResult(graph_module, bool(found))


def test_passes_run_until_nothing_changes():
    made = tg.fx.symbolic_trace(lambda x: tg.relu(x))
    first, second = Replace(tg.relu, tg.sin), Replace(tg.sin, tg.cos)
    result = PassManager([second, first], steps=5)(made)
    assert result.modified and result.graph_module(tg.zeros(1)).item() == 1
    assert first.seen == ["requires", "ensures"] * 3
    assert not PassManager([first], steps=5)(made).modified


def test_constraints_and_checks():
    def one(gm):
        steps.append("one")

    def two(gm):
        steps.append("two")

    def broken(gm):
        raise ValueError("no")

    steps, made = [], tg.fx.symbolic_trace(lambda x: x)
    one, two, broken = map(pass_result_wrapper, (one, two, broken))
    manager = PassManager([two, one])
    manager.add_constraint(this_before_that_pass_constraint(one, two))
    with pytest.raises(RuntimeError, match="schedule constraint violated"):
        manager.validate_constraints()
    assert manager(made).modified and steps == ["one", "two"]
    manager.validate_constraints()
    manager.add_constraint(this_before_that_pass_constraint(two, one))
    with pytest.raises(RuntimeError, match="no order"):
        manager(made)
    with pytest.raises(TypeError, match="one variable"):
        manager.add_checks(lambda gm, number: None)

    def check(graph_module):
        steps.append("check")

    manager = PassManager([one, two], run_checks_after_each_pass=True)
    manager.add_checks(check)
    del steps[:]
    manager(made)
    assert steps == ["check", "one", "check", "two", "check"]
    manager.add_pass(broken)
    with pytest.raises(Exception, match="'broken' pass after the following passes: \\['one', 'two'\\]"):
        manager(made)
    with pytest.raises(Exception, match="running"):
        PassManager([lambda gm: gm])(made)
    assert pass_result_wrapper(None) is None


# ---- the same twice


def twice(T):
    def f(x, y):
        a, b = T.relu(x + y), T.relu(x + y)
        c, d = (x * 1).sum(0), (x * 1.0).sum(0)
        e, g = T.cat([a, b], 0), T.cat([a, b], dim=0)
        return a * b, c, d, e, g, x[:1], x[:1], T.rand_like(x) - T.rand_like(x)

    return f


def test_what_is_computed_twice_is_computed_once():
    from tinygrad_ext.fx.passes.dialect.common.cse_pass import CSEPass

    made = tg.fx.symbolic_trace(twice(tg))
    x, y = tg.randn(2, 2), tg.randn(2, 2)
    result = CSEPass()(made)
    found = [n.target for n in result.graph_module.graph.nodes if n.op == "call_function"]
    assert result.modified and found.count(operator.add) == found.count(tg.relu) == 1
    assert found.count(operator.mul) == 3 and found.count(tg.rand_like) == 2 and found.count(operator.getitem) == 1
    for a, b in zip(result.graph_module(x, y)[:-1], made(x, y)[:-1]):
        assert a.equal(b)
    assert not CSEPass()(result.graph_module).modified
    kept = CSEPass(banned_ops={tg.relu})(made).graph_module
    assert len(kept.graph.find_nodes(op="call_function", target=tg.relu)) == 2
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    pytest.importorskip("torch.fx")
    cse = importlib.import_module("torch.fx.passes.dialect.common.cse_pass").CSEPass
    simple = lambda T: lambda x, y: T.add(T.relu(T.add(x, y)), T.relu(T.add(x, y)))
    wanted = cse()(torch.fx.symbolic_trace(simple(torch))).graph_module.graph
    assert programs.nodes(CSEPass()(tg.fx.symbolic_trace(simple(tg))).graph_module.graph) == programs.nodes(wanted)
