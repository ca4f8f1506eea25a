"""Rows that lie about their length, numbers that empty a list, and what else a user's callable may answer."""

import tinygrad_ext as tg

from . import nonsense


class Long(list):
    """Says that it is longer than it is."""

    def __len__(self):
        return 40


class LongTuple(tuple):
    """Says that it is longer than it is."""

    def __len__(self):
        return 40


class Short(list):
    """Says that it is empty, and holds something."""

    def __len__(self):
        return 0


class Lengthless:
    """A row without a length."""

    def __getitem__(self, i):
        if not 0 <= i < 50:
            raise IndexError("no more")
        return 1


class Clearing:
    """A number that empties a list when it is asked for its value."""

    def __init__(self, row):
        self.row = row

    def __index__(self):
        self.row.clear()
        return 1

    __int__ = __index__

    def __float__(self):
        self.row.clear()
        return 1.0

    def __bool__(self):
        self.row.clear()
        return True


class Liar(tg.Tensor):
    """Its overrides answer what they are told to."""

    told = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if cls.told is None:
            return super().__torch_function__(func, types, args, kwargs or {})
        return cls.told(lambda: super(Liar, cls).__torch_function__(func, types, args, kwargs or {}))


def answer(rng, honest, rows=()):
    """`honest`, or something in its place; `rows` are lists that the callable might change before it answers."""
    if rng.random() < 0.5:
        for row in rows:
            rng.choice((row.clear, row.pop, lambda row=row: row.extend(row[:3]), row.reverse))() if row else None
    kind = rng.randrange(17)
    if kind < 4:
        return honest
    x = honest if isinstance(honest, tg.Tensor) else tg.ones(2)
    one = tg.ones(
        rng.choice(((), (3,), (2, 2), (0,))), dtype=rng.choice((tg.float32, tg.float64, tg.int64, tg.complex64))
    )
    return rng.choice((
        None, (), [], (x,), [x], (x, x), (x, x, x), (None, x), (x, None), [None, None, None], ((x, x),), ([x],), one,
        (one, x),
        Long([x]), Long(), LongTuple((x,)), Short([x]), Lengthless(), {"a": x}, {}, iter([x]), Clearing([]), object(),
        x.tolist(),
        tg.Size((2,)), Liar, x.shape, tg.nn.Parameter(one) if one.is_floating_point() else one,
        NotImplemented, 7, "x", True,
        nonsense.other(rng),
    ))  # fmt: skip
