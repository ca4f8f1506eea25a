"""Lowers `prim::If`, `prim::Loop` and stacks: jumps between the steps of their blocks.

What a branch gives and what a loop carries has a place of its own, a slot: memory for a tensor of one geometry, a
register for a number of one kind, the state of a generator. Where nobody can say before the run which geometry that is
(it changes from trip to trip, the branches disagree), NotPlanned is raised.

A stack is a register, the number of its last row, and the pile of memory that the rows lie in (stacks.pyx).

A value that is undefined on some way is None of the memory there: the graph says that nobody reads it.
"""

from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.core.data.tensor import Tensor

from .arithmetic import kind
from .lowering import (
    CODES,
    NotPlanned,
    Number,
    Stacked,
    assign,
    lies_in,
    numbers_in,
    pop,
    push,
    same_layout,
    slot_like,
)
from .ways import OWN

MOST = 1 << 62  # trips of a loop without a count
_KINDS = (int, float, bool, complex)


class _Moved(NotPlanned):
    """A tensor lies otherwise on another way."""


class _Undefined:
    """What prim::undefined gives."""

    def __repr__(self):
        return "undefined"


UNDEFINED = _Undefined()


def lower_if(planner, node, args):
    """Results of the branch that is known, or slots that either branch fills."""
    condition = planner.truth(args[0])
    if not isinstance(condition, Number):
        return planner.block(node.blocks[0 if condition else 1])
    low = planner.lowering
    otherwise, end = low.label(), low.label()
    low.control(CODES["unless"], a=condition, label=otherwise, name="prim::If")
    first = planner.block(node.blocks[0])
    mark = len(low.steps)
    low.control(CODES["jump"], label=end)
    low.place_label(otherwise)
    second = planner.block(node.blocks[1])
    slots = [_joined(planner, a, b, condition) for a, b in zip(first, second)]
    for slot, value in [*_filled(slots, first), *_filled(slots, second)]:
        if planner.ways.of(value) != OWN:
            planner.ways.open(slot)
    rest = low.steps[mark:]
    del low.steps[mark:]  # before its jump the first branch fills what both agree on
    _fill(low, slots, first)
    _note(planner, slots, first)
    low.steps.extend(rest)
    _fill(low, slots, second)
    _note(planner, slots, second)
    low.place_label(end)
    return slots


def lower_loop(planner, node, args):
    """Slots that each trip fills anew.

    What the first trip finds may lie otherwise than what it gives: then it is planned apart from the others.
    """
    low, block = planner.lowering, node.blocks[0]
    count, goes_on, *carried = args
    if isinstance(goes_on, Tensor):
        goes_on = planner.truth(goes_on)
    if goes_on is False or (type(count) is int and count <= 0):
        return carried
    mark = len(low.steps)
    try:
        return _trips(planner, block, 0, count, goes_on, carried)
    except _Moved:
        del low.steps[mark:]
    without, end = low.label(), low.label()
    _enter(planner, 0, count, goes_on, without)
    goes_on, *carried = planner.block(block, [0, *carried])
    slots = _trips(planner, block, 1, count, planner.truth(goes_on), carried)
    low.control(CODES["jump"], label=end)
    low.place_label(without)
    planner.fail(node)  # without a trip the start is the result, which lies otherwise: the interpreter gives it
    low.place_label(end)
    return slots


def _trips(planner, block, first, count, goes_on, carried):
    """Slots that all trips fill but those before the first."""
    low = planner.lowering
    mark, shapes = len(low.steps), carried
    for _ in range(3):
        slots, found = _loop(planner, block, first, count, goes_on, carried, shapes)
        if found is shapes:
            return slots
        del low.steps[mark:]  # the body gives what is undefined before it
        shapes = found
    raise NotPlanned("what a loop carries has no one geometry")


def _enter(planner, first, count, goes_on, without):
    """Go to a label where there is no trip."""
    low = planner.lowering
    if isinstance(count, Number) or (count is not None and count <= first):
        low.control(CODES["unless"], a=low.compute("lt", bool, first, count), label=without)
    if isinstance(goes_on, Number) or goes_on is False:
        low.control(CODES["unless"], a=goes_on, label=without)


def _loop(planner, block, first, count, goes_on, carried, shapes):
    """(slots, what they should be like: shapes, if they are)."""
    low = planner.lowering
    top, end, number, turn = low.label(), low.label(), low.next_loop(), planner.slot(0)
    same = [new is old for new, old in zip(block.outputs[1:], block.inputs[1:])]
    slots = [old if is_same else _slot(planner, like) for old, like, is_same in zip(carried, shapes, same)]
    _fill(low, slots, carried, undefined=True)
    own = [slot for slot, _ in _filled(slots, carried)]
    for slot in own:
        planner.ways.open(slot)
    _note(planner, slots, carried)
    low.move(turn, first)
    _enter(planner, first, count, goes_on, end)
    begin, before = len(low.steps), planner.ways.count
    low.place_label(top, "prim::Loop", number)
    goes_on, *new = planner.block(block, [turn, *slots])
    found = [_known(like, n) for like, n in zip(shapes, new)]
    if any(a is not b for a, b in zip(found, shapes)):
        return slots, found
    goes_on = planner.truth(goes_on)
    for slot, n in zip(slots, new):
        _check(slot, n)
    if isinstance(goes_on, Number):
        goes_on = low.compute("move", bool, goes_on)
    found = [(slot, planner.ways.copied(planner.ways.of(n))) for slot, n in _filled(slots, new)]
    once = [slot for slot, way in found if way == OWN and not planner.ways.is_read(slot, before)]
    new = [n if n is slot else _apart(low, n, slots) for n, slot in zip(new, slots)]
    _fill(low, slots, new)
    for slot, way in found:
        if not any(slot is each for each in once):
            planner.ways.fill(slot, way)
    low.barrier()
    if isinstance(goes_on, Number):
        low.control(CODES["unless"], a=goes_on, label=end)
    if goes_on is not False:
        low.control(CODES["next"], a=MOST if count is None else count, to=turn, label=top)
    low.place_label(end, loop=-number)
    rest = low.steps[begin:]
    del low.steps[begin:]
    for slot in once:  # the first trip fills them with what is their own, and the others do too
        planner.ways.fill(slot, OWN)
    low.steps.extend(rest)
    return slots, shapes


def lower_stack(planner, node, args):
    return (Stacked(-1, None),)


def lower_push(planner, node, args):
    stack, *values = args
    values = [None if v is UNDEFINED else v for v in values]  # nobody reads it
    return (planner.known(push(planner.lowering, _stack(node, stack), values)),)


def lower_pop(planner, node, args):
    stack = _stack(node, args[0])
    if stack.heap is None:
        return planner.fail(node)  # it is empty
    return planner.known(pop(planner.lowering, stack))


def _stack(node, value):
    if type(value) is not Stacked:
        raise NotPlanned(f"{node.op} of what is no stack of a plan")
    return value


# ---- slots: tensors, numbers, generators, or lists and tuples of those ----------------------------------------------


def _parts(value):
    return value if type(value) in (list, tuple) else None


def _is_number(value):
    return isinstance(value, Number) or type(value) in _KINDS


def _slot(planner, like):
    """A place for what is like this; what is no tensor and no number has to stay as it is."""
    if _parts(like) is not None:
        return type(like)([_slot(planner, x) for x in like])
    if isinstance(like, Tensor):
        made = slot_like(planner.lowering, like)
        if made is None:
            raise _Moved("the elements of what is carried do not lie side by side")
        return made
    if isinstance(like, Generator):
        return planner.lowering.stream()
    if isinstance(like, Stacked):
        return Stacked(planner.slot(0), like.heap)
    return planner.slot(like) if _is_number(like) else like


def _joined(planner, a, b, condition):
    """What a result of two branches is: one value, or a slot."""
    if a is b or (b is UNDEFINED and not _needs_place(a)):
        return a
    if a is UNDEFINED and not _needs_place(b):
        return b
    known = a if b is UNDEFINED or (isinstance(b, Stacked) and b.heap is None) else b
    if UNDEFINED not in (a, b):
        if _parts(a) is not None and type(a) is type(b) and len(a) == len(b):
            return type(a)([_joined(planner, x, y, condition) for x, y in zip(a, b)])
        if not _needs_place(a) and type(a) is type(b) and a == b:
            return a
        if _is_number(a) and type(a) is type(b) and a == b and repr(a) == repr(b) and not isinstance(a, Number):
            return a
        _check(a, b)
    slot = _slot(planner, known)
    for s in numbers_in(slot):
        planner.follows(s, [*numbers_in([a, b]), condition])
    return slot


def _needs_place(value):
    return isinstance(value, (Tensor, Generator, Stacked)) or _is_number(value) or bool(_parts(value))


def _known(like, new):
    """like, with what is new in the places where it is undefined."""
    if like is UNDEFINED or (type(like) is type(new) is Stacked and like.heap is None):
        return like if type(new) is Stacked and like is not UNDEFINED and new.heap is None else new
    if _parts(like) is None or type(new) is not type(like) or len(new) != len(like):
        return like
    found = [_known(x, y) for x, y in zip(like, new)]
    return like if all(x is y for x, y in zip(found, like)) else type(like)(found)


def _check(slot, new):
    """Raise NotPlanned where a slot cannot hold what is new."""
    if new is UNDEFINED or slot is new:
        return
    if _parts(slot) is not None and type(new) is type(slot) and len(new) == len(slot):
        for s, n in zip(slot, new):
            _check(s, n)
        return
    if isinstance(slot, Tensor) and isinstance(new, Tensor):
        if not same_layout(slot, new):
            raise _Moved(
                f"a tensor has sizes {list(slot.shape)} and strides {list(slot.stride())} on one way, "
                f"{list(new.shape)} and {list(new.stride())} on another, or another dtype"
            )
    elif _is_number(slot) and _is_number(new):
        if kind(slot) is not kind(new):
            raise NotPlanned(f"a number is a {kind(slot).__name__} on one way, a {kind(new).__name__} on another")
    elif isinstance(slot, Stacked) and isinstance(new, Stacked):
        if new.heap is not None and new.heap is not slot.heap:
            raise NotPlanned("a stack has rows of another form on another way")
    elif not (isinstance(slot, Generator) and isinstance(new, Generator)) and (
        _needs_place(slot) or _needs_place(new) or type(slot) is not type(new) or slot != new
    ):
        raise NotPlanned("a value is of another kind on another way")


def _apart(low, new, slots):
    """A copy of what is new where it lies in a slot, which may be filled before it is read."""
    if _parts(new) is not None:
        return type(new)([_apart(low, n, slots) for n in new])
    for slot in slots:
        if _parts(slot) is not None:
            copied = _apart(low, new, slot)
            if copied is not new:
                return copied
        elif isinstance(new, Tensor) and isinstance(slot, Tensor) and lies_in(new, slot):
            return low.clone(new)
        elif new is slot and isinstance(new, Number):
            return low.compute("move", kind(new), new)
        elif new is slot and isinstance(new, Generator):
            return low.drawn_from(new)
        elif isinstance(new, Stacked) and isinstance(slot, Stacked) and new.number is slot.number:
            return Stacked(low.compute("move", int, new.number), new.heap)
    return new


def _filled(slots, values):
    """(slot, value) of the tensors that slots are filled with."""
    for slot, value in zip(slots, values):
        if _parts(slot) is not None and _parts(value) is not None:
            yield from _filled(slot, value)
        elif isinstance(slot, Tensor) and isinstance(value, Tensor) and slot is not value:
            yield slot, value


def _note(planner, slots, values):
    """Note what slots were filled from."""
    for slot, value in _filled(slots, values):
        planner.ways.fill(slot, planner.ways.of(value))


def _fill(low, slots, values, undefined=False):
    """Let slots hold values. undefined: those that nobody reads are zero."""
    low.barrier()
    _fill_in(low, slots, values, undefined)


def _fill_in(low, slots, values, undefined):
    for slot, value in zip(slots, values):
        if slot is value:
            continue
        if _parts(slot) is not None:
            _fill_in(low, slot, [UNDEFINED] * len(slot) if value is UNDEFINED else value, undefined)
        elif isinstance(slot, Stacked):
            assign(low, slot.number, -1 if value is UNDEFINED else value.number)
        elif value is not UNDEFINED and isinstance(slot, (Tensor, Number, Generator)):
            assign(low, slot, value)
        elif undefined and isinstance(slot, (Tensor, Number)):
            assign(low, slot, None)
