"""Functions of sparse tensors. They are steps of Python, for the ops of a graph take plain tensors."""

import inspect

from tinygrad_ext import sparse
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.primitives.objects import keep_function
from tinygrad_ext.graph.types import TENSOR

from .builtins import builtin
from .tensors import SPECIAL
from .values import ListLiteral, TupleValue


def _bound(c, name, names, args, kwargs):
    """What is given for each of the names, None where nothing is. Faults like a call in Python."""
    found = dict(zip(names, args))
    if len(args) > len(names) or not set(kwargs) <= set(names) - set(found):
        c.fault(f"{name}() takes {', '.join(names)}")
    return {**found, **kwargs}


def _step(c, name, function, given):
    """A step that calls a Python function with some of its arguments, by name."""

    def run(*operands):
        return function(**dict(zip(passed, operands)))

    passed = tuple(given)
    run.__qualname__ = name
    run = _steps.setdefault((function, passed), run)
    operands = [None if operand is None else _whole(c, operand) for operand in given.values()]
    return c.node("prim::python", (keep_function(run), *operands), (TENSOR,)).output


_steps = {}  # (function, the names of what it is given) -> what a graph calls; a function that is kept is kept for ever


def _whole(c, operand):
    return c.value(ListLiteral(operand.values) if isinstance(operand, TupleValue) else operand)


def _takes(function):
    return tuple(inspect.signature(function).parameters)


def _function(function):
    name, names = function.__name__, _takes(function)

    @builtin(function)
    def _call(c, args, kwargs):
        return _step(c, name, function, _bound(c, name, names, args, kwargs))


def _method(name):
    names = _takes(getattr(Tensor, name))

    def run(self, **options):
        return getattr(self, name)(**options)

    def call(c, tensor, args, kwargs):
        return _step(c, name, run, _bound(c, name, names, [tensor, *args], kwargs))

    SPECIAL[name] = call


_MAKERS = ("sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_compressed_tensor")
for _name in (*_MAKERS, "mm", "addmm", "sum"):
    _function(getattr(sparse, _name))
for _name in ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_dense"):
    _method(_name)
