"""A traced training step is one plan, which the interpreter takes no part in, and gives eager's bits."""

import pytest

import tinygrad_ext as tg
from tests.helpers.graphs import same_bits
from tinygrad_ext import jit, nn, optim

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.01),
    "SGD with momentum": lambda p: optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=0.1),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01),
}


def training(make):
    tg.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 3))
    optimizer = make(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_step_is_one_plan(name):
    x, y = tg.randn(5, 8), tg.tensor([0, 1, 2, 1, 0])
    eager, step = training(OPTIMIZERS[name])
    model, other = training(OPTIMIZERS[name])
    losses, traced_losses = [step(x, y)], [other(x, y)]  # the optimizer's state is there
    traced = jit.trace(other, (x, y), check_trace=False)
    for _ in range(5):
        losses.append(step(x, y))
        traced_losses.append(traced(x, y))
    assert same_bits(losses, traced_losses)
    assert same_bits([p.detach() for p in eager.parameters()], [p.detach() for p in model.parameters()])
    executor = traced._runner.latest.runner
    assert executor.whole is not None and not executor.boxed, executor.explain()
    assert len(executor.misses) == 1
