"""Rules of sorting that the sweep over the op table cannot know."""

import numpy as np
import pytest

import tinygrad_ext as tg

NAN, INF = float("nan"), float("inf")
# around the borders between the ways of sorting
LENGTHS = [1, 2, 8, 9, 12, 15, 16, 17, 31, 33, 64, 65, 100, 127, 129, 191, 193, 257, 383, 385, 1000, 5000]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool", "float16"])
def test_sort_is_stable(dtype, n):
    a = np.random.default_rng(n).integers(0, 2 if dtype == "bool" else 50, n) - (
        0 if dtype in ("uint8", "bool") else 25
    )
    a = a.astype(dtype)
    for descending in (False, True):
        values, indices = tg.tensor(a).sort(descending=descending)
        order = np.argsort(a, kind="stable") if not descending else n - 1 - np.argsort(a[::-1], kind="stable")[::-1]
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), a[order])


def test_nan_is_greatest_and_zeros_are_equal():
    x = tg.tensor([3.0, NAN, 1.0, INF, -INF, -0.0, 0.0, NAN])
    assert x.sort().indices.tolist() == [4, 5, 6, 2, 0, 3, 1, 7]
    assert x.sort(descending=True).indices.tolist() == [1, 7, 3, 0, 2, 5, 6, 4]
    assert str(x.sort().values[1].item()) == "-0.0"
    assert x.topk(3).indices.tolist() == [1, 7, 3]


@pytest.mark.parametrize("k", [1, 3, 60, 400, 1000])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_topk_takes_the_first_of_equal_elements(dtype, k):
    a = np.random.default_rng(k).integers(0, 200, 1000).astype(dtype)
    for largest in (True, False):
        values, indices = tg.tensor(a).topk(k, largest=largest)
        order = (999 - np.argsort(a[::-1], kind="stable")[::-1] if largest else np.argsort(a, kind="stable"))[:k]
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), a[order])


def test_any_dimension_in_any_layout():
    a = np.random.default_rng(0).standard_normal((5, 40, 6))
    for dim in range(3):
        for x in (tg.tensor(a), tg.tensor(a.transpose(2, 1, 0).copy()).permute(2, 1, 0)):
            values, indices = x.sort(dim)
            assert values.stride() == x.stride()
            np.testing.assert_array_equal(values.numpy(), np.sort(a, dim))
            np.testing.assert_array_equal(indices.numpy(), np.argsort(a, dim, kind="stable"))


def test_results_are_named():
    result = tg.tensor([2, 1]).sort()
    assert result.values.tolist() == [1, 2] and result.indices.tolist() == [1, 0]
    result = tg.tensor([2, 1]).topk(1)
    assert result.values.tolist() == [2] and result.indices.tolist() == [0]


def test_gradients_go_back_where_the_values_came_from():
    x = tg.tensor([[3.0, 1.0, 2.0]], dtype=tg.float64, requires_grad=True)
    values, indices = x.sort()
    assert not indices.requires_grad
    (values * tg.tensor([1.0, 10.0, 100.0], dtype=tg.float64)).sum().backward()
    assert x.grad.tolist() == [[100, 1, 10]]


@pytest.mark.parametrize("k", [-1, 4])
def test_topk_needs_enough_elements(k):
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        tg.zeros(3).topk(k)


def test_complex_numbers_have_no_order():
    with pytest.raises(RuntimeError, match="complex"):
        tg.tensor([1j]).sort()


def test_unique_tells_where_and_how_often():
    values, inverse, counts = tg.tensor([3, 1, 3, 2, 1, 3]).unique(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3], [2, 0, 2, 1, 0, 2], [2, 1, 3])
    assert tg.tensor([[2, 1], [0, 5], [2, 1]]).unique(dim=0).tolist() == [[0, 5], [2, 1]]


def test_searchsorted_looks_through_a_sorter():
    x = tg.tensor([3.0, 1.0, 2.0])
    assert tg.searchsorted(x, tg.tensor([1.5, 3.0]), sorter=x.argsort()).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="sorter index out of range"):
        tg.searchsorted(x, 1.5, sorter=tg.tensor([0, 1, 3]))
    with pytest.raises(RuntimeError, match="opposites"):
        tg.searchsorted(x, 1.5, right=True, side="left")


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("k", [0, 1])
def test_topk_of_one_number_is_that_number(device, k):
    values, indices = tg.topk(tg.tensor(3.0, device=device), k)
    assert values.shape == indices.shape == ()
    if device == "cpu":
        assert values.item() == 3 and indices.item() == 0


def test_kthvalue_takes_k_as_a_tensor_of_one_number():
    x = tg.tensor([[3.0, 1.0, 2.0, 5.0]])
    assert [tg.kthvalue(x, tg.tensor(k)).values.item() for k in (1, 2, 3, 4)] == [1.0, 2.0, 3.0, 5.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("n", [1, 5, 40, 1000])
def test_rows_of_one_element_and_rows_in_order_keep_it(dtype, n):
    column = tg.tensor(np.random.default_rng(n).integers(0, 9, 3)).to(getattr(tg, dtype))
    for descending in (False, True):
        values, indices = column.unsqueeze(1).expand(3, n).sort(1, descending=descending)
        assert indices.tolist() == [list(range(n))] * 3
        assert values.tolist() == [[v] * n for v in column.tolist()]
        assert column.expand(n, 3).sort(0, descending=descending)[1].tolist() == [[i] * 3 for i in range(n)]
        rows = tg.arange(n).to(getattr(tg, dtype)) if n < 250 else (tg.arange(n) // 5).to(getattr(tg, dtype))
        rows = rows.flip(0) if descending else rows
        values, indices = rows.sort(descending=descending)
        assert values.tolist() == rows.tolist() and indices.tolist() == list(range(n))
    values, indices = column.expand(n, 3).topk(min(n, 2), 0)
    assert values.tolist() == [column.tolist()] * min(n, 2) and indices.tolist() == [[i] * 3 for i in range(min(n, 2))]
    out = tg.empty(3, n, dtype=column.dtype).t(), tg.empty(3, n, dtype=tg.int64).t()
    tg.sort(column.expand(n, 3), 0, out=out)
    assert out[0].tolist() == [column.tolist()] * n and out[1].tolist() == [[i] * 3 for i in range(n)]


def test_the_one_nan_of_a_repeated_row_stays():
    values, indices = tg.tensor(NAN).expand(4).sort()
    assert np.isnan(values.numpy()).all() and indices.tolist() == [0, 1, 2, 3]


WIDE_ROWS = {
    "clusters": lambda random, n: random.integers(0, 1000, n) + np.array([0, 1 << 60])[random.integers(0, 2, n)],
    "whole range": lambda random, n: random.integers(-(1 << 63), (1 << 63) - 1, n),
    "last bits": lambda random, n: (1 << 62) + random.integers(0, 4, n),
    "one far away": lambda random, n: np.where(np.arange(n) == n // 2, -(1 << 63), random.integers(0, 1 << 20, n)),
    "one number": lambda random, n: np.full(n, 7),
    "pairs that differ far down": lambda random, n: (random.integers(0, n, n) << 40) + random.integers(0, 2, n),
}


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("n", [16, 17, 100, 1000, 5000])
@pytest.mark.parametrize("kind", WIDE_ROWS)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_rows_of_64_bits_are_in_order_whatever_their_range(dtype, kind, n, descending):
    x = WIDE_ROWS[kind](np.random.default_rng(0), n)
    x = x.view(np.float64) if dtype == "float64" and kind != "whole range" else x.astype(dtype)
    values, indices = tg.sort(tg.tensor(x), descending=descending, stable=True)
    wanted = np.argsort(-x if descending and dtype == "float64" else ~x if descending else x, kind="stable")
    assert indices.tolist() == wanted.tolist()
    assert values.numpy().tobytes() == x[wanted].tobytes()
    k = n // 2
    assert tg.topk(tg.tensor(x), k, largest=descending).indices.tolist() == wanted[:k].tolist()
