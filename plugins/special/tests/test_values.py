"""Points where a formula is easily wrong: zeros, edges of a domain, large arguments, missing derivatives."""

import math

import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops

pytest.importorskip("tgx_special", reason="tgx-special is not installed: pip install ./plugins/special")


def derivatives(fn, at, orders):
    """Value and derivatives of fn at a point."""
    x = tg.tensor(float(at), dtype=tg.float64, requires_grad=True)
    found = [fn(x)]
    for _ in range(orders):
        found += tg.autograd.grad(found[-1], x, create_graph=True)
    return [v.item() for v in found]


# coefficients of the series at 0, times factorials: DLMF 10.2.2, 10.25.2, 6.6.5, 10.53.1
@pytest.mark.parametrize(
    "fn, series",
    [
        (lambda x: ops.special.j0(x), [1, 0, -1 / 2, 0, 3 / 8]),
        (lambda x: ops.special.j1(x), [0, 1 / 2, 0, -3 / 8]),
        (lambda x: ops.special.i0(x), [1, 0, 1 / 2, 0, 3 / 8]),
        (lambda x: ops.special.i1(x), [0, 1 / 2, 0, 3 / 8]),
        (lambda x: ops.special.si(x), [0, 1, 0, -1 / 3]),
        (lambda x: ops.special.spherical_jn(1, x), [0, 1 / 3, 0, -1 / 5]),
        (lambda x: ops.special.lambertw(x), [0, 1, -2, 9, -64]),
        (lambda x: ops.special.erfinv(x), [0, math.sqrt(math.pi) / 2, 0, math.pi**1.5 / 4]),
    ],
    ids=["j0", "j1", "i0", "i1", "si", "spherical_jn", "lambertw", "erfinv"],
)
def test_derivatives_at_zero_are_those_of_the_series(fn, series):
    assert derivatives(fn, 0, len(series) - 1) == pytest.approx(series, abs=1e-12)


def test_airy_functions_solve_their_equation():
    value, _, second = derivatives(lambda x: ops.special.airy(x).bi, -1.3, 2)
    assert second == pytest.approx(-1.3 * value)


def test_the_gradients_of_several_results_add_up():
    x = tg.tensor([0.7], dtype=tg.float64, requires_grad=True)
    s, c = ops.special.fresnel(x)
    (s + 2 * c).backward()
    angle = math.pi / 2 * 0.49
    assert x.grad.item() == pytest.approx(math.sin(angle) + 2 * math.cos(angle))


def test_lambert_w_is_nan_where_no_real_value_is():
    edge = -math.exp(-1)
    w = ops.special.lambertw
    assert w(tg.tensor([edge - 1e-3, -1.0, -math.inf])).isnan().all()
    assert w(tg.tensor([0.0, math.e], dtype=tg.float64)).tolist() == pytest.approx([0, 1])
    lower = w(tg.tensor([-0.2], dtype=tg.float64), -1).item()
    assert lower < -1 and lower * math.exp(lower) == pytest.approx(-0.2)
    assert w(tg.tensor([0.5]), -1).isnan().all()


def test_nan_goes_in_and_comes_out():
    assert ops.special.j0(tg.tensor([math.nan])).isnan().all()
    assert ops.special.gammainc(tg.tensor([math.nan, 1.0]), tg.tensor([1.0, math.nan])).isnan().all()


def test_scaled_functions_do_not_overflow():
    big = tg.tensor([1e4], dtype=tg.float64)
    assert ops.special.i0(big).isinf().all()
    assert ops.special.i0e(big).item() == pytest.approx(1 / math.sqrt(2 * math.pi * 1e4), rel=1e-4)
    assert ops.special.log_ndtr(-big).item() == pytest.approx(-5e7, rel=1e-6)


@pytest.mark.parametrize("name, count", [("gammainc", 2), ("gammaincc", 2), ("zeta", 2), ("jv", 2), ("betainc", 3)])
def test_a_derivative_without_closed_form_is_refused_only_where_it_is_asked_for(name, count):
    tensors = [tg.full((2,), v, requires_grad=True) for v in (1.5, 2.5, 0.5)[:count]]
    result = getattr(ops.special, name)(*tensors).sum()
    (by_last,) = tg.autograd.grad(result, tensors[-1], retain_graph=True)
    assert by_last.isfinite().all()
    with pytest.raises(NotImplementedError, match=rf"special::{name} has no derivative by '\w' in closed form.*detach"):
        tg.autograd.grad(result, tensors[0])


def test_arguments_broadcast_and_gradients_are_summed_back():
    a, x = tg.ones(3, 1), tg.full((2,), 0.5, requires_grad=True)
    ops.special.gammainc(a, x).sum().backward()
    assert x.grad.tolist() == pytest.approx([3 * math.exp(-0.5)] * 2)


def test_out_is_filled():
    out = tg.empty(2)
    assert ops.special.j0(tg.zeros(2), out=out) is out
    assert out.tolist() == [1, 1]
