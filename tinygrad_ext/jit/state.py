"""What a captured program uses besides its arguments: modules, optimizers and tensors of its surroundings, by name."""

import contextlib
import functools
import inspect

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.nn import Module
from tinygrad_ext.optim import Optimizer

DEPTH, MANY = 6, 100  # how far, and how much of a container, is looked into


class Surroundings:
    """What a function or module can reach.

    Attributes: modules, optimizers: name -> object.
    """

    def __init__(self, function):
        self.modules, self.optimizers = {}, {}
        if isinstance(function, Module):
            self.modules[""] = function
        else:
            for name, value in _reached(function):
                place = self.modules if isinstance(value, Module) else self.optimizers
                place[name if name not in place else f"{name}.{len(place)}"] = value

    def name_of(self, tensor):
        """(path, kind) of a tensor, None for one that no module or optimizer holds."""
        return self._names().get(id(tensor))

    def _names(self):
        found = {}
        for prefix, module in self.modules.items():
            for kind, entries in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
                for name, tensor in entries:
                    path, _ = found.setdefault(id(tensor), (f"{prefix}.{name}" if prefix else name, kind))
                    if tensor.grad is not None:
                        found[id(tensor.grad)] = f"{path}.grad", "grad"
        for prefix, optimizer in self.optimizers.items():
            for g, group in enumerate(optimizer.param_groups):
                for i, param in enumerate(group["params"]):
                    path, _ = found.setdefault(id(param), (f"{prefix}.{g}.{i}", "parameter"))
                    for key, value in optimizer.state.get(param, {}).items():
                        if isinstance(value, Tensor):
                            found[id(value)] = f"{prefix}.{path}.{key}", "buffer"
        return found

    def switches(self):
        """What a capture depends on that is no tensor: training, hooks and structure of the modules, options and state
        of the optimizers."""
        if not self.modules and not self.optimizers:
            return ()
        states = tuple(
            tuple(map(len, o.state.values())) + tuple(_told(g) for g in o.param_groups)
            for o in self.optimizers.values()
        )
        return states, *(_switches_of(module) for module in self.modules.values())


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _switches_of(module):
    """Training, hooks and parts of a module, and of its parts."""
    d = module.__dict__
    hooks = [h for name in _HOOKS if d.get(name) for h in map(id, d[name].values())]
    parts = [_switches_of(part) for part in d["_modules"].values() if part is not None]
    return id(module), d["training"], *hooks, *parts


def _told(group):
    """The options of a parameter group that a graph is captured for: all but the learning rate."""
    return tuple(v for k, v in group.items() if k not in ("lr", "params", "initial_lr"))


def _reached(value, name="", depth=DEPTH, seen=None):
    """(name, module or optimizer) that a function can reach: by its closure, the globals that it names, its defaults,
    self, functions and containers among those, and attributes of the program's own objects."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (Module, Optimizer)):
        yield name, value
    elif depth:
        for part, inner in _parts(value):
            yield from _reached(inner, f"{name}.{part}" if name else part, depth - 1, seen)


def _parts(value):
    """(name, value) of what hangs on a function, a container or an object of the program's own."""
    if isinstance(value, (str, bytes, type, Tensor)) or inspect.ismodule(value):
        return
    if isinstance(value, (list, tuple)):
        yield from ((str(i), v) for i, v in enumerate(value[:MANY]))
    elif isinstance(value, dict):
        yield from ((str(k), v) for k, v in list(value.items())[:MANY])
    elif inspect.ismethod(value):
        yield "self", value.__self__
        yield "", value.__func__
    elif inspect.isfunction(value):
        yield from _parts_of_function(value)
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("args", value.args), ("kwargs", value.keywords))
    elif not type(value).__module__.startswith(("builtins", "tinygrad_ext", "numpy")):
        yield from getattr(value, "__dict__", {}).items()
        if callable(value):
            yield "", value.__call__


def _parts_of_function(function):
    yield "__wrapped__", getattr(function, "__wrapped__", None)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # not assigned yet
            yield name, cell.cell_contents
    for name in _names_in(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    yield "defaults", function.__defaults__ or ()
    yield "defaults", function.__kwdefaults__ or {}


def _names_in(code):
    """Names of globals in a function's code, and in that of functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _names_in(constant)
