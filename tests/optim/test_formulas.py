"""Optimizers written in ops: papers' formulas in NumPy, complex parameters, gradients through a step, refusals."""

import copy
import math

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, optim

NAMES = ["Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "RMSprop", "Adafactor"]
DIFFERENTIABLE = [*NAMES[:-1], "SGD", "Adam", "AdamW"]


def adagrad(p, grads, s=0.0):
    for g in grads:
        s = s + g * g
        p = p - 0.01 * g / (np.sqrt(s) + 1e-10)
    return p


def adadelta(p, grads, v=0.0, u=0.0):
    for g in grads:
        v = 0.9 * v + 0.1 * g * g
        d = np.sqrt(u + 1e-6) / np.sqrt(v + 1e-6) * g
        u = 0.9 * u + 0.1 * d * d
        p = p - d
    return p


def adamax(p, grads, m=0.0, u=0.0):
    for t, g in enumerate(grads, 1):
        m = 0.9 * m + 0.1 * g
        u = np.maximum(0.999 * u, np.abs(g) + 1e-8)
        p = p - 0.002 / (1 - 0.9**t) * m / u
    return p


def radam(p, grads, m=0.0, v=0.0):
    most = 2 / (1 - 0.999) - 1
    for t, g in enumerate(grads, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        r = most - 2 * t * 0.999**t / (1 - 0.999**t)
        step = 0.001 * m / (1 - 0.9**t)
        if r > 5:
            trust = math.sqrt((r - 4) * (r - 2) * most / ((most - 4) * (most - 2) * r))
            step = step * trust / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        p = p - step
    return p


def rmsprop(p, grads, v=0.0):
    for g in grads:
        v = 0.99 * v + 0.01 * g * g
        p = p - 0.01 * g / (np.sqrt(v) + 1e-8)
    return p


def rprop(p, grads):
    step, before = np.full_like(p, 0.01), np.zeros_like(p)
    for g in grads:
        step = np.clip(step * np.where(g * before > 0, 1.2, np.where(g * before < 0, 0.5, 1)), 1e-6, 50)
        g = np.where(g * before < 0, 0, g)
        p, before = p - np.sign(g) * step, g
    return p


@pytest.mark.parametrize("formula", [adagrad, adadelta, adamax, radam, rmsprop, rprop])
def test_twenty_steps_follow_the_papers_formula(formula):
    rng = np.random.default_rng(3)
    start, grads = rng.standard_normal(5), rng.standard_normal((20, 5))
    param = nn.Parameter(tg.from_numpy(start.copy()))
    name = next(name for name in NAMES if name.lower() == formula.__name__)
    optimizer = getattr(optim, name)([param])
    for grad in grads:
        param.grad = tg.from_numpy(grad.copy())
        optimizer.step()
    # the roots are not rounded as NumPy rounds them
    np.testing.assert_allclose(param.detach().numpy(), formula(start, grads), rtol=1e-8)


def test_the_average_of_asgd_is_the_mean_over_the_steps_after_t0():
    param = nn.Parameter(tg.tensor([1.0, -2.0], dtype=tg.float64))
    optimizer = optim.ASGD([param], lr=0.1, t0=2)
    seen = []
    for _ in range(8):
        param.grad = param.detach().clone()
        optimizer.step()
        seen.append(param.detach().clone())
    # its share is 1 / (t - t0) of the step before, so that the mean starts at step t0 + 2
    mean = sum(seen[3:]) / len(seen[3:])
    assert tg.allclose(optimizer.state[param]["ax"], mean, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Adafactor"])
def test_a_complex_parameter_is_a_pair_of_real_ones(name):
    rng = np.random.default_rng(4)
    values, grads = rng.standard_normal((3, 2)), rng.standard_normal((5, 3, 2))
    pairs = nn.Parameter(tg.from_numpy(values.copy()))
    param = nn.Parameter(tg.view_as_complex(tg.from_numpy(values.copy())))
    both = getattr(optim, name)([pairs]), getattr(optim, name)([param])
    for grad in grads:
        pairs.grad = tg.from_numpy(grad.copy())
        param.grad = tg.view_as_complex(tg.from_numpy(grad.copy()))
        for optimizer in both:
            optimizer.step()
    assert tg.allclose(tg.view_as_real(param.detach()), pairs.detach(), rtol=1e-12)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_flow_through_a_differentiable_step(name):
    weights = tg.tensor([0.3, -0.7, 1.1], dtype=tg.float64)

    def after_a_step(start, grad):
        param = start.clone()
        param.grad = grad
        optimizer = getattr(optim, name)([param], differentiable=True)
        optimizer.step()
        return (param * weights).sum()

    start = tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64, requires_grad=True)
    grad = tg.tensor([0.5, -0.2, 0.1], dtype=tg.float64, requires_grad=True)
    tg.autograd.gradcheck(after_a_step, (start, grad), eps=1e-7, atol=1e-5)
    (by_start,) = tg.autograd.grad(after_a_step(start, grad), start)
    assert bool((by_start != 0).all())


@pytest.mark.parametrize("name", [*NAMES, "LBFGS"])
def test_a_copy_goes_on_as_the_original_does(name):
    def model_and_optimizer():
        param = nn.Parameter(tg.tensor([[1.0, -2.0], [0.5, 3.0]]))
        return param, getattr(optim, name)([param])

    def run(param, optimizer, steps):
        for _ in range(steps):

            def closure():
                optimizer.zero_grad()
                loss = ((param - 0.3) ** 4).sum()
                loss.backward()
                return loss

            optimizer.step(closure)

    first, its = model_and_optimizer()
    run(first, its, 3)
    second, others = model_and_optimizer()
    with tg.no_grad():
        second.copy_(first)
    others.load_state_dict(copy.deepcopy(its.state_dict()))
    run(first, its, 3)
    run(second, others, 3)
    assert tg.equal(first, second)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_minimum_of_rosenbrocks_valley(search):
    x = nn.Parameter(tg.tensor([-1.2, 1.0], dtype=tg.float64))
    optimizer = optim.LBFGS([x], lr=1 if search else 0.1, max_iter=300 if not search else 60, line_search_fn=search)

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert closure().item() < 1e-6


REFUSED = [
    ("Adagrad", {"lr_decay": -1}, "lr_decay"),
    ("Adadelta", {"rho": 1.5}, "rho"),
    ("Adamax", {"betas": (1.0, 0.9)}, "beta parameter at index 0"),
    ("NAdam", {"momentum_decay": -1}, "momentum_decay"),
    ("RAdam", {"eps": -1}, "epsilon"),
    ("ASGD", {"weight_decay": -1}, "weight_decay"),
    ("Rprop", {"etas": (1.5, 2)}, "eta values"),
    ("RMSprop", {"alpha": -1}, "alpha"),
    ("Adafactor", {"d": 0.5}, "Clipping threshold"),
    ("Adafactor", {"beta2_decay": 0.5}, "beta2_decay"),
    ("LBFGS", {"lr": -1}, "learning rate"),
]


@pytest.mark.parametrize(("name", "kwargs", "message"), REFUSED)
def test_options_out_of_range_are_refused(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        getattr(optim, name)([nn.Parameter(tg.ones(2))], **kwargs)


def test_what_cannot_be_optimized_is_refused_where_it_shows():
    one, two = nn.Parameter(tg.ones(2)), nn.Parameter(tg.ones(2))
    with pytest.raises(ValueError, match="parameter groups"):
        optim.LBFGS([{"params": [one]}, {"params": [two]}])
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        optim.LBFGS([one], line_search_fn="armijo").step(lambda: one.sum())
    param = nn.Parameter(tg.ones(2, dtype=tg.complex64))
    param.grad = tg.ones(2, dtype=tg.complex64)
    with pytest.raises(RuntimeError, match="complex"):
        optim.Adafactor([param]).step()
