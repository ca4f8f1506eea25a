"""`compile`: a function or module that runs from captured graphs where it can, and as it is where it cannot.

A graph is captured for each way that Python takes, as by `trace`. What cannot be captured, and what a gradient is
asked of where the graph has no derivative, runs as it was written.
"""

import functools
import sys
import warnings
from enum import Enum

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.levels import levels_on
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.aliases import CaptureError
from tinygrad_ext.graph.trees import put
from tinygrad_ext.nn import Module
from tinygrad_ext.optim import Optimizer

from ._state import writing
from .calls import FirstCall, called_in_c, repeated
from .constants import in_slots, is_own
from .effects import Changes
from .state import DEPTH, Surroundings
from .tracing import Runner, is_seen_op_by_op


@boundary
def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """A callable that does what `model`, a function or module, does. Also a decorator, with or without brackets.

    Arguments:
        fullgraph: raise where the program cannot be captured, instead of running it as it is.
        backend: "inductor", None, "eager" or "aot_eager", which are the same here; or a function (or the name that
            `register_backend` knows one by) that is called for each geometry of the arguments with a `fx.GraphModule`
            of ops and a list of the tensors that it takes, parameters and buffers first, and gives what is called in
            the module's place, such as its `forward`. `options`, and a `mode`, are handed to it by name.
        disable: give the model itself.
        dynamic, mode, options: accepted otherwise; sizes always are values of the graph, but for such a function.

    Raises RuntimeError for a backend that nobody knows, and BackendCompilerFailed where that function raises.

    The first call for arguments of a kind runs Python once to write the graph down. `explain()` says why something runs
    as it was written. After 256 captures of one program there are no more, which a warning tells: other calls run as it
    was written, or raise with fullgraph.
    """
    if model is None:
        return lambda function: compile(
            function, fullgraph=fullgraph, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise TypeError(f"compile() takes a function or a module, not {type(model).__name__}")
    if disable:
        return model
    function = None if backend is None else lookup_backend(backend)
    more = {key: value for key, value in (("mode", mode), ("options", options)) if value is not None}
    kind = CompiledModule if isinstance(model, Module) else CompiledFunction
    return kind(model, fullgraph, function and functools.partial(function, **more))


# ---- backends ------------------------------------------------------------------------------------------------------

_IN_VAIN = 3  # captures in a row of what changes something besides, until all is run as it was written
_STANDARD = sys.stdlib_module_names  # what has slots there is a path or a number
_HELD = 32  # programs that hold objects, which live as long
_VALUES = (Tensor, Enum, tuple, list, dict, set, str, int, float, bytes)
_backends = dict.fromkeys(("aot_eager", "eager", "inductor"))  # name -> function, None for graphs as they are


class BackendCompilerFailed(RuntimeError):
    """A function that was given as a backend raised. Attributes: inner_exception."""


def register_backend(compiler_fn=None, name=None, tags=()):
    """Know a function of (GraphModule, example inputs) under a name, its own otherwise; also a decorator."""
    if compiler_fn is None:
        return lambda function: register_backend(function, name)
    _backends[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def list_backends(exclude_tags=()):
    """Names that `compile` knows as a backend."""
    return sorted(_backends)


def lookup_backend(backend):
    """The function that a backend is; None for those that run graphs as they are."""
    if isinstance(backend, str):
        if backend not in _backends:
            raise RuntimeError(
                f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends: "
                f"{', '.join(list_backends())}. Pass a function, or register one"
            )
        return _backends[backend]
    if not callable(backend):
        raise TypeError(f"compile(): argument 'backend' must be a name or a function, not {type(backend).__name__}")
    return backend


MOST = 256  # captures of one program, those that failed too: what they give is kept as long as it lives


class _Full(CaptureError):
    """A program was captured as often as it may be."""


class _Whole(Runner):
    """The graphs of a program that do all that it does. Attributes: count: how often it was written down."""

    count = 0

    def written_down(self, args, keywords, check=True):
        if self.count == MOST:
            raise _Full(
                f"compile(): {self.name} was captured {MOST} times, and calls of further kinds run as it was written. "
                "What a call hangs on besides tensors, as words or sizes of a backend's graph, should take few values"
            )
        self.count += 1
        with writing("compile"):
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

    Attributes: left: what a call was looked up by -> why it runs as it was written. tried: the same of what is written
    down once more. given_up: why all calls run so from now on, or None. holding: the same program for objects among its
    arguments.
    """

    def __init__(self, function, fullgraph, backend=None):
        name = getattr(function, "__name__", type(function).__name__)
        super().__init__(_Whole(function, name, Surroundings(function)))
        self.function, self.fullgraph, self.left = function, fullgraph, {}
        self.backend, self.made, self.warned, self.tried, self.holding = backend, {}, False, {}, {}
        self.given_up, self._in_vain = None, 0

    def otherwise(self, args, kwargs):
        """A call for which no graph is ready."""
        if levels_on() and is_seen_op_by_op():
            return self.function(*args, **kwargs)
        if objects := objects_in((args, tuple(kwargs.items()))):
            return self.of_objects(args, kwargs, objects)
        if self.backend is not None:
            return self.by_backend(args, kwargs)
        if self.given_up or (self.left and self.key(args, kwargs) in self.left):
            return self.function(*args, **kwargs)
        try:
            result = self.from_graph(args, kwargs)
            self._in_vain = 0
            if not self.fullgraph:
                self.leave((key, why) for key in self.runner.graphs for why in self.runner.refused(key))
            return result
        except Exception as error:  # a graph has changed nothing; if the program is wrong, it raises itself
            if self.fullgraph:
                raise
            key = self.key(args, kwargs)
            result = self.function(*args, **kwargs)
            self.leave([(key, str(error))] if self.is_final(key, error) else [])
            return result

    def of_objects(self, args, kwargs, objects):
        """A call with modules, optimizers or objects of the program's own, by a program that holds these: so what it
        reads of them is noticed where it is another."""
        key = tuple([(path, id(held)) for path, held in objects])
        made = self.holding.get(key)
        if made is None:
            if len(self.holding) == _HELD and not self.fullgraph:
                return self.function(*args, **kwargs)
            if len(self.holding) == _HELD:
                del self.holding[next(iter(self.holding))]
            made = self.holding[key] = Attempt(holding(self.function, objects), self.fullgraph, self.backend)
            made.runner.name = self.runner.name
        args, kwargs = put_all(args, kwargs, [(path, None) for path, _ in objects])
        return made(*args, **kwargs)

    def by_backend(self, args, kwargs):
        """A call by what a backend made of the program."""
        key = self.key(args, kwargs)
        if key is None or key in self.left or self.given_up:
            return self.function(*args, **kwargs)
        given, names = (*args, *kwargs.values()), tuple(kwargs)
        try:
            made = self.handed(key, given, names)
        except BackendCompilerFailed:
            raise
        except Exception as error:
            if self.fullgraph:
                raise
            result = self.function(*args, **kwargs)
            if self.is_final(key, error):
                self.left[key] = str(error)
            return result
        return made(given)

    def is_final(self, key, error):
        """Whether calls of a kind run as they were written from now on. What changes something at its first call, as by
        keeping what it computed, is written down once more; what does so in kind after kind, as by a list that grows,
        is given up."""
        if isinstance(error, Changes):
            self._in_vain += 1
            if self._in_vain == _IN_VAIN and not self.fullgraph:
                self.given_up = str(error)
                self.tried.clear()
            if key not in self.tried and not self.given_up:
                self.tried[key] = str(error)
                return False
        return not self.given_up and not self.is_full(error)

    def is_full(self, error):
        """Whether no more is noted of calls that run as they were written; a warning says so, once."""
        if isinstance(error, _Full) and not self.warned:
            self.warned = True
            warnings.warn(str(error), stacklevel=4)
        return isinstance(error, _Full) or len(self.left) >= MOST

    def handed(self, key, given, names):
        """The fx.compiled.Handed for a call, made now where there is none."""
        runner = self.runner
        rows = self.made.setdefault((key, _geometry(given)), [])
        for made in rows:
            if made.captured.bound(given, names, runner.surroundings) is not None:
                return made
        captured = runner.written_down(given, names)
        captured.forget_examples()
        runner.surroundings.leave_out_changed()
        if captured.bound(given, names, runner.surroundings) is None:
            raise CaptureError(f"{runner.name}: what it writes to lies in memory that an argument lies in too")
        made = later("compiled by a function").Handed(captured, given)
        name = getattr(self.backend.func, "__name__", type(self.backend.func).__name__)
        try:
            made.function = self.backend(made.module, list(made.inputs))
        except Exception as error:
            failed = BackendCompilerFailed(f"backend={name!r} raised:\n{type(error).__name__}: {error}")
            failed.inner_exception = error
            raise failed from error
        if not callable(made.function):
            raise BackendCompilerFailed(
                f"backend={name!r} gave {type(made.function).__name__}; it must return a function of the tensors that "
                "it was given, such as gm.forward"
            )
        made.inputs = None  # a batch need not live as long as the program
        rows.insert(0, made)
        return made

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
        count = sum(map(len, runner.graphs.values())) + sum(map(len, self.made.values()))
        lines = [f"{runner.name}: {count} graph{'s' * (count != 1)}"]
        lines += [f"  again because {reason}" for reason in runner.reasons]
        ready = {*runner.graphs, *(key for key, _ in self.made)}
        waiting = {key: why for key, why in self.tried.items() if key not in ready}
        reasons = [*{**waiting, **self.left}.values(), *[self.given_up] * bool(self.given_up)]
        lines += [f"  as it was written because {reason}" for reason in reasons]
        return "\n".join([*lines, *(f"with objects, {made.explain()}" for made in self.holding.values())])


def is_object(value):
    """Whether a program may read attributes of an argument, which no key tells."""
    if isinstance(value, (Module, Optimizer)):
        return True
    if type(value).__module__ == "builtins" or isinstance(value, _VALUES) or not is_own(value):
        return False
    return hasattr(value, "__dict__") or bool(type(value).__module__ not in _STANDARD and in_slots(value, None))


def objects_in(value, path=()):
    """(path, what) of objects in arguments, and of lists and dicts that hold some, which a program may write to."""
    if type(value) is tuple or hasattr(value, "_make"):
        return [found for i, part in enumerate(value) for found in objects_in(part, (*path, i))]
    return [(path, value)] if _holds_object(value, DEPTH) else []


def _holds_object(value, depth):
    if depth and isinstance(value, (list, tuple, dict)):
        parts = value.values() if isinstance(value, dict) else value
        return any(_holds_object(part, depth - 1) for part in parts)
    return is_object(value)


def put_all(args, kwargs, rows):
    """The arguments of a call with (path, what) in their places."""
    given = args, tuple(kwargs.items())
    for path, value in rows:
        given = put(given, path, value)
    return given[0], dict(given[1])


def holding(function, objects):
    """The function with the objects among its arguments, which are None in a call."""

    @functools.wraps(function)
    def program(*args, **kwargs):
        args, kwargs = put_all(args, kwargs, objects)
        return function(*args, **kwargs)

    return program


@called_in_c
class CompiledFunction(Attempt):
    """What `compile` gives for a function."""

    def __init__(self, function, fullgraph, backend=None):
        super().__init__(function, fullgraph, backend)
        self.__wrapped__, self.__name__ = function, self.runner.name
        self.__doc__ = getattr(function, "__doc__", None)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return functools.partial(self, instance)

    def __repr__(self):
        return f"<compiled {self.__name__}>"


@called_in_c
class CompiledForward(CompiledFunction):
    """The `forward` of a module that was compiled in place; in copies and pickles it is that of the class."""

    def __reduce__(self):
        return getattr, (self.__wrapped__.__self__, "forward")


def compile_in_place(module, *args, **kwargs):
    """Let calls of a module run as `compile` makes them."""
    forward = vars(module).get("forward", module.forward)
    made = compile(forward.__wrapped__ if isinstance(forward, CompiledForward) else forward, *args, **kwargs)
    if type(made) is CompiledFunction:
        made = CompiledForward(made.function, made.fullgraph, made.backend)
        object.__setattr__(module, "forward", made)
    elif isinstance(forward, CompiledForward):  # disable=True
        del module.__dict__["forward"]


class CompiledModule(Module):
    """What `compile` gives for a module, which stands in it as `_orig_mod`."""

    def __init__(self, module, fullgraph, backend=None):
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_attempt", Attempt(module, fullgraph, backend))
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


def _geometry(tree):
    """What a graph of fixed sizes holds for: sizes and strides of tensors, numbers with their types."""
    if isinstance(tree, Tensor):
        return tuple(map(int, tree.shape)), tuple(tree.stride()) if tree.layout == tg.strided else None
    if isinstance(tree, (tuple, list)):
        return tuple(map(_geometry, tree))
    if isinstance(tree, dict):
        return tuple([(key, _geometry(part)) for key, part in tree.items()])
    return type(tree), tree
