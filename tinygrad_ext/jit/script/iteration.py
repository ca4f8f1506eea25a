"""What a for loop goes over: range, lists, tensors, strings, dicts, enumerate, zip, reversed."""

import ast

from tinygrad_ext.graph.types import INT, STR, TENSOR
from tinygrad_ext.graph.types import list_of as list_type

from .compiler import hook
from .values import DictLiteral, ListLiteral, Static, TupleValue, as_list, is_constant, type_of


class Iteration(Static):
    """Something with a length and items: range, enumerate(...), zip(...), or a value.

    endless: it gives an item for any index, also behind its length.
    """

    kind = "something to loop over"

    def __init__(self, length, item, endless=False):
        self.length, self.item, self.endless = length, item, endless


def assigned(nodes):
    """Names that statements bind, those of inner functions and comprehensions left out."""
    found = {}
    for top in nodes:
        for node in _walk(top):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = None
    return list(found)


def _walk(node):
    yield node
    if not isinstance(node, (ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.FunctionDef)):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)


@hook
def iteration(c, operand):
    """An Iteration over an operand."""
    if isinstance(operand, Iteration):
        return operand
    if isinstance(operand, Static) and operand.items(c) is not None:
        return iteration(c, c.list_of(operand.items(c)))
    value = c.value(as_list(operand))
    type = type_of(value)
    if type is TENSOR:
        return Iteration(
            lambda c: c.emit("prim::size", (value, 0), INT), lambda c, i: c.op("aten::select.int", (value, 0, i))
        )
    if type.word == "Dict":
        type = list_type(type.args[0])
        value = c.emit("prim::dict.keys", (value,), type)
    if type.word == "List" or type is STR:
        inner = STR if type is STR else type.args[0]
        return Iteration(
            lambda c: c.emit("prim::len", (value,), INT), lambda c, i: c.emit("prim::getitem", (value, i), inner)
        )
    if type.word == "Tuple":
        return iteration(c, c.list_of(c.unpacked(value)))
    made = c.iterate_object(value)
    if made is not None:
        return made
    return c.fault(
        f"'{type}' object is not iterable: a value of type {type} cannot be looped over",
        "Loop over a range, list, tuple, dict, str or tensor.",
    )


@hook
def list_of(c, items):
    """A list value of these operands."""
    return c.value(ListLiteral(items))


@hook
def dict_of(c, keys, values):
    """A dict value of these operands."""
    return c.value(DictLiteral(keys, values))


@hook
def range_(c, args):
    """range(...)"""
    if not 1 <= len(args) <= 3:
        c.fault(f"range() takes 1 to 3 arguments, got {len(args)}")
    args = [_whole(c, a) for a in args]
    if len(args) == 1:
        return Iteration(lambda c: args[0], lambda c, i: i, endless=True)
    start, stop, step = (*args, 1)[:3]

    def item(c, i):
        scaled = i if step == 1 and is_constant(step) else c.emit("prim::mul", (i, step), INT)
        return scaled if start == 0 and is_constant(start) else c.emit("prim::add", (scaled, start), INT)

    return Iteration(lambda c: c.emit("prim::range_length", (start, stop, step), INT), item, endless=True)


def _whole(c, operand):
    given = type_of(operand)
    if given is TENSOR:
        return c.emit("prim::int", (operand,), INT)
    if given is not None and given is not INT:
        c.fault(f"Expected a value of type 'int' for range(), but found {given}")
    return c.value(operand, INT)


@hook
def enumerate_(c, operand, start):
    """enumerate(...)"""
    items = operand.items(c) if isinstance(operand, Static) else None
    if items is not None and is_constant(start):
        return TupleValue([TupleValue([start + i, v]) for i, v in enumerate(items)])
    inner = iteration(c, operand)

    def item(c, i):
        number = i if is_constant(start) and start == 0 else c.emit("prim::add", (i, start), INT)
        return TupleValue([number, inner.item(c, i)])

    return Iteration(inner.length, item, inner.endless)


@hook
def zip_(c, operands):
    """zip(...)"""
    if not operands:
        c.fault("zip expected at least 1 arguments, got 0")
    known = [o.items(c) if isinstance(o, Static) else None for o in operands]
    if operands and all(k is not None for k in known):
        return TupleValue([TupleValue(row) for row in zip(*known)])
    if any(k is not None for k in known):  # as long as what is known
        return _zip_known(c, operands, known)
    inner = [iteration(c, o) for o in operands]

    def length(c):
        found = inner[0].length(c)
        for other in inner[1:]:
            found = c.emit("prim::min", (found, other.length(c)), INT)
        return found

    return Iteration(length, lambda c, i: TupleValue([each.item(c, i) for each in inner]))


def _zip_known(c, operands, known):
    """Unrolled over what is known; the others have to be as long at least, which is checked when it runs."""
    count = min(len(k) for k in known if k is not None)
    inner = [None if k is not None else iteration(c, o) for o, k in zip(operands, known)]
    if any(each is not None and each.endless for each in inner):
        c.fault(
            "zip() of what is unrolled with a range, that does not have a statically determinable length",
            "Write enumerate(...) around the modules or the tuple.",
        )
    return TupleValue(
        [
            TupleValue([r[i] if r is not None else each.item(c, i) for r, each in zip(known, inner)])
            for i in range(count)
        ]
    )


@hook
def reversed_(c, operand):
    """reversed(...)"""
    items = operand.items(c) if isinstance(operand, Static) else None
    if items is not None:
        return TupleValue(list(items)[::-1])
    inner = iteration(c, operand)

    def item(c, i):
        last = c.emit("prim::sub", (inner.length(c), 1), INT)
        return inner.item(c, c.emit("prim::sub", (last, i), INT))

    return Iteration(inner.length, item, inner.endless)
