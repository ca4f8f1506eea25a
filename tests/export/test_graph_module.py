"""ExportedProgram.graph_module and module(): fx graphs of ops, which passes read and change."""

import copy
import importlib.util
import io
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import export, fx, jit, nn, optim
from tinygrad_ext.export import Dim, InputKind

HAVE_TORCH = importlib.util.find_spec("torch") is not None


def net(T, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.unused = nn.Linear(3, 4), nn.Linear(2, 2)
            self.norm = nn.BatchNorm1d(4)
            self.register_buffer("count", T.zeros(()))
            self.held = T.arange(4.0)

        def forward(self, x, ys, *, k):
            self.count.add_(1)
            h = self.norm(self.fc(x)).relu() * k + self.held + ys["a"][0]
            return {"h": h, "more": (x.shape[0], h.sum(), h.max(1)[0], None)}

    T.manual_seed(0)
    return Net()


def example(T, n=5):
    return (T.arange(3.0 * n).reshape(n, 3).cos(), {"a": [T.ones(4), T.zeros(2)]}), {"k": T.tensor(3.0)}


def exported(T=tg, nn=nn):
    module = net(T, nn)
    args, kwargs = example(T)
    return module, T.export.export(module, args, kwargs)


def rows(program, args, kwargs):
    """What the graph module takes, flat."""
    held = {**dict(program.named_parameters()), **dict(program.named_buffers()), **program.constants}
    user = iter([args[0], *args[1]["a"], kwargs["k"]])
    specs = program.graph_signature.input_specs
    return [next(user) if spec.target is None else held[spec.target] for spec in specs]


def said(program):
    """Names and kinds of a signature, and the placeholders and calls of its graph."""
    signature, nodes = program.graph_signature, list(program.graph.nodes)
    return {
        "inputs": [(s.kind.name, s.target, s.arg.name, s.persistent) for s in signature.input_specs],
        "placeholders": [(n.name, n.target) for n in nodes if n.op == "placeholder"],
        "parameters": signature.inputs_to_parameters,
        "buffers": signature.inputs_to_buffers,
        "constants": signature.inputs_to_lifted_tensor_constants,
        "user inputs": list(signature.user_inputs),
        "user outputs": [s.kind.name for s in signature.output_specs if s.kind.name == "USER_OUTPUT"],
        "plain ops": [str(n.target) for n in nodes if str(n.target) in ("aten.linear.default", "aten.relu.default")],
    }


def test_the_graph_module_has_the_inputs_that_pytorch_has():
    _, ours = exported()
    assert [s.kind for s in ours.graph_signature.input_specs].count(InputKind.PARAMETER) == 6
    if HAVE_TORCH:
        import torch

        assert said(ours) == said(exported(torch, torch.nn)[1])


def test_it_gives_what_the_module_gives_and_changes_nothing():
    module, program = exported()
    twin = copy.deepcopy(module)
    args, kwargs = example(tg, 5)
    assert isinstance(program.graph_module, fx.GraphModule) and program.graph_module is program.graph_module
    program.graph.lint()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    got, wanted = program.graph_module(*rows(program, args, kwargs)), twin(*args, **kwargs)
    assert all(v.equal(before[k]) for k, v in module.state_dict().items())
    specs = program.graph_signature.output_specs
    written = {s.target: value for s, value in zip(specs, got) if s.target is not None}
    assert written.keys() == {"count", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert all(value.equal(twin.state_dict()[name]) for name, value in written.items())
    h, n, total, most, nothing = [value for s, value in zip(specs, got) if s.target is None]
    assert h.equal(wanted["h"]) and (n, nothing) == (5, None)
    assert total.equal(wanted["more"][1]) and most.equal(wanted["more"][2])


def test_nodes_tell_what_they_are_and_where_they_come_from():
    _, program = exported()
    linear = program.graph.find_nodes(op="call_function", target=tg.ops.aten.linear.default)[0]
    assert linear.meta["val"].shape == (5, 4) and linear.meta["val"].is_meta
    assert list(linear.meta["nn_module_stack"].values()) == [("", "Net"), ("fc", "Linear")]
    assert "test_graph_module.py" in linear.meta["stack_trace"]
    assert all("val" in n.meta for n in program.graph.nodes if n.op == "placeholder")
    text = str(program)
    assert 'linear: "f32[5, 4]" = ' in text and 'p_fc_weight: "f32[4, 3]"' in text and "self.norm(self.fc(x))" in text


def test_results_are_those_of_pytorch():
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    results = []
    for T, module in ((tg, net(tg, nn)), (torch, net(torch, torch.nn))):
        with T.no_grad():
            for i, p in enumerate(module.parameters()):
                p.copy_(T.arange(1.0 * p.numel()).reshape(p.shape).sin() + i)
        program = T.export.export(module, *example(T))
        made = program.module()
        made.recompile()
        args, kwargs = example(T)
        found = made(*args, **kwargs)
        results.append(
            [found["h"].tolist(), found["more"][1].item(), made.count.item(), made.norm.running_var.tolist()]
        )
    for ours, theirs in zip(*results):
        assert tg.allclose(tg.tensor(ours), tg.tensor(theirs), 1e-5, 1e-5)


def test_sizes_that_are_open_are_nodes_and_others_are_numbers():
    class Rows(nn.Module):
        def forward(self, x, k):
            return x.reshape(x.shape[0] * x.shape[1]) * x.shape[1] + k

    program = export.export(Rows(), (tg.ones(4, 3), 2), dynamic_shapes=({0: Dim("n")}, None))
    assert program.graph_module(tg.ones(7, 3), 5)[0].equal(tg.full((21,), 8.0))
    made = program.module()
    assert "3" in str(made.graph) and len(made.graph.find_nodes(op="call_method", target="size")) == 1
    made.recompile()
    assert made(tg.ones(2, 3), 1).equal(tg.full((6,), 4.0))


# ---- module() ------------------------------------------------------------------------------------------------------


def test_the_module_is_a_graph_module_that_runs_the_plan_until_it_is_recompiled():
    module, program = exported()
    twin = copy.deepcopy(module)
    made = program.module()
    assert isinstance(made, fx.GraphModule) and made.fc.weight is module.fc.weight
    assert list(made.state_dict()) == list(module.state_dict())
    args, kwargs = example(tg, 5)
    for change in (lambda: None, made.recompile):
        change()
        got, wanted = made(*args, **kwargs), twin(*args, **kwargs)
        assert got["h"].equal(wanted["h"]) and got["more"][0] == 5 and got["more"][3] is None
        assert made.count.equal(twin.count) and made.norm.running_mean.equal(twin.norm.running_mean)
    assert "self.fc.weight" in made.code and "_leaves_of(x, ys, k)" in made.code
    made.graph.lint()
    made.graph.eliminate_dead_code()
    assert len(made.graph.find_nodes(op="call_function", target=tg.ops.aten.copy_.default)) == 4


def test_a_pass_changes_the_module():
    made = exported()[1].module()
    args, kwargs = example(tg)
    relu = made.graph.find_nodes(op="call_function", target=tg.ops.aten.relu.default)[0]
    relu.target = tg.ops.aten.sigmoid.default
    before = made(*args, **kwargs)["h"]
    made.recompile()
    assert not made(*args, **kwargs)["h"].equal(before)
    with pytest.raises(RuntimeError, match="fx graph was changed"):
        jit.save(made, io.BytesIO())


def test_a_pass_changes_the_program():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            return self.fc(x).relu()

    program = export.export(Net(), (tg.ones(2, 3),))
    for node in program.graph.nodes:
        if node.target is tg.ops.aten.relu.default:
            node.target = tg.ops.aten.neg.default
    program.graph_module.recompile()
    x = tg.randn(2, 3)
    weight, bias = program.state_dict["fc.weight"], program.state_dict["fc.bias"]
    assert program.module()(x).equal(-nn.functional.linear(x, weight, bias))
    for refused in (lambda: export.save(program, io.BytesIO()), program.run_decompositions,
                    lambda: export.unflatten(program)):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"export\(program.module\(\), args\)"):
            refused()
    again = export.export(program.module(), (x,))
    assert again.module()(x).equal(program.module()(x))


def test_copies_and_files():
    _, program = exported()
    made = program.module()
    args, kwargs = example(tg)
    other = copy.deepcopy(made)
    assert other.fc.weight is not made.fc.weight and copy.copy(made).fc.weight is made.fc.weight
    file = io.BytesIO()
    jit.save(made, file)
    loaded = jit.load(io.BytesIO(file.getvalue()))
    pickled = pickle.loads(pickle.dumps(made))
    wanted = made(*args, **kwargs)["h"]
    assert made.count.item() == 1 and other.count.item() == 0
    for run in (other, loaded, pickled):
        assert run(*args, **kwargs)["h"].equal(wanted)
    other.recompile()
    assert copy.deepcopy(other)(*args, **kwargs)["h"].shape == wanted.shape


def test_random_numbers_are_drawn_when_it_runs():
    held = tg.Generator()

    class Noise(nn.Module):
        def forward(self, x):
            return nn.functional.dropout(x, 0.5) + tg.rand(x.shape, generator=held)

    program = export.export(Noise(), (tg.ones(6),))
    made = program.module()
    results = []
    for run in (made, program.module()):
        tg.manual_seed(3)
        held.manual_seed(4)
        results.append(run(tg.ones(6)))
        made.recompile()
    tg.manual_seed(3)
    held.manual_seed(4)
    results.append(program.graph_module(held, tg.ones(6))[0])
    tg.manual_seed(3)
    held.manual_seed(4)
    results.append(made(tg.ones(6)))
    assert all(r.equal(results[0]) for r in results)


def test_branches_are_modules():
    class Net(nn.Module):
        def forward(self, x):
            return tg.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    program = export.export(Net(), (tg.ones(3),))
    made = program.module()
    assert "def forward(self, arg0_1" in str(program)
    made.recompile()
    for x in (tg.ones(3), -tg.ones(3)):
        assert made(x).equal(Net()(x)) and program.graph_module(x)[0].equal(Net()(x))


def test_a_parameter_is_written_to():
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(tg.ones(2))

        def forward(self, x):
            with tg.no_grad():
                self.weight.mul_(x)
            return self.weight * 2

    made = export.export(Step(), (tg.full((2,), 3.0),)).module()
    made.recompile()
    assert made(tg.full((2,), 3.0)).tolist() == [6, 6] and made.weight.tolist() == [3, 3]
    assert isinstance(made.weight, nn.Parameter)


def test_state_that_is_no_tensor_is_an_input_but_not_written_by_the_graph_of_the_module():
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)
            self.opt = optim.SGD(self.fc.parameters(), lr=0.1)

        def forward(self, x):
            self.opt.zero_grad()
            self.fc(x).square().sum().backward()
            self.opt.step()
            return x

    program = export.export(Step(), (tg.ones(3, 2),))
    (rate,) = [s for s in program.graph_signature.input_specs if s.target == "opt.0.lr"]
    assert isinstance(rate.arg, export.SymFloatArgument)
    with pytest.raises(RuntimeError, match="changes fc.weight.grad, which is no tensor"):
        _ = program.module().graph


def test_names_that_fx_has_are_put_beside():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("graph", tg.ones(2))
            self.register_buffer("code", tg.ones(2))

        def forward(self, meta):
            return self.graph + self.code + meta

    made = export.export(Net(), (tg.ones(2),)).module()
    assert made(tg.ones(2)).tolist() == [3, 3]
    made.recompile()
    assert made(tg.ones(2)).tolist() == [3, 3]


def test_without_an_example_there_is_no_fx_graph():
    _, program = exported()
    program.example_inputs = None
    with pytest.raises(RuntimeError, match="no example_inputs"):
        _ = program.graph_module
    args, kwargs = example(tg)
    assert program.module()(*args, **kwargs)["h"].shape == (5, 4)


def test_arguments_may_be_called_as_states_are():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", tg.ones(2))
            self.x = nn.Linear(2, 2)

        def forward(self, a, b, x_weight):
            self.b.add_(a)
            return a + b * 10 + self.b + self.x(x_weight)

    module, x = Twice(), tg.ones(2)
    for is_recompiled in (False, True):
        run = export.export(copy.deepcopy(module), (x, x, x)).module()
        if is_recompiled:
            run.graph.lint()
            run.recompile()
        own = copy.deepcopy(module)
        for _ in range(2):
            assert run(x, 5 * x, 2 * x).equal(own(x, 5 * x, 2 * x))
        assert run.b.equal(own.b) and x.equal(tg.ones(2))


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("is_recompiled", [False, True])
def test_a_module_that_writes_to_its_argument(is_nested, is_recompiled):
    class Written(nn.Module):
        def forward(self, x):
            x = x["a"] if is_nested else x
            x.add_(1)
            return x * 2

    def given(n):
        return {"a": tg.ones(n)} if is_nested else tg.ones(n)

    sizes = {"x": {"a": {0: Dim("n")}} if is_nested else {0: Dim("n")}}
    program = export.export(Written(), (given(2),), dynamic_shapes=sizes)
    file = io.BytesIO()
    export.save(program, file)
    file.seek(0)
    for each in (program, export.load(file), program.run_decompositions()):
        run, x = each.module(), given(5)
        if is_recompiled:
            run.graph.lint()
            run.recompile()
        assert run(x).equal(tg.full((5,), 4.0))
        assert (x["a"] if is_nested else x).equal(tg.full((5,), 2.0))


@pytest.mark.parametrize("mode", [tg.no_grad, tg.inference_mode])
def test_what_is_exported_without_gradients_can_be_trained(mode):
    module = nn.Linear(2, 2)
    with mode():
        run = export.export(module, (tg.ones(2),)).module()
    assert run(tg.ones(2)).requires_grad
    run.graph.lint()
    run.recompile()
    assert run(tg.ones(2)).requires_grad


def test_a_copy_has_the_graph_as_it_was_changed():
    class Doubled(nn.Module):
        def forward(self, x):
            return x * 2.0

    run = export.export(Doubled(), (tg.ones(2),)).module()
    for node in run.graph.nodes:
        if node.op == "call_function":
            node.args = (node.args[0], 3.0)
    copied = copy.deepcopy(run)
    copied.recompile()
    assert copied(tg.ones(2)).tolist() == [3, 3] and run(tg.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("is_recompiled", [False, True])
def test_what_has_running_statistics_is_exported_again(is_recompiled):
    own, x = nn.BatchNorm1d(3), tg.randn(5, 3)
    run = export.export(copy.deepcopy(own), (x,)).module()
    if is_recompiled:
        run.graph.lint()
        run.recompile()
    again = export.export(run, (x,)).module()
    assert again(x).equal(own(x)) and again.running_var.equal(own.running_var) and again.num_batches_tracked == 1
