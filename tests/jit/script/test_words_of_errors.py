"""Errors say what PyTorch's say, for programs look for these words in them."""

from typing import Any, NamedTuple

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


class Unordered:
    def __init__(self):
        self.n = 1

    def __lt__(self, other) -> None:
        # type: (Unordered) -> None
        pass


class Misordered:
    def __init__(self):
        self.n = 1

    def __lt__(self, other):
        return True


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
        ("torch.sum(foo=4)", "Argument self not provided"),
        ("torch.sum(x, self=x)", "argument 'self' specified twice"),
        ("torch.cat(x)", "for argument 'tensors' but instead found type 'Tensor'"),
        ("torch.cat([3])", "argument 'tensors' but instead found type 'List[int]"),
        ("a = torch.jit.annotate(int, [i for i in range(n)])", "Expected an annotation of type List"),
        ("torch.LongTensor(1, [2])", "multiple positional arguments that were not all integers"),
        ("torch.LongTensor(hello='1')", "hello"),
        ("x.set_()", "set_() takes one tensor"),
        ("a = [Plain(), Plain()]\n    a.sort()", "must define a __lt__"),
        ("a = [Unordered()]\n    a.sort()", "must define a __lt__"),
        ("a = [Misordered()]\n    a.sort()", "must define a __lt__"),
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


@pytest.mark.parametrize(
    "text, words",
    [
        ("def f(x: Unknown):\n    return x", "Unknown"),
        ("def f(x):\n    break", "'break' outside loop"),
        (
            "def h(x, a: List[int] = [1]):\n    return x\ndef f(x):\n    return h(x)",
            "Mutable default parameters are not supported",
        ),
        ("def f(x):\n    a: int = [1]", "Expected an annotation of type List"),
        ("def f(x):\n    a: Union[int, Dict[str, int]] = [1]", "Union type annotation with an inner List type"),
        ("def f(x):\n    return x[slice(1, stop=2)]", "Slice does not accept any keyword arguments"),
        ("def f(x, d: Dict[str, int]):\n    return g(**d)", "keyword-arg expansion"),
    ],
)
def test_refusals_of_whole_functions(text, words):
    with pytest.raises(jit.Error) as found:
        jit.CompilationUnit(f"def g(a: int):\n    return a\n{text}")
    assert words in str(found.value)


@pytest.mark.parametrize(
    "text, values, words",
    [
        ("%s %s", "'a'", "Too few arguments for format string"),
        ("%s", "('a', 'b')", "Too many arguments for format string"),
        ("%", "'a'", "Incomplete format specifier"),
        ("%d", "'a'", "%d requires a number for formatting, but got String"),
    ],
)
def test_what_a_format_lacks(text, values, words):
    program = jit.CompilationUnit(f"def f(text: str):\n    return text % {values}")
    with pytest.raises(jit.Error, match=words):
        program.f(text)


def test_comments_with_types_of_parameters_and_of_the_whole():
    rows = {
        "def f(a,  # type: int\n      b):\n    # type: (int, int) -> int\n    return a": "Return type line",
        "def f(a,  # type: int\n      b, c):\n    # type: (...) -> int\n    return a": "Number of type annotations .1.",
    }
    for text, words in rows.items():
        with pytest.raises(jit.Error, match=words):
            jit.CompilationUnit(text)


def test_a_tuple_without_types_of_its_items():
    def unpacking(t: Any):
        if isinstance(t, tuple):
            a, b = t
        return a + b

    with pytest.raises(jit.Error, match="Provided tuple is not fully defined/refined"):
        jit.script(unpacking)


def test_what_a_fork_gives_is_told_as_a_future():
    def whole(x: int):
        return x + 1

    def forked(x: int) -> jit.Future[float]:
        return jit.fork(whole, x)

    def program(x: int):
        return jit.wait(forked(x))

    words = r"was annotated as having type Future\[float\] but is actually of type Future\[int\]"
    with pytest.raises(jit.Error, match=words):
        jit.script(program)


def test_an_item_that_does_not_fit_is_shown_with_its_whole_statement():
    with pytest.raises(jit.Error) as found:
        jit.CompilationUnit("def f():\n    a = dict()\n    a[1] = 2\n    return a")
    *_, text, marks = str(found.value).splitlines()
    assert text.strip() == "a[1] = 2" and marks.strip() == "^" * len("a[1] = 2") + " <--- HERE"


def test_each_line_stands_below_the_head_of_its_function():
    def inner(x: int) -> int:
        return x + 1

    def middle(x):
        return inner("text")

    def outer(x):
        return middle(x)

    with pytest.raises(jit.Error) as found:
        jit.script(outer)
    rows = [row.strip() for row in str(found.value).splitlines()]
    for head, line in (("def middle(x):", 'return inner("text")'), ("def outer(x):", "return middle(x)")):
        assert rows[rows.index(head) + 1] == line
