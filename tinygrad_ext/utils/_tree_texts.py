"""Specs of trees as text, in PyTorch's form: a JSON pair of a protocol's number and the tree of containers.

A text is believed in nothing: it names only containers that are registered, and defaults of a defaultdict are functions
of Python's builtins.
"""

import builtins
import json
from collections import OrderedDict, defaultdict, deque
from typing import NamedTuple

from tinygrad_ext.core.call.boundary import boundary

from ._trees import LeafSpec, TreeSpec

PROTOCOL = 1


class Text(NamedTuple):
    """How a container is named, and how its context becomes text and comes back."""

    name: str
    dump: object = None
    load: object = None


def _dump_defaults(context):
    factory, keys = context
    name = getattr(factory, "__name__", None)
    if factory is not None and getattr(builtins, name or "", None) is not factory:
        raise NotImplementedError(f"treespec_dumps(): a defaultdict of {factory!r}, which is none of Python's builtins")
    module = None if factory is None else "builtins"
    return {"default_factory_module": module, "default_factory_name": name, "dict_context": list(keys)}


def _load_defaults(told):
    name, module = told["default_factory_name"], told["default_factory_module"]
    if module not in (None, "builtins"):
        raise NotImplementedError(f"treespec_loads(): a defaultdict of {module}.{name}, which is none of the builtins")
    factory = None if name is None else getattr(builtins, name, None)
    if name is not None and not isinstance(factory, type):
        raise NotImplementedError(f"treespec_loads(): a defaultdict of {name}, which makes no values")
    return [factory, told["dict_context"]]


texts = {
    tuple: Text("builtins.tuple"),
    list: Text("builtins.list"),
    dict: Text("builtins.dict"),
    OrderedDict: Text("collections.OrderedDict"),
    defaultdict: Text("collections.defaultdict", _dump_defaults, _load_defaults),
    deque: Text("collections.deque"),
}


def checked(cls, name, dump, load):
    """The Text of a class that is registered, None without a name; TypeError for half of a pair of functions."""
    if (dump is None) != (load is None):
        raise TypeError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered, got one"
        )
    return None if name is None else Text(name, dump, load)


@boundary
def treespec_dumps(treespec, protocol=None):
    """A spec as text.

    Raises:
        TypeError: no spec, or a context that JSON cannot hold.
        ValueError: another protocol than 1.
        NotImplementedError: a class that was registered without `serialized_type_name`.

        >>> from tinygrad_ext.utils import _pytree
        >>> text = _pytree.treespec_dumps(_pytree.tree_structure({"a": [1, 2]}))
        >>> _pytree.tree_unflatten([3, 4], _pytree.treespec_loads(text))
        {'a': [3, 4]}
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(): Expected `treespec` to be a TreeSpec, but got {type(treespec).__name__}")
    return json.dumps((_known(PROTOCOL if protocol is None else protocol), _dumped(treespec)))


@boundary
def treespec_loads(serialized):
    """The spec of a text. ValueError for another protocol, NotImplementedError for containers that are not here."""
    protocol, told = json.loads(serialized)
    _known(protocol)
    return _loaded(told, {text.name: (cls, text) for cls, text in texts.items()})


def _known(protocol):
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[PROTOCOL]}")
    return protocol


def _dumped(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    text = texts.get(spec.type)
    if text is None:
        raise NotImplementedError(
            f"treespec_dumps(): Serializing {spec.type} in pytree is not registered: give register_pytree_node a "
            "serialized_type_name"
        )
    try:
        context = (text.dump or json.dumps)(spec.context)
    except TypeError as error:
        raise TypeError(
            f"treespec_dumps(): Unable to serialize context {spec.context!r} of {spec.type}: give register_pytree_node "
            "to_dumpable_context and from_dumpable_context"
        ) from error
    return {"type": text.name, "context": context, "children_spec": [_dumped(child) for child in spec.children_specs]}


def _loaded(told, known):
    if told["type"] is None:
        return LeafSpec()
    if told["type"] not in known:
        raise NotImplementedError(f"treespec_loads(): Deserializing {told['type']} in pytree is not registered.")
    cls, text = known[told["type"]]
    children = [_loaded(child, known) for child in told["children_spec"]]
    return TreeSpec(cls, (text.load or json.loads)(told["context"]), children)
