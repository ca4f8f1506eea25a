"""Names of PyTorch that are not here, as libraries import them: each exists under the alias and fails when it is used.

The list is absent_names.txt, written by tools/absent_names.py: a module a line, then its names by kind, with a star
where nothing of the module is here: any other name is one of a type, a function or a constant then. The kinds are
types, functions, exceptions, enumerations, values, containers (which are empty), what is for annotations, what is
like a dtype, what a module has from the standard library or from another module of PyTorch, and modules that it has
imported.
"""

import builtins
import contextlib
import enum
import functools
import importlib
import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

from tinygrad_ext.as_torch import eight_bits, helpers, refs
from tinygrad_ext.as_torch.places import ALIKE, answers
from tinygrad_ext.as_torch.stand_ins import absent
from tinygrad_ext.core.data.dtype import dtype

FILE = Path(__file__).with_name("absent_names.txt")
WHY = "tinygrad_ext has none of this; what it has stands in docs/torch_names.md"
_DTYPE = re.compile(r"(q?u?int|bits|float)\d\w*|bit")
_OTHERS = frozenset(["quantized", "qat", "quantizable", "intrinsic"])
_LAYERS = frozenset(["CELU", "ELU", "GELU", "GLU", "GRU", "LSTM", "RNN", "SELU"])  # in capitals, and no constants
_filled = {}


class Marker:
    """What stands for a dtype, layout or the like: it can be named, compared and looked up."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return "torch." + self._name

    def __reduce__(self):
        return self._name


class DtypeMarker(Marker):
    """What stands for a dtype whose numbers are not here; to isinstance it is a dtype."""

    is_floating_point = is_complex = False
    is_signed = property(lambda self: self._refuse("is_signed"))
    __class__ = property(lambda self: dtype)

    def _refuse(self, what):
        raise RuntimeError(f"{self!r}.{what} is not supported for quantized and packed types: {WHY}")


@functools.cache
def places():
    """{place of a module: its line}"""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return {line.partition("|")[0]: line for line in lines}


@functools.cache
def packages():
    """The places that have others below them."""
    return {place.rpartition(".")[0] for place in places()}


@functools.cache
def _listed(place):
    groups = places().get(place, "").split("|")[1:]
    return {
        name.partition("=")[0]: (group[0], name.partition("=")[2]) for group in groups for name in group[2:].split()
    }


def lists(place, name):
    """Whether a name of a place is one of those."""
    return name in _listed(place)


def answer(full):
    """What stands for a module or name, by all of its path; None where PyTorch has no such."""
    place, _, name = full.rpartition(".")
    return make(place, name) if full in places() or lists(place, name) else None


_LITERALS = {"None": None, "True": True, "False": False}


def make(place, name):
    """What stands for a name of a place; AttributeError where PyTorch has none either."""
    full = f"{place}.{name}".lstrip(".")
    if full in places() or answers(full):
        return importlib.import_module("torch." + full)  # another one each time that the alias is installed
    return _made(place, name, full)


@functools.cache
def _made(place, name, full):
    for find in (helpers.find, refs.find, _in_a_room_above, _beside):
        found = find(place, name)
        if found is not None:
            return found
    if name not in _listed(place) and "*" in _listed(place) and not name.startswith("__"):
        raised = re.search("[a-z](Error|Exception|Warning)$", name)
        kind = "x" if raised else "t" if name.strip("_")[:1].isupper() else "f"
        letter, more = "o" if name.isupper() and name not in _LAYERS else kind, ""
    elif name in _listed(place):
        letter, more = _listed(place)[name]
    else:
        raise AttributeError(f"module '{f'torch.{place}'.rstrip('.')}' has no attribute '{name}'")
    if letter == "f":
        return absent.function(full, WHY)
    if letter == "e":
        return enum.Enum(name, [member for member in more.split(",") if member])
    if letter == "x":
        kind = UserWarning if name.endswith("Warning") else RuntimeError
        return type(name, (kind,), {"__doc__": f"Never raised: {WHY}."})
    if letter == "v":
        return _LITERALS[more] if more in _LITERALS else more.strip("'\"") if more[0] in "'\"" else int(more)
    if letter == "m":
        return importlib.import_module(more)
    if letter in "ir":
        return getattr(importlib.import_module(more), name)
    if letter == "a":
        return Any
    if letter == "c":
        return getattr(builtins, more)()
    if letter == "o":
        return eight_bits.bring(name) or (DtypeMarker if _DTYPE.fullmatch(name) else Marker)(full)
    return absent.types(place or "torch", name, WHY)[name]


def _in_a_room_above(place, name):
    """What our room has that stands in another file there: nn.ParameterList for nn.modules.container.ParameterList.

    Of a module that is not here at all, the functions of the package itself are others: cuda.nvtx.range is not range.
    """
    if not _OTHERS.isdisjoint(place.split(".")):
        return None  # whose Linear is not that of nn
    absent_whole = "*" in _listed(place)
    while place and not name.startswith("_"):
        place = place.rpartition(".")[0]
        if absent_whole and not place:
            return None
        room = sys.modules.get(f"tinygrad_ext.{place}".rstrip("."))
        if room is None or lists(place, name) or f"{place}.{name}".lstrip(".") in places():
            continue
        value = vars(room).get(name)
        if value is None and callable(_filled.get(room)):
            with contextlib.suppress(AttributeError):
                value = _filled[room](name)
        if value is not None and not isinstance(value, types.ModuleType):
            return value
    return None


def _beside(place, name):
    """A type that the package lists, or another module in it where any name of this one is taken: one under all paths.

    A member of an enumeration is a default of arguments, so that it has to be there while a library is imported.
    """
    package, _, _ = place.rpartition(".")
    if not package or name.startswith("_"):
        return None
    listed = _listed(place)
    others = [package] if name in listed else [package, *_within(package)] if "*" in listed else []
    for other in others:
        if other != place and _listed(other).get(name, " ")[0] in "etx":
            return make(other, name)
    return None


@functools.cache
def _within(package):
    return [place for place in places() if place.rpartition(".")[0] == package]


def module(place):
    """A module of nothing but such names."""
    made = types.ModuleType(f"torch.{place}", f"What libraries import of torch.{place}: {WHY}.")
    made.__path__, made.__all__ = [], []
    fill(made, place)
    return made


def _answers(place, name):
    if helpers.find(place, name) is not None:
        return True
    return not name.startswith("__") and (name in _listed(place) or f"{place}.{name}".lstrip(".") in places())


def fill(module, place):
    """Let a module answer for what it lacks, until `empty`."""
    place = ALIKE.get(place, place)  # whichever of them is imported first
    if module in _filled or not (place in places() or place in packages()):
        return
    alike = [place, *(other for other, first in ALIKE.items() if first == place)]
    former = _filled[module] = vars(module).get("__getattr__")

    def __getattr__(name):
        if name == "__all__":
            return _public(module)
        at = next((at for at in alike if _answers(at, name)), None)
        if former is not None:
            try:
                return _shown(former(name))
            except AttributeError:
                if at is None:
                    raise
        return make(place if at is None else at, name)

    module.__getattr__ = __getattr__


def _public(module):
    """What `from module import *` brings: all that is not private, without modules."""
    held = vars(module)
    return [
        name
        for name in dir(module)
        if not name.startswith("_")
        and not isinstance(held.get(name), types.ModuleType)
        and (name in held or "__path__" not in held or importlib.util.find_spec(f"{module.__name__}.{name}") is None)
    ]


def _shown(found):
    """What a module gives that loads its rooms when asked; a room answers for what it lacks from then on."""
    if isinstance(found, types.ModuleType) and found not in _filled:
        sys.modules["tinygrad_ext.as_torch.finder"].mirror()
    return found


def empty():
    """Modules lack again what they lack."""
    for module, former in _filled.items():
        if former is None:
            del module.__getattr__
        else:
            module.__getattr__ = former
    _filled.clear()
