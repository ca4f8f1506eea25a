"""torch._C._nn: the compiled functions of layers, which are nn.functional's here, and how `to` reads its arguments."""

import functools
import importlib
import types

import tinygrad_ext as _tg
from tinygrad_ext.nn import convert as _convert
from tinygrad_ext.nn import functional as _functional

from . import absent

_parse_to = _convert._parse_to
# what PyTorch has there and nowhere else
_ALONE = {"relu6_", *(f"_upsample_{kind}2d_aa" for kind in ("bicubic", "bilinear", "lanczos"))}


def __getattr__(name):
    for room in (_functional, _tg):
        if hasattr(room, name):
            return getattr(room, name)
    if name in ("hardsigmoid_", "hardswish_", "mish_", "silu_"):
        return functools.partial(getattr(_functional, name[:-1]), inplace=True)
    return _absent("_nn", name)


def _absent(room, name):
    """What stands for an op that is not here; AttributeError where PyTorch has none either."""
    names = importlib.import_module("tinygrad_ext.as_torch.absent_names")  # lazy: it imports stand-ins
    if not names.lists("ops:aten", name) and name not in _ALONE:
        raise AttributeError(f"module 'torch._C.{room}' has no attribute '{name}': torch is tinygrad_ext here")
    return absent.function(f"_C.{room}.{name}", names.WHY)


class Prefixed(types.ModuleType):
    """torch._C._linalg and the like: the functions of a room, the room's name before theirs."""

    def __init__(self, room):
        super().__init__(f"torch._C._{room}", f"The functions of torch.{room}, each named {room}_ and its name.")

    def __getattr__(self, name):
        room = self.__name__.rpartition("_")[2]
        if name.startswith(room + "_") and hasattr(getattr(_tg, room), name.removeprefix(room + "_")):
            return getattr(getattr(_tg, room), name.removeprefix(room + "_"))
        return _absent("_" + room, name)
