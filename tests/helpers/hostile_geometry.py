"""Sizes, strides and offsets that no memory of six float32 holds, and lenders that lie about theirs."""

import ctypes
import itertools

EDGES = [0, 1, 2, 3, 5, 6, 7, 2**31, 2**32 + 1, 2**59, 2**61 + 1, 2**62, 2**63 - 1]

# (sizes, strides, offset), each beyond or beside a memory of six elements of four bytes
WINDOWS = {
    "stride near 2**62": ((2,), (2**62,), 0),
    "stride whose bytes wrap to 4": ((2,), (2**62 + 1,), 0),
    "stride of 63 bits": ((2,), (2**63 - 1,), 0),
    "stride of 64 bits": ((2,), (2**63,), 0),
    "stride of 70 bits": ((2,), (2**70,), 0),
    "strides whose sum wraps": ((2,) * 64, (2**57,) * 64, 0),
    "strides whose sum wraps to 0": ((3, 3, 3, 3), (2**61,) * 4, 0),
    "product of size and stride wraps": ((2**33,), (2**31,), 0),
    "product of sizes wraps": ((2**32, 2**32), (0, 0), 0),
    "product of sizes wraps to 6": ((2**63 - 1, 2**63 - 1, 6), (0, 0, 1), 0),
    "size near 2**62": ((2**62,), (1,), 0),
    "size of 64 bits": ((2**63,), (0,), 0),
    "one element too many": ((7,), (1,), 0),
    "one step too far": ((3,), (3,), 0),
    "negative size": ((-1,), (1,), 0),
    "least size": ((-(2**63),), (1,), 0),
    "negative stride": ((2,), (-1,), 5),
    "least stride": ((2,), (-(2**63),), 0),
    "negative offset": ((1,), (1,), -1),
    "offset at the end": ((1,), (1,), 6),
    "offset near 2**62": ((1,), (1,), 2**62),
    "offset that wraps": ((2,), (1,), 2**63 - 1),
    "offset of 64 bits": ((1,), (1,), 2**64),
    "65 dimensions": ((1,) * 65, (1,) * 65, 0),
    "100,000 dimensions": ((1,) * 100_000, (1,) * 100_000, 0),
    "fewer strides": ((2, 2), (1,), 0),
    "more strides": ((2,), (1, 1), 0),
    "sizes that are no numbers": (("2",), (1,), 0),
    "half a size": ((1.5,), (1,), 0),
}


def fits(sizes, strides, offset, itemsize, nbytes):
    """Whether the window lies inside `nbytes` bytes, reckoned with integers that cannot wrap."""
    if min([0, offset, *sizes, *strides]) < 0 or len(sizes) > 64:
        return False
    count, last = 1, offset
    for size, stride in zip(sizes, strides):
        count *= size
        last += (size - 1) * stride
    end = last + 1 if count else offset
    return count < 2**63 and max([end, *strides]) * itemsize < 2**63 and end * itemsize <= nbytes


def random_windows(rng, n):
    """n windows of edge values."""
    for _ in range(n):
        rank = rng.choice([0, 1, 1, 2, 2, 3, 5])
        draw = [rng.choice(EDGES) for _ in range(2 * rank + 1)]
        yield tuple(draw[:rank]), tuple(draw[rank:-1]), draw[-1] if rng.random() < 0.3 else rng.randrange(7)


# ---- lenders -------------------------------------------------------------------------------------------------------


class ArrayInterface:
    """Lends a memory of six float32 through `__array_interface__`, with a shape and strides (in elements) at will."""

    def __init__(self, sizes, strides):
        self.memory = (ctypes.c_float * 6)()
        self.__array_interface__ = {
            "version": 3,
            "typestr": "<f4",
            "shape": sizes,
            "strides": tuple(4 * s for s in strides),
            "data": (ctypes.addressof(self.memory), False),
        }


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_alive = []  # capsules hold bare addresses
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def dlpack(sizes, strides=None, byte_offset=0, *, ndim=None, code=2, bits=32, lanes=1, device=1, memory=True):
    """A DLPack capsule over six float32 that says what it is told to; strides of None are left out."""
    numbers = [(ctypes.c_int64 * max(len(part), 1))(*part) for part in (sizes, strides or ())]
    data = (ctypes.c_double * 3)()
    tensor = _DLTensor(
        ctypes.addressof(data) if memory else None,
        (ctypes.c_int32 * 2)(device, 0),
        len(sizes) if ndim is None else ndim,
        code,
        bits,
        lanes,
        ctypes.cast(numbers[0], ctypes.POINTER(ctypes.c_int64)),
        ctypes.cast(numbers[1], ctypes.POINTER(ctypes.c_int64)) if strides is not None else None,
        byte_offset,
    )
    managed = _Managed(tensor, None, None)
    _alive.append((numbers, data, managed))
    return _capsule(ctypes.addressof(managed), b"dltensor", None)


def boundless(windows=WINDOWS):
    """(name, sizes, strides) that no memory holds, whatever its size: they catch a lender that names no size."""
    for name, (sizes, strides, _) in windows.items():
        numbers = [n for n in itertools.chain(sizes, strides) if isinstance(n, int)]
        whole = min(strides) >= 0 and len(numbers) == len(sizes) + len(strides) and len(sizes) == len(strides)
        if whole and all(-(2**63) <= n < 2**63 for n in numbers) and not fits(sizes, strides, 0, 4, 2**46):
            yield name, sizes, strides
