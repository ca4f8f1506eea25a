"""An exported program as an fx graph of ops: `ExportedProgram.graph_module` and the graph of its `module()`.

The graph module takes everything that the program reads, flat, and gives what it writes and returns, flat: each
parameter and buffer, then constants, generators and the leaves of the arguments. `unlifted` puts attributes of a
module in the place of the former, so that arguments and results are nested as the module's are.

Numbers that follow from sizes which were declared open, and arguments that are numbers, are nodes; others are
constants. `meta["val"]` of a node is what it is for the example, a tensor without memory.
"""

import re
from collections import Counter

from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.fx.codegen import PyTreeCodeGen
from tinygrad_ext.fx.experimental.open_numbers import open_values
from tinygrad_ext.fx.experimental.writer import Writer, copy_, described, detach, leaves_of
from tinygrad_ext.fx.graph import Graph
from tinygrad_ext.fx.graph_module import GraphModule
from tinygrad_ext.graph.decompose import note_hints
from tinygrad_ext.graph.trees import at
from tinygrad_ext.utils import _pytree as pytree

from .graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, argument_of
from .guards import guards_of
from .sizes import tensors

_KINDS = {"parameter": InputKind.PARAMETER, "buffer": InputKind.BUFFER, "generator": InputKind.CUSTOM_OBJ}
_LETTERS = {
    InputKind.PARAMETER: "p",
    InputKind.BUFFER: "b",
    InputKind.CONSTANT_TENSOR: "c",
    InputKind.CUSTOM_OBJ: "obj",
}
_WRITES = {"parameter": OutputKind.PARAMETER_MUTATION, "argument": OutputKind.USER_INPUT_MUTATION}
_NUMBERS = (bool, int, float, complex)


class Lifted(Writer):
    """Writes a program down.

    Attributes: module: the GraphModule; signature: what its inputs and outputs stand for; results: what the program
    returns, with nodes and constants as leaves; text: the graph as it was written.
    """

    simpler = {}

    def __init__(self, program, captured, state, calls, arguments, sizes, places, guards):
        """program: the ExportedProgram. captured: its graph, whose hints are set. state: name -> value. arguments:
        (name, value) pairs of the example. guards: (graph of `guards_of` or None, its states)."""
        paths = {path for path, declared in sizes.of.items() if any(type(size) is not int for size in declared)}
        given = [
            v
            for v, (name, tree) in zip(captured.inputs, arguments)
            if any(path in paths for path, _ in tensors(tree, name)) or _has_number(tree)
        ]
        given += [s.value for s in captured.state if type(s.value.hint) in _NUMBERS]
        declared = {id(v): sizes.of.get(v.name) for v in captured.inputs}
        super().__init__(open_values(captured, map(id, given), lambda node: _is_declared(node, declared)))
        self.calls, self.inputs, self.outputs, self.guards = calls, [], [], guards
        self.take_state(program, captured, state)
        for value, (name, tree) in zip(captured.inputs, arguments):
            self.env[id(value)] = self.argument(tree, name)
        for s in captured.state:
            if s.kind == "argument":
                self.env[id(s.value)] = at([self.env[id(v)] for v in captured.inputs], places[s.name])
        self.block(captured.block)
        order = {spec.target: i for i, spec in enumerate(self.inputs)}
        written = [s for s in captured.state if s.written and s.kind != "generator"]
        written.sort(key=lambda s: order.get(s.name, len(order)))
        row = [self.read(s.new) for s in written]
        kinds = [_WRITES.get(s.kind, OutputKind.BUFFER_MUTATION) for s in written]
        targets = [self.env[id(s.value)].name if s.kind == "argument" else s.name for s in written]
        self.outputs += [OutputSpec(k, argument_of(a), t) for k, t, a in zip(kinds, targets, row)]
        self.results = self.read(captured.outputs[0])
        leaves = leaves_of(self.results)
        self.outputs += [OutputSpec(OutputKind.USER_OUTPUT, argument_of(a), None) for a in leaves]
        self.graph.output((*row, *leaves))
        self.graph.eliminate_dead_code()
        self.module = GraphModule(self.root, self.graph)
        self.module.meta["forward_arg_names"] = [name for name, _ in arguments]
        self.signature, self.text = ExportGraphSignature(self.inputs, self.outputs), str(self.module.graph)

    # ---- inputs ---------------------------------------------------------------------------------------------------

    def take_state(self, program, captured, state):
        """Placeholders for every parameter and buffer, and for what else the graph reads."""
        read = {s.name: s for s in captured.state if s.kind != "argument"}
        passing = program._told("passing")
        for kind, names in (("parameter", program._told("parameters")), ("buffer", program._told("buffers"))):
            for name in names:
                persistent = name not in passing if kind == "buffer" else None
                self.stand(_KINDS[kind], name, state[name], read.pop(name, None), persistent)
        for s in sorted(read.values(), key=lambda s: s.kind == "generator"):
            if state[s.name] is default_generator:
                self.env[id(s.value)] = None  # ops find it by themselves
            else:
                self.stand(_KINDS.get(s.kind, InputKind.CONSTANT_TENSOR), s.name, state[s.name], s)

    def stand(self, kind, name, value, s, persistent=None):
        node = self.placeholder(f"{_LETTERS[kind]}_{re.sub(r'[^A-Za-z0-9_]', '_', name)}", value)
        self.inputs.append(InputSpec(kind, argument_of(node), name, persistent))
        if s is not None:
            self.env[id(s.value)] = node

    def given(self, value, name):
        """A placeholder for each leaf of the arguments, which stands for tensors and numbers."""
        node = self.placeholder(name, value)
        is_open = isinstance(value, Tensor) or type(value) in _NUMBERS
        self.inputs.append(InputSpec(InputKind.USER_INPUT, argument_of(node), None))
        return node if is_open else value

    def placeholder(self, name, value):
        taken = {given.target for given in self.graph.find_nodes(op="placeholder")}
        node = self.graph.placeholder(name)
        node.target = node.name if name in taken else name
        node.meta["val"] = described(value)
        return node

    # ---- nodes ----------------------------------------------------------------------------------------------------

    def primitive(self, node, args):
        if node.op != "prim::guard" or self.guards[0] is None:
            super().primitive(node, args)

    def note(self, made, node):
        super().note(made, node)
        if self.calls is not None:
            made.meta.setdefault("nn_module_stack", self.calls.stack(node))


class Stacks:
    """Which modules each node of a program was made in, see `calls`. classes: path -> name of the module's class."""

    def __init__(self, told, name, classes):
        self.made, self.of, self.classes = told["made"], told["nodes"], {**classes, "": name}
        self.keys, counts = [], Counter()
        for path, _ in self.made:  # a further call of one module has its number behind the path
            self.keys.append(f"{path}@{counts[path]}" if counts[path] else path)
            counts[path] += 1

    def stack(self, node):
        """Path, with @ and a number for further calls -> (path, class) of each module, the outermost first."""
        number, calls = self.of.get(node.outputs[0].name, -1) if node.outputs else -1, []
        while number != -1:
            path, outer = self.made[number]
            calls.append((self.keys[number], path))
            number = outer
        return {key: (path, self.classes.get(path, "Module")) for key, path in (("", ""), *reversed(calls))}


def lifted(program):
    """The Lifted of an ExportedProgram. RuntimeError where it has no example."""
    if program.example_inputs is None:
        raise RuntimeError(
            "the program has no example_inputs, which its fx graph is written down with: export it again"
        )
    captured, inner = program.captured.copy(), program._program
    row, paths = program.example, inner.notes["forward"].get("arguments", {})
    state = [at(row, paths[s.name]) if s.name in paths else inner.state[s.name] for s in captured.state]
    note_hints(captured, row, state)
    for value in (
        *captured.inputs,
        *(s.value for s in captured.state),
        *(v for n in captured.nodes for v in n.outputs),
    ):
        value.hint = described(value.hint)
    calls = inner.notes["forward"].get("calls")
    calls = calls and Stacks(calls, program._told("name") or "Module", dict(program._told("classes") or {}))
    arguments, guards = list(zip(program._names, row)), (guards_of(captured, row, state), state)
    return Lifted(program, captured, inner.state, calls, arguments, program._sizes, paths, guards)


def unlifted(written, places, names, example, nested=None):
    """The graph of a module with attributes in the place of the first inputs of a Lifted's graph, as it is now.

    places: name of a state -> path of the attribute. names, example: of the arguments, as they are nested. nested:
    spec of the results where it is another than that of written.results.
    """
    graph, values, signature = Graph(), {}, written.signature
    source = written.module.graph
    given = [n for n in source.nodes if n.op == "placeholder"]
    for node, spec in zip(given, signature.input_specs, strict=True):  # before any attribute, whose name they may have
        if spec.target is None:
            values[node] = graph.node_copy(node)
    for node, spec in zip(given, signature.input_specs):
        if spec.target is None:
            continue
        if node.users or any(out.target == spec.target for out in signature.output_specs):
            values[node] = made = graph.get_attr(places[spec.target])
            made.meta = dict(node.meta)
    rows = list(zip(given, signature.input_specs))
    attributes = {spec.target: values.get(node) for node, spec in rows if spec.target is not None}
    arguments = {node.name: values[node] for node, spec in rows if spec.target is None}
    row = list(graph.graph_copy(source, {**values, **dict.fromkeys(set(given) - set(values))}))
    for spec in signature.output_specs:
        if spec.kind is OutputKind.USER_OUTPUT:
            break
        to = (arguments if spec.kind is OutputKind.USER_INPUT_MUTATION else attributes)[spec.target]
        if not isinstance(to.meta["val"], Tensor):
            raise RuntimeError(
                f"the program changes {spec.target}, which is no tensor, so the graph of its module() cannot be told: "
                "make it a buffer, or read program.graph_module"
            )
        if spec.kind is OutputKind.PARAMETER_MUTATION:
            to = graph.call_function(detach, (to,))
        graph.call_function(copy_, (to, row.pop(0)))
    graph.output(tuple(row))
    spec = pytree.tree_structure(written.results) if nested is None else nested
    graph.set_codegen(PyTreeCodeGen(names, example, spec))
    return graph


def _is_declared(node, declared):
    """Whether a node asks for a size of an argument that is fixed. declared: id of an input -> its sizes."""
    if node.op != "prim::size" or type(node.args[1]) is not int:
        return False
    row = declared.get(id(node.args[0]))
    return bool(row) and -len(row) <= node.args[1] < len(row) and type(row[node.args[1]]) is int


def _has_number(tree):
    return any(type(leaf) in _NUMBERS for leaf in leaves_of(tree))
