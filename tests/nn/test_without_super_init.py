"""A module whose __init__ leaves super().__init__() out, as PyTorch's first notes do."""

import copy
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

FIRST_ACTS = {
    "parameter": (lambda m: setattr(m, "x", nn.Parameter(tg.ones(1))), "_parameters"),
    "module": (lambda m: setattr(m, "x", nn.Linear(1, 1)), "_modules"),
    "buffer": (lambda m: setattr(m, "x", nn.Buffer(tg.ones(1))), "_buffers"),
    "register_parameter": (lambda m: m.register_parameter("x", None), "_parameters"),
    "register_buffer": (lambda m: m.register_buffer("x", tg.ones(1)), "_buffers"),
    "add_module": (lambda m: m.add_module("x", nn.Linear(1, 1)), "_modules"),
}


class Old(nn.Module):
    """A module as in 2017, without super().__init__(). PyTorch refuses its first parameter today."""

    def __init__(self, act):
        act(self)

    def forward(self, input):
        return input * 2


@pytest.mark.parametrize("act", FIRST_ACTS)
def test_a_module_without_super_init_registers_from_its_first_act(act):
    do, table = FIRST_ACTS[act]
    old = Old(do)
    assert list(getattr(old, table)) == ["x"] and old.training
    assert old(tg.ones(1)).tolist() == [2]
    seen = []
    with old.register_forward_hook(lambda module, args, output: seen.append(output)):
        old(tg.ones(1))
    assert len(seen) == 1
    for twin in (copy.deepcopy(old), pickle.loads(pickle.dumps(old)), copy.copy(old)):
        assert list(getattr(twin, table)) == ["x"] and list(twin.state_dict()) == list(old.state_dict())


def test_a_module_without_super_init_and_without_parts():
    old = Old(lambda m: setattr(m, "size", 3))
    assert old(tg.ones(1)).tolist() == [2] and old.training and repr(old) == "Old()"
    assert pickle.loads(pickle.dumps(old)).size == 3 and copy.copy(old)(tg.ones(1)).tolist() == [2]
    assert list(old.parameters()) == [] and list(old.modules()) == [old] and not old.state_dict()
    assert not old.eval().training and old.double() is old and old.size == 3


@pytest.mark.parametrize("act", FIRST_ACTS)
def test_super_init_after_the_first_part_keeps_it(act):
    do, table = FIRST_ACTS[act]

    class Late(nn.Module):
        def __init__(self):
            do(self)
            super().__init__()
            self.last = nn.Parameter(tg.ones(1))

    late = Late()
    assert "x" in getattr(late, table) and "last" in late._parameters
    late.__init__()
    assert list(late._parameters)[-1] == "last"


def test_parts_that_came_with_the_attributes_of_another_module_follow_the_one_that_assigns():
    first = nn.Linear(1, 1)
    first.register_buffer("steps", tg.zeros(1))
    twin = nn.Linear.__new__(nn.Linear)
    nn.Module.__init__(twin)
    twin.__dict__.update(first.__dict__)
    twin.steps = tg.ones(1)
    twin.weight = nn.Parameter(tg.full((1, 1), 5.0))
    twin.more = nn.ReLU()
    twin.register_buffer("own", tg.ones(1))
    assert (twin.steps.item(), twin.weight.item(), twin.own.item()) == (1, 5, 1) and isinstance(twin.more, nn.ReLU)
    assert [*twin.state_dict()] == ["weight", "bias", "steps", "own"] and twin.state_dict()["steps"].item() == 1
    assert first.steps.item() == 0 and [*first.state_dict()] == ["weight", "bias", "steps"]
