"""torch.compiler: marks for a compiler of bytecode, which do nothing here, and `compile` of `tinygrad_ext`."""

from tinygrad_ext.jit._state import written_for as _written_for
from tinygrad_ext.jit.compiling import compile

from ._dynamo import (
    _marked,
    allow_in_graph,
    assume_constant_result,
    disable,
    graph_break,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "graph_break",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]
is_dynamo_compiling = is_compiling
wrap_numpy = _marked


def is_exporting():
    """Whether `export` writes a program down now."""
    return _written_for() == "export"


def substitute_in_graph(original, **kwargs):
    """A decorator that gives the function back: nothing is substituted."""
    return lambda function: function


class set_stance:
    """A context that changes nothing."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def cudagraph_mark_step_begin():
    """Do nothing."""
