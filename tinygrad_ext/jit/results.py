"""What a compiled program returns beside plain tuples, lists and dicts: taken apart for the graph, and made again of
what the graph gives.

A graph knows tuples, lists and dicts alone. Named tuples, ordered dicts, deques, data classes and whatever is
registered as a tree become these where the program returns; the function that makes them again is kept with the
captured graph.
"""

import dataclasses
from collections.abc import Iterator
from copyreg import _slotnames
from enum import Enum
from gc import get_referents, get_referrers
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType

from tinygrad_ext.core.data.dtype import Size, device, dtype
from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.graph.aliases import CaptureError
from tinygrad_ext.graph.symbols import Symbol
from tinygrad_ext.nn import Module
from tinygrad_ext.utils._trees import kind_of

_PLAIN = (tuple, list, dict)
_ENDS = (type, ModuleType, Module, Tensor, str, int, float, complex, bytes)  # behind which nothing is looked for
_SAME = (str, int, float, complex, bool, bytes)
# what nobody changes, or what is no copy of anything
_KEPT = (*_SAME, type, ModuleType, Module, Enum, FunctionType, BuiltinFunctionType, MethodType, dtype, device)
_OF_PYTHON = 1 << 9  # in the flags of a class that a `class` statement made
_MOST = 100_000  # objects that are looked at


def apart(value):
    """(the value in plain tuples, lists and dicts, the function that makes it again, None where it is plain already).

    Raises CaptureError for tensors in what cannot be made again.
    """
    parts, again = _Apart(value).of(value)
    if again is not None:
        try:
            again(parts)
        except Exception as error:
            raise CaptureError(
                f"a result of the class {type(value).__name__} cannot be made again of its parts: {error}"
            ) from error
    return parts, again


class _Apart:
    """Takes one result apart."""

    def __init__(self, result):
        self.result = result

    def of(self, value):
        kind = type(value)
        if isinstance(value, (Tensor, Symbol)) or value is None or kind in _SAME:
            return value, None
        if kind in _PLAIN:
            return self.plain(value, kind)
        found = kind_of(value, None)
        if found is not None:
            children, context = found[0](value)
            parts, again = self.plain(tuple(children), tuple)
            return parts, lambda got: found[1](list(again(got) if again else got), context)
        if isinstance(value, Size):
            return tuple(value), Size
        holding = holds_tensors(value)
        if kind is set and not holding:
            return value, set
        if _is_all_there(value, kind) and (dataclasses.is_dataclass(kind) if holding else self.is_new(value)):
            parts, again = self.plain(vars(value), dict)
            return parts, lambda got: _with(kind, again(got) if again else got)
        if isinstance(value, Iterator) or holding:
            raise CaptureError(
                f"a result is of the class {kind.__name__}, which holds tensors and cannot be made again. Return "
                "tuples, lists, dicts or data classes, or register the class with "
                "utils._pytree.register_pytree_node"
            )
        if not isinstance(value, _KEPT) and self.is_new(value):
            raise CaptureError(
                f"a result is of the class {kind.__name__}, which the program makes at each call, and a graph cannot. "
                "Return tuples, lists, dicts or data classes"
            )
        return value, None

    def plain(self, value, kind):
        rows = [self.of(part) for part in (value.values() if kind is dict else value)]
        if kind is dict:
            parts, agains = (
                {k: part for k, (part, _) in zip(value, rows)},
                {k: a for k, (_, a) in zip(value, rows) if a},
            )
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

    def is_new(self, value):
        """Whether nothing but the result holds an object, as far as the garbage collector knows, so that the program
        made it: what it found somewhere is the same at each call."""
        inside = _inside(self.result)
        return all(id(o) in inside or isinstance(o, FrameType) for o in get_referrers(value))


def _inside(result):
    """id -> object of what stands in a result, besides tensors and what ends there."""
    found, waiting = {}, [result]
    while waiting and len(found) < _MOST:
        value = waiting.pop()
        if id(value) not in found and not isinstance(value, (*_ENDS, FunctionType, Symbol)):
            found[id(value)] = value
            waiting += get_referents(value)
    found[id(found)] = found[id(waiting)] = None
    return found


def _is_all_there(value, kind):
    """Whether what an object is stands in its `__dict__`: in no slots, and in nothing that a class in C keeps."""
    plain = all(cls is object or cls.__flags__ & _OF_PYTHON for cls in kind.__mro__)
    return plain and hasattr(value, "__dict__") and not _slotnames(kind)


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
