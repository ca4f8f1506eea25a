"""histogram against NumPy on drawn data, borders and weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg

ELEMENTS = st.lists(st.integers(-40, 40).map(lambda k: k / 4), max_size=30)


@given(ELEMENTS, st.integers(1, 9), st.booleans())
@settings(deadline=None, max_examples=80)
def test_equal_parts_of_a_range(values, bins, density):
    x = tg.tensor(values, dtype=tg.float64)
    found, edges = tg.histogram(x, bins, range=(-4.0, 5.0), density=density)
    with np.errstate(invalid="ignore"):
        want, borders = np.histogram(values, bins, (-4.0, 5.0), density=density)
    np.testing.assert_allclose(edges.numpy(), borders, rtol=1e-14, atol=1e-14)
    if edges.equal(tg.from_numpy(borders)):  # else an element on a border may lie on its other side
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-13)


@given(ELEMENTS, st.lists(st.integers(-20, 20), min_size=2, max_size=8, unique=True), st.data())
@settings(deadline=None, max_examples=80)
def test_borders_and_weights_that_are_given(values, borders, data):
    borders = sorted(borders)
    weights = data.draw(st.lists(st.integers(-3, 8), min_size=len(values), max_size=len(values)))
    x, w = tg.tensor(values, dtype=tg.float64), tg.tensor(weights, dtype=tg.float64)
    found, edges = tg.histogram(x, tg.tensor(borders, dtype=tg.float64), weight=w)
    want, _ = np.histogram(values, borders, weights=weights)
    np.testing.assert_allclose(found.numpy(), want)
    assert edges.tolist() == borders


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_elements_that_are_not_finite_give_no_range(value):
    with pytest.raises(RuntimeError, match="is not finite"):
        tg.histogram(tg.tensor([1.0, value]), 2)


def test_one_border_makes_no_bin():
    with pytest.raises(RuntimeError, match="at least 2 borders"):
        tg.histogram(tg.zeros(3), tg.ones(1))


def test_what_is_not_finite_does_not_count():
    x = tg.tensor([float("nan"), float("inf"), -float("inf"), 0.5])
    assert tg.histogram(x, 2, range=(0.0, 1.0))[0].tolist() == [0, 1]


def test_all_elements_alike_have_a_bin():
    found, edges = tg.tensor([3.0, 3.0]).histogram(2)
    assert found.tolist() == [0, 2] and edges.tolist() == [2.5, 3.0, 3.5]


@pytest.mark.parametrize("given", [(0.0,), (0.0, 1.0, 2.0), (0.0, float("inf"))])
def test_wrong_ranges(given):
    with pytest.raises(RuntimeError, match="histogram"):
        tg.histogram(tg.zeros(3), 2, range=given)


def test_frexp_splits_the_smallest_and_leaves_what_has_no_power():
    for dtype, least in ((tg.float32, 2.0**-149), (tg.float64, 5e-324)):
        values = [least, -3 * least, 0.0, -0.0, 1.0, -0.75, float("inf"), float("-inf"), float("nan")]
        x = tg.tensor(values, dtype=dtype)
        mantissa, power = tg.frexp(x)
        wanted = np.frexp(x.numpy())
        np.testing.assert_array_equal(mantissa.numpy(), wanted[0])
        np.testing.assert_array_equal(power.numpy(), wanted[1])
        assert np.signbit(mantissa.numpy())[3]


def test_bincount_counts_many_and_few_numbers():
    values = np.random.default_rng(0).integers(0, 5000, 3000)
    weights = np.random.default_rng(1).random(3000)
    for x in (values, values % 7):
        np.testing.assert_array_equal(tg.bincount(tg.tensor(x)).numpy(), np.bincount(x))
        np.testing.assert_array_equal(tg.bincount(tg.tensor(x), tg.tensor(weights)).numpy(), np.bincount(x, weights))


def test_the_borders_of_boxes_are_a_tuple():
    assert isinstance(tg.histogramdd(tg.rand(4, 2), [2, 3]).bin_edges, tuple)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_borders_of_the_elements_range_are_the_same_where_a_gradient_could_arrive(dtype):
    for bins in (1, 2, 3, 10, 37):
        for ends in ((0.1, 0.7), (-3.3, 1e3), (2.5, 2.5), (0.0, 1e-7)):
            x = tg.tensor([ends], dtype=dtype).mT
            plain, owned = tg.histogramdd(x, [bins]), tg.histogramdd(x.clone().requires_grad_(), [bins])
            assert tg.equal(plain[1][0], owned[1][0].detach()) and tg.equal(plain[0], owned[0].detach())
            assert tg.equal(tg.histogram(x, bins)[1], plain[1][0])
            given = tg.histogramdd(x, [bins], range=x.reshape(-1).tolist())
            assert tg.equal(given[1][0], plain[1][0])


def test_points_outside_of_all_boxes_and_on_their_ends():
    edge = tg.tensor([0.0, 1.0, 1.0, 3.0])
    points = [[0.0, 0.0], [3.0, 3.0], [1.0, 3.0], [-0.1, 1.0], [1.0, 3.1], [float("nan"), 1.0], [2.0, float("inf")]]
    found = tg.histogramdd(tg.tensor(points), [edge, edge])[0]
    assert found.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]]
