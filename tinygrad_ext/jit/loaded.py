"""`LoadedModule`: a program from an archive as a module, whose state stands where the program has it."""

import io
import warnings
from collections import ChainMap
from collections.abc import MutableMapping
from types import SimpleNamespace

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.interop import storage_of
from tinygrad_ext.core.call.modes import get_modes, is_grad_enabled, set_modes
from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.graph import Program, Type
from tinygrad_ext.graph.primitives import GuardFailed, contexts
from tinygrad_ext.graph.primitives.objects import PYTHONS, also_error
from tinygrad_ext.graph.trees import leaves_of, put, tensor_at
from tinygrad_ext.nn import ModuleDict, ModuleList, Sequential

from .keys import loose, told
from .notes import default_of
from .script.entry import Entry
from .script.interfaces import interface_of_archive
from .script.schema import Argument, FunctionSchema
from .script.script_function import ScriptFunction
from .script.script_module import CompiledForward, ScriptModule
from .switches import TracerWarning


class Places(MutableMapping):
    """The state of a program by name: attributes of modules, and what has no place in a module."""

    def __init__(self):
        self.owners, self.rest, self._named = {}, {}, {}

    def place(self, name):
        """(object, attribute) under which a value stands."""
        if name in self.owners:
            return self.owners[name]
        return self._named.setdefault(name, _Named(self.rest, name)), "value"

    def __getitem__(self, name):
        if name in self.owners:
            owner, attribute = self.owners[name]
            return getattr(owner, attribute)
        return self.rest[name]

    def __setitem__(self, name, value):
        if name in self.owners:
            setattr(*self.owners[name], value)
        else:
            self.rest[name] = value

    def __delitem__(self, name):
        del (self.owners if name in self.owners else self.rest)[name]

    def __iter__(self):
        return iter([*self.owners, *self.rest])

    def __len__(self):
        return len(self.owners) + len(self.rest)


class _Named:
    """An entry of a dict as an attribute, `value`."""

    def __init__(self, table, name):
        self._table, self._name = table, name

    @property
    def value(self):
        return self._table[self._name]

    @value.setter
    def value(self, new):
        self._table[self._name] = new


class LoadedPart(ScriptModule):
    """A module of a program from an archive: its parameters, buffers, attributes, and the methods it was saved with."""

    def __init__(self, path=""):
        super().__init__()
        self.__dict__.update(_path=path, _program=None, _name="Module", _names={})

    def _belong(self, program):
        """Be what a program says of the module at this path."""
        own, told = self.__dict__, program.notes.get("", {})
        name = told.get("classes", {}).get(self._path) if self._path else told.get("name", "LoadedModule")
        own["_program"], own["_name"] = program, str(name or "Module")
        own["_names"] = names = {}  # of a method -> of its graph in the program, the first one of several
        for full, note in _methods_told(program):
            if note.get("part", "") == self._path:
                names.setdefault(note.get("method" if self._path else "of", full), full)

    def compile_all(self):
        """Nothing: its methods are graphs already."""

    @property
    def original_name(self):
        """Name of the class or function that was saved."""
        return self._name

    def __call__(self, *args, **kwargs):
        if "__call__" in self._names:  # with the hooks that the module had
            return LoadedMethod(self, "__call__")(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    forward = CompiledForward()

    def _method(self, name):
        if name not in self._names:
            raise AttributeError(
                f"{self._name} has no method '{name}'; it was saved with {', '.join(self._names) or 'none'}"
            )
        return LoadedMethod(self, name)

    def _stored(self, name):
        """The Entry of a scripted method, None for others."""
        method = LoadedMethod(self, name)
        scripted = name in self._names and method.notes(method.full).get("kind") == "script"
        return method.entry() if scripted else None

    def __getattr__(self, name):
        if name == "forward" or name in self.__dict__.get("_names", ()):
            return self._method(name)
        return super().__getattr__(name)

    def prepared(self, name, args, kwargs):
        """(name of the graph that takes these arguments, its inputs)."""
        return self._method(name).prepared(args, kwargs)[0]

    def extra_repr(self):
        return f"original_name={self._name}"

    def __deepcopy__(self, memo):
        """A program of its own, by way of its file."""
        from tinygrad_ext import jit  # lazy: saving stands above

        memo[id(self)] = made = jit.load(io.BytesIO(self.save_to_buffer()))
        return made

    def __copy__(self):
        """Another module of the same tensors."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __reduce__(self):
        raise TypeError("what jit.load gave is not pickled: save it with jit.save")


def _container(cls):
    """The LoadedPart that was a list or dict of modules, and still is one."""

    def __getitem__(self, key):
        return list(self._modules.values())[key] if isinstance(key, slice) else cls.__getitem__(self, key)

    return type(f"Loaded{cls.__name__}", (LoadedPart, cls), {"__getitem__": __getitem__})


_CONTAINERS = {cls.__name__: _container(cls) for cls in (ModuleList, ModuleDict, Sequential)}


class Programmed:
    """A module that runs a Program, whose parameters and buffers stand in the module's tree. Attributes: _program."""

    def program(self):
        """The Program as it is now, to be saved again."""
        found = self._program
        parts = dict(found.notes.get("", {}))
        if "modules" in parts:
            parts["modules"] = [[path, part.training] for path, part in self.named_modules()]
        return Program(found.methods, dict(found.state), {**found.notes, "": parts})


@boundary
class LoadedModule(Programmed, LoadedPart):
    """What `jit.load` gives: a module with the parameters, buffers, attributes and methods of the program."""

    def __init__(self, program):
        super().__init__()
        parts = program.notes.get("", {})
        kinds = {s.name: s.kind for graph in program.methods.values() for s in graph.state}
        parameters, modules = parts.get("parameters", []), parts.get("modules", [])
        kinds.update(dict.fromkeys(parts.get("buffers", []), "buffer"))
        kinds.update(dict.fromkeys(parameters, "parameter"))
        kinds.update(dict.fromkeys((n for n in parts.get("attributes", []) if n not in kinds), "attribute"))
        places, passing = Places(), set(parts.get("passing", []))
        for path, _ in modules:
            _module_at(self, path, parts.get("classes", {}))
        for name in [n for n in parameters if n in program.state] + list(program.state):
            if name not in places:
                _place(self, places, name, program.state[name], kinds.get(name), name not in passing)
        for path, mode in modules:
            part = _module_at(self, path)
            if part is not None:
                part.training = mode
        asked = [note.get("interfaces", {}) for note in program.notes.values()]
        self.__dict__["_interfaces"] = [interface_of_archive(*row) for each in asked for row in each.items()]
        program = Program(program.methods, places, program.notes)
        for part in self.modules():
            part._belong(program)


class LoadedMethod:
    """A method of a LoadedPart. Attributes: graph, code, schema, name; full: its name in the program."""

    def __init__(self, owner, name):
        self.owner, self.name, self.__name__ = owner, name, name
        self.full = owner._names.get(name, name)

    def __call__(self, *args, **kwargs):
        ways = self.prepared(args, kwargs)
        modes, entered = get_modes(), contexts.count()
        for i, (name, inputs) in enumerate(ways):
            try:
                if self.notes(name).get("differentiates"):
                    with no_grad():
                        return self.run(name, inputs)
                return self.run(name, inputs)
            except GuardFailed:
                contexts.leave_to(entered)
                if i == len(ways) - 1:
                    raise
            except BaseException as error:
                set_modes(*modes)
                contexts.leave_to(entered)
                if self.notes(self.full).get("kind") != "script" or not isinstance(error, PYTHONS):
                    raise
                raise also_error(error) from None
        return None

    def run(self, name, inputs):
        """What a graph gives; arguments that it writes to are its state while it runs."""
        program, note = self.owner._program, self.notes(name)
        paths = note.get("arguments")
        if not paths:
            return program.run(name, *inputs)
        written = {state: tensor_at(inputs, path) for state, path in paths.items()}
        _check_written(self.name, written, [t for _, t in leaves_of(inputs)], program.state_of(program.methods[name]))
        one = Program({name: program.methods[name]}, ChainMap(written, program.state))
        found = one.run(name, *inputs)
        program.state.update((state, value) for state, value in written.items() if state not in paths)
        for path, state in note.get("returned", ()):
            found = found if tensor_at((found,), (0, *path)) is None else put(found, path, written.get(state))
        return found

    def prepared(self, args, kwargs):
        """Ways to run it, best first: (name of a graph, its inputs)."""
        if self.notes(self.full).get("kind") == "script":
            return [(self.full, self.entry()._bound(args, kwargs))]
        if self.notes(self.full).get("kind") != "trace":
            return [(self.full, self.bound(self.graph, args, kwargs))]
        return self._traced(args, kwargs)

    def _traced(self, args, kwargs):
        told_of = [(name, note) for name, note in _methods_told(self.owner._program) if note.get("of") == self.name]
        found = self._fitting(told_of, args, kwargs, 2)
        if not found:
            known, given = [note["key"] for _, note in told_of], told((*args, *kwargs.values()))
            found = self._fitting(told_of, args, kwargs, 1)
            saved = f"{self.owner._name}.{self.name}: it was saved with graphs for arguments {known}, not for {given}. "
            if not found:
                raise RuntimeError(f"{saved}Where its Python is, trace it with such arguments too and save it again")
            told_as = "One for other numbers of dimensions runs, which is not right where the program asked for them"
            warnings.warn(saved + told_as, TracerWarning, stacklevel=4)
        return [(name, inputs) for _, name, inputs in sorted(found, key=lambda way: -way[0])]

    def _fitting(self, told_of, args, kwargs, count):
        """Graphs for such arguments: (how well they fit, name, inputs) each; count: see `keys.loose`."""
        found = []
        for name, note in told_of:
            inputs = self.bound(self.owner._program.methods[name], args, kwargs)
            given = told(tuple(inputs))
            if loose(given, count) == loose(note["key"], count):
                found.append(((note["grad"] == is_grad_enabled()) + (given == note["key"]), name, inputs))
        return found

    def bound(self, graph, args, kwargs):
        """The arguments of a call in the order of a graph's inputs."""
        names = [v.name for v in graph.inputs]
        rest = names[len(args) :]
        if len(args) > len(names) or sorted(rest) != sorted(kwargs):
            given = f"{len(args)} and {', '.join(kwargs)} by name" if kwargs else len(args)
            raise TypeError(f"{self.name}() takes {', '.join(names) or 'no arguments'}, but {given} were given")
        return [*args, *(kwargs[name] for name in rest)]

    def notes(self, name):
        return self.owner._program.notes.get(name) or {}

    def entry(self):
        note, graph = self.notes(self.full), self.graph
        names = note["names"]
        parameters = SimpleNamespace(
            names=names,
            defaults={key: default_of(value, self.owner._program.state) for key, value in note["defaults"].items()},
            positional=note["positional"],
            annotations=dict.fromkeys(note["annotated"], True),
        )
        types = dict(zip(names, (v.type for v in graph.inputs)))
        entry = Entry(graph, parameters, types, [], 0, Type.parse(note["returns"]))
        entry.broadcasts = note.get("broadcasts", {})
        entry.owner = Type(f"__torch__.{self.owner._name}")
        return entry

    @property
    def graph(self):
        return self.owner._program.methods[self.full]

    inlined_graph, graph_for = graph, ScriptFunction.graph_for

    @property
    def code(self):
        return self.graph.code

    def constants(self):
        """The tensors that are constants of the graph."""
        return [self.owner._program.state[s.name] for s in self.graph.state if s.kind == "constant"]

    @property
    def schema(self):
        """A FunctionSchema, of a traced method by the tensors and numbers that its graph takes and gives."""
        if self.notes(self.full).get("kind") == "script":
            return self.entry().declaration
        given = [Argument("self", Type(f"__torch__.{self.owner._name}"))]
        given += [Argument(v.name, v.type) for v in self.graph.inputs]
        return FunctionSchema(self.name, given, [Argument("", v.type) for v in self.graph.outputs])

    def __repr__(self):
        return f"<method {self.name} of {self.owner._name}, loaded>"


def _check_written(name, written, given, state):
    """Raise where an argument that is written to is no tensor, or lies in memory that something else lies in."""
    if any(tensor is None for tensor in written.values()):
        raise RuntimeError(f"{name}: it writes to {', '.join(written)}, which is no tensor among these arguments")
    rooms = [id(storage_of(t)) for t in (*given, *(v for v in state if isinstance(v, Tensor)))]
    for place, tensor in written.items():
        if rooms.count(id(storage_of(tensor))) > 1:
            raise RuntimeError(
                f"{name}: the argument {place} is written to, and another one that the program uses lies in the same "
                "memory. Pass a clone()"
            )


def _methods_told(program):
    return [(name, program.notes.get(name) or {}) for name in program.methods]


OWN = ("_path", "_program", "_name", "_names", "_interfaces")  # what a LoadedPart has besides


# ---- the tree of modules -------------------------------------------------------------------------------------------


def _module_at(root, path, classes=None):
    """The module at a path, made where there is none; None where something else is in the way. classes: path -> name
    of the class that it was of."""
    for part in path.split(".") if path else ():
        if part not in root._modules:
            if not part or hasattr(root, part):
                return None
            path = f"{root._path}.{part}" if root._path else part
            root.add_module(part, _CONTAINERS.get((classes or {}).get(path), LoadedPart)(path))
        root = root._modules[part]
    return root


def _has(owner, attribute):
    return hasattr(type(owner), attribute) or hasattr(owner, attribute)


def _place(root, places, name, value, kind, persistent):
    """Put a value of the state into the tree where it has a place there, else beside it."""
    path, _, attribute = name.rpartition(".")
    owner = _module_at(root, path) if kind in ("parameter", "buffer", "attribute") else None
    taken = attribute in OWN or (attribute != "training" and _has(owner, attribute))
    if owner is None or not attribute or attribute.startswith(("__", "_tgx")) or taken:
        places.rest[name] = value
        return
    if kind == "parameter" and isinstance(value, Parameter):
        owner.register_parameter(attribute, value)
    elif kind == "buffer" and isinstance(value, Tensor):
        owner.register_buffer(attribute, value, persistent)
    else:
        setattr(owner, attribute, value)
    places.owners[name] = owner, attribute
