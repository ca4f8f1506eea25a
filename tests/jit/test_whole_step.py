"""A training step traced as one graph: forward, backward, update; its bits are eager's over many steps."""

import io
import types

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn

OPTIMIZERS = {
    "SGD": lambda p: tg.optim.SGD(p, lr=0.1),
    "momentum": lambda p: tg.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda p: tg.optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: tg.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: tg.optim.AdamW(p, lr=0.01),
}


def made(optimizer, clip):
    tg.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.LayerNorm(16), nn.Linear(16, 1)
    )
    optim = OPTIMIZERS[optimizer](model.parameters())
    schedule = tg.optim.lr_scheduler.StepLR(optim, 30, 0.5)

    def step(x, y):
        optim.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optim.step()
        return loss

    return model, optim, schedule, step


def trained(step, schedule, data):
    tg.manual_seed(7)
    losses = []
    for x, y in data:
        losses.append(float(step(x, y)))
        schedule.step()
    return losses


@pytest.mark.parametrize("clip", [False, True], ids=["free", "clipped"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_hundred_steps_have_eagers_bits(optimizer, clip):
    data = [(tg.randn(5 + i % 3, 8), tg.randn(5 + i % 3, 1)) for i in range(100)]
    model, optim, schedule, step = made(optimizer, clip)
    wanted = trained(step, schedule, data)
    twin, twin_optim, twin_schedule, twin_step = made(optimizer, clip)
    traced = jit.trace(twin_step, data[0])
    assert trained(traced, twin_schedule, data) == wanted
    for mine, other in zip(twin.state_dict().values(), model.state_dict().values()):
        assert mine.equal(other)
    for p, q in zip(twin.parameters(), model.parameters()):
        assert p.grad.equal(q.grad)
        for key, value in optim.state[q].items():
            assert value is None or twin_optim.state[p][key].equal(value)
    # the first step has no gradients and no state of the optimizer, the others have; the learning rate is an input
    assert "2 graphs captured" in traced.explain()


def test_a_traced_step_can_be_left_and_taken_up_again():
    model, optim, schedule, step = made("Adam", False)
    twin, _, _, twin_step = made("Adam", False)
    data = [(tg.randn(4, 8), tg.randn(4, 1)) for _ in range(9)]
    traced = jit.trace(twin_step, data[0])
    tg.manual_seed(3)
    wanted = [float(step(x, y)) for x, y in data]
    tg.manual_seed(3)
    got = [float((traced if i % 3 else twin_step)(x, y)) for i, (x, y) in enumerate(data)]
    assert got == wanted


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_goes_on_from_what_was_saved(optimizer):
    data = [(tg.randn(4, 8), tg.randn(4, 1)) for _ in range(12)]
    _, _, schedule, step = made(optimizer, True)
    wanted = trained(jit.trace(step, data[0]), schedule, data)
    model, optim, schedule, step = made(optimizer, True)
    traced = jit.trace(step, data[0])
    got = trained(traced, schedule, data[:6])
    file, generator = io.BytesIO(), tg.get_rng_state()
    tg.save({"model": model.state_dict(), "optim": optim.state_dict(), "schedule": schedule.state_dict()}, file)
    trained(traced, schedule, data[:3])  # goes astray, and is taken back: by the same objects, and by new ones
    for objects in ((model, optim, schedule, traced), made(optimizer, True)):
        model, optim, schedule, step = objects
        saved = tg.load(io.BytesIO(file.getvalue()))
        model.load_state_dict(saved["model"])
        optim.load_state_dict(saved["optim"])
        schedule.load_state_dict(saved["schedule"])
        tg.set_rng_state(generator)
        step = step if step is traced else jit.trace(step, data[0])
        more = []
        for x, y in data[6:]:
            more.append(float(step(x, y)))
            schedule.step()
        assert got + more == wanted


def test_the_gradients_that_a_graph_adds_to():
    weight, other = nn.Parameter(tg.ones(2)), nn.Parameter(tg.ones(2))

    def accumulate(x):
        (weight * x + other).sum().backward()

    traced = jit.trace(accumulate, (tg.ones(2),))
    assert weight.grad is None
    traced(tg.tensor([1.0, 2.0]))
    traced(tg.tensor([10.0, 20.0]))
    assert weight.grad.tolist() == [11.0, 22.0] and other.grad.tolist() == [2.0, 2.0]
    held = weight.grad
    traced(tg.tensor([1.0, 1.0]))
    assert weight.grad is held and held.tolist() == [12.0, 23.0]


def test_gradients_that_are_added_to_have_the_names_of_their_parameters():
    model = nn.Sequential(nn.ReLU(), nn.Linear(2, 2))

    def accumulate(x):
        model(x).sum().backward()

    accumulate(tg.ones(1, 2))
    traced = jit.trace(accumulate, (tg.ones(1, 2),))
    kinds = {s.name: s.kind for s in traced.graph.state}
    assert kinds["model.1.weight.grad"] == kinds["model.1.bias.grad"] == "grad"
    wanted = [p.grad * 2 for p in model.parameters()]
    traced(tg.ones(1, 2))
    assert all(p.grad.equal(w) for p, w in zip(model.parameters(), wanted))


def test_a_module_without_parameters():
    relu = nn.ReLU()
    traced = jit.trace(lambda x: relu(x) + tg.ones(2), (tg.ones(2),))
    outside = tg.ones(2)
    assert traced(tg.ones(2)).tolist() == [2, 2]
    assert jit.trace(lambda x: relu(x) + outside, (tg.ones(2),))(tg.ones(2)).tolist() == [2, 2]


class Trainer:
    def __init__(self):
        tg.manual_seed(0)
        self.model = nn.Linear(2, 1)
        self.parts = {"optimizers": [tg.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)]}

    def step(self, x):
        (optimizer,) = self.parts["optimizers"]
        optimizer.zero_grad()
        loss = self.model(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss


def test_an_optimizer_is_found_on_objects_and_in_containers():
    made, twin = Trainer(), Trainer()
    traced = jit.trace(twin.step, (tg.ones(3, 2),))
    for rate in (0.1, 0.1, 0.01, 0.5):
        made.parts["optimizers"][0].param_groups[0]["lr"] = rate
        twin.parts["optimizers"][0].param_groups[0]["lr"] = rate
        assert traced(tg.ones(4, 2)).equal(made.step(tg.ones(4, 2)))
    assert twin.model.weight.equal(made.model.weight)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_that_no_variable_leads_to_is_met_in_its_step(optimizer):
    def trained(wrap):
        elsewhere = types.ModuleType("elsewhere")  # nothing of a module is looked into
        elsewhere.trainer = Trainer()
        params = elsewhere.trainer.model.parameters()
        elsewhere.trainer.parts["optimizers"] = [o] = [OPTIMIZERS[optimizer](params)]
        step = wrap(lambda x: elsewhere.trainer.step(x))
        for rate in (0.1, 0.1, 0.01, 0.5):
            o.param_groups[0]["lr"] = rate
            step(tg.ones(4, 2))
        return elsewhere.trainer.model.weight, [list(state) for state in o.state.values()]

    def traced(step):
        return jit.trace(step, (tg.ones(3, 2),))

    (got, state), (wanted, expected) = trained(traced), trained(lambda step: step)
    assert got.equal(wanted) and state == expected
