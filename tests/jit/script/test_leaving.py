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
