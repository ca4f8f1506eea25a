"""torch._dynamo: nothing is compiled from bytecode here, so marks for it do nothing."""

import importlib

from . import _dynamo_config as config  # noqa: F401 - an attribute there
from . import absent

globals().update(
    absent.functions("_dynamo", "explain optimize_assert", "there is no compiler of bytecode; use jit.trace")
)


def __getattr__(name):
    if name == "OptimizedModule":
        return importlib.import_module("tinygrad_ext.jit.compiling").CompiledModule  # lazy: few ask for it
    raise AttributeError(f"module 'torch._dynamo' has no attribute '{name}'")


def _marked(function=None, *args, **kwargs):
    """The function as it is, or a decorator that gives it back."""
    return function if callable(function) else lambda function: function


disable = allow_in_graph = disallow_in_graph = forbid_in_graph = run = assume_constant_result = _marked
optimize = nonstrict_trace = skip_frame = _marked


def is_compiling():
    """False."""
    return False


def graph_break(msg=""):
    """Do nothing: there is no graph to break."""


def reset():
    """Do nothing."""


def mark_dynamic(tensor, index, **kwargs):
    """Do nothing: all sizes are free."""


maybe_mark_dynamic = mark_static = mark_dynamic


def mark_static_address(tensor, guard=True):
    """Do nothing."""


def list_backends(exclude_tags=()):
    """None."""
    return []
