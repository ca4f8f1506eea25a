"""The example types do what their docstrings say, in calls with plain tensors and with each other."""

import doctest
from pathlib import Path

import pytest

import tinygrad_ext as tg

FOLDER = Path(__file__).parents[2] / "examples" / "overrides"
NAMES = [path.stem for path in sorted(FOLDER.glob("*.py"))]


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_of_an_example_are_true(load, name):
    result = doctest.testmod(load(name))
    assert result.attempted > 0
    assert result.failed == 0


# ---- ScalarTensor --------------------------------------------------------------------------------------------------


def test_scalar_tensor_keeps_its_short_form_where_it_can(load):
    ScalarTensor = load("scalar_tensor").ScalarTensor
    a, b = ScalarTensor(3, 2.0), ScalarTensor(3, 5.0)
    for result, value in ((tg.add(a, b), 7.0), (a @ b, 10.0), (a * b, 10.0), (3 * a, 6.0)):
        assert isinstance(result, ScalarTensor)
        assert (result.n, result.value) == (3, value)
    assert tg.mean(a) == pytest.approx(float(tg.mean(a.tensor())))
    assert tg.sum(a) == 6.0


@pytest.mark.parametrize(
    "call",
    [
        lambda s, t: tg.add(s, t),
        lambda s, t: tg.add(t, s),
        lambda s, t: t + s,
        lambda s, t: tg.add(s, s, alpha=2),
        lambda s, t: tg.mul(s, t),
        lambda s, t: tg.cat([s, t]),
        lambda s, t: tg.exp(s),
        lambda s, t: tg.nn.functional.softmax(s, dim=1),
    ],
)
def test_everything_else_sees_the_dense_matrix(load, call):
    s, t = load("scalar_tensor").ScalarTensor(2, 3.0), tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    result = call(s, t)
    assert type(result) is tg.Tensor
    assert tg.equal(result, call(s.tensor(), t))


def test_scalar_tensors_of_two_sizes_do_not_match(load):
    ScalarTensor = load("scalar_tensor").ScalarTensor
    with pytest.raises(ValueError, match=r"a 2 by 2 and a 3 by 3 matrix do not match"):
        tg.add(ScalarTensor(2, 1.0), ScalarTensor(3, 1.0))


# ---- MetadataTensor ------------------------------------------------------------------------------------------------


def test_metadata_travels_through_functions_and_lists(load):
    MetadataTensor = load("metadata_tensor").MetadataTensor
    m = MetadataTensor([[1, 2], [3, 4]], {"owner": "ministry"})
    for result in (tg.add(tg.ones(2), m), tg.mul(m, 2), tg.cat([tg.ones(1, 2), m]), tg.split(m, 1)[0], m + m):
        assert isinstance(result, MetadataTensor)
        assert result.metadata == {"owner": "ministry"}
    assert tg.mul(tg.tensor([[1, 2], [1, 2]]), m).data.tolist() == [[1, 4], [3, 8]]


def test_of_two_notes_the_first_operands_counts(load):
    MetadataTensor = load("metadata_tensor").MetadataTensor
    a, b = MetadataTensor([1.0], {"unit": "m", "by": "a"}), MetadataTensor([2.0], {"unit": "ft", "date": "today"})
    assert tg.add(a, b).metadata == {"unit": "m", "by": "a", "date": "today"}


def test_metadata_survives_every_function(load):
    report = tg.overrides.check(load("metadata_tensor").MetadataTensor)
    assert report.of("raises") == report.of("falls back") == []


# ---- LoggingMode ---------------------------------------------------------------------------------------------------


def test_the_log_has_a_line_for_every_call_and_none_outside(load):
    written = []
    log = load("logging_mode").LoggingMode(written.append)
    with log:
        x = tg.zeros(2)
        x.add_(1)
        x[0]
    x.exp()
    assert log.lines == written
    assert [line.partition("(")[0] for line in written] == [
        "tinygrad_ext.zeros",
        "tinygrad_ext.Tensor.add_",
        "tinygrad_ext.Tensor.__getitem__",
    ]


def test_logging_tensors_make_logging_tensors(load):
    LoggingTensor = load("logging_mode").LoggingTensor
    x = tg.ones(2).as_subclass(LoggingTensor)
    LoggingTensor.lines.clear()
    assert type(tg.nn.functional.relu(x) * 2) is LoggingTensor
    assert LoggingTensor.lines == [
        "tinygrad_ext.nn.functional.relu(float32[2]) -> float32[2]",
        "tinygrad_ext.Tensor.mul(float32[2], 2) -> float32[2]",
    ]


# ---- Quantity ------------------------------------------------------------------------------------------------------


def test_units_follow_the_arithmetic(load):
    Quantity = load("quantity").Quantity
    metres, seconds = Quantity([3.0, 4.0], {"m": 1}), Quantity(2.0, {"s": 1})
    speed = metres / seconds
    assert speed.unit == {"m": 1, "s": -1}
    assert (speed * seconds).unit == {"m": 1}
    assert (metres**2).unit == {"m": 2}
    assert tg.sqrt(metres * metres).unit == {"m": 1}
    assert tg.sum(metres).unit == {"m": 1}
    assert tg.cat([metres, metres]).unit == {"m": 1}
    assert tg.exp(metres / metres).unit == {}
    assert (2.0 * metres).data.tolist() == [6.0, 8.0]
    assert (tg.ones(2) * metres).unit == {"m": 1}
    assert (metres < metres * 2).tolist() == [True, True]


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda m, s: m + s, r"add\(\) needs equal units, got m and s"),
        (lambda m, s: tg.cat([m, s]), r"cat\(\) needs equal units, got m and s"),
        (lambda m, s: m < s, r"lt\(\) needs equal units"),
        (lambda m, s: m + 1, r"add\(\) needs equal units, got m and 1"),
        (lambda m, s: tg.exp(m), r"exp\(\) needs a pure number, got m"),
        (lambda m, s: tg.pow(2.0, s), r"pow\(\) needs a pure number, got s"),
    ],
)
def test_a_dimension_error_is_caught(load, call, text):
    module = load("quantity")
    metres, seconds = module.Quantity([3.0], {"m": 1}), module.Quantity([2.0], {"s": 1})
    with pytest.raises(module.UnitError, match=text):
        call(metres, seconds)


def test_a_function_without_a_rule_is_refused(load):
    with pytest.raises(TypeError, match=r"no implementation found for 'tinygrad_ext.cumsum'"):
        tg.cumsum(load("quantity").Quantity([1.0], {"m": 1}), 0)


def test_quantities_are_differentiable(load):
    Quantity = load("quantity").Quantity
    x = tg.tensor(3.0, requires_grad=True)
    area = Quantity(x, {"m": 1}) ** 2
    area.data.backward()
    assert x.grad.item() == 6.0


# ---- MaskedTensor --------------------------------------------------------------------------------------------------


@pytest.fixture
def masked(load):
    MaskedTensor = load("masked_tensor").MaskedTensor
    return MaskedTensor(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([[True, False], [True, True]]))


def test_a_result_is_missing_where_an_operand_is(masked):
    result = tg.add(tg.ones(2), masked * 2)
    assert result.mask.tolist() == [[True, False], [True, True]]
    assert result.filled(0.0).tolist() == [[3.0, 0.0], [7.0, 9.0]]
    other = type(masked)(tg.ones(2, 2), tg.tensor([False, True]))
    assert (masked + other).mask.tolist() == [[False, False], [False, True]]


def test_reductions_leave_missing_elements_out(masked):
    assert tg.sum(masked).item() == 8.0
    assert tg.mean(masked).item() == pytest.approx(8 / 3)
    assert tg.mean(masked, 0).tolist() == [2.0, 4.0]
    assert tg.amax(masked, 1).tolist() == [1.0, 4.0]
    assert tg.amin(type(masked)(tg.ones(2), tg.tensor([False, True]))).item() == 1.0


def test_shapes_and_selections_take_the_mask_along(masked):
    assert tg.reshape(masked, (4,)).mask.tolist() == [True, False, True, True]
    assert tg.transpose(masked, 0, 1).mask.tolist() == [[True, True], [False, True]]
    assert masked[0].mask.tolist() == [True, False]


def test_functions_that_would_read_missing_elements_are_refused(masked):
    with pytest.raises(TypeError, match=r"no implementation found for 'tinygrad_ext.cumsum'"):
        tg.cumsum(masked, 0)


def test_a_mask_must_be_bool(load):
    with pytest.raises(TypeError, match="mask must be a bool tensor"):
        load("masked_tensor").MaskedTensor(tg.ones(2), tg.ones(2))
