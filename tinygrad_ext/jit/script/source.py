"""Finding the source of a function: files, notebooks, the REPL, `exec` with an entry in linecache, lambdas.

The whole text is parsed and the function looked up by its line, so that multi-line decorators and lambdas in the middle
of a call need no guessing where a block ends.
"""

import __future__

import ast
import functools
import inspect
import itertools
import linecache
import math
import textwrap
import types
import typing

import tinygrad_ext

from .errors import FrontendError, NotSupportedError
from .type_comments import type_comments

_numbers = itertools.count()
_PACKAGE = {
    "torch": tinygrad_ext,
    "Tensor": tinygrad_ext.Tensor,
    "device": tinygrad_ext.device,
    "Generator": tinygrad_ext.Generator,
    "NoneType": type(None),
}


class Place(str):
    """The line of a node; a plain text once it is copied or saved. Attributes: rows, the calls and the node itself."""

    def shown(self):
        """What is told of an operation that failed while a program ran."""
        rows = "\n".join(source.mark(node) for source, node in self.rows)
        return f"The following operation failed in the TorchScript interpreter. Traceback, innermost call last:\n{rows}"

    def __reduce__(self):
        return str, (str(self),)

    def __deepcopy__(self, memo):
        return self


class Source:
    """A function's tree. Attributes: tree (ast.FunctionDef or ast.Lambda), filename, name."""

    def __init__(self, tree, filename, name, lines):
        self.tree, self.filename, self.name, self._lines = tree, filename, name, lines

    def line(self, node, calls=()):
        """ "file.py:12 in forward", which can show the place and the calls that led there, rows of (source, node)."""
        place = Place(f"{self.filename}:{getattr(node, 'lineno', self.tree.lineno)} in {self.name}")
        place.rows = (*calls, (self, node))
        return place

    def mark(self, node):
        """The line of a node with a caret under its place, below the one that begins the function."""
        number = getattr(node, "lineno", self.tree.lineno)
        text = self._lines[number - 1].rstrip("\n") if 0 < number <= len(self._lines) else ""
        start = getattr(node, "col_offset", 0)
        start = len(text.encode()[:start].decode(errors="replace"))
        end = node.end_col_offset if getattr(node, "end_lineno", None) == number else len(text)
        indent = len(text) - len(text.lstrip())
        marked = " " * max(start - indent, 0) + "^" * max(end - start, 1)
        head = self._head(number)
        return (
            f'  File "{self.filename}", line {number}, in {self.name}\n{head}    {text.strip()}\n    {marked} <--- HERE'
        )

    def _head(self, number):
        """The line that begins the function, for what stands on another: it tells names and types of the arguments."""
        first = self.tree.lineno
        known = isinstance(self.tree, ast.FunctionDef) and 0 < first <= len(self._lines) and number != first
        return f"    {self._lines[first - 1].strip()}\n" if known else ""

    def type_comments(self):
        """See `type_comments.type_comments`."""
        return type_comments(self.tree, self._lines)

    @property
    def body(self):
        """The statements; of a lambda, the return of its expression."""
        if isinstance(self.tree, ast.Lambda):
            return [ast.copy_location(ast.Return(self.tree.body), self.tree.body)]
        return self.tree.body


def source_of(function):
    """The Source of a Python function.

    Raises:
        FrontendError: there is none, as for a built-in function or text that was passed to `exec`.
    """
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None:
        raise FrontendError(
            f"{function!r} has no Python source, so it cannot be compiled. "
            "Compile Python functions, or register it as an op: docs/custom_ops.md."
        )
    lines = linecache.getlines(code.co_filename, getattr(function, "__globals__", None))
    found = _find(code, tuple(lines))
    if found is None:
        raise FrontendError(
            f"the source of {code.co_name} ({code.co_filename}:{code.co_firstlineno}) cannot be read. Put it into a "
            "file; or, where it is text for `exec`, into `linecache.cache` under its file name."
        )
    return Source(found, code.co_filename, code.co_name, lines)


def of_text(text, filename):
    """The tree of a text, whose lines are found under the filename from now on."""
    lines = text.splitlines(True)
    linecache.cache[filename] = (len(text), None, lines, filename)
    try:
        tree = ast.parse(text, filename)
    except SyntaxError as error:
        raise FrontendError(f"{_unread(filename, error)}\n    {error.text}") from None
    return tree


# what Python says of a text that it cannot read: the rule behind it, in the words that programs look for
_RULES = (
    ("multiple starred expressions", "Only one starred expression is allowed on the lhs"),
    ("starred assignment target", "A Starred expression may only appear on the lhs beside other names"),
    ("for augmented assignment", "augmented assignment can only have one LHS expression"),
    ("cannot assign to literal", "Cannot pack a tuple into a non-variable"),
    ("cannot assign to", "unexpected expression on the lhs, where names, attributes and items may stand"),
    ("unterminated", "expected a valid token: a text ends on the line where it begins"),
    ("forgot a comma", "expected ] or a comma"),
)


def _unread(filename, error):
    rule = next((f"{rule}: " for words, rule in _RULES if words in error.msg), "")
    return f"{filename}, line {error.lineno}: SyntaxError: {rule}{error.msg}"


def functions_of(text, around):
    """{name: function} of the functions of a text; they see each other, the names of typing, and those around."""
    filename = f"<CompilationUnit {next(_numbers)}>"
    tree = of_text(textwrap.dedent(text), filename)
    space = {**vars(typing), "math": math, **_PACKAGE, **around, "__name__": filename}
    try:
        code = compile(tree, filename, "exec", flags=__future__.annotations.compiler_flag)
    except SyntaxError as error:
        raise FrontendError(_unread(filename, error)) from None
    exec(code, space)
    return {
        name: found
        for name, found in space.items()
        if isinstance(found, types.FunctionType) and found.__code__.co_filename == filename
    }


@functools.lru_cache(64)
def _functions(lines):
    """The functions and lambdas of a text by the line at which Python says that they begin."""
    tree = ast.parse("".join(lines))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            found.setdefault(first, []).append(node)
    return found


def _find(code, lines):
    if not lines:
        return None
    try:
        near = _functions(lines).get(code.co_firstlineno, [])
    except SyntaxError:
        return None
    near = [n for n in near if getattr(n, "name", "<lambda>") == code.co_name]
    if len(near) > 1:  # lambdas of one line: the one that compiles to the same
        near = [n for n in near if _same_code(n, code)] or near
        if len({ast.dump(n) for n in near}) > 1:
            raise NotSupportedError(
                f"{code.co_filename}:{code.co_firstlineno} holds several lambdas that look the same; write each on a "
                "line of its own"
            )
    return near[0] if near else None


def _same_code(node, code):
    if not isinstance(node, ast.Lambda):
        return True
    made = compile(ast.Expression(node), code.co_filename, "eval").co_consts[0]
    names = tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
    given = (code.co_code, code.co_varnames[: len(names)], code.co_names, repr(code.co_consts))
    return (made.co_code, names, made.co_names, repr(made.co_consts)) == given
