"""Each check of the battery fails for the fault it is there for, names the smallest case, and passes built-in ops."""

import itertools
import re
import threading
from pathlib import Path

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import overrides
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.testing import battery, check_op
from tinygrad_ext.testing.battery.check import run_check
from tinygrad_ext.testing.battery.subject import OpSubject
from tinygrad_ext.testing.battery.values import THREADS

counter = itertools.count()
scratch = tg.zeros(64)
all_wrote = threading.Barrier(THREADS)
hoard = []


def pairs(make):
    yield Sample(make(4, 5), make(4, 5))
    yield Sample(make(3), make(3))


def writes(self, other):
    """Changes its first argument through NumPy, behind autograd's back, when it has several elements."""
    if self.numel() > 1:
        self.detach().numpy()[...] = 0
    return self + other


def hidden_write(self):
    """Declared to write, but tells nobody: no version is counted."""
    self.detach().numpy()[...] += 1
    return self


def remembered(self):
    """Wrong by the number of calls before."""
    return self + float(next(counter))


def through_scratch(self):
    """All threads share one buffer."""
    part = scratch[: self.numel()]
    part.copy_(self.detach().reshape(-1))
    if threading.current_thread() is not threading.main_thread():
        all_wrote.wait()
    return part.clone().reshape(self.shape)


def reads_memory(self):
    """Reads the elements in the order in which they lie in memory."""
    flat = tg.as_strided(self.detach(), (self.numel(),), (1,), self.storage_offset())
    return flat.cumsum(0).reshape(self.shape)


def less_precise(self):
    return self.detach() * (0.5 if self.dtype == tg.float64 else 0.501)


def sees_inside(self):
    """Lets overrides see what it calls."""
    with overrides.enable_reentrant_dispatch():
        return self * 2.0


ANY = "faulty::f(Tensor self) -> Tensor"
TWO = "faulty::f(Tensor self, Tensor other) -> Tensor"
ONE, ROW = "tensor(N, float32)", "tensor([N, N], float32)"
WIDE = "tensor(N, float64, requires_grad)"
same_shape = {"shape": lambda self, *_: tg.empty_like(self, device="meta")}

# check -> (schema, fields of the record, part of the message, the smallest case)
FAULTS = {
    "samples": ("faulty::f(Tensor self, Generator g) -> Tensor", {"compose": lambda self, g: self}, "add samples=", ""),
    "schema": (ANY, {"kernel": lambda self: (self + 1, self)}, "declared as Tensor, returned tuple of 2", ONE),
    "mutation": (
        TWO,
        {"kernel": writes, "samples": pairs},
        "changes its argument 'self' (from [1.0, 1.0] to [0.0, 0.0])",
        f"{ROW}, tensor([N], float32)",
    ),
    "aliasing": (ANY, {"compose": lambda self: self.reshape(-1)}, "shares memory with its argument 'self'", ONE),
    "shape": (
        ANY,
        {"kernel": lambda self: self[None], **same_shape},
        "meta gives torch.Size([]) torch.float32, real torch.Size([1])",
        ONE,
    ),
    "reference": (
        ANY,
        {"compose": lambda self: self * 2, "reference": np.negative},
        "Not equal to tolerance",
        ONE,
    ),
    "errors": (
        ANY,
        {"compose": lambda self: self * 2, "errors": [(lambda: None, RuntimeError, "negative")]},
        "a call that must raise RuntimeError with 'negative' raises nothing",
        "",
    ),
    "layouts": (ANY, {"kernel": reads_memory, **same_shape}, "stepped: tensor(", ROW),
    "dtypes": (ANY, {"kernel": less_precise, **same_shape}, "float32 beside float64", ONE),
    "odd_shapes": (
        ANY,
        {"compose": lambda self: self * (1 / self.numel())},
        "raised ZeroDivisionError",
        ONE,
    ),
    "inplace": (
        ANY,
        {"kernel": remembered, **same_shape, "variants": "function method inplace"},
        "Not equal to tolerance",
        ONE,
    ),
    "out": (
        ANY,
        {"kernel": remembered, **same_shape, "variants": "function out"},
        "differs from",
        ONE,
    ),
    "repeat": (ANY, {"kernel": remembered, **same_shape}, "the second call gives [tensor(", ONE),
    "threads": (ANY, {"kernel": through_scratch, **same_shape}, "with 8 threads at once one of them got", ROW),
    "autograd": (
        TWO,
        {
            "kernel": lambda self, other: self * other,
            "grad": {"self": lambda grad, other, **_: (grad * other).sum()},
            "samples": pairs,
        },
        "invalid gradient at index 0",
        "tensor([N], float64, requires_grad), tensor([N], float64, requires_grad)",
    ),
    "meta_gradients": (
        ANY,
        {
            "kernel": lambda self: self * 2,
            **same_shape,
            "grad": {"self": lambda grad, self, **_: grad * float(self.reshape(-1)[0] > -99)},
        },
        "raised RuntimeError: Tensor.item() cannot be called on meta tensors",
        WIDE,
    ),
    "derivative": (
        TWO,
        {
            "kernel": lambda self, other: self * other,
            "grad": {"self": "mul(grad, other)", "other": "mul(grad, other)"},
            "samples": pairs,
        },
        "Jacobian mismatch for output 0 with respect to input 1",
        f"{WIDE}, {WIDE}",
    ),
    "second_derivative": (
        ANY,
        {
            "kernel": lambda self: self.detach() ** 3,
            "grad": {"self": lambda grad, self, **_: grad * (3 * self.detach() ** 2)},
        },
        "gradient of tensors[0] by tensors[0]",
        WIDE,
    ),
    "override": (ANY, {"compose": sees_inside}, "also sees mul, which the op calls inside", ONE),
    "settings": (
        ANY,
        {"compose": lambda self: (tg.manual_seed(3), self * 2)[1]},
        "a call changes the random state; say tags='random'",
        ONE,
    ),
    "release": (
        ANY,
        {"compose": lambda self: (hoard.append(self), self * 2)[1]},
        "an argument of a call cannot be freed after it",
        "tensor(N, float32, requires_grad)",
    ),
    "pickle": (ANY, {"compose": lambda self: self * 2}, "not the overload: something else was put in its place", ""),
}
# check -> what its author does besides, with the callable
BESIDES = {"pickle": lambda f: setattr(f, "default", abs)}


def shape_of(call):
    """The text of a call with N for every number."""
    return re.sub(r"-?\d+\.\d+", "N", call).replace("tg.", "").replace("dtype=", "").replace("=True", "")


@pytest.mark.parametrize("check", FAULTS)
def test_a_check_fails_for_its_fault_and_names_the_smallest_case(check, register_temporarily):
    schema, fields, message, case = FAULTS[check]
    f = register_temporarily.op(schema, **fields)
    BESIDES.get(check, id)(f)
    result = run_check(battery.OP_CHECKS[check], OpSubject(f.candidates[0]))
    assert result.status == "failed"
    assert message in result.message
    assert shape_of(result.case) == (f"ops.faulty.f({case})" if case else "")


@pytest.mark.parametrize(
    ("check", "tags"),
    [
        ("repeat", "unset"),
        ("repeat", "nondeterministic_bitwise"),
        ("threads", "random"),
        ("threads", "nondeterministic_seeded"),
        ("shape", "data_dependent"),
        ("shape", "dynamic_output_shape"),
        ("aliasing", "maybe_aliasing_or_mutating"),
        ("meta_gradients", "data_dependent_grad"),
    ],
)
def test_tags_excuse_from_a_check(check, tags, register_temporarily):
    schema, fields, _, _ = FAULTS[check]
    op = register_temporarily.op(schema, **fields, tags=tags).candidates[0]
    result = run_check(battery.OP_CHECKS[check], OpSubject(op))
    assert (result.status, bool(result.message)) == ("skipped", True)


@pytest.mark.parametrize("gap", ["derivative", "gradcheck"])
def test_a_gap_of_the_record_excuses_from_a_check(gap, register_temporarily):
    schema, fields, _, _ = FAULTS["derivative"]
    op = register_temporarily.op(schema, **fields, gaps={gap: "known to be wrong"}).candidates[0]
    result = run_check(battery.OP_CHECKS["derivative"], OpSubject(op))
    assert (result.status, result.message) == ("skipped", "gap: known to be wrong")


def leaves(make):
    raise SystemExit("no more")


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (
            lambda make: [(make(2),)],
            "samples= raises: TypeError: faulty::f: samples= must yield ops.samples.Sample(...)",
        ),
        (lambda make: 3, "samples= raises: TypeError: 'int' object is not iterable"),
        (leaves, "samples= raises: SystemExit: no more"),
        (lambda make: [], "no samples: add samples= to the record of faulty::f"),
    ],
)
def test_faulty_samples_fail_that_check_and_skip_the_others(samples, message, register_temporarily):
    report = check_op(register_temporarily.op(ANY, compose=lambda self: self * 2, samples=samples))
    assert [r.check for r in report.of("failed")] == ["samples"]
    assert report.of("failed")[0].message.startswith(message)


def test_made_up_samples_are_said_to_be(register_temporarily):
    report = check_op(register_temporarily.op(ANY, compose=lambda self: self * 2), only=["samples", "dtypes"])
    assert [r.status for r in report.results] == ["passed", "passed"]
    assert "made up from the schema" in report.results[0].message
    assert report.results[1].message.startswith("computes in bool, uint8, ")
    assert "2 passed; samples made up" in str(report)


def exits(self):
    tg.set_default_dtype(tg.float64)
    tg.manual_seed(7)
    raise SystemExit(3)


def test_an_op_that_exits_is_a_failure_and_the_host_is_as_before(register_temporarily):
    tg.manual_seed(1)
    expected = tg.rand(2).tolist()
    tg.manual_seed(1)
    report = check_op(register_temporarily.op(ANY, kernel=exits, samples=lambda make: [Sample(make(2))]))
    assert "raised SystemExit: 3" in {r.check: r.message for r in report.of("failed")}["schema"]
    assert tg.get_default_dtype() == tg.float32
    assert tg.rand(2).tolist() == expected


def test_an_op_that_gets_another_kernel_is_looked_at_anew(register_temporarily):
    factor = [None]
    op = register_temporarily.op(ANY, compose=lambda self: self * factor[0])
    assert not check_op(op, only=["schema", "derivative"]).ok
    factor[0] = 2.0
    assert check_op(op, only=["schema", "derivative"]).counts["passed"] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: tg.set_default_dtype(tg.float64), "default dtype"),
        (lambda: tg.set_num_threads(5), "number of threads"),
        (lambda: overrides.BaseTorchFunctionMode().__enter__(), "stack of modes"),
    ],
)
def test_a_setting_that_a_call_changes_is_named_and_put_back(change, message, register_temporarily):
    settings = tg.get_default_dtype(), tg.get_num_threads(), overrides_on()
    op = register_temporarily.op(ANY, compose=lambda self: (change(), self * 2)[1])
    result = run_check(battery.OP_CHECKS["settings"], OpSubject(op.candidates[0]))
    assert f"a call changes the {message}" in result.message
    assert (tg.get_default_dtype(), tg.get_num_threads(), overrides_on()) == settings


def overrides_on():
    """Number of modes that see this thread's calls."""
    return len(overrides._get_current_function_mode_stack())


def test_every_check_is_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "check_plugins.md").read_text()
    missing = [name for name in battery.check_names() if f"`{name}`" not in page]
    assert not missing


def test_every_check_of_ops_has_a_fault():
    assert set(FAULTS) == set(battery.OP_CHECKS)


# one or two ops of each kind: pointwise, reduction, view, index, product, random, several results, composite, fused
BUILTIN = [
    "exp",
    "add.Tensor",
    "div.Tensor",
    "where.self",
    "sum.dim_IntList",
    "max.dim",
    "softmax.int",
    "reshape",
    "transpose.int",
    "expand",
    "cat",
    "stack",
    "index_select",
    "gather",
    "masked_fill.Scalar",
    "matmul",
    "addmm",
    "conv2d",
    "max_pool2d",
    "layer_norm",
    "embedding",
    "mse_loss",
    "cumsum",
    "sort",
    "topk",
    "nonzero",
    "unique",
    "rand",
    "bernoulli",
    "dropout",
    "einsum",
    "meshgrid",
    "positive",
    "atleast_1d",
    "linspace",
    "eye",
]


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_ops_pass(name):
    report = check_op(f"aten::{name}")
    assert report.ok, str(report)


def test_checks_do_not_depend_on_assertions_being_on():
    """`python -O` takes assert statements out, and pytest rewrites them: then messages change."""
    import ast
    from pathlib import Path

    import tinygrad_ext.testing as testing

    for file in Path(testing.__file__).parent.rglob("*.py"):
        statements = ast.walk(ast.parse(file.read_text()))
        assert not [n.lineno for n in statements if isinstance(n, ast.Assert)], (
            f"{file.name}: raise AssertionError instead"
        )
