# cython: language_level=3
"""The walk through nested containers that `_pytree` and the transforms share.

Compiled, because each transform takes its arguments and results apart and puts them together, which in Python took longer
than the ops of a small function.
"""
from collections import OrderedDict, defaultdict, deque, namedtuple

cdef enum:
    DEEPEST = 500           # containers in each other

# flatten(container) -> (children, context); unflatten(children, context) -> container
Kind = namedtuple("Kind", "flatten unflatten")


class TreeSpec(namedtuple("TreeSpec", "type context children_specs")):
    """How a tree is built: the type of its container, what that keeps besides, and the specs of its children."""

    __slots__ = ()
    __module__ = "tinygrad_ext.utils._pytree"

    @property
    def num_leaves(self):
        return sum([child.num_leaves for child in self.children_specs])

    @property
    def num_nodes(self):
        """Containers and leaves together."""
        return 1 + sum([child.num_nodes for child in self.children_specs])

    @property
    def num_children(self):
        return len(self.children_specs)

    def is_leaf(self):
        return self.type is None

    def unflatten(self, leaves):
        return unflatten(leaves, self)

    def __repr__(self):
        if self.type is None:
            return "*"
        inner = ", ".join(map(repr, self.children_specs))
        return f"TreeSpec({self.type.__name__}, {self.context!r}, [{inner}])"


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()
    __module__ = "tinygrad_ext.utils._pytree"

    def __new__(cls):
        return tuple.__new__(cls, (None, None, []))

    def __reduce__(self):
        return LeafSpec, ()

    num_leaves = 1


cdef object _LEAF = LeafSpec()


def _of_dict(tree):
    return list(tree.values()), list(tree)


def _to_dict(children, keys):
    return dict(zip(keys, children))


def _to_defaultdict(children, context):
    factory, keys = context         # may be a user's: whoever builds a TreeSpec by hand
    return defaultdict(factory, _to_dict(children, keys))


cdef dict _kinds = {
    tuple: Kind(lambda t: (list(t), None), lambda children, _: tuple(children)),
    list: Kind(lambda t: (t, None), lambda children, _: list(children)),
    dict: Kind(_of_dict, _to_dict),
    OrderedDict: Kind(_of_dict, lambda children, keys: OrderedDict(zip(keys, children))),
    defaultdict: Kind(
        lambda t: (list(t.values()), [t.default_factory, list(t)]),
        _to_defaultdict,
    ),
    deque: Kind(lambda t: (list(t), t.maxlen), lambda children, maxlen: deque(children, maxlen)),
}
cdef object _namedtuple = Kind(lambda t: (list(t), type(t)), lambda children, cls: tuple.__new__(cls, children))


def register(cls, to_children, from_children):
    """Let values of a class be containers; ValueError for one that is registered already."""
    if cls in _kinds:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _kinds[cls] = Kind(to_children, from_children)


def kinds():
    """{class: Kind} of the containers, named tuples aside."""
    return _kinds


def unregister(cls):
    """Let values of a class be leaves again."""
    del _kinds[cls]


def kind_of(tree, is_leaf):
    """How a value is taken apart; None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    kind = _kinds.get(type(tree))
    if kind is None and isinstance(tree, tuple) and (hasattr(tree, "_make") or hasattr(tree, "n_fields")):
        return _namedtuple
    return kind


def flatten(tree, list leaves not None, is_leaf=None):
    """The spec of a tree, whose leaves are appended to a list."""
    return _spec(tree, leaves, is_leaf, 0)


cdef object _spec(tree, list leaves, is_leaf, int depth):
    kind = kind_of(tree, is_leaf)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    if depth == DEEPEST:
        raise RecursionError(f"a tree has containers that stand in each other more than {DEEPEST} deep, or in themselves: pass "
                             "their parts")
    if type(tree) is tuple:
        children, context = tree, None
    else:
        children, context = kind.flatten(tree)
    return tuple.__new__(TreeSpec, (type(tree), context, [_spec(child, leaves, is_leaf, depth + 1) for child in children]))


def flattened(tree):
    """(leaves in order, spec) of a tree."""
    cdef list leaves = []
    return leaves, flatten(tree, leaves)


def unflatten(leaves, spec):
    """The tree of a spec with new leaves; ValueError where their number does not fit."""
    if not isinstance(spec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of "
                        f"type {type(spec)}; tree_flatten() and tree_structure() give one")
    cdef list row = list(leaves)
    cdef Py_ssize_t at = 0
    tree = _built(row, &at, spec)
    if at != len(row):
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(row)} but the spec refers to a pytree that "
            f"holds {spec.num_leaves} items ({spec})."
        )
    return tree


cdef object _built(list leaves, Py_ssize_t *at, object spec):
    cdef Py_ssize_t i = at[0]
    cdef object kind, context, children
    kind, context, children = spec
    if kind is None:
        at[0] = i + 1
        return leaves[i] if i < len(leaves) else None      # too few are reported by their number
    cdef list parts = [_built(leaves, at, child) for child in children]
    if kind is tuple:
        return tuple(parts)
    if kind is list:
        return parts
    if at[0] > len(leaves):
        return None
    return _kinds.get(kind, _namedtuple).unflatten(parts, context)
