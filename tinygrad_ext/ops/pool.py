"""Pooling: the largest or the mean of each window, in one and two dimensions."""

import math

from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops import batching_layers, forward
from tinygrad_ext.ops.pool_values import largest, largest_or_places
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

# ---- samples -------------------------------------------------------------------------------------------------------


def _call(name, shape, *args, **kwargs):
    """Call of the function on zeros of a shape, for the error samples."""

    def call():
        fn = functions.get("nn.functional." + name) or functions[name]
        return fn(functions["zeros"](shape), *args, **kwargs)

    return call


def _max2d(make):
    yield Sample(make.distinct(2, 3, 5, 6), 2)
    yield Sample(make.distinct(3, 5, 5), (2, 3), stride=(1, 2), padding=(1, 0))
    yield Sample(make.distinct(1, 2, 6, 7), 3, 2, 1, 1, True)
    yield Sample(make.distinct(1, 1, 7, 8), [2, 3], dilation=(2, 1), ceil_mode=True)
    yield Sample(make.distinct(0, 2, 4, 4), 2)


def _max1d(make):
    yield Sample(make.distinct(2, 3, 7), 2)
    yield Sample(make.distinct(3, 7), 3, stride=2, padding=1, ceil_mode=True)
    yield Sample(make.distinct(1, 2, 9), [2], dilation=3)


def _avg2d(make):
    yield Sample(make(2, 3, 5, 6), 2)
    yield Sample(make(3, 5, 5), (2, 3), stride=(1, 2), padding=(1, 0))
    yield Sample(make(1, 2, 6, 7), 3, 2, 1, True)
    yield Sample(make(1, 2, 6, 7), 3, 2, 1, True, False)
    yield Sample(make(1, 2, 5, 5), 2, divisor_override=3)
    yield Sample(make(0, 2, 4, 4), 2)


def _avg1d(make):
    yield Sample(make(2, 3, 7), 2)
    yield Sample(make(3, 7), 3, 2, 1, True, False)
    yield Sample(make(1, 2, 6), [3], stride=[1], padding=1)


def _adaptive2d(make):
    for shape, size in (
        ((2, 3, 5, 7), (2, 3)),
        ((3, 6, 4), 2),
        ((1, 2, 3, 3), (5, 1)),
        ((1, 2, 4, 5), (None, 2)),
        ((0, 2, 4, 4), 1),
    ):
        yield Sample(make.distinct(*shape), size)


def _adaptive1d(make):
    for shape, size in (((2, 3, 7), 3), ((3, 5), [2]), ((1, 2, 2), 5)):
        yield Sample(make.distinct(*shape), size)


def _private_avg(make):
    yield Sample(make(2, 3, 2, 3), (2, 3, 4, 6), 2, None, 0, False, True, None, 2)
    yield Sample(make(2, 4), (2, 7), 3, 2, 1, True, False, None, 1)
    yield Sample(make(1, 2, 2, 2, 1), (1, 2, 3, 4, 2), 2, None, (1, 0, 0), False, True, 3, 3)


def _private_adaptive(make):
    yield Sample(make(2, 3, 2, 3), (2, 3, 5, 7), 2)
    yield Sample(make(2, 4), (2, 7), 1)


def _private_places(make):
    yield Sample(make(2, 3), make.ints(0, 7, (2, 3)), (2, 7), 1)
    yield Sample(make(1, 2, 2, 2), make.ints(0, 12, (1, 2, 2, 2)), (1, 2, 3, 4), 2)
    yield Sample(make(2, 1, 2, 2), make.ints(0, 12, (2, 1, 2, 2)), (2, 2, 3, 2), 3)


def _private_gather(make):
    yield Sample(make(2, 7), make.ints(0, 7, (2, 3)), 1)
    yield Sample(make(1, 2, 3, 4), make.ints(0, 12, (1, 2, 2, 2)), 2)
    yield Sample(make(2, 2, 3, 2), make.ints(0, 12, (2, 1, 2, 2)), 3)


# ---- derivatives ---------------------------------------------------------------------------------------------------


def max_rule(dims):
    return {"self": lambda grad_values, indices, self_shape: grad_values._max_pool_backward(indices, self_shape, dims)}


def _avg_rule(grad, self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return grad._avg_pool_backward(
        self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2
    )


def _avg_rule_1d(grad, self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad):
    return grad._avg_pool_backward(self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1)


def _avg_twice(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, dims):
    if dims == 1:
        return functions["avg_pool1d"](grad, kernel_size, stride, padding, ceil_mode, count_include_pad)
    return functions[f"nn.functional.avg_pool{dims}d"](
        grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_rule(dims):
    def back(grad, self_shape):
        if all(n == 1 for n in grad.shape[-dims:]):  # one window for all, whose share is the same for each element
            return grad.expand(self_shape) / math.prod(self_shape[-dims:])  # its own memory: hooks may write to it
        return grad._adaptive_avg_pool_backward(self_shape, dims)

    return {"self": back}


def _adaptive_twice(grad, self_shape, dims):
    return functions["adaptive_avg_pool1d" if dims == 1 else f"nn.functional.adaptive_avg_pool{dims}d"](
        grad, self_shape[-dims:]
    )


# ---- the largest ---------------------------------------------------------------------------------------------------


def _chosen(result, return_indices):
    return tuple(result) if return_indices else result[0]


def _with_indices(name):
    """The function of an op that returns the largest elements and their places."""

    def compute(self, *args):
        return functions["nn.functional." + name](self, *args)

    return compute


def _maybe_indices(name):
    compute = _with_indices(name)
    return lambda *args: _chosen(compute(*args[:-1]), args[-1])


_PLACES = " A place is the number of an element in its plane. Padding never wins; NaN does."

for _n, _samples in ((1, _max1d), (2, _max2d)):
    _window = (
        f"int[{_n}] kernel_size, int[{_n}]? stride=None, int[{_n}] padding=0, int[{_n}] dilation=1, "
        "bool ceil_mode=False"
    )
    _name = f"max_pool{_n}d"
    op(
        f"aten::{_name}_with_indices(Tensor self, {_window}) -> (Tensor values, Tensor indices)",
        batch=batching_layers.pool(f"{_name}_with_indices", _n),
        kernel=_name,
        types="int float",
        variants="function",
        where=". nn.functional" if _n == 1 else "nn.functional",
        samples=_samples,
        grad=max_rule(_n),
        jvp=forward.pooled(_n),
        doc="Largest element of each window, and its place." + _PLACES,
    )

    op(
        f"aten::{_name}(Tensor self, {_window}) -> Tensor",
        compose=largest(_n),
        types="int float",
        variants="function",
        samples=_samples,
        doc=f"Largest element of each window of (N, C, {'L' if _n == 1 else 'H, W'}), with or without N. " + _PLACES,
    )

    op(
        f"aten::{_name}.return_indices(Tensor self, {_window}, bool return_indices=False) -> Tensor",
        compose=largest_or_places(_n),
        types="int float",
        variants="function",
        where="nn.functional",
        samples=_samples,
        errors=[
            (_call(_name, (1, 3, *[5] * _n), 0), RuntimeError, "stride should not be zero"),
            (_call(_name, (1, 3, *[5] * _n), 2, stride=0), RuntimeError, "stride should not be zero"),
            (_call(_name, (1, 3, *[5] * _n), 2, padding=2), RuntimeError, "padding=2 and kernel_size=2"),
            (_call(_name, (1, 3, *[5] * _n), 2, padding=-1), RuntimeError, "pad must be non-negative, but got pad: -1"),
            (_call(_name, (1, 3, *[5] * _n), 2, dilation=0), RuntimeError, "dilation should be greater than zero"),
            (_call(_name, (1, 3, *[1] * _n), 2), RuntimeError, "Output size is too small"),
            (_call(_name, (5,), 2), RuntimeError, "tensor expected" if _n == 2 else "max_pool1d: Expected 2D or 3D"),
            (_call(_name, (1, 0, *[5] * _n), 2), RuntimeError, "tensor with optional 0 dim batch size for input"),
        ],
        doc="Largest element of each window; with return_indices also its place." + _PLACES,
    )

for _n, _samples in ((1, _adaptive1d), (2, _adaptive2d)):
    _size = f"int[{_n}] output_size" if _n == 1 else "Any output_size"
    _name = f"adaptive_max_pool{_n}d"
    op(
        f"aten::{_name}_with_indices(Tensor self, {_size}) -> (Tensor values, Tensor indices)",
        batch=batching_layers.pool(f"{_name}_with_indices", _n),
        kernel=_name,
        types="float",
        variants="function",
        where="nn.functional",
        samples=_samples,
        grad=max_rule(_n),
        jvp=forward.pooled(_n),
        doc="Largest element of each of output_size windows that cover the input evenly, and its place.",
    )

    op(
        f"aten::{_name}.return_indices(Tensor self, {_size}, bool return_indices=False) -> Tensor",
        compose=_maybe_indices(_name + "_with_indices"),
        types="float",
        variants="function",
        where="nn.functional",
        samples=_samples,
        errors=[
            (
                _call(_name, (1, 3, *[0] * _n), 1),
                RuntimeError,
                "Expected input to have non-zero size for non-batch dimensions",
            )
        ],
        doc="Largest element of each of output_size windows that cover the input evenly; None keeps a size.",
    )

# ---- the mean ------------------------------------------------------------------------------------------------------

op(
    "aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    batch=batching_layers.pool("avg_pool1d", 1),
    kernel="avg_pool1d",
    types="int float",
    variants="function",
    samples=_avg1d,
    grad={"self": _avg_rule_1d},
    jvp="linear",
    errors=[(_call("avg_pool1d", (5,), 2), RuntimeError, "Expected 2 to 3 dimensions, but got 1-dimensional tensor")],
    doc="Mean of each window of (N, C, L) or (C, L).",
)

op(
    "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    batch=batching_layers.pool("avg_pool2d", 2),
    kernel="avg_pool2d",
    types="int float",
    variants="function out",
    where="nn.functional",
    samples=_avg2d,
    grad={"self": _avg_rule},
    jvp="linear",
    errors=[
        (_call("avg_pool2d", (1, 3, 5, 5), 0), RuntimeError, "stride should not be zero"),
        (
            _call("avg_pool2d", (1, 3, 5, 5), 2, padding=2),
            RuntimeError,
            "pad should be at most half of effective kernel size",
        ),
        (_call("avg_pool2d", (1, 3, 5, 5), 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
        (
            _call("avg_pool2d", (1, 3, 1, 1), 2),
            RuntimeError,
            "Given input size: (3x1x1). Calculated output size: (3x0x0). Output size is too small",
        ),
    ],
    doc="Mean of each window of (N, C, H, W) or (C, H, W). Padding counts as zeros unless count_include_pad is False; "
    "divisor_override replaces the number of elements.",
)

op(
    "aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    batch=batching_layers.pool("adaptive_avg_pool1d", 1),
    kernel="adaptive_avg_pool1d",
    types="float",
    variants="function",
    samples=_adaptive1d,
    grad=adaptive_rule(1),
    jvp="linear",
    errors=[
        (
            _call("adaptive_avg_pool1d", (5,), 2),
            RuntimeError,
            "Expected 2 to 3 dimensions, but got 1-dimensional tensor",
        )
    ],
    doc="Mean of each of output_size windows that cover the signal evenly.",
)

op(
    "aten::adaptive_avg_pool2d(Tensor self, Any output_size) -> Tensor",
    batch=batching_layers.pool("adaptive_avg_pool2d", 2),
    kernel="adaptive_avg_pool2d",
    types="float",
    variants="function",
    where="nn.functional",
    samples=_adaptive2d,
    grad=adaptive_rule(2),
    jvp="linear",
    errors=[
        (_call("adaptive_avg_pool2d", (1, 3, 5, 5), (2,)), RuntimeError, "adaptive_avg_pool2d: output_size must be 2"),
        (
            _call("adaptive_avg_pool2d", (1, 3, 5, 5), -1),
            RuntimeError,
            "elements of output_size must be greater than or equal to 0",
        ),
    ],
    doc="Mean of each of output_size windows that cover the image evenly; None keeps a size.",
)

# ---- what their derivatives need; each is linear, and its derivative is the forward map again ------------------------

op(
    "aten::_avg_pool_backward(Tensor self, int[] input_size, int[1] kernel_size, int[1]? stride, int[1] padding, "
    "bool ceil_mode, bool count_include_pad, int? divisor_override, int dims) -> Tensor",
    batch=batching_layers.pool_gradient("_avg_pool_backward"),
    kernel="avg_pool_backward",
    types="float",
    variants="method",
    samples=_private_avg,
    grad={"self": _avg_twice},
    jvp="linear",
    doc="Gradient of a mean over windows.",
)

op(
    "aten::_adaptive_avg_pool_backward(Tensor self, int[] input_size, int dims) -> Tensor",
    batch=batching_layers.pool_gradient("_adaptive_avg_pool_backward"),
    kernel="adaptive_avg_pool_backward",
    types="float",
    variants="method",
    samples=_private_adaptive,
    grad={"self": _adaptive_twice},
    jvp="linear",
    doc="Gradient of an adaptive mean.",
)

op(
    "aten::_max_pool_backward(Tensor self, Tensor indices, int[] input_size, int dims) -> Tensor",
    batch=batching_layers.pool_gradient("_max_pool_backward"),
    kernel="max_pool_backward",
    types="float",
    variants="method",
    samples=_private_places,
    grad={"self": lambda grad, indices, dims: grad._max_pool_gather(indices, dims)},
    jvp="linear",
    doc="Adds each element at its place in planes of zeros: the gradient of taking the largest.",
)

op(
    "aten::_max_pool_gather(Tensor self, Tensor indices, int dims) -> Tensor",
    batch=batching_layers.pool_gradient("_max_pool_gather"),
    kernel="max_pool_gather",
    types="float",
    variants="method",
    samples=_private_gather,
    grad={"self": lambda grad, indices, self_shape, dims: grad._max_pool_backward(indices, self_shape, dims)},
    jvp="linear",
    doc="The elements at the places that a pooling chose.",
)
