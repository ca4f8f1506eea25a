"""`ExportedProgram.module()`: the program as a GraphModule over its parameters and buffers.

Until somebody asks for its fx graph there is none, and what runs is the captured graph with its plan. Once
`recompile()` is called, or another graph is set, the module is a GraphModule like any other, and its code runs.
"""

import copy
import re

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.core.data.tensor import Parameter
from tinygrad_ext.fx.codegen import in_order
from tinygrad_ext.fx.graph_module import GraphModule
from tinygrad_ext.graph import Program
from tinygrad_ext.jit.loaded import LoadedMethod, Places, Programmed
from tinygrad_ext.nn import Module
from tinygrad_ext.utils.nested import restored

from .guards import Guards
from .lifted import lifted, unlifted

_OWN = ("_program", "_name", "_names", "_source", "_checked")


def bound(names, placed, args, kwargs):
    """(name, value) of each argument of a call. placed: how many the example has by their place.

    ValueError where they are not those of the program, or given by their place where the example has them by name,
    whose order need not be that of the module's `forward`.
    """
    given, by_name = [*zip(names, args), *kwargs.items()], names[placed : len(args)]
    if by_name and len(args) <= len(names):
        raise ValueError(
            f"the program was exported with {', '.join(by_name)} by name, but got {len(args)} arguments by their "
            f"place: give {', '.join(f'{name}=' for name in by_name)}"
        )
    if len(args) > len(names) or sorted(name for name, _ in given) != sorted(names):
        raise ValueError(
            f"the program was exported with the arguments {', '.join(names) or 'none'}, but got {len(args)}"
            + (f" and {', '.join(kwargs)} by name" if kwargs else "")
        )
    return given


@boundary
class ExportedModule(Programmed, GraphModule):
    """What `ExportedProgram.module()` gives."""

    def __init__(self, program, check_guards=True):
        """program: an ExportedProgram."""
        Module.__init__(self)
        type(self).__name__ = "GraphModule"
        inner, self.meta = program._program, {}
        self.__dict__.update(_name=program._told("name") or "Module", _names={"forward": "forward"}, _source=program)
        places, self.__dict__["_checked"] = Places(), check_guards
        for path, mode in program._told("modules"):
            _module_at(self, path).training = mode
        parameters, buffers, passing = map(program._told, ("parameters", "buffers", "passing"))
        for name in [n for n in (*parameters, *buffers) if n in inner.state]:
            self._put(places, name, inner.state[name], name not in passing)
        places.rest.update((name, value) for name, value in inner.state.items() if name not in places.owners)
        for name, first in program.tied:
            if first in inner.state:
                self._put(places, name, inner.state[first], True, False)
        self.__dict__["_program"] = Program(inner.methods, places, inner.notes)
        if program.is_changed or program.is_moved:
            self._write(program.written)
            self.recompile()

    def _put(self, places, name, value, persistent, is_read=True):
        """Let a parameter or buffer stand under its path, with _ behind it where GraphModule has that name. is_read:
        whether the graph finds it there."""
        path, _, attribute = name.rpartition(".")
        owner = _module_at(self, path)
        while hasattr(type(owner), attribute) or hasattr(owner, attribute):
            attribute += "_"
        if isinstance(value, Parameter):
            owner.register_parameter(attribute, value)
        else:
            owner.register_buffer(attribute, value, persistent)
        if is_read:
            places.owners[name] = owner, attribute

    def forward(self, *args, **kwargs):
        """Run the program."""
        source = self._source
        given = bound(source._names, source.placed, args, kwargs)
        if source._opened:
            given = source.plain(given)
        if self._checked:
            source.check(given)
        if not source.is_flat:  # dicts have the order of the example's
            given = dict(given)
            row = [in_order(given[name], value) for name, value in zip(source._names, source.example)]
            count = source.placed
            args, kwargs = row[:count], dict(zip(source._names[count:], row[count:]))
        return restored(source._nested, LoadedMethod(self, "forward")(*args, **kwargs))

    def train(self, mode=True):
        """Refused: the graph is that of the mode in which the module was."""
        raise NotImplementedError(
            f"calling {'train' if mode else 'eval'}() of an exported program is not supported: call it before export()"
        )

    def _apply(self, fn, recurse=True):
        """As of any Module; the fx graph runs from now on where dtypes or devices are others then, for which the plan
        was not made."""
        if "_source" not in self.__dict__ or self._source.example_inputs is None:
            return super()._apply(fn, recurse)
        source, _, parameters, buffers = self._source, self._graph, *self._kinds()
        super()._apply(fn, recurse)
        now = self._kinds()
        if now != (parameters, buffers):
            source.move({old: new for old, new in zip(parameters, now[0]) if old != new})
            self.recompile()
        return self

    def _kinds(self):
        return tuple([[(t.dtype, t.device) for t in found] for found in (self.parameters(), self.buffers())])

    # ---- the fx graph ---------------------------------------------------------------------------------------------

    def __getattr__(self, name):
        if name in ("_graph", "_code") and "_source" in self.__dict__:
            self._write(lifted(self._source) if self._source.is_changed else self._source.written)
            return self.__dict__[name]
        return super().__getattr__(name)

    def _write(self, written):
        """Make the fx graph of a Lifted."""
        source, state = self._source, self._program.state
        paths = {id(module): path for path, module in self.named_modules()}
        places = {name: f"{paths[id(owner)]}.{a}".lstrip(".") for name, (owner, a) in state.owners.items()}
        for name, value in state.rest.items():
            if value is not default_generator:
                places[name] = re.sub(r"\W", "_", name)
                while hasattr(self, places[name]):
                    places[name] += "_"
                object.__setattr__(self, places[name], value)
        graph = unlifted(written, places, source._names, source.closed_example, source._nested)
        for node in written.module.graph.find_nodes(op="get_attr"):  # branches
            if not hasattr(self, node.target):
                setattr(self, node.target, getattr(written.module, node.target))
        if self._checked and "_guards_fn" not in self._modules:
            self._modules["_guards_fn"] = Guards(source._names, source.example, source._sizes, *written.guards)
        if self._checked:
            given = graph.find_nodes(op="placeholder")
            with graph.inserting_after(given[-1]) if given else graph.inserting_before(None):
                graph.call_module("_guards_fn", tuple(given))
        graph.owning_module = self
        self.__dict__.update(_graph=graph, _code=graph.python_code("self").src)

    def recompile(self):
        """Let `forward` be the code of the fx graph as it is now; returns the PythonCode."""
        made = super().recompile()
        for name in _OWN:
            self.__dict__.pop(name, None)
        return made

    def program(self):
        """The Program as it is now, to be saved."""
        if "_source" not in self.__dict__:
            raise RuntimeError("jit.save: the module's fx graph was changed; save jit.trace(module, inputs) of it")
        return super().program()

    # ---- copies ---------------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo):
        if "_source" not in self.__dict__:
            return super().__deepcopy__(memo)
        state = {k: v if v is default_generator else copy.deepcopy(v, memo) for k, v in self._program.state.items()}
        source = self._source.over(state)
        memo[id(self)] = made = ExportedModule(source, self._checked)
        if "_graph" in self.__dict__:  # it may be changed, and not yet compiled
            changed = copy.deepcopy(self._graph, memo)
            changed.owning_module, _ = made, made._graph
            made.__dict__["_graph"] = changed
        return made

    def __copy__(self):
        if "_source" not in self.__dict__:
            return GraphModule.__copy__(self)
        return ExportedModule(self._source.over(dict(self._program.state)), self._checked)

    def __reduce__(self):
        made, (name, parts, graph) = super().__reduce__()
        return made, (name, {key: part for key, part in parts.items() if key not in _OWN}, graph)


def _module_at(root, path):
    """The module at a path, made where there is none; with _ behind a name that GraphModule has."""
    for part in path.split(".") if path else ():
        while part not in root._modules and (hasattr(type(root), part) or part in root.__dict__):
            part += "_"
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    return root
