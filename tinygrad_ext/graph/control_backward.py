"""Derivatives of branches and loops.

Each block keeps a tape of its own. When gradients arrive at a branch, a second `prim::If` on the same condition holds
the backward passes of both blocks; at a loop, a second `prim::Loop` of as many turns runs the backward pass of the body
from the last turn to the first. What they use of the first, it gives out: a branch as one more output, None where the
other one ran; a loop on a stack that each turn pushes to, and each turn backward pops from.

Gradients of values from outside are carried on from what has arrived there already, so all that meet are added in the
order of eager mode, and sums have its bits. Where a block gives none at all, -0.0 stands for it, which changes no sum.
Rules of ops take such a zero for what it is, as they are linear. What may not be, a Function or a hook of the user,
runs in a branch, where a gradient has arrived.
"""

from contextlib import contextmanager

from . import lists
from .aliases import CaptureError
from .derive import Backward, has_parts, is_linear
from .ir import Block, Node, Value, outer_values, replaced, used_values
from .items import NotDerived
from .stack_gradients import is_stack
from .types import BOOL, TENSOR, optional


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


class Careful(Backward):
    """A backward pass that runs what may not be linear only where a gradient arrived, as eager mode does."""

    def step(self, entry):
        unsure = self.unsure(entry.made)
        if not unsure:
            super().step(entry)
            return
        hooked = any(self.capture.hooks.get(id(v)) for v in unsure)
        if is_linear(entry) and not hooked:
            super().step(entry)
            return
        flag, before = self.maybe_of(unsure[0]), changes(self.capture)
        halves = [self.assumed(entry, flag, there) for there in (True, False)]
        if changes(self.capture) != before:
            raise _refused(self.capture)(
                f"{entry.node.op}: its backward, or a hook, draws random numbers or writes to a tensor from outside, "
                "and a branch or a loop decides whether a gradient arrives there; do that outside of what is captured"
            )
        join(self, flag, halves)

    def assumed(self, entry, flag, there):
        """(block, backward pass) of a node where it is known whether the gradients that a bool tells of arrived."""
        with on_tape(self.capture) as (back, _):
            inner = Within(self, Block(entry.made), [entry])
            for v in entry.made:
                maybe = self.maybe_of(v)
                if id(v) in self.grads and (there or maybe is not flag):
                    inner.put(v, self.grads[id(v)], None if maybe is flag else maybe)
            inner.walk()
        return back, inner


def changes(capture):
    """What tensors from outside and generators hold by now."""
    roots = [id(t.root.value) for t in capture.roots.values() if t.root.version > 0]
    return roots + [id(row[1]) for row in capture.generators.values()]


class Within(Careful):
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


class ControlEntry:
    """What the tape has of a node with blocks."""

    linear = True  # see derive.is_linear

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
        first_only(passed)
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
        join(passed, self.node.args[0], halves, self.give_out)

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


def join(passed, condition, halves, before=None):
    """Let a second branch hold two backward passes, and give what arrives by them. before: what is to be done with the
    number and the block of each first."""
    capture = passed.capture
    values = {id(v): v for _, inner in halves for v in inner.outside()}
    if not values:
        return
    node = Node("prim::If", (condition,), [back for back, _ in halves])
    types = [_yielded(capture, value, halves) for value in values.values()]
    flags = [not has_parts(v.type) and _told(capture, v, halves) for v in values.values()]
    taken = halves[0 if condition.hint else 1][0]
    types += [BOOL] * sum(flags)
    node.outputs = tuple(capture.graph.value(t, node, hint_of(v)) for t, v in zip(types, taken.outputs))
    for number, (back, _) in enumerate(halves if before is not None else ()):
        before(capture, number, back)
    capture.block.nodes.append(node)
    told = iter(node.outputs[len(values) :])
    ends = zip(*(back.outputs for back, _ in halves))
    for value, out, flagged, pair in zip(values.values(), node.outputs, flags, ends):
        if any(isinstance(a, Value) and id(a) in capture.hollow for a in pair):
            capture.hollow.add(id(out))
        passed.put(value, passed.gradient(out), next(told) if flagged else None)


def _yielded(capture, value, halves):
    """Let the branches give the gradient of a value; its type."""
    grads, type = [inner.so_far(value) for _, inner in halves], TENSOR
    if is_stack(value.type):
        known = next(g for g in grads if g is not None)
        type, hint = known.type, known.hint
    for (back, inner), grad in zip(halves, grads):
        with capture.inside(back):
            if grad is None:
                grad = inner.undefined(type, hint) if is_stack(type) else inner.nothing(value)
            back.outputs.append(capture.lift(grad))
    if lists.is_list(value.type):
        type = _one_type(capture, [back for back, _ in halves])
    return type


def _one_type(capture, blocks):
    """Let the gradients of a list, the last that blocks yield, have one type."""
    if len({back.outputs[-1].type for back in blocks}) > 1:
        for back in blocks:
            with capture.inside(back):
                back.outputs[-1] = lists.unsure(capture, back.outputs[-1])
    return blocks[0].outputs[-1].type


def _told(capture, value, halves):
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


def first_only(passed):
    if passed.create_graph and not passed.capture.joint:
        raise CaptureError(
            "a backward pass with create_graph=True through a branch or a loop is not captured; call the scripted "
            "function outside of what is traced"
        )


def _refused(capture):
    """What is raised for what cannot be written down: where a program is traced there is no other way."""
    return NotDerived if capture.joint else CaptureError


def hint_of(a):
    return a.hint if isinstance(a, Value) else None


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
