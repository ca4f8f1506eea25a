"""Rules of masks that the sweep over the op table cannot know."""

import numpy as np
import pytest

import tinygrad_ext as tg


def masks():
    mask = tg.tensor([[True, False, True], [False, True, True]])
    yield mask
    yield mask.t()
    yield mask[:, ::2]
    yield mask[1].expand(4, 3)
    yield tg.tensor(True).expand(2, 3)
    yield mask[:0]


@pytest.mark.parametrize("mask", [*masks()], ids=lambda mask: str((tuple(mask.shape), mask.stride())))
def test_a_mask_is_counted_in_every_layout(mask):
    numbers = tg.arange(mask.numel()).view(mask.shape)
    rows, wanted = mask.tolist(), [i for i, true in enumerate(mask.flatten().tolist()) if true]
    assert numbers[mask].tolist() == tg.masked_select(numbers, mask).tolist() == wanted
    assert mask.nonzero().tolist() == [[i, k] for i, row in enumerate(rows) for k, true in enumerate(row) if true]


def test_masked_fill_in_place_keeps_the_layout_and_may_read_its_own_memory():
    x = tg.tensor([[1, 0], [1, 1]], dtype=tg.bool)
    x.t().masked_fill_(x, False)
    assert x.tolist() == [[False, False], [True, False]]
    y = tg.zeros(2, 3).t()
    assert y.masked_fill_(tg.tensor([True, False]), 7) is y and y.stride() == (1, 3)
    assert y.tolist() == [[7.0, 0.0]] * 3
    assert tg.zeros(2, 3).t().masked_fill(tg.tensor([True, False]), 7).stride() == (1, 3)


def test_a_triangle_in_place_is_one_of_its_own_elements():
    x = tg.ones(3, 3)
    assert x.tril_() is x and x.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    y = tg.arange(4.0).view(2, 2)
    y.t().triu_()
    assert y.tolist() == [[0.0, 0.0], [2.0, 3.0]]


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_of_many_matrices_are_those_of_each(name):
    x = tg.arange(7 * 90 * 110).view(7, 90, 110)  # rows are shared between threads in the middle of a matrix
    threads = tg.get_num_threads()
    try:
        tg.set_num_threads(4)
        assert tg.equal(getattr(x, name)(5), tg.stack([getattr(matrix, name)(5) for matrix in x]))
    finally:
        tg.set_num_threads(threads)
    np.testing.assert_array_equal(getattr(x, name)(5).numpy(), getattr(np, name)(x.numpy(), 5))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_value_that_the_dtype_cannot_hold_is_named(device):
    with pytest.raises(RuntimeError, match="converted to type uint8 without overflow: 300.5"):
        tg.constant_pad_nd(tg.zeros(2, dtype=tg.uint8, device=device), (1, 1), 300.5)


def test_numbers_are_looked_for_and_among():
    assert tg.isin(2, tg.tensor([1, 2])).item() and not tg.isin(2.5, tg.arange(30)).item()
    assert tg.isin(tg.tensor([1, 2]), 2).tolist() == [False, True]
    assert tg.isin(1.5, tg.ones(2), out=tg.empty(0, dtype=tg.bool)).tolist() is False


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "float32", "float64", "complex128"])
def test_long_rows_with_gaps_are_counted_like_others(dtype):
    a = (np.random.default_rng(0).integers(0, 3, (3, 2000)) == 0).astype(dtype)
    x = tg.tensor(a)
    for t, want in (
        (x[:, ::2], a[:, ::2]),
        (x[:, ::7], a[:, ::7]),
        (x.flip(1)[:, ::3], a[:, ::-1][:, ::3]),
        (x.t(), a.T),
    ):
        np.testing.assert_array_equal(t.nonzero().numpy(), np.argwhere(want))
        assert tg.masked_select(tg.ones(t.shape), t != 0).sum() == np.count_nonzero(want)
