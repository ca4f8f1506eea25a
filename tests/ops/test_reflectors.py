"""Reflectors of geqrf are applied by LAPACK from 128 rows on, and by a product of Q below."""

import numpy as np
import pytest

import tinygrad_ext as tg

DTYPES = ["float32", "float64", "complex64", "complex128"]


def drawn(seed, dtype, *shape):
    random = np.random.default_rng(seed)
    found = random.standard_normal(shape)
    return tg.tensor((found + 1j * random.standard_normal(shape) if dtype[0] == "c" else found).astype(dtype))


@pytest.mark.parametrize("shape", [(127, 30), (128, 30), (144, 144), (2, 130, 70)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_sides_and_adjoints_are_products_of_q(dtype, shape):
    a, tau = tg.geqrf(drawn(0, dtype, *shape))
    other = drawn(1, dtype, *shape)
    m, k = shape[-2], tau.shape[-1]
    Q = tg.linalg.householder_product(tg.cat([a, a.new_zeros((*shape[:-1], m - k))], -1), tau)
    for transpose in (False, True):
        by = Q.mH if transpose else Q
        for left, given, wanted in ((True, other, by @ other), (False, other.mH, other.mH @ by)):
            found = tg.ormqr(a, tau, given, left, transpose)
            tg.testing.assert_close(found, wanted, rtol=1e-4 if "32" in dtype or "x64" in dtype else 1e-11, atol=1e-4)


@pytest.mark.parametrize("left, transpose", [(True, False), (False, True)])
def test_slopes_of_long_reflectors_are_those_of_the_product(left, transpose):
    a, tau = (t.requires_grad_() for t in tg.geqrf(drawn(2, "float64", 130, 4)))
    other = drawn(3, "float64", *((130, 3) if left else (3, 130))).requires_grad_()
    Q = tg.linalg.householder_product(tg.cat([a, a.new_zeros(130, 126)], -1), tau)
    Q = Q.mH if transpose else Q
    weight = drawn(4, "float64", *other.shape)
    wanted = tg.autograd.grad(((Q @ other if left else other @ Q) * weight).sum(), (a, tau, other))
    found = tg.autograd.grad((tg.ormqr(a, tau, other, left, transpose) * weight).sum(), (a, tau, other))
    for one, two in zip(found, wanted, strict=True):
        tg.testing.assert_close(one, two)


def test_a_zero_of_tau_reflects_nothing():
    a, other = drawn(5, "float64", 130, 3), drawn(6, "float64", 130, 2)
    assert tg.equal(tg.ormqr(a, tg.zeros(3, dtype=tg.float64), other), other)
    assert tg.equal(tg.ormqr(a, tg.zeros(0, dtype=tg.float64), other), other)


def test_batches_that_differ_broadcast():
    a, tau = tg.geqrf(drawn(7, "float64", 130, 3))
    other = drawn(8, "float64", 2, 130, 4)
    found = tg.ormqr(a, tau, other)
    tg.testing.assert_close(found[1], tg.ormqr(a, tau, other[1]))
