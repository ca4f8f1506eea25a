"""Levels see each operation once, resolved and bound; what they cost nobody pays who has none."""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from levels import Cube, Recorder

import tinygrad_ext as tg
from tinygrad_ext import nn, registry
from tinygrad_ext.autograd.profiler import record_function
from tinygrad_ext.graph import capture
from tinygrad_ext.optim import _fused
from tinygrad_ext.overrides import Observer, atomic, user_line
from tinygrad_ext.registry import scope
from tinygrad_ext.testing import sweep

ROOT = Path(__file__).parents[3]
OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops()}


# ---- every form of every op ----------------------------------------------------------------------------------------


def forms(op):
    """(kind, callable, makes fresh arguments) of the function, method, in-place and out= form of an op."""
    kinds, name = registry.variants(op.record), op.schema.name
    function = registry.functions.get(registry.prefixes(op.record)[0] + name)
    if "function" in kinds:
        yield "functional", function, lambda s: (s.args, s.kwargs)
    if "method" in kinds:
        yield "functional", registry.methods[name], lambda s: (s.args, s.kwargs)
    if "inplace" in kinds:
        inplace = registry.methods.get(name + "_") or next(
            registry.functions[prefix + name + "_"]
            for prefix in (*registry.prefixes(op.record), "_fused.")
            if prefix + name + "_" in registry.functions
        )
        yield "inplace", inplace, lambda s: ((s.args[0].detach().clone(), *s.args[1:]), s.kwargs)
    if "out" in kinds:

        def with_out(s):
            result = function(*s.args, **s.kwargs)
            out = tg.empty_like(result) if isinstance(result, tg.Tensor) else tuple(map(tg.empty_like, result))
            return s.args, {**s.kwargs, "out": out}

        yield "out", function, with_out


def sample(op):
    """The first sample that has elements and is accepted by all forms."""
    dtype = next((d for d in ("float32", "int64", "bool", "complex64") if d in sweep.supported(op)), "float32")
    found = sweep.samples(op, dtype)
    if not found:
        pytest.skip("the record has no samples")
    return found[0]


def attempt(fn, args, kwargs):
    """The result, or the refusal, of a call: an in-place form may refuse a sample, and is seen all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fn(*args, **kwargs)
        except (RuntimeError, TypeError) as refusal:
            return str(refusal)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_an_observer_sees_a_call_once_in_every_form(op):
    s = sample(op)
    for kind, fn, prepare in forms(op):
        args, kwargs = prepare(s)
        with Recorder() as recorder:
            attempt(fn, args, kwargs)
        assert [(seen.op.schema.name, seen.kind) for seen, _ in recorder.seen] == [(op.schema.name, kind)]
        seen, bound = recorder.seen[0]
        assert len(bound) == len(seen.schema.args) + (kind == "out")
        args, kwargs = prepare(s)
        with Recorder(passes=True) as opened:
            attempt(fn, args, kwargs)
        assert opened.names[0] == seen.name


@pytest.mark.parametrize(
    "call, name, kind",
    [
        (lambda a: a + a, "aten::add.Tensor", "functional"),
        (lambda a: 2 * a, "aten::mul.Tensor", "functional"),
        (lambda a: a.add_(1), "aten::add_.Tensor", "inplace"),
        (lambda a: tg.exp(a, out=tg.empty(3)), "aten::exp.out", "out"),
        (lambda a: tg.sum(a, 0, out=tg.empty(())), "aten::sum.dim_IntList_out", "out"),
    ],
    ids=["a + a", "2 * a", "add_", "exp out", "sum out"],
)
def test_an_operation_is_the_overload_in_its_form(call, name, kind):
    a = tg.ones(3)
    with Recorder() as recorder:
        call(a)
    operation, args = next((o, args) for o, args in recorder.seen if o.name != "aten::empty")
    assert (operation.name, operation.kind) == (name, kind)
    assert operation.mutates == {"functional": (), "inplace": (0,), "out": (len(args) - 1,)}[kind]


def test_arguments_are_all_of_the_schema_with_defaults():
    with Recorder() as recorder:
        tg.add(tg.ones(1), 2.0)
    operation, args = recorder.seen[-1]
    assert [a.name for a in operation.schema.args] == ["self", "other", "alpha"]
    assert args[1:] == (2.0, 1)


def test_a_level_that_passes_on_something_else_is_told_what():
    class Wrong(Observer):
        def process(self, operation, args):
            return operation("text", *args[1:]) if operation.name == "aten::neg" else operation(*args[:-1])

    a = tg.ones(1)
    with Wrong(), pytest.raises(TypeError, match=r"aten::neg: argument 'self' must be Tensor, not str; a level"):
        tg.neg(a)
    with Wrong(), pytest.raises(TypeError, match=r"aten::add\.Tensor: expected all 3 arguments .* but got 2"):
        tg.add(a, a)


# ---- composites ----------------------------------------------------------------------------------------------------


def test_a_composite_is_offered_whole_and_then_open():
    a = tg.ones(2, 3)
    with Recorder() as whole:
        tg.hstack([a, a])
    with Recorder(passes=True) as opened:
        tg.hstack([a, a])
    assert whole.names == ["aten::hstack"]
    assert whole.seen[0][0].composite
    assert opened.names[0] == "aten::hstack"
    assert "aten::cat" in opened.names


ROWS, MARKS = tg.ones(3, 4), tg.tensor([0, 1, 2])


@pytest.mark.parametrize(
    "call, inside",
    [
        (lambda a: a[0], "aten::_select"),
        (lambda a: a[MARKS, 1:], "aten::index.Tensor"),
        (lambda a: a.__setitem__(0, 1.0), "aten::fill_.Scalar"),
        (lambda a: a.__setitem__(0, ROWS[1]), "aten::copy_"),
        (lambda a: a.__setitem__(MARKS, 1.0), "aten::index_put_"),
        (lambda a: a.__setitem__(a > 0, 1.0), "aten::masked_fill_.Scalar"),
        (lambda a: a.to(tg.float64), "aten::_to_copy"),
        (lambda a: a.to("cpu", tg.float64), "aten::_to_copy"),
        (lambda a: a.to(MARKS), "aten::_to_copy"),
        (lambda a: a.to(tg.float32, copy=True), "aten::_to_copy"),
        (lambda a: a.double(), None),
        (lambda a: a.cpu(), None),
        (lambda a: nn.functional.mse_loss(a, a + 1), "aten::_mse_loss"),
        (lambda a: nn.functional.cross_entropy(a, MARKS), "aten::_cross_entropy"),
        (lambda a: nn.functional.embedding(MARKS, a), "aten::embedding"),
    ],
)
def test_a_compiled_composite_opens_too(call, inside):
    a = ROWS.clone()
    with Recorder(passes=True) as opened:
        call(a)
    assert inside is None or inside in opened.names[1:], opened.names


def test_an_observer_above_one_that_takes_composites_whole_does_not_open_them_for_it():
    a = tg.ones(2)
    with Recorder() as lower, Recorder(passes=True) as upper:
        tg.hstack([a, a])
    assert lower.names == upper.names == ["aten::hstack"]


# ---- what is no op -------------------------------------------------------------------------------------------------


class Separate(tg.autograd.Function):
    @staticmethod
    def forward(x, power=2):
        return x**power

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0], None


class Legacy(tg.autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x

    def backward(self, grad):
        return grad * 2 * self.saved_tensors[0]


@pytest.mark.parametrize(
    "call, slope",
    [
        (lambda x: Cube.apply(x), 12),
        (lambda x: Cube.apply(x, scale=2.0), 24),
        (lambda x: Separate.apply(x), 4),
        (lambda x: Separate.apply(x, 2), 4),
        (lambda x: Legacy()(x), 4),
    ],
    ids=["ctx", "keyword", "separate", "separate with default", "legacy"],
)
def test_a_function_is_one_operation_and_keeps_its_derivative(call, slope):
    x = tg.tensor(2.0, requires_grad=True)
    with Recorder(passes=True) as above, Recorder() as recorder:
        y = call(x)
    assert [n for n in recorder.names if n.startswith("function::")] == recorder.names
    assert above.names == recorder.names
    assert recorder.seen[0][0].function in (Cube, Separate, Legacy)
    assert not recorder.seen[0][0].composite
    y.backward()
    assert x.grad.item() == slope


def test_a_function_may_be_run_more_than_once_by_a_level():
    class Twice(Observer):
        def process(self, operation, args):
            if operation.name.startswith("function::"):
                return operation(*args) + operation(*args)
            return operation(*args)

    x = tg.tensor(2.0, requires_grad=True)
    with Twice():
        y = Cube.apply(x)
    y.backward()
    assert (y.item(), x.grad.item()) == (16, 24)


def test_a_whole_training_step_is_seen_once_with_the_users_lines(forget_ops):
    tg.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    model[3].register_forward_hook(lambda module, args, output: output * 1.0)
    optimizer = tg.optim.Adam(model.parameters())
    double = tg.library.custom_op(
        "levels_test::double", lambda x: x + x, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    double.register_autograd(lambda ctx, grad: grad * 2)
    x = tg.randn(3, 1, 4, 4)

    class Lines(Recorder):
        def process(self, operation, args):
            self.seen.append((operation, user_line()))
            return operation(*args)

    for _ in range(2):
        with Lines() as tape:
            optimizer.zero_grad()
            loss = Cube.apply(double(model(x))).mean()
            loss.backward()
            optimizer.step()
        names = tape.names
        assert names.count("optim::zero_grad") == names.count("optim::adam") == 1
        assert names.count("function::Cube") == names.count("levels_test::double") == 1
        assert names.count("autograd::accumulate_grad") == 4
        assert names[0] == "optim::zero_grad" and names[-1] == "optim::adam"
        lines = [line for _, line in tape.seen]
        assert all(str(ROOT / "tests") in line for line in lines), lines


@pytest.fixture
def forget_ops():
    """Ops that the test defines are gone when it is over."""
    mark = scope.application.mark()
    yield
    scope.application.undo(mark)


@pytest.mark.parametrize("optimizer", [tg.optim.SGD, tg.optim.Adam, tg.optim.AdamW])
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "in ops"])
def test_an_update_is_one_operation_whether_compiled_or_not(optimizer, compiled, monkeypatch):
    if not compiled:
        for name in ("sgd_step", "adam_step"):
            monkeypatch.setattr(_fused.native, name, lambda *args: False)
    p = nn.Parameter(tg.ones(3))
    p.grad = tg.ones_like(p)
    opt = optimizer([p], lr=0.1, **({"momentum": 0.9} if optimizer is tg.optim.SGD else {}))
    for _ in range(2):
        with Recorder() as tape:
            opt.step()
        assert [n for n in tape.names if n.startswith("optim::")] == [
            "optim::sgd" if optimizer is tg.optim.SGD else "optim::adam"
        ]
    assert p[0].item() != 1


def test_a_gradient_kept_by_retain_grad_is_an_operation():
    x = tg.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    with Recorder() as tape:
        y.sum().backward()
    assert "autograd::retain_grad" in tape.names
    assert y.grad.tolist() == [1, 1]
    assert x.grad.tolist() == [2, 2]


def test_making_a_parameter_is_an_operation():
    data = tg.ones(2)
    with Recorder(passes=True) as tape:
        parameter = nn.Parameter(data)
    assert tape.names == ["nn::Parameter"]
    assert parameter.data_ptr() == data.data_ptr()


def test_a_function_of_the_host_is_made_atomic():
    @atomic("demo::twice")
    def twice(x):
        return x + x

    a = tg.ones(1)
    with Recorder(passes=True) as tape:
        result = twice(a)
    assert tape.names == ["demo::twice"]
    assert result.item() == twice(a).item() == 2


def test_ranges_reach_observers():
    class Ranges(Observer):
        def __init__(self):
            self.heard = []

        def process(self, operation, args):
            self.heard.append(operation.name)
            return operation(*args)

        def begin(self, name):
            self.heard.append(f"begin {name}")

        def end(self, name):
            self.heard.append(f"end {name}")

    a = tg.ones(1)
    with Ranges() as ranges, record_function("outer"):
        a.neg()
        with pytest.raises(KeyError), record_function("inner"):
            raise KeyError
    assert ranges.heard == ["begin outer", "aten::neg", "begin inner", "end inner", "end outer"]

    @record_function("whole")
    def work():
        return a.exp()

    with Ranges() as ranges:
        work()
    assert ranges.heard == ["begin whole", "aten::exp", "end whole"]


# ---- nesting -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_levels_and_overrides_that_were_used_and_fifty_plugins_cost_a_plain_call_no_instruction():
    done = subprocess.run(
        [sys.executable, "-m", "tools.count_instructions", "--levels", "--plain"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for call, counts in zip(("a + b", "add(a, b)"), done.stdout.splitlines(), strict=True):
        never, used = map(float, counts.split())
        assert used <= 1.02 * never, f"{call}: {never} instructions, {used} after levels, overrides and plugins"


def test_lines_are_the_users_whatever_lay_in_memory_where_a_function_lies():
    own = os.path.join(os.path.dirname(tg.__file__), "made_up.py")
    for i in range(200):
        name, names = own if i % 3 == 1 else f"of_a_user_{i % 2}.py", {}
        exec(compile("def f(x):\n    return x.exp()\n", name, "exec"), names)
        line = capture(names["f"])(tg.ones(2)).nodes[0].line
        assert ("made_up.py" not in line) if name == own else (name in line)
        del names
