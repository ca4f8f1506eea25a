"""The derivative of a graph: two graphs, source to source, and one node of eager autograd that runs them.

The graph is written down again under a capture (replay.py), then its backward pass by the rules of the records
(derive.py), through branches, loops and Functions. What stands before the backward pass is the forward graph, which
gives what the rest reads of it besides its own results; the rest is the backward graph. Both run by plans.

A derivative holds for the kinds of its arguments (types, dtypes, ranks, which of them need gradients) and for what its
guards hold; sizes are values. Where none can be made, or its guards fail too often, the ops of eager mode run one by
one, as `interpret` does, and eager autograd keeps the tape; `Derivative.refused` says why.
"""

from tinygrad_ext.autograd.function import Function
from tinygrad_ext.autograd.functional_args import gradients
from tinygrad_ext.autograd.modes import set_grad_enabled
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.core.data.tensor import Tensor

from . import interpret, passes
from .capture import Capture
from .derive import Backward
from .graph import Graph
from .ir import Block, Value, outer_values
from .items import Items, NotDerived
from .plan import Executor
from .primitives import GuardFailed
from .replay import Replay
from .trees import type_of_tree
from .types import GENERATOR, TENSOR

MOST = 4  # derivatives for arguments of one kind


def run(graph, inputs, state=()):
    """As `interpret.run`; what autograd needs is recorded in one node where the graph can be derived."""
    if graph.derivative is None:
        graph.derivative = Derivative(graph)
    return graph.derivative(inputs, state)


class Derivative:
    """The derivatives of a graph, made when they are first asked for.

    Attributes:
        joints: {kinds of arguments: list of Joint}.
        refused: {kinds of arguments: why there is none}.
    """

    def __init__(self, graph):
        self.graph, self.joints, self.refused = graph, {}, {}

    def __call__(self, inputs, state=()):
        graph, values = self.graph, [*inputs, *state]
        leaves, kinds = [], []
        plain = all([_take(value, leaves, kinds) for value in values])
        if not plain or graph.effects:
            return interpret.run(graph, inputs, state)
        level = next((x.level for x in leaves if getattr(x, "level", None) is not None), None)
        if level is not None:
            found = _into(graph, level, values) if isinstance(level, Capture) else None
            return interpret.run(graph, inputs, state) if found is None else self._parted(found)
        kind = tuple(kinds)
        joints = self.joints.setdefault(kind, [])
        for joint in joints:
            try:
                return self._parted(joint(leaves))
            except GuardFailed:
                continue
        if kind in self.refused:
            return interpret.run(graph, inputs, state)
        try:
            if len(joints) == MOST:
                raise NotDerived(f"guards of {MOST} derivatives failed")
            joint = Joint(graph, values)
            result = joint(leaves)
        except Exception as error:
            found = interpret.run(graph, inputs, state)  # which raises for what is wrong in the program itself
            self.refused[kind] = str(error)
            return found
        joints.append(joint)
        return self._parted(result)

    def _parted(self, results):
        count = len(self.graph.outputs)
        return list(results[:count]), list(results[count:])


def _take(value, leaves, kinds):
    """Take an argument apart into what a graph carries, and what it is bound to; False for what it cannot hold."""
    if isinstance(value, Tensor):
        kinds.append((value.dtype, value.dim(), value.requires_grad, value.device))
        leaves.append(value)
    elif type(value) in (int, float) or isinstance(value, Generator):
        kinds.append(type(value))
        leaves.append(value)
    elif type(value) in (list, tuple, dict):
        parts = value.values() if type(value) is dict else value
        kinds.append((type(value), *(value if type(value) is dict else (len(value),))))
        return all([_take(part, leaves, kinds) for part in parts])
    else:
        kinds.append((type(value), value))
        return value is None or isinstance(value, (bool, str))
    return True


class Joint:
    """Forward and backward graph for arguments of one kind."""

    def __init__(self, graph, values):
        self.graph = graph
        level = Capture(graph.name)
        level.joint = True
        self.inputs = []  # Values, one for each leaf
        with level:
            replay = Replay(level)
            given = [self._operand(level, value) for value in values]
            self.given = [_told(a, lambda v: ("input", self.inputs.index(v))) for a in given]
            frame = dict(zip((id(v) for v in [*graph.inputs, *(s.value for s in graph.state)]), given))
            results = replay.block(graph.block, frame)
            results += [replay.read(s.new, frame) for s in graph.state]
            last = level.block.nodes[-1] if level.block.nodes else None
            self.wanted = [v for v in self.inputs if id(v) in level.needs]
            self._results(level, results)
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
            made.hint = value.clone_state() if isinstance(value, Generator) else value
        return made

    # ---- what it gives ---------------------------------------------------------------------------------------------

    def _results(self, level, results):
        """What is returned: `template` is a tree of ("leaf", number), ("input", number) and constants."""
        self.made, places = [], {id(v): i for i, v in enumerate(self.inputs)}

        def number_of(a):
            if id(a) in places:
                return "input", places[id(a)]
            if a not in self.made:
                if id(a) in level.needs and a.type is not TENSOR:
                    raise NotDerived(f"a result of type {a.type} with a gradient")
                self.made.append(a)
            return "made", self.made.index(a)

        self.template = [_told(a, number_of) for a in results]
        self.flows = [id(v) in level.needs for v in self.made]
        self.roots = [v for v, flows in zip(self.made, self.flows) if flows]

    def _backward(self, level, replay, seeds):
        passed = Backward(level, True)  # so what it computes can be derived in its turn
        passed.run(self.roots, [replay.shown(seed) for seed in seeds])
        found = [passed.grads.get(id(v)) for v in self.wanted]
        self.maybe = [v for v in self.wanted if passed.maybe.get(id(v)) is not None]  # that may get no gradient at all
        return [*(None if g is None else level.lift(g) for g in found), *(passed.maybe[id(v)] for v in self.maybe)]

    # ---- two graphs ------------------------------------------------------------------------------------------------

    def _split(self, level, last, seeds, grads, draws):
        nodes = level.block.nodes
        cut = nodes.index(last) + 1 if last is not None else 0
        before, behind = nodes[:cut], nodes[cut:]
        known = {id(v) for v in self.inputs} | {id(s.value) for s in draws} | {id(v) for n in before for v in n.outputs}
        late = []
        for node in behind:  # what is computed from sizes, and guards, may be done at once
            if node.op.startswith("prim::") and not node.blocks and all(id(v) in known for v in node.values()):
                before.append(node)
                known.update(map(id, node.outputs))
            else:
                late.append(node)
        back = Block([], late, grads)
        self.saved = [v for v in outer_values(back) if v not in seeds]
        inputs = [*self.inputs, *(s.value for s in draws)]
        news = [s.new for s in draws]
        forward = Graph(self.graph.name, Block(inputs, before, [*self.made, *news, *self.saved]))
        back.inputs = [*seeds, *self.saved]
        backward = Graph(f"{self.graph.name}.backward", back)
        self.whole = Graph(f"{self.graph.name}.gradient", Block([*inputs, *seeds], [*before, *late], grads)).copy()
        self.forward, self.backward = (passes.optimize(g.copy()) for g in (forward, backward))
        self.run_forward, self.run_backward = Executor(self.forward), Executor(self.backward)

    # ---- running ---------------------------------------------------------------------------------------------------

    def __call__(self, leaves):
        states = [g.clone_state() for g in self.generators]
        call = Call(self, [*leaves, *states])
        made = _Derived.apply(call, *[leaf for leaf in leaves if isinstance(leaf, Tensor)])
        for generator, new in zip(self.generators, call.news):
            generator.set_state(new.get_state())
        tensors = iter(made if type(made) is tuple else (made,))
        row = list(call.made)
        for i in call.own:
            row[i] = next(tensors)

        return [_rebuilt(part, row, leaves) for part in self.template]

    def anew(self, leaves, seeds):
        """Gradients by the ops of eager mode, forward and backward, for what the graphs are not good for."""
        leaves = [
            x.detach().requires_grad_(v in self.wanted) if isinstance(x, Tensor) else x
            for v, x in zip(self.inputs, leaves)
        ]
        with set_grad_enabled(True):
            values, count = [_rebuilt(part, (), leaves) for part in self.given], len(self.graph.inputs)
            outputs, new = interpret.run(self.graph, values[:count], values[count:])
            made = dict(pair for part, r in zip(self.template, [*outputs, *new]) for pair in _found(part, r))
            roots = [made[i] for i, flows in enumerate(self.flows) if flows]
            return gradients(roots, [x for v, x in zip(self.inputs, leaves) if v in self.wanted], seeds)


def _told(a, number_of):
    """A tree of operands as plain data."""
    if type(a) is Items:
        return "items", a.type.word, a.keys, [_told(part, number_of) for part in a.parts]
    return number_of(a) if isinstance(a, Value) else ("constant", a)


def _rebuilt(part, made, inputs):
    """The values that such data stands for."""
    what, value = part[:2]
    if what == "items":
        parts = [_rebuilt(p, made, inputs) for p in part[3]]
        return dict(zip(part[2], parts)) if part[2] is not None else tuple(parts) if value == "Tuple" else parts
    return made[value] if what == "made" else inputs[value] if what == "input" else value


def _found(part, result):
    """(number, value) of each made value of a result."""
    if part[0] == "items":
        parts = [result[key] for key in part[2]] if part[2] is not None else result
        return [pair for p, r in zip(part[3], parts) for pair in _found(p, r)]
    return [(part[1], result)] if part[0] == "made" else []


class Call:
    """One run.

    Attributes:
        joint, leaves: what runs, on what.
        made, news: what the forward graph gave: results, new states of generators.
        own: numbers of the results that are tensors of its own; a loop of no turns gives what it was given.
    """

    def __init__(self, joint, leaves):
        self.joint, self.leaves = joint, leaves
        self.made = self.news = self.own = ()


class _Derived(Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        ctx.joint = joint = call.joint
        results = joint.run_forward(*call.leaves)
        count, draws = len(joint.made), len(joint.generators)
        call.made, call.news = results[:count], results[count : count + draws]
        keep = [*results[count + draws :], *call.leaves]
        ctx.save_for_backward(*[a if isinstance(a, Tensor) else None for a in keep])
        ctx.rest = [None if isinstance(a, Tensor) else a for a in keep]
        inputs = {id(t): i for i, t in enumerate(call.leaves)}
        ctx.given = {i: inputs[id(a)] for i, a in enumerate(call.made) if id(a) in inputs}
        ctx.own = call.own = [i for i, a in enumerate(call.made) if isinstance(a, Tensor) and i not in ctx.given]
        ctx.mark_non_differentiable(*[call.made[i] for i in call.own if not joint.flows[i]])
        return tuple([call.made[i] for i in call.own])

    @staticmethod
    def backward(ctx, *grads):
        joint = ctx.joint
        kept = [t if r is None else r for t, r in zip(ctx.saved_tensors, ctx.rest)]
        saved, leaves = kept[: len(joint.saved)], kept[len(joint.saved) :]
        grads = dict(zip(ctx.own, grads))
        seeds = [
            grads[i] if i in grads else leaves[ctx.given[i]].new_zeros(leaves[ctx.given[i]].shape)
            for i, flows in enumerate(joint.flows)
            if flows
        ]
        if is_grad_enabled():
            found, _ = run(joint.whole, [*leaves, *seeds])
        else:
            try:
                found = joint.run_backward(*seeds, *saved)
            except GuardFailed:  # a decision of the backward pass, within a branch or a loop
                found = joint.anew(leaves, seeds)
        absent = {id(v) for v, there in zip(joint.maybe, found[len(joint.wanted) :]) if not there}
        found = {id(v): g for v, g in zip(joint.wanted, found) if id(v) not in absent}
        return None, *[found.get(id(v)) for v in joint.inputs if v.type is TENSOR]


def _into(graph, level, values):
    """Write a graph into a capture that is under way; what it gives as the user sees it, None where it cannot be."""
    nodes, tape, draws = list(level.block.nodes), list(level.tape), {k: list(v) for k, v in level.generators.items()}
    replay = Replay(level)
    try:
        given = [_carried(replay, value) for value in values]
        frame = dict(zip((id(v) for v in [*graph.inputs, *(s.value for s in graph.state)]), given))
        results = replay.block(graph.block, frame)
        results += [replay.read(s.new, frame) for s in graph.state]
        return [_shown(replay, a) for a in results]
    except NotDerived:
        level.block.nodes[:], level.tape[:] = nodes, tape
        level.generators.update(draws)
        return None


def _carried(replay, value):
    if type(value) in (list, tuple, dict):
        keys = list(value) if type(value) is dict else None
        parts = value.values() if keys is not None else value
        return Items(type_of_tree(value), [_carried(replay, part) for part in parts], keys)
    return replay.capture.lift(value)


def _shown(replay, a):
    if type(a) is Items:
        parts = [_shown(replay, part) for part in a.parts]
        return dict(zip(a.keys, parts)) if a.keys is not None else tuple(parts) if a.type.word == "Tuple" else parts
    return replay.shown(a)
