"""ScriptFunction: a compiled function, called like the one it was made of."""

import functools
import inspect
import pickle

from ..tracing import TracedFunction
from .entry import compile_entry
from .expressions import KINDS
from .functions import FunctionValue


class _Asking(type):
    def __instancecheck__(cls, function):
        """Traced functions count; `issubclass(type(f), ScriptFunction)` asks for compiled ones alone."""
        return super().__instancecheck__(function) or (cls is ScriptFunction and isinstance(function, TracedFunction))


class ScriptFunction(metaclass=_Asking):
    """A compiled Python function. Calling it checks the arguments and runs the graph.

    Attributes: graph, `graph.Graph`; code, the graph as Python text; name.
    """

    def __init__(self, function, examples=None):
        functools.update_wrapper(self, function)
        self._entry = compile_entry(function, examples=examples)

    def __call__(self, *args, **kwargs):
        return self._entry(args, kwargs)

    @property
    def graph(self):
        return self._entry.graph

    inlined_graph = graph

    def graph_for(self, *args, **kwargs):
        """The graph that a call with these arguments runs: one serves for all."""
        return self.graph

    @property
    def code(self):
        return self.graph.code

    @property
    def name(self):
        return self.__name__

    @property
    def qualified_name(self):
        return f"{self.__module__}.{self.__qualname__}"

    @property
    def schema(self):
        """What it takes and gives: "f(Tensor x, int n=2) -> Tensor"."""
        return self._entry.declaration

    def save(self, f, _extra_files=None, **more):
        """See `jit.save`."""
        from tinygrad_ext import jit  # lazy: save stands above, for it knows all that can be saved

        jit.save(self, f, _extra_files, **more)

    def __repr__(self):
        return f"<ScriptFunction {self.schema}>"

    def __reduce__(self):
        raise pickle.PickleError(
            f"ScriptFunction cannot be pickled; save {self.__name__} with jit.save, or pickle the function"
        )


def _known(c, value, name):
    if isinstance(value, TracedFunction):
        return None  # see traced.py
    return FunctionValue(inspect.unwrap(value), name)


KINDS.insert(0, (ScriptFunction, _known))
