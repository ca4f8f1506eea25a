"""An Optimizer subclass that never calls `super().__init__()` steps, takes hooks and is scheduled."""

import copy
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import optim


class Own(optim.Optimizer):
    def __init__(self, params):
        self.param_groups, self.state, self.defaults = [{"params": list(params), "lr": 0.5}], {}, {"lr": 0.5}

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                with tg.no_grad():
                    p -= group["lr"] * p.grad


class Wrapping(optim.Optimizer):
    def __init__(self, inner):
        self.inner, self.defaults = inner, inner.defaults

    @property
    def param_groups(self):
        return self.inner.param_groups

    @property
    def state(self):
        return self.inner.state

    def step(self, closure=None):
        return self.inner.step(closure)


def test_it_steps_and_takes_hooks():
    weight = tg.ones(1, requires_grad=True)
    own, seen = Own([weight]), []
    own.register_step_pre_hook(lambda *a: seen.append("before"))
    own.register_step_post_hook(lambda *a: seen.append("after"))
    (weight * 2).sum().backward()
    own.step()
    assert weight.item() == 0 and seen == ["before", "after"]
    own.zero_grad()
    assert weight.grad is None and own.state_dict()["param_groups"] == [{"lr": 0.5, "params": [0]}]
    assert "lr: 0.5" in repr(own)
    own.add_param_group({"params": tg.ones(1, requires_grad=True)})
    assert copy.deepcopy(own).param_groups[1]["lr"] == 0.5


def test_one_that_wraps_another_is_scheduled():
    weight = tg.ones(1, requires_grad=True)
    wrapping = Wrapping(optim.SGD([weight], lr=0.1))
    schedule = optim.lr_scheduler.StepLR(wrapping, 1)
    weight.sum().backward()
    wrapping.step()
    schedule.step()
    assert round(wrapping.param_groups[0]["lr"], 6) == 0.01 and round(weight.item(), 6) == 0.9


def test_an_unknown_attribute_is_still_unknown():
    assert not hasattr(Own([tg.ones(1)]), "nothing")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_one_that_was_pickled_takes_hooks_and_steps(protocol):
    opt = pickle.loads(pickle.dumps(optim.SGD([tg.ones(1, requires_grad=True)], lr=0.5), protocol))
    (weight,), seen = opt.param_groups[0]["params"], []
    opt.register_step_post_hook(lambda *a: seen.append("after"))
    weight.grad = tg.ones(1)
    opt.step()
    assert weight.item() == 0.5 and seen == ["after"]


def test_reading_an_attribute_of_an_optimizer_runs_no_python_code():
    assert not hasattr(optim.Optimizer, "__getattr__")
    assert optim.Optimizer.__getattribute__ is object.__getattribute__
