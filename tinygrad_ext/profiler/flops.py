"""How many floating-point operations an op takes, from shapes and arguments: products and convolutions count a
multiplication and an addition for each term, sums and products of elements one for each."""

from itertools import zip_longest
from math import prod


def _product(shapes, _):
    """Of matrices whose batches broadcast; a vector is one row or column."""
    a, b = shapes[0], shapes[1]
    batch = zip_longest(reversed(a[:-2]), reversed(b[:-2]), fillvalue=1)
    rows, columns = a[-2] if len(a) > 1 else 1, b[-1] if len(b) > 1 else 1
    return 2 * prod(n if k == 1 else k for n, k in batch) * rows * a[-1] * columns


def _added_product(shapes, _):
    return _product(shapes[1:3], _)


def _linear(shapes, _):
    return 2 * prod(shapes[0]) * shapes[1][0]


def _convolution(shapes, values):
    x, weight = shapes[0], shapes[1]
    dims = len(weight) - 2
    x = (1, *x) if len(x) == dims + 1 else x
    stride, dilation = _each(values[3], dims), _each(values[5], dims)
    padding = _each({"valid": 0}.get(values[4], values[4]) if isinstance(values[4], str) else values[4], dims)
    if values[4] == "same":  # with strides of 1
        return 2 * x[0] * prod(weight) * prod(x[2:])
    if padding is None or stride is None or dilation is None or len(x) != len(weight):
        return None
    sides = zip(x[2:], weight[2:], stride, padding, dilation, strict=True)
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sides]
    return 2 * x[0] * prod(weight) * prod(out)  # a weight says its input channels by group


def _by_positions(shapes, _):
    """The gradient of a convolution by its input, from that of the output and the weight."""
    return 2 * shapes[0][0] * prod(shapes[0][2:]) * prod(shapes[1])


def _by_window(shapes, values):
    return 2 * shapes[0][0] * prod(values[6]) * prod(shapes[1])


def _by_weight(shapes, values):
    return 2 * shapes[0][0] * prod(shapes[0][2:]) * prod(values[2])


def _attention(shapes, _):
    query, key, value = shapes[:3]
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_backward(shapes, _):
    """The scores again, and two products for each of those forward."""
    query, key, value = shapes[:3]
    return 2 * prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


def _attention_heads_backward(shapes, _):
    """Four products of the size of one forward."""
    return 2 * _attention(shapes, _)


def _recurrent(weight):
    """Of all steps, from the input and the weights of input and state, the arguments of that number and the next."""
    return lambda shapes, _: 2 * prod(shapes[0][:-1]) * (prod(shapes[weight]) + prod(shapes[weight + 1]))


def _recurrent_backward(input, weight):
    """The product of the steps, and those that are wanted of input and weights."""

    def flops(shapes, values):
        rows, of_input, of_state = prod(shapes[input][:-1]), prod(shapes[weight]), prod(shapes[weight + 1])
        wanted = values[-1] if isinstance(values[-1], (list, tuple)) else (True,) * 3
        return 2 * rows * (of_state * (1 + bool(wanted[2])) + of_input * (bool(wanted[0]) + bool(wanted[1])))

    return flops


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
    "aten::_conv_input_grad": _by_positions,
    "aten::_conv_window": _by_window,
    "aten::_conv_weight_grad": _by_weight,
    "aten::scaled_dot_product_attention": _attention,
    "aten::_attention_step_backward": _attention_backward,
    "aten::_attention_heads_backward": _attention_heads_backward,
    "aten::_lstm_steps": _recurrent(3),
    "aten::_gru_steps": _recurrent(2),
    "aten::_elman_steps": _recurrent(2),
    "aten::_lstm_steps_backward": _recurrent_backward(5, 8),
    "aten::_gru_steps_backward": _recurrent_backward(3, 5),
    "aten::_elman_steps_backward": _recurrent_backward(2, 4),
    "aten::add": _elements,
    "aten::mul": _elements,
}


def flops_of(name, shapes, values):
    """A number, or None for an op that is not counted."""
    rule = _RULES.get(name)
    return rule(shapes, values) if rule and shapes else None
