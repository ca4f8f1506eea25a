"""What is known of a graph while it is written down once more: parts of lists, answers that hang on no value."""

import builtins
from functools import lru_cache

from .ir import Value

SPOKEN = {  # done when the program runs, once
    *("prim::print", "prim::warn", "prim::record_begin", "prim::record_end"),
    *("prim::context_begin", "prim::context_end"),
}


class NotDerived(Exception):
    """A graph has what nobody derives here: the ops of eager mode run one by one then."""


class Items:
    """A list, tuple or dict whose parts are known: type, keys (None of a sequence), parts (operands)."""

    __slots__ = ("keys", "parts", "type")

    def __init__(self, type, parts, keys=None):
        self.type, self.parts, self.keys = type, list(parts), keys

    def like(self, parts):
        return Items(self.type, parts, self.keys)


@lru_cache(256)
def may_hold_tensors(type):
    """Whether a value of this type may be, or hold, a tensor."""
    return type.word in ("Tensor", "Any") or any(map(may_hold_tensors, type.args)) or _is_class(type)


def _is_class(type):
    return type.word not in _PLAIN


_PLAIN = {
    "int", "float", "bool", "complex", "str", "NoneType", "Scalar", "Device", "ScalarType", "Layout", "MemoryFormat",
    "Generator", "List", "Optional", "Dict", "Tuple", "Union",
}  # fmt: skip


# ---- primitives on what is known -----------------------------------------------------------------------------------


def _sequence(node, *parts):
    return (Items(node.output.type, parts),)


def _dict(node, *parts):
    if any(isinstance(key, (Value, Items)) for key in parts[::2]):
        return None
    return (Items(node.output.type, parts[1::2], list(parts[::2])),)


def _unpack(node, items, *count):
    if type(items) is not Items or len(items.parts) != len(node.outputs):
        return None
    return items.parts


def _getitem(node, items, key):
    if type(items) is not Items or isinstance(key, Value):
        return None
    if items.keys is not None:
        return (items.parts[items.keys.index(key)],) if key in items.keys else None
    return (items.parts[key],) if -len(items.parts) <= key < len(items.parts) else None


def _length(node, items):
    return (len(items.parts),) if type(items) is Items else None


def _cast(node, value):
    """The same value: what it is declared as is known better from what it was made of."""
    if type(value) is Items or not isinstance(value, Value) or value.type is node.output.type:
        return (value,)
    return None


def _concat(node, a, b):
    if type(a) is not Items or type(b) is not Items:
        return None
    return (Items(node.output.type, [*a.parts, *b.parts]),)


# what looks at no element, so that it is known of lists whose parts are
_OF_PARTS = {
    f"prim::{word}"
    for word in (
        "own", "reversed", "slice", "repeat", "to_list", "list.copy", "list.appended", "list.extended", "list.inserted",
        "list.popped", "list.cleared", "list.turned", "item_set", "slice_set", "item_deleted", "slice_deleted",
        "contains", "dict.keys", "dict.values", "dict.items", "dict.copy", "dict.get", "dict.popped", "dict.popped_or",
        "dict.default_set", "dict.updated", "dict.cleared",
    )
}  # fmt: skip
_WHOLE = {"prim::list.extended", "prim::dict.updated", "prim::slice_set"}  # take the parts of their last argument


def of_parts(node, row, args):
    """What a primitive gives on a list or dict whose parts are known, or None."""
    if node.op not in _OF_PARTS or not args or type(args[0]) is not Items:
        return None
    held, *rest = args
    more = rest.pop() if node.op in _WHOLE else None
    keys = rest if node.op.endswith(("slice", "slice_set", "slice_deleted")) else rest[:1]
    if node.op != "prim::list.appended" and any(isinstance(key, (Value, Items)) for key in keys):
        return None
    if held.type.word == "Tuple" or (node.op == "prim::contains" and held.keys is None):
        return None
    if more is not None:
        if type(more) is not Items:
            return None
        rest.append(_container(more))
    try:
        found = row.run(_container(held), *rest)
    except Exception:  # the program raises it at this place
        return None
    found = found if len(node.outputs) > 1 else (found,)
    return [as_items(a, value.type) for a, value in zip(found, node.outputs)]


def _container(items):
    return dict(zip(items.keys, items.parts)) if items.keys is not None else list(items.parts)


def as_items(a, type):
    """A container of operands as Items; anything else as it is."""
    type = type.args[0] if type.word == "Optional" else type
    if isinstance(a, dict) and type.word == "Dict":
        return Items(type, [as_items(x, type.args[1]) for x in a.values()], list(a))
    if isinstance(a, list) and type.word == "List":
        return Items(type, [as_items(x, type.args[0]) for x in a])
    if builtins.type(a) is tuple and type.word == "Tuple" and len(a) == len(type.args):
        return Items(type, map(as_items, a, type.args))
    return a


def _is(node, a, b):
    found = _same(a, b)
    return None if found is None else (found,)


def _isnot(node, a, b):
    found = _same(a, b)
    return None if found is None else (not found,)


def _same(a, b):
    """Whether one of two is None and so is the other; None where that shows only when the graph runs."""
    if b is not None:
        a, b = b, a
    if b is not None or (isinstance(a, Value) and a.type.is_optional):
        return None
    return a is None


STATIC = {
    "prim::list": _sequence, "prim::tuple": _sequence, "prim::dict": _dict, "prim::unpack": _unpack,
    "prim::unpack_list": _unpack, "prim::getitem": _getitem, "prim::len": _length, "prim::cast": _cast,
    "prim::concat": _concat, "prim::is": _is, "prim::isnot": _isnot,
}  # fmt: skip
