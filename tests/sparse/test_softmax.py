"""softmax over what a sparse tensor stores: as that of a plain tensor with minus infinity elsewhere."""

import numpy as np
import pytest

import tinygrad_ext as tg

PLACES = [[0, 0, 1, 2, 2], [1, 2, 0, 0, 2]]


def stored(values, size, places=PLACES):
    return tg.sparse_coo_tensor(tg.tensor(places), values, size)


def filled(t):
    """The same as a plain tensor, minus infinity where nothing is stored."""
    there = tg.sparse_coo_tensor(t._indices(), tg.ones_like(t._values()), t.shape).to_dense() > 0
    return t.to_dense().masked_fill(~there, float("-inf")), there


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_what_is_not_stored_counts_as_minus_infinity(name, dim):
    t = stored(tg.tensor([1.0, -2.0, 300.0, 4.0, 5.0]), (3, 3))
    found = getattr(tg.sparse, name)(t, dim)
    plain, there = filled(t)
    want = getattr(tg, name)(plain, dim).masked_fill(~there, 0)
    assert found.is_coalesced() and found._indices().tolist() == PLACES
    np.testing.assert_allclose(found.to_dense().numpy(), want.numpy(), rtol=1e-6)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_values_that_are_vectors(dim):
    values = tg.arange(10.0).sin().reshape(5, 2)
    t = stored(values, (3, 3, 2))
    found = tg.sparse.softmax(t, dim).to_dense()
    plain, there = filled(t)
    want = plain.softmax(dim).masked_fill(~there, 0)
    np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-6)


def test_places_that_stand_there_twice_are_added_first():
    twice = stored(tg.tensor([1.0, 2.0, 1.0]), (2, 2), [[0, 0, 0], [1, 1, 0]])
    once = stored(tg.tensor([1.0, 3.0]), (2, 2), [[0, 0], [0, 1]])
    assert tg.sparse.softmax(twice, 1)._values().tolist() == tg.sparse.softmax(once, 1)._values().tolist()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients_reach_the_values(name):
    values = tg.tensor([1.0, -2.0, 0.5, 4.0, 5.0], dtype=tg.float64, requires_grad=True)
    assert tg.autograd.gradcheck(lambda v: getattr(tg.sparse, name)(stored(v, (3, 3)), 1)._values(), [values])


def test_the_functions_of_plain_tensors_take_sparse_ones():
    t = stored(tg.tensor([1.0, -2.0, 3.0, 4.0, 5.0]), (3, 3))
    want = tg.sparse.softmax(t, 1)._values().tolist()
    assert tg.softmax(t, 1)._values().tolist() == want
    assert tg.nn.functional.softmax(t, dim=1, dtype=tg.float64).dtype is tg.float64
    assert tg.sparse.softmax(t, 1, dtype=tg.float64).dtype is tg.float64
    assert tg.sparse.softmax(t.to(tg.int64), 1, dtype=tg.float32)._values().tolist() == want


@pytest.mark.parametrize(
    "make, error, told",
    [
        (lambda t: tg.sparse.softmax(t.to_dense(), 1), NotImplementedError, "layout torch.sparse_coo"),
        (lambda t: tg.sparse.log_softmax(t.to_sparse_csr(), 1), NotImplementedError, "layout torch.sparse_coo"),
        (lambda t: tg.sparse.softmax(t.to(tg.int64), 1), NotImplementedError, "pass dtype="),
        (lambda t: tg.sparse.softmax(t, 2), IndexError, "Dimension out of range"),
    ],
)
def test_what_it_does_not_take_is_told(make, error, told):
    with pytest.raises(error, match=told):
        make(stored(tg.tensor([1.0, -2.0, 3.0, 4.0, 5.0]), (3, 3)))


def test_nothing_stored_stays_so():
    assert tg.sparse.softmax(tg.sparse_coo_tensor(size=(3, 3)), 1)._nnz() == 0
