"""The parts the battery stands on: samples made up from schemas, cases written down, failing cases made small."""

import doctest
import importlib

import pytest

import tinygrad_ext as tg
from tinygrad_ext.ops.samples import Maker, Sample
from tinygrad_ext.ops.schema import Schema
from tinygrad_ext.testing import generate
from tinygrad_ext.testing.battery import FAILED, PASSED, SKIPPED, Report, Result
from tinygrad_ext.testing.battery.case import Case, copied
from tinygrad_ext.testing.battery.shrink import smallest


def made_up(text):
    return generate.from_schema(Schema.parse(text), Maker(tg.float32))


def test_samples_are_made_up_for_every_type_a_value_can_be_made_of():
    first = made_up(
        "ns::f(Tensor x, Tensor[] xs, int n, int[2] size, float f, bool b, str s, Scalar c, ScalarType t, Device d, "
        "Tensor? y, Dict(str, Tensor) named, int k=7, *, float e) -> Tensor"
    )[0]
    assert repr(first) == (
        "Sample(float32[2, 3], [float32[2, 3], float32[2, 3]], 1, [1, 1], 0.5, True, 'a', 2, torch.float32, 'cpu', "
        f"None, {first.args[-1]!r}, e=0.5)"
    )
    assert list(first.args[-1]) == ["a"]


def test_samples_have_several_shapes_and_none_where_there_is_no_tensor():
    assert [list(s.args[0].shape) for s in made_up("ns::f(Tensor x) -> Tensor")] == [list(s) for s in generate.SHAPES]
    assert len(made_up("ns::f(int n) -> Tensor")) == 1


def test_no_samples_are_made_up_for_what_only_the_author_can_make():
    assert made_up("ns::f(Tensor x, Generator g) -> Tensor") == []


@pytest.mark.parametrize(
    ("sample", "text"),
    [
        (Sample(tg.tensor([1.5, -2.0]), 3, dim=1), "f(tg.tensor([1.5, -2.0], dtype=tg.float32), 3, dim=1)"),
        (Sample(tg.tensor(0.1, dtype=tg.float64)), "f(tg.tensor(0.1, dtype=tg.float64))"),
        (Sample(tg.tensor([0.1], requires_grad=True)), "f(tg.tensor([0.1], dtype=tg.float32, requires_grad=True))"),
        (Sample([tg.tensor(True), None], (1,)), "f([tg.tensor(True, dtype=tg.bool), None], (1,))"),
        (Sample(tg.empty(0, 3), "same"), "f(tg.empty((0, 3), dtype=tg.float32), 'same')"),
        (Sample(tg.zeros(5, 5)), "f(tg.rand((5, 5), dtype=tg.float32))"),
        (Sample(tg.float16, x={"a": tg.tensor(1)}), "f(tg.float16, x={'a': tg.tensor(1, dtype=tg.int64)})"),
        (
            Sample(tg.tensor([float("nan"), float("inf"), -float("inf")])),
            "f(tg.tensor([tg.nan, tg.inf, -tg.inf], dtype=tg.float32))",
        ),
    ],
)
def test_a_case_is_written_as_a_call(sample, text):
    assert Case(sample, "float32").text("f") == text
    if sample.kwargs.get("x") is None:
        eval(text, {"tg": tg, "f": lambda *args, **kwargs: None})  # it can be pasted


def test_a_copy_keeps_layout_and_gradient():
    t = tg.rand(3, 4).t().requires_grad_()
    twin = copied(t)
    assert (twin.tolist(), twin.stride(), twin.requires_grad) == (t.tolist(), t.stride(), True)
    assert twin.data_ptr() != t.data_ptr()
    assert copied(tg.rand(1, 3).expand(2, 3)).shape == (2, 3)


def shrunk(sample, wrong, arguments=(), any_values=True):
    """The smallest sample for which wrong(sample) holds."""

    def fails(case):
        return AssertionError("wrong") if wrong(case.sample) else None

    case, _ = smallest(Case(sample, "float32"), AssertionError("wrong"), fails, arguments, any_values)
    return case.sample


def test_sizes_shrink_together_so_that_operands_still_fit():
    def wrong(sample):
        a, b = sample.args
        return a.dim() == b.dim() == 2 and a.shape[1] == b.shape[0] > 2

    got = shrunk(Sample(tg.rand(4, 6), tg.rand(6, 5)), wrong)
    assert [list(t.shape) for t in got.args] == [[1, 3], [3, 1]]


def test_dimensions_lists_and_defaults_are_left_out():
    schema = Schema.parse("ns::f(Tensor[] xs, int dim=0, *, bool keep=False) -> Tensor")
    sample = Sample([tg.rand(2, 3), tg.rand(2, 3), tg.rand(2, 3)], 0, keep=True)
    got = shrunk(sample, lambda s: len(s.args[0]) > 1, schema.args)
    assert repr(got) == "Sample([float32[], float32[]])"


def test_values_become_plain_only_where_any_will_do():
    sample = Sample(tg.tensor([1.2345, 2.5]))
    assert shrunk(sample, lambda s: s.args[0].numel() == 2).args[0].tolist() == [1.0, 1.0]
    assert shrunk(sample, lambda s: s.args[0].max() > 1.5).args[0].tolist() == [1.0, 2.0]
    kept = shrunk(sample, lambda s: s.args[0].numel() == 2, any_values=False).args[0].tolist()
    assert kept == pytest.approx([1.23, 2.5])


def test_another_failure_is_not_the_same_failure():
    def fails(case):
        return ValueError("too small") if case.sample.args[0].numel() < 4 else RuntimeError("size 4 of 12")

    case, error = smallest(Case(Sample(tg.rand(3, 4)), "float32"), RuntimeError("size 12 of 12"), fails, (), True)
    assert case.sample.args[0].numel() == 4
    assert isinstance(error, RuntimeError)


def test_a_report_is_all_well_when_something_passed_and_nothing_failed():
    results = {status: Result("ns::f", "op", "schema", status) for status in (PASSED, FAILED, SKIPPED)}
    assert Report("x", "", [results[PASSED], results[SKIPPED]]).exit_status == 0
    assert Report("x", "", [results[PASSED], results[FAILED]]).exit_status == 1
    assert Report("x", "", [results[SKIPPED]]).exit_status == 1
    assert str(Report("x", "tgx-x 1.0")) == "x of tgx-x 1.0: nothing to check"


@pytest.mark.parametrize("module", ["battery.run", "opcheck"])
def test_examples_in_docstrings_run(module):
    found = importlib.import_module(f"tinygrad_ext.testing.{module}")
    assert doctest.testmod(found, raise_on_error=True).attempted > 0
