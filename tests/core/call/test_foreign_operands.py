"""What stands beside a tensor and is no operand of it is declined by the methods of operators, as Python asks."""

import pytest

import tinygrad_ext as tg

NAMES = ["add", "sub", "mul", "mod", "truediv", "floordiv", "and", "or", "xor", "lshift", "rshift", "matmul", "pow"]


class Foreign:
    pass


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["", "r", "i"])
def test_a_method_of_an_operator_declines_a_foreign_operand(name, form):
    if name == "matmul" and form == "i":
        return  # Tensor has none
    assert getattr(tg.ones(2, dtype=tg.int64), f"__{form}{name}__")(Foreign()) is NotImplemented


@pytest.mark.parametrize("name", ["lt", "le", "eq", "ne", "gt", "ge"])
def test_comparisons_decline_it_too(name):
    assert getattr(tg.ones(2), f"__{name}__")(Foreign()) is NotImplemented


def test_the_method_computes_with_tensors_and_numbers_and_tells_what_is_wrong_with_them():
    x = tg.ones(2)
    assert x.__add__(1).tolist() == x.__radd__(x).tolist() == [2, 2] and x.__add__.__name__ == "add"
    assert x.__rsub__(3).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="must match the size"):
        x.__add__(tg.ones(3))
    with pytest.raises(TypeError):
        x.__add__(1, 2)


def test_of_the_class_it_is_the_method_that_overrides_see():
    assert tg.Tensor.__add__ is tg.Tensor.add

    class Own(tg.Tensor):
        def __add__(self, other):
            return super().__add__(other)

    own = tg.ones(2).as_subclass(Own)
    assert (own + 1).tolist() == [2, 2]
    with pytest.raises(TypeError, match="unsupported operand"):
        own + Foreign()
