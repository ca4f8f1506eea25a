"""Slopes of distances: as exact for rows that are near, or far from zero, as for others."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused

EPSILON = {tg.float16: 2**-10, tg.bfloat16: 2**-7, tg.float32: 2**-23, tg.float64: 2**-52}


def near_rows(dtype, columns=5):
    """Rows in two places far from zero; those of one place lie few steps of their dtype apart."""
    random = np.random.default_rng(3)
    place = tg.from_numpy(np.repeat(random.uniform(1, 2, (2, columns)) * [[1], [-1]], 20, axis=0))
    return (place + tg.from_numpy(random.integers(0, 9, place.shape)) * (2 * EPSILON[dtype])).to(dtype)


def pulls(distances, dtype):
    return tg.from_numpy(np.random.default_rng(4).uniform(0.5, 1, tuple(distances.shape))).to(dtype)


def first(x, way, dtype):
    x = [x.detach().to(dtype).requires_grad_() for _ in range(2 if way == "cdist" else 1)]
    y = tg.cdist(*x) if way == "cdist" else tg.nn.functional.pdist(*x)
    return tg.autograd.grad(y, x, pulls(y, dtype), create_graph=True), x, y


WAYS = [("cdist", dtype) for dtype in EPSILON] + [("pdist", tg.float32), ("pdist", tg.float64)]


@pytest.mark.parametrize(("way", "dtype"), WAYS)
def test_slopes_of_near_rows_are_exact(way, dtype):
    x = near_rows(dtype)
    for got, exact in zip(first(x, way, dtype)[0], first(x, way, tg.float64)[0], strict=True):
        weights = 40  # as many distances of slopes up to 1 are added up
        np.testing.assert_allclose(got.double().detach(), exact.detach(), rtol=0, atol=weights * EPSILON[dtype])


@pytest.mark.parametrize("way", ["cdist", "pdist"])
def test_their_second_slopes_are_too(way):
    results = []
    for dtype in (tg.float32, tg.float64):
        slopes, x, _ = first(near_rows(tg.float32), way, dtype)
        weights = [pulls(s, dtype) for s in slopes]
        results.append(tg.autograd.grad(slopes, x, weights))
    for got, exact in zip(*results, strict=True):
        size = exact.abs().max().item()
        np.testing.assert_allclose(got.double(), exact, rtol=0, atol=size * 2e-6)


@pytest.mark.parametrize("way", ["cdist", "pdist"])
def test_distances_of_near_rows_are_pushed_forward_exactly(way):
    results = []
    for dtype in (tg.float32, tg.float64):
        x = near_rows(tg.float32).to(dtype)
        function = tg.nn.functional.pdist if way == "pdist" else tg.cdist
        rows = (x,) if way == "pdist" else (x, x.flip(0))
        tangents = tuple(pulls(r, dtype) for r in rows)
        results.append(tg.func.jvp(function, rows, tangents)[1])
    np.testing.assert_allclose(results[0].double(), results[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_transposed_weights_give_the_bits_of_a_copy(p):
    x = tg.from_numpy(np.random.default_rng(5).standard_normal((2, 530, 7)))
    y = tg.from_numpy(np.random.default_rng(6).standard_normal((2, 19, 7)))
    weight, distances = tg.cdist(x, y), tg.cdist(x, y, p)
    for one, other, turn in ((y, x, lambda t: t.mT), (x, y, lambda t: t)):
        w, d = turn(weight), turn(distances)
        calls = [(w, d), (w.contiguous(), d), (w.contiguous(), d.contiguous())]
        if p == 2:
            sums = [fused._apart_sums(a, one, other) for a, _ in calls]
        else:
            sums = [fused._row_slopes(a, one, other, b, p) for a, b in calls]
        assert sums[0].equal(sums[1])
        assert sums[0].equal(sums[2])


def test_an_infinite_difference_alone_makes_an_infinite_sum():
    far = tg.tensor([[float("inf"), 1.0]])
    sums = fused._apart_sums(tg.ones(1, 3), far, tg.zeros(3, 2))
    assert sums.tolist() == [[float("inf"), 3.0]]


def test_equal_rows_have_no_slope_of_any_order():
    x = tg.ones(3, 2, requires_grad=True)
    (slope,) = tg.autograd.grad(tg.cdist(x, x).sum(), x, create_graph=True)
    (second,) = tg.autograd.grad(slope.sum(), x)
    assert slope.tolist() == second.tolist() == [[0.0, 0.0]] * 3
