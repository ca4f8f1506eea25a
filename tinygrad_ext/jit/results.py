"""What a compiled program returns beside plain tuples, lists and dicts: taken apart for the graph, and made again of
what the graph gives.

A graph knows tuples, lists and dicts alone. Named tuples, ordered dicts, deques, data classes and whatever is
registered as a tree become these where the program returns; the function that makes them again is kept with the
captured graph.
"""

import dataclasses

from tinygrad_ext.core.data.dtype import Size
from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.graph.aliases import CaptureError
from tinygrad_ext.graph.symbols import Symbol
from tinygrad_ext.utils._trees import kind_of

_PLAIN = (tuple, list, dict)


def apart(value):
    """(the value in plain tuples, lists and dicts, the function that makes it again, None where it is plain already).

    Raises CaptureError for tensors in what cannot be made again.
    """
    kind = type(value)
    if isinstance(value, (Tensor, Symbol)) or value is None:
        return value, None
    if kind in _PLAIN:
        return _plain(value, kind)
    found = kind_of(value, None)
    if found is not None:
        children, context = found[0](value)
        parts, again = _plain(tuple(children), tuple)
        return parts, lambda got: found[1](list(again(got) if again else got), context)
    if isinstance(value, Size):
        return tuple(value), Size
    if dataclasses.is_dataclass(kind) and hasattr(value, "__dict__") and holds_tensors(vars(value)):
        parts, again = _plain(vars(value), dict)
        return parts, lambda got: _with(kind, again(got) if again else got)
    if holds_tensors(value):
        raise CaptureError(
            f"a result is of the class {kind.__name__}, which holds tensors and cannot be made again. Return tuples, "
            "lists, dicts or data classes, or register the class with utils._pytree.register_pytree_node"
        )
    return value, None


def _plain(value, kind):
    rows = [apart(part) for part in (value.values() if kind is dict else value)]
    if kind is dict:
        parts, agains = {k: part for k, (part, _) in zip(value, rows)}, {k: a for k, (_, a) in zip(value, rows) if a}
    else:
        parts, agains = kind([part for part, _ in rows]), {i: a for i, (_, a) in enumerate(rows) if a}
    if not agains:
        return value, None

    def again(got):
        made = dict(got) if kind is dict else list(got)
        for key, make in agains.items():
            made[key] = make(made[key])
        return made if kind is not tuple else tuple(made)

    return parts, again


def _with(kind, attributes):
    made = object.__new__(kind)
    made.__dict__.update(attributes)
    return made


def holds_tensors(value, depth=3):
    """Whether an object or container holds a tensor of the program that is being captured, near its top."""
    if isinstance(value, (Tensor, Symbol)):
        return isinstance(value, (Carried, Symbol))
    if depth and isinstance(value, (tuple, list, set, frozenset)):
        return any(holds_tensors(part, depth - 1) for part in value)
    inside = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    return bool(depth) and isinstance(inside, dict) and any(holds_tensors(v, depth - 1) for v in inside.values())
