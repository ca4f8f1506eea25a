"""Branches and loops of a graph that is written down again: they stay what they are."""

from contextlib import contextmanager

from tinygrad_ext.core.data.tensor import Tensor

from . import lists, stack_gradients
from .control_backward import IfEntry, on_tape
from .interpret import run_block
from .ir import Block, Node, Value
from .items import SPOKEN, Items, NotDerived
from .loop_backward import LoopEntry
from .primitives.stacks import Emptied
from .types import INT


def replay_if(replay, node, frame):
    capture = replay.capture
    condition = replay.read(node.args[0], frame)
    if not isinstance(condition, Value):
        return replay.block(node.blocks[0 if condition else 1], frame)
    taken = 0 if condition.hint else 1
    halves = [_branch(replay, node, frame, condition, i, i == taken) for i in range(2)]
    goes_on = [half is not None for half in halves]
    if halves[1 - taken] is None:
        halves[1 - taken] = _never(capture, condition, halves[taken])
    blocks, tapes, yields = zip(*halves)
    made = Node("prim::If", (condition,), blocks)
    entry = IfEntry(made, tapes)
    results = [_joined(replay, entry, of_node, *pair, taken, goes_on) for of_node, *pair in zip(node.outputs, *yields)]
    capture.block.nodes.append(made)
    entry.note(capture)
    return results


def _branch(replay, node, frame, condition, number, taken):
    """(block, tape, yields); None for one that cannot run on this time's examples, and need not."""
    try:
        with _within(replay) as (block, tape):
            yields = replay.block(node.blocks[number], dict(frame))
    except Exception:
        if taken:
            raise
        return None
    return block, tape, yields


def _never(capture, condition, other):
    """A branch that this graph is not good for."""
    block, nobody = Block(), []
    guard = Node("prim::guard", (condition, condition.hint, ""), ())
    block.nodes.append(guard)

    def missing(a):
        if type(a) is Items:
            return a.like([missing(part) for part in a.parts])
        if not isinstance(a, Value):
            return a
        return capture.graph.make(block, "prim::undefined", (), (a.type,), (a.hint,)).output

    return block, nobody, [missing(a) for a in other[2]]


def _joined(replay, entry, of_node, first, second, taken, goes_on):
    """What a branch gives for two operands that its blocks yield. goes_on: whether anything runs behind each block."""
    pair = first, second
    if type(first) is Items and _alike(first, second):
        inner = of_node.type.args
        types = inner if of_node.type.word == "Tuple" else [inner[-1]] * len(first.parts)
        parts = zip(types, first.parts, second.parts)
        return first.like([_joined(replay, entry, Value("", t), a, b, taken, goes_on) for t, a, b in parts])
    if first is second or (not isinstance(first, (Value, Items)) and _equal(first, second)):
        return first
    lifted = []
    for block, a in zip(entry.node.blocks, pair):
        with replay.capture.inside(block):
            lifted.append(replay.own(a) if type(a) is Items and lists.is_list(a.type) else replay.lift(a))
    for block, a in zip(entry.node.blocks, lifted):
        block.outputs.append(a)
    _check_alike(*map(replay.example, pair), "the branches give")
    example = replay.example(pair[taken])
    value = replay.graph.value(of_node.type, entry.node, example)
    entry.node.outputs = (*entry.node.outputs, value)
    if any(on and _is_hollow(replay.capture, a) for a, on in zip(lifted, goes_on)):
        replay.capture.hollow.add(id(value))
        value.hint = replay.example(pair[1 - taken]) if example is None else example
    if any(isinstance(a, Value) and id(a) in replay.capture.needs for a in lifted):
        replay.capture.needs.add(id(value))
    return value


def _check_alike(a, b, who):
    """What follows is written down for one rank."""
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() != b.dim():
        raise NotDerived(f"{who} a tensor of {a.dim()} dimensions, and of {b.dim()}")


def _equal(a, b):
    return type(a) is type(b) and (a == b or a is b) and not isinstance(a, float)


@contextmanager
def _within(replay):
    """A new block with a tape of its own, to write to."""
    replay.depth += 1
    try:
        with on_tape(replay.capture) as (block, tape):
            yield block, tape
    finally:
        replay.depth -= 1


class _Grows(NotDerived):
    """A list has other parts after a turn than before."""

    def __init__(self, place):
        super().__init__("what a loop carries changes its form")
        self.place = place


def replay_loop(replay, node, frame):
    count, goes_on, *carried = [replay.read(a, frame) for a in node.args]
    if goes_on is False or count == 0:
        return carried
    frame = {**frame, **_picked_of(replay, node, frame)}
    while True:
        try:
            return _loop(replay, node, frame, count, goes_on, carried)
        except _Grows as grown:
            if type(carried[grown.place]) is not Items:
                raise
            carried[grown.place] = replay.own(carried[grown.place])  # a list as one value may grow


def _picked_of(replay, node, frame):
    """Lists from outside of which a turn picks by a number that it computes: one value each, made before the loop."""
    found = {}
    for inner in node.blocks[0].walk():
        if inner.op == "prim::getitem" and isinstance(inner.args[0], Value):
            items, key = frame.get(id(inner.args[0])), inner.args[1]
            known = not isinstance(key, Value) or not isinstance(frame.get(id(key), key), Value)
            if type(items) is Items and not known and lists.is_list(items.type) and id(inner.args[0]) not in found:
                found[id(inner.args[0])] = replay.lift(items)
    return found


def _loop(replay, node, frame, count, goes_on, carried):
    capture = replay.capture
    trees = [_flat(a) for a in carried]
    starts = [a for tree in trees for a in tree]
    needing = [isinstance(a, Value) and id(a) in capture.needs for a in starts]
    examples = [replay.example(a) for a in starts]
    final = _run_on_examples(replay, node, frame, [count, goes_on, *carried])
    hollow = [_is_hollow(capture, a) for a in starts]
    for _ in range(3 * len(starts) + 1):
        block, tape, yields = _body(replay, node, frame, starts, carried, needing, examples, hollow)
        seen = [isinstance(a, Value) and id(a) in capture.needs for a in yields[1:]]
        filled = [_first_known(a, y, e) for a, y, e in zip(starts, yields[1:], examples)]
        gone = [before or _is_hollow(capture, y) for before, y in zip(hollow, yields[1:])]
        known = gone == hollow and filled == [None] * len(filled)
        if known and all(before or not after for before, after in zip(needing, seen)):
            break
        hollow = gone
        needing = [before or after for before, after in zip(needing, seen)]
        examples = [e if f is None else f for e, f in zip(examples, filled)]
    for example, y in zip(examples, yields[1:]):
        _check_alike(example, replay.example(y), "a loop carries")
    block.outputs = yields
    made = Node("prim::Loop", (count, goes_on, *starts), (block,))
    ends = [e for tree, a in zip(carried, final) for e in _flat_example(tree, a)]
    types = [v.type for v in block.inputs[1:]]
    ends = [_typical(t, e, y) for t, e, y in zip(types, ends, yields[1:])]
    made.outputs = tuple(capture.graph.value(t, made, hint) for t, hint in zip(types, ends))
    capture.needs.update(id(v) for v, needed in zip(made.outputs, needing) if needed)
    capture.hollow.update(id(v) for v, may in zip(made.outputs, hollow) if may)
    LoopEntry(made, tape).note(capture)
    capture.block.nodes.append(made)
    results = iter(made.outputs)
    return [_refilled(a, results) for a in carried]


def _run_on_examples(replay, node, frame, args):
    """What the loop carries in the end, this time."""
    inner = {key: replay.example(a) for key, a in frame.items()}
    count, goes_on, *carried = [lists.example(replay.example(a)) for a in args]
    block = _silent(node.blocks[0])
    turn = 0
    while goes_on and (count is None or turn < count):
        inner[id(block.inputs[0])] = turn
        inner.update(zip(map(id, block.inputs[1:]), carried))
        try:
            goes_on, *carried = replay.on_examples(run_block, block, inner)
        except Emptied:
            break  # the way is not taken this time, and its stack is an example of fewer turns
        turn += 1
    return carried


def _silent(block):
    """A block that says nothing."""
    if all(node.op not in SPOKEN for node in block.walk()):
        return block
    made = Block(block.inputs, (), block.outputs)
    for node in block.nodes:
        if node.op not in SPOKEN:
            copied = Node(node.op, node.args, [_silent(inner) for inner in node.blocks])
            copied.outputs = node.outputs
            made.nodes.append(copied)
    return made


def _typical(type, end, yielded):
    """An example of what a loop gives; of a stack or a list that is empty this time, too."""
    if stack_gradients.is_stack(type):
        return stack_gradients.filled(end, yielded.hint)
    return end or yielded.hint if lists.is_list(type) and isinstance(yielded, Value) else end


def _first_known(start, end, example):
    """What a turn gives for what was undefined, or empty, before the first."""
    if not isinstance(end, Value):
        return None
    if stack_gradients.is_stack(end.type) or lists.is_list(end.type):
        return end.hint or None if not example else None
    return end.hint if example is None and _is_undefined(start) else None


def _is_undefined(a):
    return isinstance(a, Value) and a.node is not None and a.node.op == "prim::undefined"


def _is_hollow(capture, a):
    return _is_undefined(a) or (isinstance(a, Value) and id(a) in capture.hollow)


def _body(replay, node, frame, starts, carried, needing, examples, hollow):
    """(block, tape, what it yields) of one turn."""
    capture, (source,) = replay.capture, node.blocks
    with _within(replay) as (block, tape):
        turn = capture.graph.value(INT, None, 0)
        types = [t for v, a in zip(source.inputs[1:], carried) for t in _flat_types(v.type, a)]
        block.inputs = [turn]
        for kind, needed, example, may in zip(types, needing, examples, hollow):
            value = capture.graph.value(kind, None, example)
            if may:
                capture.hollow.add(id(value))
            block.inputs.append(value)
            if needed:
                capture.needs.add(id(value))
        given = iter(block.inputs[1:])
        inner = {**frame, id(source.inputs[0]): turn}
        inner.update((id(v), _refilled(a, given)) for v, a in zip(source.inputs[1:], carried))
        goes_on, *yields = replay.block(source, inner)
        flat = [goes_on]
        for place, (start, end) in enumerate(zip(carried, yields)):
            if not _alike(start, end):
                if type(start) is Items or type(end) is not Items:
                    raise _Grows(place)
                end = replay.own(end)
            flat += _flat(end)
    return block, tape, flat


def _alike(a, b):
    if type(a) is not Items and type(b) is not Items:
        return True
    return (
        type(a) is type(b) and a.keys == b.keys and len(a.parts) == len(b.parts) and all(map(_alike, a.parts, b.parts))
    )


def _flat(a):
    return [x for part in a.parts for x in _flat(part)] if type(a) is Items else [a]


def _flat_types(type, a):
    if not isinstance(a, Items):
        return [type]
    types = type.args if type.word == "Tuple" else [type.args[-1]] * len(a.parts)
    return [x for t, part in zip(types, a.parts) for x in _flat_types(t, part)]


def _flat_example(a, example):
    if type(a) is not Items:
        return [example]
    parts = [example[k] for k in a.keys] if a.keys is not None else example
    return [x for part, e in zip(a.parts, parts) for x in _flat_example(part, e)]


def _refilled(a, values):
    return a.like([_refilled(part, values) for part in a.parts]) if type(a) is Items else next(values)
