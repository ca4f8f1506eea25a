"""unflatten: an exported program with the submodules that the module had."""

import copy
import importlib.util
import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import export, nn
from tinygrad_ext.export import Dim

HAVE_TORCH = importlib.util.find_spec("torch") is not None


def net(T, nn):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.register_buffer("calls", T.zeros(1))

        def forward(self, x):
            self.calls.add_(1)
            return nn.functional.silu(self.fc(x)) * self.calls

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])
            self.head = nn.Sequential(nn.Linear(3, 2), nn.ReLU())

        def forward(self, x, y):
            for block in self.blocks:
                x = block(x) + x
            return {"y": self.head(x) * y, "x": (x, y)}

    T.manual_seed(0)
    return Net()


def unflattened(**dynamic):
    module = net(tg, nn)
    program = export.export(module, (tg.ones(4, 3), tg.ones(2)), dynamic_shapes=dynamic or None)
    return module, program, export.unflatten(program)


def test_it_gives_the_bits_of_the_module_and_writes_its_buffers():
    module, _, made = unflattened(x={0: Dim("batch")}, y=None)
    twin = copy.deepcopy(module)
    for n in (4, 1, 7):
        x, y = tg.randn(n, 3), tg.randn(2)
        got, wanted = made(x, y=y), twin(x, y)
        assert got["y"].equal(wanted["y"]) and got["x"][0].equal(wanted["x"][0]) and got["x"][1] is y
    assert [b.calls.item() for b in module.blocks] == [3, 3] and made.blocks.get_submodule("0").calls.item() == 3
    with pytest.raises(AssertionError, match=r"y.shape\[0\] is 3, but the program was exported for 2"):
        made(x, tg.ones(3))


def test_state_is_shared_and_gradients_reach_it():
    module, program, made = unflattened()
    assert list(made.state_dict()) == list(module.state_dict())
    assert made.get_submodule("blocks.1.fc").weight is module.blocks[1].fc.weight
    made(tg.ones(4, 3), tg.ones(2))["y"].sum().backward()
    got, module.head[0].weight.grad = module.head[0].weight.grad, None
    for b in module.blocks:
        b.calls.zero_()
    module(tg.ones(4, 3), tg.ones(2))["y"].sum().backward()
    assert got.equal(module.head[0].weight.grad)


def test_parts_are_called_alone_hooked_and_replaced():
    module, _, made = unflattened()
    x, y, seen = tg.randn(4, 3), tg.randn(2), []
    part, block = made.get_submodule("blocks.0"), copy.deepcopy(module.blocks[0])
    assert part(x).equal(block(x)) and module.blocks[0].calls.item() == 1
    with pytest.raises(TypeError, match=r"blocks.0: .* takes 1 values, got 2"):
        part(x, x)
    made.head.register_forward_hook(lambda m, args, out: seen.append((len(args), out.shape)))
    made(x, y)
    assert seen == [(1, (4, 2))]
    made.head = nn.Linear(3, 2)
    got = made(x, y)
    assert got["y"].equal(made.head(got["x"][0]) * y)

    class Three(nn.Module):
        def forward(self, x):
            return x, x, x

    made.head = Three()
    with pytest.raises(RuntimeError, match="head gave 3 values, but the program reads 1"):
        made(x, y)


def test_a_copy_has_state_of_its_own():
    module, _, made = unflattened()
    other, x, y = copy.deepcopy(made), tg.randn(4, 3), tg.randn(2)
    assert other(x, y)["y"].equal(made(x, y)["y"]) and module.blocks[0].calls.item() == 1
    assert other.get_submodule("blocks.0").calls.item() == 1


def test_calls_stay_with_decompositions_and_files():
    module, program, _ = unflattened()
    file = io.BytesIO()
    export.save(program.run_decompositions(), file)
    file.seek(0)
    made = export.unflatten(export.load(file))
    x, y = tg.randn(4, 3), tg.randn(2)
    assert tg.allclose(made(x, y)["y"], module(x, y)["y"], 1e-5, 1e-6)
    assert tg.allclose(made.get_submodule("head.0")(x), module.head[0](x), 1e-5, 1e-6)
    assert [name for name, _ in made.named_modules()] == [name for name, _ in module.named_modules()]


class Twice(nn.Module):
    """A module that is called twice, and a weight that two modules have."""

    def __init__(self):
        super().__init__()
        self.inner, self.tied, self.drop = nn.Linear(3, 3), nn.Linear(3, 3), nn.Dropout(0.5)
        self.tied.weight = self.inner.weight
        self.inner.register_buffer("seen", tg.zeros(3))
        self.constant = tg.ones(3) * 2

    def forward(self, x, scale):
        first = self.inner(x)
        self.inner.seen += first.detach().sum(0)
        second = self.drop(self.inner(first) * scale)
        return self.tied(second) + self.inner.weight + self.constant, self.inner.seen.clone()


def test_what_is_shared_called_twice_and_drawn():
    module = Twice()
    twin = copy.deepcopy(module)
    made = export.unflatten(export.export(module, (tg.ones(3, 3), 2.0)))
    for scale in (2.0, 0.5):
        x = tg.randn(3, 3)
        tg.manual_seed(3)
        wanted = twin(x, scale), tg.rand(1)
        tg.manual_seed(3)
        got = made(x, scale), tg.rand(1)
        assert got[0][0].equal(wanted[0][0]) and got[0][1].equal(wanted[0][1]) and got[1].equal(wanted[1])
    assert module.inner.seen.equal(twin.inner.seen)
    assert made.tied.weight is made.inner.weight is module.inner.weight


def aliased(T, nn, export):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
            self.two = nn.ModuleList([self.one[0]])

        def forward(self, x):
            return self.two[0](self.one(x))

    module = Net()
    made = export.unflatten(export.export(module, (T.ones(3, 2),)))
    x = T.ones(3, 2) * 2
    assert T.equal(made(x), module(x))
    return sorted(made.state_dict()), sorted(module.state_dict())


@pytest.mark.filterwarnings("ignore")
def test_a_module_of_two_names_has_both():
    found = aliased(tg, nn, export)
    assert found[0] == found[1]
    if HAVE_TORCH:
        import torch

        assert found == aliased(torch, torch.nn, torch.export)


def test_what_is_no_program_is_refused():
    with pytest.raises(TypeError, match="must be an ExportedProgram"):
        export.unflatten(nn.ReLU())
    _, program, _ = unflattened()
    with pytest.raises(NotImplementedError, match="flat_args_adapter"):
        export.unflatten(program, 3)
    del program._program.notes["forward"]["calls"]
    with pytest.raises(RuntimeError, match="export it again"):
        export.unflatten(program)


@pytest.mark.parametrize(
    "calls",
    [
        3,
        {"shared": [], "made": [], "nodes": {"1": 0}},
        {"shared": [], "made": [["nobody", -1]], "nodes": {}},
        {"shared": [], "made": [["head", 0]], "nodes": {}},
        {"shared": [["other", "nobody"]], "made": [], "nodes": {}},
        {"shared": [], "made": [["head", -1], ["head.0", -1]], "nodes": {"3": 0, "4": 1, "5": 0}},
    ],
)
def test_damaged_calls_are_refused(calls):
    _, program, _ = unflattened()
    program._program.notes["forward"]["calls"] = calls
    file = io.BytesIO()
    export.save(program, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="damaged"):
        export.load(file)


def test_a_module_is_left_as_it_was():
    module, _, _ = unflattened()
    assert not any("forward" in vars(m) for m in module.modules())


@pytest.mark.skipif(not HAVE_TORCH, reason="compares with PyTorch")
@pytest.mark.filterwarnings("ignore")
def test_modules_and_parts_are_those_of_pytorch():
    import torch

    def told(T, nn, export):
        module = net(T, nn)
        made = export.unflatten(export.export(module, (T.ones(4, 3), T.ones(2))))
        x, y = T.arange(12.0).reshape(4, 3) / 10, T.ones(2)
        shapes = [
            tuple(made.get_submodule(p)(x).shape) for p in ("blocks.0", "blocks.1.fc", "head", "head.0", "head.1")
        ]
        made.head = nn.Linear(3, 2)
        got = made(x, y)
        names = (
            [name for name, _ in made.named_modules()],
            sorted(made.state_dict()),
            sorted(dict(made.named_buffers())),
        )
        return names, shapes, tuple(got["y"].shape), made.get_submodule("blocks.0").calls.item()

    assert told(tg, nn, export) == told(torch, torch.nn, torch.export)


@pytest.mark.skipif(not HAVE_TORCH, reason="compares with PyTorch")
@pytest.mark.filterwarnings("ignore")
def test_the_signature_is_that_of_pytorch():
    import torch

    def told(T, nn, export):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                self.register_buffer("seen", T.zeros(3))
                self.register_buffer("passing", T.ones(3), persistent=False)
                self.constant = T.ones(3)

            def forward(self, x, pair):
                self.seen += x.sum(0)
                return self.fc(x) * self.constant + self.passing, pair[0] + pair[1], 3

        program = export.export(Net(), (T.ones(4, 3), (T.ones(1), T.ones(2)))).run_decompositions({})
        found = program.graph_signature
        kinds = [sorted(s.kind.name for s in specs) for specs in (found.input_specs, found.output_specs)]
        paths = sorted(found.parameters), sorted(found.buffers), list(found.non_persistent_buffers)
        lifted = len(found.lifted_tensor_constants), len(found.inputs_to_lifted_tensor_constants)
        written = list(found.buffers_to_mutate.values()), list(found.user_inputs_to_mutate.values())
        name = next(iter(found.buffers_to_mutate))
        found.replace_all_uses(name, "other")
        more = found.lifted_custom_objs, found.inputs_to_lifted_custom_objs, list(found.buffers_to_mutate)
        return kinds[1], paths, lifted, written, list(map(len, more[:2])), more[2], found.user_outputs[-1]

    assert told(tg, nn, export) == told(torch, torch.nn, torch.export)
