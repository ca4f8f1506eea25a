"""What a captured program uses besides its arguments: modules, optimizers and tensors of its surroundings, by name."""

import contextlib
import functools
import inspect

from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.nn import Module, hooks
from tinygrad_ext.optim import Optimizer, optimizer

from .constants import NUMBERS, Constants
from .watch import ABSENT, Watch

DEPTH, MANY = 6, 100  # how far, and how much of a container, is looked into

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_TABLES = ("_modules", "_parameters", "_buffers", *_HOOKS)
_STEP_HOOKS = ("_pre_hooks", "_post_hooks")
_OF_ALL = (
    hooks._global_forward_hooks, hooks._global_forward_pre_hooks, hooks._global_backward_hooks,
    hooks._global_backward_pre_hooks, optimizer._global_pre_hooks, optimizer._global_post_hooks,
)  # fmt: skip
_RATES = ("lr", "params", "initial_lr")  # of a parameter group: a graph is not captured for these


class Surroundings:
    """What a function or module can reach, as of the last `look`.

    Attributes:
        modules, optimizers: name -> object. at: path -> tensor.
        key: what a capture depends on that is no tensor: training, hooks and structure of the modules, options and
            state of the optimizers, tensors that have two names.
        watch: a watch.Watch that holds as long as another look would find the same.
    """

    def __init__(self, function):
        self.function, self.met = function, []
        self.look()

    def meet(self, error):
        """Whether the optimizer in whose step an error was raised is new: one that no variable leads to."""
        found = next((o for o in error.owners if isinstance(o, Optimizer)), None)
        if found is None or any(o is found for o in self.met):
            return False
        for param, entry in list(found.state.items()):  # what the capture that failed left there
            for key in [k for k, v in entry.items() if type(v) is Carried]:
                del entry[key]
            if not entry:
                del found.state[param]
        self.met.append(found)
        self.look()
        return True

    def look(self):
        """See anew what can be reached."""
        self.modules, self.optimizers, self.at, self._paths = {}, {}, {}, {}
        self._rows, self._ties = {}, []
        self.constants, tensors = Constants(), {}
        for name, value, trail in _reached(self.function):
            if not isinstance(value, (Module, Optimizer, Tensor)):
                self.constants.take(name, value, trail)
                continue
            place = self.modules if isinstance(value, Module) else self.optimizers
            place = tensors if isinstance(value, Tensor) else place
            place[name if name not in place else f"{name}.{len(place)}"] = value
            for container, key, inner in trail:
                self._rows.setdefault(id(container), (container, {}, False))[1][key] = inner
        self.optimizers.update((f"optimizer.{i}", o) for i, o in enumerate(self.met))
        self.key = (
            tuple([self._whole(table) for table in _OF_ALL]),
            *[self._module(name, module, {}) for name, module in self.modules.items()],
            *[self._optimizer(name, o) for name, o in self.optimizers.items()],
        )
        for name, tensor in tensors.items():
            self._tensor(name, tensor, "constant")
        for tensor, (path, _) in list(self._paths.values()):
            if tensor.grad is not None:
                self._paths.setdefault(id(tensor.grad), (tensor.grad, (f"{path}.grad", "grad")))
        numbers = []
        for name, value, trail in self.constants.settle():
            numbers.append((name, value))
            for container, key, inner in trail:
                self._rows.setdefault(id(container), (container, {}, False))[1][key] = inner
        self.key = (*self.key, *self._ties, *numbers)
        self.watch = Watch([(c, list(d), list(d.values()), whole) for c, d, whole in self._rows.values()])

    def name_of(self, tensor):
        """(path, kind) of a tensor, None for one that nothing holds by name."""
        return self._paths.get(id(tensor), (None, None))[1]

    def switches(self):
        """The key, as it is now."""
        if not self.watch.check():
            self.look()
        return self.key

    # ---- what was found --------------------------------------------------------------------------------------------

    def _whole(self, table):
        """Watch all of a dict or list; what tells its entries apart."""
        entries = dict(enumerate(table)) if isinstance(table, list) else dict(table)
        self._rows[id(table)] = table, entries, True
        return tuple([id(v) for v in entries.values()])

    def _some(self, table, keys):
        """Watch entries of a dict; what they are."""
        entries = {k: table.get(k, ABSENT) for k in keys}
        known = self._rows.get(id(table))
        self._rows[id(table)] = table, {**(known[1] if known else {}), **entries}, bool(known and known[2])
        return entries

    def _tensor(self, path, tensor, kind):
        if path in self.at:
            path = f"{path}.{len(self.at)}"
        known = self._paths.setdefault(id(tensor), (tensor, (path, kind)))[1][0]
        if known != path:
            self._ties.append((path, known))
        else:
            self.at[path] = tensor

    def _module(self, name, module, seen):
        """Training, hooks and parts of a module, and of its parts."""
        if id(module) in seen:
            return id(module)
        seen[id(module)] = module
        found = self._some(module.__dict__, ("training", *_TABLES))
        tables = {k: table for k, table in found.items() if isinstance(table, dict)}
        told = [id(module), found["training"], *[self._whole(tables[k]) for k in _HOOKS if k in tables]]
        for table in tables.values():
            self._whole(table)
        for table, kind in (("_parameters", "parameter"), ("_buffers", "buffer")):
            for key, tensor in tables.get(table, {}).items():
                told.append((key, tensor is None))
                if tensor is not None:
                    self._tensor(f"{name}.{key}" if name else key, tensor, kind)
        told += self._some(module.__dict__, self.constants.of_module(name, module, Module)).items()
        for key, part in tables.get("_modules", {}).items():
            told.append(key)
            if part is not None:
                told.append(self._module(f"{name}.{key}" if name else key, part, seen))
        return tuple(told)

    def _optimizer(self, name, o):
        """Options and state of an optimizer."""
        found = self._some(o.__dict__, ("param_groups", "state", *_STEP_HOOKS))
        told = [id(o), *[self._whole(found[k]) for k in _STEP_HOOKS if isinstance(found[k], dict)]]
        for container in (o.param_groups, o.state, *(group["params"] for group in o.param_groups)):
            self._whole(container)
        for g, group in enumerate(o.param_groups):
            self._some(group, ("params",))
            told += self._some(group, [k for k in group if k not in _RATES]).items()
            for i, param in enumerate(group["params"]):
                self._tensor(f"{name}.{g}.{i}", param, "parameter")
                state = o.state.get(param)
                if isinstance(state, dict):
                    self._whole(state)
                    told.append(tuple(state))
                    path = self._paths[id(param)][1][0]
                    for key, value in state.items():
                        if isinstance(value, Tensor):
                            self._tensor(f"{name}.{path}.{key}", value, "buffer")
        return tuple(told)


def _reached(value, name="", depth=DEPTH, seen=None, trail=()):
    """(name, module, optimizer or tensor, what leads there) that a function can reach: by its closure, the globals that
    it names, its defaults, self, functions and containers among those, and attributes of the program's own objects.

    What leads there: (dict, list or cell, key, what stands there) each, without what cannot change.
    """
    seen = {} if seen is None else seen
    if type(value) in NUMBERS:
        yield name, value, trail
        return
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, (Module, Optimizer, Tensor)):
        yield name, value, trail
    elif depth:
        if inspect.isfunction(value) or _is_own(value):
            yield name, value, trail
        for part, inner, container, key in _parts(value):
            row = () if container is None else ((container, key, inner),)
            yield from _reached(inner, f"{name}.{part}" if name else part, depth - 1, seen, (*trail, *row))


def _is_own(value):
    """Whether a value is an object of a class of the program's own."""
    return not type(value).__module__.startswith(("builtins", "tinygrad_ext", "numpy", "functools", "types"))


def _parts(value):
    """(name, value, container, key) of what hangs on a function, a container or an object of the program's own."""
    if isinstance(value, (str, bytes, type)) or inspect.ismodule(value):
        return
    if isinstance(value, (list, tuple)):
        held = value if type(value) is list else None
        yield from ((str(i), v, held, i) for i, v in enumerate(value[:MANY]))
    elif isinstance(value, dict):
        yield from ((str(k), v, value, k) for k, v in list(value.items())[:MANY])
    elif inspect.ismethod(value):
        yield "self", value.__self__, None, None
        yield "", value.__func__, None, None
    elif inspect.isfunction(value):
        yield from _parts_of_function(value)
    elif isinstance(value, functools.partial):
        yield from (("", part, None, None) for part in (value.func, value.args, value.keywords))
    elif _is_own(value):
        attributes = getattr(value, "__dict__", {})
        yield from ((k, v, attributes, k) for k, v in attributes.items())
        if callable(value):
            yield "", value.__call__, None, None


def _parts_of_function(function):
    yield "__wrapped__", getattr(function, "__wrapped__", None), None, None
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # not assigned yet
            yield name, cell.cell_contents, cell, 0
    for name in _names_in(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name], function.__globals__, name
    yield "defaults", function.__defaults__ or (), None, None
    yield "defaults", function.__kwdefaults__ or {}, None, None


def _names_in(code):
    """Names of globals in a function's code, and in that of functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _names_in(constant)
