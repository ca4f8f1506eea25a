"""Results in containers that graphs do not have: named tuples, ordered dicts, and what is registered with pytree."""

from collections import OrderedDict

from . import _pytree as pytree

_KNOWN = (tuple, list, dict, None)  # None: of a leaf


def plain(tree):
    """(the tree in tuples, lists and dicts alone, its spec); the tree itself and None where it has nothing else."""
    leaves, spec = pytree.tree_flatten(tree)
    return (tree, None) if _is_plain(spec) else (_rebuilt(spec, iter(leaves)), spec)


def restored(spec, tree):
    """The tree of a spec, of what `plain` gave or of something built like it."""
    return tree if spec is None else pytree.tree_unflatten(list(_leaves(tree)), spec)


def opened(tree):
    """(an argument with tuples for named ones and for what pytree has registered, its spec); or itself and None."""
    leaves, spec = pytree.tree_flatten(tree)
    return (_rebuilt(spec, iter(leaves)), spec) if _is_registered(spec) else (tree, None)


def opened_as(spec, tree, name):
    """The same of an argument that has to have this spec. ValueError where it has another."""
    leaves, found = pytree.tree_flatten(tree)
    if found != spec:
        raise ValueError(f"{name} is nested as {found}, but the program was exported for {spec}")
    return _rebuilt(spec, iter(leaves))


def _is_registered(spec):
    own = spec.type is not None and spec.type is not tuple and not issubclass(spec.type, (list, dict))
    return own or any(map(_is_registered, spec.children_specs))


def _is_plain(spec):
    return spec.type in _KNOWN and all(map(_is_plain, spec.children_specs))


def _rebuilt(spec, leaves):
    if spec.type is None:
        return next(leaves)
    parts = [_rebuilt(child, leaves) for child in spec.children_specs]
    if spec.type in (dict, OrderedDict):
        return dict(zip(spec.context, parts))
    return parts if spec.type is list else tuple(parts)


def _leaves(tree):
    if isinstance(tree, (tuple, list, dict)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(part)
    else:
        yield tree
