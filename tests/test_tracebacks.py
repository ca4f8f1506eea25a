"""A traceback shows the user's frames only, in order; a switch shows all."""

import copy
import inspect
import pickle
import subprocess
import sys
import traceback
import types
from pathlib import Path

import pytest
from tinygrad_ext.core.call.boundary import Boundary

import tinygrad_ext as tg
from tinygrad_ext import autograd, config, nn, optim
from tinygrad_ext.utils.data import DataLoader, Dataset

PACKAGE = str(Path(tg.__file__).parent)
a, b = tg.ones(3, 4), tg.ones(5, 6)


def frames(call):
    """(file, function) of the traceback of what a call raises, outermost first, without the frame here."""
    try:
        call()
    except Exception as error:
        return [(f.f_code.co_filename, f.f_code.co_name) for f, _ in traceback.walk_tb(error.__traceback__)][1:]
    raise AssertionError("nothing was raised")


def names(call):
    """Names of the functions in a traceback; all of them have to be of this file."""
    found = frames(call)
    assert {file for file, _ in found} <= {__file__}, found
    return [name for _, name in found]


class Double(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return broken(grad)


def broken(*anything):
    raise ValueError("the user's own")


class Net(nn.Module):
    def __init__(self, sizes=(3, 4)):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(*sizes), nn.ReLU())

    def forward(self, x):
        return self.inner(x)


class Faulty(nn.Module):
    def forward(self, x):
        return broken(x)


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return broken(index)


class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return broken(func)


def hooked(register):
    x = tg.ones(2, requires_grad=True)
    y = x * 2
    register(x, y)
    y.sum().backward()


ONE_LINE = {
    "operator": lambda: a @ b,
    "reflected operator": lambda: "x" - a,
    "in-place operator": lambda: a.__iadd__(b),
    "function": lambda: tg.matmul(a, b),
    "method": lambda: a.matmul(b),
    "wrong argument": lambda: tg.exp("x"),
    "wrong keyword": lambda: a.sum(nowhere=1),
    "index": lambda: a[7],
    "assignment to an index": lambda: a.__setitem__(7, 1),
    "attribute": lambda: setattr(a, "grad", 3),
    "out": lambda: tg.add(a, a, out=tg.ones(3, 4, dtype=tg.int64)),
    "op in Python": lambda: tg.einsum("ij,jk", a, b),
    "composite": lambda: tg.tensordot(a, b, 1),
    "nn.functional": lambda: nn.functional.cross_entropy(a, tg.ones(2, dtype=tg.int64)),
    "op of a namespace": lambda: tg.ops.aten.matmul(a, b),
    "absent op": lambda: tg.ops.aten.no_such_op,
    "absent name": lambda: tg.no_such_name,
    "absent name of a module": lambda: nn.functional.no_such_name,
    "conversion": lambda: tg.tensor(object()),
    "number": lambda: float(a),
    "truth": lambda: bool(a),
    "numpy": lambda: tg.ones(1, requires_grad=True).numpy(),
    "backward": lambda: a.backward(),
    "grad": lambda: autograd.grad(a.sum(), a),
    "functional": lambda: autograd.functional.jacobian(lambda x: 3, a),
    "layer": lambda: nn.Linear("three", 4),
    "plain forward": lambda: nn.Linear(3, 4)(b),
    "container": lambda: nn.Sequential(nn.Linear(3, 4))(b),
    "setting a part": lambda: setattr(nn.Linear(3, 4), "weight", 3),
    "state dict": lambda: nn.Linear(3, 4).load_state_dict({}),
    "init": lambda: nn.init.kaiming_uniform_(tg.ones(1)),
    "optimizer": lambda: optim.SGD([]),
    "scheduler": lambda: optim.lr_scheduler.StepLR(None, 1),
    "loader": lambda: DataLoader(Rows(), batch_size=-1),
    "load": lambda: tg.load("/no/such/file.pt"),
    "custom op": lambda: tg.library.define("no_namespace", "() -> ()"),
    "plugin": lambda: tg.plugins.load("no such plugin"),
    "thread count": lambda: tg.set_num_threads(-1),
}


@pytest.mark.parametrize("case", ONE_LINE)
def test_a_failing_call_shows_the_users_line_alone(case):
    assert names(ONE_LINE[case]) == ["<lambda>"]


def loss():
    return Double.apply(tg.ones(2, requires_grad=True)).sum()


def watched(x, y):
    y.register_hook(broken)


def watched_leaf(x, y):
    x.register_post_accumulate_grad_hook(broken)


def step():
    optim.SGD([tg.ones(1, requires_grad=True)], lr=1).step(broken)


THROUGH_USERS = {
    "a backward of a Function": (lambda: loss().backward(), ["backward", "broken"]),
    "a hook of a tensor": (lambda: hooked(watched), ["hooked", "broken"]),
    "a hook of a leaf": (lambda: hooked(watched_leaf), ["hooked", "broken"]),
    "a forward": (lambda: Faulty()(a), ["forward", "broken"]),
    "a forward within others": (lambda: nn.Sequential(nn.ReLU(), Faulty())(a), ["forward", "broken"]),
    "a forward that calls a layer": (lambda: Net()(b), ["forward"]),
    "a constructor": (lambda: Net(("three", 4)), ["__init__"]),
    "an override": (lambda: tg.add(a, Duck()), ["__torch_function__", "broken"]),
    "a dataset": (lambda: list(DataLoader(Rows())), ["__getitem__", "broken"]),
    "a function of functional": (lambda: autograd.functional.jacobian(broken, a), ["broken"]),
    "a closure of an optimizer": (lambda: step(), ["step", "broken"]),
    "a visit of modules": (lambda: Net().apply(broken), ["broken"]),
    "a gradient check": (lambda: autograd.gradcheck(broken, a.double().requires_grad_()), ["broken"]),
}


@pytest.mark.parametrize("case", THROUGH_USERS)
def test_all_frames_of_users_stay_in_their_order(case):
    call, expected = THROUGH_USERS[case]
    assert names(call) == ["<lambda>", *expected]


def test_a_hook_of_a_module_stays():
    layer = nn.ReLU()
    layer.register_forward_hook(broken)
    assert names(lambda: layer(a)) == ["<lambda>", "broken"]


def test_a_generator_of_the_user_stays():
    def rows():
        yield tg.ones(2)
        yield a @ b

    assert names(lambda: tg.stack(list(rows()))) == ["<lambda>", "rows"]
    assert names(lambda: [tg.ones(1).add(x) for x in rows()])[-1] == "rows"


def test_chained_exceptions_are_trimmed_too():
    def again():
        try:
            tg.einsum("ij,jk", a, b)
        except RuntimeError as error:
            tg.zeros("x").add(error)

    try:
        again()
    except TypeError as error:
        first, second = error, error.__context__
    for part, expected in ((first, 2), (second, 1)):
        found = [f.f_code.co_filename for f, _ in traceback.walk_tb(part.__traceback__)]
        assert found == [__file__] * expected


def test_a_cause_given_by_the_library_has_none_of_its_frames(tmp_path):
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"\x08\0\0\0\0\0\0\0not json")
    try:
        tg.load(bad)
    except Exception as error:
        while error is not None:
            assert not any(f.f_code.co_filename.startswith(PACKAGE) for f, _ in traceback.walk_tb(error.__traceback__))
            error = error.__cause__ or error.__context__


def test_an_exception_that_is_raised_again_keeps_its_frames():
    def inner():
        try:
            tg.ones(2)[5]
        except IndexError:
            raise

    assert names(inner) == ["inner"]


def test_deep_recursion_through_modules_ends_in_recursion_error():
    class Endless(nn.Module):
        def forward(self, x):
            return self(x)

    with pytest.raises(RecursionError):
        Endless()(a)


@pytest.fixture
def full():
    config.set_full_tracebacks(True)
    yield
    config.set_full_tracebacks(False)


def test_the_switch_shows_the_librarys_frames_too(full):
    assert config.full_tracebacks()
    files = [file for file, _ in frames(lambda: tg.einsum("ij,jk", a, b))]
    assert files[0] == __file__
    assert any(file.endswith("callables.pyx") for file in files)
    assert files[-1].endswith("einsum_plan.py")


def test_the_switch_works_both_ways_in_one_program(full):
    assert len(frames(ONE_LINE["operator"])) > 5
    config.set_full_tracebacks(False)
    assert names(ONE_LINE["operator"]) == ["<lambda>"]


def test_the_switch_takes_a_bool_only():
    with pytest.raises(TypeError, match="mode must be a bool, not str"):
        config.set_full_tracebacks("full")


@pytest.mark.parametrize(("value", "shown"), [("full", True), ("", False)])
def test_the_environment_switches_from_the_start(value, shown):
    code = "import tinygrad_ext as tg; tg.ones(2) @ tg.ones(3)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"TINYGRAD_EXT_TRACEBACKS": value, "PYTHONPATH": str(Path(PACKAGE).parent)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and (".pyx" in done.stderr) is shown
    assert done.stderr.count("File ") == 1 or shown


def test_compiled_code_of_others_keeps_its_frames():
    # NumPy's and a plugin's compiled frames have files outside the package: only the folder decides
    def plugin(x):
        raise ValueError(x)

    code = plugin.__code__.replace(co_filename="src/tgx_other/kernel.pyx")
    call = types.FunctionType(code, {})
    x = tg.ones(1, requires_grad=True)
    x.register_hook(call)
    assert [file for file, _ in frames(lambda: x.sum().backward())] == [__file__, "src/tgx_other/kernel.pyx"]
    code = plugin.__code__.replace(co_filename=PACKAGE + "_other/kernel.py")
    y = tg.ones(1, requires_grad=True)
    y.register_hook(types.FunctionType(code, {}))
    assert len(frames(lambda: y.sum().backward())) == 2


def test_every_frame_shown_has_a_source_that_ipython_finds():
    for call in ONE_LINE.values():
        assert all(Path(file).exists() for file, _ in frames(call))


# ---- boundaries of Python functions --------------------------------------------------------------------------------

PLACES = (
    "", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "autograd", "autograd.functional",
    "autograd.graph", "linalg", "special", "utils.data", "library", "overrides", "random", "config", "cuda", "testing",
)  # fmt: skip
# is_tensor cannot raise; the others belong to testing tools and pytest
OPEN = {"is_tensor", "refuse_unknown", "no_attribute", "plugin_tests"}


@pytest.mark.parametrize("place", PLACES)
def test_public_python_functions_have_a_boundary(place):
    module = sys.modules[tg.__name__]
    for part in filter(None, place.split(".")):
        module = getattr(module, part)
    for name in dir(module):
        value = getattr(module, name, None)
        if isinstance(value, types.FunctionType) and not name.startswith("_") and name not in OPEN:
            doc = str(value.__doc__)
            if value.__module__.startswith("tinygrad_ext") and not doc.startswith("NotImplementedError"):
                raise AssertionError(f"{value.__module__}.{name}: decorate it with core.boundary.boundary")


def test_a_boundary_looks_like_the_function_behind_it():
    clip = nn.utils.clip_grad_norm_
    assert isinstance(clip, Boundary) and clip.__name__ == "clip_grad_norm_" and clip.__doc__
    assert list(inspect.signature(clip).parameters)[:2] == ["parameters", "max_norm"]
    assert inspect.unwrap(clip).__code__.co_name == "clip_grad_norm_"
    assert pickle.loads(pickle.dumps(clip)) is clip and copy.deepcopy(clip) is clip
    assert list(inspect.signature(optim.SGD).parameters)[:2] == ["params", "lr"]
    assert inspect.signature(optim.SGD([tg.ones(1)], lr=1).step).parameters.keys() == {"closure"}
    assert inspect.isroutine(clip) and inspect.getsource(clip).startswith("@boundary")


def test_an_exception_may_pass_the_library_after_its_traceback_was_taken_away():
    error = ValueError("kept")

    def hook(grad):
        raise RuntimeError("later") from error

    for taken in (None, error.__traceback__):
        x = tg.ones(1, requires_grad=True)
        x.register_hook(hook)
        for _ in range(3):
            error.__traceback__ = taken
            assert names(lambda: x.sum().backward()) == ["<lambda>", "hook"]
    # a refusal inside an except clause of compiled code: its context went through twice
    assert names(lambda: tg.zeros(6).as_strided((2,), (2**63,))) == ["<lambda>"]
    assert names(lambda: tg.Tensor._make_wrapper_subclass(tg.Tensor, (2,), (2**63,))) == ["<lambda>"]
