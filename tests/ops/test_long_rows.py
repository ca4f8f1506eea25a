"""Rows that several threads share, and ways that only long rows take: NumPy's results, whatever the threads."""

import numpy as np
import pytest

import tinygrad_ext as tg

LONG = 70_001  # above what one thread sorts alone
LARGE = 300_007  # above what one thread selects from and masks alone
DTYPES = ["float32", "float64", "int64", "int32", "int16", "uint8", "float16", "uint64"]


@pytest.fixture(params=[1, 3])
def threads(request):
    before = tg.get_num_threads()
    tg.set_num_threads(request.param)
    yield request.param
    tg.set_num_threads(before)


def _drawn(dtype, n, most=None):
    """Elements with many equal ones, over the whole width of the dtype unless they end at `most`."""
    g = np.random.default_rng(n)
    if np.dtype(dtype).kind == "f":
        a = (g.standard_normal(n) * 1000).round(1).astype(dtype)
        a[::997], a[5::1009], a[7::1013] = np.nan, -np.inf, -0.0
        return a
    ends = np.iinfo(dtype)
    return g.integers(0 if most else ends.min, most or ends.max, n, dtype=dtype, endpoint=True)


def _order(a, descending):
    n = len(a)
    if not descending:
        return np.argsort(a, kind="stable")
    return n - 1 - np.argsort(a[::-1], kind="stable")[::-1]


def _same(ours, expected):
    np.testing.assert_array_equal(ours.numpy(), expected)


@pytest.mark.parametrize("most", [None, 200])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_row_is_sorted_by_all_threads(threads, dtype, most):
    a = _drawn(dtype, LONG, most)
    for descending in (False, True):
        values, indices = tg.from_numpy(a).sort(descending=descending)
        order = _order(a, descending)
        _same(indices, order)
        _same(values, a[order])


def test_a_few_long_rows_and_columns_are_sorted(threads):
    a = _drawn("float32", 2 * LONG).reshape(2, LONG)
    _same(tg.from_numpy(a).sort(dim=1, stable=True).indices, np.argsort(a, 1, kind="stable"))
    _same(tg.from_numpy(a.T.copy()).sort(dim=0, stable=True).indices, np.argsort(a.T, 0, kind="stable"))
    ordered = np.arange(LONG, dtype="float32")
    _same(tg.from_numpy(ordered).sort().indices, np.arange(LONG))
    _same(tg.from_numpy(ordered[::-1].copy()).sort().indices, np.arange(LONG)[::-1])


@pytest.mark.parametrize("k", [1, 50, 2000])
@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_few_of_many(threads, dtype, k):
    for a in (_drawn(dtype, LARGE), np.sort(_drawn(dtype, LARGE)), np.sort(_drawn(dtype, LARGE))[::-1].copy()):
        for largest in (True, False):
            values, indices = tg.from_numpy(a).topk(k, largest=largest)
            order = _order(a, largest)[:k]
            _same(indices, order)
            _same(values, a[order])


@pytest.mark.parametrize("n", [511, 512, 1000, 4097, LONG])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_median_of_a_long_row(dtype, n):
    a = _drawn(dtype, n)
    for row in (a, np.sort(a), np.sort(a)[::-1].copy(), np.repeat(a[:1], n), np.where(np.arange(n) % 8, a[1], a)):
        values, whole = np.sort(row), tg.from_numpy(row).median().item()
        expected = np.nan if np.isnan(row.astype("float64")).any() else values[(n - 1) // 2]
        np.testing.assert_equal(whole, expected)
        there = values[~np.isnan(values)] if np.dtype(dtype).kind == "f" else values
        expected = there[(len(there) - 1) // 2] if len(there) else np.nan
        value, index = tg.from_numpy(row).nanmedian(0)
        np.testing.assert_equal(value.item(), expected)
        assert not len(there) or index == np.flatnonzero(row == expected)[0]


@pytest.mark.parametrize("n", [30, 511, 512, 4097, LONG])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int16", "int8", "uint8"])
def test_the_kth_of_a_row(dtype, n):
    a = _drawn(dtype, n)
    for row in (a, np.sort(a)[::-1].copy(), np.where(np.arange(n) % 8, a[1], a), np.resize(a[:12], n)):
        values, x = np.sort(row), tg.from_numpy(row)
        for k in (1, 17, n // 3, n // 2, n - 20, n - 1, n):
            value, index = x.kthvalue(k)
            np.testing.assert_equal(value.item(), values[k - 1])
            np.testing.assert_equal(row[index], values[k - 1])
        both = tg.stack([x, x.flip(0)], 1).kthvalue(n // 2, 0, keepdim=True)
        np.testing.assert_equal(both.values.numpy(), np.repeat(values[n // 2 - 1], 2).reshape(1, 2))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_what_a_large_mask_selects(threads, dtype):
    g = np.random.default_rng(1)
    a = np.arange(LARGE).astype(dtype)
    for mask in (g.random(LARGE) < 0.5, g.random(LARGE) < 0.001, np.zeros(LARGE, bool), np.ones(LARGE, bool)):
        x, m = tg.from_numpy(a), tg.from_numpy(mask)
        _same(x.masked_select(m), a[mask])
        _same(x[m], a[mask])
        filled = a.copy()
        filled[mask] = a[: mask.sum()][::-1]
        _same(x.masked_scatter(m, tg.from_numpy(a[: mask.sum()][::-1].copy())), filled)


@pytest.mark.parametrize("shape", [(LARGE,), (500, 601), (3, 1, 200_003), (61, 71, 73)])
def test_places_of_a_large_mask(threads, shape):
    g = np.random.default_rng(2)
    for share in (0.5, 0.001, 0.0, 1.0):
        a = (g.random(shape) < share).astype("float32")
        _same(tg.from_numpy(a).nonzero(), np.argwhere(a))


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_distinct_integers_are_counted_where_they_lie_close(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    g = np.random.default_rng(3)
    for a in (
        g.integers(low, min(low + 3000, high), 2000),
        g.integers(max(low, high - 90), high, 2000, endpoint=True),
        [low, high] * 600,
    ):
        a = np.asarray(a).astype(dtype).reshape(2, -1)
        found = tg.from_numpy(a).unique(return_inverse=True, return_counts=True)
        values, inverse, counts = np.unique(a, return_inverse=True, return_counts=True)
        assert found[0].dtype == tg.from_numpy(a).dtype
        for ours, expected in zip(found, (values, inverse.reshape(a.shape), counts), strict=True):
            _same(ours, expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_many_elements_of_a_table(threads, dtype):
    g = np.random.default_rng(4)
    table, index = np.arange(1000).astype(dtype), g.integers(0, 1000, LARGE)
    signed = index - 1000 * (g.random(LARGE) < 0.5)
    for x in (tg.from_numpy(table), tg.from_numpy(table.repeat(2))[::2], tg.from_numpy(table.repeat(3).reshape(-1, 3))):
        host = x.numpy()
        _same(x.index_select(0, tg.from_numpy(index)), host[index])
        _same(x.index_select(0, tg.from_numpy(index.astype("int32"))), host[index])
        _same(x[tg.from_numpy(signed)], host[signed])
        _same(x.take(tg.from_numpy(signed)), host.reshape(-1)[signed])


@pytest.mark.parametrize("at", [[0], [LARGE - 1], [250_000, 9, 120_000]])
def test_the_first_index_outside_a_table_is_named(threads, at):
    index = np.zeros(LARGE, "int64")
    index[at] = np.arange(len(at)) + 7000
    expected = 7000 + int(np.argmin(at))
    for table in (tg.ones(1000), tg.ones(1000, 3)):
        with pytest.raises(IndexError, match=f"index {expected} is out of bounds for dimension 0 with size 1000"):
            table[tg.from_numpy(index)]
        with pytest.raises(IndexError, match=f"index {expected} "):
            table.index_select(0, tg.from_numpy(index))
        with pytest.raises(RuntimeError, match=f"index {expected} "):
            table.index_add(0, tg.from_numpy(index), tg.ones(LARGE, *table.shape[1:]))


def test_pairs_of_many_elements(threads):
    for dtype in (tg.float32, tg.float64):
        a, b = tg.arange(LARGE, dtype=dtype), -tg.arange(LARGE, dtype=dtype)
        _same(tg.stack([a, b], -1), np.stack([a.numpy(), b.numpy()], -1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "int16"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 64, 1000])
def test_places_and_membership_in_sorted_rows(dtype, n):
    row, values = np.sort(_drawn(dtype, n, 100)), _drawn(dtype, 2003, 110)
    if np.dtype(dtype).kind == "f":
        row = np.sort(np.round(np.random.default_rng(n).standard_normal(n) * 1000, 1)).astype(dtype)  # no NaN
    for count in (0, 1, 3, 4, 5, 2003):
        v = values[:count]
        for side in ("left", "right"):
            places = np.searchsorted(row, v, side)
            _same(tg.searchsorted(tg.from_numpy(row), tg.from_numpy(v), side=side), places)
            shuffled = np.random.default_rng(n).permutation(n)
            back = tg.from_numpy(np.argsort(shuffled))
            sorter = {"sorter": back, "side": side}
            _same(tg.searchsorted(tg.from_numpy(row[shuffled]), tg.from_numpy(v), **sorter), places)
        _same(tg.isin(tg.from_numpy(v), tg.from_numpy(row)), np.isin(v, row))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("numbers", [0, 1, 2, 3, 5, 30, 1000])
@pytest.mark.parametrize("nans", [1, 2, 3, 40, 3000])
def test_numbers_are_found_before_the_nans_of_a_row(dtype, numbers, nans):
    drawn = np.random.default_rng(numbers).integers(-50, 50, numbers)
    row = np.sort(np.concatenate([drawn, np.full(nans, np.nan), [np.inf] * (numbers % 2)]).astype(dtype))
    values = np.concatenate([np.arange(-60, 60, 0.5), [np.inf, -np.inf]]).astype(dtype)
    for side in ("left", "right"):
        expected = np.searchsorted(row, values, side)
        _same(tg.searchsorted(tg.from_numpy(row), tg.from_numpy(values), side=side), expected)
        ends = {"sorter": tg.arange(len(row) - 1, -1, -1), "side": side}
        _same(tg.searchsorted(tg.from_numpy(row[::-1].copy()), tg.from_numpy(values), **ends), expected)
    for sought in (values, np.append(values, np.float32("nan"))):
        _same(tg.isin(tg.from_numpy(sought), tg.from_numpy(row[::-1].copy())), np.isin(sought, row))


def test_what_has_no_elements_or_no_order_is_refused_whatever_its_length():
    for n in (3, 3000):
        with pytest.raises(NotImplementedError, match="meta"):
            tg.zeros(n, dtype=tg.int64, device="meta").unique()
        with pytest.raises(RuntimeError, match=r"Unsupported input type encountered for isin\(\)"):
            tg.isin(tg.zeros(n, dtype=tg.complex64), tg.zeros(5, dtype=tg.complex64))
