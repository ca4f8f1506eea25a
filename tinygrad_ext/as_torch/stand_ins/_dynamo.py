"""torch._dynamo: no bytecode is compiled here, so marks for that do nothing; backends are those of `compile`."""

import contextlib
import importlib
import sys

from tinygrad_ext import compile as _compile
from tinygrad_ext import device as _device
from tinygrad_ext.jit._state import written_for as _written_for
from tinygrad_ext.jit.compiling import list_backends, lookup_backend, register_backend  # noqa: F401 - names there

from . import _dynamo_config as config
from . import _dynamo_exc as exc  # noqa: F401
from . import absent

globals().update(absent.functions("_dynamo", "optimize_assert", "there is no compiler of bytecode; use jit.trace"))


def __getattr__(name):
    if name == "OptimizedModule":
        return importlib.import_module("tinygrad_ext.jit.compiling").CompiledModule  # lazy: few ask for it
    raise AttributeError(f"module 'torch._dynamo' has no attribute '{name}'")


def _marked(function=None, *args, **kwargs):
    """The function as it is, or a decorator that gives it back."""
    return function if callable(function) else lambda function: function


disable = allow_in_graph = disallow_in_graph = forbid_in_graph = run = assume_constant_result = _marked
nonstrict_trace = skip_frame = _disable_dynamo = _marked


def optimize(backend="inductor", *, nopython=False, disable=False, **kwargs):
    """A decorator that compiles for a backend."""
    return lambda function: _compile(function, backend=backend, fullgraph=nopython, disable=disable)


def is_compiling():
    """Whether `compile` or `export` writes a program down now."""
    return bool(_written_for())


def is_compile_supported(device_type):
    """Whether `compile` takes programs for a type of device: for the cpu alone."""
    return _device(device_type).type == "cpu"


@contextlib.contextmanager
def disable_cache_limit():
    """Let `recompile_limit` be as high as can be in a block; how often a program is captured hangs on other things."""
    kept = config.recompile_limit
    config.recompile_limit = sys.maxsize
    try:
        yield
    finally:
        config.recompile_limit = kept


def graph_break(msg=""):
    """Do nothing: there is no graph to break."""


class ExplainOutput:
    """What `explain` finds. graphs; their number; breaks: calls that run as they were written; ops of each graph."""

    def __init__(self, attempt):
        found = [*attempt.runner.graphs.values(), *([m.captured for m in rows] for rows in attempt.made.values())]
        self.graphs = [captured.graph for rows in found for captured in rows]
        self.graph_count = len(self.graphs)
        self.break_reasons = list(attempt.left.values())
        self.graph_break_count = len(self.break_reasons)
        self.ops_per_graph = [[n.op for n in graph.nodes if "::" in n.op] for graph in self.graphs]
        self.op_count = sum(map(len, self.ops_per_graph))
        self.out_guards, self.compile_times, self._text = [], "", attempt.explain()

    def __str__(self):
        return self._text


def explain(f, *extra_args, **extra_kwargs):
    """A function of f's arguments that compiles f for them and tells how many graphs there are, and what has none.

    A program is one graph or runs as it was written, so that each reason of the latter counts as a break.
    """

    def told(*args, **kwargs):
        compiled = _compile(f)
        compiled(*args, **kwargs)
        return ExplainOutput(getattr(compiled, "_attempt", compiled))

    return told(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else told


def reset():
    """Do nothing."""


def mark_dynamic(tensor, index, **kwargs):
    """Do nothing: all sizes are free."""


maybe_mark_dynamic = mark_dynamic


def mark_static(tensor, index=None):
    """Do nothing."""


def mark_static_address(tensor, guard=True):
    """Do nothing."""
