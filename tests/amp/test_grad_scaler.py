"""GradScaler scales the loss, leaves out steps whose gradients are not finite, and adapts its factor."""

import math
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import amp, nn, optim


def made(**kwargs):
    weight = nn.Parameter(tg.ones(1))
    return weight, optim.SGD([weight], lr=0.5), amp.GradScaler("cpu", **{"init_scale": 8.0, **kwargs})


def test_a_step_is_that_of_the_unscaled_loss():
    weight, optimizer, scaler = made()
    loss = (weight * 2).sum()
    assert scaler.scale(loss).item() == 16 and scaler.scale([loss, (loss,)])[1][0].item() == 16
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == 0 and scaler.get_scale() == 8 and scaler.is_enabled()


def test_a_gradient_that_is_not_finite_leaves_the_step_out_and_halves_the_factor():
    weight, optimizer, scaler = made()
    scaler.scale((weight * math.inf).sum()).backward()
    assert scaler.step(optimizer) is None
    scaler.update()
    assert weight.item() == 1 and scaler.get_scale() == 4


def test_the_factor_grows_after_some_steps():
    weight, optimizer, scaler = made(growth_interval=2, growth_factor=3.0)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(weight.sum()).backward()
        scaler.unscale_(optimizer)
        assert weight.grad.item() == 1
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 24
    other = amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() and other.get_growth_interval() == 2


def test_calls_out_of_order_are_refused():
    weight, optimizer, scaler = made()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale(3.0)
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        scaler.load_state_dict({})
    half = nn.Parameter(tg.ones(1, dtype=tg.float16))
    half.grad = tg.ones(1, dtype=tg.float16)
    with pytest.raises(ValueError, match="FP16 gradients"):
        amp.GradScaler("cpu").unscale_(optim.SGD([half], lr=0.1))
    scaler.update(new_scale=tg.tensor(2.0))
    assert scaler.get_scale() == 2


def test_a_scaler_can_be_pickled():
    scaler = pickle.loads(pickle.dumps(amp.GradScaler("cpu", init_scale=4.0)))
    assert scaler.get_scale() == 4.0 and scaler.scale(tg.ones(1)).item() == 4.0
