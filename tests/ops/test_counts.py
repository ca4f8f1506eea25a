"""Counts, hashes and limits that kernels take at once, against NumPy, for rows of every length and in every layout."""

import numpy as np
import pytest

import tinygrad_ext as tg

NAN = float("nan")
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


def _numbers(dtype, *shape):
    return (np.random.default_rng(0).random(shape) * 200 - 100).astype(dtype)


def _hashed(x, axis):
    bits = x.astype("f8").view("u8") if x.dtype.kind == "f" else x.astype("i8").view("u8")
    return np.bitwise_xor.reduce(bits, axis)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 7, 8, 9, 33])
def test_hashes_of_rows_columns_and_all(dtype, count):
    x = _numbers(dtype, 3, count, 2)
    t = tg.from_numpy(x)
    for dim, axis in ((1, 1), ((0, 2), (0, 2)), ((), (0, 1, 2))):
        np.testing.assert_array_equal(t.hash_tensor(dim).numpy(), _hashed(x, axis))
        np.testing.assert_array_equal(t.mT.contiguous().mT.hash_tensor(dim).numpy(), _hashed(x, axis))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_mode_is_the_smallest_of_the_most_frequent(dtype):
    x = np.random.default_rng(1).integers(0, 4, (50, 6)).astype(dtype)
    for dim in (0, 1):
        values, places = tg.from_numpy(x).mode(dim)
        for line, value, place in zip(np.moveaxis(x, dim, -1), values, places):
            found, counts = np.unique(line, return_counts=True)
            assert value.item() == found[counts.argmax()] == line[place.item()]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bins", [1, 2, 20, 3000])
def test_elements_on_borders_and_beside_them(dtype, bins):
    edges = np.linspace(-1, 2, bins + 1).astype(dtype)
    beside = [np.nextafter(edges, edges.dtype.type(end)) for end in (-9, 9)]
    x = np.concatenate([edges, *beside, np.array([np.nan, np.inf, -np.inf], dtype)])
    found = tg.histogram(tg.from_numpy(x), tg.from_numpy(edges))[0]
    np.testing.assert_array_equal(found.numpy(), np.histogram(x[np.isfinite(x)], edges)[0])


def test_elements_between_uneven_borders():
    random = np.random.default_rng(2)
    edges, x = np.sort(random.standard_normal(40) ** 3), random.standard_normal(500) ** 3
    weights = random.random(500)
    for w in (None, weights):
        found = tg.histogram(tg.from_numpy(x), tg.from_numpy(edges), weight=None if w is None else tg.from_numpy(w))[0]
        np.testing.assert_allclose(found.numpy(), np.histogram(x, edges, weights=w)[0], rtol=1e-12)


def test_limits_that_are_nan_and_that_cross():
    nan = float("nan")
    x, low, high = [1.0, 1.0, 1.0, 5.0, nan, -3.0], [nan, 0.0, 3.0, 0.0, 0.0, -2.0], [2.0, nan, 2.0, 4.0, 1.0, 7.0]
    got = tg.tensor(x).clamp(tg.tensor(low), tg.tensor(high))
    np.testing.assert_array_equal(got.numpy(), np.minimum(np.maximum(x, low), high).astype("f4"))
    assert tg.tensor([3]).clamp(tg.tensor([0.5]), tg.tensor([1])).tolist() == [1.0]


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
@pytest.mark.parametrize("row", [[0.0, -0.0, 1.0, 1.0], [NAN, NAN, 1.0, 2.0], [1.0, 2.0, 2.0, NAN, NAN, NAN]])
def test_the_mode_of_halves_is_that_of_floats(row, dtype):
    found, wanted = (tg.tensor(row, dtype=d).mode() for d in (dtype, tg.float32))
    assert found[1] == wanted[1] and str(found[0].item()) == str(wanted[0].item())


def test_limits_that_meet_get_no_gradient_of_what_lies_below():
    x, low, high = (tg.tensor(v, requires_grad=True) for v in ([-1.0, 3.0, 0.5], [1.0, 1.0, 1.0], [1.0, 1.0, 2.0]))
    tg.clamp(x, low, high).sum().backward()
    assert [t.grad.tolist() for t in (x, low, high)] == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_windows_of_nothing_are_refused():
    with pytest.raises(RuntimeError, match="do not fit into the input"):
        tg.zeros(1, 1, 0, 0)._fractional_max_pool(tg.rand(1, 1, 2), [0, 0], [1, 1], tg.float32)


@pytest.mark.parametrize("value", [1e300, -1e218, 1e17])
def test_numbers_without_neighbours_are_in_the_middle(value):
    assert tg.histc(tg.tensor([value, value], dtype=tg.float64), 4).tolist() == [0, 0, 2, 0]


def test_neighbours_beyond_all_channels_cost_nothing():
    x = tg.tensor([[[1.0], [2.0]]])
    norm = tg.nn.functional.local_response_norm
    assert norm(x, 2**31, alpha=2.0**31).equal(x / (x.square().sum(1, keepdim=True) + 1) ** 0.75)
    assert norm(x, 7).equal(norm(tg.nn.functional.pad(x, (0, 0, 4, 4)), 7)[:, 4:6])
