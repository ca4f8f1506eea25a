"""Functions that stay Python: what compiled code that calls them asks of them, and is promised by their annotations."""

import contextlib
import inspect
import types as python_types

from tinygrad_ext.graph.primitives.objects import keep_function
from tinygrad_ext.graph.types import ANY, NONE, TENSOR

from .compiler import Frame, hook
from .errors import FrontendError
from .functions import Parameters, check_argument, converted, lookup_of
from .source import source_of


@hook
def outside(c, function, modifier, args, kwargs):
    """A function marked `ignore` is called in Python; one marked `unused` raises, and may take what script does not."""
    python, skip = function.python, len(function.bound)
    try:
        source = source_of(python)
    except FrontendError:
        returns, operands = TENSOR, [*args, *kwargs.values()]
    else:
        with _standing_in(c, Frame(source, lookup_of(python), owner=python)):
            returns = _result_type(c, source)
            if modifier == "ignore":
                parameters = Parameters(c, python, source, skip, outside=True)
                types = _types(c, parameters)
        if modifier == "ignore":
            found = parameters.bind(c, args, kwargs)
            operands = _checked(c, parameters, types, found)
            operands += found[parameters.rest].values if parameters.rest is not None else ()
    if modifier == "unused":
        text = (
            f"{function.name} is annotated to be ignored and cannot be run: it is marked unused, and a compiled "
            "program must not come here"
        )
        c.effect("prim::raise", "NotImplementedError", text)
        return None if returns is NONE else c.emit("prim::undefined", (), returns)
    owners = [b.module for b in function.bound if hasattr(b, "module")]
    word = keep_function(python if not owners else python_types.MethodType(python, owners[0]))
    row = [word, *[c.value(o) for o in operands]]
    if returns is NONE:
        c.node("prim::python", row, (ANY,))
        return None
    where = f"the Python function {function.name}, by its annotation"
    made = c.emit("prim::expect", (c.emit("prim::python", row, ANY), str(returns), where), returns)
    c.unpromised = made if returns is TENSOR else None
    return made


def _types(c, parameters):
    nodes = {name: parameters.annotations.get(name) for name in parameters.names[parameters.skip :]}
    return {name: TENSOR if node is None else c.type_of_annotation(node) for name, node in nodes.items()}


def _checked(c, parameters, types, found):
    """The arguments of a call of a Python function, as its annotations want them."""
    operands = []
    for name, type in types.items():
        operand = converted(c, type, found[name])
        check_argument(c, parameters, name, type, operand)
        operands.append(c.value(operand, type, f"argument '{name}'"))
    return operands


@contextlib.contextmanager
def _standing_in(c, frame):
    c.frames.append(frame)
    try:
        yield
    finally:
        c.frames.pop()


def _result_type(c, source):
    """The type that a function's annotation or comment gives to what it returns; Tensor where there is none."""
    comment = source.type_comments()
    node = getattr(source.tree, "returns", None) if comment is None else comment[1]
    return TENSOR if node is None else c.type_of_annotation(node)


@hook
def parameter_types(c, function):
    """The types that a Python function declares for its parameters, each None where it does not; None: no source."""
    python = inspect.unwrap(function)
    try:
        source = source_of(python)
    except FrontendError:
        return None
    with _standing_in(c, Frame(source, lookup_of(python), owner=python)):
        nodes = Parameters(c, python, source).annotations.values()
        return [None if node is None else c.type_of_annotation(node) for node in nodes]
