"""Derivatives of loops: a second loop of as many turns, from the last one to the first. See control_backward.py."""

from . import lists, primitives, stack_gradients
from .control_backward import ControlEntry, Within, first_only, hint_of, on_tape, substitute, used_inside
from .derive import has_parts
from .ir import Node, Value, replaced, used_values
from .items import NotDerived
from .passes.base import is_op
from .signature import signature_of
from .stack_gradients import STACK, is_stack
from .types import BOOL, FLOAT, INT, TENSOR, Type


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
            type = lists.of_list(value.type) if lists.is_list(value.type) else TENSOR
            self.sums[id(value)] = self.capture.graph.value(type, None, value.hint)
            self.values[id(value)] = value
            if type is not TENSOR:
                return self.sums[id(value)]
            if self.outer.so_far(value) is None or self.outer.maybe_of(value) is not None:
                self.flags[id(value)] = self.capture.graph.value(BOOL, None, False)
        return self.gradient(self.sums[id(value)])

    def maybe_before(self, value):
        return self.flags.get(id(value))


class LoopEntry(ControlEntry):
    """tape: of its block."""

    def __init__(self, node, tape):
        super().__init__(node)
        self.tape = tape

    def spread(self, passed, arrived):
        first_only(passed)
        capture, (block,) = passed.capture, self.node.blocks
        through = self.through(capture, arrived)
        starts = [arrived[i] for i in through]
        there = [self.is_there(passed, i, s) for i, s in zip(through, starts)]
        starts = [self.nothing(passed, i) if s is None else self.fit(passed, s) for i, s in zip(through, starts)]
        with on_tape(capture) as (back, _):
            inner = Turn(passed, block, self.tape)
            turn, grads, flags, ends, told = self.turn(inner, block, through, starts)
            values = inner.outside()
            for v in values:
                inner.before(v)
            flagged = [v for v in values if id(v) in inner.flags]
            ends += [self.end(inner, v) for v in values]
            told += [inner.told(v) for v in flagged]
        starts += [self.start(passed, v) for v in values]
        there += [passed.so_far(v) is not None and (passed.maybe_of(v) or True) for v in flagged]
        flags += [inner.flags[id(v)] for v in flagged]
        back.inputs = [turn, *grads, *(inner.sums[id(v)] for v in values), *flags]
        back.outputs = [True, *ends, *told]
        turns = self.turns(capture)
        last = _computed(capture, capture.block, len(capture.block.nodes), "prim::sub", turns, 1)
        substitute(back, {block.inputs[0]: _computed(capture, back, 0, "prim::sub", last, turn)})
        node = Node("prim::Loop", (turns, True, *map(capture.lift, starts), *there), (back,))
        types = [e.type for e in ends] + [BOOL] * len(told)
        node.outputs = tuple(capture.graph.value(t, node, hint_of(e)) for t, e in zip(types, [*ends, *told]))
        said = dict(zip(flags, node.outputs[len(ends) :]))
        said.update((flag, None) for flag in settle(node, back, flags))
        made_again(capture, block, back)
        values_kept = used_inside(block, back)
        if values_kept:
            self.push(capture, values_kept, node, back)
        capture.block.nodes.append(node)
        for v, out in zip(values, node.outputs[len(through) :]):
            passed.put(v, passed.gradient(out), said.get(inner.flags.get(id(v))))
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
            if self.made[i].type is not TENSOR and not has_parts(self.made[i].type):
                raise NotDerived(f"a loop that carries a value of type {self.made[i].type} with a gradient")
        return found

    def is_there(self, passed, i, grad):
        if has_parts(self.made[i].type):
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
            if isinstance(start, Value) and is_stack(grad.type):
                grad.type = start.type = end.type  # what lies on an empty stack is known by now
        ends = [self.fit(inner, end, grad) for end, grad in zip(ends, grads)]
        return turn, grads, flags, [capture.lift(e) for e in ends], [inner.told(v) for v in carried]

    def fit(self, passed, grad, like=None):
        """The gradient of a list in the type in which it is carried."""
        if not isinstance(grad, Value) or is_stack(grad.type):
            return grad
        sure = lists.stays_sure(self.tape) if like is None else like.type is grad.type
        return grad if sure else lists.unsure(passed.capture, grad)

    def start(self, passed, value):
        found = passed.so_far(value)
        if lists.is_list(value.type):
            return lists.unsure(passed.capture, passed.nothing(value) if found is None else found)
        return passed.nothing(value) if found is None else found

    def end(self, inner, value):
        found = inner.so_far(value)
        return lists.unsure(inner.capture, found) if lists.is_list(value.type) else inner.capture.lift(found)

    def grad_of(self, capture, value, start):
        if isinstance(start, Value):
            return capture.graph.value(start.type, None, start.hint)
        return capture.graph.value(TENSOR, None, hint_of(value))

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


def _made(graph, op, args, types, hints):
    node = Node(op, args)
    node.outputs = tuple(graph.value(t, node, h) for t, h in zip(types, hints))
    return node, node.outputs


def _computed(capture, block, at, op, *args):
    node, (out,) = _made(capture.graph, op, args, (INT,), [0])
    block.nodes.insert(at, node)
    return out


def made_again(capture, block, back):
    """Let a turn backward make views and numbers that follow from the outside of the loop alone, in the place of those
    that each turn would have to keep: a view of a weight would be a copy in every one."""
    inputs, makers = set(map(id, block.inputs)), {id(v): node for node in block.nodes for v in node.outputs}
    steady, mapping, nodes = {}, {}, []

    def is_steady(value):
        if id(value) not in makers:
            return id(value) not in inputs
        if id(value) not in steady:
            node = makers[id(value)]
            steady[id(value)] = _is_cheap(node) and all(map(is_steady, node.values()))
        return steady[id(value)]

    def make(value):
        if id(value) not in makers or value in mapping:
            return
        old = makers[id(value)]
        for v in old.values():
            make(v)
        new = Node(old.op, replaced(old.args, mapping), (), old.line, old.version, old.owner).numbered_as(old)
        new.outputs = tuple(capture.graph.value(v.type, new, v.hint) for v in old.outputs)
        mapping.update(zip(old.outputs, new.outputs))
        nodes.append(new)

    for value in used_inside(block, back):
        if is_steady(value):
            make(value)
    substitute(back, mapping)
    back.nodes[:0] = nodes


def _is_cheap(node):
    """Whether a node gives a view, or numbers, and reads no list, which its owner may change in place."""
    if not all(v.type in (TENSOR, INT, FLOAT, BOOL) for v in node.values()):
        return False
    if is_op(node):
        return bool(signature_of(node.op).op.record.view) and len(node.outputs) == 1
    row = primitives.TABLE.get(node.op)
    return row is not None and not row.effect and all(v.type in (INT, FLOAT, BOOL) for v in node.outputs)


def settle(node, back, flags):
    """Of the bools that a loop carries last, those that are True at all times: the body gets True in their place."""
    count = len(flags)
    always = {flag for flag, start in zip(flags, node.args[-count:]) if start is True} if count else set()

    def holds(a):
        if not isinstance(a, Value) or a in always:
            return a is True or a in always
        op = a.node.op if a.node is not None else ""
        if op == "prim::If":
            place = a.node.outputs.index(a)
            ways = a.node.blocks[:1] if holds(a.node.args[0]) else a.node.blocks
            return all(holds(block.outputs[place]) for block in ways)
        return op == "prim::or" and any(map(holds, a.node.args))

    before = None
    while before != always:
        before = set(always)
        always = {flag for flag, end in zip(flags, back.outputs[-count:]) if flag in before and holds(end)}
    substitute(back, dict.fromkeys(always, True))
    for node in [n for n in back.nodes if n.op == "prim::or"]:
        if True in [a for a in node.args if not isinstance(a, Value)]:
            back.nodes.remove(node)
            substitute(back, {node.output: True})
    take_known(back, back)
    return always


def take_known(back, block):
    """Let what stands under a condition that is True stand in its place, in a block of a loop's and in those within."""
    for node in list(block.nodes):
        for inner in node.blocks:
            take_known(back, inner)
        if node.op == "prim::If" and node.args[0] is True:
            at = block.nodes.index(node)
            block.nodes[at : at + 1] = node.blocks[0].nodes
            substitute(back, dict(zip(node.outputs, node.blocks[0].outputs)))


def block_of(capture, node):
    """The block that holds a node."""
    for block in (capture.block, capture.graph.block, *(b for n in capture.graph.walk() for b in n.blocks)):
        if node in block.nodes:
            return block
    raise LookupError(f"{node} is in no block")
