"""What a graph consists of: values, nodes, blocks, state. Ops in static single assignment form.

A `Graph` is a block of nodes. Each node is one overload of an op with all arguments of its schema, which are values of
earlier nodes or constants, alone or in lists; or a primitive (`prim::If`, `prim::size`, see primitives/), some of
which hold blocks. Every value is made once and has a type. A graph is functional: an op that writes is told as the op
that computes, and what the program changed besides its results (a parameter, a running mean, the state of a generator)
is an input, a `State`, which says what it is afterwards.

A graph from source may have effects instead (`Graph.effects`): in-place forms of ops (`aten::add_.Tensor`) and
primitives that change what others may hold, in program order. What raises or prints is no such effect: it keeps its
place in any graph. Changes of objects that only the graph knows become values (`passes.Functional`).

Rejected: constants as nodes of their own (three lines in four of a printed graph would be constants, and each pass
would have to look through them); keyword attributes apart from inputs (a plain number becomes a value as soon as
somebody passes it in); mutation in the graph with an alias analysis, as TorchScript has it (every pass has to ask it,
and most are not allowed to do anything).
"""

from .nodes import laid_out
from .types import ANY, OF_PYTHON, TENSOR
from .values import outer_values, replaced, used_values, values_in

__all__ = [
    "Block",
    "Node",
    "State",
    "Value",
    "give_lines",
    "outer_values",
    "replaced",
    "used_values",
    "values_in",
]


@laid_out
class Value:
    """What a node or a block makes.

    Attributes:
        name: unique in its graph, without the "%".
        type: a `types.Type`.
        node: the node whose output it is; None for the input of a block.
        hint: what is known of it besides its type, or None: a meta tensor, or a number seen while capturing.
    """

    __slots__ = ("hint", "name", "node", "type")

    def __init__(self, name, type=TENSOR, node=None, hint=None):
        self.name, self.type, self.node, self.hint = name, type, node, hint

    def debugName(self):
        """Its name."""
        return self.name

    def __call__(self):
        """The value itself, for programs that ask a node for its output() as PyTorch's do."""
        return self

    def __repr__(self):
        return f"%{self.name}"


class Row(list):
    """A list that may be called for what goes through it, as PyTorch's programs ask a graph: `graph.nodes()`."""

    __slots__ = ()

    def __call__(self):
        return iter([a if isinstance(a, (Value, Node)) else Constant(a) for a in self])


class Constant:
    """What a graph gives that is no value of it, as PyTorch's programs ask for it. Attributes: value."""

    def __init__(self, value):
        self.value = value

    def type(self):
        return OF_PYTHON.get(type(self.value), ANY)

    def debugName(self):
        return repr(self.value)


@laid_out
class Node:
    """One step.

    Attributes:
        op: "aten::add.Tensor", "prim::If", "demo::double".
        args: one for each argument of the schema: a Value, a constant, or a tuple of those.
        outputs: tuple of Values.
        blocks: tuple of Blocks that it runs.
        line: "file.py:12 in forward", where the user's program called it; "" where that is not known.
        version: of the op's meaning, see `Record.version`.
        owner: who brought the op, "tinygrad_ext" or "name version" of a distribution.
        seq, derives: a number that nodes of its derivative name, and that of the node whose derivative it is part of;
            0: none.
    """

    __slots__ = ("args", "blocks", "derives", "line", "op", "outputs", "owner", "seq", "version")

    def __init__(self, op, args=(), blocks=(), line="", version=1, owner="tinygrad_ext"):
        self.op, self.args, self.blocks, self.line = op, tuple(args), tuple(blocks), line
        self.version, self.owner, self.outputs = version, owner, ()
        self.seq = self.derives = 0

    @property
    def output(self):
        """The only output."""
        (value,) = self.outputs
        return value

    def numbered_as(self, old):
        """This node, which stands for `old` in the arrows that profiles draw from a node to its derivative."""
        self.seq, self.derives = old.seq, old.derives
        return self

    def values(self):
        """The Values among the arguments, in order, those in lists too."""
        return values_in(self.args)

    def __call__(self):
        """The node itself, for programs that ask a value for its node()."""
        return self

    def inputs(self):
        """Go through its arguments: the parts of a list one by one, what is no value as a Constant."""
        return Row(x for a in self.args for x in (a if isinstance(a, tuple) else (a,)))()

    def inputsSize(self):
        return len(list(self.inputs()))

    def outputsSize(self):
        return len(self.outputs)

    def kind(self):
        """The op without its overload: "aten::add"."""
        return self.op if self.op.startswith("prim::") else self.op.partition(".")[0]

    def __repr__(self):
        return f"<node {', '.join(map(repr, self.outputs))} = {self.op}>"


class Block:
    """Nodes in the order in which they run. Attributes: inputs (Values), nodes, outputs (Values or constants)."""

    __slots__ = ("inputs", "nodes", "outputs")

    def __init__(self, inputs=(), nodes=(), outputs=()):
        self.inputs, self.nodes, self.outputs = Row(inputs), Row(nodes), Row(outputs)

    def walk(self):
        """All nodes, those of inner blocks before the node that holds them is left."""
        for node in self.nodes:
            yield node
            for block in node.blocks:
                yield from block.walk()

    def findAllNodes(self, kind, recurse=True):
        """The nodes of a `Node.kind()`; recurse: those of inner blocks too."""
        return [node for node in (self.walk() if recurse else self.nodes) if node.kind() == kind]

    def findNode(self, kind, recurse=True):
        """The first node of a kind, or None."""
        return next(iter(self.findAllNodes(kind, recurse)), None)


class State:
    """An input that is not passed in: the graph finds it with its owner, and may write it back.

    Attributes:
        name: path such as "fc.weight"; unique in the graph.
        kind: "parameter", "buffer", "constant", "grad", "number", "attribute" (any other value), "generator" or
            "argument" (an input of that name, which is written to).
        value: the Value inside the graph.
        new: what it is afterwards, a Value or a constant; the same `value` where the graph does not change it.
    """

    __slots__ = ("kind", "name", "new", "value")

    def __init__(self, name, kind, value, new=None):
        self.name, self.kind, self.value = name, kind, value
        self.new = value if new is None else new

    @property
    def written(self):
        return self.new is not self.value


def give_lines(block, line=""):
    """Let nodes that no line is known of, such as guards of sizes and what a derivative keeps, have that of the node
    before them, or around."""
    line = line or next((node.line for node in block.nodes if node.line), "")
    for node in block.nodes:
        node.line = line = node.line or line
        for inner in node.blocks:
            give_lines(inner, line)
