"""Names of PyTorch's for ops that are here under others: private ones of torch, and torch._refs.

torch._refs: what PyTorch has written once more in Python is here the op itself, by the same name. A name is
a function of the package or of the room of that place; else a method, which takes the tensor first.
"""

import importlib

import tinygrad_ext as _tg
from tinygrad_ext.core.call.callables import OpPacket

_ROOMS = {
    "_refs": "tinygrad_ext",
    "_refs.fft": "tinygrad_ext.fft",
    "_refs.linalg": "tinygrad_ext.linalg",
    "_refs.nn.functional": "tinygrad_ext.nn.functional",
    "_refs.special": "tinygrad_ext.special",
}
_REVERSED = {"rpow": "__rpow__", "rtruediv": "__rtruediv__", "rfloordiv": "__rfloordiv__", "rsub": "__rsub__"}


def find(place, name):
    """The op of a name of torch._refs or of a module below it; None where there is none."""
    if name.startswith("_"):
        found = getattr(_tg.ops.aten, name, None) if place == "" and name[:2] != "__" else None
        return found if isinstance(found, OpPacket) else None
    if place == "_refs._conversions" and name not in ("complex", "polar"):
        return getattr(_tg.Tensor, name, None)
    room = _ROOMS.get(place, "tinygrad_ext" if place == "_refs._conversions" else None)
    if room is None:
        return None
    found = getattr(importlib.import_module(room), name, None)
    if found is None and place == "_refs":
        found = getattr(_tg.Tensor, _REVERSED.get(name, name), None)
    return found if callable(found) and not isinstance(found, type) else None
