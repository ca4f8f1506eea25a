"""What a compiled program returns beside plain tuples, lists and dicts: taken apart for the graph, and made again of
what the graph gives.

A graph knows tuples, lists and dicts alone. Named tuples, ordered dicts, deques, data classes and whatever is
registered as a tree become these where the program returns; the function that makes them again is kept with the
captured graph.
"""

import dataclasses
from collections.abc import Iterator
from copyreg import _slotnames
from gc import get_referents
from types import FunctionType, ModuleType

from tinygrad_ext.core.data.dtype import Size
from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.graph.aliases import CaptureError
from tinygrad_ext.graph.symbols import Symbol
from tinygrad_ext.nn import Module
from tinygrad_ext.utils._trees import kind_of

_PLAIN = (tuple, list, dict)
_ENDS = (type, ModuleType, Module, Tensor, str, int, float, complex, bytes)  # behind which nothing is looked for
_MOST = 100_000  # objects that are looked at


def apart(value):
    """(the value in plain tuples, lists and dicts, the function that makes it again, None where it is plain already).

    Raises CaptureError for tensors in what cannot be made again.
    """
    parts, again = _apart(value)
    if again is not None:
        try:
            again(parts)
        except Exception as error:
            raise CaptureError(
                f"a result of the class {type(value).__name__} cannot be made again of its parts: {error}"
            ) from error
    return parts, again


def _apart(value):
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
    if kind is set and not holds_tensors(value):
        return value, set
    if dataclasses.is_dataclass(kind) and _is_all_there(value, kind) and holds_tensors(vars(value)):
        parts, again = _plain(vars(value), dict)
        return parts, lambda got: _with(kind, again(got) if again else got)
    if isinstance(value, Iterator) or holds_tensors(value):
        raise CaptureError(
            f"a result is of the class {kind.__name__}, which holds tensors and cannot be made again. Return tuples, "
            "lists, dicts or data classes, or register the class with utils._pytree.register_pytree_node"
        )
    return value, None


def _plain(value, kind):
    rows = [_apart(part) for part in (value.values() if kind is dict else value)]
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


def _is_all_there(value, kind):
    """Whether what an object is stands in its `__dict__`: in no slots, and in no container that it is besides."""
    return hasattr(value, "__dict__") and not _slotnames(kind) and not isinstance(value, (dict, list, tuple, set))


def _with(kind, attributes):
    made = kind.__new__(kind)
    made.__dict__.update(attributes)
    return made


def holds_tensors(value):
    """Whether a tensor of the program that is being captured can be reached from an object, or that is not known."""
    seen, waiting = set(), [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, (Carried, Symbol)):
            return True
        if id(found) in seen or isinstance(found, _ENDS):
            continue
        seen.add(id(found))
        if len(seen) == _MOST:
            return True
        if isinstance(found, FunctionType):
            waiting += [*(found.__closure__ or ()), found.__defaults__, found.__kwdefaults__]
        else:
            waiting += get_referents(found)
    return False


def refuse_unknown(result):
    """CaptureError where something else than a container of graphs holds tensors of the program."""
    for leaf in result.values() if type(result) is dict else result if type(result) in (tuple, list) else ():
        if type(leaf) in (tuple, list, dict):
            refuse_unknown(leaf)
        elif not isinstance(leaf, (Tensor, Symbol)) and holds_tensors(leaf):
            raise CaptureError(
                f"a result is of the class {type(leaf).__name__}, which holds tensors. Return tuples, lists and "
                "dicts, or register the class with utils._pytree.register_pytree_node"
            )
