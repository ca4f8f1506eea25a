"""Which arguments count: tensors in every place, also where a number or an index is expected."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, nn
from tinygrad_ext.nn import functional as F


class Sub(Tensor):
    """A subclass that says nothing: results are of it when it was asked."""


class Duck:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func


def t():
    return tg.arange(6.0).reshape(2, 3)


ONE = tg.tensor(1).as_subclass(Sub)
TWO = tg.tensor(2.0).as_subclass(Sub)
BOTH = tg.tensor([0, 1]).as_subclass(Sub)
DUCK = Duck()


@pytest.mark.parametrize(
    "call",
    [
        lambda: t().fill_(TWO),
        lambda: t().masked_fill(t() > 1, TWO),
        lambda: tg.masked_fill(t(), t() > 1, TWO),
        lambda: t().index_fill(0, tg.tensor([0]), TWO),
        lambda: tg.linspace(0, TWO, 3),
        lambda: tg.add(t(), t(), alpha=TWO),
        lambda: F.leaky_relu(t(), TWO),
    ],
)
def test_a_subclass_that_stands_for_a_number_counts(call):
    assert type(call()) is Sub


@pytest.mark.parametrize(
    "call",
    [
        lambda: t().sum((ONE, 0)),
        lambda: t().view(ONE + 1, 3),
        lambda: t().view([3, ONE + 1]),
        lambda: t().repeat(ONE, ONE),
        lambda: t().permute(ONE, 0),
        lambda: tg.zeros(ONE),
        lambda: tg.zeros([ONE, 2]),
        lambda: F.pad(t(), (ONE, ONE)),
        lambda: t().split([ONE, ONE])[0],
    ],
)
def test_a_subclass_in_a_list_of_sizes_counts(call):
    assert type(call()) is Sub


@pytest.mark.parametrize("index", [[BOTH], [0, ONE], (0, [ONE]), (slice(None), BOTH), BOTH, (ONE,), ([ONE], 0)])
def test_a_subclass_in_an_index_counts(index):
    assert type(t()[index]) is Sub


@pytest.mark.parametrize("index", [[DUCK], [0, DUCK], (0, [DUCK]), (0, (DUCK,)), (DUCK,), DUCK, (None, ..., DUCK)])
def test_a_duck_in_an_index_counts(index):
    asked = []

    class Noting(Duck):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            asked.append(func)

    index = _with(Noting(), index)
    t()[index]
    t()[index] = 1
    assert asked == [Tensor.__getitem__, Tensor.__setitem__]


def _with(value, index):
    """The index with value in the place of DUCK."""
    if isinstance(index, (list, tuple)):
        return type(index)(_with(value, i) for i in index)
    return value if index is DUCK else index


@pytest.mark.parametrize(
    "call", [lambda: F.pad(t(), (DUCK, DUCK)), lambda: t().reshape([DUCK, 3]), lambda: tg.zeros([DUCK])]
)
def test_a_duck_in_a_list_of_numbers_counts(call):
    assert call() in (F.pad, Tensor.reshape, tg.zeros)


def test_a_subclass_is_asked_about_a_comparison_with_none():
    seen = []

    class Noting(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func, args[1]))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = t().as_subclass(Noting)
    assert (x == None) is False  # noqa: E711
    assert seen == [(Tensor.__eq__, None)]
    assert (t() == None) is False  # noqa: E711


def test_equality_is_one_function_by_name_and_by_operator():
    assert Tensor.__eq__ is Tensor.eq
    assert (t() == DUCK) is Tensor.eq
    assert (t() == DUCK) is Tensor.eq


def test_reversed_is_a_call_of_its_own():
    assert list(reversed(tg.tensor([1, 2, 3])).tolist()) == [3, 2, 1]
    assert reversed(tg.tensor(5)).item() == 5
    assert type(reversed(BOTH)) is Sub
    assert Tensor.__reversed__(DUCK) is Tensor.__reversed__


def test_functions_of_numpy_keep_the_subclass():
    x = t().as_subclass(Sub)
    for result in (np.sin(x), np.add(x, 1), np.ones((2, 3)) * x, np.float32(2) * x, *np.modf(x)):
        assert type(result) is Sub
    assert type(np.sin(t())) is Tensor


# ---- what makes tensors without being a factory


def test_constructors_and_parameters_are_not_seen_by_modes():
    seen = []

    class Log(tg.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = t()
    with Log():
        Tensor(2), Tensor([1.0]), tg.FloatTensor(2), Tensor(x), nn.Parameter(x), nn.Parameter()
    assert seen == []


def test_a_default_device_is_for_factories_not_for_constructors():
    with tg.device("meta"):
        assert {x.device.type for x in (Tensor(2), tg.FloatTensor(2), Tensor())} == {"cpu"}
        assert {x.device.type for x in (tg.zeros(2), tg.tensor([1.0]), tg.tensor(np.ones(2)))} == {"meta"}


def test_tensor_of_an_array_or_list_goes_where_device_says():
    for data in (np.ones((2, 3)), [[1.0] * 3] * 2):
        made = tg.tensor(data, device="meta", dtype=tg.float64)
        assert (made.device.type, tuple(made.shape), made.dtype) == ("meta", (2, 3), tg.float64)


def test_a_function_with_several_names_is_known_by_its_own():
    assert tg.overrides.resolve_name(Tensor.nelement) == "tinygrad_ext.Tensor.numel"
    assert tg.overrides.resolve_name(Tensor.ndimension) == "tinygrad_ext.Tensor.dim"
