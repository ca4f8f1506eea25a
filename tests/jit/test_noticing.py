"""What a traced program depends on besides its arguments is noticed when it changes, and costs nothing while it does
not: a call has no frame of Python."""

import copy
import gc
import sys

import pytest
from tinygrad_ext.jit.watch import Watch

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


class Training:
    """A model, its optimizer and a step, made alike each time."""

    def __init__(self, make=lambda p: tg.optim.SGD(p, lr=0.1, momentum=0.9)):
        tg.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.optimizer = make(self.model.parameters())

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.model(x).pow(2).sum()
        loss.backward()
        self.optimizer.step()
        return loss


def replace_weight(t):
    t.model[0].weight = nn.Parameter(tg.ones(4, 3))


def load_model(t):
    t.model.load_state_dict({k: tg.ones_like(v) for k, v in t.model.state_dict().items()})


def assign_model(t):
    t.model.load_state_dict({k: tg.ones_like(v) for k, v in t.model.state_dict().items()}, assign=True)


def load_optimizer(t):
    t.optimizer.load_state_dict(copy.deepcopy(t.optimizer.state_dict()))
    for state in t.optimizer.state.values():
        state["momentum_buffer"].fill_(0.25)


def replace_state(t):
    for state in t.optimizer.state.values():
        state["momentum_buffer"] = tg.ones_like(state["momentum_buffer"])


def clear_state(t):
    t.optimizer.state.clear()


def freeze(t):
    t.model[0].weight.requires_grad_(False)


def change_options(t):
    t.optimizer.param_groups[0]["momentum"] = 0.5


def change_rate(t):
    t.optimizer.param_groups[0]["lr"] = 0.25


def add_group(t):
    t.model.append(nn.Linear(1, 1, bias=False))
    with tg.no_grad():
        t.model[3].weight.fill_(0.5)
    t.optimizer.add_param_group({"params": t.model[3].parameters()})


def other_module(t):
    t.model[1] = nn.ReLU()


def other_model(t):
    tg.manual_seed(1)
    t.model = nn.Sequential(nn.Linear(3, 1))
    t.optimizer = tg.optim.SGD(t.model.parameters(), lr=0.1)


def tie(t):
    t.model[0].bias = t.model[2].bias = nn.Parameter(tg.ones(1))


def hook(t):
    t.model[0].register_forward_hook(lambda module, args, output: output * 2)


def hook_on_steps(t):
    def halve(optimizer, args, kwargs):
        for p in optimizer.param_groups[0]["params"]:
            p.grad.mul_(0.5)

    t.optimizer.register_step_pre_hook(halve)


@pytest.mark.parametrize(
    "change",
    [
        replace_weight, load_model, assign_model, load_optimizer, replace_state, clear_state, freeze, change_options,
        change_rate, add_group, other_module, other_model, tie, hook, hook_on_steps,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_a_change_between_steps_is_noticed(change):
    eager, twin = Training(), Training()
    traced = jit.trace(twin.step, (tg.ones(2, 3),))
    for _ in range(3):
        assert traced(tg.ones(2, 3)).equal(eager.step(tg.ones(2, 3)))
    change(eager), change(twin)
    for _ in range(3):
        assert traced(tg.ones(2, 3)).equal(eager.step(tg.ones(2, 3)))
    for mine, wanted in zip(twin.model.parameters(), eager.model.parameters()):
        assert mine.equal(wanted)
        assert (mine.grad is None) is (wanted.grad is None) and (mine.grad is None or mine.grad.equal(wanted.grad))


def test_a_hook_on_all_modules_is_noticed():
    model = nn.Linear(2, 2)
    traced = jit.trace(lambda x: model(x), tg.ones(1, 2))
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, output: output + 1)
    try:
        assert traced(tg.ones(1, 2)).equal(model(tg.ones(1, 2)))
    finally:
        handle.remove()
    assert traced(tg.ones(1, 2)).equal(model(tg.ones(1, 2)))


TABLE = tg.ones(2)


def test_other_tensors_in_the_places_of_those_that_were_closed_over():
    global TABLE
    held, parts, named = tg.ones(2), [tg.ones(2)], {"a": tg.ones(2)}

    def f(x):
        return x * held + parts[0] * 2 + named["a"] * 3 + TABLE * 4

    traced = jit.trace(f, (tg.ones(2),))
    x = tg.tensor([1.0, 2.0])
    held = tg.full((2,), 3.0)
    assert traced(x).equal(f(x))
    parts[0], named["a"] = tg.full((2,), 5.0), tg.full((2,), 7.0)
    assert traced(x).equal(f(x))
    TABLE = tg.full((2,), 11.0)
    assert traced(x).equal(f(x))
    assert traced.explain().startswith("f: 1 graph captured")  # the same graph with other tensors
    held = tg.ones(2, dtype=tg.float64)
    assert traced(x).equal(f(x)) and traced(x).dtype == tg.float64
    assert traced.explain().startswith("f: 2 graphs captured")


def test_gradients_that_are_taken_away_or_put_there():
    weight, twin = nn.Parameter(tg.ones(2)), nn.Parameter(tg.ones(2))

    def eager(x):
        (weight * x).sum().backward()

    def f(x):
        (twin * x).sum().backward()

    traced = jit.trace(f, (tg.ones(2),))
    for given in (0, None, 1, tg.ones(2), 2, None, None, 3):
        if type(given) is not int:
            weight.grad, twin.grad = given, None if given is None else given.clone()
        else:
            x = tg.full((2,), float(given))
            eager(x), traced(x)
            assert weight.grad.equal(twin.grad)


def frames_of(call, x):
    """Names of the functions of Python that a call runs, when it is not the first, and no garbage is collected."""
    for _ in range(4):
        call(x)
    names = []
    gc.disable()
    sys.setprofile(lambda frame, event, arg: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call(x)
    finally:
        sys.setprofile(None)
        gc.enable()
    return names


@pytest.mark.parametrize("make", [tg.optim.SGD, tg.optim.Adam], ids=["SGD", "Adam"])
def test_a_call_has_no_frame_of_python(make):
    training = Training(lambda p: make(p, lr=0.1))
    traced = jit.trace(training.step, (tg.ones(2, 3),))
    assert frames_of(traced, tg.ones(2, 3)) == []
    module = jit.trace(training.model.eval(), tg.ones(2, 3))
    with tg.no_grad():
        assert frames_of(module, tg.ones(2, 3)) == []


def test_what_is_set_to_an_equal_value_is_no_change():
    training = Training()
    traced, x = jit.trace(training.step, (tg.ones(2, 3),)), tg.ones(2, 3)
    for i in range(40):
        training.optimizer.param_groups[0].update(lr=0.1 / (i + 1), momentum=float("0.9"), weight_decay=0)
        training.model.train(bool(i))
        traced(x)
    assert "3 graphs captured" in traced.explain()  # without state and gradients, without training, and with all


def test_copies_of_what_was_traced():
    model = nn.Linear(2, 2)
    traced = jit.trace(model, tg.ones(1, 2))
    twin = copy.deepcopy(traced)
    with tg.no_grad():
        model.weight.zero_()
    assert not twin(tg.ones(1, 2)).equal(traced(tg.ones(1, 2)))


def test_a_watch_tells_every_change_however_often_it_held():
    plain, other, row = {"a": 1.5, "b": 2}, {"c": "text"}, [1, 2]
    watch = Watch([(plain, ["a"], [1.5], False), (row, [0], [row[0]], False)])
    beside = Watch([(other, ["c"], ["text"], True)])
    for _ in range(3):
        assert watch.check() and watch.check() and beside.check() and watch.check()
        plain["b"] += 1
        assert watch.check() and watch.check()
        plain["a"] = 2.5
        assert not watch.check() and not watch.check() and beside.check() and not watch.check()
        plain.update(a=1.5)
        assert watch.check()
        del other["c"]
        assert watch.check() and not beside.check() and watch.check() and not beside.check()
        other.setdefault("c", "text")
        row[0], kept = 7, row[0]
        assert beside.check() and not watch.check() and not watch.check()
        row[0] = kept
