"""What the arguments of an exported program are asked for: declared sizes, words and truth values, and what the program
decided by sizes that are open.

The last is no part of the fx graphs, which passes read: a `Guards` in the module asks it, as PyTorch's `_guards_fn`
does, by running what the decisions hang on over tensors without memory, once for the sizes of a call.
"""

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.fx.experimental.writer import described, leaves_of, rebuilt
from tinygrad_ext.fx.proxy import Proxy
from tinygrad_ext.graph import Graph, interpret
from tinygrad_ext.graph.passes import DeadCode
from tinygrad_ext.graph.primitives import GuardFailed
from tinygrad_ext.jit.tracing import is_tracing
from tinygrad_ext.nn import Module

_OPEN = (int, float, complex)  # numbers that are inputs of a graph
_MOST = 1000  # sizes that are remembered


def guards_of(captured, inputs, state):
    """The part of a graph that its guards hang on; None where it has none, or not by what is known without elements.

    inputs, state: values of the graph's inputs and states.
    """
    graph = captured.copy(hints=True)
    graph.block.outputs = []
    for s in graph.state:
        s.new = s.value
    graph = DeadCode().run(graph)
    if not any(node.op == "prim::guard" for node in graph.walk()):
        return None
    try:
        interpret.run(graph, described(list(inputs)), described(list(state)))
    except Exception:  # it reads elements, draws numbers, or has an op that wants them: its guards stay in the graph
        return None
    return graph


def check_words(names, example, given):
    """AssertionError where an argument is another word, truth value or None than that of the example."""
    values = dict(given)
    for name, wanted in zip(names, example):
        rows = zip(leaves_of([wanted]), leaves_of([values[name]]))
        for known, value in rows:
            if isinstance(known, Tensor) or type(known) in _OPEN or known is value:
                continue
            if type(known) is not type(value) or known != value:
                told = f"{name}: got {value!r}, but the program was exported for {known!r}"
                raise AssertionError(f"{told}. Export it with that one as well")


class Guards(Module):
    """Looks at the leaves of the arguments and raises AssertionError where the program does not hold for them."""

    _is_impure = True

    def __init__(self, names, example, sizes, graph, state):
        """names, example: of the arguments. sizes: a `Sizes`. graph: of `guards_of`, or None. state: its states."""
        super().__init__()
        self.is_flat = all(isinstance(a, Tensor) for a in example)
        self.names, self.example, self.sizes = list(names), described(list(example)), sizes
        self.text, self.state = None if graph is None else str(graph), described(list(state))
        self._graph, self._known = graph, set()

    def forward(self, *leaves):
        if any(isinstance(leaf, Proxy) for leaf in leaves):
            return
        row = leaves if self.is_flat else rebuilt(self.example, iter(leaves))
        given = list(zip(self.names, row))
        self.sizes.check(given)
        if not self.is_flat:
            check_words(self.names, self.example, given)
        if self.text is None or is_tracing():  # (a capture has asked for sizes and words, and knows no elements)
            return
        key = tuple([tuple(leaf.shape) if isinstance(leaf, Tensor) else leaf for leaf in leaves])
        if key in self._known:
            return
        if self._graph is None:
            self._graph = Graph.parse(self.text)
        try:
            interpret.run(self._graph, described(list(row)), self.state)
        except GuardFailed as error:
            raise AssertionError(f"Guard failed: {error}") from None
        if len(self._known) == _MOST:
            self._known.clear()
        self._known.add(key)

    def __getstate__(self):
        return {**self.__dict__, "_graph": None, "_known": set()}
