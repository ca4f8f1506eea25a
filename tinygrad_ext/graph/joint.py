"""Forward and backward graph of a graph, for arguments of one kind; joint_call.pyx runs them."""

from functools import cached_property

from tinygrad_ext.autograd.functional_args import gradients
from tinygrad_ext.autograd.modes import set_grad_enabled
from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.core.data.tensor import Tensor

from . import interpret, passes
from .capture import Capture
from .control_backward import Careful
from .graph import Graph
from .ir import Block, Value, give_lines, outer_values
from .items import SPOKEN, Items, NotDerived, may_hold_tensors
from .joint_call import JointCall, rebuilt
from .passes.base import blocks, may_share
from .plan import Executor
from .reached import flags_of
from .repeats import Repeats
from .replay import Replay
from .trees import type_of_tree
from .types import GENERATOR, TENSOR
from .walks import ops_in, read_in


class Joint:
    """Forward and backward graph for arguments of one kind."""

    def __init__(self, graph, values, derivative_of):
        """derivative_of: gives the derivative of a graph, for that of the gradients."""
        self.graph, self.derivative_of = graph, derivative_of
        level = Capture(graph.name)
        level.joint, level.repeats = "forward", Repeats(level)
        self.inputs = []  # Values, one for each leaf
        with level:
            replay = Replay(level)
            given = [self._operand(level, value) for value in values]
            self.flat = all(isinstance(a, Value) for a in given)
            places = {v: i for i, v in enumerate(self.inputs)}
            self.given = [_told(a, lambda v: ("input", places[v])) for a in given]
            frame = dict(zip((id(v) for v in [*graph.inputs, *(s.value for s in graph.state)]), given))
            results = replay.block(graph.block, frame)
            results += [replay.read(s.new, frame) for s in graph.state]
            self.wanted = [v for v in self.inputs if id(v) in level.needs]
            self._results(level, results)
            last = level.block.nodes[-1] if level.block.nodes else None
            seeds = [level.graph.value(TENSOR, None, v.hint, f"grad.{v.name}") for v in self.roots]
            grads = self._backward(level, replay, seeds)
        if level.roots:
            raise NotDerived("a rule uses a tensor from outside")
        self.generators = [generator for generator, _ in level.drawn()]
        self._split(level, last, seeds, grads, [s for _, s in level.drawn()])

    def _operand(self, level, value):
        if type(value) in (list, tuple, dict):
            keys = list(value) if type(value) is dict else None
            parts = value.values() if keys is not None else value
            return Items(type_of_tree(value), [self._operand(level, part) for part in parts], keys)
        if not isinstance(value, (Tensor, int, float, Generator)) or isinstance(value, bool):
            return value
        made = level.graph.input(
            f"arg{len(self.inputs)}", GENERATOR if isinstance(value, Generator) else type_of_tree(value)
        )
        self.inputs.append(made)
        if isinstance(value, Tensor):
            level.tensor_value(made, value)
        else:
            made.hint = value._copy() if isinstance(value, Generator) else value
        return made

    # ---- what it gives ---------------------------------------------------------------------------------------------

    def _results(self, level, results):
        """What is returned: `template` is a tree of ("leaf", number), ("input", number) and constants; `flags` has the
        bools that tell whether a gradient flows through a made value this time, where that is not certain."""
        made, places = {}, {v: i for i, v in enumerate(self.inputs)}

        def number_of(a):
            if a in places:
                return "input", places[a]
            if a not in made and id(a) in level.needs and a.type is not TENSOR:
                raise NotDerived(f"a result of type {a.type} with a gradient")
            return "made", made.setdefault(a, len(made))

        self.template = [_told(a, number_of) for a in results]
        self.made = list(made)
        flags = dict(zip(self.made, flags_of(level, self.wanted, self.made)))
        self.flows = [flags[v] is not False for v in self.made]
        self.flags = {i: flags[v] for i, v in enumerate(self.made) if isinstance(flags[v], Value)}
        self.roots = [v for v, flows in zip(self.made, self.flows) if flows]

    def _backward(self, level, replay, seeds):
        level.joint = "backward"
        passed = Careful(level, True)  # so what it computes can be derived in its turn
        passed.run(self.roots, [replay.shown(seed) for seed in seeds])
        found = [passed.grads.get(id(v)) for v in self.wanted]
        self.maybe = [v for v in self.wanted if passed.maybe.get(id(v)) is not None]  # that may get no gradient at all
        return [*(None if g is None else level.lift(g) for g in found), *(passed.maybe[id(v)] for v in self.maybe)]

    # ---- two graphs ------------------------------------------------------------------------------------------------

    def _split(self, level, last, seeds, grads, draws):
        nodes = level.block.nodes
        give_lines(level.block)
        cut = nodes.index(last) + 1 if last is not None else 0
        before, behind = nodes[:cut], nodes[cut:]
        known = {id(v) for v in self.inputs} | {id(s.value) for s in draws} | {id(v) for n in before for v in n.outputs}
        late = []
        for node in behind:  # what is computed from sizes, and guards, may be done at once
            if _of_numbers(node) and known.issuperset(map(id, node.values())):
                before.append(node)
                known.update(map(id, node.outputs))
            else:
                late.append(node)
        back = Block([], late, grads)
        self.saved = [v for v in outer_values(back) if v not in seeds]
        inputs = [*self.inputs, *(s.value for s in draws)]
        news = [s.new for s in draws]
        forward = Graph(self.graph.name, Block(inputs, before, [*self.made, *news, *self.flags.values(), *self.saved]))
        back.inputs = [*seeds, *self.saved]
        backward = Graph(f"{self.graph.name}.backward", back)
        self.forward, self.backward = (passes.optimize(g.copy()) for g in (forward, backward))
        # forward and backward as one, of the values that were written down
        self.undivided = Graph(f"{self.graph.name}.gradient", Block([*inputs, *seeds], [*before, *late], grads))
        for block in blocks(self.undivided):
            block.nodes[:] = [node for node in block.nodes if node.op not in SPOKEN]  # that was said when it ran
            for value in (*block.inputs, *(v for node in block.nodes for v in node.outputs)):
                value.hint = None  # an example of this call, which would live as long as the graph
        self._prepare()

    @cached_property
    def whole(self):
        """The graph of the gradients, whose derivative is that of second order; few ask for it."""
        return passes.optimize(self.undivided.copy())

    # ---- running ---------------------------------------------------------------------------------------------------

    def _prepare(self):
        """What each call needs to know of the two graphs."""
        self.run_forward, self.run_backward = Executor(self.forward), Executor(self.backward)
        self.tensors = [i for i, v in enumerate(self.inputs) if v.type is TENSOR]
        known = {id(v): i for i, v in enumerate(self.saved)}
        guarded = "prim::guard" in ops_in(self.backward.block)
        read = read_in(self.undivided.block)
        # of the arguments, what stands among the saved values, and what is kept besides
        needed = [i for i, v in enumerate(self.inputs) if guarded or id(v) in read]
        self.kept = {i: known[id(self.inputs[i])] for i in needed if id(self.inputs[i]) in known}
        self.also = [i for i in needed if i not in self.kept]
        self.plain = all(v.type is TENSOR for v in self.saved)
        first = len(self.graph.inputs)
        self.written = {i for i, s in enumerate(self.graph.state, first) if s.written} if self.flat else set()
        at = {self.inputs[i]: k for k, i in enumerate(self.tensors)}
        self.edges = [at[v] for v in self.wanted]  # gradients belong to these tensors
        known = all(v.type is TENSOR and not may_share(v.node) for v in self.made if may_hold_tensors(v.type))
        self.own = (
            [i for i, v in enumerate(self.made) if v.type is TENSOR] if known else None
        )  # that no argument can be
        self.call = JointCall(self)

    def leaves(self, kept, also):
        """The arguments, of what was kept; None for those that nobody needs."""
        row = [None] * len(self.inputs)
        for i, at in self.kept.items():
            row[i] = kept[at]
        for i, value in zip(self.also, also):
            row[i] = value
        return row

    def certain(self, found):
        """Gradients without those that the backward pass says are not there."""
        absent = {id(v) for v, there in zip(self.maybe, found[len(self.wanted) :]) if not there}
        return [None if id(v) in absent else g for v, g in zip(self.wanted, found)]

    def anew(self, leaves, seeds):
        """Gradients by the ops of eager mode, forward and backward, for what the graphs are not good for."""
        leaves = [
            x.detach().requires_grad_(v in self.wanted) if isinstance(x, Tensor) else x
            for v, x in zip(self.inputs, leaves)
        ]
        with set_grad_enabled(True):
            values, count = [rebuilt(part, (), leaves) for part in self.given], len(self.graph.inputs)
            outputs, new = interpret.run(self.graph, values[:count], values[count:])
            made = dict(pair for part, r in zip(self.template, [*outputs, *new]) for pair in _found(part, r))
            roots = [made[i] for i, flows in enumerate(self.flows) if flows]
            return gradients(roots, [x for v, x in zip(self.inputs, leaves) if v in self.wanted], seeds)


def _of_numbers(node):
    """Whether a node is no part of a gradient, which what follows may take over."""
    primitive = node.op.startswith("prim::") and not node.blocks
    return primitive and not any([may_hold_tensors(v.type) for v in node.outputs])


def _told(a, number_of):
    """A tree of operands as plain data."""
    if type(a) is Items:
        return "items", a.type.word, a.keys, [_told(part, number_of) for part in a.parts]
    return number_of(a) if isinstance(a, Value) else ("constant", a)


def _found(part, result):
    """(number, value) of each made value of a result."""
    if part[0] == "items":
        parts = [result[key] for key in part[2]] if part[2] is not None else result
        return [pair for p, r in zip(part[3], parts) for pair in _found(p, r)]
    return [(part[1], result)] if part[0] == "made" else []
