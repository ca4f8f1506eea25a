"""utils.checkpoint: the same values and gradients as without it, computed twice."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    detach_variable,
    set_checkpoint_early_stop,
)


def block():
    tg.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2))


def result(run):
    """Output and gradients of a run that draws random numbers."""
    layers, x = block(), tg.linspace(-1, 1, 6).view(2, 3).requires_grad_()
    tg.manual_seed(7)
    out = run(layers, x)
    out.square().sum().backward()
    return [out.detach(), x.grad, *(p.grad for p in layers.parameters()), tg.rand(1)]


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("early_stop", [False, True])
def test_values_gradients_and_random_numbers_are_those_without(reentrant, early_stop):
    plain = result(lambda layers, x: layers(x))
    with set_checkpoint_early_stop(early_stop):
        again = result(lambda layers, x: checkpoint(layers, x, use_reentrant=reentrant))
    assert all(tg.equal(a, b) for a, b in zip(again, plain, strict=True))
    parts = result(lambda layers, x: checkpoint_sequential(layers, 2, x, use_reentrant=reentrant))
    assert all(tg.equal(a, b) for a, b in zip(parts, plain, strict=True))


@pytest.mark.parametrize("reentrant", [False, True])
def test_the_function_runs_twice_and_keeps_nothing_between(reentrant):
    runs = []

    def function(x):
        runs.append(tg.is_grad_enabled())
        return x.exp().sin()

    x = tg.ones(3, requires_grad=True)
    out = checkpoint(function, x, use_reentrant=reentrant)
    assert len(runs) == 1
    out.sum().backward()
    assert len(runs) == 2
    tg.testing.assert_close(x.grad, (tg.cos(tg.exp(tg.ones(3))) * tg.exp(tg.ones(3))))


def test_what_the_newer_form_takes():
    x = tg.ones(2, requires_grad=True)
    out = checkpoint(lambda x, *, scale: {"a": [x * scale]}, x, scale=3, use_reentrant=False)["a"][0]
    out.sum().backward(retain_graph=True)
    out.sum().backward()
    assert x.grad.tolist() == [6, 6]
    (first,) = tg.autograd.grad(checkpoint(lambda x: x.sin() * x, x, use_reentrant=False).sum(), x, create_graph=True)
    (second,) = tg.autograd.grad(first.sum(), x)
    tg.testing.assert_close(second, 2 * tg.cos(x.detach()) - tg.sin(x.detach()))
    inside = checkpoint(lambda x: checkpoint(tg.sin, x.exp(), use_reentrant=False), x, use_reentrant=False)
    x.grad = None
    inside.sum().backward()
    tg.testing.assert_close(x.grad, tg.cos(tg.exp(tg.ones(2))) * tg.exp(tg.ones(2)))


def test_a_function_that_does_something_else_the_second_time_is_told():
    sizes = iter([2, 3])
    x = tg.ones(1, requires_grad=True)
    out = checkpoint(lambda x: x.expand(next(sizes)).exp().exp(), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata"):
        out.sum().backward()
    more = iter([False, True])
    out = checkpoint(lambda x: x.exp() if next(more) else x.exp().exp(), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="fewer"):
        out.sum().backward()


def test_arguments_that_do_not_fit_are_refused():
    x = tg.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        checkpoint(tg.sin, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(tg.sin, x, use_reentrant=True, scale=2)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(tg.sin, x, use_reentrant=False, determinism_check="some")
    with pytest.warns(UserWarning, match="Gradients will be None"):
        checkpoint(tg.sin, x.detach(), use_reentrant=True)
    with pytest.raises(RuntimeError, match="Only tuple"):
        detach_variable([x])
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint_sequential([tg.sin], 1, x, use_reentrant=False, scale=2)
