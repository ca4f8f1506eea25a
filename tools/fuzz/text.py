"""A call as Python that can be pasted: storages byte by byte, the windows on them, and the call."""

import ctypes

from tinygrad_ext.core.data.storage import storage_facts

import tinygrad_ext as tg
from tinygrad_ext.core.call import interop as core

HEAD = """import tinygrad_ext as tg
from tinygrad_ext.core.call import interop as core


def block(text):
    data = bytearray.fromhex(text)
    return core.storage_of(tg.frombuffer(data, dtype=tg.uint8).clone() if data else tg.empty(0, dtype=tg.uint8))

"""


class Writer:
    """Collects the lines that make tensors, each storage and each tensor once."""

    def __init__(self):
        self.lines, self._rooms, self._tensors = [], {}, {}

    def show(self, value):
        """An expression for a value; for tensors the name of one that the lines made."""
        if isinstance(value, tg.Tensor):
            return self._tensor(value)
        if isinstance(value, tg.Size):
            return f"tg.Size({tuple(value)})"
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self.show, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.show(v)}" for k, v in value.items()) + "}"
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return f"float('{value}')"
        if isinstance(value, (tg.dtype, tg.memory_format, tg.layout)):
            return "tg." + str(value).rpartition(".")[2]
        if isinstance(value, tg.device):
            return f"tg.device('{value}')"
        if isinstance(value, tg.Generator):
            return "tg.Generator()"
        return value.__name__ if isinstance(value, type) else repr(value)

    def _tensor(self, t):
        if id(t) in self._tensors:
            return self._tensors[id(t)][0]
        name = f"t{len(self._tensors)}"
        self._tensors[id(t)] = name, t
        shape, dtype = list(t.shape), "tg." + t.dtype.name
        if t.is_meta:
            made = f"tg.empty_strided({shape}, {list(t.stride())}, dtype={dtype}, device='meta')"
        else:
            made = f"core.window({self._room(t)}, {dtype}, {shape}, {list(t.stride())}, {t.storage_offset()})"
        if type(t) is not tg.Tensor:
            made += f"  # a {type(t).__name__}"
        self.lines.append(f"{name} = {made}")
        if t.requires_grad:
            self.lines.append(f"{name}.requires_grad_()" + ("" if t.is_leaf else f"; {name} = {name} * 1"))
        return name

    def _room(self, t):
        room = core.storage_of(t)
        if id(room) not in self._rooms:
            self._rooms[id(room)] = f"s{len(self._rooms)}", room
            address, length = storage_facts(room)
            data = ctypes.string_at(address, length) if length else b""
            self.lines.append(f"s{len(self._rooms) - 1} = block('{data.hex()}')")
        return self._rooms[id(room)][0]


def call(what, args, kwargs):
    """The program of a call. what: how the function is spelt."""
    writer = Writer()
    shown = [writer.show(v) for v in args] + [f"{k}={writer.show(v)}" for k, v in kwargs.items()]
    return "\n".join([HEAD, *writer.lines, f"print({what}({', '.join(shown)}))", ""])
