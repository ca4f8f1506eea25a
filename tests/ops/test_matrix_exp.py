"""Exponentials of matrices: single precision beside double, every degree, quarters of zeros, what shrinks, and
matrices whose elements lie far apart."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg

import tinygrad_ext as tg

SINGLE = {np.float64: np.float32, np.complex128: np.complex64}


def drawn(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n))
    return (a + 1j * rng.standard_normal((n, n)) if dtype is np.complex128 else a) / np.sqrt(n)


def apart(a, dtype):
    """The largest difference from SciPy's exponential in double precision, in units of the result's largest number."""
    a = a.astype(dtype)
    want = scipy.linalg.expm(a.astype(np.complex128 if np.iscomplexobj(a) else np.float64))
    got = tg.linalg.matrix_exp(tg.from_numpy(a)).numpy()
    assert got.dtype == dtype
    return np.abs(got - want).max() / np.abs(want).max() / np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", SINGLE)
@pytest.mark.parametrize("scale", [1e-4, 1e-2, 0.1, 0.5, 1, 8])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 63, 64, 130])
def test_every_degree_and_number_of_squarings_is_near_the_exponential(n, scale, dtype):
    assert apart(scale * drawn(n, dtype), dtype) < 1e4
    assert apart(scale * drawn(n, dtype), SINGLE[dtype]) < 60


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_what_lies_above_a_diagonal_of_zeros_keeps_its_size(dtype):
    """Its square is zero, so that I + A is all of it."""
    for n, corner in ((2, 1), (3, 2), (9, 8)):
        a = np.zeros((n, n), dtype)
        a[0, corner] = 1e30 if dtype in (np.float32, np.float64) else 1e30j
        for b in (a, a.T.copy()):
            np.testing.assert_array_equal(tg.linalg.matrix_exp(tg.from_numpy(b)).numpy(), b + np.eye(n, dtype=dtype))


@pytest.mark.parametrize("n", [3, 4, 6])
def test_each_element_of_strictly_triangular_matrices_is_right(n):
    """Beside the finite series in fractions, for elements of 1e-12 to 1e12, which a norm of all says nothing about."""
    rng = np.random.default_rng(n)
    for _ in range(20):
        a = np.triu(10.0 ** rng.uniform(-12, 12, (n, n)), 1)
        exact = np.vectorize(Fraction, otypes=[object])(a)
        want = power = np.vectorize(Fraction, otypes=[object])(np.eye(n))
        for k in range(1, n):
            power = power.dot(exact) / k
            want = want + power
        for turned in (False, True):
            given = tg.from_numpy(a.T.copy() if turned else a)
            real, imaginary = tg.linalg.matrix_exp(given), tg.linalg.matrix_exp(given.to(tg.complex128))
            assert not imaginary.imag.any()
            for got in (real.numpy(), imaginary.real.numpy()):
                np.testing.assert_allclose(got.T if turned else got, want.astype(np.float64), rtol=1e-13)


@pytest.mark.parametrize("n", [1, 5, 70])
def test_what_shrinks_keeps_its_digits(n):
    """exp(A) - I squared would leave nothing of e**-20."""
    assert apart(drawn(n, np.float64) - 20 * np.eye(n), np.float32) < 400
    steep = np.diag(np.linspace(-20, 20, n))
    got = tg.linalg.matrix_exp(tg.from_numpy(steep.astype(np.float32))).numpy()
    np.testing.assert_allclose(np.diag(got), np.exp(np.diag(steep).astype(np.float32)), rtol=2e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_a_lower_left_quarter_of_zeros_stays_zero(dtype):
    wide = np.complex128 if dtype in (np.complex64, np.complex128) else np.float64
    a = 3 * drawn(96, wide)
    a[48:, :48] = 0
    assert apart(a, dtype) < 2e3
    assert not tg.linalg.matrix_exp(tg.from_numpy(a.astype(dtype)))[48:, :48].any()


@pytest.mark.parametrize("dtype", [tg.float32, tg.complex64])
def test_gradients_of_single_precision_are_near_those_of_double(dtype):
    wide = tg.complex128 if dtype.is_complex else tg.float64
    a = tg.from_numpy(drawn(40, np.complex128 if dtype.is_complex else np.float64))
    slopes = []
    for kind in (wide, dtype):
        x = a.detach().to(kind).requires_grad_()
        tg.linalg.matrix_exp(x).abs().pow(2).sum().backward()
        slopes.append(x.grad.to(wide))
    assert (slopes[0] - slopes[1]).abs().max() < 1e-5 * slopes[0].abs().max()


def test_an_infinity_or_nan_makes_every_number_nan():
    for bad in (float("inf"), float("nan")):
        a = tg.zeros(2, 3, 3)
        a[0, 1, 2] = bad
        got = tg.linalg.matrix_exp(a)
        assert got[0].isnan().all() and got[1].equal(tg.eye(3))


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.complex64, tg.complex128])
def test_of_a_single_number_it_is_exp(dtype):
    x = tg.tensor([math.inf, -math.inf, 2.0, 0.0]).to(dtype)
    found = tg.linalg.matrix_exp(x.reshape(4, 1, 1)).reshape(4)
    assert found[0] == math.inf and found[1] == 0 and tg.allclose(found[2:], x[2:].exp())
