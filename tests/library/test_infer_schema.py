"""infer_schema: every spelling of a hint, PyTorch's text where PyTorch accepts it, and what is refused."""

# ruff: noqa: UP006, UP007, UP035, UP045  (old spellings are what is tested)
import enum
import types
import typing
from numbers import Number
from typing import Any, Dict, List, Literal, NamedTuple, Optional, Sequence, Tuple, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygrad_ext as tg
from tinygrad_ext import Tensor, library
from tinygrad_ext.ops.schema import Schema

try:
    import torch
except ImportError:
    torch = None


class Mode(str, enum.Enum):
    A = "a"


class Level(enum.IntEnum):
    LOW = 1


class Pair(NamedTuple):
    values: Tensor
    count: int


# hint -> its word
HINTS = [
    (Tensor, "Tensor"),
    ("Tensor", "Tensor"),
    ("Optional[Tensor]", "Tensor?"),
    (tg.nn.Parameter, "Tensor"),
    (Optional[Tensor], "Tensor?"),
    (Tensor | None, "Tensor?"),
    (list[Tensor], "Tensor[]"),
    (list[Tensor], "Tensor[]"),
    (List[Tensor], "Tensor[]"),
    (Sequence[Tensor], "Tensor[]"),
    (tuple[Tensor, ...], "Tensor[]"),
    (list[Tensor | None], "Tensor?[]"),
    (Sequence[Tensor | None], "Tensor?[]"),
    (list[Tensor] | None, "Tensor[]?"),
    (int, "SymInt"),
    (int | None, "SymInt?"),
    (list[int], "SymInt[]"),
    (Sequence[int], "SymInt[]"),
    (Optional[List[int]], "SymInt[]?"),
    (tuple[int, int], "SymInt[2]"),
    (Tuple[float, float, float], "float[3]"),
    (float, "float"),
    (list[float], "float[]"),
    (bool, "bool"),
    (list[bool], "bool[]"),
    (str, "str"),
    (list[str], "str[]"),
    (str | None, "str?"),
    (complex, "complex"),
    (list[complex], "complex[]"),
    (Number, "Scalar"),
    (Union[int, float, bool], "Scalar"),
    (int | float, "Scalar"),
    (int | float | None, "Scalar?"),
    (tg.dtype, "ScalarType"),
    (tg.dtype | None, "ScalarType?"),
    (tg.device, "Device"),
    (tg.layout, "Layout"),
    (tg.memory_format, "MemoryFormat"),
    (tg.Generator, "Generator"),
    (Literal["none", "mean"], "str"),
    (Literal[1, 2], "SymInt"),
    (Mode, "str"),
    (Level, "SymInt"),
    (dict[str, Tensor], "Dict(str, Tensor)"),
    (Dict[str, int], "Dict(str, SymInt)"),
    (Any, "Any"),
    (typing.Annotated[int, "rows"], "SymInt"),
]


def function(returns=Tensor, **hints):
    """A function with the given hints; a value (hint, default) gives a default."""
    given = {k: v for k, v in hints.items() if isinstance(v, tuple)}
    text = ", ".join(f"{k}=_{k}" if k in given else k for k in hints)
    names = {f"_{k}": v[1] for k, v in given.items()}
    exec(f"def f({text}): ...", names)
    f = names["f"]
    f.__annotations__ = {k: v[0] if k in given else v for k, v in hints.items()} | {"return": returns}
    return f


@pytest.mark.parametrize("hint, word", HINTS, ids=[str(h) for h, _ in HINTS])
def test_a_hint_has_a_word(hint, word):
    text = library.infer_schema(function(x=hint), mutates_args=(), op_name="t::f")
    assert text == f"t::f({word} x) -> Tensor"
    assert str(Schema.parse(text)) == text


RETURNS = [
    (None, "()"),
    (Tensor, "Tensor"),
    (list[Tensor], "Tensor[]"),
    (tuple[Tensor, Tensor], "(Tensor, Tensor)"),
    (tuple[Tensor, int, float], "(Tensor, SymInt, float)"),
    (int, "SymInt"),
    (str, "str"),
    (Tensor | None, "Tensor?"),
    (Pair, "(Tensor values, SymInt count)"),
]


@pytest.mark.parametrize("hint, word", RETURNS, ids=[str(h) for h, _ in RETURNS])
def test_a_return_has_a_word(hint, word):
    assert library.infer_schema(function(hint, x=Tensor), mutates_args=()) == f"(Tensor x) -> {word}"


def test_keyword_only_and_defaults():
    def f(
        x: Tensor,
        n: int = 3,
        s: str = 'it\'s "x"\n',
        *,
        k: float = 0.5,
        flag: bool = False,
        sizes: Sequence[int] = (1, 2),
        kind: tg.dtype = tg.float64,
        where: tg.device = tg.device("cpu"),  # noqa: B008
        mode: Mode = Mode.A,
        y: Tensor | None = None,
    ) -> Tensor: ...

    text = library.infer_schema(f, mutates_args=())
    assert text == (
        '(Tensor x, SymInt n=3, str s="it\'s \\"x\\"\\n", *, float k=0.5, bool flag=False, SymInt[] sizes=[1, 2], '
        'ScalarType kind=float64, Device where="cpu", str mode="a", Tensor? y=None) -> Tensor'
    )
    assert Schema.parse("f" + text).args[2].default == 'it\'s "x"\n'


VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
    st.text(),
)


@given(VALUES, st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_defaults_come_back(value, numbers):
    text = library.infer_schema(function(x=(type(value), value), ns=(list[int], numbers)), mutates_args=())
    x, ns = Schema.parse("f" + text).args
    assert x.default == value and type(x.default) is type(value) and ns.default == tuple(numbers)
    assert str(Schema.parse("f" + text)) == "f" + text


def test_mutated_arguments_are_marked():
    f = function(None, x=Tensor, n=int, ys=list[Tensor])
    assert library.infer_schema(f, mutates_args=("ys",)) == "(Tensor x, SymInt n, Tensor(a2!)[] ys) -> ()"
    assert library.infer_schema(f, mutates_args="unknown") == "(Tensor(a0!) x, SymInt n, Tensor(a2!)[] ys) -> ()"


def test_tags_shape_the_return():
    def out(x: Tensor, *, out: Tensor) -> Tensor: ...

    assert library.infer_schema(function(x=Tensor), mutates_args=("x",), tags=library.Tag.inplace) == (
        "(Tensor(a0!) x) -> Tensor(a0!)"
    )
    assert library.infer_schema(out, mutates_args=("out",), tags=[library.Tag.out]) == (
        "(Tensor x, *, Tensor(a1!) out) -> Tensor(a1!)"
    )
    with pytest.raises(ValueError, match="Tag.inplace is for an op that writes to its first argument"):
        library.infer_schema(function(x=Tensor), mutates_args=(), tags=library.Tag.inplace)
    with pytest.raises(ValueError, match="Tag.out is for an op that writes to keyword-only tensors"):
        library.infer_schema(function(x=Tensor), mutates_args=("x",), tags=library.Tag.out)


def _unhinted(x): ...


def _no_return(x: Tensor): ...


def _many(*xs: Tensor) -> Tensor: ...


def _words(x: Tensor, **more: int) -> Tensor: ...


def _first(x: Tensor, /) -> Tensor: ...


REFUSED = [
    (_unhinted, (), "parameter 'x' has no type hint. Write 'x: Tensor'"),
    (_no_return, (), "the return has no type hint. Write '-> Tensor'"),
    (_many, (), "is variadic positional, which a schema has no word for"),
    (_words, (), "is variadic keyword"),
    (_first, (), "is positional-only"),
    (function(x=list), (), r"the type hint list, which has no word in a schema. Say what is in it: list\[int\]"),
    (function(x=list[list[int]]), (), "Lists do not nest"),
    (function(x=tuple[int, str]), (), "Write a list of one type"),
    (function(x=object), (), "parameter 'x' has the type hint object"),
    (function(x=int | str), (), r"parameter 'x' has the type hint int \| str"),
    (function("Tensor", x="Nowhere"), (), "a type hint is a string that cannot be read here"),
    (function(x=(int, None)), (), r"'x' has the default None, but its type is SymInt. Write 'x: ... \| None'"),
    (function(x=(float, float("inf"))), (), "the default inf of parameter 'x'"),
    (function(x=(int, 2.5)), (), "the default 2.5 of parameter 'x'"),
    (function(x=Tensor), ("y",), "mutates_args names 'y', but the parameters are x"),
    (function(x=int), ("x",), "only tensors and lists of them are mutated"),
    (function(x=Tensor), "x", r"must be a sequence of names, such as \('x',\)"),
    (function(dict, x=Tensor), (), "the return has the type hint dict"),
]


@pytest.mark.parametrize("f, mutates, message", REFUSED, ids=range(len(REFUSED)))
def test_what_has_no_word_is_refused(f, mutates, message):
    with pytest.raises(ValueError, match=message):
        library.infer_schema(f, mutates_args=mutates)


def _of_torch(hint):
    """The same hint over PyTorch's types."""
    plain = {Tensor: "Tensor", tg.dtype: "dtype", tg.device: "device", tg.nn.Parameter: "Tensor"}
    if isinstance(hint, type) and hint in plain:
        return getattr(torch, plain[hint])
    args, origin = typing.get_args(hint), typing.get_origin(hint)
    if not args or origin in (Literal, typing.Annotated):
        return hint
    args = tuple(map(_of_torch, args))
    if hasattr(hint, "copy_with"):
        return hint.copy_with(args)
    return Union[args] if origin is types.UnionType else origin[args]


def _text_of_torch(hint, returned):
    """PyTorch's schema, or None where it has no word for the hint. (An Enum is an opaque object there.)"""
    hint = _of_torch(hint)
    try:
        f = function(hint, x=torch.Tensor) if returned else function(torch.Tensor, x=hint)
        return torch.library.infer_schema(f, mutates_args=())
    except (ValueError, TypeError):
        return None


@pytest.mark.skipif(torch is None, reason="needs PyTorch")
def test_pytorch_says_the_same_where_it_has_a_word():
    both = 0
    for hint, _ in HINTS:
        theirs = None if hint in (Mode, Level) else _text_of_torch(hint, False)
        both += theirs is not None
        assert theirs in (None, library.infer_schema(function(x=hint), mutates_args=()))
    for hint, _ in RETURNS:
        theirs = _text_of_torch(hint, True)
        both += theirs is not None
        assert theirs in (None, library.infer_schema(function(hint, x=Tensor), mutates_args=()))
    assert both > 25
