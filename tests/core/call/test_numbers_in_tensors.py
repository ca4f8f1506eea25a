"""Tensors of one integer where sizes and dimensions are asked for."""

import pytest

import tinygrad_ext as tg

ONE = [tg.tensor(3), tg.tensor([3]), tg.tensor([[3]], dtype=tg.int32)]


@pytest.mark.parametrize("n", ONE)
def test_they_are_sizes_whatever_their_own_dimensions(n):
    x = tg.arange(12.0)
    assert tg.zeros(n).shape == (3,) and tg.rand(n).shape == (3,) and tg.zeros(2, n).shape == (2, 3)
    assert tg.ones((n, 2)).shape == (3, 2) and tg.full([n], 1.0).shape == (3,) and x.new_zeros(n, 1).shape == (3, 1)
    assert x.view(n, -1).shape == (3, 4) and x.reshape(n * 4).shape == (12,) and x[:1].expand(n).shape == (3,)
    assert tg.randint(0, 5, (2, n)).shape == (2, 3) and tg.ones(6).split([n, n])[1].shape == (3,)
    assert tg.ones(2).tile(n).shape == (6,) and tg.ones(2).repeat(n).shape == (6,)
    assert tg.nn.Linear(2, 3).weight.view(n, 2).shape == (3, 2)


@pytest.mark.parametrize("one", [tg.tensor(1), tg.tensor([1])])
def test_they_are_dimensions_in_lists_of_them(one):
    x = tg.arange(6).view(2, 3)
    assert x.sum(one).tolist() == [3, 12] and x.flip(one).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert x.permute(one, 0).shape == (3, 2) and x.roll(one, one).tolist() == [[2, 0, 1], [5, 3, 4]]


def test_a_lone_int_is_a_tensor_without_dimensions():
    x = tg.arange(12.0)
    assert x.topk(tg.tensor(3))[0].tolist() == [11, 10, 9] and x.select(0, tg.tensor(3)).item() == 3
    for call in (lambda n: x.topk(n), lambda n: x.select(0, n), lambda n: x.chunk(n)):
        with pytest.raises(TypeError):
            call(tg.tensor([3]))


def test_where_a_tensor_is_taken_too_it_is_that():
    x = tg.arange(6)
    assert [part.tolist() for part in tg.tensor_split(x, tg.tensor([2]))] == [[0, 1], [2, 3, 4, 5]]
    assert [part.tolist() for part in tg.tensor_split(x, tg.tensor(2))] == [[0, 1, 2], [3, 4, 5]]
    assert x[:1].repeat_interleave(tg.tensor([2])).tolist() == [0, 0] and x[tg.tensor([2])].tolist() == [2]
    assert (x ** tg.tensor([2])).tolist() == [0, 1, 4, 9, 16, 25]
    assert x.max(tg.tensor([3])).tolist() == [3, 3, 3, 3, 4, 5]


@pytest.mark.parametrize("n", [tg.tensor([3.0]), tg.tensor([True]), tg.tensor([3, 4]), tg.tensor([])])
def test_others_are_refused(n):
    for call in (lambda: tg.zeros(n), lambda: tg.rand(n, 2), lambda: tg.zeros((2, n)), lambda: tg.ones(12).view(n, -1)):
        with pytest.raises(TypeError):
            call()


def test_refused_values_are_the_others():
    with pytest.raises(TypeError, match="must be tuple of ints, but found element of type float at pos 1"):
        tg.zeros((tg.tensor([3]), 2.0))
    with pytest.raises(TypeError, match="must be tuple of ints, not float"):
        tg.zeros(tg.tensor([3]), 2.0)


@pytest.mark.parametrize("data", [(2**64, 1), [1, 2**63], [[-(2**63) - 1]], (2**64, True), 2**64])
def test_numbers_of_more_than_64_bits_are_refused_wherever_they_stand(data):
    for make in (tg.tensor, tg.as_tensor):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            make(data)


def test_numbers_of_more_than_64_bits_are_floats_beside_floats():
    assert tg.tensor([2**64, 1.5]).tolist() == [2.0**64, 1.5] and tg.tensor([2**64], dtype=tg.float64).item() == 2.0**64


def test_other_layouts_are_refused_with_what_makes_them():
    with pytest.raises(NotImplementedError, match="torch.sparse_coo: .* sparse_coo_tensor.* to_sparse"):
        tg.zeros(2, layout=tg.sparse_coo)


def test_complex_numbers_are_true_unless_they_are_zero():
    assert tg.tensor([0j, 1j, 2, -0.0, complex(0, -0.0)], dtype=tg.bool).tolist() == [False, True, True, False, False]
    with pytest.raises(TypeError, match="cannot hold 1j"):
        tg.tensor([1j], dtype=tg.float32)
