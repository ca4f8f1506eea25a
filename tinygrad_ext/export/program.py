"""`ExportedProgram`: a graph, its state, and what was declared of the sizes of its arguments."""

from functools import cached_property

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph import Program
from tinygrad_ext.graph.decompose import decompose, functions_of
from tinygrad_ext.jit.keys import told
from tinygrad_ext.utils._pytree import tree_map
from tinygrad_ext.utils.nested import opened_as

from .decompositions import default_decompositions
from .guards import check_words
from .lifted import lifted
from .module import ExportedModule


class ExportedProgram:
    """What `export` and `load` give.

    Attributes:
        captured: the graph of ops that runs, a `graph.Graph` with parameters and buffers as state.
        graph_module: the same as a `fx.GraphModule` of ops, which takes state and arguments and gives written state and
            results, as graph_signature lists them. A pass may change it, and `module()` is what it made of it.
        graph: its fx graph.
        example_inputs: (args, kwargs) that it was exported with, in the dtypes and on the devices that its parameters
            have now; None where a file has none.
    """

    def __init__(self, program, names, sizes, example_inputs, nested=None, opened=()):
        """program: the graph.Program with the method "forward". names: of its arguments, in order. nested: spec of the
        results where they are named tuples or the like; opened: name of an argument -> its spec where it holds what is
        registered with pytree. A file keeps neither."""
        self._program, self._names, self._sizes = program, names, sizes
        self.example_inputs, self._nested, self._written = example_inputs, nested, None
        self._opened = dict(opened)
        self.is_moved = False  # its state has other dtypes or devices now than it was exported with

    def move(self, kinds):
        """Know that a module of this program gave its parameters other dtypes or devices: the example, and what is
        noted of it, are of those from now on. kinds: (dtype, device) before -> the same now."""

        def moved(value):
            kind = kinds.get((value.dtype, value.device)) if isinstance(value, Tensor) else None
            if kind is None:
                return value
            return value.detach().to(dtype=kind[0], device=kind[1]).requires_grad_(value.requires_grad)

        self.is_moved = True
        if kinds:
            self.example_inputs = tree_map(moved, self.example_inputs)
            self.__dict__.pop("example", None)
            program = self._program
            note = {**program.notes["forward"], "key": told(tuple(self.example))}
            self._program = Program(program.methods, program.state, {**program.notes, "forward": note})
            if not self.is_changed:
                self._written = None

    @property
    def captured(self):
        return self._program.methods["forward"]

    @property
    def placed(self):
        """How many arguments the example has by their place; all where there is no example."""
        return len(self._names if self.example_inputs is None else self.example_inputs[0])

    @cached_property
    def example(self):
        """The arguments that it was exported with, in the order of their names."""
        return [value for _, value in self.plain(zip(self._names, self.closed_example))]

    @property
    def closed_example(self):
        """The same as the caller has them."""
        args, kwargs = self.example_inputs
        given = {**dict(zip(self._names, args)), **kwargs}
        return [given[name] for name in self._names]

    def plain(self, given):
        """(name, value) pairs of arguments as the graph takes them."""
        return [(n, opened_as(self._opened[n], value, n) if n in self._opened else value) for n, value in given]

    @cached_property
    def is_flat(self):
        """Whether all arguments are tensors, as far as an example tells, so that their sizes alone are asked for."""
        return self.example_inputs is None or all(isinstance(a, Tensor) for a in self.example)

    def check(self, given):
        """AssertionError for arguments that the program does not hold for. given: (name, value) pairs."""
        self._sizes.check(given)
        if not self.is_flat:
            check_words(self._names, self.example, given)

    @property
    def written(self):
        """The fx graph and what belongs to it, a `lifted.Lifted`, made when it is asked for first."""
        if self._written is None:
            self._written = lifted(self)
        return self._written

    @property
    def graph_module(self):
        return self.written.module

    @property
    def graph(self):
        return self.graph_module.graph

    @property
    def graph_signature(self):
        """What the inputs and outputs of graph_module stand for."""
        return self.written.signature

    @property
    def is_changed(self):
        """Whether graph_module is another than it was made."""
        return self._written is not None and str(self.graph) != self._written.text

    @property
    def range_constraints(self):
        """Name of a Dim -> (smallest, largest)."""
        return dict(self._sizes.ranges)

    # ---- state ----------------------------------------------------------------------------------------------------

    def _told(self, key):
        return self._program.notes[""].get(key, [])

    @property
    def state_dict(self):
        """Path -> parameter or buffer, the tensors that the program uses; without buffers that are not persistent."""
        passing, found = self._told("passing"), dict([*self.named_parameters(), *self.named_buffers()])
        found.update((name, found[first]) for name, first in self.tied)
        return {name: t for name, t in found.items() if name not in passing}

    @property
    def tied(self):
        """(further name, name) of each parameter and buffer that has several."""
        return [tuple(row) for row in self._program.notes[""]["export"].get("tied", ())]

    @property
    def constants(self):
        """Path -> tensor that is neither parameter nor persistent buffer."""
        named = {s.name: s.kind for s in self.captured.state}
        return {
            name: value
            for name, value in self._program.state.items()
            if named.get(name) == "constant" or name in self._told("passing")
        }

    def named_parameters(self):
        """(path, parameter) of each."""
        return [(name, self._program.state[name]) for name in self._told("parameters")]

    def parameters(self):
        """Each parameter."""
        return [p for _, p in self.named_parameters()]

    def named_buffers(self):
        """(path, buffer) of each."""
        return [(name, self._program.state[name]) for name in self._told("buffers")]

    def buffers(self):
        """Each buffer."""
        return [b for _, b in self.named_buffers()]

    # ---- use ------------------------------------------------------------------------------------------------------

    def module(self, check_guards=True):
        """A GraphModule that runs the program, over the same parameters and buffers.

        check_guards: refuse sizes that were not declared, by AssertionError.
        """
        return ExportedModule(self, check_guards)

    def over(self, state):
        """The same program with other values as its state. state: name -> value."""
        inner = self._program
        made = Program(inner.methods, state, inner.notes)
        return ExportedProgram(made, self._names, self._sizes, self.example_inputs, self._nested, self._opened)

    def run_decompositions(self, decomp_table=None):
        """Another program, over the same state, in which ops are what functions make of them.

        decomp_table: dict of an op (`ops.aten.silu.default`; `ops.aten.silu` is all of its overloads) -> function that
        takes what the op takes and gives what it gives, from other ops; default_decompositions() where it is None.
        What a function calls is decomposed as well, but for the op it stands for. Composite ops were opened by
        export().

        Raises RuntimeError, with the op and its line, where a function does not fit its op, uses tensors that are no
        arguments, or stands for an op that draws; and for an op on a way that the example inputs do not take.
        """
        self.refuse_changes("run_decompositions()")
        functions = functions_of(default_decompositions() if decomp_table is None else decomp_table)
        if self.example_inputs is None:
            raise RuntimeError("run_decompositions(): the program has no example_inputs, which the functions run on")
        inputs, program = self.example, self._program
        graph, came_from = decompose(self.captured, functions, inputs, program.state_of(self.captured))
        notes = dict(program.notes)
        if "calls" in notes["forward"]:
            calls = notes["forward"]["calls"]
            nodes = {**calls["nodes"]}
            for new, old in came_from.items():  # what stands for a node is in its call, also at second hand
                if old in nodes:
                    nodes[new] = nodes[old]
            notes["forward"] = {**notes["forward"], "calls": {**calls, "nodes": nodes}}
        made = Program({**program.methods, "forward": graph}, dict(program.state), notes)
        return ExportedProgram(made, self._names, self._sizes, self.example_inputs, self._nested, self._opened)

    def validate(self):
        """Raise GraphError for a graph that breaks a rule."""
        self.captured.check()

    def refuse_changes(self, what):
        """RuntimeError where a pass changed graph_module, which `what` would not see."""
        if self.is_changed:
            raise RuntimeError(
                f"{what}: graph_module was changed since export(), and this reads what was captured then. Export what "
                "the passes made: export(program.module(), args)"
            )

    def __call__(self, *args, **kwargs):
        raise RuntimeError("an ExportedProgram is not called: exported_program.module() gives what is")

    def __str__(self):
        told = "\n    ".join(self.graph_module.print_readable(print_output=False).split("\n"))
        signature = "\n    ".join(str(self.graph_signature).split("\n"))
        ranges = f"Range constraints: {self.range_constraints}"
        return f"ExportedProgram:\n    {told}\n\nGraph signature:\n    {signature}\n\n{ranges}"

    def __repr__(self):
        return f"<ExportedProgram of {self._told('name')}: {self._names}>"
