"""Derivatives of branches and loops.

Each block keeps a tape of its own. When gradients arrive at a branch, a second `prim::If` on the same condition holds
the backward passes of both blocks; at a loop, a second `prim::Loop` of as many turns runs the backward pass of the body
from the last turn to the first. What they use of the first, it gives out: a branch as one more output, None where the
other one ran; a loop on a stack that each turn pushes to, and each turn backward pops from.

Gradients of values from outside are carried on from what has arrived there already, so all that meet are added in the
order of eager mode, and sums have its bits. Where a block gives none at all, -0.0 stands for it, which changes no sum.
"""

from contextlib import contextmanager

from . import stack_gradients
from .derive import Backward
from .ir import Block, Node, Value, outer_values, replaced, used_values
from .items import NotDerived
from .stack_gradients import STACK, is_stack
from .types import BOOL, INT, TENSOR, Type, optional


@contextmanager
def on_tape(capture):
    block, outer = Block(), capture.tape
    capture.tape = tape = []
    capture.kept.append((block, tape))  # Values are known by their ids, so none goes before the capture does
    try:
        with capture.inside(block):
            yield block, tape
    finally:
        capture.tape = outer


class Within(Backward):
    """The backward pass of a block. What arrives at values of the outside is added to what is there already."""

    def __init__(self, outer, block, tape):
        super().__init__(outer.capture, outer.create_graph, tape)
        self.outer = outer
        self.own = {id(v) for v in block.inputs} | {id(v) for node in block.nodes for v in node.outputs}

    def so_far(self, value):
        found = self.grads.get(id(value))
        return self.before(value) if found is None and id(value) not in self.own else found

    def before(self, value):
        return self.outer.so_far(value)

    def maybe_of(self, value):
        return self.maybe[id(value)] if id(value) in self.grads else self.maybe_before(value)

    def maybe_before(self, value):
        return None if id(value) in self.own else self.outer.maybe_of(value)

    def told(self, value):
        """Whether something arrived: True, False or a bool Value."""
        return self.so_far(value) is not None and (self.maybe_of(value) or True)

    def outside(self):
        """Values of the outside that something arrived at."""
        return [v for key, v in self.values.items() if key not in self.own]


class Turn(Within):
    """One turn of a loop, backward: it carries what arrives at values of the outside from turn to turn."""

    def __init__(self, *args):
        super().__init__(*args)
        self.sums = {}  # id of a value -> the block's input for its gradient
        self.flags = {}  # id of a value -> the block's input for whether there is one, where that is not certain

    def before(self, value):
        if is_stack(value.type):
            raise NotDerived("a stack of the outside that a loop reads")
        if id(value) not in self.sums:
            self.sums[id(value)] = self.capture.graph.value(TENSOR, None, value.hint)
            self.values[id(value)] = value
            if self.outer.so_far(value) is None or self.outer.maybe_of(value) is not None:
                self.flags[id(value)] = self.capture.graph.value(BOOL, None, False)
        return self.tensor(self.sums[id(value)])

    def maybe_before(self, value):
        return self.flags.get(id(value))


class ControlEntry:
    """What the tape has of a node with blocks."""

    def __init__(self, node):
        self.node = node

    @property
    def made(self):
        return self.node.outputs

    def reads(self, needs):
        """Values that its backward may read."""
        return [*used_values(self.node), *self.made]

    def note(self, capture):
        if any(id(v) in capture.needs for v in self.node.outputs):
            capture.tape.append(self)


class CastEntry(ControlEntry):
    """A value under another type."""

    def spread(self, passed, arrived):
        passed.give(self.node.args[0], arrived[0])


def cast(capture, block, value, type, at=None):
    """A node that tells a value as another type, the gradient with it."""
    node = Node("prim::cast", (value,))
    node.outputs = (capture.graph.value(type, node, value.hint),)
    block.nodes.insert(len(block.nodes) if at is None else at, node)
    return node


class IfEntry(ControlEntry):
    """tapes: of its two blocks."""

    def __init__(self, node, tapes):
        super().__init__(node)
        self.tapes = tapes

    def spread(self, passed, arrived):
        _first_only(passed)
        capture, halves = passed.capture, []
        for block, tape in zip(self.node.blocks, self.tapes):
            with on_tape(capture) as (back, _):
                inner = Within(passed, block, tape)
                for value, of, grad in zip(block.outputs, self.made, arrived):
                    if isinstance(value, Value) and grad is not None:
                        inner.flag = passed.maybe_of(of)
                        inner.give(value, grad)
                inner.walk()
            halves.append((back, inner))
        values = {id(v): v for _, inner in halves for v in inner.outside()}
        if not values:
            return
        node = Node("prim::If", self.node.args, [back for back, _ in halves])
        types = [self.yielded(capture, value, halves) for value in values.values()]
        flags = [not is_stack(v.type) and self.told(capture, v, halves) for v in values.values()]
        taken = halves[0 if self.node.args[0].hint else 1][0]
        types += [BOOL] * sum(flags)
        node.outputs = tuple(capture.graph.value(t, node, _hint(v)) for t, v in zip(types, taken.outputs))
        for number, (back, _) in enumerate(halves):
            self.give_out(capture, number, back)
        capture.block.nodes.append(node)
        told = iter(node.outputs[len(values) :])
        ends = zip(*(back.outputs for back, _ in halves))
        for value, out, flagged, pair in zip(values.values(), node.outputs, flags, ends):
            if any(isinstance(a, Value) and id(a) in capture.hollow for a in pair):
                capture.hollow.add(id(out))
            passed.put(value, passed.gradient(out), next(told) if flagged else None)

    def yielded(self, capture, value, halves):
        """Let the branches give the gradient of a value; its type."""
        grads, type = [inner.so_far(value) for _, inner in halves], TENSOR
        if is_stack(value.type):
            known = next(g for g in grads if g is not None)
            type, hint = known.type, known.hint
        for (back, inner), grad in zip(halves, grads):
            with capture.inside(back):
                if grad is None:
                    grad = inner.nothing(value) if type is TENSOR else inner.undefined(type, hint)
                back.outputs.append(capture.lift(grad))
        return type

    def told(self, capture, value, halves):
        """Let the branches say whether something arrived at a value; False where both know that."""
        said = []
        for back, inner in halves:
            with capture.inside(back):
                said.append(inner.told(value))
        if all(s is True for s in said):
            return False
        for (back, _), s in zip(halves, said):
            back.outputs.append(s)
        return True

    def give_out(self, capture, number, back):
        """Let the backward pass of a block have what it uses of the block."""
        block = self.node.blocks[number]
        for value in used_inside(block, back):
            out = capture.graph.value(optional(value.type), self.node, value.hint)
            self.node.outputs = (*self.node.outputs, out)
            for i, each in enumerate(self.node.blocks):
                gone = i != number and capture.graph.make(each, "prim::undefined", (), (value.type,)).output
                each.outputs.append(gone or value)
            node = cast(capture, back, out, value.type, at=0)
            substitute(back, {value: node.output})


class LoopEntry(ControlEntry):
    """tape: of its block."""

    def __init__(self, node, tape):
        super().__init__(node)
        self.tape = tape

    def spread(self, passed, arrived):
        _first_only(passed)
        capture, (block,) = passed.capture, self.node.blocks
        through = self.through(capture, arrived)
        starts = [arrived[i] for i in through]
        there = [self.is_there(passed, i, s) for i, s in zip(through, starts)]
        starts = [self.nothing(passed, i) if s is None else s for i, s in zip(through, starts)]
        with on_tape(capture) as (back, _):
            inner = Turn(passed, block, self.tape)
            turn, grads, flags, ends, told = self.turn(inner, block, through, starts)
            values = inner.outside()
            for v in values:
                inner.before(v)
            flagged = [v for v in values if id(v) in inner.flags]
            ends += [capture.lift(inner.so_far(v)) for v in values]
            told += [inner.told(v) for v in flagged]
        starts += [passed.nothing(v) if passed.so_far(v) is None else passed.so_far(v) for v in values]
        there += [passed.so_far(v) is not None and (passed.maybe_of(v) or True) for v in flagged]
        flags += [inner.flags[id(v)] for v in flagged]
        back.inputs = [turn, *grads, *(inner.sums[id(v)] for v in values), *flags]
        back.outputs = [True, *ends, *told]
        turns = self.turns(capture)
        last = _computed(capture, capture.block, len(capture.block.nodes), "prim::sub", turns, 1)
        substitute(back, {block.inputs[0]: _computed(capture, back, 0, "prim::sub", last, turn)})
        node = Node("prim::Loop", (turns, True, *map(capture.lift, starts), *there), (back,))
        types = [e.type for e in ends] + [BOOL] * len(told)
        node.outputs = tuple(capture.graph.value(t, node, _hint(e)) for t, e in zip(types, [*ends, *told]))
        said = dict(zip(flags, node.outputs[len(ends) :]))
        said.update((flag, None) for flag in settle(node, back, flags))
        values_kept = used_inside(block, back)
        if values_kept:
            self.push(capture, values_kept, node, back)
        capture.block.nodes.append(node)
        for v, out in zip(values, node.outputs[len(through) :]):
            passed.put(v, passed.tensor(out), said.get(inner.flags.get(id(v))))
        for i, out, flag in zip(through, node.outputs, flags):
            start = self.node.args[i + 2]
            if isinstance(start, Value):
                passed.flag = said[flag]
                passed.give(start, passed.gradient(out))

    def through(self, capture, arrived):
        """Numbers of what is carried with gradients: to which one may come from the end, or from a turn."""
        (block,) = self.node.blocks
        ways = {id(v) for v, grad in zip(block.outputs[1:], arrived) if grad is not None}
        before = None
        while before != ways:
            before = set(ways)
            for entry in reversed(self.tape):
                if any(id(v) in ways for v in entry.made):
                    ways.update(id(v) for v in used_values(entry.node) if id(v) in capture.needs)
            ways.update(id(end) for v, end in zip(block.inputs, block.outputs) if id(v) in ways)
        found = [i for i, v in enumerate(block.inputs[1:]) if arrived[i] is not None or id(v) in ways]
        for i in found:
            if self.made[i].type is not TENSOR and not is_stack(self.made[i].type):
                raise NotDerived(f"a loop that carries a value of type {self.made[i].type} with a gradient")
        return found

    def is_there(self, passed, i, grad):
        if is_stack(self.made[i].type):
            return True
        return grad is not None and (passed.maybe_of(self.made[i]) or True)

    def nothing(self, passed, i):
        """The gradient of what is carried, in the end, where nothing arrived."""
        value = self.made[i]
        return stack_gradients.empty(passed.capture) if is_stack(value.type) else passed.nothing(value)

    def turn(self, inner, block, through, starts):
        """Write a turn backward: (number of the turn, gradients that it is given, whether they are there, those that
        it gives, whether they are there)."""
        capture = inner.capture
        turn = capture.graph.value(INT, None, 0)
        grads = [self.grad_of(capture, block.outputs[i + 1], start) for i, start in zip(through, starts)]
        flags = [capture.graph.value(BOOL, None, True) for _ in through]
        for i, grad, flag in zip(through, grads, flags):
            if isinstance(block.outputs[i + 1], Value):
                inner.flag = flag
                inner.give(block.outputs[i + 1], inner.gradient(grad))
        inner.walk()
        carried = [block.inputs[i + 1] for i in through]
        ends = [inner.nothing(v) if inner.so_far(v) is None else inner.so_far(v) for v in carried]
        for grad, start, end in zip(grads, starts, ends):
            if isinstance(start, Value) and is_stack(end.type):
                grad.type = start.type = end.type  # what lies on an empty stack is known by now
        return turn, grads, flags, [capture.lift(e) for e in ends], [inner.told(v) for v in carried]

    def grad_of(self, capture, value, start):
        if isinstance(start, Value):
            return capture.graph.value(start.type, None, start.hint)
        return capture.graph.value(TENSOR, None, _hint(value))

    def turns(self, capture):
        """How many turns there were: a value that the loop carries, made at the first call."""
        block = self.node.blocks[0]
        if self.node.args[1] is True and block.outputs[0] is True and self.node.args[0] is not None:
            return self.node.args[0]
        value = capture.graph.value(INT, None, 0)
        block.inputs.append(value)
        block.outputs.append(_computed(capture, block, len(block.nodes), "prim::add", value, 1))
        return self.carry_more(capture, 0, INT, 1)

    def carry_more(self, capture, start, type, hint):
        self.node.args = (*self.node.args, start)
        out = capture.graph.value(type, self.node, hint)
        self.node.outputs = (*self.node.outputs, out)
        return out

    def push(self, capture, values, node, back):
        """Keep what a turn made for its turn backward."""
        graph, block, type = capture.graph, self.node.blocks[0], Type(STACK, [v.type for v in values])
        hints = [v.hint for v in values]
        before, (empty,) = _made(graph, "prim::stack", (), (type,), [()])
        around = block_of(capture, self.node)
        around.nodes.insert(around.nodes.index(self.node), before)
        stack = graph.value(type, None, ())
        block.inputs.append(stack)
        push, (grown,) = _made(graph, "prim::push", (stack, *values), (type,), [((), *hints)])
        block.nodes.append(push)
        block.outputs.append(grown)
        full = self.carry_more(capture, empty, type, ((), *hints))
        left = graph.value(type, None, full.hint)
        pop, (rest, *tops) = _made(graph, "prim::pop", (left,), (type, *type.args), [(), *hints])
        back.inputs.append(left)
        back.nodes.insert(0, pop)
        back.outputs.append(rest)
        node.args = (*node.args, full)
        node.outputs = (*node.outputs, graph.value(type, node, ()))
        substitute(back, dict(zip(values, tops)))


def _first_only(passed):
    if passed.create_graph and not passed.capture.joint:
        raise NotDerived("a backward pass through a branch or a loop, which is to be derived in its turn")


def _made(graph, op, args, types, hints):
    node = Node(op, args)
    node.outputs = tuple(graph.value(t, node, h) for t, h in zip(types, hints))
    return node, node.outputs


def _computed(capture, block, at, op, *args):
    node, (out,) = _made(capture.graph, op, args, (INT,), [0])
    block.nodes.insert(at, node)
    return out


def _hint(a):
    return a.hint if isinstance(a, Value) else None


def settle(node, back, flags):
    """Of the bools that a loop carries last, those that are True at all times: the body gets True in their place."""
    count = len(flags)
    always = {flag for flag, start in zip(flags, node.args[-count:]) if start is True} if count else set()

    def holds(a):
        if not isinstance(a, Value):
            return a is True
        return a in always or (a.node is not None and a.node.op == "prim::or" and any(map(holds, a.node.args)))

    before = None
    while before != always:
        before = set(always)
        always = {flag for flag, end in zip(flags, back.outputs[-count:]) if flag in before and holds(end)}
    substitute(back, dict.fromkeys(always, True))
    for node in [n for n in back.nodes if n.op == "prim::or"]:
        if True in [a for a in node.args if not isinstance(a, Value)]:
            back.nodes.remove(node)
            substitute(back, {node.output: True})
    return always


def used_inside(block, back):
    """Values of a block that another, its backward pass, uses; the number of a turn is known anyway."""
    own = {id(v) for v in block.inputs} | {id(v) for node in block.nodes for v in node.outputs}
    return [v for v in outer_values(back) if id(v) in own]


def substitute(block, mapping):
    """Let a block use other values in the place of some."""
    for node in block.nodes:
        node.args = replaced(node.args, mapping)
        for inner in node.blocks:
            substitute(inner, mapping)
    block.outputs = list(replaced(tuple(block.outputs), mapping))


def block_of(capture, node):
    """The block that holds a node."""
    for block in (capture.block, capture.graph.block, *(b for n in capture.graph.walk() for b in n.blocks)):
        if node in block.nodes:
            return block
    raise LookupError(f"{node} is in no block")
