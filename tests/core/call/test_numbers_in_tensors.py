"""Tensors of one integer where an int is asked for."""

import pytest

import tinygrad_ext as tg

ONE = [tg.tensor(3), tg.tensor([3]), tg.tensor([[3]], dtype=tg.int32)]


@pytest.mark.parametrize("n", ONE)
def test_they_are_sizes_and_dimensions(n):
    x = tg.arange(12.0)
    assert tg.rand(n).shape == (3,) and tg.zeros(2, n).shape == (2, 3) and tg.ones((n, 2)).shape == (3, 2)
    assert tg.randint(0, n, size=(2, n)).shape == (2, 3) and tg.full([n], 1.0).shape == (3,)
    assert x.view(n, -1).shape == (3, 4) and x.topk(n)[0].tolist() == [11, 10, 9] and x.select(0, n).item() == 3
    assert tg.ones(1, 1, 1, 2).sum(n).shape == (1, 1, 1) and x.expand(n, 12).shape == (3, 12)
    assert tg.nn.Linear(n, 2).weight.shape == (2, 3)


def test_where_a_tensor_is_taken_too_it_is_that():
    x = tg.arange(6)
    assert [part.tolist() for part in tg.tensor_split(x, tg.tensor([2]))] == [[0, 1], [2, 3, 4, 5]]
    assert [part.tolist() for part in tg.tensor_split(x, tg.tensor(2))] == [[0, 1, 2], [3, 4, 5]]
    assert x[:1].repeat_interleave(tg.tensor([2])).tolist() == [0, 0] and x[tg.tensor([2])].tolist() == [2]
    assert (x ** tg.tensor([2])).tolist() == [0, 1, 4, 9, 16, 25]
    assert x.max(tg.tensor([3])).tolist() == [3, 3, 3, 3, 4, 5]


@pytest.mark.parametrize("n", [tg.tensor([3.0]), tg.tensor([True]), tg.tensor([3, 4]), tg.tensor([])])
def test_others_are_refused(n):
    for call in (lambda: tg.rand(n, 2), lambda: tg.zeros((2, n)), lambda: tg.arange(12).view(n, -1)):
        with pytest.raises(TypeError):
            call()
