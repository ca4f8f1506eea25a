"""`jit.save` and `jit.load`: compiled and traced programs in an archive of graphs, and back without what made them.

Saving gathers a `graph.Program`: the graphs of all methods, and what their states stand for, by path. Loading makes a
`LoadedModule` of it: parameters, buffers and attributes stand in a tree of modules under the paths they had.
"""

import copy
import os

from tinygrad_ext import graph as graphs
from tinygrad_ext.archive import files
from tinygrad_ext.archive.budget import MOST_OBJECTS
from tinygrad_ext.archive.object_tree import Encoder
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph import Program
from tinygrad_ext.nn import Module

from .loaded import OWN, LoadedModule, LoadedPart, Programmed
from .notes import check_notes
from .script.interfaces import interfaces_in
from .script.script_function import ScriptFunction
from .script.script_module import (
    STATE_METHODS,
    ScriptModule,
    compile_methods,
    is_frozen,
    methods_of,
    methods_of_part,
    state_methods,
)
from .tracing import TracedFunction, TracedModule


@boundary
def save(m, f, _extra_files=None, *, examples=None):
    """Write what `script` or `trace` gave to a path or a file open for binary writing.

    Args:
        _extra_files: dict of a name -> bytes or text, which stand in the file as they are.
        examples: tuples of arguments, or a dict of a method -> such a list. What the program gives for them is kept,
            and `load(verify=True)` compares with it, bit for bit.

    All compiled methods are written, of a traced program all graphs for the present training mode. Raises GraphError
    with the line for what no file can hold: a Function that could not be captured, a call of a Python function.
    """
    program = program_of(m)
    if examples is not None:
        if any(note.get("arguments") for note in program.notes.values()):
            raise RuntimeError(
                "jit.save: examples are kept of programs that change nothing, and this one writes to its arguments. "
                "Save it without examples, or let it return the new value"
            )
        found, loaded = {}, LoadedModule(program)
        for name, rows in (examples if isinstance(examples, dict) else {"forward": examples}).items():
            for row in rows:
                method, inputs = loaded.prepared(name, row, {})
                found.setdefault(method, []).append(tuple(inputs))
        examples = found
    graphs.save(program, f, _extra_files, examples)


@boundary
def load(
    f,
    map_location=None,
    _extra_files=None,
    _restore_shapes=False,
    *,
    verify=False,
    mmap=False,
    max_objects=MOST_OBJECTS,
):
    """The module of an archive, without the Python that it was made of. Nothing of the file is run.

    Arguments and errors are those of `graph.load`. _extra_files: a dict whose keys are names of extra files; their
    bytes become its values. _restore_shapes: accepted.

    >>> import io, tinygrad_ext as tg
    >>> from tinygrad_ext import jit
    >>> file = io.BytesIO()
    >>> jit.save(jit.trace(lambda x: x * 2, tg.ones(2)), file)
    >>> jit.load(io.BytesIO(file.getvalue()))(tg.ones(3))
    tensor([2., 2., 2.])
    """
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {os.fspath(f)} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {os.fspath(f)} is a directory")
    program = graphs.load(f, map_location, verify, _extra_files, mmap=mmap, max_objects=max_objects)
    try:
        check_notes(program)
        return LoadedModule(program)
    except files.DAMAGES as error:
        name = f if isinstance(f, (str, os.PathLike)) else getattr(f, "name", "the file")
        raise RuntimeError(f"load: {name} is damaged; manifest.json: {files.said(error)}") from None


def program_of(m):
    """The Program of what `script`, `trace` or `load` gave."""
    if isinstance(m, Programmed):
        return m.program()
    gathered = _Gathered(m)
    if issubclass(type(m), ScriptFunction):
        gathered.entry("forward", m._entry)
    elif issubclass(type(m), ScriptModule):
        m = _restated(m)
        m.compile_all()
        gathered.attributes(m)
        for name, entry in methods_of(m).items():
            if name not in STATE_METHODS:
                gathered.entry(name, entry)
        if not is_frozen(m):
            for path, part in m.named_modules():
                if path and issubclass(type(part), ScriptModule):
                    gathered.part(path, part)
    elif isinstance(m, (TracedFunction, TracedModule)):
        gathered.runner("forward", m._runner)
        for name, method in getattr(m, "_methods", {}).items():
            gathered.runner(name, method.runner)
    else:
        raise AttributeError(
            f"jit.save: '{type(m).__name__}' object is no compiled program: save what jit.script(...) or "
            "jit.trace(...) gives"
        )
    state = {name: value.plain() if hasattr(value, "plain") else value for name, value in gathered.state.items()}
    return Program(gathered.methods, state, gathered.notes)


@boundary
def export_opnames(m):
    """Sorted names of the ops in all graphs of a compiled or traced program, so what a reader of its file must have.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext import jit
    >>> jit.export_opnames(jit.trace(lambda x: x.exp() * 2, tg.ones(2)))
    ['aten::exp', 'aten::mul.Tensor']
    """
    return sorted({node.op for graph in program_of(m).methods.values() for node in graph.walk()})


def _restated(m):
    """The module as its own `__setstate__` makes it of what `__getstate__` gives, where it or a part has both.

    That is done here: reading a file runs nothing.
    """
    if not any(issubclass(type(part), ScriptModule) and state_methods(part) for part in m.modules()):
        return m
    names = methods_of(m)
    m = copy.deepcopy(m)
    for part in m.modules():
        if issubclass(type(part), ScriptModule) and state_methods(part):
            give, take = state_methods(part)
            take(give())
    compile_methods(m, names)
    return m


class _Gathered:
    """Methods, state and notes of a program, as they come together."""

    def __init__(self, m):
        self.methods, self.state = {}, {}
        self.notes = {"": {"name": _name_of(m)}}
        self.notes[""].update(_parts_told(m) if isinstance(m, Module) else {})
        if isinstance(m, Module):
            self.state.update(m.named_parameters())
            self.state.update(m.named_buffers())

    def attributes(self, m):
        """What the modules have besides tensors and methods, as far as a file can hold it."""
        names = self.notes[""]["attributes"] = []
        for path, part in m.named_modules():
            for name, value in part.__dict__.items():
                whole = f"{path}.{name}" if path else name
                own = name.startswith(("__", "_tgx")) or name in _BLANK or name == "_live_hooks"
                own = own or name == "training" or (isinstance(part, LoadedPart) and name in OWN)
                if not own and _is_plain(value):
                    self.state[whole] = value
                    names.append(whole)

    def part(self, path, part):
        """The compiled methods of a module below, which are called by themselves."""
        if isinstance(part, LoadedPart):
            state, prefix = part._program.state, f"{part._path}." if part._path else ""
            for name in part._names:
                entry = part._stored(name)
                if entry is not None:
                    held = {s.name: state[s.name] for s in entry.graph.state}
                    self.entry(name, entry, held, path, prefix)
            return
        for name, entry in methods_of_part(part).items():
            self.entry(name, entry, path=path)

    def entry(self, name, entry, held=None, path="", prefix=""):
        """A compiled method. held: its state by name, where the entry does not know; path: of the module that has it,
        to which names of state are relative that begin with the prefix."""
        if held is None:
            held = {state.name: getattr(owner, attribute) for state, owner, attribute in entry.accessors}
        of_part = {"part": path, "method": name} if path else {}
        name = f"part{len(self.methods)}.{name}" if path else name  # a path may be anything, a graph's name not
        self.add(name, entry.graph, held, lambda n: f"{path}.{n.removeprefix(prefix)}" if path else n)
        defaults = {key: self.default(value) for key, value in entry.defaults.items() if key in entry.names}
        self.notes[name] = {
            "kind": "script",
            "names": list(entry.names),
            "defaults": defaults,
            "positional": entry.positional,
            "annotated": [key for key, value in entry.annotations.items() if value is not None],
            "returns": str(entry.returns),
        }
        self.notes[name].update(of_part)
        self.notes[name].update({"broadcasts": entry.broadcasts} if entry.broadcasts else {})
        asked = interfaces_in(entry.types.values())
        if asked:
            self.notes[name]["interfaces"] = asked

    def default(self, value):
        """A default as JSON has it; a tensor stands in the state."""
        if not isinstance(value, Tensor):
            return Encoder().encode(value)
        name = next((n for n, held in self.state.items() if held is value), f"default.{len(self.state)}")
        self.state[name] = value
        return {"state": name}

    def runner(self, name, runner):
        """A traced method: its graphs for the present training mode, hooks and structure."""
        switches, count = runner.surroundings.switches(), 0
        for (_, _, made_for, grad), found in runner.graphs.items():
            for captured in found if made_for == switches else ():
                method = name if count == 0 else f"{name}.{count}"
                state, written = captured.graph.state, _arguments_written(runner, captured)
                held = {s.name: h.read() for s, h in zip(state, captured.holders) if s.name not in written}
                names = self.add(method, captured.graph, {**held, **{n: functions["empty"](0) for n in written}})
                self.notes[method] = {
                    "kind": "trace",
                    "of": name,
                    "key": captured.takes,
                    "grad": grad,
                    "differentiates": bool(captured.differentiates),
                }
                if written:
                    self.notes[method]["arguments"] = {names[n]: path for n, path in written.items()}
                    self.notes[method]["returned"] = [[list(p), names[state[i].name]] for p, i in captured.returned]
                count += 1
        if not count:
            raise RuntimeError(
                f"jit.save: {runner.name} was traced in another training mode, or with other hooks or submodules than "
                "it has now; call it once as it is, and save it then"
            )

    def add(self, name, graph, held, place=str):
        """A graph, with the values of its states by name; place(name) is what it is called in the program, and a name
        that another value has gets a number. Returns what they are called."""
        graph, renamed = graph.copy(), {}
        for s in graph.state:
            if isinstance(held[s.name], Module):
                raise graphs.GraphError(
                    f"{name} gives the module {s.name} or puts another in its place, which no file can hold. Do that "
                    "from Python: leave the method out, or mark it unused"
                )
            value, free, number = held[s.name], place(s.name), 1
            while free in self.state and self.state[free] is not value:
                free, number = f"{place(s.name)}#{number}", number + 1
            self.state[free], renamed[s.name] = value, free
        for s in graph.state:
            s.name = renamed[s.name]
        self.methods[name] = graph
        return renamed


def _is_plain(value):
    """Whether a file can hold a value that is no object of a class."""
    try:
        Encoder().encode(value)
    except (TypeError, ValueError):
        return False
    return True


_BLANK = frozenset(vars(Module()))


def _arguments_written(runner, captured):
    """Name of a state -> path in the arguments, of those that the program writes to."""
    found = {}
    for state, holder in zip(captured.graph.state, captured.holders):
        if holder.holding == "argument.grad":
            raise RuntimeError(
                f"jit.save: {runner.name} writes the gradient of its argument into {state.name}, which a saved program "
                "cannot. Let it return the gradient"
            )
        if holder.holding == "argument":
            if any(type(key) not in (int, str) for key in holder.owner):
                raise RuntimeError(
                    f"jit.save: {runner.name} writes to {state.name}, an entry of a dict whose key is neither a text "
                    "nor a number, which no file can hold. Let it return the new value"
                )
            found[state.name] = list(holder.owner)
    return found


def _name_of(m):
    if isinstance(m, (ScriptFunction, TracedFunction)):
        return m.__name__
    return getattr(m, "original_name", None) or type(getattr(m, "original", m)).__name__


def _parts_told(module):
    """What a tree of modules is, besides its tensors."""
    kept = {id(b) for b in module.state_dict(keep_vars=True).values()}
    return {
        "classes": {path: _name_of(part) for path, part in module.named_modules() if path},
        "modules": [[path, part.training] for path, part in module.named_modules()],
        "parameters": [name for name, _ in module.named_parameters()],
        "buffers": [name for name, _ in module.named_buffers()],
        "passing": [name for name, b in module.named_buffers() if id(b) not in kept],
    }


def _unique_state_dict(module, keep_vars=False):
    """The module's `state_dict` without what stands in it under an earlier name too."""
    seen = {}
    for name, value in module.state_dict(keep_vars=True).items():
        seen.setdefault(id(value), (name, value))
    return {name: value if keep_vars else value.detach() for name, value in seen.values()}
