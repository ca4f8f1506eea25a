"""Types that do not fit are refused where they stand, though Python would take the program."""

import linecache
from typing import Any, Optional, Union

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


def compiled(name, source):
    filename = f"<strict {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    space = {
        "tg": tg, "jit": jit, "nn": nn, "Any": Any, "Dict": dict, "List": list, "Optional": Optional, "Tuple": tuple,
        "Union": Union, "__name__": "strict",
    }  # fmt: skip
    exec(compile(source, filename, "exec"), space)
    return space["f"]


def refused(name, source, told, line, kind=jit.Error):
    """jit.script refuses f with this part of a message, and a caret in this line."""
    with pytest.raises(kind) as error:
        jit.script(compiled(name, source))
    text = str(error.value)
    assert told in text
    marked = text.split(f'File "<strict {name}>", line {line}, in ', 1)[1].split("\n")
    wanted = source.split("\n")[line - 1].strip()
    *head, shown, carets = marked[1:3] if wanted.startswith("def ") else marked[1:4]
    assert shown.strip() == wanted and "^" in carets and all(row.strip().startswith("def ") for row in head)


# (name, source, a part of the message, the line that is marked)
NAMES = [
    (
        "another type in a branch",
        "def f(n: int):\n    x = 1.5\n    if n > 1:\n        x = 'a'\n    return n",
        "Variable 'x' previously had type float but is now being assigned to a value of type str",
        4,
    ),
    (
        "a parameter in a branch that returns",
        "def f(n: int):\n    if n > 1:\n        n = 'a'\n        return 1\n    return 2",
        "Variable 'n' previously had type int",
        3,
    ),
    (
        "an untold list",
        "def f(n: int):\n    x = []\n    for i in range(n):\n        x = [i]\n    return n",
        "previously had type List[Tensor]",
        4,
    ),
    (
        "a comparison of two numbers decides nothing",
        "def f():\n    if 1 == 1:\n        x = 1\n    return x",
        "x is not defined in the false branch",
        4,
    ),
    (
        "declared again within",
        "def f(n: int):\n    x = 5\n    if n > 1:\n        x: Optional[int] = 7\n    return n",
        "declare and annotate the type of variable 'x' that is already defined in an outer block",
        4,
    ),
    ("deleted", "def f(x):\n    a = x + 1\n    del a\n    return a", "undefined value a", 4),
    ("deleted in a branch", "def f(x, n: int):\n    if n > 1:\n        del x\n    return x", "undefined value x", 4),
    ("deleted, never set", "def f(x):\n    del b\n    return x", "undefined value b", 2),
    (
        "self in a loop",
        "def f(n: int):\n    g = tg.sin\n    for i in range(n):\n        g = tg.cos\n    return g(tg.ones(1))",
        "Cannot re-assign 'g'",
        4,
    ),
]
VALUES = [
    (
        "a tuple is no condition",
        "def f(x):\n    if (x, x):\n        return 1\n    return 2",
        "Tuple[Tensor, Tensor] to bool",
        2,
    ),
    (
        "not a tuple",
        "def f(x):\n    return not (x, x)",
        "Could not cast value of type Tuple[Tensor, Tensor] to bool",
        2,
    ),
    ("beyond 64 bits", "def f():\n    return 9223372036854775808", "out of range", 2),
    ("beyond 64 bits in hex", "def f():\n    return 0xFFFFFFFFFFFFFFFF", "out of range", 2),
    ("tolist of what", "def f(x):\n    return x.tolist()", "Expected type hint for result of tolist()", 2),
    (
        "tolist of text",
        "def f(x):\n    return jit.annotate(List[str], x.tolist())",
        "str is not one of the supported element types for tolist",
        2,
    ),
    (
        "an empty list of two kinds",
        "def f():\n    x: Union[List[int], List[str]] = []\n    return 1",
        "there are multiple possible List type candidates in the Union annotation",
        2,
    ),
    (
        "a list of neither kind",
        "def f(x):\n    y: Union[List[int], List[str]] = [x]\n    return 1",
        "none of those types match the types of the given list elements: Tensor",
        2,
    ),
    (
        "a dict of neither kind",
        "def f(x):\n    y: Union[Dict[str, int], Dict[str, str]] = {'a': x}\n    return 1",
        "none of those dict types can hold the types of the given keys and values: str, Tensor",
        2,
    ),
    ("a bare List", "def f(x: Any):\n    return jit.isinstance(x, List)", "use List without a contained type", 2),
    ("a bare Dict", "def f(x: Any):\n    return jit.isinstance(x, (int, Dict))", "use Dict without contained types", 2),
    (
        "a way without return",
        "def f(n: int) -> Optional[int]:\n    if n > 1:\n        return n",
        "does not return along all paths",
        1,
    ),
    (
        "an argument of a Python function",
        "@jit.ignore\ndef g(told):\n    return told\ndef f(x):\n    return g('2')",
        "Expected a value of type 'Tensor (inferred)' for argument 'told' but instead found type 'str'",
        5,
    ),
]


@pytest.mark.parametrize("name, source, told, line", NAMES + VALUES, ids=[row[0] for row in NAMES + VALUES])
def test_what_does_not_fit_is_refused_at_its_line(name, source, told, line):
    refused(name, source, told, line)


@pytest.mark.parametrize(
    "annotation",
    ["Dict[str, nn.Linear]", "nn.Module", "Tuple[int, jit.ScriptModule]", "'Unknown'", "'List['"],
)
def test_annotations_that_are_no_types_are_value_errors(annotation):
    refused(annotation, f"def f(x: {annotation}):\n    return 1", "", 1, ValueError)
    refused(annotation, f"def f(x: {annotation}):\n    return 1", "", 1, jit.Error)


# (name, source, arguments, what it gives)
TAKEN = [
    ("another type in the same block", "def f(n: int):\n    x: int = n\n    x = 'a' * x\n    return x", (2,), "aa"),
    (
        "another type behind a return",
        "def f(n: int):\n    x = n\n    if n > 1:\n        return 'b'\n    x = 'a'\n    return x",
        (1,),
        "a",
    ),
    (
        "a narrower type in a branch",
        "def f(n: Optional[int]):\n    if n is None:\n        n = 1\n    return n + 1",
        (None,),
        2,
    ),
    (
        "an empty list of the same kind",
        "def f(n: int):\n    x = [n]\n    if n > 1:\n        x = []\n    return x",
        (2,),
        [],
    ),
    (
        "a comprehension has its own names",
        "def f(x: str):\n    y = [x for x in range(2)]\n    return x + str(y)",
        ("a",),
        "a[0, 1]",
    ),
    (
        "the one kind that fits",
        "def f():\n    x: Union[List[str], List[int]] = [1]\n    return jit.isinstance(x, List[int])",
        (),
        True,
    ),
    (
        "the dict that fits",
        "def f():\n    x: Union[Dict[int, str], Dict[int, int]] = {1: 1}\n    return jit.isinstance(x, Dict[int, int])",
        (),
        True,
    ),
    ("the largest int", "def f():\n    return 9223372036854775807", (), (1 << 63) - 1),
    ("set again when deleted", "def f(n: int):\n    del n\n    n = 'a'\n    return n", (1,), "a"),
]


@pytest.mark.parametrize("name, source, args, result", TAKEN, ids=[row[0] for row in TAKEN])
def test_what_fits_is_taken(name, source, args, result):
    assert jit.script(compiled(name, source))(*args) == result


def test_tolist_gives_what_was_told_or_says_what_came():
    source = "def f(x):\n    y: List[List[float]] = x.tolist()\n    return y"
    scripted = jit.script(compiled("tolist", source))
    assert scripted(tg.ones(1, 2)) == [[1.0, 1.0]]
    for wrong in (tg.ones(2), tg.ones(1, 2, dtype=tg.int64)):
        with pytest.raises(RuntimeError, match=r"tolist\(\): expected a value of type List\[List\[float\]\]"):
            scripted(wrong)


def test_a_python_function_gives_what_its_annotation_says():
    head = "@jit.ignore\ndef g(n: int) -> {}:\n    return {}\ndef f(n: int):\n    return g(n)"
    assert jit.script(compiled("float", head.format("float", "n")))(2) == 2.0
    for annotation, given, kind in (("tg.Tensor", "(n, n)", "tuple"), ("List[int]", "['a']", "list")):
        scripted = jit.script(compiled(kind, head.format(annotation, given)))
        with pytest.raises(RuntimeError, match=f"but instead got value of type {kind}"):
            scripted(1)


def test_containers_to_ask_for_say_what_they_hold():
    with pytest.raises(RuntimeError, match="use Tuple without a contained type"):
        jit.isinstance((1,), tuple)
    assert jit.isinstance((1,), tuple[int]) and not jit.isinstance((1,), tuple[str])
