"""What is called by a slot of its type says so, as functions do."""

from unittest import mock

import pytest

import tinygrad_ext as tg

_LAYER = tg.nn.Linear(1, 1)


@pytest.mark.parametrize(
    "function",
    [
        tg.add,
        tg.Tensor.add,
        tg.ops.aten.add,
        tg.ones(1).sum,
        tg.broadcast_shapes,
        tg.is_conj,
        _LAYER.zero_grad,
        tg.load,
    ],
    ids=range(8),
)
def test_functions_show_that_they_are_called(function):
    assert function.__call__ is not None and mock._callable(function)


def test_the_attribute_calls():
    x = tg.ones(2)
    assert tg.add.__call__(x, 2).tolist() == [3, 3] and x.sum.__call__().item() == 2
    assert type(tg.add).__call__(tg.add, x, other=1, alpha=2).tolist() == [3, 3]
    assert mock.Mock(side_effect=tg.add)(x, 1).tolist() == [2, 2]
    with pytest.raises(TypeError, match="add"):
        tg.add.__call__()


def test_keyword_defaults_are_told_as_functions_of_python_tell_them():
    assert tg.meshgrid.__kwdefaults__ == {"indexing": None}
    assert tg.add.__kwdefaults__ == {"alpha": 1, "out": None}
    assert tg.nn.functional.relu.__kwdefaults__ is None
