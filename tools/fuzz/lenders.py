"""Objects that lend memory and lie about it: DLPack capsules, buffers, array interfaces, odd NumPy arrays.

A lie about how long the memory is cannot be seen through by anybody; every other one must be. So what a lender says
either lies within its real memory, and is then read, or reaches further than any memory does, and must be refused.
"""

import collections
import ctypes

import numpy as np

import tinygrad_ext as tg

from . import nonsense
from .case import Case, Fault, refused
from .operands import tensors, touch

BLOCK = 200
ROOM = 512  # bytes that a lender really has
EDGE = (0, 1, 2, 3, -1, -2, 2**31, 2**61, 2**62, 2**63 - 1, -(2**63))


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor),
    ]  # fmt: skip


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


# what capsules point to, kept longer than any tensor over it: a fault's traceback holds tensors for a while
_alive = collections.deque(maxlen=10_000)


class Capsule(Case):
    """A DLPack capsule of either protocol."""

    def __init__(self, rng):
        self.code, self.bits = rng.choice(((0, 8), (0, 32), (0, 64), (1, 8), (2, 16), (2, 32), (2, 64), (4, 16),
                                           (5, 64), (5, 128), (6, 8), (0, 7), (2, 8), (3, 64), (9, 255)))  # fmt: skip
        self.lanes = rng.choice((1, 1, 1, 1, 1, 1, 0, 4, 65535))
        self.rank = rng.choice((0, 1, 1, 2, 2, 3, 5, 64, 65, -1, -(2**31), 2**31 - 1))
        held = max(0, min(self.rank, 65))
        edge = rng.random() < 0.6
        self.shape = [
            rng.choice(EDGE) if edge and rng.random() < 0.5 else rng.choice((1, 1, 2, 3)) for _ in range(held)
        ]
        self.strides = [rng.choice(EDGE) if edge and rng.random() < 0.5 else rng.randint(0, 4) for _ in range(held)]
        self.no_strides, self.no_shape = rng.random() < 0.3, rng.random() < 0.03
        self.no_data = rng.random() < 0.1
        self.device = rng.choice(((1, 0), (1, 0), (1, 0), (1, 0), (2, 0), (1, 7), (-1, -1), (2**31 - 1, 0)))
        self.byte_offset = rng.choice((0, 0, 0, 0, 1, 4, 8, 2**63, 2**64 - 8, 2**62))
        self.version = rng.choice(((1, 0), (1, 3), (0, 9), (2, 0), (2**32 - 1, 0)))
        self.versioned, self.deleter = rng.random() < 0.6, rng.random() < 0.8
        self.flags = rng.choice((0, 0, 1, 2, 3, 4, 2**64 - 1))
        self.name = rng.choice(
            (None, None, None, None, None, None, b"dltensor", b"dltensor_versioned", b"x", b"used_dltensor")
        )
        self.says_device = rng.choice(((1, 0), (1, 0), (1, 0), (2, 0), (), None, ("a", 0), (1.5, 0), (2**70, 0)))
        self.direct, self.copy = rng.random() < 0.4, rng.choice((None, None, True, False))

    def text(self):
        return f"# a DLPack lender: {vars(self)}\n"

    def run(self):
        if self.name is not None and (self.name == b"dltensor_versioned") != self.versioned:
            self.name = b"x"  # a struct under the other's name is a lie that nobody can see
        made = self._managed()
        name = self.name or (b"dltensor_versioned" if self.versioned else b"dltensor")
        capsule = _capsule(ctypes.addressof(made), name, None)
        lender = capsule if self.direct else _Lender(capsule, self.says_device)
        try:
            got = tg.from_dlpack(lender, copy=self.copy) if self._judged() else None
        except Exception as error:
            refused(error, small=False)  # a few bytes, repeated by strides of 0, may be copied to many
            return 1
        if got is not None:
            if not self._possible():
                raise Fault(f"accepted what no memory can hold: {tuple(got.shape)}, {got.stride()}")
            touch(got)
        del got
        return 1

    def _managed(self):
        self.memory = np.zeros(ROOM + 64, np.uint8)
        self.memory = self.memory[-self.memory.ctypes.data % 64 :][:ROOM]
        kind = _Versioned if self.versioned else _Managed
        made = kind()
        t = made.tensor
        self._sizes = (ctypes.c_int64 * max(1, len(self.shape)))(*self.shape)
        self._steps = (ctypes.c_int64 * max(1, len(self.strides)))(*self.strides)
        t.data = None if self.no_data else self.memory.ctypes.data
        t.device_type, t.device_id = self.device
        t.ndim, t.code, t.bits, t.lanes = self.rank, self.code, self.bits, self.lanes
        t.shape = None if self.no_shape else self._sizes
        t.strides = None if self.no_strides else self._steps
        t.byte_offset = self.byte_offset
        self._calls = []
        self._freed = _DELETER(self._calls.append)
        made.deleter = ctypes.cast(self._freed, ctypes.c_void_p).value if self.deleter else None
        if self.versioned:
            made.major, made.minor = self.version
            made.flags = self.flags
        _alive.append((made, self._freed, self._sizes, self._steps, self.memory))
        return made

    def _reach(self):
        """(first, one past last) byte that the description means, over the lender's memory; None for no element."""
        strides = self.strides
        if self.no_strides:
            strides, n = [], 1
            for size in reversed(self.shape):
                strides.insert(0, n)
                n *= max(size, 1)
        if 0 in self.shape:
            return None
        ends = [(n - 1) * s for n, s in zip(self.shape, strides)]
        size = self.bits // 8
        low, high = sum(e for e in ends if e < 0) * size, (sum(e for e in ends if e > 0) + 1) * size
        return self.byte_offset + low, self.byte_offset + high

    def _possible(self):
        reach = self._reach()
        return reach is None or (min(self.shape, default=1) >= 0 and reach[0] >= 0 and reach[1] <= ROOM)

    def _judged(self):
        """Whether the answer can be told: all inside the memory, or beyond any."""
        reach = self._reach()
        return self._possible() or min(self.shape, default=1) < 0 or reach[0] < 0 or reach[1] >= 2**47


class _Lender:
    def __init__(self, capsule, device):
        self._given, self._device = capsule, device

    def __dlpack__(self, **_):
        return self._given

    def __dlpack_device__(self):
        return self._device


class Interface(Case):
    """`__array_interface__` with fields that are wrong or missing, but for what NumPy believes unseen."""

    def __init__(self, rng):
        self.fields = {
            "shape": rng.choice(((2, 3), (), (0,), (-1,), (2**62, 4), (1,) * 65, [2, 3], "x", None, (2.5,), (2**70,))),
            "typestr": rng.choice(("<f4", "<f8", "|b1", ">f4", "<U3", "|V8", "<M8[s]", "", "x", 3, "<c16")),
            "data": None,
            "strides": rng.choice((None, None, (12, 4), (0, 0), (1, 1), "x", (4,))),
            "version": rng.choice((3, 3, 3, 2, 0, -1, "x", None)),
        }  # fmt: skip
        self.drop = [k for k in self.fields if rng.random() < 0.05]
        self.lent = rng.choice(("buffer", "buffer", "none", "word"))
        self.taker = rng.choice(("tensor", "as_tensor", "asarray", "add"))

    def text(self):
        return f"# tg.{self.taker} of an object with __array_interface__ = {self.fields} without {self.drop}\n"

    def run(self):
        lender = type("Lender", (), {})()
        fields = {k: v for k, v in self.fields.items() if k not in self.drop}
        if "data" in fields:
            fields["data"] = {"buffer": bytearray(ROOM), "none": None, "word": "x"}[self.lent]
        lender.__array_interface__ = fields
        take = {"add": lambda v: tg.ones(2, 3) + v}.get(self.taker) or getattr(tg, self.taker)
        try:
            touch(take(lender))
        except Exception as error:
            refused(error)
        return 1


class Buffer(Case):
    """`frombuffer` with counts and offsets beyond the edges, over memory of any kind."""

    def __init__(self, rng):
        from .values import DTYPES

        self.length = rng.choice((0, 1, 3, 8, 16, 33, 64))
        self.kind = rng.choice(("bytes", "bytearray", "memoryview", "numpy", "released", "none"))
        self.options = {"dtype": rng.choice(DTYPES)}
        if rng.random() < 0.7:
            self.options["offset"] = rng.choice((0, 1, 2, 4, 8, 16, 64, -1, *nonsense.INTS))
        if rng.random() < 0.7:
            self.options["count"] = rng.choice((-1, 0, 1, 2, 4, 8, *nonsense.INTS))
        self.grow = rng.random() < 0.2

    def text(self):
        return f"# tg.frombuffer of a {self.kind} of {self.length} bytes, {self.options}\n"

    def run(self):
        data = bytearray(range(self.length))
        lent = {"bytes": bytes, "memoryview": memoryview, "numpy": lambda d: np.frombuffer(d, np.uint8)}
        made = lent.get(self.kind, lambda d: d)(data) if self.kind != "none" else None
        if self.kind == "released":
            made = memoryview(data)
            made.release()
        try:
            got = tg.frombuffer(made, **self.options)
            if self.grow:
                with_error = None
                try:
                    data.extend(bytes(10_000))
                except BufferError as error:  # lent memory must be held
                    with_error = error
                if with_error is None and self.kind == "bytearray":
                    raise Fault("a bytearray could grow under a tensor over it")
            touch(got)
            if self.kind == "bytearray":
                with tg.no_grad():
                    got.fill_(1)
        except Fault:
            raise
        except Exception as error:
            refused(error)
        return 1


class Array(Case):
    """NumPy arrays of odd geometry and dtype."""

    def __init__(self, rng):
        self.dtype = rng.choice(("f4", ">f4", "f8", "c16", "i8", "u2", "u8", "b1", "f2", "O", "U2", "M8[s]", "V8", "g"))
        self.strides = [rng.choice((0, 0, 8, 16, -8, 4, 1, 3, 24)) for _ in range(rng.choice((0, 1, 2, 3)))]
        self.shape = [rng.choice((1, 2, 0, 3)) for _ in self.strides]
        self.huge_empty = rng.random() < 0.1
        self.offset = rng.choice((128, 128, 128, 129, 130))
        self.read_only = rng.random() < 0.3
        self.taker = rng.choice(("from_numpy", "tensor", "as_tensor", "asarray", "from_dlpack", "add", "setitem"))

    def text(self):
        return f"# tg.{self.taker} of an array: {vars(self)}\n"

    def run(self):
        memory = np.zeros(ROOM, np.uint8)
        if self.dtype in ("O", "U2", "M8[s]", "V8", "g"):
            array = np.zeros(self.shape, self.dtype)
        elif self.huge_empty:
            array = np.lib.stride_tricks.as_strided(
                np.zeros(0, self.dtype), (2**20, 0, 2**20), (2**40, 2**60, 8), writeable=False
            )
        else:
            array = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
        if self.read_only:
            array.flags.writeable = False
        take = {
            "add": lambda v: tg.ones(()) + v,
            "setitem": lambda v: tg.zeros([max(n, 1) for n in self.shape]).__setitem__(Ellipsis, v),
        }.get(self.taker) or getattr(tg, self.taker)
        try:
            got = take(array)
        except Exception as error:
            refused(error)
            return 1
        touch(got)
        for t in tensors(got):
            if self.read_only and self.taker in ("from_numpy", "as_tensor") and array.size:
                try:
                    t.fill_(1)
                except Exception as error:
                    refused(error)
                if memory.any():
                    raise Fault("read-only memory was written")
        return 1


def case(rng):
    """A lender of any kind."""
    return rng.choice((Capsule, Capsule, Capsule, Interface, Buffer, Array))(rng)
