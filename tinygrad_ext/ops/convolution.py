"""Any convolution as one op that is told all numbers, as graphs of PyTorch's tell it."""

import tinygrad_ext as tg
from tinygrad_ext.ops.conv import _reference as windows_reference
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

from .transposed import _transposed_reference as transposed_reference
from .transposed import each


def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    dims = weight.dim() - 2
    if dims not in (1, 2, 3):
        raise RuntimeError(
            f"convolution: expected weight of 3 to 5 dimensions, for signals, images and volumes, but got "
            f"{list(weight.shape)}"
        )
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    numbers = (("stride", stride), ("padding", padding), ("dilation", dilation), ("output_padding", output_padding))
    stride, padding, dilation, more = [each(v, dims, "convolution", argument) for argument, v in numbers]
    if transposed:
        return getattr(tg, name)(input, weight, bias, stride, padding, more, groups, dilation)
    return getattr(tg, name)(input, weight, bias, stride, padding, dilation, groups)


def _convolution_samples(make):
    yield Sample(make(2, 3, 5), make(4, 3, 2), make(4), [2], [1], [1], False, [0], 1)
    yield Sample(make(2, 4, 5, 4), make(2, 2, 3, 2), None, [1, 2], [1, 0], [1, 2], False, [0, 0], 2)
    yield Sample(make(2, 2, 3, 3, 3), make(3, 2, 2, 2, 2), make(3), [1], [0], [1], False, [0], 1)
    yield Sample(make(2, 3, 4, 3), make(3, 2, 2, 2), make(2), [2, 2], [1, 1], [1], True, [1], 1)
    yield Sample(make(2, 2, 4), make(2, 3, 2), None, [2], [0], [1], True, [0], 1)


def _convolution_reference(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    dims = weight.ndim - 2
    if transposed:
        reference = transposed_reference(dims)
        numbers = [row[0] for row in (stride, padding, output_padding)]  # the samples have equal ones
        return reference(input, weight, bias, *numbers, groups, dilation[0])
    return windows_reference(input, weight, bias, *[v * (dims // len(v)) for v in (stride, padding, dilation)], groups)


op(
    "aten::convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
    "bool transposed, int[] output_padding, int groups) -> Tensor",
    compose=_convolution,
    types="float",
    variants="function",
    samples=_convolution_samples,
    reference=_convolution_reference,
    errors=[
        (
            lambda: _convolution(zeros(1, 3), zeros(2, 3), None, [1], [0], [1], False, [0], 1),
            RuntimeError,
            "expected weight of 3 to 5 dimensions",
        ),
        (
            lambda: _convolution(*[zeros(1, 3, 3, 3)] * 2, None, [1] * 3, [0], [1], False, [0], 1),
            RuntimeError,
            "expected stride to be a single integer value or a list of 2 values",
        ),
    ],
    doc="conv1d, conv2d or conv3d by the dimensions of weight, or with `transposed` conv_transpose1d, 2d or 3d: the op "
    "that `make_fx` tells them by. output_padding counts for those alone.",
)
