"""Derivatives of lists and dicts of tensors that are values of a graph: they grow in a loop, or a number picks of them.

The gradient of a list is a list as long: None where nothing arrived (`primitives.gradients`). What an append put to its
end is taken off its gradient, and the other way round, so any order of derivative is of the same form. How long a list
is, is asked where it was made, for it may be taken over afterwards.
"""

from tinygrad_ext.core.data.tensor import Tensor

from . import primitives
from .ir import Node, Value
from .items import NotDerived, may_hold_tensors
from .types import BOOL, INT, TENSOR, Type, list_of, optional

MAYBE = optional(TENSOR)
_GETS = ("prim::getitem", "prim::grads.get")
# rules that leave no None where there was none
_SURE = {"prim::list.appended", "prim::grads.put", *_GETS, "prim::own", "prim::list.copy", "prim::grads.added"}


def is_list(type):
    """Whether values of a type are lists or dicts of tensors; such a value may be undefined."""
    type = type.args[0] if type.word == "Optional" else type
    return type.word in ("List", "Dict") and type.args[-1] in (TENSOR, MAYBE)


def of_list(type):
    """The type of a gradient of such a list."""
    type = type.args[0] if type.word == "Optional" else type
    return Type(type.word, (*type.args[:-1], MAYBE))


def example(a):
    """An example that something else may take over."""
    return a.copy() if type(a) in (list, dict) else a


class ListEntry:
    """What the tape has of a node that takes, or gives, such a list."""

    linear = True

    def __init__(self, node):
        self.node, self.made = node, node.outputs

    def reads(self, needs):
        """Values that its backward may read."""
        return self.node.values()

    def note(self, capture):
        needing = [a.type for a in self.node.values() if id(a) in capture.needs]
        for type in (*needing, *(value.type for value in self.made if needing and may_hold_tensors(value.type))):
            if not is_list(type) and type not in (TENSOR, MAYBE):  # such as a list of lists
                raise NotDerived(f"the derivative of {self.node.op} with a value of type {type} is not known")
        for value in self.made:
            if is_list(value.type) or value.type in (TENSOR, MAYBE):
                hint = value.hint
                if not isinstance(hint, Tensor) or hint.is_floating_point() or hint.is_complex():
                    capture.needs.add(id(value))
                if hint is None:
                    capture.hollow.add(id(value))
        capture.tape.append(self)

    def spread(self, passed, arrived):
        RULES[self.node.op](passed, self.node, arrived)


# ---- gradients of lists --------------------------------------------------------------------------------------------


def give(passed, value, grads):
    """Let a gradient arrive at a list."""
    old = passed.so_far(value)
    if old is not None:
        type = old.type if _is_sure(old) else grads.type
        grads = _make(passed, "prim::grads.sum", (old, grads), type, value.hint)
    passed.put(value, grads)


def nothing(passed, value):
    """The gradient of a list at which nothing arrived."""
    if value.type.word == "Dict":
        return _make(passed, "prim::dict", (), of_list(value.type), {})
    return _make(passed, "prim::grads.none", (length(passed.capture, value),), of_list(value.type), value.hint)


def unsure(capture, grads):
    """A gradient of a list as one that may have None in it."""
    if not _is_sure(grads):
        return grads
    return capture.graph.make(capture.block, "prim::cast", (grads,), (of_list(grads.type),), (grads.hint,)).output


def stays_sure(tape):
    """Whether rules of what is on a tape leave no None in a gradient where there was none."""
    for entry in tape:
        inner = [*getattr(entry, "tapes", ()), *([entry.tape] if hasattr(entry, "tape") else [])]
        if (isinstance(entry, ListEntry) and entry.node.op not in _SURE) or not all(map(stays_sure, inner)):
            return False
    return True


def length(capture, value):
    """How long a list is, asked where it is made."""
    if id(value) not in capture.lengths:
        node = Node("prim::len", (value,))
        node.outputs = (capture.graph.value(INT, node, len(value.hint)),)
        block, at = _place_of(capture, value)
        block.nodes.insert(at, node)
        capture.lengths[id(value)] = node.output
    return capture.lengths[id(value)]


def _place_of(capture, value):
    graph = capture.graph
    for block in (capture.block, graph.block, *(b for n in graph.walk() for b in n.blocks)):
        if value in block.inputs:
            return block, 0
        if value.node in block.nodes:
            return block, block.nodes.index(value.node) + 1
    raise NotDerived("the length of a list from nowhere")


def _is_sure(grads):
    return grads.type.args[-1] is TENSOR


def _make(passed, op, args, *pairs):
    """A node with outputs of these types and examples; the only one, or all."""
    capture = passed.capture
    made = capture.graph.make(capture.block, op, args, pairs[::2], pairs[1::2])
    return made.output if len(pairs) == 2 else made.outputs


def _element(passed, value, grad):
    """What arrived at a tensor, as a part of such a list."""
    if grad is None:
        return None
    there, grad = passed.maybe_of(value), passed.capture.lift(grad)
    return grad if there is None else _make(passed, "prim::grads.when", (grad, there), MAYBE, value.hint)


def _give_element(passed, value, grad):
    """Let a part of such a list arrive at a tensor."""
    if not isinstance(value, Value) or id(value) not in passed.capture.needs:
        return
    passed.flag = None
    if grad.type is not TENSOR:
        passed.flag = _make(passed, "prim::isnot", (grad, None), BOOL, True)
        grad = _make(passed, "prim::grads.filled", (grad, value), TENSOR, value.hint)
    passed.give(value, passed.tensor(grad))


def _give_part(passed, grads, key, value):
    """Let what is at a key arrive at a tensor."""
    grad = _make(passed, "prim::grads.get", (grads, key), grads.type.args[-1], _hint(value))
    _give_element(passed, value, grad)


def _hint(a):
    return a.hint if isinstance(a, Value) else None


# ---- rules: (backward pass, node, what arrived at its outputs) -------------------------------------------------------


def _list(passed, node, arrived):
    values = node.args if node.op == "prim::list" else node.args[1::2]
    keys = range(len(values)) if node.op == "prim::list" else node.args[::2]
    for key, value in zip(keys, values):
        _give_part(passed, arrived[0], key, value)


def _same(passed, node, arrived):
    passed.give(node.args[0], arrived[0])


def _reversed(passed, node, arrived):
    passed.give(node.args[0], _make(passed, "prim::reversed", (arrived[0],), arrived[0].type, node.args[0].hint))


def _put(passed, node, arrived):
    """One more element: it is taken off."""
    items, *key, value = node.args
    key = key[0] if key else -1
    if node.op == "prim::list.inserted":
        key = _make(passed, "prim::grads.place", (length(passed.capture, items), key), INT, 0)
    grads = arrived[0]
    grad, rest = _make(
        passed, "prim::grads.taken", (grads, key), grads.type.args[-1], _hint(value), grads.type, items.hint
    )
    _give_element(passed, value, grad)
    passed.give(items, rest)


def _take(passed, node, arrived):
    """One less: it is put back."""
    items, key = node.args
    value, rest = node.outputs
    grads = nothing(passed, rest) if arrived[1] is None else unsure(passed.capture, arrived[1])
    args = grads, key, _element(passed, value, arrived[0])
    passed.give(items, _make(passed, "prim::grads.put", args, grads.type, items.hint))


def _get(passed, node, arrived):
    items, key = node.args
    old, grad = passed.so_far(items), _element(passed, node.output, arrived[0])
    grads = nothing(passed, items) if old is None else old
    passed.put(items, _make(passed, "prim::grads.added", (grads, key, grad), grads.type, items.hint))


def _set(passed, node, arrived):
    items, key, value = node.args
    grads = unsure(passed.capture, arrived[0])
    _give_part(passed, grads, key, value)
    passed.give(items, _make(passed, "prim::grads.cut", (grads, key), grads.type, items.hint))


def _add(passed, node, arrived):
    """grads.added: what arrives at the sum arrives at both."""
    items, key, grad = node.args
    if isinstance(grad, Value):
        _give_part(passed, arrived[0], key, grad)
    passed.give(items, arrived[0])


def _cut(passed, node, arrived):
    items, key = node.args
    grads = unsure(passed.capture, arrived[0])
    passed.give(items, _make(passed, "prim::grads.cut", (grads, key), grads.type, items.hint))


def _sum(passed, node, arrived):
    first, second = node.args
    other = _make(passed, "prim::own", (arrived[0],), arrived[0].type, second.hint)
    passed.give(first, arrived[0])
    passed.give(second, other)


def _concat(passed, node, arrived):
    first, second = node.args
    count, grads = length(passed.capture, first), arrived[0]
    for items, start, stop in ((first, None, count), (second, count, None)):
        passed.give(items, _make(passed, "prim::slice", (grads, start, stop, None), grads.type, items.hint))


def _slice(passed, node, arrived):
    items, *where = node.args
    args = arrived[0], length(passed.capture, items), *where
    passed.give(items, _make(passed, "prim::grads.spread", args, of_list(items.type), items.hint))


def _spread(passed, node, arrived):
    items, _, *where = node.args
    passed.give(items, _make(passed, "prim::slice", (arrived[0], *where), arrived[0].type, items.hint))


def _unpack(passed, node, arrived):
    parts = [_element(passed, value, grad) for value, grad in zip(node.outputs, arrived)]
    items = node.args[0]
    passed.give(items, _make(passed, "prim::list", parts, of_list(items.type), items.hint))


def _one(passed, node, arrived):
    """grads.filled and grads.when: of the first."""
    grad = node.args[0]
    if isinstance(grad, Value):
        passed.give(grad, arrived[0])


def _stack(passed, node, arrived):
    items, dim = node.args
    grads = _make(passed, "prim::grads.unbind", (passed.capture.lift(arrived[0]), dim), list_of(TENSOR), items.hint)
    passed.give(items, _make(passed, "prim::own", (grads,), grads.type, items.hint))


def _cat(passed, node, arrived):
    items, dim = node.args
    capture, sizes = passed.capture, Node("prim::grads.sizes", (items, dim))
    sizes.outputs = (capture.graph.value(list_of(INT), sizes, [x.shape[dim] for x in items.hint]),)
    block, at = _place_of(capture, items)
    block.nodes.insert(at, sizes)
    args = capture.lift(arrived[0]), sizes.output, dim
    grads = _make(passed, "prim::grads.split", args, list_of(TENSOR), items.hint)
    passed.give(items, _make(passed, "prim::own", (grads,), grads.type, items.hint))


def _unstack(passed, node, arrived):
    """grads.unbind and grads.split: what arrived at the parts is put together."""
    grads = arrived[0]
    if not _is_sure(grads):
        grads = _make(passed, "prim::grads.all_filled", (grads, node.output), list_of(TENSOR), node.output.hint)
    op = "aten::stack" if node.op == "prim::grads.unbind" else "aten::cat"
    passed.give(node.args[0], passed.tensor(_make(passed, op, (grads, node.args[-1]), TENSOR, node.args[0].hint)))


RULES = {
    "prim::list": _list, "prim::dict": _list, "prim::own": _same, "prim::list.copy": _same, "prim::dict.copy": _same,
    "prim::cast": _same, "prim::reversed": _reversed, "prim::list.turned": _reversed, "prim::list.appended": _put,
    "prim::list.inserted": _put, "prim::grads.put": _put, "prim::list.popped": _take, "prim::dict.popped": _take,
    "prim::grads.taken": _take, "prim::getitem": _get, "prim::grads.get": _get, "prim::item_set": _set,
    "prim::grads.added": _add, "prim::grads.cut": _cut, "prim::grads.sum": _sum, "prim::concat": _concat,
    "prim::list.extended": _concat, "prim::slice": _slice, "prim::grads.spread": _spread, "prim::unpack": _unpack,
    "prim::unpack_list": _unpack, "prim::grads.filled": _one, "prim::grads.when": _one, "prim::grads.all_filled": _same,
    "aten::stack": _stack, "aten::cat": _cat, "prim::grads.unbind": _unstack, "prim::grads.split": _unstack,
}  # fmt: skip


# ---- writing such nodes down again -----------------------------------------------------------------------------------


def _typical(op, examples):
    """A gradient such as may be there another time, where nothing arrived this time."""
    if op == "prim::grads.when":
        return examples[0]
    held = examples[0].values() if type(examples[0]) is dict else examples[0] if type(examples[0]) is list else ()
    return next((x for x in held if x is not None), None)


def replayed(replay, op, args, types, line=""):
    """A node of RULES over lifted operands, on the tape where a gradient flows through it."""
    capture, row = replay.capture, primitives.TABLE.get(op)
    examples = [example(replay.example(a)) for a in args]
    run = row.run if row is not None else replay.operation_of(op)
    results = replay.on_examples(run, *examples)
    made = capture.graph.make(capture.block, op, args, types, line=line)
    for value, result in zip(made.outputs, results if len(types) > 1 or op == "prim::unpack" else (results,)):
        value.hint = _typical(op, examples) if result is None else result
    if any(id(v) in capture.needs for v in made.values()):
        ListEntry(made).note(capture)
    return made.outputs


def are_picked(nodes):
    """Whether a number that is computed picks of a list, and nobody wants its parts one by one."""
    return any(n is not None and n.op == "prim::getitem" and isinstance(n.args[1], Value) for n in nodes) and all(
        n is not None and n.op in ("prim::getitem", "prim::len") for n in nodes
    )
