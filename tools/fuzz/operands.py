"""Watching the tensors of a call: what may not change, and whether a result is all there."""

import ctypes

from tinygrad_ext.core.data.storage import storage_facts

import tinygrad_ext as tg
from tinygrad_ext.core.call import interop as core

from .case import Fault

TOUCHED = 1 << 20  # elements of a result that are read


def tensors(value):
    """Every tensor in a value, each place of it once; containers are opened, however deep and shared they are."""
    found, seen, waiting = [], set(), [value]
    while waiting:
        v = waiting.pop()
        if isinstance(v, tg.Tensor):
            found.append(v)
        elif isinstance(v, (dict, list, tuple, set, frozenset)) and id(v) not in seen:
            seen.add(id(v))
            waiting.extend(reversed([*v, *v.values()] if isinstance(v, dict) else list(v)))
    return found


class Watched:
    """The memory and geometry of a call's tensors, to be looked at again after it."""

    def __init__(self, values, written):
        spared = {id(core.storage_of(t)) for t in tensors(written)}
        kept = [t for t in tensors(values) if not any(t is w for w in tensors(written))]
        self.geometry = [(t, _geometry(t)) for t in kept]
        self.memory = {}
        for t in kept:
            room = core.storage_of(t)
            if room is not None and id(room) not in spared:
                self.memory[id(room)] = room, _bytes(room)

    def check(self):
        """Fault when something changed that nobody declared."""
        for t, before in self.geometry:
            if _geometry(t) != before:
                raise Fault(f"an input's geometry changed from {before} to {_geometry(t)}")
        for room, before in self.memory.values():
            if _bytes(room) != before:
                raise Fault("an input that is not declared as written was changed")


def _geometry(t):
    return tuple(t.shape), t.stride(), t.storage_offset(), t.dtype, t.requires_grad


def _bytes(room):
    address, length = storage_facts(room)
    return ctypes.string_at(address, length) if length else b""


def touch(value):
    """Read every element of every tensor in a value. Fault for one that reaches outside its storage."""
    for t in tensors(value):
        if core.storage_of(t) is None:  # on meta, or a subclass that wraps another tensor
            continue
        _, length = storage_facts(core.storage_of(t))
        low = high = t.storage_offset()
        for n, s in zip(t.shape, t.stride()):
            low, high = low + min(0, (n - 1) * s), high + max(0, (n - 1) * s)
        if t.numel() and (low < 0 or (high + 1) * t.itemsize > length):
            raise Fault(f"elements {low} to {high} of {t.dtype} in a storage of {length} bytes")
        if t.storage_offset() < 0 or any(n < 0 for n in t.shape):
            raise Fault(f"a result of shape {tuple(t.shape)} at offset {t.storage_offset()}")
        if 0 < t.numel() <= TOUCHED:
            t.detach().clone(memory_format=tg.contiguous_format)
