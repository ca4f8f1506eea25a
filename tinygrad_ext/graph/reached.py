"""Which results of a graph a gradient flows from when it runs, where branches and loops decide that.

What a capture knows is whether one may: `needs`. Eager mode says of each result whether one does, by the way that was
taken. So the forward graph of a derivative gives a bool for each result for which the two may differ: branches yield
it, loops carry it, and where values meet it is the `or` of theirs. Nothing is added where all results are certain.
"""

from .ir import Value, values_in
from .types import BOOL, TENSOR

_MAYBE = "maybe"  # in the place of a bool that is not written down yet


def flags_of(capture, wanted, roots):
    """For each root True, False or a bool Value: whether it leads to one of `wanted`, values that need a gradient."""
    if all([v.type is TENSOR for v in roots]) and not any([node.blocks for node in capture.block.nodes]):
        return [id(v) in capture.needs for v in roots]  # nothing decides on the way
    dry = Reached(capture, wanted, False)
    dry.block(capture.block)
    if all(dry.of(v) in (True, False) for v in roots):
        return [dry.of(v) for v in roots]
    found = Reached(capture, wanted, True)
    found.block(capture.block)
    return [found.of(v) for v in roots]


class Reached:
    """A walk through a graph, in the order in which it runs. writes: whether bools are written down."""

    def __init__(self, capture, wanted, writes):
        self.capture, self.writes = capture, writes
        self.flags = {v: True for v in wanted}

    def of(self, a):
        """What is known of an operand."""
        if not isinstance(a, Value):
            return False
        return self.flags.get(a, id(a) in self.capture.needs)

    def block(self, block):
        made = []
        for node in block.nodes:
            made.append(node)
            if node.op == "prim::If":
                self.branch(node)
            elif node.op == "prim::Loop":
                self.loop(node)
            else:
                self.node(node, made)
        if self.writes:
            block.nodes[:] = made

    def node(self, node, made):
        """An op, or a primitive. A list of tensors that an op gives is not among `needs`, its parts are."""
        needs = self.capture.needs
        outputs = [v for v in node.outputs if id(v) in needs or v.type.word == "List"]
        if outputs:
            told = self.capture.told.get(node.op)
            targets = node.args if told is None or told.custom else [node.args[t] for t in told.targets]
            values = [v for v in values_in(targets) if id(v) in needs or v in self.flags]
            if values:  # else it is as `needs` says
                self.flags.update(dict.fromkeys(outputs, self.any_of(values, made)))

    def any_of(self, values, made):
        flags = list(dict.fromkeys(map(self.of, values)))
        if True in flags:
            return True
        flags = [f for f in flags if f is not False]
        if not self.writes:
            return _MAYBE if flags else False
        found = flags[0] if flags else False
        for other in flags[1:]:
            hint = found.hint or other.hint
            at = len(made)
            found = self.capture.graph.make(self.capture.block, "prim::or", (found, other), (BOOL,), (hint,)).output
            made.insert(at, self.capture.block.nodes.pop())
        return found

    def branch(self, node):
        for block in node.blocks:
            self.block(block)
        for i, value in enumerate(node.outputs):
            if id(value) not in self.capture.needs:
                continue
            ends = [block.outputs[i] for block in node.blocks]
            flags = [self.of(a) for a in ends]
            first, second = [flags[1 - k] is True if _is_undefined(a) else flags[k] for k, a in enumerate(ends)]
            self.flags[value] = first if first is second else self.joined(node, first, second)

    def joined(self, node, first, second):
        if not self.writes:
            return _MAYBE
        for block, flag in zip(node.blocks, (first, second)):
            block.outputs.append(flag)
        taken = first if node.args[0].hint else second
        return self.more(node, taken.hint if isinstance(taken, Value) else taken)

    def more(self, node, hint):
        """One more bool that a node gives."""
        made = self.capture.graph.value(BOOL, node, hint)
        node.outputs = (*node.outputs, made)
        return made

    def loop(self, node):
        (block,), starts = node.blocks, [self.of(a) for a in node.args[2:]]
        carried = [i for i, v in enumerate(block.inputs[1:]) if id(v) in self.capture.needs]
        unsure = {i for i in carried if starts[i] is not True}
        writes, self.writes = self.writes, False
        before = None
        while before != unsure:
            before = set(unsure)
            self.flags.update((block.inputs[i + 1], _MAYBE if i in unsure else True) for i in carried)
            self.block(block)
            unsure |= {i for i in carried if self.of(block.outputs[i + 1]) is not True}
        self.writes = writes
        self.flags.update((node.outputs[i], _MAYBE if i in unsure else True) for i in carried)
        if writes and unsure:
            self.carry(node, block, sorted(unsure), starts)

    def carry(self, node, block, unsure, starts):
        """Let a loop carry a bool for each of what it carries that is not certain."""
        flags = [self.capture.graph.value(BOOL, None, True) for _ in unsure]
        self.flags.update((block.inputs[i + 1], flag) for i, flag in zip(unsure, flags))
        self.block(block)
        ends = [self.of(block.outputs[i + 1]) for i in unsure]
        node.args = (*node.args, *(starts[i] for i in unsure))
        block.inputs += flags
        block.outputs += ends
        for i in unsure:
            self.flags[node.outputs[i]] = self.more(node, True)


def _is_undefined(a):
    """Whether nobody reads a value."""
    return isinstance(a, Value) and a.node is not None and a.node.op == "prim::undefined"
