"""A wrapper with missing values: results are missing where an operand is, reductions leave missing elements out."""

import tinygrad_ext as tg

_REDUCTIONS = {}


class MaskedTensor:
    """A tensor and a bool tensor that is True where an element counts.

    Arguments:
        data: a tensor. mask: a bool tensor that broadcasts to data's shape.

    Functions that work element by element, shape or select keep the mask; sum, mean, amax, amin and numel leave
    missing elements out. Any other function raises TypeError, because it would read elements that do not count.

        >>> m = MaskedTensor(tg.tensor([1.0, 2.0, 3.0]), tg.tensor([True, False, True]))
        >>> (m + 1).filled(0.0)
        tensor([2., 0., 4.])
        >>> tg.mean(m)
        tensor(2.)
    """

    def __init__(self, data, mask):
        if mask.dtype != tg.bool:
            raise TypeError(f"MaskedTensor(): mask must be a bool tensor, not {mask.dtype}")
        self.data, self.mask = data, mask.expand(data.shape)

    def __repr__(self):
        return f"MaskedTensor({self.data!r}, mask={self.mask!r})"

    def filled(self, value):
        """The tensor with `value` in the place of missing elements."""
        return tg.where(self.mask, self.data, value)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not all(issubclass(t, (tg.Tensor, cls)) for t in types) or cls._has(kwargs.values()):
            return NotImplemented
        name = getattr(func, "__name__", "").strip("_")
        if name in _REDUCTIONS:
            return _REDUCTIONS[name](*args, **kwargs)
        if _KINDS.get(name) == "shaping":
            masked, *rest = args
            return cls(func(masked.data, *rest, **kwargs), func(masked.mask, *rest, **kwargs))
        if _KINDS.get(name) == "by element":
            data = func(*[a.data if isinstance(a, cls) else a for a in args], **kwargs)
            return cls(data, cls._common_mask(args, data.shape))
        return NotImplemented

    @classmethod
    def _has(cls, values):
        return any(isinstance(v, cls) for v in values)

    @classmethod
    def _common_mask(cls, args, shape):
        mask = tg.ones(shape, dtype=tg.bool)
        for a in args:
            if isinstance(a, cls):
                mask = mask & a.mask
        return mask

    def __add__(self, other):
        return tg.add(self, other)

    def __sub__(self, other):
        return tg.sub(self, other)

    def __mul__(self, other):
        return tg.mul(self, other)

    def __truediv__(self, other):
        return tg.div(self, other)

    def __getitem__(self, index):
        return MaskedTensor(self.data[index], self.mask[index])

    __radd__ = __add__
    __rmul__ = __mul__


_KINDS = {
    name: kind
    for kind, names in {
        "by element": "add radd sub rsub mul rmul div truediv rtruediv pow neg abs exp log sqrt sin cos tanh sigmoid "
        "relu clamp maximum minimum where",
        "shaping": "reshape view transpose permute flatten squeeze unsqueeze expand t flip clone detach",
    }.items()
    for name in names.split()
}


def _reduction(fn):
    _REDUCTIONS[fn.__name__] = fn
    return fn


@_reduction
def sum(input, dim=None, keepdim=False):
    data = input.filled(0)
    return tg.sum(data) if dim is None else tg.sum(data, dim, keepdim)


@_reduction
def numel(input):
    return int(input.mask.sum())


@_reduction
def mean(input, dim=None, keepdim=False):
    count = input.mask.sum() if dim is None else input.mask.sum(dim, keepdim)
    return sum(input, dim, keepdim) / count


@_reduction
def amax(input, dim=(), keepdim=False):
    return tg.amax(input.filled(-tg.inf), dim, keepdim)


@_reduction
def amin(input, dim=(), keepdim=False):
    return tg.amin(input.filled(tg.inf), dim, keepdim)
