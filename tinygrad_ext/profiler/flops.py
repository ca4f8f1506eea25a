"""How many floating-point operations an op takes, from shapes and arguments: products and convolutions count a
multiplication and an addition for each term, sums and products of elements one for each."""

from math import prod


def _product(shapes, _):
    a, b = shapes[0], shapes[1]
    return 2 * prod(a) * b[-1] if len(a) >= 2 and len(b) >= 2 else 2 * prod(a)


def _added_product(shapes, _):
    return _product(shapes[1:3], _)


def _linear(shapes, _):
    return 2 * prod(shapes[0]) * shapes[1][0]


def _convolution(shapes, values):
    x, weight = shapes[0], shapes[1]
    stride, padding, dilation = (_each(values[i], len(weight) - 2) for i in (3, 4, 5))
    if padding is None or stride is None or dilation is None or len(x) != len(weight):
        return None
    sides = zip(x[2:], weight[2:], stride, padding, dilation, strict=True)
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sides]
    return 2 * x[0] * prod(weight) * prod(out)  # a weight says its input channels by group


def _each(value, n):
    if isinstance(value, int):
        return (value,) * n
    return value if isinstance(value, tuple) and len(value) == n else None


def _elements(shapes, _):
    """Of the broadcast shape."""
    tensors = [s for s in shapes[:2] if s is not None]
    rank = max(map(len, tensors), default=0)
    return prod(max(s[i] for s in [(1,) * (rank - len(t)) + t for t in tensors]) for i in range(rank))


_RULES = {
    "aten::mm": _product,
    "aten::matmul": _product,
    "aten::bmm": _product,
    "aten::addmm": _added_product,
    "aten::baddbmm": _added_product,
    "aten::linear": _linear,
    "aten::conv1d": _convolution,
    "aten::conv2d": _convolution,
    "aten::conv3d": _convolution,
    "aten::add": _elements,
    "aten::mul": _elements,
}


def flops_of(name, shapes, values):
    """A number, or None for an op that is not counted."""
    rule = _RULES.get(name)
    return rule(shapes, values) if rule and shapes else None
