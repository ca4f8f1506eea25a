"""What a captured program uses besides its arguments: modules, optimizers and tensors of its surroundings, by name."""

import inspect

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.nn import Module
from tinygrad_ext.optim import Optimizer


class Surroundings:
    """What a function or module can reach.

    Attributes:
        modules, optimizers: name -> object, those that the function's closure, globals and defaults name.
        names: id of a tensor -> (path, kind), of parameters, buffers and optimizers' state.
    """

    def __init__(self, function):
        self.modules, self.optimizers = {}, {}
        if isinstance(function, Module):
            self.modules[""] = function
        else:
            for name, value in _reached(function):
                if isinstance(value, Module):
                    self.modules[name] = value
                elif isinstance(value, Optimizer):
                    self.optimizers[name] = value

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


def _reached(function):
    """(name, value) of what a function's closure, globals, defaults and self hold."""
    function = inspect.unwrap(function)
    owner = getattr(function, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        yield "self", owner
        if not isinstance(owner, Module):
            yield from ((f"self.{name}", value) for name, value in getattr(owner, "__dict__", {}).items())
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
