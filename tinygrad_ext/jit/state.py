"""What a captured program uses besides its arguments: modules, optimizers and tensors of its surroundings, by name."""

import builtins
import contextlib
import functools
import inspect

from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.nn import Module, hooks
from tinygrad_ext.nn.registry import own
from tinygrad_ext.optim import Optimizer, optimizer

from .constants import (
    PLAIN,
    Constants,
    Same,
    in_slots,
    is_own,
    is_own_class,
    is_same,
    mark,
    members,
    names_of,
    swapped,
    table_of,
)
from .watch import ABSENT, Watch

DEPTH, MANY = 6, 100  # how far, and how much of a container, is looked into

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_TABLES = ("_modules", "_parameters", "_buffers", *_HOOKS)
_STEP_HOOKS = ("_pre_hooks", "_post_hooks")
_OF_ALL = (
    hooks._global_forward_hooks, hooks._global_forward_pre_hooks, hooks._global_backward_hooks,
    hooks._global_backward_pre_hooks, optimizer._global_pre_hooks, optimizer._global_post_hooks,
)  # fmt: skip
_BUILTINS = vars(builtins)
_RATES = ("lr", "params", "initial_lr")  # of a parameter group: a graph is not captured for these


def keeps_grad(tensor):
    """Whether a tensor has a `.grad`; reading that of another warns."""
    return tensor.is_leaf or tensor.retains_grad


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
        self.changed = {}  # id -> list or dict that the program itself changes
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
        self._rows, self._ties, self._seen = {}, [], {}
        self.constants, self._tensors, self._kinds = Constants(), {}, set()
        self._tables, self._forwards = {}, {}  # class -> its dict; class of a module -> its forward
        self._take(_reached(self.function, seen=self._seen))
        self.optimizers.update((f"optimizer.{i}", o) for i, o in enumerate(self.met))
        key, done = [tuple([self._whole(table) for table in _OF_ALL])], 0
        while done < len(self.modules):  # the attributes of a module may lead to others
            name, module = list(self.modules.items())[done]
            key.append(self._module(name, module, {}))
            done += 1
        key += [self._optimizer(name, o) for name, o in self.optimizers.items()]
        for name, tensor in self._tensors.items():
            self._tensor(name, tensor, "constant")
        for tensor, (path, _) in list(self._paths.values()):
            if keeps_grad(tensor) and tensor.grad is not None:
                self._paths.setdefault(id(tensor.grad), (tensor.grad, (f"{path}.grad", "grad")))
        key += self._library()
        for name, told, trail in self.constants.settle():
            key.append((name, told))
            self._follow(trail)
        self.key = (*key, *self._ties)
        self.watch = Watch([(c, list(d), list(d.values()), whole) for c, d, whole in self._rows.values()])

    def _take(self, found, line=None):
        """Sort what `_reached` found. line: that reads all of it."""
        for name, value, trail in found:
            if type(value) is Carried:  # what a capture left in a container of the program's
                continue
            if not isinstance(value, (Module, Optimizer, Tensor)):
                if any(id(container) in self.changed for container, _, _ in trail):
                    continue
                self.constants.take(name, value, trail, line)
                if type(value) in (list, dict) and len(value) <= MANY and id(value) not in self.changed:
                    self._whole(value)
                    self._ties.append((name, len(value) if type(value) is list else tuple(map(mark, value))))
                continue
            place = self.modules if isinstance(value, Module) else self.optimizers
            place = self._tensors if isinstance(value, Tensor) else place
            place[name if name not in place else f"{name}.{len(place)}"] = value
            self._follow(trail)

    def _follow(self, trail):
        """Watch what leads to something."""
        for container, key, inner in trail:
            if id(container) not in self.changed:
                self._rows.setdefault(id(container), (container, {}, False))[1][key] = inner

    def leave_out_changed(self):
        """Watch no more the lists and dicts that the program itself changed since the last look, while captured."""
        changed = [c for c, entries, whole in self._rows.values() if whole and not _holds(c, entries)]
        own = [c for c in changed if id(c) in self._seen]
        self.changed.update((id(c), c) for c in own)
        if own:
            self.look()

    def seen(self):
        """Functions, containers, objects and whatever else the last look came by."""
        return list(self._seen.values())

    def parts(self):
        """(path, module) of all modules, those within others too."""
        found, seen = [], set()
        for path, module in self.modules.items():
            found += module.named_modules(seen, path)
        return found

    def used_of(self):
        """(dict, names) of what the program reads or writes of classes, modules of Python and other dicts."""
        found = {
            id(c): (c, {*entries}) for c, entries, whole in self._rows.values() if isinstance(c, dict) and not whole
        }
        for _, _, trail, _ in self.constants.held:
            for container, key, _ in trail:
                if isinstance(container, dict):
                    found.setdefault(id(container), (container, set()))[1].add(key)
        for kind in {type(part) for module in self.modules.values() for part in module.modules()}:
            for table in [table_of(cls) for cls in kind.__mro__ if is_own_class(cls)]:
                found.setdefault(id(table), (table, set()))[1].update(self.constants.written_by(kind) & {*table})
        return list(found.values())

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
        return tuple([Same(v) for v in entries.values()])

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
            return Same(module)
        seen[id(module)] = module
        own(module, "_buffers")  # else its tables would be replaced while it is written down
        found = self._some(module.__dict__, ("training", "forward", *_TABLES))
        tables = {k: table for k, table in found.items() if isinstance(table, dict)}
        hooks_of_it = [self._whole(tables[k]) for k in _HOOKS if k in tables]
        for table in [tables[k] for k in _HOOKS if k in tables]:
            for hook in list(table.values()):
                path = f"{name}.{getattr(hook, '__name__', 'hook')}".lstrip(".")
                self._take(_reached(hook, path, DEPTH, self._seen))
        told = [Same(module), found["training"], Same(found["forward"]), self._forward(type(module)), *hooks_of_it]
        for table in tables.values():
            self._whole(table)
        for table, kind in (("_parameters", "parameter"), ("_buffers", "buffer")):
            for key, tensor in tables.get(table, {}).items():
                told.append((key, tensor is None))
                if tensor is not None:
                    self._tensor(f"{name}.{key}" if name else key, tensor, kind)
        self._attributes(name, module)
        for key, part in tables.get("_modules", {}).items():
            told.append(key)
            if part is not None:
                told.append(self._module(f"{name}.{key}" if name else key, part, seen))
        return tuple(told)

    def _attributes(self, path, module):
        """What the methods of a module read of it, besides its parts, and a forward() of its own."""
        parts = {name for table in _TABLES[:3] for name in module.__dict__.get(table) or ()}
        found = [row for row in self.constants.of_module(module, Module) if row[0] not in parts]
        self._class(path, module, parts)
        forward = module.__dict__.get("forward")
        if forward is not None:
            found.append(("forward", forward, None))
        for name, value, line in found:
            trail = ((module.__dict__, name, value),)
            reached = _reached(value, f"{path}.{name}" if path else name, DEPTH // 2, self._seen, trail)
            self._take(reached, line)

    def _forward(self, kind):
        if kind not in self._forwards:
            table = self._table_with("forward", kind.__mro__)
            self._forwards[kind] = Same(table and table["forward"])
        return self._forwards[kind]

    def _class(self, path, module, parts):
        """What the program's own classes of a module have of what their methods read: numbers, lists, the methods."""
        kind, own = type(module), module.__dict__
        names = tuple([n for n in self.constants.of_class(kind) if n not in own and n not in parts])
        classes = [cls for cls in kind.__mro__ if is_own_class(cls)]
        self._some(own, [n for n in names if any(n in vars(cls) for cls in classes)])  # may come to stand in front
        if (kind, names) in self._kinds:
            return
        self._kinds.add((kind, names))
        for name in names:
            table = self._table_with(name, classes)
            if table is not None:
                trail = ((table, name, table[name]),)
                self._take(_reached(table[name], f"{path}.{name}" if path else name, DEPTH, self._seen, trail))

    def _table_with(self, name, classes):
        """The dict of the first class that has a name, None for none. One that comes to stand in front is noticed."""
        for cls in classes:
            table = self._tables.get(cls)
            if table is None:
                table = self._tables[cls] = table_of(cls)
            self._some(table, (name,))
            if name in table:
                return table
        return None

    def _library(self):
        """What stands in modules of the library in the place of what the program's functions ask for there."""
        found, done, read = [], set(), self.constants.all_read()
        owners = {id(m): m for f in self._seen.values() if inspect.isfunction(f) for m in _modules_of(f)}
        for owner in owners.values():
            for table, names, others in swapped(owner, read, done):
                self._some(table, names)
                found += [(owner.__name__, name, Same(value)) for name, value in others.items()]
        return found

    def _optimizer(self, name, o):
        """Options and state of an optimizer."""
        found = self._some(o.__dict__, ("param_groups", "state", *_STEP_HOOKS))
        told = [Same(o), *[self._whole(found[k]) for k in _STEP_HOOKS if isinstance(found[k], dict)]]
        for container in (o.param_groups, o.state, *(group["params"] for group in o.param_groups)):
            self._whole(container)
        for g, group in enumerate(o.param_groups):
            self._some(group, ("params",))
            told += [(k, mark(v)) for k, v in self._some(group, [k for k in group if k not in _RATES]).items()]
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
    if type(value) in PLAIN or value is ABSENT:
        yield name, value, trail
        return
    if id(value) in seen or isinstance(value, type) or inspect.ismodule(value):
        return
    seen[id(value)] = value
    yield name, value, trail
    if depth and not isinstance(value, (Module, Optimizer, Tensor)):
        for part, inner, container, key in _parts(value):
            row = () if container is None else ((container, key, inner),)
            yield from _reached(inner, f"{name}.{part}" if name else part, depth - 1, seen, (*trail, *row))


def _parts(value):
    """(name, value, container, key) of what hangs on a function, a container or an object of the program's own."""
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
    elif isinstance(value, (staticmethod, classmethod)):
        yield "", value.__func__, None, None
    elif isinstance(value, property):
        yield "", value.fget, None, None
    elif is_own(value):
        attributes = getattr(value, "__dict__", {})
        yield from ((k, v, attributes, k) for k, v in attributes.items())
        yield from ((k, v, value, k) for k, v in in_slots(value, ABSENT).items())
        fronts = [attributes] if attributes is getattr(value, "__dict__", None) else []
        for cls in type(value).__mro__:
            if is_own_class(cls):
                table = table_of(cls)
                found = [k for k in table if k[:2] != "__" and k not in attributes]
                yield from ((k, table[k], table, k) for k in found)
                yield from ((k, ABSENT, before, k) for k in found for before in fronts if k not in before)
                fronts.append(table)
        if callable(value):
            yield "", value.__call__, None, None
    elif inspect.isfunction(getattr(value, "__wrapped__", None)):  # such as what `compile` gave
        yield "", value.__wrapped__, None, None


def _modules_of(function):
    found = [function.__globals__.get(name) for name in names_of(function.__code__)[0]]
    found += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not assigned yet
            found.append(cell.cell_contents)
    return [value for value in found if inspect.ismodule(value)]


def _parts_of_function(function):
    yield "__wrapped__", getattr(function, "__wrapped__", None), None, None
    names, attributes = names_of(function.__code__)
    table = function.__globals__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    known = [name for name in names if name not in cells and (name in table or name not in _BUILTINS)]
    found = [(name, table.get(name, ABSENT), table, name) for name in known]
    for name, cell in cells.items():
        found.append((name, ABSENT, cell, 0))
        with contextlib.suppress(ValueError):  # not assigned yet
            found[-1] = name, cell.cell_contents, cell, 0
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    yield from found
    for name, value in [*(row[:2] for row in found), *(("defaults", value) for value in defaults)]:
        yield from ((f"{name}.{a}", v, held, a) for a, v, held in members(value, attributes))
    yield "defaults", function.__defaults__ or (), None, None
    yield "defaults", function.__kwdefaults__ or {}, None, None


def _holds(container, entries):
    """Whether a list or dict has these entries, and no others; an equal number or text is the same one."""
    now = dict(enumerate(container)) if isinstance(container, list) else container
    return len(now) == len(entries) and all(k in now and is_same(now[k], v) for k, v in entries.items())
