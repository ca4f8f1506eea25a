"""`Graph`: a captured program, and what can be done with it."""

from .alike import same_program
from .check import check
from .ir import Block, Row, State
from .nodes import Names
from .text import read_graph, write_graph
from .types import TENSOR
from .values import Copy


class Graph(Names):
    """A captured program: inputs, state, nodes, outputs.

    `print(graph)` shows it, `Graph.parse(str(graph)) == graph`; see `check` for what holds of every graph.

    Attributes:
        name: of the function it was made of.
        block: inputs, nodes and outputs.
        state: list of `State`.
        effects: whether nodes may change what others made; only then are in-place forms of ops allowed.
    """

    def __init__(self, name="graph", block=None, state=(), effects=False):
        super().__init__()
        self.name, self.block, self.state, self.effects = name, block or Block(), list(state), effects
        self._executor = None
        self._one_by_one = None
        self.derivative = None  # see derivative.py; made when a gradient is first asked for

    # ---- reading --------------------------------------------------------------------------------------------------

    @property
    def inputs(self):
        return _row(self.block, "inputs")

    @property
    def nodes(self):
        return _row(self.block, "nodes")

    @property
    def outputs(self):
        return _row(self.block, "outputs")

    def walk(self):
        """All nodes, those of inner blocks too."""
        return self.block.walk()

    def findAllNodes(self, kind, recurse=True):
        """The nodes of a `Node.kind()`, such as "aten::add"; recurse: those of inner blocks too."""
        return self.block.findAllNodes(kind, recurse)

    def findNode(self, kind, recurse=True):
        """The first node of a kind, or None."""
        return self.block.findNode(kind, recurse)

    def __str__(self):
        return write_graph(self)

    def __repr__(self):
        return f"<Graph {self.name}: {len(self.inputs)} inputs, {sum(1 for _ in self.walk())} nodes>"

    def __eq__(self, other):
        return same_program(self, other) if isinstance(other, Graph) else NotImplemented

    __hash__ = None

    @classmethod
    def parse(cls, text):
        """The graph that `str` wrote.

        Raises:
            ValueError: text is no graph; the message names the line and what was expected there.
        """
        return read_graph(text, cls())

    def copy(self, hints=False):
        """A graph of its own with the same names; constants are shared, and with `hints` what is known of tensors."""
        return copied(self, type(self)(self.name, effects=self.effects), hints)

    # ---- building -------------------------------------------------------------------------------------------------

    def input(self, name, type=TENSOR, hint=None):
        """Add an input."""
        made = self.value(type, None, hint, name)
        self.inputs.append(made)
        return made

    # ---- running --------------------------------------------------------------------------------------------------

    @property
    def executor(self):
        """What runs the graph by plans: called with a value for each input and each state. See `plan.Executor`.

        Made once; whoever changes the graph afterwards sets it to None.
        """
        if self._executor is None:
            from .plan import Executor  # lazy: graphs are often only looked at

            self._executor = Executor(self)
        return self._executor

    @executor.setter
    def executor(self, value):
        self._executor = value
        self.derivative = self._one_by_one = None

    def execute(self, inputs, state=()):
        """Outputs of the graph, and the new state, as `interpret.run` gives them: the same bits, by plans.

        Results have no history for autograd.
        """
        results = self.executor.function(*inputs, *state)
        return list(results[: len(self.outputs)]), list(results[len(self.outputs) :])

    def execute_one_by_one(self, inputs, state=()):
        """As `execute`, op after op, with autograd where it is on."""
        if self._one_by_one is None:
            from .plan import Executor  # lazy: graphs are often only looked at

            self._one_by_one = Executor(self, one_by_one=True)
        results = self._one_by_one(*inputs, *state)
        return list(results[: len(self.outputs)]), list(results[len(self.outputs) :])

    def plan(self, *inputs, state=()):
        """The `Plan` for such inputs and states."""
        return self.executor.plan(*inputs, *state)

    def explain(self):
        """How often the graph was planned and why, and what the interpreter does: text."""
        return self.executor.explain()

    # ---- looking --------------------------------------------------------------------------------------------------

    def check(self):
        """Raise GraphError naming the rule that is broken; return the graph where none is."""
        return check(self)

    @property
    def code(self):
        """The graph as the text of a Python function over `tinygrad_ext.ops`."""
        from .code import write_code  # lazy: for reading only

        return write_code(self)

    def draw(self):
        """The graph as the text of an SVG picture."""
        from .picture import draw  # lazy: for reading only

        return draw(self)

    def _repr_html_(self):
        return self.draw()


def _row(block, name):
    """A list of a block, which may be called like PyTorch's."""
    found = getattr(block, name)
    if type(found) is not Row:
        found = Row(found)
        setattr(block, name, found)
    return found


def copied(graph, to, hints=False):
    """Fill an empty graph with what another one has."""
    copy = Copy(TENSOR if hints else None)
    to.state = [State(s.name, s.kind, copy.value(s.value)) for s in graph.state]
    copy.fill(graph.block, to.block)
    for state, old in zip(to.state, graph.state):
        state.new = copy.read(old.new)
    to._count, to._names = graph._count, set(graph._names)
    return to
