"""Compiling one entry, a function or the method of a module, and running what came out."""

import inspect
import weakref

from tinygrad_ext.core.call.levels import levels_on
from tinygrad_ext.core.call.modes import get_modes, is_grad_enabled, set_modes
from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.graph import derivative
from tinygrad_ext.graph.check import type_of
from tinygrad_ext.graph.ir import values_in
from tinygrad_ext.graph.primitives import contexts as contexts_of_run
from tinygrad_ext.graph.primitives.objects import PYTHONS, also_error, fits, keep_caller, word_of
from tinygrad_ext.graph.types import ANY, BOOL, TENSOR, Type, accepts

from . import (  # each file adds its handlers to the compiler's tables
    builtins,
    calls,
    captured,
    classes,
    comprehensions,
    conditions,
    containers,
    contexts,
    expressions,
    forked,
    generators,
    hints,
    items,
    iteration,
    loops,
    modules,
    operators,
    ops,
    ordering,
    outside,
    package,
    questions,
    sparse,
    statements,
    tensors,
    traced,
)
from .compiler import Compiler, Frame
from .functions import Parameters, declared_default, lookup_of, result_of
from .interfaces import why_not
from .overloads import check_implemented
from .schema import Argument, FunctionSchema, told_class
from .source import source_of
from .types import not_a_member, type_of_python

HANDLERS = (
    builtins, calls, captured, classes, comprehensions, conditions, containers, contexts, expressions, forked,
    generators, hints, items, iteration, loops, modules, operators, ops, ordering, outside, package, questions, sparse,
    statements, tensors, traced,
)  # fmt: skip


_PLAIN = frozenset((Tensor, Parameter, int, float, bool, str, type(None)))  # that hold no sparse tensor
_CONTAINERS = frozenset((list, tuple, dict))


class Entry:
    """A compiled function.

    Attributes: graph; parameters (names, defaults); accessors, one for each state of the graph: (state, owner, name);
    owner, the type of self where it is a method of a module.
    """

    def __init__(self, graph, parameters, types, accessors, skip, returns):
        self.graph, self.types, self.accessors = graph, types, accessors
        self.names, self.defaults = parameters.names[skip:], parameters.defaults
        self.doc, self.broadcasts, self.owner = None, {}, None
        self.positional, self.annotations, self.returns = parameters.positional - skip, parameters.annotations, returns

    def __call__(self, args, kwargs):
        """Run the graph with the arguments of a call."""
        graph = self.graph
        row = self._bound(args, kwargs)
        state = [getattr(owner, name) for _, owner, name in self.accessors]
        if not _PLAIN.issuperset(map(type, state)):
            for (each, _, _), value in zip(self.accessors, state):
                if _holds_sparse(value):
                    self._check_sparse(each.value, f"'{each.name}'", type(value) in _CONTAINERS)
        entered = contexts_of_run.count()
        try:
            if not graph.effects:
                wants = levels_on() or (is_grad_enabled() and _wants_grad([*row, *state]))
                result, after = (_derive if wants else _execute)(graph, row, state)
            else:
                result, after = _interpret(graph, row, state)
        except BaseException as error:
            contexts_of_run.leave_to(entered)
            if isinstance(error, PYTHONS):
                raise also_error(error) from None
            raise
        for (each, owner, name), new in zip(self.accessors, after):
            if each.written:
                setattr(owner, name, new)
        return result

    # ---- arguments ------------------------------------------------------------------------------------------------

    @property
    def declaration(self):
        """A FunctionSchema: "f(Tensor x, int n=2) -> Tensor"."""
        told = [] if self.owner is None else [Argument("self", self.owner)]
        for i, name in enumerate(self.names):
            default = (self.defaults[name],) if name in self.defaults else ()
            told.append(Argument(name, self.types[name], default, i >= self.positional, self.broadcasts.get(name)))
        return FunctionSchema(self.graph.name, told, [Argument("", self.returns)])

    def _bound(self, args, kwargs):
        if len(args) > self.positional:
            raise RuntimeError(
                f"{self.graph.name}() expected at most {self.positional} argument(s) but received {len(args)} "
                f"argument(s). Declaration: {self.declaration}"
            )
        found = dict(zip(self.names, args))
        for name, value in kwargs.items():
            if name not in self.names:
                raise RuntimeError(
                    f"Unknown keyword argument '{name}' for operator '{self.graph.name}'. "
                    f"Declaration: {self.declaration}"
                )
            if name in found:
                raise RuntimeError(f"{self.graph.name}(): argument '{name}' is given twice")
            found[name] = value
        return [self._checked(i, name, found) for i, name in enumerate(self.names)]

    def _checked(self, position, name, found):
        if name not in found:
            if name not in self.defaults:
                raise RuntimeError(
                    f"{self.graph.name}() is missing value for argument '{name}'. Declaration: {self.declaration}"
                )
            return self.defaults[name]
        value, wanted = found[name], self.types[name]
        if name in self.broadcasts and fits(value, wanted.args[0]):
            return [value] * self.broadcasts[name]
        if wanted is TENSOR and isinstance(value, Tensor):
            if type(value) is not Tensor and _holds_sparse(value):
                self._check_sparse(self._input(name), f"argument '{name}'", False)
            return value
        given = type_of_python(value)
        if (given is not None and accepts(wanted, given)) or fits(value, wanted):
            why = given and classes.misfit(value, given)
            if why:
                raise RuntimeError(f"{self.graph.name}() argument '{name}': {why}. Declaration: {self.declaration}")
            if type(value) not in _PLAIN and _holds_sparse(value):
                self._check_sparse(self._input(name), f"argument '{name}'", True)
            return value
        converted = _converted(value, wanted)
        if converted is not None:
            return converted
        if wanted is ANY:
            return value
        inferred, told_wanted = "", wanted
        why = why_not(value, wanted)
        if self.annotations.get(name) is None:
            told_wanted = f"{wanted} (inferred)"
            inferred = f"\nInferred '{name}' to be of type 'Tensor' because it was not annotated with an explicit type."
        told = given if given is not None else type(value).__name__
        inferred += classes.missing(value, wanted)
        if wanted.word == "Union":
            inferred += f"\n{not_a_member(wanted, told)}"
        raise RuntimeError(
            f"{self.graph.name}() Expected a value of type '{told_wanted}' for argument '{name}' but instead found "
            f"type '{told}'.{inferred}{why and f' {why}.'}\nPosition: {position + (self.owner is not None)}\n"
            f"Value: {value!r}\nDeclaration: {self.declaration}"
        )

    def _input(self, name):
        return next(v for v in self.graph.inputs if v.name == name)

    def _check_sparse(self, value, told, inside):
        """Raise where a sparse tensor is given that an op takes: their kernels compute with plain ones.

        inside: it stands in a list, a tuple or a dict, or may be something else, and its way is not followed."""
        for node in self.graph.walk():
            if node.op.startswith("aten::") and (inside or any(v is value for v in values_in(node.args))):
                raise RuntimeError(
                    f"{self.graph.name}(): {told} is or holds a sparse tensor, and {node.op} takes "
                    "plain ones in a compiled program; pass to_dense(), or use sparse.mm(), sparse.addmm() and "
                    "sparse.sum() in it"
                )


def _holds_sparse(value):
    if isinstance(value, Tensor):
        return type(value) not in _PLAIN and value.layout is not dtypes.strided
    if type(value) in _CONTAINERS:
        return any(map(_holds_sparse, value.values() if type(value) is dict else value))
    return False


def _converted(value, wanted):
    """The value as one of the wanted type, where it goes over without a loss; else None."""
    word = wanted.word
    if word == "Optional":
        return _converted(value, wanted.args[0])
    if word in ("float", "complex") and type(value) in (int, bool, float):
        return float(value) if word == "float" else complex(value)
    if isinstance(value, Tensor):
        if word in ("int", "float", "complex") and value.dim() == 0 and not value.requires_grad:
            return None if word == "int" and value.is_floating_point() else value.item()
        return None
    if word == "str" and type(value) is bytes:
        return value.decode("latin-1")  # a character for each byte, as ord() counts them
    if word == "Device" and type(value) is str:
        return dtypes.device(value)
    if word == "List" and type(value) is range:
        return _converted(list(value), wanted)
    if word in ("List", "Tuple") and type(value) in (list, tuple):
        inner = wanted.args * len(value) if word == "List" else wanted.args
        made = [v if fits(v, t) else bool(v) if _is_truth(v, t) else _converted(v, t) for v, t in zip(value, inner)]
        if None not in made and len(made) == len(value):
            return made if word == "List" else tuple(made)
    return None


def _is_truth(value, wanted):
    """Whether an item is a number that stands for True or False, where a list has others too."""
    return wanted is BOOL and type(value) is int and value in (0, 1)


def _wants_grad(values):
    """Whether a gradient may be asked of what is computed from these: then eager autograd has to see it."""
    for value in values:
        if isinstance(value, Tensor):
            if value.requires_grad:
                return True
        elif isinstance(value, (list, tuple)):
            if _wants_grad(value):
                return True
        elif isinstance(value, dict):
            if _wants_grad(value.values()):
                return True
        elif value is not None and not isinstance(value, (int, float, str, complex)):
            return True  # an object, which may hold any
    return False


def _execute(graph, row, state):
    result, *after = graph.executor(*row, *state)
    return result, after


def _derive(graph, row, state):
    (result,), after = derivative.run(graph, row, state)
    return result, after


def _interpret(graph, row, state):
    modes = get_modes()
    try:
        (result,), after = graph.execute_one_by_one(row, state)
    except BaseException:
        set_modes(*modes)
        raise
    return result, after


def compile_entry(function, name=None, bound=(), examples=None, body=None):
    """The Entry of a Python function.

    Args:
        bound: operands in front of its arguments.
        examples: types for the arguments without an annotation.
        body: function(c, operands, {}) -> operand that compiles something else with the same arguments.

    Raises:
        CompileError: the program does not type, or uses what script does not take.
    """
    function = inspect.unwrap(function)
    source = source_of(function)
    c = Compiler(_graph_name(name or source.name))
    frame = Frame(source, lookup_of(function), owner=function if body is None else body)
    frame.bound = bound
    c.frames.append(frame)
    with c.at(source.tree):
        check_implemented(c, function, bound)
        parameters = Parameters(c, function, source, len(bound))
        types = _declare(c, parameters, bound, examples or ())
        frame.root = c.scope
        frame.returns = None if parameters.returns is None else c.type_of_annotation(parameters.returns)
        if body is None:
            c.statements(source.body)
            result = result_of(c, frame)
        else:
            result = body(c, [c.scope.bound[n] for n in parameters.names[len(bound) :]], {})
        graph = c.finish(result)
    accessors = list(c.accessors.values())
    returns = frame.returns or (graph.outputs and type_of(graph.outputs[0]))
    entry = Entry(graph, parameters, types, accessors, len(bound), returns)
    entry.doc = function.__doc__
    if bound and isinstance(bound[0], modules.ModuleValue):
        entry.owner = told_class(bound[0].cls)
    told = {name: c.broadcasts.get(parameters.annotations.get(name)) for name in entry.names}
    entry.broadcasts = {name: count for name, count in told.items() if count}
    return entry


def _graph_name(name):
    return "lambda" if name == "<lambda>" else name


def _declare(c, parameters, bound, examples):
    """Inputs of the graph for the parameters; their types by name."""
    c.scope.bound.update(zip(parameters.names, bound))
    types = {}
    for i, name in enumerate(parameters.names[len(bound) :]):
        node = parameters.annotations.get(name)
        type = c.type_of_annotation(node) if node is not None else examples[i] if i < len(examples) else TENSOR
        types[name] = c.scope.declared[name] = type
        c.scope.bound[name] = c.graph.input(name, type)
        if node is None and i >= len(examples):
            c.untold[id(c.scope.bound[name])] = name
        if name in parameters.defaults:
            parameters.defaults[name] = declared_default(parameters.defaults[name], type)
            _check_default(c, name, type, parameters.defaults[name], node)
    return types


def _check_default(c, name, type, default, node):
    given = type_of_python(default)
    if given is not None and (accepts(type, given) or fits(default, type)):
        return
    inferred = f" '{name}' is Tensor because it has no annotation." if node is None else ""
    c.fault(f"Expected a default value of type {type} for parameter '{name}', not {default!r}.{inferred}")


# ---- methods of objects that a graph calls --------------------------------------------------------------------------

_of_objects = weakref.WeakKeyDictionary()  # class -> {method: Entry}


@keep_caller
def _call_of_object(value, name, args):
    """A method of an object of a class, compiled: a graph may come from a file, and runs no other Python."""
    cls = type(value)
    entries = _of_objects.setdefault(cls, {})
    if name not in entries:
        function = inspect.getattr_static(cls, name, None)
        if not inspect.isfunction(function):
            raise AttributeError(f"{cls.__name__} has no method '{name}'")
        entries[name] = compile_entry(function, examples=[Type(word_of(cls))])
    return entries[name]((value, *args), {})
