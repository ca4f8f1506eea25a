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


def test_asking_for_the_plan_of_a_step_changes_nothing():
    x, y = tg.randn(5, 8), tg.tensor([0, 1, 2, 1, 0])
    model, step = training(OPTIMIZERS["Adam"])
    step(x, y)
    traced = jit.trace(step, (x, y), check_trace=False)
    before = [(p.detach().clone(), p.grad.clone()) for p in model.parameters()]
    kinds = {line.kind for line in traced.plan(x, y=y).lines(profile=True)}
    assert {"TILE", "RAW"} <= kinds <= {"TILE", "RAW", "COPY", "ZERO", "NUMBER"}
    assert same_bits(before, [(p.detach(), p.grad) for p in model.parameters()])
    traced(x, y=y)
    assert not tg.equal(before[0][0], next(model.parameters())) and "1 plan made" in traced.explain()


def test_a_module_tells_of_its_plans():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    traced = jit.trace(model, tg.randn(2, 4))
    for rows in (2, 5):
        traced(tg.randn(rows, 4)).sum().backward()
    told = traced.explain()
    assert "with a gradient" in told and "%arg0 has sizes [5, 4], it had [2, 4]" in told
    assert [line.kind for line in traced.plan(tg.randn(2, 4)).lines()] == ["RAW", "TILE"]


def test_new_parameters_are_computed_where_they_stand():
    x, y = tg.randn(5, 8), tg.tensor([0, 1, 2, 1, 0])
    traced = jit.trace(training(OPTIMIZERS["SGD"])[1], (x, y), check_trace=False)
    traced(x, y), traced(x, y)
    captured = traced._runner.latest
    plan = captured.runner.plan(x, y, *[holder.read() for holder in captured.holders])
    assert "COPY" not in [line.kind for line in plan.lines()]


def test_what_fails_behind_an_update_has_not_written():
    w, table = tg.zeros(3), tg.ones(4, 2)

    def step(x, index):
        w.add_(x)
        return table[index].sum() + w.sum()

    traced = jit.trace(step, (tg.ones(3), tg.tensor([1, 2])))
    traced(tg.ones(3), tg.tensor([3]))
    assert w.tolist() == [1, 1, 1]
    with pytest.raises(IndexError):
        traced(tg.ones(3), tg.tensor([7]))
    assert w.tolist() == [1, 1, 1]


def test_an_old_value_that_is_read_later_is_not_written_over():
    w = tg.arange(6.0).reshape(2, 3)

    def step(x):
        old = w.t().contiguous() * 2
        w.mul_(x)
        return old, w + 1

    def swapped(x):
        w.copy_((w.flip(0) * x).clone())
        return w * 2

    for program in (step, swapped):
        before = w.clone()
        traced = jit.trace(program, (tg.ones(3),))
        w.copy_(before)
        got = [traced(tg.full((3,), 2.0)) for _ in range(2)] + [w.clone()]
        w.copy_(before)
        assert same_bits(got, [program(tg.full((3,), 2.0)) for _ in range(2)] + [w])
