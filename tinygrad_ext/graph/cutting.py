"""Cuts blocks into what runs: rows of nodes that are planned, and steps between them (steps.pyx).

Which nodes cannot be planned is found out while planning: the block that holds one is cut anew then.
"""

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.levels import operation

from . import interpret, primitives
from .ir import Value, used_values, values_in
from .lowering import ByValue
from .passes.base import has_effect
from .planning import Planner, Unplanned, fits, needed_by_value
from .routine import Runner, difference
from .signature import signature_of
from .steps import CallStep, Flow, IfStep, LoopStep, Parted, Place, RowStep
from .values import read_all

_STACKS = {"prim::push", "prim::pop"}
MOST = 250  # values that a row reads
OFTEN = 4  # plans that differ in a number alone, before what depends on it is done apart


class Row:
    """Nodes that follow each other and can be planned, with what they read and what others read of them."""

    def __init__(self, executor, nodes, inputs, outputs):
        self.executor, self.nodes, self.inputs, self.outputs = executor, nodes, inputs, outputs
        self.updates = ()  # (output, input) of states that are updated where they lie
        self.again = ()  # outputs that are held until the call after the next: gradients
        self.by_value = needed_by_value(nodes, inputs)  # numbers among the inputs whose value sizes depend on
        self.runner = Runner(len(inputs), self.missed, self.failed)

    def missed(self, values):
        """A Routine for values; or the results, where the interpreter has to give them."""
        planner = Planner(self)
        try:
            while True:
                try:
                    made = planner.routine(values)
                    break
                except ByValue as more:
                    self.by_value |= more.numbers[0]
                    planner = Planner(self)
        except Unplanned as stop:
            found = [node for node in self.nodes if node is stop.node or stop.node in used_values(node)]
            return self.parted(found, stop.reason, values)
        except Exception as error:
            results = self.interpreted(values)  # raises what eager mode raises, and says where
            self.executor.box(self, [planner.node], f"planning it failed: {error}")
            return results
        self.note(values)
        return made

    def parted(self, nodes, reason, values):
        """Let nodes be done apart: raises Parted, or returns the results where no Flow waits for that."""
        if not nodes:  # an input that no plan takes is returned as it is
            return self.interpreted(values)
        whole = self.executor.whole is self
        steps = self.executor.box(self, nodes, reason)
        if whole:
            return self.executor(*values)
        if steps:
            raise Parted(steps) from None
        return self.interpreted(values)

    def note(self, values):
        """Remember why a plan had to be made. What depends on a number that is another each time is done apart."""
        routines = self.runner.routines
        names = [f"%{v.name}" for v in self.inputs]
        self.executor.misses.append(difference(routines[0], values, names) if routines else "it is the first call")
        if len(routines) >= OFTEN and self.executor.flow is not None:
            for value in [v for i, v in enumerate(self.inputs) if i in self.by_value]:
                found = [node for node in self.nodes if value in node.values()]
                if found:
                    self.executor.box(
                        self, found, f"%{value.name} is another number each time, and its sizes depend on it"
                    )

    def failed(self, values, error):
        """An instruction failed: eager mode says so at the user's line, or knows what to do with another number.

        error: None where the plan was not tried, because it failed for such numbers before.
        """
        results = self.interpreted(values)
        self.executor.overflows += 1
        return results

    def interpreted(self, values):
        frame = dict(zip(map(id, self.inputs), values))
        for node in self.nodes:
            try:
                with no_grad():
                    interpret._run_node(node, frame)
            except Exception as error:
                say_where(node, error)
                raise
        return updated(tuple(read_all(self.outputs, frame)), values, self.updates)


def updated(results, values, updates):
    """Results, of which those in `updates` stand in the tensors that were passed in, where they fit."""
    if not updates:
        return results
    results = list(results)
    found = [(o, values[i], results[o].detach().clone()) for o, i in updates if fits(values[i], results[o])]
    with no_grad():
        for o, old, new in found:
            results[o] = old
            old.detach().copy_(new)
    return tuple(results)


def say_where(node, error):
    """Say in an error, once, where the user's program called what failed; what the program itself raises says what it
    says."""
    if isinstance(error, primitives.GuardFailed):
        return
    if not isinstance(error, RuntimeError) or isinstance(error, primitives.objects.Error):
        interpret.note_line(error, node)
    elif node.line and error.args and type(error.args[0]) is str and "\n  in the graph's " not in error.args[0]:
        told = f"{error.args[0]}\n  in the graph's {node.op}, from {node.line}\n{interpret.shown(node, error)}"
        error.args = (told.rstrip("\n"), *error.args[1:])


class Cut:
    """A block, cut.

    Attributes:
        flow: what runs it.
        parts: Rows, Cuts of inner blocks, and nodes that are done one by one, in order.
    """

    def __init__(self, executor, block, outputs):
        self.executor, self.nodes, self.outputs = executor, block.nodes, outputs
        self.flow = Flow(say_where)
        self.inner = {}  # node that no plan has -> Cuts of its blocks
        for node in self.nodes:
            executor.cuts[node] = self
        self.cut()

    def cut(self):
        """Cut the nodes as things are now."""
        self.parts, self.flow.steps = self._cut(self.nodes, values_in(self.outputs))
        self.flow.yields = [self.told(a) for a in self.outputs]

    def split(self, row):
        """Cut the nodes of one row, some of which turned out to stand alone; the other rows keep their plans. Returns
        the steps that are in its place; none if it had been cut before."""
        if row not in self.parts:
            return []
        at = self.parts.index(row)
        parts, steps = self._cut(row.nodes, row.outputs)
        self.parts = [*self.parts[:at], *parts, *self.parts[at + 1 :]]
        self.flow.steps = [*self.flow.steps[:at], *steps, *self.flow.steps[at + 1 :]]
        return steps

    def _cut(self, nodes, outputs):
        """Parts and steps for nodes that follow each other, of which these values are read behind them."""
        parts, steps, wanted = [], [], set(map(id, outputs))
        for piece in reversed(self._pieces(nodes)):
            if type(piece) is list:
                row = self._row(piece, wanted)
                parts.append(row)
                places = [self.place(v).at for v in row.inputs]
                steps.append(RowStep(piece[0], [self.place(v).at for v in row.outputs], row.runner, places))
                wanted.update(map(id, row.inputs))
            else:
                parts.append(piece)
                steps.append(self._step(piece))
                wanted.update(map(id, used_values(piece)))
        return parts[::-1], steps[::-1]

    def _pieces(self, nodes):
        """Lists of nodes that make rows, and nodes that stand alone, in an order in which they can run."""
        found, row, made, reads = [], [], set(), set()
        for node in nodes:
            if not self._stands_alone(node):
                own = set(map(id, used_values(node)))
                if len(reads) + len(own - reads) > MOST:
                    found.append(row)
                    row, made, reads = [], set(), set()
                row.append(node)
                made.update(map(id, node.outputs))
                reads |= own
                continue
            first = not has_effect(node) and not any(id(v) in made for v in used_values(node))
            if row and not first:
                found.append(row)
                row, made, reads = [], set(), set()
            found.append(node)
        return [*found, row] if row else found

    def _stands_alone(self, node):
        if node in self.executor.boxed or self.executor.one_by_one:
            return True
        row = primitives.TABLE.get(node.op)
        carried = node.op in _STACKS and node.args[0].node is None and self.nodes is not self.executor.graph.block.nodes
        return len(used_values(node)) > MOST or carried or (row is not None and row.effect == "takes")

    def _row(self, nodes, wanted):
        made = {id(v) for node in nodes for v in node.outputs}
        outputs = [v for node in nodes for v in node.outputs if id(v) in wanted]
        return Row(self.executor, nodes, [v for v in _read_by(nodes) if id(v) not in made], outputs)

    # ---- steps -----------------------------------------------------------------------------------------------------

    def place(self, value):
        return self.executor.places[id(value)]

    def told(self, a):
        """An argument as a step has it."""
        if isinstance(a, Value):
            return self.place(a)
        if type(a) is tuple:
            return tuple([self.told(x) for x in a])
        return slice(self.told(a.start), self.told(a.stop), self.told(a.step)) if type(a) is slice else a

    def _step(self, node):
        to, args = [self.place(v).at for v in node.outputs], [self.told(a) for a in node.args]
        if node.op == "prim::Function":  # only of those that are done one by one
            return self._recorded(node, to)
        if node.blocks:
            if node not in self.inner:
                self.inner[node] = [Cut(self.executor, b, b.outputs) for b in node.blocks]
            return self._with_blocks(node, to, args, self.inner[node])
        function, several = _function(node)
        return CallStep(node, to, function, tuple(args), several)

    def _recorded(self, node, to):
        """A Function that is one step for autograd."""
        values = used_values(node)

        def run(*given):
            return interpret.run_node_function(node, dict(zip(map(id, values), given)))

        return CallStep(node, to, run, tuple([self.place(v) for v in values]), True)

    def _with_blocks(self, node, to, args, cuts):
        flows = [cut.flow for cut in cuts]
        inputs = [self.place(v).at for v in node.blocks[0].inputs]
        if node.op == "prim::If":
            return IfStep(node, to, args[0], *flows)
        return LoopStep(node, to, tuple(args), inputs, flows[0])

    def walk(self):
        """Rows and nodes that are done one by one, those of inner blocks too."""
        for part in self.parts:
            yield part
            for cut in self.inner.get(part, ()):
                yield from cut.walk()


def places_of(graph):
    """{id of a value: its Place in a frame} for all values of a graph, those of inner blocks too."""
    found = {id(s.value): s.value for s in graph.state}
    inner = [block for node in graph.walk() for block in node.blocks]
    found.update((id(v), v) for block in (graph.block, *inner) for v in block.inputs)
    found.update((id(v), v) for node in graph.walk() for v in node.outputs)
    return {key: Place(at) for at, key in enumerate(found)}


def _read_by(nodes):
    return list({id(v): v for node in nodes for v in used_values(node)}.values())


def _function(node):
    """(function of a node's arguments, whether it returns a sequence of what is made)."""
    row = primitives.TABLE.get(node.op)
    if row is not None:
        return row.run, len(node.outputs) > 1 or node.op == "prim::unpack"
    signature = signature_of(node.op)
    drawn = signature.generator is not None and isinstance(node.args[signature.generator], Value)
    if signature.writes or drawn:
        return (lambda *args: interpret._run_op(node, list(args))), True
    return operation(signature.op, "inplace" if signature.inplace else "functional"), len(node.outputs) > 1
