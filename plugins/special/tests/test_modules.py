"""NormalGate and VonMisesNLLLoss."""

import math

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.autograd import gradcheck

pytest.importorskip("tgx_special", reason="tgx-special is not installed: pip install ./plugins/special")


def test_a_gate_of_steepness_one_is_gelu():
    gate, x = nn.create("special::NormalGate", channels=3), tg.randn(2, 3, 4, 5)
    assert tg.allclose(gate(x), nn.functional.gelu(x), atol=1e-6)
    assert repr(gate) == "NormalGate(3)"


def test_a_gate_goes_from_linear_to_relu_by_channel():
    gate, x = nn.plugins.special.NormalGate(2), tg.randn(5, 2)
    with tg.no_grad():
        gate.steepness.copy_(tg.tensor([0.0, 1e6]))
    assert tg.allclose(gate(x), tg.stack([x[:, 0] / 2, x[:, 1].relu()], 1))


def test_the_steepness_is_learned():
    gate = nn.plugins.special.NormalGate(2).double()
    x = tg.randn(3, 2, 4, dtype=tg.float64, requires_grad=True)
    assert gradcheck(lambda x, steepness: gate(x), (x, gate.steepness))


def test_the_loss_is_the_density_of_the_circle():
    loss = nn.create("special::VonMisesNLLLoss", reduction="none")
    angles = tg.linspace(-math.pi, math.pi, 2001, dtype=tg.float64)[1:]
    for concentration in (0.1, 1.0, 30.0):
        density = (-loss(tg.tensor(0.4), angles, tg.tensor(concentration, dtype=tg.float64))).exp()
        assert density.mean().item() * 2 * math.pi == pytest.approx(1)
        assert angles[density.argmax()].item() == pytest.approx(0.4, abs=2e-3)


def test_the_loss_is_finite_where_the_bessel_function_is_not():
    loss, k = nn.plugins.special.VonMisesNLLLoss(), tg.tensor([1e4], requires_grad=True)
    value = loss(tg.zeros(1), tg.zeros(1), k)
    value.backward()
    assert value.item() == pytest.approx(math.log(2 * math.pi / 1e4) / 2, rel=1e-3)
    assert k.grad.item() == pytest.approx(-0.5e-4, rel=1e-2)


def test_the_loss_has_first_and_second_derivatives():
    loss = nn.plugins.special.VonMisesNLLLoss("sum")
    points = [tg.tensor(v, dtype=tg.float64, requires_grad=True) for v in ([0.1, 2.0], [0.3, -2.0], [0.5, 4.0])]
    assert gradcheck(loss, points)
    assert tg.autograd.gradgradcheck(loss, points)


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction must be 'none', 'mean' or 'sum', not 'all'"):
        nn.plugins.special.VonMisesNLLLoss("all")
