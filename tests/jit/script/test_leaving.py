"""A `with` in script is left by what raises inside it, in its own function or in one that it calls."""

from typing import Any

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit


@jit.script
class Held:
    def __init__(self, count: int):
        self.count = count
        self.log = ""

    def __enter__(self):
        self.count += 1
        return self.count

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.count -= 1
        self.log += str(self.count)


def refuse(n: int) -> int:
    if n > 2:
        raise ValueError("more than two")
    return n


def by_itself(x: tg.Tensor, held: Held, other: Held):
    with held as n, other:
        if n > 2:
            raise ValueError("more than two")
        x = x + n
    return x


def by_a_function(x: tg.Tensor, held: Held, other: Held):
    with held as n:
        with other:
            x = x + refuse(n)
    return x


def in_a_loop(x: tg.Tensor, held: Held, other: Held):
    for _ in range(1, 9):
        with held as m:
            with other:
                assert m < 3, "more than two"
                x = x + m
    return x


@pytest.mark.parametrize("function", [by_itself, by_a_function, in_a_loop])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_what_raises_leaves_each_with_once(function, count):
    told = []
    for run in (function, jit.script(function)):
        held, other = Held(count), Held(7)
        try:
            result = run(tg.zeros(1), held, other).tolist()
        except Exception as error:
            result = str(error.args[0]).partition("\n")[0]  # pytest adds to the words of an assertion
        told.append((result, held.count, held.log, other.count, other.log))
    assert told[0] == told[1] and told[1][1:4:2] == (count, 7)


def test_what_leaving_raises_leaves_the_outer_ones():
    program = jit.CompilationUnit("""
class Failing:
    def __init__(self):
        self.n = 0
    def __enter__(self):
        return self
    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.n += 1
        raise ValueError("left")

def run(x):
    with torch.no_grad():
        with Failing():
            raise ValueError("first")
    return x
""")
    with pytest.raises(ValueError, match="left"):
        program.run(tg.ones(1))
    assert tg.is_grad_enabled()


def by_an_op(x: tg.Tensor, y: tg.Tensor, held: Held, other: Held):
    with held:
        with tg.no_grad(), other:
            z = x + y
    return z


def by_a_list(x: tg.Tensor, items: list[int], held: Held, other: Held):
    for i in range(3):
        with held, other:
            x = x + items[i]
    return x


@pytest.mark.parametrize(
    "function, second, fits",
    [
        (by_an_op, tg.ones(2), True),
        (by_an_op, tg.ones(3), False),
        (by_a_list, [1, 2, 3], True),
        (by_a_list, [1], False),
    ],
)
@pytest.mark.parametrize("needs_grad", [False, True])
def test_an_op_that_fails_leaves_each_with_once(function, second, fits, needs_grad):
    told = []
    for run in (function, jit.script(function)):
        held, other, x = Held(3), Held(7), tg.zeros(2, requires_grad=needs_grad)
        try:
            result = run(x, second, held, other).tolist()
        except (RuntimeError, IndexError):
            result = None
        told.append((result, held.count, held.log, other.count, other.log, tg.is_grad_enabled()))
    assert told[0] == told[1] and (told[0][0] is not None) is fits


def test_an_op_that_fails_ends_the_range_that_is_recorded():
    @jit.script
    def recorded(x: tg.Tensor, y: tg.Tensor):
        with tg.profiler.record_function("part"):
            z = x + y
        return z

    with tg.profiler.profile() as profile:
        with pytest.raises(RuntimeError, match="must match the size"):
            recorded(tg.ones(2), tg.ones(3))
        recorded(tg.ones(2), tg.ones(2))
    ranges = [event for event in profile.events() if event.name == "part"]
    assert len(ranges) == 2 and not any(child in ranges for event in ranges for child in event.cpu_children)


def test_who_catches_what_a_called_program_raises_is_left_in_its_own_with():
    @jit.script
    def inner(x: tg.Tensor, y: tg.Tensor, held: Held):
        with held:
            return x + y

    left = []

    @jit.ignore
    def caught(x: tg.Tensor, y: tg.Tensor, held: Held, other: Held) -> int:
        try:
            inner(x, y, other)
        except RuntimeError:
            left.append((held.log, other.log))
        return held.count

    @jit.script
    def outer(x: tg.Tensor, y: tg.Tensor, held: Held, other: Held):
        with held:
            n = caught(x, y, held, other)
        return n

    held, other = Held(0), Held(7)
    assert outer(tg.ones(2), tg.ones(3), held, other) == 1
    assert left == [("", "7")] and held.log == "0"


class Loud:
    def __init__(self, log: list[int]):
        self.log, self.n = log, 0

    def __enter__(self):
        self.n += 1
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.log.append(self.n)


def test_an_object_that_the_program_makes_is_left_once_however_it_changed():
    @jit.script
    def run(x: tg.Tensor, y: tg.Tensor, log: list[int]):
        for i in range(2):
            with Loud(log) as loud:
                loud.n += i
        return x + y

    for _ in range(2):
        for y, fits in ((tg.ones(2, requires_grad=True), True), (tg.ones(3), False)):
            log: list[int] = []
            try:
                run(tg.ones(2), y, log).sum().backward()
            except RuntimeError:
                assert not fits
            assert log == [1, 2]


def test_a_with_of_an_object_of_its_own_leaves_a_graph_without_effects():
    @jit.script
    def run(x: tg.Tensor):
        with Held(3) as n:
            x = x * n
        return x

    x = tg.ones(2, requires_grad=True)
    run(x).sum().backward()
    assert not run.graph.effects and x.grad.tolist() == [4, 4]
