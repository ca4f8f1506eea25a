"""`ExportedProgram`: a graph, its state, and what was declared of the sizes of its arguments."""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.graph import Program
from tinygrad_ext.jit.loaded import LoadedModule
from tinygrad_ext.nn import Module

from .decompose import decompose, functions_of
from .decompositions import default_decompositions
from .graph_signature import ExportGraphSignature


class ExportedProgram:
    """What `export` and `load` give.

    Attributes:
        graph: the graph of ops, with parameters and buffers as state.
        graph_signature: what its inputs and outputs stand for.
        example_inputs: (args, kwargs) that it was exported with, None where a file has none.
    """

    def __init__(self, program, names, sizes, example_inputs):
        """program: the graph.Program with the method "forward". names: of its arguments, in order."""
        self._program, self._names, self._sizes = program, names, sizes
        self.example_inputs = example_inputs

    @property
    def graph(self):
        return self._program.methods["forward"]

    @property
    def graph_signature(self):
        return ExportGraphSignature.of(self.graph, set(self._told("passing")))

    @property
    def graph_module(self):
        """The graph as a module that takes its state as arguments: inputs and outputs as graph_signature lists them."""
        return FlatModule(self.graph)

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
        passing = self._told("passing")
        return {name: t for name, t in [*self.named_parameters(), *self.named_buffers()] if name not in passing}

    @property
    def constants(self):
        """Path -> tensor that is neither parameter nor persistent buffer."""
        named = {s.name: s.kind for s in self.graph.state}
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
        """A Module that runs the program, over the same parameters and buffers.

        check_guards: refuse sizes that were not declared, by AssertionError.
        """
        found = self._program
        made = ExportedModule(Program(found.methods, dict(found.state), found.notes))
        made.__dict__["_asked"] = self._names, self._sizes if check_guards else None
        return made

    def run_decompositions(self, decomp_table=None):
        """Another program, over the same state, in which ops are what functions make of them.

        decomp_table: dict of an op (`ops.aten.silu.default`; `ops.aten.silu` is all of its overloads) -> function that
        takes what the op takes and gives what it gives, from other ops; default_decompositions() where it is None.
        What a function calls is decomposed as well, but for the op it stands for. Composite ops were opened by
        export().

        Raises RuntimeError, with the op and its line, where a function does not fit its op, uses tensors that are no
        arguments, or stands for an op that draws; and for an op on a way that the example inputs do not take.
        """
        functions = functions_of(default_decompositions() if decomp_table is None else decomp_table)
        if self.example_inputs is None:
            raise RuntimeError("run_decompositions(): the program has no example_inputs, which the functions run on")
        args, kwargs = self.example_inputs
        given = {**dict(zip(self._names, args)), **kwargs}
        inputs, program = [given[name] for name in self._names], self._program
        graph, came_from = decompose(self.graph, functions, inputs, program.state_of(self.graph))
        notes = dict(program.notes)
        if "calls" in notes["forward"]:
            calls = notes["forward"]["calls"]
            nodes = {**calls["nodes"]}
            for new, old in came_from.items():  # what stands for a node is in its call, also at second hand
                if old in nodes:
                    nodes[new] = nodes[old]
            notes["forward"] = {**notes["forward"], "calls": {**calls, "nodes": nodes}}
        made = Program({**program.methods, "forward": graph}, dict(program.state), notes)
        return ExportedProgram(made, self._names, self._sizes, self.example_inputs)

    def validate(self):
        """Raise GraphError for a graph that breaks a rule."""
        self.graph.check()

    def __call__(self, *args, **kwargs):
        raise RuntimeError("an ExportedProgram is not called: exported_program.module() gives what is")

    def __str__(self):
        told = "\n    ".join(str(self.graph).split("\n"))
        signature = "\n    ".join(str(self.graph_signature).split("\n"))
        ranges = f"Range constraints: {self.range_constraints}"
        return f"ExportedProgram:\n    {told}\n\nGraph signature:\n    {signature}\n\n{ranges}"

    def __repr__(self):
        return f"<ExportedProgram of {self._told('name')}: {self._names}>"


def bound(names, args, kwargs):
    """(name, value) of each argument of a call. ValueError where they are not those of the program."""
    given = [*zip(names, args), *kwargs.items()]
    if len(args) > len(names) or sorted(name for name, _ in given) != sorted(names):
        raise ValueError(
            f"the program was exported with the arguments {', '.join(names) or 'none'}, but got {len(args)}"
            + (f" and {', '.join(kwargs)} by name" if kwargs else "")
        )
    return given


@boundary
class ExportedModule(LoadedModule):
    """What `ExportedProgram.module()` gives."""

    def forward(self, *args, **kwargs):
        names, sizes = self._asked
        given = bound(names, args, kwargs)
        if sizes is not None:
            sizes.check(given)
        return self._method("forward")(*args, **kwargs)

    def train(self, mode=True):
        """Refused: the graph is that of the mode in which the module was."""
        raise NotImplementedError(
            f"calling {'train' if mode else 'eval'}() of an exported program is not supported: call it before export()"
        )


class FlatModule(Module):
    """A graph as a module: state and arguments in, written state and results out, as graph_signature lists them."""

    def __init__(self, graph):
        super().__init__()
        self.__dict__["graph"] = graph

    @property
    def code(self):
        """The graph as Python."""
        return self.graph.code

    def print_readable(self, print_output=True):
        """Print the code; returns it."""
        if print_output:
            print(self.code)
        return self.code

    def forward(self, *args):
        from tinygrad_ext.graph import interpret  # lazy: for those who call it

        count = len(self.graph.state)
        outputs, new = interpret.run(self.graph, list(args[count:]), list(args[:count]))
        return (*[value for value, s in zip(new, self.graph.state) if s.written], *flat(outputs))


def flat(tree):
    """The leaves of nested tuples, lists and dicts."""
    if isinstance(tree, dict):
        return flat(list(tree.values()))
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, (tuple, list)) else [tree]
