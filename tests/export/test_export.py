"""export: one graph with its state, for sizes that were declared; saved, loaded, and refused like PyTorch."""

import importlib.util
import io

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import export, jit, nn
from tinygrad_ext.export import Dim, InputKind, OutputKind, UserError

HAVE_TORCH = importlib.util.find_spec("torch") is not None


def net(T, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 4)
            self.register_buffer("count", T.zeros(4))
            self.register_buffer("passing", T.ones(1), persistent=False)

        def forward(self, x, pair=None, scale=2.0):
            self.count.add_(1)
            y = self.fc(x) * scale + self.count + self.passing
            return {"y": y, "z": (x, y.sum(0))} if pair is None else y + pair[0] @ pair[1]

    return Net()


def exported(**dynamic):
    module = net(tg, nn)
    return module, export.export(module, (tg.randn(5, 3),), dynamic_shapes=dynamic or None)


def refusal(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None


def filed(program):
    file = io.BytesIO()
    export.save(program, file)
    file.seek(0)
    return export.load(file)


def test_the_module_of_a_program_gives_the_bits_of_the_module():
    module, program = exported(x={0: Dim("batch")})
    twin = net(tg, nn)
    twin.load_state_dict(module.state_dict())
    run = program.module()
    for n in (5, 1, 17):
        x = tg.randn(n, 3)
        got, wanted = run(x), twin(x)
        assert got["y"].equal(wanted["y"]) and got["z"][1].equal(wanted["z"][1])
    assert run.count.equal(twin.count) and run.fc.weight is module.fc.weight


def test_gradients_reach_the_parameters():
    module, program = exported()
    x = tg.randn(5, 3)
    program.module()(x)["y"].square().sum().backward()
    got, module.fc.weight.grad = module.fc.weight.grad, None
    module.count.zero_()
    module(x)["y"].square().sum().backward()
    assert got.equal(module.fc.weight.grad)


def test_signature_and_state():
    module, program = exported()
    signature = program.graph_signature
    assert set(signature.parameters) == {"fc.weight", "fc.bias"} and signature.user_inputs == ["x"]
    assert set(signature.buffers) == {"count", "passing"} and signature.non_persistent_buffers == ["passing"]
    assert list(signature.buffers_to_mutate.values()) == ["count"]
    assert [s.kind for s in signature.output_specs] == [OutputKind.BUFFER_MUTATION, *[OutputKind.USER_OUTPUT] * 3]
    assert {s.kind for s in signature.input_specs} == {InputKind.PARAMETER, InputKind.BUFFER, InputKind.USER_INPUT}
    assert set(program.state_dict) == set(module.state_dict()) and list(program.constants) == ["passing"]
    assert [n for n, _ in program.named_parameters()] == ["fc.weight", "fc.bias"]
    assert program.example_inputs[0][0].shape == (5, 3)
    assert "BUFFER target='count'" in str(program) and "aten.linear.default" in str(program)


def test_the_flat_module_takes_what_the_signature_lists():
    module, program = exported()
    x = tg.randn(5, 3)
    held = {**dict(program.named_parameters()), **dict(program.named_buffers())}
    rows = [x if spec.target is None else held[spec.target] for spec in program.graph_signature.input_specs]
    count, y, same, total = program.graph_module(*rows)
    assert count.equal(tg.ones(4)) and module.count.equal(tg.zeros(4)) and same is x
    assert y.sum(0).equal(total)


def test_a_file_holds_program_sizes_and_example():
    _, program = exported(x={0: Dim("batch", min=2, max=64)})
    loaded = filed(program)
    x = tg.randn(9, 3)
    assert loaded.module()(x)["y"].equal(program.module()(x)["y"])
    assert loaded.range_constraints == program.range_constraints == {"batch": (2, 64)}
    assert loaded.example_inputs[0][0].equal(program.example_inputs[0][0])
    with pytest.raises(AssertionError, match=r"x.shape\[1\] is 4, but the program was exported for 3"):
        loaded.module()(tg.randn(9, 4))


def test_jit_load_takes_the_file_and_export_load_takes_no_other(tmp_path):
    _, program = exported()
    export.save(program, tmp_path / "net.pt2")
    assert jit.load(tmp_path / "net.pt2")(tg.randn(5, 3))["y"].shape == (5, 4)
    jit.save(jit.trace(nn.ReLU(), tg.ones(2)), tmp_path / "traced.pt")
    with pytest.raises(RuntimeError, match="holds no exported program"):
        export.load(tmp_path / "traced.pt")
    with pytest.raises(TypeError, match="must be an ExportedProgram, not ReLU"):
        export.save(nn.ReLU(), tmp_path / "no.pt2")


# ---- sizes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((7, 4), r"x.shape\[1\] is 4, but the program was exported for 3"),
        ((1, 3), r"x.shape\[0\] is 1: batch is from 2 to 64"),
        ((70, 3), r"x.shape\[0\] is 70: batch is from 2 to 64"),
        ((3,), "x has 1 dimensions, but the program was exported for 2"),
    ],
)
def test_sizes_that_were_not_declared_are_refused_by_name(given, message):
    _, program = exported(x={0: Dim("batch", min=2, max=64)})
    with pytest.raises(AssertionError, match=message):
        program.module()(tg.randn(given))


def test_without_a_declaration_every_size_is_that_of_the_example():
    _, program = exported()
    with pytest.raises(AssertionError, match=r"x.shape\[0\] is 6, but the program was exported for 5"):
        program.module()(tg.randn(6, 3))
    assert program.module(check_guards=False)(tg.randn(6, 3))["y"].shape == (6, 4)


class Join(nn.Module):
    def forward(self, x, more):
        return tg.cat([x, more["a"][0]]), more["b"] * 2


def test_names_bind_sizes_together_in_nested_arguments():
    n = Dim("n")
    example = tg.randn(3, 2), {"a": [tg.randn(6, 2)], "b": tg.randn(7)}
    shapes = {"x": {0: n}, "more": {"a": [(2 * n, None)], "b": {0: 2 * n + 1}}}
    run = export.export(Join(), example, dynamic_shapes=shapes).module()
    assert run(tg.randn(5, 2), {"a": [tg.randn(10, 2)], "b": tg.randn(11)})[0].shape == (15, 2)
    with pytest.raises(AssertionError, match=r"more\['b'\].shape\[0\] makes n 4, but x.shape\[0\] makes it 5"):
        run(tg.randn(5, 2), {"a": [tg.randn(10, 2)], "b": tg.randn(9)})
    with pytest.raises(AssertionError, match=r"more\['a'\]\[0\].shape\[0\] is 9, which is no 2\*n"):
        run(tg.randn(5, 2), {"a": [tg.randn(9, 2)], "b": tg.randn(11)})
    with pytest.raises(ValueError, match=r"exported with tensors as x, more\['a'\]\[0\], more\['b'\]"):
        run(tg.randn(5, 2), {"a": [], "b": tg.randn(11)})


class Branch(nn.Module):
    def forward(self, x):
        return x.sum(0) if x.shape[0] > 4 else x.prod(0)


def test_a_decision_by_an_open_size_is_refused_with_its_line():
    with pytest.raises(UserError, match=r"n was declared open \(x.shape\[0\]\).*test_export.py:\d+ .*shape\[0\] > 4"):
        export.export(Branch(), (tg.ones(6, 2),), dynamic_shapes={"x": {0: Dim("n")}})
    assert (
        export.export(Branch(), (tg.ones(6, 2),), dynamic_shapes={"x": {0: Dim("n", min=5)}}).module()(tg.ones(9, 2))[0]
        == 9
    )
    with pytest.raises(UserError, match="was declared open"):
        export.export(Branch(), (tg.ones(6, 2),), dynamic_shapes={"x": {0: Dim.DYNAMIC}})
    fixed = export.export(Branch(), (tg.ones(6, 2),), dynamic_shapes={"x": {0: Dim.AUTO, 1: Dim.AUTO}}).module()
    assert fixed(tg.ones(6, 9)).shape == (9,)
    with pytest.raises(AssertionError, match="exported for 6"):
        fixed(tg.ones(9, 2))


WRONG = {
    "another name": {"y": {0: "n"}},
    "a dimension too many": {"x": {2: "n"}},
    "a size that a weight has": {"x": {1: "n"}},
    "a row of another length": {"x": ("n",)},
    "another size": {"x": {0: 4}},
    "no row": {"x": 3},
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_declarations_are_refused(kind):
    shapes = WRONG[kind]
    named = {k: type(v)(_named(v, Dim)) if not isinstance(v, int) else v for k, v in shapes.items()}
    with pytest.raises(UserError):
        exported(**named)


def _named(row, dim):
    if isinstance(row, dict):
        return {d: dim("n") if v == "n" else v for d, v in row.items()}
    return [dim("n") if v == "n" else v for v in row]


class InNumpy(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return tg.from_numpy(np.tanh(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        return grad


class Leaves(nn.Module):
    def forward(self, x):
        return InNumpy.apply(x) + 1


def test_a_function_that_leaves_the_library_is_refused_by_line():
    with pytest.raises(RuntimeError, match=r"test_export.py:\d+"):
        export.export(Leaves(), (tg.ones(2),))


def test_what_is_no_module_no_tuple_and_no_call():
    _, program = exported()
    with pytest.raises(ValueError, match="instance of"):
        export.export(lambda x: x, (tg.ones(2),))
    with pytest.raises(ValueError, match="compiled"):
        export.export(jit.script(nn.ReLU()), (tg.ones(2),))
    with pytest.raises(UserError, match="tuple"):
        export.export(nn.ReLU(), tg.ones(2))
    with pytest.raises(RuntimeError, match=r"module\(\) gives what is"):
        program(tg.ones(5, 3))
    with pytest.raises(NotImplementedError, match="before export"):
        program.module().eval()
    with pytest.raises(ValueError, match="exported with the arguments x, but got 2"):
        program.module()(tg.ones(5, 3), tg.ones(2))
    assert "aten::linear" not in str(program.run_decompositions().graph)


@pytest.mark.parametrize("told", [None, [], {"of": 3, "ranges": {}}, {"of": [["x", [["n", 1, 0]]]], "ranges": {}}])
def test_damaged_notes_are_refused(told):
    _, program = exported()
    program._program.notes[""]["export"] = {"sizes": told}
    with pytest.raises(RuntimeError, match="damaged"):
        filed(program)


# ---- beside PyTorch ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not HAVE_TORCH, reason="compares with PyTorch")
def test_surface_and_refusals_are_those_of_pytorch():
    import torch

    ours, theirs = exported(x={0: Dim("n", min=2, max=64)})[1], None
    size = torch.export.Dim("n", min=2, max=64)
    theirs = torch.export.export(net(torch, torch.nn), (torch.randn(5, 3),), dynamic_shapes={"x": {0: size}})
    for name in ("graph", "graph_module", "graph_signature", "state_dict", "constants", "range_constraints", "module",
                 "example_inputs", "named_parameters", "named_buffers", "parameters", "buffers", "run_decompositions",
                 "validate"):  # fmt: skip
        assert hasattr(ours, name) and hasattr(theirs, name)
    assert list(ours.state_dict) == list(theirs.state_dict) and list(ours.constants) == list(theirs.constants)
    mine, other = ours.graph_signature, theirs.graph_signature
    assert {s.kind.name for s in mine.input_specs} == {s.kind.name for s in other.input_specs}
    assert set(mine.buffers) == set(other.buffers) and set(mine.parameters) == set(other.parameters)
    assert mine.user_inputs == list(other.user_inputs) and len(mine.user_outputs) == 3
    calls = {
        "another size": lambda T, run: run(T.randn(7, 4)),
        "too large": lambda T, run: run(T.randn(70, 3)),
        "more arguments": lambda T, run: run(T.randn(7, 3), T.randn(7, 3)),
        "a list": lambda T, run: run([T.randn(7, 3)]),
        "eval": lambda T, run: run.eval(),
    }
    for name, call in calls.items():
        mine, other = (
            refusal(lambda T=T, p=p, call=call: call(T, p.module())) for T, p in ((tg, ours), (torch, theirs))
        )
        assert mine == other is not None, name


def collected(T, nn, export):
    """What is said of sizes by tensors, as a tree, and the kinds of errors."""
    x, y, shapes = T.ones(3, 2), T.ones(2), export.ShapesCollection()
    batch = export.Dim("batch")

    class Net(nn.Module):
        def forward(self, pair, k=None):
            return pair["a"][0].sum(0) + k

    shapes[x] = {0: batch}
    found = shapes.dynamic_shapes(Net(), ({"a": [x, y]},), {"k": y})
    program = export.export(Net(), ({"a": [x, y]},), {"k": y}, dynamic_shapes=found)
    itself = export.export(Net(), ({"a": [x, y]},), {"k": y}, dynamic_shapes=shapes)
    assert itself.module()({"a": [T.ones(5, 2), y]}, k=y).tolist() == [6, 6]
    errors = [
        refusal(lambda: shapes.__setitem__(3, {})),
        refusal(lambda: shapes.__setitem__(x, {0: 3})),
        refusal(lambda: shapes.dynamic_shapes(Net(), ({"a": [y]},), {"k": y})),
    ]
    result = program.module()({"a": [T.ones(5, 2), y]}, k=y)
    return str(found).replace(str(batch), "batch"), errors, len(shapes), shapes[x] == {0: batch}, result.tolist()


def test_sizes_are_said_by_tensors():
    found = collected(tg, nn, export)
    assert found[-1] == [6, 6]
    if HAVE_TORCH:
        import torch

        assert found == collected(torch, torch.nn, torch.export)


def test_several_names_of_sizes():
    one, two = export.dims("one", "two", min=2, max=8)
    assert (one.__name__, two.__name__, one.min, two.max) == ("one", "two", 2, 8)


def test_what_the_example_has_by_name_is_not_taken_by_its_place():
    class Sum(nn.Module):
        def forward(self, a, b, c):
            return a + 10 * b + 100 * c

    x = tg.ones(2)
    program = export.export(Sum(), (x,), {"c": x, "b": x})
    for run in (program.module(), export.unflatten(program)):
        assert run(x, b=2 * x, c=3 * x).tolist() == [321, 321]
        with pytest.raises(ValueError, match=r"exported with c, b by name, but got 3 arguments .*: give c=, b="):
            run(x, 2 * x, 3 * x)


@pytest.mark.parametrize("is_recompiled", [False, True])
def test_modules_may_be_called_as_attributes_of_a_graph_module(is_recompiled):
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.graph, self.meta = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))

        def forward(self, x):
            return self.meta(self.graph(x))

    module, x = Named(), tg.ones(2)
    run = export.export(module, (x,)).module()
    if is_recompiled:
        run.graph.lint()
        run.recompile()
    assert run(x).equal(module(x)) and len(list(run.parameters())) == 4
