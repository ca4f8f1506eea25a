"""`compile`: a function or module that runs from captured graphs where it can, and as it is where it cannot.

A graph is captured for each way that Python takes, as by `trace`. What cannot be captured, and what a gradient is
asked of where the graph has no derivative, runs as it was written.
"""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.levels import levels_on
from tinygrad_ext.graph.aliases import CaptureError
from tinygrad_ext.nn import Module

from .calls import FirstCall, called_in_c, repeated
from .state import Surroundings
from .tracing import Runner, is_seen_op_by_op


@boundary
def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """A callable that does what `model`, a function or module, does. Also a decorator, with or without brackets.

    Arguments:
        fullgraph: raise where the program cannot be captured, instead of running it as it is.
        disable: give the model itself.
        dynamic, backend, mode, options: accepted; sizes always are values of the graph.

    The first call for arguments of a kind runs Python once to write the graph down. `explain()` says why something runs
    as it was written.
    """
    if model is None:
        return lambda function: compile(function, fullgraph=fullgraph, disable=disable)
    if not callable(model):
        raise TypeError(f"compile() takes a function or a module, not {type(model).__name__}")
    if disable:
        return model
    return CompiledModule(model, fullgraph) if isinstance(model, Module) else CompiledFunction(model, fullgraph)


class _Whole(Runner):
    """The graphs of a program that do all that it does."""

    def written_down(self, args, keywords, check=True):
        captured = super().written_down(args, keywords, check)
        if captured.left_out:
            raise CaptureError(
                f"{self.name}: it sets {', '.join(captured.left_out)} to a tensor, which no call of a graph would do. "
                "Write into a buffer in place, as in buffer.copy_(new)"
            )
        return captured


@called_in_c
class Attempt(FirstCall):
    """Calls of one program: from graphs, or of the program itself.

    Attributes: left: what a call was looked up by -> why it runs as it was written.
    """

    def __init__(self, function, fullgraph):
        name = getattr(function, "__name__", type(function).__name__)
        super().__init__(_Whole(function, name, Surroundings(function)))
        self.function, self.fullgraph, self.left = function, fullgraph, {}

    def otherwise(self, args, kwargs):
        """A call for which no graph is ready."""
        if levels_on() and is_seen_op_by_op():
            return self.function(*args, **kwargs)
        if self.left and self.key(args, kwargs) in self.left:
            return self.function(*args, **kwargs)
        try:
            result = self.from_graph(args, kwargs)
            if not self.fullgraph:
                self.leave((key, why) for key in self.runner.graphs for why in self.runner.refused(key))
            return result
        except Exception as error:  # a graph has changed nothing; if the program is wrong, it raises itself
            if self.fullgraph:
                raise
            key = self.key(args, kwargs)
            result = self.function(*args, **kwargs)
            self.leave([(key, str(error))])
            return result

    def leave(self, found):
        """Note what runs as it was written from now on."""
        count = len(self.left)
        self.left.update(found)
        if len(self.left) > count:
            self.forget()

    def key(self, args, kwargs):
        """What a call is looked up by; None where it has an argument that nothing can be looked up by."""
        try:
            key = self.runner.key((*args, *kwargs.values()), tuple(kwargs))
            hash(key)
        except TypeError:
            return None
        return key

    def explain(self):
        """How many graphs there are, and why the rest runs as it was written: text."""
        runner = self.runner
        count = sum(map(len, runner.graphs.values()))
        lines = [f"{runner.name}: {count} graph{'s' * (count != 1)}"]
        lines += [f"  again because {reason}" for reason in runner.reasons]
        return "\n".join([*lines, *(f"  as it was written because {reason}" for reason in self.left.values())])


@called_in_c
class CompiledFunction(Attempt):
    """What `compile` gives for a function."""

    def __init__(self, function, fullgraph):
        super().__init__(function, fullgraph)
        self.__wrapped__, self.__name__ = function, self.runner.name
        self.__doc__ = getattr(function, "__doc__", None)

    def __get__(self, instance, owner=None):
        return self if instance is None else lambda *args, **kwargs: self(instance, *args, **kwargs)

    def __repr__(self):
        return f"<compiled {self.__name__}>"


class CompiledModule(Module):
    """What `compile` gives for a module, which stands in it as `_orig_mod`."""

    def __init__(self, module, fullgraph):
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_attempt", Attempt(module, fullgraph))
        object.__setattr__(self, "forward", self._attempt)

    def explain(self):
        """Why what runs as it was written does."""
        return self._attempt.explain()

    def repeat(self, data):
        """Call it with each of the arguments in `data`, see `TracedFunction.repeat`."""
        return repeated(self, data)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)
