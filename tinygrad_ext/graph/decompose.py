"""`run_decompositions`: nodes of a graph become what functions of Python make of them.

Each function runs once, under a capture, on what the node's arguments are for the example; what it called takes the
node's place. Sizes that it reads are values, as in any captured program.
"""

import inspect

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.callables import OpPacket
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.registry.op_namespace import OpOverload

from . import interpret
from .capture import Capture
from .ir import Block, Node, replaced, values_in
from .passes import DeadCode
from .signature import signature_of
from .values import read_all


def functions_of(table):
    """Name of an op -> function, of a dict whose keys are ops; a packet stands for all of its overloads."""
    found = {}
    for op, function in dict(table).items():
        if not isinstance(op, (OpOverload, OpPacket)) or not callable(function):
            raise TypeError(
                f"run_decompositions(): decomp_table maps ops to functions, such as {{ops.aten.silu.default: f}}, but "
                f"has {op!r}: {function!r}"
            )
        found.update((candidate.name, function) for candidate in op.candidates)
    return found


def decompose(graph, functions, inputs, state):
    """A copy of a graph in which no op stands that `functions` has a name of; {name of a new value: of the old one}.

    inputs, state: values for an example. Raises RuntimeError where a function does not fit its op, or does what has no
    place in a graph.
    """
    made = graph.copy()
    frame = dict(zip(map(id, made.inputs), inputs))
    frame.update(zip((id(s.value) for s in made.state), state))
    with no_grad():
        interpret.run_block(made.block, frame)
    opening = _Opening(made, functions, frame)
    opening.block(made.block)
    for s in made.state:
        s.new = replaced(s.new, opening.renamed)
    if opening.parts:
        DeadCode().run(made)
    return made.check(), opening.came_from


def note_hints(graph, inputs, state):
    """Note at each value what it is for an example, where the example comes to it. inputs, state: values for it."""
    frame = dict(zip(map(id, graph.inputs), inputs))
    frame.update(zip((id(s.value) for s in graph.state), state))
    with no_grad():
        interpret.run_block(graph.block, frame)
    for value in (*graph.inputs, *(s.value for s in graph.state), *(v for node in graph.nodes for v in node.outputs)):
        value.hint = frame[id(value)]


class _Opening:
    """Opens the nodes of a graph.

    Attributes: frame: id of a Value -> what it is for the example; renamed: Value that is gone -> what stands for it;
    came_from: name of a new value -> name of the old one; parts: graphs of what functions did, whose ids are in use.
    """

    def __init__(self, graph, functions, frame):
        self.graph, self.functions, self.frame = graph, functions, frame
        self.renamed, self.came_from, self.parts = {}, {}, []

    def block(self, block, active=()):
        """Write a block's nodes down anew. active: names of ops that are being opened."""
        nodes, block.nodes = block.nodes, []
        for node in nodes:
            if node.op in self.functions and node.op not in active:
                block.nodes += self.opened(node, active)
                continue
            node.args = tuple([replaced(a, self.renamed) for a in node.args])
            block.nodes.append(node)
            for inner in node.blocks:
                self.block(inner, active)
        block.outputs = [replaced(a, self.renamed) for a in block.outputs]

    def opened(self, node, active):
        """The nodes that stand for one."""
        values = list(dict.fromkeys(values_in(node.args)))
        if any(id(v) not in self.frame for v in values):
            raise self.refused(
                node,
                "it does not run for the example inputs, so nobody knows what its arguments are; export with inputs "
                "that take this way",
            )
        examples = [_plain(self.frame[id(v)]) for v in values]
        part = self.captured(node, values, examples)
        self.parts.append(part)
        self.frame.update(zip(map(id, part.inputs), examples))
        with no_grad():
            interpret.run_block(part.block, self.frame)
        results = part.block.nodes.pop()  # what packs them
        stands = dict(zip(part.inputs, [replaced(v, self.renamed) for v in values]))
        moved = Block((), [self.moved(n, stands, node) for n in part.nodes])
        self.block(moved, (*active, node.op))
        for old, new in zip(node.outputs, results.args, strict=True):
            self.renamed[old] = replaced(replaced(new, stands), self.renamed)
        return moved.nodes

    def captured(self, node, values, examples):
        """The graph of what the function does for a node; its last node packs the results."""
        function, signature = self.functions[node.op], signature_of(node.op)
        if signature.generator is not None:
            raise self.refused(node, "the op draws random numbers, and what stands for it would draw others")
        level = Capture(node.op)
        with no_grad(), level:
            stand = dict(zip(map(id, values), [level.argument(e, v.name) for e, v in zip(examples, values)]))
            row = read_all(node.args, stand)
            positional, named = called(signature.op.schema.args, row)
            try:
                inspect.signature(function).bind(*positional, **named)
            except TypeError as error:
                raise self.refused(node, f"the function does not take its arguments: {error}") from None
            except ValueError:  # a builtin function that has no signature
                pass
            try:
                results = function(*positional, **named)
            finally:
                level.reader.restore()
            returned = [results] if len(signature.returns) == 1 else list(results)
            if len(returned) != len(signature.returns):
                raise self.refused(node, f"it gives {len(signature.returns)} results, the function {len(returned)}")
            returned += [row[i] for i in signature.writes]
            graph = level.finish(tuple(returned), False)
        names = {a.name for i in signature.writes for a in values_in((node.args[i],))}
        changed = [s.name for s in graph.state if s.kind == "argument" and s.name not in names]
        if changed:
            raise self.refused(node, f"the function writes to its argument {', '.join(changed)}; give a new tensor")
        outside = [s.name for s in graph.state if s.kind != "argument"]
        if outside:
            raise self.refused(node, f"the function uses what is no argument of the op: {', '.join(outside)}")
        return graph

    def refused(self, node, why):
        place = f" at {node.line}" if node.line else ""
        return RuntimeError(f"run_decompositions(): {node.op}{place}: {why}")

    def moved(self, node, stands, origin):
        """A node of a function's graph as one of this graph, at the line of the node that it stands for."""
        args = [replaced(a, stands) for a in node.args]
        blocks = [self.moved_block(b, stands, origin) for b in node.blocks]
        made = Node(node.op, args, blocks, origin.line, node.version, node.owner)
        made.outputs = tuple([self.value(v, stands, origin, made) for v in node.outputs])
        return made

    def moved_block(self, block, stands, origin):
        inputs = [self.value(v, stands, origin) for v in block.inputs]
        nodes = [self.moved(n, stands, origin) for n in block.nodes]
        return Block(inputs, nodes, [replaced(a, stands) for a in block.outputs])

    def value(self, old, stands, origin, node=None):
        made = stands[old] = self.graph.value(old.type, node)
        if id(old) in self.frame:
            self.frame[id(made)] = self.frame[id(old)]
        if origin.outputs:
            self.came_from[made.name] = origin.outputs[0].name
        return made


def _plain(value):
    """An example without its history."""
    return value.detach() if isinstance(value, Tensor) else value


def called(arguments, row):
    """(args, kwargs) of a call with one value for each argument of a schema; defaults at the end are left out."""
    named = {a.name: v for a, v in zip(arguments, row) if a.kwarg_only and not _is_default(a, v)}
    positional = [v for a, v in zip(arguments, row) if not a.kwarg_only]
    plain = [a for a in arguments if not a.kwarg_only]
    while positional and _is_default(plain[len(positional) - 1], positional[-1]):
        positional.pop()
    return positional, named


def _is_default(argument, value):
    if not argument.has_default or isinstance(value, Tensor):
        return False
    return type(value) is type(argument.default) and value == argument.default
