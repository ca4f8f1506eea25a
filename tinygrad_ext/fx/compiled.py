"""What `compile(backend=function)` hands to the function: a captured program as a flat GraphModule of ops.

The module takes the parameters, buffers and other tensors that the program reads, then the tensors among the arguments,
and gives what the program writes and returns, in one tuple. Sizes and numbers are those of the call, so a call of
another geometry is captured and handed over anew.
"""

import re

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.core.data.tensor import Tensor

from .experimental.open_numbers import open_values
from .experimental.writer import Writer, described, leaves_of, rebuilt
from .graph_module import GraphModule
from .node import Node


class Handed(Writer):
    """A captured program as a function of its arguments, by what a backend makes of its GraphModule.

    Attributes: captured, a jit.captured.Captured; module; inputs: what the module takes for the arguments that it was
    captured with, None once it is compiled; function: what the backend gave, None before it did.
    """

    simpler = {}

    def __init__(self, captured, args):
        """args: all arguments of a call."""
        graph = captured.graph
        super().__init__(open_values(graph, [id(s.value) for s in graph.state if s.kind == "number"]))
        self.captured, self.states, self.inputs, self.function = captured, [], [], None
        for i, (s, holder) in enumerate(zip(graph.state, captured.holders)):
            value = None if s.kind == "argument" else holder.read(args)
            if value is None or value is default_generator:
                self.env[id(s.value)] = None
            else:
                self.env[id(s.value)] = self.placeholder(f"l_self_{s.name}", value)
                self.states.append(i)
        for value, given in zip(graph.inputs, args):
            self.env[id(value)] = self.argument(given, value.name)
        for s, holder in zip(graph.state, captured.holders):
            if s.kind == "argument":
                self.env[id(s.value)] = holder.at([self.env[id(v)] for v in graph.inputs])
        self.block(graph.block)
        self.written = [i for i, s in enumerate(graph.state) if s.written and s.kind != "generator"]
        self.results = self.read(graph.outputs[0])
        self.outputs = [*(self.read(graph.state[i].new) for i in self.written), *leaves_of(self.results)]
        self.graph.output(tuple([a for a in self.outputs if isinstance(a, Node)]))
        self.graph.eliminate_dead_code()
        self.module = GraphModule(self.root, self.graph)

    def given(self, value, name):
        """A placeholder for a tensor among the arguments; anything else as it is."""
        return self.placeholder(f"l_{name}", value) if isinstance(value, Tensor) else value

    def placeholder(self, name, value):
        node = self.graph.placeholder(f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}_")
        node.target = node.name
        node.meta["val"] = node.meta["example_value"] = described(value)
        self.inputs.append(value)
        return node

    def __call__(self, args):
        """What the program gives for such arguments; its state is written."""
        captured = self.captured
        state = [holder.read(args) for holder in captured.holders]
        tensors = [leaf for leaf in leaves_of(list(args)) if isinstance(leaf, Tensor)]
        given = [*(state[i] for i in self.states), *tensors]
        if captured.differentiates:
            with no_grad():
                made = self.function(*given)
        else:
            made = self.function(*given)
        made = made if isinstance(made, (tuple, list)) else [made]
        wanted = sum(isinstance(a, Node) for a in self.outputs)
        if len(made) < wanted:
            raise IndexError(
                f"compile(): the backend's function gave {len(made)} of the {wanted} results of its graph: "
                "return what gm.forward returns"
            )
        made = iter(made)
        values = [next(made) if isinstance(a, Node) else a for a in self.outputs]
        for i, value in zip(self.written, values):
            captured.write(i, value, args)
        result = rebuilt(self.results, iter(values[len(self.written) :]))
        return captured.with_own(result, state)
