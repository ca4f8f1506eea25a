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


def _prod(a, dim=None, keepdim=False, *, dtype=None, out=None):
    """The product along one dimension, several, or all (None or an empty list)."""
    dims = [dim] if isinstance(dim, int) else list(dim or range(a.dim()))
    rank = max(a.dim(), 1)
    for i in dims:
        if not -rank <= i < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {i})")
    dims = [i % rank for i in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"prod(): a dim appears multiple times in the list of dims {dims}")
    if dtype is None and not (a.is_floating_point() or a.is_complex()):
        dtype = _tg.int64
    found = a if dtype is None else a.to(dtype)
    for i in sorted(dims, reverse=True):
        found = found.prod(i, keepdim)
    found = found.clone() if found is a else found
    return (
        found
        if out is None
        else out.copy_(found)
        if out.shape == found.shape
        else out.resize_(found.shape).copy_(found)
    )


def find(place, name):
    """The op of a name of torch._refs or of a module below it; None where there is none."""
    if (place, name) == ("_refs", "prod"):
        return _prod  # the op takes one dimension alone
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
