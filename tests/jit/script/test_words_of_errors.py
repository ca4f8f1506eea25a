"""Errors say what PyTorch's say, for programs look for these words in them."""

from typing import NamedTuple

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit


class OwnError(ValueError):
    pass


@jit.script
def failing(which: int, names: dict[str, int]) -> int:
    if which == 0:
        return names["x"]
    if which == 1:
        return 1 // len(names)
    if which == 2:
        raise OwnError("mine")
    assert which == 4, "no such way"
    return 0


@pytest.mark.parametrize(
    "which, kind, words",
    [
        (0, KeyError, "KeyError: 'x'"),
        (1, ZeroDivisionError, "ZeroDivisionError: integer division"),
        (2, OwnError, "test_words_of_errors.OwnError: mine"),
        (3, AssertionError, "AssertionError: no such way"),
    ],
)
def test_what_a_program_raises_is_told_with_its_kind(which, kind, words):
    with pytest.raises(kind) as found:
        failing(which, {})
    assert words in str(found.value) and isinstance(found.value, jit.Error)


class Pair(NamedTuple):
    a: int
    b: tg.Tensor


class Plain:
    def __init__(self):
        self.n = 1


@pytest.mark.parametrize(
    "body, words",
    [
        ("return Pair('x', x)", "Expected a value of type 'int' for argument 'a' but instead found type 'str'"),
        ("return Plain() + Plain()", "object has no attribute or method '__add__'"),
        ("return n()", "cannot call a value of type int"),
        ("return x.sin", "builtin cannot be used as a value"),
        ("return x.sin.real", "attribute lookup is not defined on builtin"),
        ("a, b = len\n    return a", "cannot be used as a tuple"),
        ("a, b = (x, x, x)\n    return a", "too many values to unpack: need 2 but found 3"),
        ("a, b, c = (x, x)\n    return a", "need 3 values to unpack, but found only 2"),
        ("print(x, flush=True)", "print doesn't accept any keyword arguments"),
        ("with Plain():\n        pass", "does not define __enter__ and __exit__ methods"),
        ("del Plain()[0]", "Class does not define __delitem__"),
        ("a = [1]\n    a.sort(reverse=x)", "for argument 'reverse'"),
        ("a: list[int] = ['x']", "List type annotation `List[int]` did not match the types of the given list elements"),
        ("a: dict[int, int] = {'x': 1}", "did not match the type of an actual key type `str`"),
        ("for i in range(): pass", "range expected at least 1 arguments, got 0"),
        ("return (x, n)[n]", "because we cannot resolve the output type"),
        ("return math.abcd", "object has no attribute abcd"),
    ],
)
def test_refusals_say_it_in_the_known_words(body, words):
    with pytest.raises(jit.Error) as found:
        jit.CompilationUnit(f"def f(x, n: int):\n    {body}")
    assert words in str(found.value)


def test_an_argument_that_is_a_tensor_for_want_of_an_annotation():
    with pytest.raises(
        jit.Error, match="Inferred the value for argument 'dim' to be of type 'Tensor' because it was not"
    ):
        jit.CompilationUnit("def f(x, dim):\n    return x.sum(dim)")
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'Tensor \(inferred\)' for argument 'x'"):
        jit.CompilationUnit("def f(x):\n    return x").f(1)
