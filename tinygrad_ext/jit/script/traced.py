"""Traced functions and modules called in script: their graph is copied into the caller's.

The graph is that of their last capture: what guards in it say is asked when the program runs.
"""

from tinygrad_ext.graph.ir import Block, Value, replaced
from tinygrad_ext.graph.types import TENSOR

from ..captured import ArgumentHolder, Holder
from ..tracing import TracedFunction, TracedModule
from .expressions import KINDS
from .values import Static, TupleValue


class TracedValue(Static):
    """A traced callable. path: prefix of the names of its states; runner: of another method than forward."""

    kind = "a traced function"

    def __init__(self, python, path, runner=None):
        self.python = self.module = python
        self.path, self.runner = path, runner or python._runner

    def attribute(self, c, name):
        runner = self.python.runner_of(name) if isinstance(self.python, TracedModule) else None
        return super().attribute(c, name) if runner is None else TracedValue(self.python, self.path, runner)

    def call(self, c, args, kwargs):
        if kwargs:
            c.fault("a traced function takes its arguments by position in script")
        captured = self.runner.latest
        count = len(captured.graph.inputs)
        if len(args) != count:
            c.fault(f"Expected at most {count} arguments but found {len(args)} for the traced function")
        args = [c.value(a, v.type, "an argument") for v, a in zip(captured.graph.inputs, args)]
        captured, args = self._shared(captured, args)
        graph = captured.graph
        mapping = dict(zip(graph.inputs, args))
        for state, holder in zip(graph.state, captured.holders):
            if type(holder) is ArgumentHolder and len(holder.owner) == 1:
                mapping[state.value] = args[holder.owner[0]]
                continue
            if type(holder) is not Holder or state.value.type is not TENSOR:
                c.fault(f'the traced function changes "{state.name}", which script cannot: call it outside')
            mapping[state.value] = c.field(holder, "owner", self.path + state.name, state.kind, TENSOR)
        for state, holder in zip(graph.state, captured.holders):
            if state.kind == "argument" and self.runner.in_place:
                others = [mapping[v] for i, v in enumerate(graph.inputs) if holder.owner != (i,)]
                others += [mapping[s.value] for s in graph.state if s.kind != "argument"]
                c.effect("prim::tensor.apart", mapping[state.value], state.name, *others)
        _copy(c, graph.block, mapping)
        for state in graph.state:
            if state.written:
                old = c.op("aten::detach", (mapping[state.value],))
                c.op("aten::copy_", (old, replaced(state.new, mapping), False))
        return _operand(replaced(graph.outputs[0], mapping))

    def _shared(self, captured, args):
        """(graph, arguments) of a call; where one that is written to stands in several places, those that know it."""
        runner, names = self.runner, [id(a) if isinstance(a, Value) else i for i, a in enumerate(args)]
        written = [h.owner[0] for h in captured.holders if type(h) is ArgumentHolder]
        if not runner.in_place or all(names.count(names[i]) == 1 for i in written):
            return captured, args
        places = list(map(names.index, names))
        return runner.capture_shared(places), [args[i] for i in sorted(set(places))]


class StoredMethod(Static):
    """A scripted method of a module that was loaded, or of a part of it. path: prefix of the names of its states."""

    kind = "a method from a file"

    def __init__(self, module, name, entry, path):
        self.program, self.name, self.entry, self.path = module._program, name, entry, path
        self.prefix = f"{module._path}." if module._path else ""

    def call(self, c, args, kwargs):
        graph = self.entry.graph
        mapping = {v: c.value(self._bound(c, args, kwargs, i), v.type) for i, v in enumerate(graph.inputs)}
        _none_left(c, self.name, self.entry.names, args, kwargs)
        places = [self.program.state.place(state.name) for state in graph.state]
        for state, (owner, attribute) in zip(graph.state, places):
            path = self.path + state.name.removeprefix(self.prefix)
            mapping[state.value] = c.field(owner, attribute, path, state.kind, state.value.type)
        _copy(c, graph.block, mapping)
        c.graph.effects = c.graph.effects or graph.effects
        for state, (owner, attribute) in zip(graph.state, places):
            if state.written:
                c.set_field((id(owner), attribute), replaced(state.new, mapping))
        return _operand(replaced(graph.outputs[0], mapping))

    def _bound(self, c, args, kwargs, i):
        """The argument of a parameter."""
        name = self.entry.names[i]
        if i < min(len(args), self.entry.positional):
            return args[i]
        if name in kwargs:
            return kwargs[name]
        if name not in self.entry.defaults:
            c.fault(f"{self.name}() is missing value for argument '{name}'")
        return c.default(self.entry.defaults[name], name)


def _none_left(c, name, names, args, kwargs):
    odd = [k for k in kwargs if k not in names[len(args) :]]
    if len(args) > len(names) or odd:
        c.fault(f"{name}() takes {', '.join(names) or 'nothing'}; '{odd[0] if odd else len(args)}' is too much")


def _operand(given):
    if isinstance(given, Value) and given.node is not None and given.node.op == "prim::tuple":
        given = tuple(given.node.args)  # its items are known: one tensor in two places of it is one
    return TupleValue(map(_operand, given)) if type(given) is tuple else given


def _copy(c, block, mapping):
    """Append copies of a block's nodes to the current one."""
    for node in block.nodes:
        inner = [_block(c, b, mapping) for b in node.blocks]
        row = [replaced(a, mapping) for a in node.args]
        types = [v.type for v in node.outputs]
        made = c.graph.make(
            c.block, node.op, row, types, blocks=inner, line=node.line, version=node.version, owner=node.owner
        )
        mapping.update(zip(node.outputs, made.outputs))


def _block(c, block, mapping):
    made = Block([c.graph.value(v.type) for v in block.inputs])
    mapping.update(zip(block.inputs, made.inputs))
    with c.inside(made, c.scope, c.fields):
        _copy(c, block, mapping)
    made.outputs = [replaced(a, mapping) for a in block.outputs]
    return made


def traced(module, path):
    """The operand of a traced module that is part of a module, or None."""
    return TracedValue(module, path) if isinstance(module, TracedModule) else None


def _known(c, value, name):
    return TracedValue(value, f"{name}.")


KINDS.insert(0, ((TracedFunction, TracedModule), _known))
