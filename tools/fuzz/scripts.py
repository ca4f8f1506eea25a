"""Scripts with one or a few things wrong: the programs of the tests' table, their trees changed at random.

Another name, number, operator or annotation, an argument or statement more or less. Whatever comes of it compiles, or
is refused by one of the errors of `jit.script` that shows the line. Nothing is run.
"""

import ast
import copy
import functools
import itertools
import linecache
import sys
import types
import warnings

import tinygrad_ext as tg
from tests.helpers import script_programs as table
from tinygrad_ext import jit

from .case import Case, Fault

BLOCK = 100
_numbers = itertools.count()
_CONSTANTS = (0, -1, 2**70, 1.5, True, None, "a", "{} {", b"b", ..., 1j)
_TYPES = (
    "int", "str", "float", "Optional[int]", "List[int]", "Dict[str, int]", "Tuple[int, str]", "Unknown", "3", "list",
    "torch.nn.Module", "Union[int, str, None]", "List[Optional[torch.Tensor]]",
)  # fmt: skip
_NAMES = (
    "x", "n", "torch", "len", "print", "range", "int", "nope", "self", "isinstance", "super", "zip", "sorted", "list",
)  # fmt: skip
_EXPRESSIONS = (
    "x[0]", "(1, 'a')", "[]", "{}", "[1, None]", "{1: 2}", "x.nope", "n()", "lambda: 1", "*x", "x if n else None",
    "[i for i in n]", "f'{n:{x}}'", "{**x}", "x := 1", "x.shape", "torch.ones(2)", "n < x < n", "not x", "-n",
    "x @ n", "range(n)", "zip(x, n)", "enumerate(x)", "'%d' % x", "min(x)", "isinstance(x, n)", "torch.add", "int",
    "slice(x)", "x[..., None, 1:n]", "sum(x)", "str(x).nope", "dict(n)", "tuple(x)", "hasattr(x, n)",
    "torch.tensor(x)",
)  # fmt: skip
_STATEMENTS = (
    "break", "continue", "return", "return x, n", "del x", "del n[0]", "x = n", "n: int = x", "x += n", "x[0] = n",
    "x.nope = n", "raise n", "raise ValueError(x)", "assert x, n", "with x as n: pass", "with torch.no_grad(): n = x",
    "x, n = n", "x, *n = x, n", "for x in n: n = x", "while x: x = n", "if n: x = n", "import x", "global x",
    "def f(): pass", "try: pass\nfinally: pass", "yield x", "pass", "x = y = n", "super().nope()", "print(x, n)",
    "x[1:] = n", "n[x] += 1", "for i, x in enumerate(n): break", "class n: pass", "n @= x", "x = [n, x][0]",
)  # fmt: skip


@functools.cache
def _trees():
    return [ast.parse((table.FOLDER / f"{stem}.py").read_text()) for stem in table.FILES]


class Script(Case):
    """A function or class of the table, changed, among the others of its file."""

    def __init__(self, rng):
        tree = rng.choice(_trees())
        at = rng.choice([i for i, node in enumerate(tree.body) if isinstance(node, (ast.FunctionDef, ast.ClassDef))])
        body = list(tree.body)
        body[at] = copy.deepcopy(body[at])
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            _change(body[at], rng)
        self.name = body[at].name
        try:
            self.source = ast.unparse(ast.Module(body, []))
        except (ValueError, TypeError, AttributeError):
            self.source = "pass"

    def text(self):
        return self.source + "\n"

    def run(self):
        filename = f"<script {next(_numbers)}>"
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(True), filename)
        module = sys.modules[filename] = types.ModuleType(filename)
        vars(module).update(torch=tg, case=lambda *rows, **more: lambda function: function)
        try:
            return self._compile(filename, vars(module))
        finally:
            del linecache.cache[filename], sys.modules[filename]

    def _compile(self, filename, space):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(self.source, filename, "exec", dont_inherit=True), space)
        except Exception:
            return 0  # Python takes it no more
        found = space.get(self.name)
        if not isinstance(found, (types.FunctionType, type)) or found.__module__ != filename:
            return 0  # the change gave the name to something from elsewhere
        try:
            jit.script(found)
        except jit.Error as error:
            if filename not in str(error):
                raise Fault(f"the error says no line: {error}") from error
        return 1


def case(rng):
    return Script(rng)


def _change(tree, rng):
    """Change a tree in one place."""
    lists = [
        getattr(node, field)
        for node in ast.walk(tree)
        for field in ("body", "orelse", "args", "elts", "values", "keywords", "targets", "ops", "comparators")
        if isinstance(getattr(node, field, None), list)
    ]
    if rng.random() < 0.35:
        row = rng.choice([x for x in lists if x] or [[]])
        if row:
            at = rng.randrange(len(row))
            if isinstance(row[at], ast.stmt) and rng.random() < 0.7:
                row.insert(at, ast.parse(rng.choice(_STATEMENTS)).body[0])
            elif rng.random() < 0.5:
                row.insert(at, copy.deepcopy(rng.choice(row)))
            elif len(row) > 1:
                del row[at]
        return
    places = [
        (node, field, value)
        for node in ast.walk(tree)
        for field, value in ast.iter_fields(node)
        if isinstance(value, (ast.expr, ast.operator, ast.cmpop, ast.unaryop))
    ]
    if not places:
        return
    node, field, value = rng.choice(places)
    setattr(node, field, _other(field, value, rng, places))


def _other(field, value, rng, places):
    if isinstance(value, ast.operator):
        return rng.choice((ast.Add, ast.Sub, ast.MatMult, ast.Mod, ast.Pow, ast.LShift, ast.FloorDiv, ast.BitOr))()
    if isinstance(value, ast.cmpop):
        return rng.choice((ast.Lt, ast.Eq, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.GtE))()
    if isinstance(value, ast.unaryop):
        return rng.choice((ast.Not, ast.USub, ast.Invert, ast.UAdd))()
    if field in ("annotation", "returns"):
        return ast.parse(rng.choice(_TYPES), mode="eval").body
    if isinstance(value, ast.Name) and isinstance(value.ctx, ast.Store):
        return ast.Name(rng.choice(_NAMES), ast.Store())
    kind = rng.random()
    if kind < 0.25:
        return ast.Constant(rng.choice(_CONSTANTS))
    if kind < 0.5:
        return ast.Name(rng.choice(_NAMES), ast.Load())
    if kind < 0.75:
        return copy.deepcopy(rng.choice([v for _, _, v in places if isinstance(v, ast.expr)]))
    text = rng.choice(_EXPRESSIONS)
    made = ast.parse(f"f({text})").body[0].value
    return made.args[0]
