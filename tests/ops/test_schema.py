"""Operator schemas: what is read, what is written back, and what a wrong line is told."""

import ast
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_ext import registry
from tinygrad_ext.ops import schema, schema_default, schema_grammar
from tinygrad_ext.ops.schema import TYPES, Alias, Arg, Schema

try:
    import torch
except ImportError:
    torch = None

CANONICAL = [
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "aten::relu_(Tensor(a!) self) -> Tensor(a!)",
    "aten::exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, SymInt dim=0) -> Tensor(a)[]",
    "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0) -> Tensor",
    "aten::to(Tensor(a) self, *, ScalarType? dtype=None, Device? device=None, bool copy=False) -> Tensor(a)",
    'demo::text(str mode="linear", Device device="cpu") -> str',
    "demo::numbers(float a=0.5, float b=-1e-05, complex c=1+2j, Scalar d=True, int[] e=[1, -2]) -> float[]",
    "demo::table(Dict(str, Tensor) parts, Any extra=None) -> Dict(str, Tensor)",
    "demo::sets(Tensor(a|b) x, Tensor(*) y) -> ()",
    "demo::print(str format, ...) -> ()",
    "plain() -> Tensor?",
    "demo::__and__(int[]? from, Generator(a!)? generator=None) -> Tensor(a!)[]?",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text_comes_back(text):
    assert str(Schema.parse(text)) == text


@pytest.mark.parametrize(
    "text, number",
    [("ScalarType x=float32", 6), ("ScalarType x=half", 5), ("ScalarType? x=bool", 11), ("Layout x=strided", 0)]
    + [("MemoryFormat x=contiguous_format", 0)],
)
def test_an_enumeration_may_be_spelled_by_name(text, number):
    schema = Schema.parse(f"f({text}) -> ()")
    assert schema.args[0].default == number and str(schema).endswith(f"x={number}) -> ()")
    if torch is not None:
        assert str(torch._C.parse_schema(f"f({text}) -> ()")) == str(schema)


def test_parts_of_a_schema():
    add = Schema.parse(CANONICAL[0])
    assert (add.namespace, add.name, add.overload) == ("aten", "add", "Tensor")
    assert add.qualname == "aten::add.Tensor"
    assert [arg.name for arg in add.args] == ["self", "other", "alpha"]
    assert [arg.kwarg_only for arg in add.args] == [False, False, True]
    assert [arg.has_default for arg in add.args] == [False, False, True]
    assert add.args[2].default == 1
    assert [(arg.name, arg.type) for arg in add.returns] == [("", "Tensor")]
    assert not add.varargs


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("int", ("int", False, False, None, False)),
        ("int?", ("int", True, False, None, False)),
        ("int[]", ("int", False, True, None, False)),
        ("int[2]?", ("int", True, True, 2, False)),
        ("Tensor?[]", ("Tensor", False, True, None, True)),
        ("Dict(str,  Tensor[])?", ("Dict(str, Tensor[])", True, False, None, False)),
    ],
)
def test_flags_of_a_type(declared, expected):
    arg = Schema.parse(f"demo::f({declared} x) -> ()").args[0]
    assert (arg.type, arg.optional, arg.is_list, arg.size, arg.elem_optional) == expected


@pytest.mark.parametrize(
    ("text", "before", "write", "after"),
    [
        ("(a)", ("a",), False, ()),
        ("(a!)", ("a",), True, ()),
        ("(a -> *)", ("a",), False, ("*",)),
        ("(a|b! -> c|d)", ("a", "b"), True, ("c", "d")),
    ],
)
def test_alias_set_and_write_mark(text, before, write, after):
    arg = Schema.parse(f"demo::f(Tensor{text} x) -> ()").args[0]
    assert (arg.alias.before, arg.alias.write, arg.alias.after) == (before, write, after)
    assert str(arg.alias) == text
    assert arg.is_write is write


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("int x=-3", -3),
        ("int x=- 3", -3),
        ("float x=3", 3.0),
        ("float x=.5", 0.5),
        ("float? x=None", None),
        ("complex x=1", 1 + 0j),
        ("complex x=2j", 2j),
        ("Scalar x=1.", 1.0),
        ("bool x=True", True),
        ("int[2] x=0", (0, 0)),
        ("int[] x=[ 1,2 ]", (1, 2)),
        ("float[] x=[1, 2.5]", (1.0, 2.5)),
        ("bool[2] x=[True, False]", (True, False)),
        ("int[] x=[]", ()),
        ("str x='it\\'s \"a\" \\n\\\\'", 'it\'s "a" \n\\'),
        ('str x="a, b) -> c"', "a, b) -> c"),
    ],
)
def test_default_is_a_python_value(declared, value):
    arg = Schema.parse(f"demo::f({declared}) -> ()").args[0]
    assert arg.has_default
    assert repr(arg.default) == repr(value)


def test_space_and_line_breaks_do_not_count():
    loose = "\n demo::f(  Tensor self,\n   int[]? dim = None )\n->  ( Tensor  a,Tensor b )  \n"
    assert str(Schema.parse(loose)) == "demo::f(Tensor self, int[]? dim=None) -> (Tensor a, Tensor b)"


def test_equal_schemas_are_equal_and_hash_alike():
    one, two = Schema.parse("f(int[2] x=[0,0])->()"), Schema.parse("f(int[2] x=0) -> ()")
    assert one == two and hash(one) == hash(two)
    assert one != Schema.parse("f(int[2] x=1) -> ()") and one != "f(int[2] x=0) -> ()"


REFUSED = {
    "": "expected the name of the op",
    "2f() -> ()": "expected the name of the op",
    "f": r"expected '\(' and the arguments of 'f', found the end",
    "a::b::f() -> ()": r"expected '\('",
    "f.a.b() -> ()": r"expected '\('",
    "f.default() -> ()": "Leave it out",
    "f(Tensor x)": "expected '->'",
    "f(Tensor x) ->": "expected the type of a return, found the end",
    "f(Tensor x) -> Tensor y z": "expected the end of the schema, or several returns in",
    "f(Tensor x) -> (Tensor,)": r"expected the type of a return, found '\)'",
    "f(Tensor x) -> (Tensor": "expected ',' or '\\)'",
    "f() -> (Tensor a, Tensor a)": "duplicate return name 'a'",
    "f() -> Foo": "unknown type 'Foo'",
    "f() -> Tensor -": "found '-'",
    "f() -> () x": "expected the end of the schema, found 'x'",
    "f(Tensr x) -> ()": "unknown type 'Tensr'. Did you mean 'Tensor'",
    "f(tensor x) -> ()": "Did you mean 'Tensor'",
    "f(string x) -> ()": "Did you mean 'str'",
    "f(Qqqq x) -> ()": "unknown type 'Qqqq'. Known are Tensor",
    "f(Tensor 2x) -> ()": "expected the name of the argument after its type 'Tensor', found '2x'",
    "f(Tensor) -> ()": "expected the name of the argument",
    "f(Tensor x,) -> ()": "expected an argument such as",
    "f(Tensor x": r"expected ',' or '\)' or a default after argument 'x', found the end",
    "f(Tensor x y) -> ()": "found 'y'",
    "f(int x, float x) -> ()": "duplicate argument name 'x'",
    "f(int x=1, int y) -> ()": "'y' without a default follows 'x'",
    "f(int x, *) -> ()": r"'\*' stands once",
    "f(*, *, int x) -> ()": r"'\*' stands once",
    "f(..., int x) -> ()": r"'\.\.\.' must be the last",
    "f(int[][] x) -> ()": "lists do not nest",
    "f(int?? x) -> ()": "must end as in",
    "f(Dict(str) x) -> ()": r"Write Dict\(str, Tensor\)",
    "f(Dict x) -> ()": r"Write Dict\(str, Tensor\)",
    "f(Dict(str, Foo) x) -> ()": "unknown type 'Foo'",
    "f(int(a) x) -> ()": r"shares no memory. Leave \(a\) out",
    "f(Tensor() x) -> ()": "names no alias set",
    "f(Tensor(a!|b) x) -> ()": "names no alias set",
    "f(Tensor(a -> ) x) -> ()": "names no alias set",
    "f(int x=None) -> ()": r"int is not optional. Write 'int\? x=None'",
    "f(int[] x=None) -> ()": r"Write 'int\[\]\? x=None'",
    "f(int x=2.5) -> ()": "cannot have the default 2.5. Write a value of type int or bool",
    "f(float x=True) -> ()": "cannot have the default True",
    "f(bool x=1) -> ()": "Write a value of type bool",
    "f(str x=1) -> ()": "Write a value of type str",
    "f(Tensor x=1) -> ()": r"Leave it out, or write 'Tensor\? x=None'",
    "f(int x=Mean) -> ()": "default 'Mean' is no value",
    "f(MemoryFormat x=nhwc) -> ()": "default 'nhwc' is no value",
    "f(float x=inf) -> ()": "default 'inf' is no value",
    "f(float x=1e400) -> ()": "a number of 64 bits",
    "f(int x=9223372036854775808) -> ()": "a number of 64 bits",
    "f(int x=1_000) -> ()": "default '1_000' is no value",
    "f(int x=0x10) -> ()": "default '0x10' is no value",
    "f(int x=) -> ()": r"expected the default of argument 'x', found '\)'",
    "f(int x=None?) -> ()": "default 'None\\?' is no value",
    "f(int x=1 2) -> ()": r"expected ',' or '\)' after argument 'x', found '2'",
    "f(int[] x=1) -> ()": r"must be a list. Write \[1\]",
    "f(int[] x=[1, 2.5]) -> ()": "cannot have the default",
    "f(str[] x=['a']) -> ()": "cannot hold strings",
    "f(str[2] x='a') -> ()": "cannot hold strings",
    r"f(str x='\q') -> ()": r"unknown escape \\q",
    "f(str x='open) -> ()": "expected the default of argument 'x'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_wrong_schema_is_refused(text):
    with pytest.raises(RuntimeError, match=REFUSED[text]):
        Schema.parse(text)


def test_error_names_the_op_and_marks_the_place():
    with pytest.raises(RuntimeError) as caught:
        Schema.parse("aten::foo.out(Tensor self,\n  Tensr other) -> Tensor")
    first, line, mark = str(caught.value).split("\n")
    assert first.startswith("aten::foo.out: unknown type 'Tensr'. Did you mean 'Tensor'?")
    assert line == "      Tensr other) -> Tensor"
    assert mark == "      ^~~~~"


def test_only_text_is_parsed():
    with pytest.raises(TypeError, match="'text' must be a str, not bytes"):
        Schema.parse(b"f() -> ()")


# Round trip of anything the grammar allows

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
COMPLEX = st.complex_numbers(allow_nan=False, allow_infinity=False)
VALUES = {
    "int": INTS | st.booleans(),
    "SymInt": INTS,
    "float": FLOATS,
    "bool": st.booleans(),
    "complex": COMPLEX,
    "Scalar": INTS | FLOATS | COMPLEX | st.booleans(),
    "str": st.text(),
    "Device": st.text(),
    "ScalarType": st.integers(0, 40),
}


@st.composite
def types(draw):
    """Draw (spelling, base, optional, is_list, size)."""
    base = draw(st.sampled_from([name for name in TYPES if name != "Dict"]))
    sets = st.lists(NAMES, min_size=1, max_size=2).map("|".join) | st.just("*")
    alias = ""
    if base == "Tensor" and draw(st.booleans()):
        arrow = draw(st.just("") | sets.map(" -> {}".format))
        alias = f"({draw(sets)}{draw(st.sampled_from(['', '!']))}{arrow})"
    is_list, optional = draw(st.booleans()), draw(st.booleans())
    size = draw(st.none() | st.integers(1, 4)) if is_list else None
    brackets = f"{draw(st.sampled_from(['', '?']))}[{'' if size is None else size}]" if is_list else ""
    return f"{base}{alias}{brackets}{'?' if optional else ''}", base, optional, is_list, size


def spell(value):
    """Write a default the plain way."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(spell, value))}]"
    if isinstance(value, str):
        for char, letter in (("\\", "\\"), ('"', '"'), ("\n", "n")):
            value = value.replace(char, f"\\{letter}")
        return f'"{value}"'
    return repr(value).strip("()")


@st.composite
def schemas(draw):
    """Draw (text, [(spelling, name, has_default, default, kwarg_only)])."""
    names = draw(st.lists(NAMES, unique=True, max_size=6))
    marker = draw(st.integers(0, len(names)))
    expected, parts, seen_default = [], [], False
    for i, name in enumerate(names):
        spelling, base, optional, is_list, _ = draw(types())
        kwarg_only = i >= marker
        choices = [st.none()] if optional or base == "Any" else []
        if base in VALUES and not is_list:
            choices.append(VALUES[base])
        elif base in VALUES and base not in ("str", "Device"):
            choices.append(st.lists(VALUES[base], max_size=3).map(tuple))
        has_default = len(choices) > 0 and draw(st.booleans())
        if seen_default and not has_default and not kwarg_only:
            continue
        seen_default |= has_default
        default = draw(st.one_of(choices)) if has_default else None
        if kwarg_only and not any(entry[4] for entry in expected):
            parts.append("*")
        parts.append(f"{spelling} {name}" + (f"={spell(default)}" if has_default else ""))
        expected.append((spelling, name, has_default, default, kwarg_only))
    varargs = draw(st.booleans())
    head = draw(st.sampled_from(["f", "aten::f", "aten::f.out"]))
    returns = [kind[0] for kind in draw(st.lists(types(), max_size=3))]
    text = f"{head}({', '.join(parts + ['...'] * varargs)}) -> "
    return text + (returns[0] if len(returns) == 1 else f"({', '.join(returns)})"), expected, varargs


@given(schemas())
def test_any_schema_reads_right_and_round_trips(drawn):
    text, expected, varargs = drawn
    parsed = Schema.parse(text)
    read = [(arg.spelling, arg.name, arg.has_default, arg.default, arg.kwarg_only) for arg in parsed.args]
    assert repr(read) == repr(expected)
    assert parsed.varargs is varargs
    again = Schema.parse(str(parsed))
    assert str(again) == str(parsed) and again == parsed
    assert repr([arg.default for arg in again.args]) == repr([arg.default for arg in parsed.args])


@given(st.text(alphabet="f(a!)->*Tensor int[2]?=,.'\"\\ N0", max_size=40))
def test_any_text_parses_or_raises_runtime_error(text):
    for candidate in (text, f"f({text}) -> Tensor", f"f() -> {text}"):
        try:
            parsed = Schema.parse(candidate)
        except RuntimeError as error:
            assert "^" in str(error)
        else:
            assert Schema.parse(str(parsed)) == parsed


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed: no registered schemas to read")
def test_schemas_of_torch_read_alike():
    unknown = ("unknown type", "lists do not nest", "found '('", "duplicate argument", "found '...'")
    read = 0
    for theirs in torch._C._jit_get_all_schemas():
        if not theirs.name.startswith("aten::"):
            continue
        try:
            ours = Schema.parse(str(theirs))
        except RuntimeError as error:
            assert any(reason in str(error) for reason in unknown), error
            continue
        read += 1
        for mine, other in zip(ours.args, theirs.arguments, strict=True):
            assert (mine.name, mine.kwarg_only) == (other.name, other.kwarg_only)
            assert mine.has_default == other.has_default_value()
            assert (mine.alias is None) == (other.alias_info is None)
            if mine.alias:
                assert mine.is_write == other.alias_info.is_write
            if mine.has_default:
                default = list(mine.default) if mine.is_list and mine.default is not None else mine.default
                assert default == other.default_value
    assert read > 3000


@pytest.mark.parametrize("module", [schema, schema_default])
def test_module_imports_only_its_parts_and_the_table(module):
    tree = ast.parse(pathlib.Path(module.__file__).read_text(encoding="utf-8"))
    imported = {name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert imported <= {"schema_default", "schema_parts", "tinygrad_ext.core.data.table"}


def test_repr_shows_the_text():
    parsed = Schema.parse("f(Tensor(a!) x) -> ()")
    assert repr(parsed) == "<Schema f(Tensor(a!) x) -> ()>"
    assert repr(parsed.args[0]) == "<Arg Tensor(a!) x>"
    assert repr(Alias(("a",), True)) == "<Alias (a!)>"


# ---- lines in the common form --------------------------------------------------------------------------------------


def _facts(fields):
    *names, args, returns = fields[:5]
    return names, [[getattr(a, f) for f in Arg.__slots__ if f != "alias"] for a in (*args, *returns)]


def test_records_are_read_without_patterns_and_to_the_same():
    for o in registry.ops.values():
        common = schema._read_common(o.record.schema)
        assert common is not None, o.record.schema
        assert _facts(common) == _facts(schema_grammar.read(o.record.schema))


_PIECES = (
    "Tensor|int|str|Dict|a|b|self|other|x|default|*|...|!|(|)|[|]|[]|?|->|,|=|:|::|.| |, |) -> |=[0, 1]|Tensor self|"
    'int[2] x=0|str s="a, b"|Tensor(a!) b|Tensor(a -> *)[] c|Tensor?[] d=None|bool e=True'
)


@given(st.lists(st.sampled_from(_PIECES.split("|")), max_size=14).map("".join), st.booleans())
def test_what_the_common_form_takes_the_grammar_takes_alike(text, whole):
    text = f"aten::f({text}) -> Tensor" if whole else text
    common = schema._read_common(text)
    if common is not None:
        assert _facts(common) == _facts(schema_grammar.read(text))


def test_an_op_may_return_none():
    assert Schema.parse("demo::f(Tensor x) -> None").returns == ()
