"""Sample inputs of ops: what a record's `samples` yields and the sweep runs.

    def _samples(make):
        yield Sample(make(3, 4), make(4))                      # positional arguments
        yield Sample(make(2, 3), dim=1, keepdim=True)          # keywords
        yield Sample(make.ints(0, 5, (2, 2)), name="indices")  # a tensor that never takes another dtype

`make` is a Maker for one dtype; tests multiply dtypes and memory layouts onto every sample. A sample's tensors
made with `make(...)` follow the dtype under test; those from `make.ints`, `make.bools`, `make.of` keep theirs.
"""

import itertools

import tinygrad_ext as tg


class Sample:
    """Arguments of one call."""

    __slots__ = ("args", "kwargs", "name")

    def __init__(self, *args, name=None, **kwargs):
        self.args, self.kwargs, self.name = args, kwargs, name

    def __repr__(self):
        shown = [_show(a) for a in self.args] + [f"{k}={_show(v)}" for k, v in self.kwargs.items()]
        return f"Sample({', '.join(shown)})"


def _show(v):
    if hasattr(v, "shape") and hasattr(v, "dtype"):
        return f"{str(v.dtype).rpartition('.')[2]}{list(v.shape)}"
    return repr(v) if not isinstance(v, (list, tuple)) else "[" + ", ".join(_show(x) for x in v) + "]"


class Maker:
    """Makes random tensors of one dtype inside a domain, the same ones for the same seed.

    Arguments:
        dtype: dtype of `make(...)`. domain: (low, high) for its values, or one such pair for each tensor of a sample,
        taken in turn. requires_grad: of its floating tensors.
    """

    def __init__(self, dtype, domain=None, requires_grad=False, seed=0):
        self.dtype, self.requires_grad = dtype, requires_grad
        domain = domain or (-4, 4)
        self._domains = itertools.cycle(domain if isinstance(domain[0], tuple) else (domain,))
        import random  # lazy: samples are drawn by tests and tools alone

        self._random = random.Random(seed)

    def __call__(self, *shape, low=None, high=None):
        """Tensor of the dtype under test, uniform in the domain (or in [low, high])."""
        least, most = next(self._domains)
        low, high = least if low is None else low, most if high is None else high
        shape = shape[0] if shape and isinstance(shape[0], (tuple, list)) else shape
        return self._wrap([self._value(low, high) for _ in range(_count(shape))], shape, self.dtype, self.requires_grad)

    def _value(self, low, high):
        d = self.dtype
        if d.is_complex:
            return complex(self._random.uniform(low, high), self._random.uniform(low, high))
        if d.is_floating_point:
            return self._random.uniform(low, high)
        if d.name == "bool":
            return self._random.random() < 0.5
        low = max(low, 0) if not d.is_signed else low
        return self._random.randint(*sorted((int(-(-low // 1)), int(high // 1))))  # (0.1, 0.9) holds none: 0 or 1

    def distinct(self, *shape):
        """Like a call, but no two elements are equal: for max, sort, median."""
        n = _count(shape)
        values = [(i - n // 2) * (1 if not self.dtype.is_floating_point else 0.25) for i in range(n)]
        self._random.shuffle(values)
        if not self.dtype.is_floating_point and not self.dtype.is_complex:
            values = [int(v) if self.dtype.is_signed else int(v + n // 2) for v in values]
        return self._wrap(values, shape, self.dtype, self.requires_grad)

    def ints(self, low, high, shape, dtype=None):
        """int64 (or `dtype`) tensor of random integers in [low, high)."""
        return self._wrap(
            [self._random.randrange(low, high) for _ in range(_count(shape))], shape, dtype or tg.int64, False
        )

    def bools(self, *shape):
        """bool tensor."""
        return self._wrap([self._random.random() < 0.5 for _ in range(_count(shape))], shape, tg.bool, False)

    def of(self, values, dtype=None, requires_grad=False):
        """Tensor of given values, in a dtype of its own."""
        t = tg.tensor(values, dtype=dtype)
        return t.requires_grad_() if requires_grad else t

    def like(self, values):
        """Tensor of given values in the dtype under test."""
        t = tg.tensor(values).to(self.dtype) if _natural(self.dtype) else tg.tensor(values, dtype=self.dtype)
        return t.requires_grad_() if self.requires_grad and _floating(self.dtype) else t

    def _wrap(self, values, shape, dtype, requires_grad):
        t = tg.tensor(values, dtype=dtype).reshape(shape)
        return t.requires_grad_() if requires_grad and _floating(dtype) else t


def zeros(*shape, **options):
    """Zeros for the calls that must raise."""
    return tg.zeros(shape, **options)


def _natural(dtype):
    """Whether negative numbers have to wrap on their way into it: tensor() refuses them for uint64."""
    return dtype.name in ("uint16", "uint32", "uint64")


def _floating(dtype):
    return dtype.is_floating_point or dtype.is_complex


def _count(shape):
    n = 1
    for s in shape:
        n *= s
    return n


# ---- what pointwise and other plain ops are sampled with when their record says nothing ---------------------------


def unary(make):
    """One tensor: matrix, vector, scalar, empty."""
    for shape in ((3, 4), (5,), (), (0, 3), (2, 1, 3)):
        yield Sample(make(*shape))


def binary(make):
    """Two tensors that broadcast in every way."""
    for a, b in (
        ((3, 4), (3, 4)),
        ((3, 4), (4,)),
        ((2, 1, 3), (4, 1)),
        ((), (2, 2)),
        ((3,), ()),
        ((0, 3), (3,)),
        ((), ()),
    ):
        yield Sample(make(*a), make(*b))


def ternary(make):
    """Three tensors that broadcast."""
    for a, b, c in (((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), (3, 4)), ((), (2,), ()), ((0,), (1,), ())):
        yield Sample(make(*a), make(*b), make(*c))


def of_record(record, schema, make):
    """List of a record's samples, or of the usual ones of a pointwise op; empty when there are none."""
    if record.samples is not None:
        return list(record.samples(make))
    tensors = sum(a.type == "Tensor" for a in schema.args)
    required = sum(a.type != "Tensor" and not a.has_default for a in schema.args)
    if record.scalar is None or required:
        return []
    return list({1: unary, 2: binary, 3: ternary}[tensors](make))
