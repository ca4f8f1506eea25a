"""Nested tuples, lists and dicts of a program's arguments and results, as values of a graph."""

from tinygrad_ext.core.data.tensor import Tensor

from .symbols import TYPES, Symbol
from .types import ANY, NONE, STR, TENSOR, Type, list_of


def type_of_tree(tree):
    """The type of an argument; a list whose elements differ in type is told as a Tuple."""
    if isinstance(tree, Tensor):
        return TENSOR
    if type(tree) is Symbol:
        return TYPES[type(tree.hint)]
    if type(tree) in TYPES:
        return TYPES[type(tree)]
    if isinstance(tree, str):
        return STR
    if tree is None:
        return NONE
    if isinstance(tree, (tuple, list)):
        inner = tuple(map(type_of_tree, tree))
        return list_of(inner[0]) if type(tree) is list and len(set(inner)) == 1 else Type("Tuple", inner)
    if isinstance(tree, dict):
        values = set(map(type_of_tree, tree.values()))
        keys = set(map(type_of_tree, tree))
        return Type("Dict", (keys.pop() if len(keys) == 1 else ANY, values.pop() if len(values) == 1 else ANY))
    return ANY


def take_apart(capture, tree, value):
    """The tree with carried values and symbols in the place of tensors and numbers; `value` holds the whole."""
    if isinstance(tree, Tensor):
        return capture.tensor_value(value, tree)
    if type(tree) in (int, float):
        value.hint = tree
        return Symbol(capture, value, tree)
    if isinstance(tree, (tuple, list)) and tree:
        node = capture.graph.make(capture.block, "prim::unpack", (value,), tuple(map(type_of_tree, tree)))
        parts = [take_apart(capture, part, v) for part, v in zip(tree, node.outputs)]
        if hasattr(tree, "_make"):
            return type(tree)._make(parts)
        return type(tree)(parts)
    if isinstance(tree, dict):
        return {key: _entry(capture, value, key, part) for key, part in tree.items()}
    return tree


def _entry(capture, value, key, part):
    return take_apart(
        capture, part, capture.graph.make(capture.block, "prim::getitem", (value, key), (type_of_tree(part),)).output
    )


def put_together(capture, tree):
    """A result of a program as one argument of `return`."""
    if isinstance(tree, (tuple, list)):
        made = capture.graph.make(
            capture.block,
            "prim::tuple" if isinstance(tree, tuple) else "prim::list",
            [put_together(capture, part) for part in tree],
            (type_of_tree(tree),),
        )
        return made.output
    if isinstance(tree, dict):
        parts = [part for key, value in tree.items() for part in (key, put_together(capture, value))]
        return capture.graph.make(capture.block, "prim::dict", parts, (type_of_tree(tree),)).output
    return capture.lift(tree)


def leaves_of(tree, path=()):
    """(path, tensor) of the tensors in nested tuples, lists and dicts."""
    if isinstance(tree, Tensor):
        yield path, tree
    elif isinstance(tree, (tuple, list)):
        for i, part in enumerate(tree):
            yield from leaves_of(part, (*path, i))
    elif isinstance(tree, dict):
        for key, part in tree.items():
            yield from leaves_of(part, (*path, key))


def at(tree, path):
    """What stands at a path of a tree."""
    for key in path:
        tree = tree[key]
    return tree


def tensor_at(tree, path):
    """The tensor at a path that nobody has looked at, or None where the tree has none."""
    for key in path:
        inside = key in tree if isinstance(tree, dict) else type(key) is int and isinstance(tree, (tuple, list))
        if not inside or (not isinstance(tree, dict) and not 0 <= key < len(tree)):
            return None
        tree = tree[key]
    return tree if isinstance(tree, Tensor) else None


def put(tree, path, value):
    """The tree with a value at a path."""
    if not path:
        return value
    if isinstance(tree, dict):
        return {k: put(part, path[1:], value) if k == path[0] else part for k, part in tree.items()}
    parts = [put(part, path[1:], value) if i == path[0] else part for i, part in enumerate(tree)]
    return type(tree)._make(parts) if hasattr(tree, "_make") else type(tree)(parts)
