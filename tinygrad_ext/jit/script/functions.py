"""Python functions: a call is compiled into the caller's block, with names of its own."""

import ast
import builtins
import inspect
import types as python_types
import typing
import weakref

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.primitives.objects import class_of
from tinygrad_ext.graph.types import BOOL, COMPLEX, FLOAT, INT, NONE, TENSOR, accepts

from .compiler import Frame, hook
from .conversions import as_declared, element, number_of
from .environment import ABSENT, RESULT, RETURNED, NeverReturns, Scope
from .errors import FrontendError, NotSupportedError
from .expressions import KINDS, kind
from .markers import MODIFIER
from .overloads import parameters_of
from .source import source_of
from .type_comments import BadComment
from .types import parts_of
from .values import ListLiteral, Static, TupleValue, type_of


class FunctionValue(Static):
    """A Python function; bound: operands in front of the arguments, as the self of a method."""

    kind = "a function"

    def __init__(self, python, name, bound=()):
        self.python, self.name, self.bound = python, name, tuple(bound)

    def told(self):
        return f"the function {self.name}"

    def call(self, c, args, kwargs):
        modifier = getattr(self.python, MODIFIER, None)
        refusal = getattr(self.python, "refusal", None)
        if refusal is not None:  # what only as_torch has a name for: the line raises, as in eager mode
            c.effect("prim::raise", "NotImplementedError", refusal)
            return c.emit("prim::undefined", (), TENSOR)
        if modifier in ("ignore", "unused"):
            return c.outside(self, modifier, args, kwargs)
        return c.inline(self.python, args, kwargs, self.bound)


@kind(python_types.FunctionType)
def _function(c, value, name):
    return FunctionValue(value, name)


def _wrapped(c, value, name):
    """A function in a wrapper that keeps what it wraps, as functools.wraps does."""
    if not callable(value) or not hasattr(value, "__wrapped__") or isinstance(value, type):
        return None
    inner = inspect.unwrap(value)
    return FunctionValue(inner, name) if isinstance(inner, python_types.FunctionType) else None


class _Owner(Static):
    """An object of Python whose method is left to Python. Attributes: module, the object."""

    def __init__(self, module):
        self.module = module


def _left_to_python(c, value, name):
    """An object that is called, where its `__call__` is marked to stay Python."""
    found = None if isinstance(value, type) else inspect.getattr_static(type(value), "__call__", None)
    left = isinstance(found, python_types.FunctionType) and getattr(found, MODIFIER, None) in ("ignore", "unused")
    return FunctionValue(found, name, (_Owner(value),)) if left else None


KINDS.append((object, _wrapped))
KINDS.append((object, _left_to_python))


DEFINING = []  # classes whose names are not bound yet
_AROUND = weakref.WeakKeyDictionary()  # method -> {name: weak reference to a class of the function around}


def remember_around(function, names):
    """Let annotations in the comments of a method name the classes of the function around: Python keeps none."""
    _AROUND[function] = {n: weakref.ref(v) for n, v in names.items() if isinstance(v, type)}


def lookup_of(function, bound=()):
    """name -> what it stands for where a function was defined; bound: the object whose method it is, for its class."""
    function = inspect.unwrap(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    space = function.__globals__

    def lookup(name):
        for cls in DEFINING:
            if cls.__name__ == name:
                return cls
        if name in cells:
            return _content(cells[name], name)
        if name in space:
            return space[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        known = {cls.__name__: cls for hint in function.__annotations__.values() for cls in _classes_in(hint)}
        around = _AROUND.get(function, {}).get(name, lambda: None)()
        if name in known or around is not None:
            return known.get(name, around)
        of_object = type_of(bound[0]) if bound else None
        owner = None if of_object is None else class_of(of_object.word)
        if owner is not None and owner.__name__ == name:  # a class that stands in a function is no global name
            return owner
        return _said_by_annotation(function, name)

    return lookup


def _said_by_annotation(function, name):
    """What a name of the function around stands for, where an annotation is that name alone and Python kept it."""
    hints = function.__annotations__
    try:
        spec = source_of(function).tree
    except FrontendError:
        return _missing(name)
    nodes = {a.arg: a.annotation for a in (*spec.args.posonlyargs, *spec.args.args, *spec.args.kwonlyargs)}
    nodes["return"] = getattr(spec, "returns", None)
    for key, node in nodes.items():
        found = _part_of_hint(node, hints.get(key), name)
        if found is not None:
            return found
    return _missing(name)


def _part_of_hint(node, hint, name):
    """What a name stands for at its place in an annotation, whose value Python kept; else None."""
    if hint is None or isinstance(hint, str):
        return None
    if isinstance(node, ast.Name):
        return hint if node.id == name else None
    if not isinstance(node, ast.Subscript):
        return None
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    found = [_part_of_hint(part, told, name) for part, told in zip(inner, typing.get_args(hint))]
    return next((part for part in found if part is not None), None)


def _classes_in(hint):
    """Classes that an annotation names; Python keeps those of the function around only there."""
    inner = [cls for part in typing.get_args(hint) for cls in _classes_in(part)]
    return [hint, *inner] if isinstance(hint, type) else inner


def _content(cell, name):
    try:
        return cell.cell_contents
    except ValueError:
        return _missing(name)  # a name of the function around that is set later


def _missing(name):
    raise LookupError(name)


# ---- parameters ----------------------------------------------------------------------------------------------------


class Parameters:
    """What a function takes. names; required or default for each; kinds; type nodes; left: names without argument."""

    left = ()

    def __init__(self, c, function, source, skip=0, outside=False):
        """outside: the function is not compiled, so it may take any number of arguments."""
        spec = source.tree.args
        ours = outside or (function.__module__ or "").startswith("tinygrad_ext.")
        self.rest = spec.vararg.arg if spec.vararg and ours else None
        if (spec.vararg and self.rest is None) or spec.kwarg:
            c.fault(
                "Compiled functions can't take variable number of arguments; name each, or take a list",
                kind=NotSupportedError,
            )
        positional = [*spec.posonlyargs, *spec.args]
        self.skip, self.function = skip, source.name
        if skip > len(positional):
            c.fault(f"methods must have a self argument: '{source.name}' does not have a self argument")
        self.names = [a.arg for a in (*positional, *spec.kwonlyargs)]
        self.positional = len(positional)
        function = inspect.unwrap(function)
        defaults = function.__defaults__ or ()
        self.defaults = dict(zip(self.names[self.positional - len(defaults) : self.positional], defaults))
        self.defaults.update(function.__kwdefaults__ or {})
        for name in () if ours else self.defaults:
            if _holds_mutable(self.defaults[name]):
                _mutable(c, name)
        nodes, self.returns = [a.annotation for a in (*positional, *spec.kwonlyargs)], None
        try:
            comment = source.type_comments()
        except BadComment as error:
            c.fault(*error.args)
        if comment is not None:
            nodes, self.returns = [told or node for told, node in zip(comment[0], nodes)], comment[1]
        self.annotations = dict(zip(self.names, nodes))
        self.returns = self.returns or getattr(source.tree, "returns", None)

    def bind(self, c, args, kwargs):
        """{name: operand} of a call; defaults where nothing is given."""
        names = self.names[self.skip :]
        count = self.positional - self.skip
        if self.rest is not None:
            args, rest = args[:count], args[count:]
        if len(args) > count:
            told = f"Expected at most {self.positional} arguments but found {len(args) + self.skip}"
            c.fault(f"{told}: {self.function}() takes {count} positional arguments but {len(args)} were given")
        found = dict(zip(names, args))
        for name, operand in kwargs.items():
            if name not in names:
                c.fault(f"got an unexpected keyword argument '{name}'; it takes {', '.join(names) or 'none'}")
            if name in found:
                c.fault(f"argument '{name}' is given twice")
            found[name] = operand
        self.left = [name for name in names if name not in found]
        for name in self.left:
            if name not in self.defaults:
                c.fault(f"Argument {name} not provided: {self.function}() is missing value for argument '{name}'")
            found[name] = c.default(self.defaults[name], name)
        if self.rest is not None:
            found[self.rest] = TupleValue(rest)
        return found


@hook
def default(c, value, name):
    """The operand of a default value."""
    if isinstance(value, (list, dict)) and not value:  # of a field, whose factory has made it
        return c.empty(value)
    if _holds_mutable(value):
        return _mutable(c, name)
    if isinstance(value, Tensor):
        kept = c.defaults.setdefault(id(value), _Default(value))
        return c.field(kept, "value", f"{c.frame.source.name}.{name}", "constant", TENSOR)
    return c.python(value, f"the default of {name}")


_NUMBERS = {BOOL: (bool, (int, float)), INT: (int, bool), FLOAT: (float, int), COMPLEX: (complex, (int, float))}


def declared_default(value, type):
    """A default as its declaration holds it: a number of the type that is told, also inside of Optional and Tuple."""
    if type.word == "Optional" and value is not None:
        return declared_default(value, type.args[0])
    if type.word == "List" and isinstance(value, tuple):  # which nobody can change between calls
        return [declared_default(each, type.args[0]) for each in value]
    if type.word == "Tuple" and isinstance(value, tuple) and len(value) == len(type.args):
        parts = [declared_default(*pair) for pair in zip(value, type.args)]
        return builtins.type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
    kind, taken = _NUMBERS.get(type, (None, ()))
    return kind(value) if isinstance(value, taken) else value


def _holds_mutable(value):
    return isinstance(value, (list, dict)) or (isinstance(value, tuple) and any(map(_holds_mutable, value)))


def _mutable(c, name):
    return c.fault(f"Mutable default parameters are not supported, as of {name}", "Make it None, and the list inside.")


class _Default:
    """Holds the tensor that is a default. Attributes: value."""

    def __init__(self, value):
        self.value = value


# ---- calls ---------------------------------------------------------------------------------------------------------


@hook
def inline(c, function, args, kwargs, bound=()):
    """The operand that a call of a Python function gives."""
    function = inspect.unwrap(function)
    try:
        source = source_of(function)
    except FrontendError as error:
        c.fault(str(error), kind=type(error))
    if any(f.owner is function and _same_self(f.bound, bound) for f in c.frames):
        c.fault(f"function '{source.name}' is called recursively. Recursive calls are not supported; write a loop")
    parameters = parameters_of(c, function, lambda f, of: Parameters(c, f, of, len(bound)), bound, args, kwargs)
    operands = dict(zip(parameters.names, bound))
    operands.update(parameters.bind(c, args, kwargs))
    frame = Frame(source, lookup_of(function, bound), owner=function)
    frame.bound = bound
    caller = (c.frame, c.nodes[-1]) if c.frames else None
    return _run(c, frame, parameters, operands, caller)


def _same_self(a, b):
    """A method of another module is no recursion: its tree of modules ends."""
    return len(a) == len(b) and all(x is y or getattr(x, "module", x) is getattr(y, "module", y) for x, y in zip(a, b))


def _run(c, frame, parameters, operands, caller):
    scope, loops = Scope(), c.loops
    if caller is not None:
        c.calls.append(caller)
    c.frames.append(frame)
    c.loops, frame.root = 0, scope
    try:
        with c.inside(c.block, scope, c.fields), c.at(frame.source.tree):
            _bind(c, scope, parameters, operands)
            frame.returns = None if parameters.returns is None else c.type_of_annotation(parameters.returns)
            c.statements(frame.source.body)
            if frame.set_at:
                c.check_set()
            result = result_of(c, frame)
    finally:
        c.loops = loops
        c.frames.pop()
        if caller is not None:
            c.calls.pop()
    if scope.exited == "raise" and result is None and caller is not None and c.frame.at_statement is c.scope:
        raise NeverReturns
    return result


def _bind(c, scope, parameters, operands):
    if parameters.rest is not None:
        scope.bound[parameters.rest] = operands[parameters.rest]
    for i, name in enumerate(parameters.names):
        operand, node = operands[name], parameters.annotations.get(name)
        if i < parameters.skip or (node is None and c.frame.ours):
            scope.bound[name] = operand
            continue
        type = TENSOR if node is None else c.type_of_annotation(node)
        if name in parameters.left:
            operand = c.default(declared_default(parameters.defaults[name], type), name)
        if c.broadcasts.get(node) and accepts(type.args[0], type_of(operand)):
            operand = ListLiteral([operand] * c.broadcasts[node])
        if isinstance(operand, Static) and type_of(operand) is None:
            scope.bound[name] = c.as_interface(operand, type)
            continue
        words = {t.word for t in parts_of(type)}
        if "List" in words and "Tuple" not in words and c.is_tuple(operand):
            operand = ListLiteral(c.unpacked(operand, None))
        operand = converted(c, type, operand)
        check_argument(c, parameters, name, type, operand, in_caller=True)
        scope.declared[name] = type
        scope.bound[name] = c.value(operand, type) if isinstance(operand, Static) else operand


def converted(c, type, operand):
    """The only element of a tensor where a number is wanted."""
    number = number_of(type) if type_of(operand) is TENSOR else None
    if number is not None:
        return element(c, operand, number, f"an argument that is {number}")
    return as_declared(c, c.cast_to_interface(operand, type), type)


def check_argument(c, parameters, name, type, operand, in_caller=False):
    given = type_of(operand)
    if isinstance(operand, Static) or accepts(type, given):
        return
    untold = parameters.annotations.get(name) is None
    inferred = f" '{name}' is Tensor because it has no annotation." if untold else ""
    c.fault(
        f"{parameters.function}() Expected a value of type '{type}{' (inferred)' if untold else ''}' for argument "
        f"'{name}' but instead found type '{given}'.{inferred}",
        in_caller=in_caller,
    )


def result_of(c, frame):
    """What the function that was just compiled returns."""
    scope = c.scope
    returned, result = scope.flag(RETURNED), scope.find(RESULT)
    if scope.exited:
        if result is ABSENT:
            type = frame.returns
            return None if type is None or type is NONE else c.emit("prim::undefined", (), type)
        return result
    wanted = frame.returns
    if wanted is not None and wanted is not NONE and not frame.ours:
        c.fault(f"the function is annotated to return {wanted}, but does not return along all paths")
    if returned is False or result is None or result is ABSENT:
        return None
    return c.choose(returned, lambda: result, lambda: None, result=True)
