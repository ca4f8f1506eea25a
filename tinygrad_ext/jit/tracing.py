"""`trace`: a function or module written down by running it on examples.

A traced callable holds a graph for each way that Python took (structure and dtypes of the arguments, training mode,
what guards say), and captures another one when none fits. Graphs change nothing: what a program wrote to parameters,
buffers, gradients and generators is written there after the graph has run.
"""

import copy
import inspect
import re
from types import SimpleNamespace

from tinygrad_ext.core.call.levels import active_levels
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.aliases import SharedMemoryError
from tinygrad_ext.graph.capture import Capture
from tinygrad_ext.graph.keys import key_of
from tinygrad_ext.graph.trees import leaves_of, put
from tinygrad_ext.nn import Module
from tinygrad_ext.nn.parameter import refuse_lazy

from . import _state
from .calls import Call, called_in_c, repeated
from .captured import capture_program
from .keys import told
from .state import Surroundings

MOST = 32  # graphs of one callable; more are a sign that something in it changes with each call


class TracingCheckError(RuntimeError):
    """Two captures of the same program differ."""


def is_tracing():
    """Whether the code that asks is being written down as a graph."""
    return any(isinstance(level, Capture) or getattr(level, "traces", False) for level in active_levels())


def is_seen_op_by_op():
    """Whether a level wants to see the ops of what is called, and no plan: a capture, a transform such as vmap, or one
    that converts arguments, as autocast does."""
    wants = ("parts", "converts")
    return any(isinstance(level, Capture) or any(hasattr(level, w) for w in wants) for level in active_levels())


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    *,
    example_kwarg_inputs=None,
    _store_inputs=True,
):
    """A callable that does what `func` does, from a graph that was captured with the examples.

    Arguments:
        func: a function, or a module or its `forward`, of tensors and numbers, in tuples, lists and dicts too.
        example_inputs: a tuple of arguments, or one tensor. Sizes stay values of the graph, so it holds for other
        sizes. check_trace: capture twice, and refuse a program that is not the same each time. check_inputs: further
        tuples of arguments, for which the graph must give what `func` gives, bit for bit. example_kwarg_inputs: a dict.
        _force_outplace: called in script with arguments that share memory, the program is taken as if it wrote to none.
        optimize, check_tolerance, strict, and others that begin with an underscore: accepted; lists and dicts are taken
        in any case.

    Raises RuntimeError where the program reads elements of a tensor, naming its line, and TracingCheckError.
    """
    kwargs = dict(example_kwarg_inputs or {})
    if not _state.enabled():
        return func
    args = () if kwargs and example_inputs is None else _examples(example_inputs)
    if isinstance(getattr(func, "__self__", None), Module) and func.__name__ == "forward":
        func = func.__self__
    traced = TracedModule(func) if isinstance(func, Module) else TracedFunction(func)
    runner = traced._runner
    runner.check, runner.in_place = check_trace, not _force_outplace
    runner.graph_for(args, kwargs)
    for given in check_inputs or ():
        runner.compare(_examples(given))
    return traced


def trace_module(
    mod, inputs, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True,
    _force_outplace=False, _module_class=None, _compilation_unit=None, example_inputs_is_kwarg=False,
    _store_inputs=True,
):  # fmt: skip
    """A traced module with several methods: `inputs` maps a method's name to its example arguments, which are keyword
    arguments, in a dict, with `example_inputs_is_kwarg`."""
    if not _state.enabled():
        return mod
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    traced = TracedModule(mod)
    for name, example in inputs.items():
        runner = traced._runner if name == "forward" else traced._add_method(name)
        runner.check, runner.in_place = check_trace, not _force_outplace
        args, kwargs = ((), dict(example)) if example_inputs_is_kwarg else (_examples(example), {})
        runner.graph_for(args, kwargs)
    return traced


def _examples(given):
    if given is None:
        raise RuntimeError("trace() needs example_inputs: a tuple of the arguments that the program is run with")
    return (given,) if isinstance(given, (Tensor, dict)) or not isinstance(given, (tuple, list)) else tuple(given)


class Runner:
    """The graphs of one function."""

    def __init__(self, function, name, surroundings):
        self.function, self.name, self.surroundings = function, name, surroundings
        self.signature = _signature(function.forward if isinstance(function, Module) else function)
        self.graphs = {}
        self.reasons = []
        self.check, self.in_place = False, True
        self.latest = None

    is_seen_op_by_op = staticmethod(is_seen_op_by_op)

    def __deepcopy__(self, memo):
        """One for the copied function, which captures anew when it is called."""
        function = copy.deepcopy(self.function, memo)
        made = type(self)(function, self.name, Surroundings(function))
        made.latest = self.latest
        return made

    def find(self, args, keywords, tried=()):
        """A Binding for a call that no known one fits; the graphs of `tried` hold for other sizes."""
        found = self.graphs.get(self.key(args, keywords), ())
        for captured in found:
            binding = None if captured in tried else captured.bound(args, keywords, self.surroundings)
            if binding is not None:
                return binding
        for captured in found:
            self.reasons += [f"{answer} differs" for answer in captured.answers if not answer.holds(args)][:1]
        try:
            return self.capture(args, keywords).bound(args, keywords, self.surroundings)
        except TypeError:
            self.check_given(args, keywords)
            raise

    def check_given(self, args, keywords):
        """Raise where the arguments of a call are not those of the program."""
        count = len(args) - len(keywords)
        try:
            if self.signature is not None:
                self.signature.bind(*args[:count], **dict(zip(keywords, args[count:])))
        except TypeError as error:
            name = "forward" if isinstance(self.function, Module) else self.name
            lacks = re.fullmatch(r"missing a required argument: ('\w+')", str(error))
            told = f" is missing value for argument {lacks[1]}" if lacks else f": {error}"
            raise RuntimeError(f"{name}(){told}. It takes {self.signature}") from None

    def key(self, args, keywords):
        return key_of(args), keywords, self.surroundings.switches(), is_grad_enabled()

    def refused(self, key):
        """Why graphs for arguments of this kind have no derivative."""
        derivatives = [captured.graph.derivative for captured in self.graphs.get(key, ())]
        return [why for each in derivatives if each is not None for why in each.refused.values()]

    def graph_for(self, args, kwargs):
        """Capture the program with examples; of those that share memory which it writes to, each gets its own."""
        given = (*args, *kwargs.values())
        try:
            self.capture(given, tuple(kwargs))
        except SharedMemoryError:
            for path, tensor in leaves_of(given):
                given = put(given, path, tensor.detach().clone().requires_grad_(tensor.requires_grad))
            self.capture(given, tuple(kwargs))

    def capture(self, args, keywords):
        captured = self.written_down(args, keywords)
        if self.check:
            differ = f"Graphs differed across invocations! {self.name}: two captures with the same arguments differ"
            try:
                again = self.written_down(args, keywords, False)  # it is compared with one that was checked
            except RuntimeError as error:
                raise TracingCheckError(f"{differ}; the second one raised {type(error).__name__}: {error}") from error
            if again.graph != captured.graph:
                raise TracingCheckError(
                    f"{differ}, so something in it changes with each call, such as a random number of Python's.\n"
                    f"{_difference(str(captured.graph), str(again.graph))}"
                )
        captured.forget_examples()
        self.surroundings.leave_out_changed()
        captured.takes = told(args)
        found = self.graphs.setdefault(self.key(args, keywords), [])
        if len(found) == MOST:
            raise RuntimeError(
                f"{self.name}: {MOST} graphs were captured, and none fits. What Python decided differently each time: "
                f"{'; '.join(self.reasons[-3:])}"
            )
        found.insert(0, captured)
        self.latest = captured
        return captured

    def capture_shared(self, places):
        """A graph for calls that pass one tensor in several places: places[i] is the first of what argument i is.

        It takes each argument once. Captured with zeros of the last graph's sizes; raises what the program then raises.
        """
        firsts = sorted(set(places))
        values = [self.latest.graph.inputs[i] for i in firsts]
        hints = [v.hint for v in values]
        examples = [h.new_zeros(h.shape, device="cpu") if isinstance(h, Tensor) else h for h in hints]

        def program(*given):
            return self.function(*[given[firsts.index(place)] for place in places])

        named = list(zip([v.name for v in values], examples))
        captured = capture_program(self.name, program, named, (), self.surroundings)
        captured.forget_examples()
        self.surroundings.leave_out_changed()
        return captured

    def written_down(self, args, keywords, check=True):
        names = [*_names(self.signature, args[: len(args) - len(keywords)]), *keywords]
        return capture_program(self.name, self.function, list(zip(names, args)), keywords, self.surroundings, check)

    def compare(self, args):
        drawn = default_generator.get_state()
        expected = self.function(*args)
        default_generator.set_state(drawn)  # so both draw the same
        given = Call(self)(*args)
        if not _equal(expected, given):
            raise TracingCheckError(f"{self.name}: the graph gives another result than the program for check_inputs")


def _signature(function):
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _names(signature, args):
    parameters, names = [] if signature is None else list(signature.parameters.values()), []
    for i in range(len(args)):
        if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
            row = sum(name.startswith(f"{parameters[0].name}_") for name in names)
            names.append(f"{parameters[0].name}_{row}")
        else:
            names.append(parameters.pop(0).name if parameters else f"arg{i}")
    return names


def _difference(a, b):
    import difflib  # lazy: for an error only

    return "\n".join([line for line in difflib.ndiff(a.split("\n"), b.split("\n")) if line[0] in "+-"][:10])


def _equal(a, b):
    if isinstance(a, Tensor):
        return (
            isinstance(b, Tensor)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and bool((a == b).all() | (a != a).any())
        )
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(v, b[k]) for k, v in a.items())
    return a == b


class _Told:
    """What a traced callable tells of its graphs."""

    @property
    def graph(self):
        """The graph that was captured last."""
        return self._runner.latest.graph

    inlined_graph = graph

    @property
    def code(self):
        """That graph as Python."""
        return self.graph.code

    @property
    def code_with_constants(self):
        """(that code, the tensors that are constants of the graph as c0, c1, ...)."""
        latest = self._runner.latest
        held = [holder.owner for state, holder in zip(latest.graph.state, latest.holders) if state.kind == "constant"]
        return self.code, SimpleNamespace(**{f"c{i}": tensor for i, tensor in enumerate(held)})

    def save(self, f, _extra_files=None, **more):
        """See `jit.save`."""
        from tinygrad_ext import jit  # lazy: save stands above, for it knows all that can be saved

        jit.save(self, f, _extra_files, **more)

    def plan(self, *args, **kwargs):
        """The `Plan` that a call with these arguments runs; its `table(profile=True)` shows where the time goes.

        The plan is that of the graph itself: where a gradient is asked, a call runs a graph with more results.
        Nothing of the program's is changed by asking.
        """
        given = (*args, *kwargs.values())
        return self._runner.find(given, tuple(kwargs)).captured.plan(given)

    def graph_for(self, *args, **kwargs):
        """The graph that a call with these arguments runs."""
        return self._runner.find((*args, *kwargs.values()), tuple(kwargs)).captured.graph

    def explain(self):
        """What was captured, and why again; what was planned, and why again."""
        runner = self._runner
        count = sum(map(len, runner.graphs.values()))
        lines = [f"{runner.name}: {count} graph{'s' * (count != 1)} captured"]
        lines += [f"  again because {reason}" for reason in runner.reasons]
        lines += [f"  constant: {s.name}" for s in self.graph.state if s.kind == "constant"]
        lines += [f"  constant: {path} = {n!r} ({line})" for path, n, line in runner.surroundings.constants.told]
        lines += [f"  {line}" for found in runner.graphs.values() for captured in found for line in captured.explain()]
        return "\n".join(lines)


@called_in_c
class TracedFunction(_Told, Call):
    """A function that runs from its graphs."""

    def __init__(self, function):
        runner = Runner(function, getattr(function, "__name__", type(function).__name__), Surroundings(function))
        super().__init__(runner)
        self._runner, self.__wrapped__ = runner, function
        self.__name__, self.__doc__ = runner.name, getattr(function, "__doc__", None)

    def __repr__(self):
        return f"<traced {self._runner.name}>"


class TracedModule(_Told, Module):
    """A module that runs from its graphs; parameters, buffers and submodules are those of the traced one."""

    def __init__(self, module):
        refuse_lazy(module)
        super().__init__()
        for name in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            object.__setattr__(self, name, getattr(module, name))
        object.__setattr__(self, "original", module)
        object.__setattr__(self, "training", module.training)
        runner = Runner(module, type(module).__name__, Surroundings(module))
        object.__setattr__(self, "_runner", runner)
        object.__setattr__(self, "forward", Call(runner))
        object.__setattr__(self, "_methods", {})
        object.__setattr__(self, "_runners", {"forward": runner})

    @property
    def original_name(self):
        """Name of the class of the module that was traced."""
        return type(self.original).__name__

    def train(self, mode=True):
        super().train(mode)
        self.original.train(mode)
        return self

    def repeat(self, data):
        """Call it with each of the arguments in `data`, see `TracedFunction.repeat`; its hooks run at each step."""
        return repeated(self, data)

    def _add_method(self, name):
        method = getattr(self.original, name)
        runner = Runner(method, name, self._runner.surroundings)
        self._methods[name], self._runners[name] = Call(runner), runner
        return runner

    def runner_of(self, name):
        """What holds the graphs of a traced method; None where it has not been traced."""
        return self._runners.get(name)

    def __getattr__(self, name):
        methods = self.__dict__.get("_methods", {})
        if name in methods:
            return methods[name]
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["original"], name)


TopLevelTracedModule = TracedModule
