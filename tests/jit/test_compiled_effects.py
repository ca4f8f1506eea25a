"""Programs that change something besides, each call: `compile` runs them as they were written, and nothing is lost."""

import collections
import random
import sys
import types

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

CALLS = 5


class Counted:
    n = 0


class Slotted:
    __slots__ = ("n",)


class Strict(dict):
    """What a dict does by its own methods it refuses."""

    def update(self, *args, **kwargs):
        raise AssertionError("update")

    def __setitem__(self, key, value):
        assert key in self
        super().__setitem__(key, value)


class OfClass(nn.Module):
    k = 0

    def forward(self, x):
        type(self).k += 1
        return x * type(self).k


def of_class():
    OfClass.k = 0
    return OfClass(), lambda: OfClass.k


def of_global_class():
    Counted.n = 0

    def program(x):
        Counted.n += 1
        return x * Counted.n

    return program, lambda: Counted.n


def of_inner_class():
    class Inner:
        n = 0

    def program(x):
        Inner.n += 1
        return x * Inner.n

    return program, lambda: Inner.n


def of_slots():
    held = Slotted()
    held.n = 0

    def program(x):
        held.n += 1
        return x * held.n

    return program, lambda: held.n


shared = types.ModuleType("of_a_test")


def of_python_module():
    shared.k = 0

    def program(x):
        shared.k += 1
        return x * shared.k

    return program, lambda: shared.k


def of_entry(held):
    def program(x):
        held["a"] += 1
        return x * held["a"]

    return program, lambda: dict(held)


def of_order():
    held = collections.OrderedDict(a=1, b=2, c=3)

    def program(x):
        held.move_to_end(next(iter(held)))
        return x * list(held).index("a")

    return program, lambda: list(held.items())


def of_first(held):
    def program(x):
        held[0] += 1
        return x * float(held[0])

    return program, lambda: list(held)


def of_unset_name():
    if sys.argv is None:
        count = 0

    def program(x):
        nonlocal count
        try:
            count += 1
        except NameError:
            count = 1
        return x * count

    return program, lambda: count


def of_generator(generator):
    return lambda x: x * float(generator.random()), generator.random


def of_argument():
    held = Counted()

    def program(x, other=held):
        other.n += 1
        return x * other.n

    return program, lambda: held.n


@pytest.mark.parametrize("grow", [list.append, lambda held, value: held.insert(0, value)], ids=["append", "insert"])
def test_a_list_that_grows_is_written_down_a_few_times_only(grow, capsys):
    held = []

    def program(x):
        print("ran")
        grow(held, 1)
        return x * len(held)

    call = tg.compile(program)
    assert [call(tg.ones(1)).item() for _ in range(20)] == list(range(1, 21)) and held == [1] * 20
    assert capsys.readouterr().out.count("ran") <= 24
    assert call.explain().count("as it was written because") == 1


def test_what_changes_at_first_calls_alone_is_compiled():
    kept = {}

    def program(x):
        if x.shape not in kept:
            kept[tuple(x.shape)] = 1
        return x * 2

    call = tg.compile(program)
    for n in (1, 2, 3, 4, 5, 1, 2):
        assert call(tg.ones(n)).tolist() == [2.0] * n


def hooked(hook):
    def make():
        module, log = nn.Identity(), [1.0]
        module.register_forward_hook(lambda m, args, result: hook(log, result))
        return module, lambda: log

    return make


def registering():
    module, count = nn.Identity(), [0]

    def program(x):
        count[0] += 1
        module.register_forward_hook(lambda m, args, result: result + 1)
        return module(x) * count[0]

    return program, lambda: len(module._forward_hooks)


def counted_inside():
    count = [0]

    @tg.compile
    def inner(x):
        count[0] += 1
        return x * count[0]

    return lambda x: inner(x) + inner(x), lambda: count


def scheduled():
    layer = nn.Linear(1, 1, bias=False)
    nn.init.ones_(layer.weight)
    optimizer = tg.optim.SGD(layer.parameters(), lr=1.0)
    scheduler = tg.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def program(x):
        optimizer.zero_grad()
        loss = layer(x[:1]).sum() * 0.125
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.detach().reshape(1)

    return program, lambda: (scheduler.last_epoch, scheduler.get_last_lr(), layer.weight.tolist())


def in_order():
    held = {"scale": 1, "bias": 2}

    def program(x):
        held["scale"] += 1
        return x * next(iter(held.values()))

    return program, lambda: list(held.items())


def locked():
    held = np.zeros(1)

    def program(x):
        held.flags.writeable = True
        held[0] += 1
        held.flags.writeable = False
        return x * float(held[0])

    return program, held.tolist


def list_in_a_slot():
    held = Slotted()
    held.n = []

    def program(x):
        held.n.append(1)
        return x * len(held.n)

    return program, lambda: held.n


PROGRAMS = {
    "class of a module": of_class,
    "class": of_global_class,
    "class inside": of_inner_class,
    "slots": of_slots,
    "module of Python": of_python_module,
    "counter": lambda: of_entry(collections.Counter(a=5)),
    "strict dict": lambda: of_entry(Strict(a=5)),
    "defaultdict": lambda: of_entry(collections.defaultdict(int, a=2)),
    "order": of_order,
    "array": lambda: of_first(np.zeros(3)),
    "bytes": lambda: of_first(bytearray(2)),
    "deque": lambda: of_first(collections.deque([1, 2])),
    "unset name": of_unset_name,
    "random": lambda: of_generator(random.Random(3)),
    "default_rng": lambda: of_generator(np.random.default_rng(3)),
    "RandomState": lambda: of_generator(np.random.RandomState(3)),
    "default": of_argument,
    "hook that reads": hooked(lambda log, result: result * log[-1]),
    "hook that counts": hooked(lambda log, result: log.append(log[-1] + 1) or result * log[-1]),
    "hook that is registered": registering,
    "compiled inside": counted_inside,
    "scheduler": scheduled,
    "order of a dict": in_order,
    "locked array": locked,
    "list in a slot": list_in_a_slot,
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_what_a_program_changes_is_changed_by_each_call(what):
    answers = []
    for compiled in (False, True):
        program, state = PROGRAMS[what]()
        call = tg.compile(program) if compiled else program
        answers.append(([call(tg.ones(2))[0].item() for _ in range(CALLS)], state()))
    assert answers[0] == answers[1]


def test_what_a_hook_and_a_compiled_function_read_is_noticed():
    gain, module = [1.0], nn.Identity()
    module.register_forward_hook(lambda m, args, result: result * gain[0])
    inner = tg.compile(lambda x: x * gain[0])
    outer, hooked_module = tg.compile(lambda x: inner(x) + 1), tg.compile(module)
    for value in (1.0, 5.0, 2.0):
        gain[0] = value
        assert hooked_module(tg.ones(1)).item() == value and outer(tg.ones(1)).item() == value + 1
