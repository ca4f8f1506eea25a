"""Slopes of gamma and Dirichlet samples where parameters are far apart or large, against values of 13 digits."""

import pytest

import tinygrad_ext as tg

# the two parameters, the place, and its slope by the first parameter over what is left of 1, by quadrature in 50 digits
BETA = [
    (2.0, 1000000.0, 4.828413225288599e-06, 1.633751810185e-6),
    (0.5, 100000000.0, 4.035533859238564e-08, 3.21537119978e-8),
    (2.0, 10000000000000.0, 1.9999999999996e-13, 1.086208576636e-13),
    (10000000000000.0, 2.0, 0.9999999999996586, 9.999999999998e-14),
    (10000000.0, 30.0, 0.9999980954491307, 9.999975977287e-8),
    (2000.0, 1000000000.0, 1.865832323916324e-06, 9.657613329551e-10),
    (1000000000000.0, 1000000000000.0, 0.5000007071067812, 5.000003535534e-13),
    (1000000000000000.0, 1000000000000000.0, 0.5, 5.0e-16),
    (1e20, 1e20, 0.5000000000176776, 5.000000000088e-21),
    (90000.0, 1000000000000.0, 9.14999916975e-08, 1.008289195091e-12),
    (10000.0, 1000000.0, 0.00980247161409726, 9.85173409343e-7),
]
# a concentration, a place, and log(place) less its digamma, which the slope there is
GAMMA = [(1.0, 1e300, 691.352743563115), (1e-5, 1e30, 100069.654752005), (2.0, 1e300, 690.352743563115)]


@pytest.mark.parametrize("a, b, x, want", BETA)
def test_of_large_parameters(a, b, x, want):
    place, alpha, total = (tg.tensor(v, dtype=tg.float64) for v in (x, a, a + b))
    assert tg._dirichlet_grad(place, alpha, total).item() == pytest.approx(want, rel=1e-8)


@pytest.mark.parametrize("a, x, want", GAMMA)
def test_of_huge_places(a, x, want):
    slope = tg._standard_gamma_grad(tg.tensor(a, dtype=tg.float64), tg.tensor(x, dtype=tg.float64))
    assert slope.item() == pytest.approx(want, rel=1e-8)


def test_a_row_has_the_same_bits_alone():
    a, b, x = (tg.tensor(column, dtype=tg.float64) for column in list(zip(*BETA))[:3])
    alone = [
        tg._dirichlet_grad(x[k : k + 1], a[k : k + 1], a[k : k + 1] + b[k : k + 1]).item() for k in range(len(BETA))
    ]
    assert tg._dirichlet_grad(x, a, a + b).tolist() == alone
