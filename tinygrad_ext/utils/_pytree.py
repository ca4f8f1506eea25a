"""Nested containers of values, taken apart and put together again, under the names that PyTorch gives them.

Tuples, named tuples (what ops return among them), lists, dicts, ordered and default dicts and deques are containers;
all else is a leaf, until `register_pytree_node` tells how it is taken apart.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tinygrad_ext.core.call.boundary import boundary

from . import _tree_paths, _tree_texts
from ._tree_paths import GetAttrKey, MappingKey, SequenceKey
from ._tree_texts import treespec_dumps, treespec_loads
from ._trees import LeafSpec, TreeSpec
from ._trees import flatten as _flatten
from ._trees import kind_of as _kind_of
from ._trees import kinds as _kinds
from ._trees import register as _register
from ._trees import unflatten as _unflatten
from ._trees import unregister as _unregister

__all__ = [
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "SequenceKey",
    "TreeSpec",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
]

Context = PyTree = Any  # the types that libraries name; any value is a tree


class NodeDef(NamedTuple):
    """How values of a class are taken apart and put together."""

    type: type
    flatten_fn: Callable
    unflatten_fn: Callable
    flatten_with_keys_fn: Callable | None = None


class _SupportedNodes(Mapping):
    """{class: NodeDef}; `namedtuple` itself stands for all of its kind."""

    def __getitem__(self, cls):
        kind = _kind_of(namedtuple("_", "")(), None) if cls is namedtuple else _kinds()[cls]
        return NodeDef(cls, *kind, _tree_paths.keyed.get(cls))

    def __iter__(self):
        return iter([*_kinds(), namedtuple])

    def __len__(self):
        return len(_kinds()) + 1


SUPPORTED_NODES = _SupportedNodes()


def _get_node_type(tree):
    """The class that SUPPORTED_NODES knows a value by, if any."""
    kind = type(tree)
    return namedtuple if kind not in _kinds() and _kind_of(tree, None) is not None else kind


def _is_leaf(tree, is_leaf=None):
    return _kind_of(tree, is_leaf) is None


def _register_pytree_node(cls, flatten_fn, unflatten_fn, **others):
    """`register_pytree_node` by the name it once had."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **others)


@boundary
def register_pytree_node(
    cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None, from_dumpable_context=None,
    flatten_with_keys_fn=None, **others,
):  # fmt: skip
    """Let values of a class be containers: flatten_fn(value) -> (list of children, context), and
    unflatten_fn(children, context) back. flatten_with_keys_fn(value) -> (list of (key, child), context) is what the
    functions of paths need, the name and the functions of contexts what `treespec_dumps` needs. Raises ValueError for a
    class that is registered already.
    """
    text = _tree_texts.checked(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)
    _register(cls, flatten_fn, unflatten_fn)
    if text is not None:
        _tree_texts.texts[cls] = text
    if flatten_with_keys_fn is not None:
        _tree_paths.keyed[cls] = flatten_with_keys_fn


def _deregister_pytree_node(cls):
    """Let values of a class be leaves again."""
    _unregister(cls)
    _tree_texts.texts.pop(cls, None)
    _tree_paths.keyed.pop(cls, None)


@boundary
def tree_flatten(tree, is_leaf=None):
    """(leaves in order, spec) of a tree. is_leaf: a function that says what to take as a leaf besides."""
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


@boundary
def tree_unflatten(leaves, treespec):
    """The tree of a spec with new leaves. Raises ValueError where their number does not fit."""
    return _unflatten(leaves, treespec)


@boundary
def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf), ...], spec) of a tree; a path is a tuple of keys, one for each container around the leaf."""
    found = []
    return found, _tree_paths.walk(tree, (), found, is_leaf)


@boundary
def tree_leaves_with_path(tree, is_leaf=None):
    """The (path, leaf) pairs of a tree, in order."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def arg_tree_leaves(*args, **kwargs):
    """The leaves of a call's arguments."""
    return tree_leaves((args, kwargs))


@boundary
def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """A tree of func(path, leaf, ...) over one tree, or over several of the same structure."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [_leaves_up_to(spec, rest) for rest in rests]
    return _unflatten([func(*pair, *more) for pair, *more in zip(found, *others)], spec)


def keystr(kp):
    """A path as it is written behind the name of a tree."""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """What stands in a tree at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _walk(tree, is_leaf):
    leaves = []
    _flatten(tree, leaves, is_leaf)
    return leaves


@boundary
def tree_leaves(tree, is_leaf=None):
    """The leaves of a tree, in order."""
    return _walk(tree, is_leaf)


@boundary
def tree_is_leaf(tree, is_leaf=None):
    """Whether a tree is one leaf."""
    return _kind_of(tree, is_leaf) is None


@boundary
def tree_iter(tree, is_leaf=None):
    """The same as an iterator."""
    return iter(_walk(tree, is_leaf))


@boundary
def tree_structure(tree, is_leaf=None):
    """The spec of a tree."""
    return _flatten(tree, [], is_leaf)


@boundary
def tree_map(func, tree, *rests, is_leaf=None):
    """A tree of func(leaf, ...) over one tree, or over several of the same structure."""
    leaves = []
    spec = _flatten(tree, leaves, is_leaf)
    others = [_leaves_up_to(spec, rest) for rest in rests]
    return _unflatten(map(func, leaves, *others), spec)


def _leaves_up_to(spec, tree):
    """The parts of a tree that stand where the spec has leaves; ValueError where it is built in another way."""
    if spec.type is None:
        return [tree]
    if type(tree) is not spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type}, but got {type(tree)}.")
    children, context = _kind_of(tree, None).flatten(tree)
    if len(children) != spec.num_children or context != spec.context:
        raise ValueError(f"Node arity or keys mismatch; expected {spec}, but got {tree!r}.")
    return [leaf for part, child in zip(spec.children_specs, children) for leaf in _leaves_up_to(part, child)]


@boundary
def tree_map_(func, tree, *rests, is_leaf=None):
    """Call func on each leaf, and give the tree back as it is."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


@boundary
def tree_map_only(type_or_types, func, tree, is_leaf=None):
    """A tree of func(leaf) for leaves of a type, or those that a function says True for, the others unchanged."""
    if callable(type_or_types) and not isinstance(type_or_types, type):
        return tree_map(lambda x: func(x) if type_or_types(x) else x, tree, is_leaf=is_leaf)
    return tree_map(lambda x: func(x) if isinstance(x, type_or_types) else x, tree, is_leaf=is_leaf)


@boundary
def tree_map_only_(type_or_types, func, tree, is_leaf=None):
    """Call func on each leaf of a type, and give the tree back as it is."""
    tree_map_only(type_or_types, func, tree, is_leaf=is_leaf)
    return tree


@boundary
def tree_all(pred, tree, is_leaf=None):
    """Whether pred holds for all leaves."""
    return all(map(pred, _walk(tree, is_leaf)))


@boundary
def tree_any(pred, tree, is_leaf=None):
    """Whether pred holds for some leaf."""
    return any(map(pred, _walk(tree, is_leaf)))


@boundary
def tree_all_only(type_or_types, pred, tree, is_leaf=None):
    """Whether pred holds for all leaves of a type."""
    return all(pred(leaf) for leaf in _walk(tree, is_leaf) if isinstance(leaf, type_or_types))


@boundary
def tree_any_only(type_or_types, pred, tree, is_leaf=None):
    """Whether pred holds for some leaf of a type."""
    return any(pred(leaf) for leaf in _walk(tree, is_leaf) if isinstance(leaf, type_or_types))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """One entry for each leaf of a spec, where a leaf of the tree may stand for a whole branch; None where it does
    not fit."""
    kind = _kind_of(tree, is_leaf)
    if treespec.type is None:
        return [tree] if kind is None else None
    if kind is None:
        return [tree] * treespec.num_leaves
    if type(tree) is not treespec.type:
        return None
    children, context = kind.flatten(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found = []
    for child, spec in zip(children, treespec.children_specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found
