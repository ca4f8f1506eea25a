"""A traced step computes small gradients into memory of the last but one, and never into what somebody holds."""

import gc
import weakref

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn

INPUTS = tg.randn(4, 5), tg.randn(4, 3)


def traced_step():
    tg.manual_seed(0)
    model = nn.Linear(5, 3)
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, jit.trace(step, INPUTS, check_trace=False)


def taken_over(gradient):
    other = tg.zeros(3, 5)
    other.data = gradient
    return other


def saved(gradient):
    """A graph of something else, and nothing more."""
    factor = tg.ones(3, 5, requires_grad=True)
    return (gradient * factor).sum(), factor


def as_it_is(held):
    return held


WAYS = {  # what holds a gradient, and what it shows
    "itself": (as_it_is, as_it_is),
    "a view": (lambda g: g.view(-1)[3:], lambda v: tg.cat([tg.zeros(3), v])),
    "detached": (lambda g: g.detach(), as_it_is),
    "data": (lambda g: g.data, as_it_is),
    "an array": (lambda g: g.numpy(), lambda a: tg.tensor(a.copy())),
    "a buffer": (memoryview, lambda b: tg.tensor(b.tolist())),
    "dlpack": (tg.from_dlpack, as_it_is),
    "another tensor's data": (taken_over, as_it_is),
    "a graph": (saved, lambda held: tg.autograd.grad(*held)[0]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("repeated", [False, True], ids=["calls", "repeat"])
def test_what_holds_a_gradient_sees_no_other(way, repeated):
    model, traced = traced_step()
    (hold, shown), held = WAYS[way], []
    for _ in range(8):
        traced.repeat([INPUTS] * 3) if repeated else traced(*INPUTS)
        held.append((hold(model.weight.grad), model.weight.grad.clone()))
    for mine, wanted in held:
        got = shown(mine).reshape(-1)
        begin = 3 if way == "a view" else 0
        assert tg.equal(got[begin:], wanted.reshape(-1)[begin:])


def test_what_is_held_weakly_stays_as_it_was_while_it_is_there():
    model, traced = traced_step()
    seen = []
    for _ in range(6):
        traced(*INPUTS)
        seen.append((weakref.ref(model.weight.grad), model.weight.grad.clone()))
        assert all(ref() is None or tg.equal(ref(), wanted) for ref, wanted in seen)


def test_nothing_that_was_done_to_a_gradient_is_seen_at_another():
    model, traced = traced_step()
    other, plain = traced_step()
    for i in range(12):
        traced(*INPUTS)
        plain(*INPUTS)
        gradient = model.weight.grad
        assert tg.equal(gradient, other.weight.grad) and gradient._version == 0 and gradient.shape == (3, 5)
        assert not gradient.requires_grad and gradient.grad is None and not hasattr(gradient, "note")
        if i % 6 == 0:
            gradient.note = i
        elif i % 6 == 1:
            gradient.requires_grad_()
        elif i % 6 == 2:
            gradient.mul_(2)
        elif i % 6 == 3:
            gradient.resize_(2, 2)
        elif i % 6 == 4:
            gradient.data = tg.zeros(3, 5)
        else:
            gradient.t_()


def test_a_step_that_fails_leaves_the_gradients_of_the_last():
    table, w = tg.ones(4), tg.ones(3, requires_grad=True)

    def step(x, index):
        w.grad = None
        (w * x).sum().backward()
        return table[index] * w.grad.sum()

    traced = jit.trace(step, (tg.ones(3), tg.tensor([1])), check_trace=False)
    for i in range(1, 6):
        traced(tg.full((3,), float(i)), tg.tensor([2]))
        with pytest.raises(IndexError):
            traced(tg.full((3,), 100.0), tg.tensor([7]))
        assert w.grad.tolist() == [i, i, i]


def test_a_step_needs_new_memory_for_its_loss_alone():
    model, traced = traced_step()
    for _ in range(4):
        traced(*INPUTS)
    before = tg.memory_stats()["allocations"]
    for _ in range(10):
        traced(*INPUTS)
    assert tg.memory_stats()["allocations"] - before == 10


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("way", ["trace", "script", "compile"])
def test_arguments_of_a_call_are_not_held(way, wants):
    def f(x):
        return (x * 2).sin()

    run = {
        "trace": lambda: jit.trace(f, tg.ones(2, 3)),
        "script": lambda: jit.script(f),
        "compile": lambda: tg.compile(f),
    }
    run = run[way]()
    for shape in ((2, 3), (4, 5)):
        x = tg.ones(shape, requires_grad=wants)
        alive, y = weakref.ref(x), run(x)
        if wants:
            y.sum().backward()
        del x, y
        gc.collect()
        assert alive() is None, shape
