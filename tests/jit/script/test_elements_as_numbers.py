"""A tensor of one element stands for its number where a program returns one, calls with one or looks something up."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit


def returned(n) -> int:
    return n


def half(n) -> float:
    return n * 0.5


def perhaps(n) -> int | None:
    return n


def pair(n) -> tuple[int, float]:
    return n, n


def of_a_list(n):
    return [1, 2, 3][n]


def of_a_text(n):
    return "abc"[n]


def of_a_dict(n):
    return {1: 2, 2: 4}[n]


def in_a_dict(n):
    return n in {1: 2, 2: 4}, n in {3: 1}


def put(n):
    row = [1, 2, 3]
    row[n] = 7
    return row


def shape(n):
    x = tg.ones(2, 3, 4)
    return x.shape[n], x.size(n)


def told(n: int) -> int:
    return n + 1


def called(n):
    return told(n)


WANTED = [
    (returned, 2),
    (half, 1.0),
    (perhaps, 2),
    (pair, (2, 2.0)),
    (of_a_list, 3),
    (of_a_text, "c"),
    (of_a_dict, 4),
    (in_a_dict, (True, False)),
    (put, [1, 2, 7]),
    (shape, (4, 4)),
    (called, 3),
]
NAMES = [function.__name__ for function, _ in WANTED]


@pytest.mark.parametrize("function, wanted", WANTED, ids=NAMES)
@pytest.mark.parametrize("dtype", [tg.int64, tg.uint8])
def test_the_only_element_is_the_number(function, wanted, dtype):
    found = jit.script(function)(tg.tensor(2, dtype=dtype))
    assert repr(found) == repr(wanted)


@pytest.mark.parametrize("function", [f for f, _ in WANTED if f is not half], ids=[n for n in NAMES if n != "half"])
@pytest.mark.parametrize("value", [tg.tensor(2.5), tg.tensor(True), tg.tensor([2]), tg.tensor([1, 2])], ids=str)
def test_what_is_no_whole_number_is_refused_when_the_program_runs(function, value):
    with pytest.raises(TypeError, match="must be int, not a Tensor"):
        jit.script(function)(value)


@pytest.mark.parametrize("wanted", ["bool", "list[int]", "str"])
def test_other_results_are_refused_by_the_compiler(wanted):
    with pytest.raises(jit.Error, match="Return value was annotated as having type"):
        jit.CompilationUnit(f"def f(x) -> {wanted}:\n    return x")


def test_a_number_of_an_element_is_planned():
    def scaled(x, n):
        return x * told(n)

    scripted = jit.script(scaled)
    for n in (0, 1):
        assert scripted(tg.ones(3), tg.tensor(n)).tolist() == [n + 1] * 3
    assert not scripted.graph.executor.boxed
