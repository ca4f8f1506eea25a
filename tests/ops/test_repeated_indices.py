"""One source value that is written to several places gets their gradients; a place named twice counts once."""

import pytest

import tinygrad_ext as tg


def value_gradient(write, shape=()):
    """The derivative of a weighted sum of what write(zeros, v) makes, by the engine and by differences."""

    def loss(v):
        y = write(tg.zeros(4, 3, dtype=tg.float64), v)
        return (y * tg.arange(1.0, 13.0, dtype=tg.float64).reshape(4, 3)).sum()

    v = tg.full(shape, 0.5, dtype=tg.float64, requires_grad=True)
    (found,) = tg.autograd.grad(loss(v), v)
    (slope,) = tg.autograd.grad(loss(v + 0), v)
    assert tg.autograd.gradcheck(loss, (v,)) and found.equal(slope)
    return found.tolist()


@pytest.mark.parametrize("index", [[0, 0], [2, 1, 2, 2], [-1, 3], [1], []])
@pytest.mark.parametrize("dim", [0, -2])
def test_index_fill_counts_a_place_once(index, dim):
    at = tg.tensor(index, dtype=tg.int64)
    rows = {i % 4 for i in index}
    wanted = float(sum(range(1, 13)[r * 3 + c] for r in rows for c in range(3)))
    assert value_gradient(lambda x, v: x.index_fill(dim, at, v)) == wanted
    assert value_gradient(lambda x, v: x.index_fill_(dim, at, v)) == wanted


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3)])
@pytest.mark.parametrize("index", [[0, 0], [2, 1, 2, 2], [-1, 3], [1], [0, 3]])
def test_one_value_at_indices_counts_a_place_once(index, shape):
    at = tg.tensor(index)
    wanted = [sum(range(1, 13)[r * 3 + c] for r in {i % 4 for i in index}) for c in range(3)]
    total = float(sum(wanted))

    def assigned(x, v):
        x = x * 1
        x[at] = v
        return x

    for write in (lambda x, v: x.index_put((at,), v), assigned):
        found = value_gradient(write, shape)
        flat = found if shape == (3,) else found[0] if shape == (1, 3) else None
        assert found in (total, [total]) if flat is None else flat == wanted


def test_one_value_at_two_indices_counts_a_place_once():
    rows, columns = tg.tensor([[0], [1], [0]]), tg.tensor([1, 2, 1])
    assert value_gradient(lambda x, v: x.index_put((rows, columns), v)) == 2.0 + 3 + 5 + 6
    assert (
        value_gradient(lambda x, v: x.index_put((rows, columns), v, accumulate=True)) == 2 * 2 * 2.0 + 2 * 3 + 2 * 5 + 6
    )


def test_index_fill_of_a_scalar_tensor_gives_its_gradient_on():
    x, v = tg.tensor(1.0, requires_grad=True), tg.tensor(2.0, requires_grad=True)
    (x.index_fill(0, tg.tensor([0, 0]), v) * 3).backward()
    assert (x.grad.item(), v.grad.item()) == (0.0, 3.0)


def test_a_derivative_through_index_fill_leaves_infinities_elsewhere_alone():
    v = tg.tensor(0.5, requires_grad=True)
    y = tg.zeros(3).index_fill(0, tg.tensor([1, 1]), v)
    assert tg.autograd.grad(y, v, tg.tensor([float("inf"), 2.0, float("nan")]))[0].item() == 2.0
