"""What script does not take is refused with the line, a caret and what is wrong."""

import linecache
from typing import Any, Optional, Union

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.jit.frontend import NotSupportedError

# (name, source of a function f, a part of the message, the line that is marked)
REFUSED = [
    ("try", "def f(x):\n    try:\n        return x\n    except ValueError:\n        return x", "try statements", 2),
    ("yield", "def f(x):\n    yield x", "Generators", 2),
    ("lambda", "def f(x):\n    g = lambda y: y\n    return g(x)", "Lambdas", 2),
    ("def", "def f(x):\n    def g(y):\n        return y\n    return g(x)", "Functions inside functions", 2),
    ("class", "def f(x):\n    class C:\n        pass\n    return x", "Classes inside functions", 2),
    ("import", "def f(x):\n    import math\n    return x", "Imports inside functions", 2),
    ("global", "def f(x):\n    global y\n    return x", "globals", 2),
    ("set", "def f(x):\n    return {1, 2}", "Sets", 2),
    ("walrus", "def f(n: int):\n    if (m := n) > 2:\n        return m\n    return n", ":=", 2),
    ("star", "def f(*xs):\n    return xs", "variable number of arguments", 1),
    ("double star", "def f(**xs):\n    return 1", "variable number of arguments", 1),
    (
        "for else",
        "def f(n: int):\n    for i in range(n):\n        pass\n    else:\n        n = 1\n    return n",
        "else",
        5,
    ),
    ("bytes", "def f(x):\n    return b'a'", "bytes", 2),
    ("unknown name", "def f(x):\n    return x + y", "undefined value y", 2),
    (
        "one branch",
        "def f(n: int):\n    if n > 1:\n        y = 1\n    return y",
        "y is not defined in the false branch",
        4,
    ),
    (
        "loop only",
        "def f(n: int):\n    for i in range(n):\n        y = i\n    return y",
        "y is not defined where the loop",
        4,
    ),
    (
        "two types",
        "def f(n: int):\n    if n > 1:\n        y = 1\n    else:\n        y = 'a'\n    return y",
        "y is set to type int in the true branch and type str in the false branch",
        6,
    ),
    (
        "type changes in a loop",
        "def f(n: int):\n    x = 1\n    for i in range(n):\n        x = 'a'\n    return x",
        "Variable 'x' previously had type int but is now being assigned to a value of type str",
        4,
    ),
    ("annotated", "def f(n: int):\n    x: int = 'a'\n    return x", "annotated with type int", 2),
    (
        "returns",
        "def f(n: int) -> str:\n    return n",
        "Return value was annotated as having type str but is actually of type int",
        2,
    ),
    ("return types", "def f(n: int):\n    if n > 1:\n        return 1\n    return 'a'", "Previous return statement", 4),
    ("not on all paths", "def f(n: int) -> int:\n    if n > 1:\n        return 1\n", "return along all paths", 1),
    ("optional", "def f(n: Optional[int]):\n    return n + 1", "operator + takes no Optional[int] and int", 2),
    ("optional method", "def f(x: Optional[Tensor]):\n    return x.sum()", "Check `is not None`", 2),
    ("no overload", "def f(x):\n    return x.reshape('a')", "reshape: Arguments for call are not valid", 2),
    ("no method", "def f(x):\n    return x.rehsape(2)", "no attribute or method 'rehsape'", 2),
    ("item", "def f(x, n):\n    return x.sum(n)", "Write x.item()", 2),
    ("unknown keyword", "def f(x):\n    return x.sum(dimension=1)", "takes no argument 'dimension'", 2),
    ("out", "def f(x):\n    return torch.randn_like(x, out=x)", "takes no out=", 2),
    ("mixed list", "def f(n: int):\n    return [n, 'a'][0] + 1", "operator + takes no Union[int, str]", 2),
    (
        "append",
        "def f(n: int):\n    a = [n]\n    a.append('x')",
        "Expected a value of type 'int' for an item but instead found type 'str'",
        3,
    ),
    ("list method", "def f(n: int):\n    return [n].size()", "no attribute or method 'size'", 2),
    ("text method", "def f(s: str):\n    return s.encode()", "no attribute or method 'encode'", 2),
    ("key", "def f(d: Dict[str, int]):\n    return d[1]", "Expected a value of type 'str' for a key", 2),
    ("tuple index", "def f(n: int):\n    return (1, 'a')[n]", "known while compiling", 2),
    ("tuple range", "def f(n: int):\n    return (1, 2)[5]", "index 5 is out of range", 2),
    ("unpack", "def f(n: int):\n    a, b = 1, 2, 3", "too many values to unpack: need 2 but found 3", 2),
    (
        "bare list",
        "def f(x: list):\n    return x",
        "without a contained type. Please add a contained type",
        1,
    ),
    ("long tuple", "def f(x: Tuple[int, ...]):\n    return x", "a tuple has a fixed number of items", 1),
    ("annotation", "def f(x: 'Unknown'):\n    return x", "the annotation Unknown cannot be read", 1),
    ("default", "def f(x, n=2):\n    return x", "Expected a default value of type Tensor for parameter 'n'", 1),
    (
        "argument type",
        "def g(n: int):\n    return n\ndef f(x: str):\n    return g(x)",
        "Expected a value of type 'int'",
        4,
    ),
    (
        "missing argument",
        "def g(n: int):\n    return n\ndef f(x):\n    return g()",
        "missing value for argument 'n'",
        4,
    ),
    ("unexpected keyword", "def g(n: int):\n    return n\ndef f(x):\n    return g(m=1)", "unexpected keyword", 4),
    ("recursion", "def f(n: int) -> int:\n    return f(n - 1)", "is called recursively", 2),
    (
        "in a callee",
        "def g(n: int):\n    return n.foo\ndef f(n: int):\n    return g(n)",
        "no attribute or method 'foo'",
        2,
    ),
    ("reraise", "def f(n: int):\n    raise", "raise needs an exception", 2),
    ("raise text", "def f(n: int):\n    raise 'a'", "exceptions are raised by class", 2),
    ("numbers", "def f(n: int, s: str):\n    return n + s", "operator + takes no int and str", 2),
    ("order", "def f(n: int, s: str):\n    return n < s", "have no order", 2),
    ("iterate", "def f(n: int):\n    for i in n:\n        pass", "cannot be looped over", 2),
    ("call", "def f(n: int):\n    return n(1)", "cannot call a value of type int", 2),
    ("outside tensor", "W = torch.ones(1)\ndef f(x):\n    return x + W", "stands outside of the function", 3),
    ("outside list", "W = [1]\ndef f(x):\n    return x + W[0]", "stands outside of the function", 3),
    ("no type", "def f(x):\n    return len(torch)", "the module torch cannot be used as a value", 2),
    ("sort key", "def f(a: List[int]):\n    return sorted(a, key=len)", "key=...", 2),
    ("type()", "def f(n: int):\n    return type(n)", "isinstance", 2),
    ("index", "def f(x):\n    return x['a']", "a tensor is indexed by", 2),
    ("slice of dict", "def f(d: Dict[str, int]):\n    return d.foo", "no attribute or method 'foo'", 2),
    (
        "missing attribute",
        "class C:\n    def __init__(self):\n        self.a = 1\ndef f(n: int):\n    return C().b",
        "'b'",
        5,
    ),
    (
        "set in a method",
        "class C:\n    def m(self):\n        self.a = 1\ndef f(n: int):\n    C().m()",
        "in __init__ first",
        3,
    ),
    ("async for", "def f(x):\n    return [a async for a in x]", "", 2),
]


def compiled(name, source):
    filename = f"<refused {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names = {"Any": Any, "Dict": dict, "List": list, "Optional": Optional, "Tuple": tuple, "Union": Union}
    space = {"torch": tg, "Tensor": tg.Tensor, "__name__": "refused", **names}
    exec(compile(source, filename, "exec"), space)
    return space["f"]


@pytest.mark.parametrize("name, source, told, line", REFUSED[:-1], ids=[row[0] for row in REFUSED[:-1]])
def test_what_is_refused_says_where_and_why(name, source, told, line):
    with pytest.raises(jit.Error) as error:
        jit.script(compiled(name, source))
    text = str(error.value)
    assert told in text
    assert f'File "<refused {name}>", line {line}, in ' in text
    marked = text.split(f"line {line}, in ", 1)[1].split("\n")
    wanted, first = source.split("\n")[line - 1].strip(), source.split("\n")[0].strip()
    *head, shown, carets = marked[1:3] if wanted.startswith("def f") else marked[1:4]
    assert shown.strip() == wanted and "^" in carets and all(row.strip().startswith(("def ", first)) for row in head)


def test_the_caret_stands_under_the_place():
    with pytest.raises(jit.Error) as error:
        jit.script(compiled("caret", "def f(x):\n    return x + x.nope"))
    *_, line, carets = str(error.value).split("\n")
    assert line.index("x.nope") == carets.index("^") and carets.count("^") == len("x.nope")


def test_calls_on_the_way_are_told():
    source = "def h(n: int):\n    return n.foo\ndef g(n: int):\n    return h(n)\ndef f(n: int):\n    return g(n)"
    with pytest.raises(jit.Error) as error:
        jit.script(compiled("callers", source))
    assert [part.split("\n")[0][-1] for part in str(error.value).split(", in ")[1:]] == ["h", "g", "f"]


def test_types_of_errors():
    with pytest.raises(NotSupportedError):
        jit.script(compiled("kind", "def f(x):\n    yield x"))
    with pytest.raises(RuntimeError):
        jit.script(compiled("kind", "def f(x):\n    return y"))


@pytest.mark.parametrize(
    "args, kwargs, told",
    [
        ((), {}, "f() is missing value for argument 'x'. Declaration: f(Tensor x, int n=2) -> Tensor"),
        ((1,), {}, "f() Expected a value of type 'Tensor (inferred)' for argument 'x' but instead found type 'int'"),
        ((tg.ones(1), 1.5), {}, "Expected a value of type 'int' for argument 'n' but instead found type 'float'"),
        ((tg.ones(1), 1, 2), {}, "expected at most 2 argument(s) but received 3"),
        ((tg.ones(1),), {"m": 2}, "Unknown keyword argument 'm'"),
        ((tg.ones(1),), {"x": tg.ones(1)}, "argument 'x' is given twice"),
        ((tg.ones(1), object()), {}, "instead found type 'object'"),
    ],
)
def test_arguments_of_a_call_are_checked(args, kwargs, told):
    scripted = jit.script(compiled("arguments", "def f(x, n: int = 2):\n    return x * n"))
    with pytest.raises(RuntimeError) as error:
        scripted(*args, **kwargs)
    assert told in str(error.value)
