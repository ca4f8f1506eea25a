"""Arguments that make no sense, by the type that the schema asks for."""

import tinygrad_ext as tg

INTS = (0, 1, -1, 2, -2, 3, 5, 7, 64, 65, -65, 255, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**61, 2**62, 2**63 - 1,
        -(2**63), 2**63, 2**64, -(2**64), 10**30)  # fmt: skip
FLOATS = (0.0, -0.0, 0.5, -1.0, 1e-300, 1e38, 1e308, float("inf"), float("-inf"), float("nan"), 2.0**62, 2.0**63)
OTHERS = (None, True, "a", "", b"x", 1.5, 1j, (), [], {}, [None], "mean", slice(None), Ellipsis, object, NotImplemented,
          range(3), [[1, 2], [3]], "\ud800", "\0", float, tg.float32, tg.Size((1, 2)))  # fmt: skip
WORDS = ("mean", "sum", "none", "reflect", "constant", "replicate", "circular", "nearest", "linear", "bilinear", "tanh",
         "floor", "trunc", "ij", "xy", "left", "right", "fro", "nuc", "ij,jk->ik", "i...->...", "amax", "valid",
         "same", "batchmean", "x" * 5000, "->", "%", "\0")  # fmt: skip


def integer(rng):
    """Small most of the time, else near an edge of a machine's integers."""
    return rng.randint(-3, 6) if rng.random() < 0.7 else rng.choice(INTS)


def real(rng):
    """A float, or an int in its place."""
    chance = rng.random()
    return rng.uniform(-2, 2) if chance < 0.5 else rng.choice(FLOATS) if chance < 0.85 else integer(rng)


def number(rng):
    """What Scalar takes."""
    chance = rng.random()
    if chance < 0.4:
        return integer(rng)
    return real(rng) if chance < 0.8 else rng.choice((True, False, 1j, complex(float("nan"), float("inf"))))


def integers(rng):
    """A list of ints, of a fitting length or not."""
    chance = rng.random()
    length = rng.randint(0, 4) if chance < 0.9 else rng.choice((65, 70, 300))
    made = [integer(rng) for _ in range(length)]
    return tuple(made) if chance < 0.5 else tg.Size([max(0, min(v, 9)) for v in made]) if chance < 0.55 else made


def other(rng):
    """What no schema asks for."""
    return rng.choice(OTHERS)


def dtype(rng):
    """A dtype, or what some take for one."""
    from .values import DTYPES

    return rng.choice(DTYPES) if rng.random() < 0.9 else rng.choice((None, float, int, bool, "float32", 7))


BY_TYPE = {
    "int": integer,
    "SymInt": integer,
    "float": real,
    "complex": number,
    "Scalar": number,
    "bool": lambda rng: rng.random() < 0.5 if rng.random() < 0.9 else rng.choice((0, 1, 2, None, "x", 1.5)),
    "str": lambda rng: rng.choice(WORDS),
    "ScalarType": dtype,
    "Device": lambda rng: rng.choice(("cpu", "cpu", "cpu", "meta", tg.device("cpu"), "cuda", "cpu:0", "xyz", 0, -1)),
    "Layout": lambda rng: rng.choice((tg.strided, None, "strided")),
    "MemoryFormat": lambda rng: rng.choice((tg.contiguous_format, tg.preserve_format, tg.channels_last, None, "x")),
    "Generator": lambda rng: rng.choice((tg.Generator(), None, 3)),
    "Any": lambda rng: other(rng) if rng.random() < 0.5 else number(rng),
}


def is_small(values):
    """Whether no number among the arguments is so large, or so near 0, that a result of great size could be meant."""
    total = 1
    for v in _flat(values):
        if isinstance(v, complex):
            v = abs(v)
        if not abs(v) < 1e3 or (isinstance(v, float) and 0 < abs(v) < 1e-3):
            return False
        total *= max(abs(v), 1)
    return total < 1e4


def _flat(values):
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from _flat(v)
        elif isinstance(v, (int, float, complex)):
            yield v
