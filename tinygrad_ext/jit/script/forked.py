"""`jit.fork`, `jit.wait` and Futures in script.

What is forked runs at once, where fork() stands, as in eager mode: one thread runs a graph, in one order, and it gives
the same bits each time. In a graph a Future is a tuple of its one value, so it may be in lists, branches and loops, be
passed to functions, derived and saved, and nothing that reads graphs knows of it.
"""

from tinygrad_ext.graph.types import accepts

from ..forks import fork, wait
from .compiler import hook
from .errors import misfit
from .values import Method, TupleValue, type_of


class FutureValue(TupleValue):
    """What a fork() gives."""

    kind = "a Future"

    def index(self, c, key):
        c.fault("a Future is no tuple", "Write wait() to get its value.")


def _fork(c, node):
    args, kwargs = c.arguments(node)
    if not args or not hasattr(args[0], "call"):
        c.fault("jit.fork() takes a function or a module first: cannot call a value of another type")
    return FutureValue([args[0].call(c, args[1:], kwargs)])


def _wait(c, node):
    args, kwargs = c.arguments(node)
    args += kwargs.values()
    if len(args) != 1 or not _is_future(c, args[0]):
        c.fault("jit.wait() takes one Future, which jit.fork() gives")
    return _value(c, args[0])


NODES = {fork: _fork, wait: _wait}


def _is_future(c, operand):
    types = isinstance(operand, FutureValue) or (c.is_tuple(operand) and type_of(operand))
    return types is True or (types is not False and types is not None and len(types.args) == 1)


def _value(c, operand):
    (value,) = c.unpacked(operand, 1)
    return value


_METHODS = {"wait": _value, "value": _value, "done": lambda c, operand: True}


@hook
def future_attribute(c, operand, name):
    """A method of a Future, or None."""
    if name not in _METHODS or not _is_future(c, operand):
        return None

    def run(c, args, kwargs):
        if args or kwargs:
            c.fault(f"{name}() of a Future takes no arguments")
        return _METHODS[name](c, operand)

    return Method(name, run)


@hook
def check_leaves(c, operand):
    """Refuse a Future as the result of a program, and one of something else than the function says."""
    wanted, given = c.frame.returns, type_of(operand)
    told = isinstance(operand, FutureValue) and given is not None and wanted is not None and wanted.word == "Tuple"
    if told and len(wanted.args) == 1 and not accepts(wanted, given):
        c.fault(misfit("a value to return", f"Future[{wanted.args[0]}]", f"Future[{given.args[0]}]"))
    if isinstance(operand, FutureValue) and len(c.frames) == 1:
        c.fault("a Future does not leave a compiled program", "Write `return jit.wait(...)`.")
