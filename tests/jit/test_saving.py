"""What was scripted or traced comes back from a file as a module, without the Python that it was made of."""

import io
import json
import pathlib
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tests.helpers import hostile_graphs as lies
from tests.helpers import script_programs as table
from tinygrad_ext import jit, nn
from tinygrad_ext.graph import GraphError


def saved(m, **more):
    file = io.BytesIO()
    jit.save(m, file, **more)
    return file.getvalue()


def again(m, load=None, **more):
    return jit.load(io.BytesIO(saved(m, **more)), **(load or {}))


def bits(value):
    return str(value), [t.tolist() for t in _tensors(value)]


def _tensors(value):
    if isinstance(value, tg.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for part in parts for t in _tensors(part)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.bn = nn.Linear(2, 3), nn.BatchNorm1d(3)
        self.scale, self.words = 3, ["a", "b"]
        self.unused = nn.Parameter(tg.ones(1))
        self.register_buffer("passing", tg.ones(2), persistent=False)

    def forward(self, x, n: int = 2, flag: float | None = None):
        for _ in range(n):
            x = doubled(x)
        if flag is not None:
            x = x + flag
        return self.bn(self.fc(x)) * self.scale, len(self.words)

    @jit.export
    def other(self, x, more: dict[str, list[int]]):
        return {"a": [self.fc(x)], "b": [x + i for i in more["k"]]}


def doubled(x):
    return x * 2


def scripted():
    tg.manual_seed(0)
    return jit.script(Net())


def test_a_scripted_module_with_its_methods_and_state():
    one, x = scripted(), tg.randn(4, 2)
    two = again(one)
    assert isinstance(two, jit.ScriptModule) and two.original_name == "Net"
    assert list(two.state_dict()) == list(one.state_dict()) and "passing" in dict(two.named_buffers())
    assert [n for n, _ in two.named_parameters()] == [n for n, _ in one.named_parameters()]
    assert isinstance(two.bn, nn.Module) and two.scale == 3 and two.words == ["a", "b"]
    for args, kwargs in (((x,), {}), ((x, 3), {}), ((x,), {"flag": 1.5, "n": 1})):
        assert bits(two(*args, **kwargs)) == bits(one(*args, **kwargs))
    assert bits(two.other(x, {"k": [1, 2]})) == bits(one.other(x, {"k": [1, 2]}))
    assert two.bn.running_mean.equal(one.bn.running_mean) and two.bn.num_batches_tracked.equal(
        one.bn.num_batches_tracked
    )


def test_a_loaded_module_is_a_module():
    one, x = scripted(), tg.randn(4, 2)
    two = again(one)
    two.eval(), one.eval()
    assert bits(two(x)) == bits(one(x)) and not two.bn.training
    two.load_state_dict({k: v + 1 for k, v in one.state_dict().items()})
    one.load_state_dict(two.state_dict())
    assert bits(two(x)) == bits(one(x))
    two.double(), one.double()
    assert bits(two(x.double())) == bits(one(x.double()))
    two(x.double())[0].sum().backward()
    one(x.double())[0].sum().backward()
    assert two.fc.weight.grad.equal(one.fc.weight.grad)
    assert not again(two).bn.training and bits(again(two)(x.double())) == bits(one(x.double()))


def test_arguments_are_checked_as_before():
    two = again(scripted())
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        two()
    with pytest.raises(RuntimeError, match="Expected a value of type 'int' for argument 'n'"):
        two(tg.ones(4, 2), "a")
    with pytest.raises(AttributeError, match="nothing"):
        two.nothing


@pytest.mark.parametrize("stem", table.FILES)
def test_every_program_of_the_table(stem):
    for name, case in table.load(stem, tg).items():
        one = jit.script(case.function)
        two = again(one)
        for row in case.rows:
            wanted, found = table.outcome(one, row), table.outcome(two, row)
            if wanted[0] == "raises":
                assert isinstance(found[1], type(wanted[1])), name
            else:
                assert found == wanted, name


# ---- traced programs


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.bn, self.drop = nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)

    def forward(self, x, *, k=1.0):
        return {"y": (self.drop(self.bn(self.fc(x))) * k, [x.sum()])}


def test_a_traced_module_with_random_numbers_and_running_statistics():
    x = tg.randn(4, 2)
    one = jit.trace(Noisy(), (x,), check_trace=False)
    two = again(one)
    for size in (4, 7, 2):
        x = tg.randn(size, 2)
        results = []
        for module in (one, two):
            tg.manual_seed(3)
            results.append(module(x))
        assert bits(results[0]) == bits(results[1])
    assert two.bn.running_mean.equal(one.bn.running_mean)


def test_a_loaded_trace_takes_what_it_was_traced_for():
    one = jit.trace(lambda x, d: x * 2 + d["k"], (tg.ones(2), {"k": tg.ones(2)}))
    one(tg.ones(2, 2).double(), {"k": 3})
    two = again(one)
    assert two(tg.ones(5), {"k": tg.ones(5)}).tolist() == [3.0] * 5
    assert two(tg.ones(1, 2).double(), {"k": 1}).dtype is tg.float64
    assert two(tg.ones(2, requires_grad=True), {"k": tg.ones(2)}).requires_grad
    with pytest.raises(RuntimeError, match=r"was saved with graphs for arguments .* not for .*int64.*save it again"):
        two(tg.ones(2, dtype=tg.int64), {"k": tg.ones(2)})


def test_several_methods_of_a_trace():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(tg.ones(2) * 3)

        def forward(self, x):
            return x * self.w

        def double(self, x, y):
            return x + y * self.w

    x = tg.ones(2)
    two = again(jit.trace_module(Two(), {"forward": x, "double": (x, x)}))
    assert two(x).tolist() == [3.0, 3.0] and two._method("double")(x, x).tolist() == [4.0, 4.0]


def test_a_training_step_is_resumed_to_the_bit():
    tg.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = tg.optim.Adam(net.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    x, y = tg.randn(4, 2), tg.randn(4, 1)
    one = jit.trace(step, (x, y), check_trace=False)
    for _ in range(3):
        one(x, y)
    two = again(one)
    for _ in range(3):
        assert one(x, y).item() == two(x, y).item()
    assert two.net._modules["0"].weight.equal(net[0].weight)
    assert again(two)(x, y).item() == one(x, y).item()


class Cube(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 100.0


def test_a_function_keeps_its_derivative():
    def f(x):
        return Cube.apply(x) + 1

    for one in (jit.trace(f, (tg.ones(2, requires_grad=True),)), jit.script(f)):
        x = tg.tensor([1.0, 2.0], requires_grad=True)
        again(one)(x).sum().backward()
        assert x.grad.tolist() == [100.0, 200.0]


# ---- the file


def test_extra_files_verify_and_paths(tmp_path):
    one, path, wanted = scripted(), tmp_path / "net.pt", {"a": ""}
    one.eval()
    one.save(path, {"a": "x", "b": b"y"}, examples=[(tg.ones(4, 2),), (tg.ones(1, 2), 0)])
    two = jit.load(str(path), _extra_files=wanted, verify=True)
    assert wanted == {"a": b"x"} and bits(two(tg.ones(4, 2))) == bits(one(tg.ones(4, 2)))
    assert jit.load(path, "meta").fc.weight.is_meta
    with pytest.raises(ValueError, match="The provided filename .* does not exist"):
        jit.load(tmp_path / "none.pt")
    with pytest.raises(ValueError, match="is a directory"):
        jit.load(tmp_path)


def test_recording_examples_changes_nothing():
    one = scripted()
    before = {k: v.clone() for k, v in one.state_dict().items()}
    data = saved(one, examples={"forward": [(tg.ones(4, 2),)], "other": [(tg.ones(1, 2), {"k": [1]})]})
    assert all(v.equal(before[k]) for k, v in one.state_dict().items())
    two = jit.load(io.BytesIO(data), verify=True)
    assert all(v.equal(before[k]) for k, v in two.state_dict().items())


def test_no_folder_of_this_machine_is_in_the_file():
    folder = str(pathlib.Path(__file__).parent).encode()
    traced = jit.trace(Noisy(), (tg.ones(4, 2),), check_trace=False)
    assert folder in str(traced.graph).encode() and b"guard" in str(traced.graph).encode()
    for one in (scripted(), traced):
        data = saved(one)
        assert folder not in data and b"test_saving.py:" in data


def test_what_is_no_program_is_refused():
    with pytest.raises(AttributeError, match="'Linear' object is no compiled program"):
        jit.save(nn.Linear(2, 2), io.BytesIO())


class Ignoring(nn.Module):
    def forward(self, x):
        return self.python(x)

    @jit.ignore
    def python(self, x):
        return x


def test_a_call_of_python_is_refused_by_its_line():
    with pytest.raises(GraphError, match=r"calls the Python function .*test_saving\.py:\d+ in forward"):
        saved(jit.script(Ignoring()))


def test_a_trace_of_another_mode_is_refused():
    one = jit.trace(Noisy(), (tg.ones(4, 2),), check_trace=False)
    one.eval()
    with pytest.raises(RuntimeError, match="was traced in another training mode"):
        saved(one)
    one(tg.ones(4, 2))
    assert again(one)(tg.ones(4, 2))["y"][0].shape == (4, 3)


BAD_NOTES = {
    "a list": {"": []},
    "of no method": {"nothing": {}},
    "names of numbers": {"forward": {"names": [1, 2, 3]}},
    "too few names": {"forward": {"names": ["x"]}},
    "defaults of others": {"forward": {"defaults": {"z": 1}}},
    "defaults of no kind": {"forward": {"defaults": {"n": {"object": 1}}}},
    "no type": {"forward": {"returns": "List["}},
    "modules that are texts": {"": {"modules": ["a"]}},
    "paths without end": {"": {"modules": [["a." * 1000, True]]}},
    "parameters that are numbers": {"": {"parameters": [1]}},
}


@pytest.mark.parametrize("name", BAD_NOTES)
def test_notes_that_lie_are_refused(name):
    parts = lies.entries(saved(scripted()))
    manifest = json.loads(parts["manifest.json"])
    for method, note in BAD_NOTES[name].items():
        old = manifest["notes"].get(method)
        manifest["notes"][method] = {**old, **note} if isinstance(old, dict) and isinstance(note, dict) else note
    parts["manifest.json"] = json.dumps(manifest).encode()
    with pytest.raises(RuntimeError, match=r"load: the file is damaged; manifest\.json: "):
        jit.load(io.BytesIO(lies.zipped(parts)))


def test_no_name_of_a_state_replaces_a_part_of_a_module():
    parts = lies.entries(saved(scripted()))
    for name in ("forward", "_modules", "train", "__class__"):
        text = parts["graphs/forward.txt"].decode().replace('"scale"', f'"{name}"')
        weights = tg.load(io.BytesIO(parts["weights.safetensors"]))
        weights[name] = weights["scale"]
        file = io.BytesIO()
        tg.save(weights, file)
        changed = {**parts, "graphs/forward.txt": text.encode(), "weights.safetensors": file.getvalue()}
        two = jit.load(io.BytesIO(lies.zipped(changed)))
        assert type(two).__name__ == "LoadedModule" and two(tg.ones(4, 2))[1] == 2 and callable(two.train)


def test_another_process_needs_no_class(tmp_path):
    scripted().eval().save(tmp_path / "net.pt", examples=[(tg.ones(4, 2),)])
    code = "import sys; from tinygrad_ext import jit; print(jit.load(sys.argv[1], verify=True).original_name)"
    path = pathlib.Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "net.pt"], capture_output=True, text=True, check=True, cwd=path
    )
    assert done.stdout == "Net\n"
