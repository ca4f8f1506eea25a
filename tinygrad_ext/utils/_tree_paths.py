"""Leaves of nested containers with the way to each: indices, keys and names of attributes.

Kept from the compiled walk of `_trees.pyx`, which transforms call for each argument and which asks for no ways.
"""

from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any

from ._trees import LeafSpec, TreeSpec, kind_of

_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, deque)

# what takes containers of a registered class apart together with keys
keyed = {}


@dataclass(frozen=True)
class SequenceKey:
    """A place in a list, tuple or deque."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """What stands there."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """What stands there."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """What stands there."""
        return getattr(obj, self.name)


def _parts(tree, kind):
    """([(key, child), ...], context) of a container."""
    cls = type(tree)
    if cls in keyed:
        parts, context = keyed[cls](tree)
        return list(parts), context
    children, context = kind.flatten(tree)
    if cls in _MAPPINGS:
        keys = map(MappingKey, tree)
    elif isinstance(tree, tuple) and cls is not tuple:
        keys = map(GetAttrKey, getattr(tree, "_fields", None) or cls.__match_args__)
    elif cls in _SEQUENCES:
        keys = map(SequenceKey, range(len(children)))
    else:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {cls}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    return list(zip(keys, children)), context


def walk(tree, path, found, is_leaf):
    """The spec of a tree, whose (path, leaf) pairs are appended to a list."""
    kind = kind_of(tree, is_leaf)
    if kind is None:
        found.append((path, tree))
        return LeafSpec()
    parts, context = _parts(tree, kind)
    return TreeSpec(type(tree), context, [walk(child, (*path, key), found, is_leaf) for key, child in parts])
