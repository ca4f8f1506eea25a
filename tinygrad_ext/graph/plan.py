"""Runs graphs by plans: a row of nodes and the geometry of what it reads become a `Routine`, which runs in C.

An `Executor` cuts a block into rows of nodes that can be planned and nodes that the interpreter does: control flow,
what reads elements, Python functions. Each row has its own plans, one for each geometry it was called with. Which nodes
cannot be planned is found out while planning and kept, with the reason.

A plan knows nothing of autograd: results have no history.
"""

from collections import namedtuple

from tinygrad_ext.autograd import no_grad

from . import interpret, primitives
from .check import has_effect
from .ir import used_values, values_in
from .lowering import ByValue
from .planning import BOXED, Planner, Unplanned, fits
from .routine import Routine, Runner, difference


class Executor:
    """A graph, ready to run.

    Call it with a value for each input and then one for each state; it returns a tuple with the outputs and the new
    states. None of what is passed in is changed but the states that it was told to update.

    Attributes:
        boxed: {node: why the interpreter does it}.
        function: the quickest way to call it as it is now: itself, or what runs its only row.
        effects: whether the graph does more than to compute and to raise: then the interpreter runs all of it.
        misses: for each plan that was made what differed from the one before, the latest last.
    """

    def __init__(self, graph, updates=()):
        """updates: numbers of states whose tensors are to hold their new values; they are returned in their place."""
        self.graph = graph
        self.updates = [(len(graph.outputs) + k, len(graph.inputs) + k) for k in updates if graph.state[k].written]
        self.boxed, self.misses = {}, []
        self.effects = graph.effects and any(has_effect(n) and n.op != "prim::raise" for n in graph.walk())
        self.inputs = [*graph.inputs, *(s.value for s in graph.state)]
        self.outputs = [*graph.outputs, *(s.new for s in graph.state)]
        self._cut()

    def _cut(self):
        if self.effects:  # what is written to may be anybody's
            self.rows, self.whole, self.function = list(self.graph.nodes), None, self
            return
        self.rows = _rows(self, self.graph.block.nodes, self.inputs, self.outputs)
        only = self.rows[0] if len(self.rows) == 1 else None
        self.whole = only if type(only) is Row else None
        if self.whole is not None:
            self.whole.updates = self.updates
        self.function = self if self.whole is None else self.whole.runner

    def __call__(self, *values):
        if self.whole is not None:
            return self.whole.runner(*values)
        if self.effects:
            count = len(self.graph.inputs)
            outputs, state = interpret.run(self.graph, values[:count], values[count:])
            return _updated((*outputs, *state), values, self.updates)
        if len(values) != len(self.inputs):
            raise TypeError(f"{self.graph.name}: the graph takes {len(self.inputs)} values, {len(values)} are given")
        frame = dict(zip(map(id, self.inputs), values))
        for row in self.rows:
            if type(row) is Row:
                results = row.runner(*[frame[id(v)] for v in row.inputs])
                frame.update(zip(map(id, row.outputs), results))
            else:
                _interpret(row, frame)
        return _updated(tuple([interpret.read(a, frame) for a in self.outputs]), values, self.updates)

    def plan(self, *values):
        """The Plan for values. Rows behind what the interpreter does are planned by running what stands before them."""
        if self.whole is None or self.whole.runner.find(*values) is None:
            self(*values)
        if self.whole is not None:
            found = self.whole.runner.find(*values)
            return Plan(self, values, list(self.graph.nodes) if found is None else [found])
        return Plan(
            self, values, [r.runner.routines[0] if type(r) is Row and r.runner.routines else r for r in self.rows]
        )

    def explain(self):
        """What was planned and why, and what the interpreter does: text."""
        rows = sum(type(r) is Row for r in self.rows)
        lines = [f"{self.graph.name}: {len(self.misses)} plans made, for {rows} rows of nodes"]
        lines += [f"  plan {i}: {why}" for i, why in enumerate(self.misses, 1)]
        for node in self.graph.nodes:
            if node in self.boxed or node.op in BOXED or self.effects:
                place = f" ({node.line})" if node.line else ""
                why = "the graph has effects" if self.effects else self.boxed.get(node, "no op")
                lines.append(f"  by the interpreter: {node.op}{place}: {why}")
        return "\n".join(lines)

    def box(self, node, reason):
        """Let the interpreter do a node from now on."""
        self.boxed[node] = reason
        self._cut()


Line = namedtuple("Line", "kind nodes ops elements bytes microseconds")
Line.__doc__ = """One instruction: TILE, RAW, COPY, ZERO, MOVE; NUMBER, IF, LOOP, RAISE; BOXED by the interpreter."""


class Plan:
    """How a graph runs for inputs of one geometry.

    Attributes:
        parts: Routines, and nodes that the interpreter does, in order.
    """

    def __init__(self, executor, values, parts):
        self._executor, self._values, self.parts = executor, values, parts

    @property
    def arena_bytes(self):
        """Memory for what lies between inputs and results."""
        return sum(p.arena_bytes for p in self.parts if type(p) is Routine)

    def lines(self, profile=False, runs=10):
        """A `Line` for each instruction; with `profile` the graph runs some times on the values it was planned for."""
        routines = [p for p in self.parts if type(p) is Routine]
        for p in routines:
            p.profile(profile)
        for _ in range(runs if profile else 0):
            self._executor(*self._values)
        found = []
        for part in self.parts:
            if type(part) is Routine:
                found += [Line(*row[:5], row[5] / 1000 / runs) for row in part.rows()]
            else:
                nodes = part.nodes if type(part) is Row else [part]
                found += [Line("BOXED", [], [node.op], 0, 0, 0.0) for node in nodes]
        for p in routines:
            p.profile(False)
        return found

    def table(self, profile=False):
        """The instructions as text: kind, elements, bytes written, microseconds a run with `profile`, ops."""
        lines = self.lines(profile)
        head = f"plan of {self._executor.graph.name}: {len(lines)} instructions, {self.arena_bytes} bytes between them"
        rows = [f"{'kind':6}{'elements':>10}{'bytes':>12}{'us':>10}  ops"]
        for line in lines:
            time = f"{line.microseconds:.2f}" if profile else ""
            ops = ", ".join(name.removeprefix("aten::") for name in line.ops)
            rows.append(f"{line.kind:6}{line.elements:>10}{line.bytes:>12}{time:>10}  {ops}")
        return "\n".join([head, *rows])

    def __repr__(self):
        return f"<Plan of {self._executor.graph.name}: {len(self.lines())} instructions>"


class Row:
    """Nodes that follow each other and can be planned, with what they read and what others read of them."""

    def __init__(self, executor, nodes, inputs, outputs):
        self.executor, self.nodes, self.inputs, self.outputs = executor, nodes, inputs, outputs
        self.updates = ()  # (output, input) of states that are updated where they lie
        self.by_value = set()  # numbers among the inputs whose value sizes depend on
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
        except Unplanned as stop:
            if stop.node is not None:
                self.executor.box(stop.node, stop.reason)
            return self.interpreted(values)
        except Exception as error:
            results = self.interpreted(values)  # raises what eager mode raises, and says where
            self.executor.box(planner.node, f"planning it failed: {error}")
            return results
        self.note(values)
        return made

    def note(self, values):
        """Remember why a plan had to be made."""
        routines = self.runner.routines
        names = [f"%{v.name}" for v in self.inputs]
        self.executor.misses.append(difference(routines[0], values, names) if routines else "it is the first call")

    def failed(self, values, error):
        """An instruction failed: eager mode says so at the user's line, or knows what to do with another number."""
        return self.interpreted(values)

    def interpreted(self, values):
        frame = dict(zip(map(id, self.inputs), values))
        for node in self.nodes:
            _interpret(node, frame)
        return _updated(tuple([interpret.read(a, frame) for a in self.outputs]), values, self.updates)


def _updated(results, values, updates):
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


def _rows(executor, nodes, inputs, outputs):
    """Rows, and nodes for the interpreter between them, in order."""
    parts = [[]]
    for node in nodes:
        if node in executor.boxed or node.op in BOXED:
            parts += [node, []]
        else:
            parts[-1].append(node)
    if len(parts) == 1:
        return [Row(executor, nodes, inputs, outputs)]
    found = []
    for at, part in enumerate(parts):
        if type(part) is not list:
            found.append(part)
        elif part:
            found.append(_row(executor, part, parts[at + 1 :], outputs))
    return found


def _row(executor, nodes, rest, outputs):
    made = {id(v) for node in nodes for v in node.outputs}
    read = {id(v): v for node in nodes for v in used_values(node) if id(v) not in made}
    later = [n for part in rest for n in (part if type(part) is list else [part])]
    wanted = {id(v) for node in later for v in used_values(node)} | {id(v) for v in values_in(outputs)}
    return Row(executor, nodes, list(read.values()), [v for node in nodes for v in node.outputs if id(v) in wanted])


def _interpret(node, frame):
    """Let the interpreter run a node; an error says where the user's program called it."""
    try:
        with no_grad():
            interpret._run_node(node, frame)
    except (primitives.GuardFailed, primitives.objects.Error, KeyError):
        raise  # the words of a program are its own, and those of a KeyError are the key; the line is noted already
    except Exception as error:
        if _at(node) and error.args and type(error.args[0]) is str and _at(node) not in error.args[0]:
            error.args = (error.args[0] + _at(node), *error.args[1:])
        raise


def _at(node):
    return f"\n  in the graph's {node.op}, from {node.line}" if node.line else ""
