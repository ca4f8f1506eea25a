"""run_decompositions: ops of an exported program become what functions of a table make of them."""

import importlib.util

import pytest
from captured import leaves, mapped

import tinygrad_ext as tg
from tinygrad_ext import export, nn
from tinygrad_ext.export import Dim, default_decompositions
from tinygrad_ext.testing import sweep

HAVE_TORCH = importlib.util.find_spec("torch") is not None
OPS = {op.name: op for op in sweep.ops()}
DEFAULT = {op.name(): op for op in default_decompositions()}


class Calls(nn.Module):
    """One call; its tensors are the module's arguments."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *args):
        return self.call(*args)


def ops_of(program):
    return [node.op for node in program.captured.walk()]


def net(T, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 3)
            self.register_buffer("count", T.zeros(1))

        def forward(self, x):
            self.count += 1
            return {"y": self.second(nn.functional.silu(self.first(x))), "x": x}

    T.manual_seed(0)
    return Net()


def linear_of(T, seen=None):
    def linear(x, weight, bias=None):
        if seen is not None:
            seen.append(x.shape)
        return T.add(T.matmul(x, T.transpose(weight, 0, 1)), bias)

    return linear


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DEFAULT)
def test_a_default_decomposition_gives_results_and_gradients_of_the_op(name):
    gradients = 0
    for sample in sweep.samples(OPS[name], "float32"):
        given = leaves((sample.args, sample.kwargs))

        def call(*tensors, sample=sample):
            rest = iter(tensors)
            args, kwargs = mapped(lambda _: next(rest), (sample.args, sample.kwargs))
            return sweep.call(OPS[name], args, kwargs)

        exported = export.export(Calls(call), tuple(given))
        if name not in ops_of(exported):  # by a size it was something else
            continue
        made = exported.run_decompositions()
        assert not set(ops_of(made)) & set(DEFAULT), made.captured
        gradients += same(exported.module(), made.module(), given)
    assert gradients or name in WITHOUT_GRADIENT


WITHOUT_GRADIENT = {"aten::isposinf", "aten::isneginf", "aten::logical_xor", "aten::count_nonzero"}
WITHOUT_GRADIENT |= {"aten::count_nonzero.dim_IntList"}


def same(before, after, given):
    """Whether two modules give the same, and the same gradients where there are any."""
    results, inputs = [], []
    for module in (before, after):
        tensors = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in given]
        result = module(*tensors)
        results.append(result)
        if result.requires_grad:
            tg.manual_seed(1)
            tensors = [t for t in tensors if t.requires_grad]
            inputs.append(tg.autograd.grad((result * tg.randn(result.shape)).sum(), tensors, allow_unused=True))
    one, two = results
    assert one.dtype == two.dtype and tg.allclose(one, two, 1e-4, 1e-5, equal_nan=True), (one, two)
    for a, b, t in zip(*inputs or ((), ()), [t for t in given if t.is_floating_point()]):
        a, b = (tg.zeros_like(t) if g is None else g for g in (a, b))  # one adds zero times a tensor, one nothing
        assert tg.allclose(a, b, 1e-4, 1e-5, equal_nan=True), (a, b)
    return bool(inputs)


@pytest.mark.parametrize(
    "given, bias, told",
    [
        ((5, 3), True, "permute addmm"),
        ((5, 3), False, "permute mm"),
        ((2, 5, 3), True, "permute view addmm view"),
        ((2, 5, 3), False, "permute view mm view"),
        ((3,), True, "permute view addmm view"),
    ],
)
def test_layers_are_told_by_products_of_matrices(given, bias, told):
    layer, x = nn.Linear(3, 4, bias=bias), tg.randn(given)
    program = export.export(layer, (x,)).run_decompositions()
    called = [node.target.name() for node in program.graph.nodes if node.op == "call_function"]
    assert called == [f"aten::{name}" for name in told.split()]
    assert tg.allclose(program.module()(x), layer(x), 1e-5, 1e-6)
    if len(given) > 1:
        sizes = {"input": {0: Dim("n")}}
        program = export.export(layer, (x,), dynamic_shapes=sizes).run_decompositions()
        more = tg.randn(7, *given[1:])
        assert tg.allclose(program.module()(more), layer(more), 1e-5, 1e-6)


def test_a_table_of_ones_own():
    module, x, seen = net(tg, nn), tg.randn(5, 3), []
    program = export.export(module, (x,), dynamic_shapes={"x": {0: Dim("batch")}})
    made = program.run_decompositions({tg.ops.aten.linear.default: linear_of(tg, seen)})
    assert "aten::linear" in ops_of(program) and "aten::linear" not in ops_of(made) and "aten::silu" in ops_of(made)
    assert [tuple(shape) for shape in seen] == [(5, 3), (5, 4)]
    for n in (5, 2, 9):
        x = tg.randn(n, 3)
        run = made.module()
        assert tg.allclose(run(x)["y"], module(x)["y"], 1e-5, 1e-6) and run.first.weight is module.first.weight
    assert module.count.item() == 6  # both write to it
    assert made.graph_signature.buffers_to_mutate.values() and made.range_constraints == program.range_constraints
    lines = {node.op: node.line for node in made.captured.walk()}
    assert lines["aten::matmul"] == next(n.line for n in program.captured.walk() if n.op == "aten::linear")


def test_an_empty_table_changes_nothing():
    program = export.export(net(tg, nn), (tg.ones(2, 3),))
    assert program.run_decompositions({}).captured == program.captured
    assert {"aten::linear", "aten::silu"} <= set(ops_of(program))


def test_what_functions_call_is_decomposed_too_but_not_the_op_itself():
    program = export.export(net(tg, nn), (tg.ones(2, 3),))
    made = program.run_decompositions(
        {
            tg.ops.aten.silu: lambda x: tg.ops.aten.silu(x) + tg.relu(x),
            tg.ops.aten.relu: lambda x: x.clamp(min=0),
        }
    )
    found = ops_of(made)
    assert "aten::silu" in found and "aten::clamp" in found and "aten::relu" not in found


def test_several_results_and_written_arguments():
    module = nn.BatchNorm1d(3)

    def norm(x, weight, bias, mean, var, training, momentum, eps):
        center, spread = x.mean(0), x.var(0, correction=0)
        mean.mul_(1 - momentum).add_(center * momentum)
        var.mul_(1 - momentum).add_(spread * momentum * (x.shape[0] / (x.shape[0] - 1)))
        return (x - center) / (spread + eps).sqrt() * weight + bias, center, (spread + eps).rsqrt()

    program = export.export(module, (tg.randn(5, 3),))
    made = program.run_decompositions({tg.ops.aten.native_batch_norm.default: norm})
    assert "aten::native_batch_norm" not in ops_of(made)
    twin, x = nn.BatchNorm1d(3), tg.randn(5, 3)
    assert tg.allclose(made.module()(x), twin(x), 1e-4, 1e-5)
    assert tg.allclose(module.running_var, twin.running_var) and tg.allclose(module.running_mean, twin.running_mean)


def test_branches_and_loops_are_gone_through():
    @tg.jit.script
    def inner(x):
        for _ in range(x.size(0)):
            x = tg.nn.functional.silu(x) + 1
        return x

    class Net(nn.Module):
        def forward(self, x):
            return inner(x)

    program = export.export(Net(), (tg.ones(3),), dynamic_shapes={"x": {0: Dim("n")}})
    made = program.run_decompositions({tg.ops.aten.silu: lambda x: x * tg.sigmoid(x)})
    assert "aten::silu" in ops_of(program) and "aten::silu" not in ops_of(made)
    for n in (0, 1, 5):
        x = tg.randn(n)
        assert tg.allclose(made.module()(x), inner(x))


outside = tg.ones(1)
REFUSED = {
    "a text for an op": ({"aten::silu": abs}, TypeError, "maps ops to functions"),
    "no function": ({tg.ops.aten.silu: 1}, TypeError, "maps ops to functions"),
    "too few arguments": ({tg.ops.aten.silu: lambda: 1}, RuntimeError, "silu at .*does not take its arguments"),
    "a tensor from outside": ({tg.ops.aten.silu: lambda x: x * outside}, RuntimeError, "uses what is no argument"),
    "a write": ({tg.ops.aten.silu: lambda x: x.mul_(2)}, RuntimeError, "writes to its argument"),
    "two results": ({tg.ops.aten.native_batch_norm: lambda *a: a[:2]}, RuntimeError, "gives 3 results, the function 2"),
    "random numbers": ({tg.ops.aten.bernoulli: lambda x, **_: x}, RuntimeError, "draws random numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_by_line(name):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            return nn.functional.silu(self.norm(x)) + tg.bernoulli(x.sigmoid())

    table, kind, said = REFUSED[name]
    with pytest.raises(kind, match=said):
        export.export(Net(), (tg.randn(5, 3),)).run_decompositions(table)


@pytest.mark.skipif(not HAVE_TORCH, reason="compares with PyTorch")
@pytest.mark.filterwarnings("ignore")
def test_a_table_gives_the_ops_that_pytorch_has():
    import torch

    def done(T, nn, export, ops, nodes):
        program = export.export(net(T, nn), (T.ones(2, 3),))
        table = {ops.linear.default: linear_of(T), ops.silu.default: lambda x: T.mul(x, T.sigmoid(x))}
        return nodes(program.run_decompositions(table))

    found = done(tg, nn, export, tg.ops.aten, ops_of)
    wanted = done(
        torch, torch.nn, torch.export, torch.ops.aten,
        lambda p: [str(n.target) for n in p.graph.nodes if n.op == "call_function"],
    )  # fmt: skip
    named = [op.replace("aten::", "aten.") for op in found if op.startswith("aten")]
    assert [op if op.count(".") > 1 else f"{op}.default" for op in named] == wanted
