"""Runs graphs by plans: a row of nodes and the geometry of what it reads become a `Routine`, which runs in C.

An `Executor` cuts the blocks of a graph into rows of nodes that can be planned and steps between them (cutting.py):
branches and loops, what reads elements, Python functions. Each row has its own plans, one for each geometry it was
called with.

A plan knows nothing of autograd: results have no history.
"""

from collections import Counter, namedtuple

from tinygrad_ext.autograd import no_grad

from .check import has_effect
from .cutting import Cut, Row, places_of, updated
from .flattening import Spread, depths_of, without_functions
from .passes.functional import stays
from .routine import Routine

FOUND = 8  # nodes of an op that no plan has for one reason, before those behind them in a row are taken for such too


class Executor:
    """A graph, ready to run.

    Call it with a value for each input and then one for each state; it returns a tuple with the outputs and the new
    states. None of what is passed in is changed but the states that it was told to update.

    Attributes:
        boxed: {node: why no plan has it}.
        function: the quickest way to call it as it is now: itself, or what runs its only row.
        misses: for each plan that was made what differed from the one before, the latest last.
        overflows: calls that the interpreter did because a number was none that plans compute with.
    """

    def __init__(self, graph, updates=(), one_by_one=False):
        """updates: numbers of states whose tensors are to hold their new values; they are returned in their place.

        one_by_one: call op after op, with autograd where it is on, as graphs with effects run anyway, because what is
        written to may be anybody's.
        """
        self.one_by_one = one_by_one or (graph.effects and any(map(has_effect, graph.walk())))
        self.graph = graph = graph if self.one_by_one else without_functions(graph)
        self.updates = [(len(graph.outputs) + k, len(graph.inputs) + k) for k in updates if graph.state[k].written]
        self.boxed, self.misses, self.overflows = {}, [], 0
        self.found = Counter()  # (op, why no plan has it) -> nodes
        self.inputs = [*graph.inputs, *(s.value for s in graph.state)]
        self.outputs = [*graph.outputs, *(s.new for s in graph.state)]
        depths = [] if self.one_by_one else depths_of(self.graph)
        self.spread = Spread(self.graph, depths, lambda graph: Executor(graph, updates)) if any(depths) else None
        if self.spread is not None:
            self.function = self.spread
        else:
            self._cut()

    def _cut(self):
        self.whole, self.flow, self.cuts = None, None, {}
        nodes = self.graph.block.nodes
        if not self.one_by_one and not any(node in self.boxed for node in nodes):
            self.whole = Row(self, nodes, self.inputs, self.outputs)
            self.whole.updates, self.function = self.updates, self.whole.runner
            states = enumerate(self.graph.state, len(self.graph.outputs))
            self.whole.again = [i for i, s in states if s.kind == "grad" and s.written]
            return
        self.places = places_of(self.graph)
        self.flow = Cut(self, self.graph.block, self.outputs)
        self.given = [self.flow.place(v).at for v in self.inputs]
        self.function = self

    def __call__(self, *values):
        if self.spread is not None:
            return self.spread(*values)
        if self.whole is not None:
            return self.whole.runner(*values)
        if len(values) != len(self.inputs):
            raise TypeError(f"{self.graph.name}: the graph takes {len(self.inputs)} values, {len(values)} are given")
        flow, frame = self.flow.flow, [None] * len(self.places)
        for at, value in zip(self.given, values):
            frame[at] = value
        if self.one_by_one:
            flow.go(frame)
        else:
            with no_grad():
                flow.go(frame)
        return updated(flow.results(frame), values, self.updates)

    @property
    def parts(self):
        """Rows, and nodes that are done one by one."""
        return [self.whole] if self.whole is not None else list(self.flow.walk())

    def plan(self, *values):
        """The Plan for values. Rows behind what the interpreter does are planned by running what stands before them."""
        if self.spread is not None:
            found, parts = self.spread.find(values)
            return found.plan(*parts)
        if self.whole is None or self.whole.runner.find(*values) is None:
            self(*values)
        if self.whole is not None:
            found = self.whole.runner.find(*values)
            return Plan(self, values, list(self.graph.nodes) if found is None else [found])
        return Plan(
            self, values, [p.runner.routines[0] if type(p) is Row and p.runner.routines else p for p in self.parts]
        )

    def explain(self):
        """What was planned and why, and what the interpreter does: text."""
        if self.spread is not None:
            return self.spread.explain()
        rows = sum(type(p) is Row for p in self.parts)
        made = len(self.misses)
        head = f"{self.graph.name}: {made} plan{'s' * (made != 1)} made, for {rows} row{'s' * (rows != 1)} of nodes"
        lines = [head + self._emitted()]
        lines += [f"  plan {i}: {why}" for i, why in enumerate(self.misses, 1)]
        if self.overflows:
            why = "a number has more than 64 bits or another type"
            lines.append(f"  {self.overflows} calls by the interpreter: {why}")
        for node in self.parts:
            if type(node) is not Row:
                place = f" ({node.line})" if node.line else ""
                why = self.why_effects(node) if self.graph.effects else self.boxed.get(node, "no op")
                lines.append(f"  in no plan: {node.op}{place}: {why}")
        return "\n".join(lines)

    def _emitted(self):
        """How many groups of the last plans are machine code, at least in part."""
        plans = [p.runner.routines[0] for p in self.parts if type(p) is Row and p.runner.routines]
        runs = [row.runs for p in plans for row in p.rows() if row.kind == "TILE"]
        return f"; machine code in {sum(map(bool, runs))} of {len(runs)} groups of pointwise ops" if any(runs) else ""

    def why_effects(self, node):
        inside = [node, *(inner for block in node.blocks for inner in block.walk())]
        changes = [n for n in stays(self.graph) if any(n is inner for inner in inside)]
        told = ", ".join(f"{n.op} changes what others may hold, or see" for n in changes[:1])
        return f"the graph has effects{': ' if told else ''}{told}"

    def kind_of(self, node):
        """How a node that is in no row is done: IF, LOOP, or BOXED for a call of the op."""
        return {"prim::If": "IF", "prim::Loop": "LOOP"}.get(node.op, "BOXED")

    def box(self, row, nodes, reason):
        """Let nodes of a row be done by calls of their ops from now on; returns the steps that take its place."""
        op = nodes[0].op
        self.found[op, reason] += 1
        if self.found[op, reason] > FOUND:
            behind = row.nodes[row.nodes.index(nodes[0]) :]
            nodes = [*nodes, *(node for node in behind if node.op == op)]
        self.boxed.update(dict.fromkeys(nodes, reason))
        if self.flow is not None:
            return self.cuts[nodes[0]].split(row)
        self._cut()
        return self.flow.flow.steps


Line = namedtuple("Line", "kind nodes ops elements bytes microseconds runs", defaults=((),))
Line.__doc__ = """One instruction: TILE, RAW, COPY, ZERO, MOVE, NUMBER, IF, LOOP, RAISE of a plan; BOXED, an op called.

runs: (begin, end) of ops that are one piece of machine code.
"""


_BETWEEN = {"NUMBER", "IF", "LOOP", "RAISE"}  # that are no instructions of a plan


class Plan:
    """How a graph runs for inputs of one geometry.

    Attributes:
        parts: Routines, and nodes that no plan has, in order.
        between: microseconds a run that were spent between instructions when it was profiled last: on numbers, jumps
            and pointers. A look at the clock takes longer than one of them, so they are measured together.
    """

    between = 0.0

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
        self.between = 0.0
        for part in self.parts:
            if type(part) is Routine:
                rows = list(part.rows())
                self.between += max(part.nanoseconds - sum(row.nanoseconds for row in rows), 0) / 1000 / runs
                found += [Line(*row[:5], row.nanoseconds / 1000 / runs, row.runs) for row in rows]
            else:
                ops = [part.op] if type(part) is not Row else [node.op for node in part.nodes]
                kind = "BOXED" if type(part) is Row else self._executor.kind_of(part)
                found.append(Line(kind, [], ops, 0, 0, 0.0))
        for p in routines:
            p.profile(False)
        return found

    def table(self, profile=False):
        """The instructions as text: kind, elements, bytes written, microseconds a run with `profile`, ops.

        Ops in brackets are one piece of machine code.
        """
        lines = self.lines(profile)
        head = f"plan of {self._executor.graph.name}: {len(lines)} instructions, {self.arena_bytes} bytes between them"
        rows = [f"{'kind':6}{'elements':>10}{'bytes':>12}{'us':>10}  ops"]
        for line in lines:
            time = f"{line.microseconds:.2f}" if profile and line.kind not in _BETWEEN else ""
            ops = ", ".join(_bracketed([name.removeprefix("aten::") for name in line.ops], line.runs))
            rows.append(f"{line.kind:6}{line.elements:>10}{line.bytes:>12}{time:>10}  {ops}")
        if profile:
            rows.append(f"{'':22}{self.between:>10.2f}  numbers, jumps and pointers, all together")
        return "\n".join([head, *rows])

    def __repr__(self):
        return f"<Plan of {self._executor.graph.name}: {len(self.lines())} instructions>"


def _bracketed(names, runs):
    for begin, end in runs:
        names[begin], names[end - 1] = f"[{names[begin]}", f"{names[end - 1]}]"
    return names
