"""Convolution of signals, images and volumes."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_layers
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _each(value, dims):
    """One number for each dimension."""
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    return values * dims if len(values) == 1 else values


def _window(weight_shape, stride, padding, dilation):
    """stride, padding in front, dilation as lists; what is padded behind follows from the size of the output."""
    dims = len(weight_shape) - 2
    dilation = _each(dilation, dims)
    if padding == "same":
        padding = [d * (k - 1) // 2 for d, k in zip(dilation, weight_shape[2:])]
    return _each(stride, dims), _each(0 if padding == "valid" else padding, dims), dilation


def _input_rule(grad, weight, input_shape, stride, padding, dilation, groups):
    return grad._conv_input_grad(weight, input_shape, *_window(weight.shape, stride, padding, dilation), groups)


def _weight_rule(grad, input, weight_shape, stride, padding, dilation, groups):
    return grad._conv_weight_grad(input, weight_shape, *_window(weight_shape, stride, padding, dilation), groups)


def _bias_rule(grad, weight_shape):
    dims = len(weight_shape) - 2
    spatial = [-1 - i for i in range(dims)]
    return grad.sum(spatial if grad.dim() == dims + 1 else [0, *spatial])


_RULES = {"input": _input_rule, "weight": _weight_rule, "bias": _bias_rule}


# ---- samples -------------------------------------------------------------------------------------------------------


def _call(name, *shapes, **kwargs):
    """Call of the public function on zeros of these shapes, for the error samples."""

    def call():
        return getattr(tg, name)(*[tg.zeros(s) for s in shapes], **kwargs)

    return call


def _samples2d(make):
    yield Sample(make(2, 3, 5, 4), make(4, 3, 3, 2), make(4))
    yield Sample(make(2, 2, 4, 5), make(3, 2, 2, 2), stride=2)
    yield Sample(make(1, 4, 5, 5), make(6, 2, 3, 3), make(6), padding=1, groups=2)
    yield Sample(make(3, 3, 5, 7), make(3, 1, 3, 3), padding=(2, 1), dilation=(1, 2), groups=3)
    yield Sample(make(2, 6, 5), make(3, 2, 1, 1), make(3), stride=(3, 2))
    yield Sample(make(1, 2, 7, 6), make(2, 2, 3, 2), None, [2, 3], [1], [2, 1], 1)
    yield Sample(make(0, 2, 4, 4), make(3, 2, 3, 3), make(3))


def _samples_named(make):
    yield Sample(make(2, 2, 4, 5), make(3, 2, 3, 2), make(3), padding="same")
    yield Sample(make(2, 4, 5), make(2, 2, 3, 3), padding="valid", stride=2)
    yield Sample(make(1, 2, 6, 6), make(2, 1, 3, 3), padding="same", dilation=2, groups=2)


def _samples1d(make):
    yield Sample(make(2, 3, 6), make(4, 3, 3), make(4))
    yield Sample(make(3, 6), make(2, 3, 2), stride=2, padding=1)
    yield Sample(make(1, 4, 7), make(2, 2, 3), None, [1], [2], [2], 2)


def _samples1d_named(make):
    yield Sample(make(2, 2, 5), make(3, 2, 2), make(3), padding="same")
    yield Sample(make(2, 5), make(1, 2, 3), padding="valid")


def _samples3d(make):
    yield Sample(make(2, 2, 3, 4, 3), make(3, 2, 2, 2, 2), make(3))
    yield Sample(make(2, 4, 3, 3), make(2, 1, 2, 2, 3), None, 2, 1, 1, 2)
    yield Sample(
        make(1, 2, 4, 3, 3), make(2, 2, 2, 2, 2), make(2), stride=(2, 1, 1), padding=(1, 0, 1), dilation=(2, 1, 2)
    )


def _samples3d_named(make):
    yield Sample(make(1, 2, 3, 4, 3), make(3, 2, 2, 2, 3), make(3), padding="same")
    yield Sample(make(2, 3, 3, 3), make(2, 2, 2, 2, 2), padding="valid", stride=2)


def _reference(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution by windows, in NumPy."""
    import numpy

    dims = weight.ndim - 2
    x = input if input.ndim == dims + 2 else input[None]
    stride, dilation = _each(stride, dims), _each(dilation, dims)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
        edges = [(t // 2, t - t // 2) for t in total]
    else:
        edges = [(p, p) for p in _each(0 if padding == "valid" else padding, dims)]
    x = numpy.pad(x, [(0, 0), (0, 0), *edges])
    axes = tuple(range(2, dims + 2))
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:]))
    windows = numpy.lib.stride_tricks.sliding_window_view(x, reach, axes)
    windows = windows[
        (slice(None), slice(None), *[slice(None, None, s) for s in stride], *[slice(None, None, d) for d in dilation])
    ]
    per = weight.shape[0] // groups
    parts = [
        numpy.tensordot(
            windows[:, g * weight.shape[1] : (g + 1) * weight.shape[1]],
            weight[g * per : (g + 1) * per],
            ((1, *range(2 + dims, 2 + 2 * dims)), tuple(range(1, dims + 2))),
        )
        for g in range(groups)
    ]
    out = numpy.moveaxis(numpy.concatenate(parts, -1), -1, 1)
    if bias is not None:
        out = out + bias.reshape(-1, *[1] * dims)
    return out if input.ndim == dims + 2 else out[0]


# ---- records -------------------------------------------------------------------------------------------------------

_TAIL = (
    "Windows start every `stride` positions of the padded input and skip `dilation`; channels are split into `groups`."
)

op(
    "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
    "int[2] dilation=1, int groups=1) -> Tensor",
    batch=batching_layers.convolution("conv2d"),
    kernel="conv2d",
    types="int float complex",
    variants="function",
    holomorphic=True,
    grad=_RULES,
    jvp="each",
    samples=_samples2d,
    reference=_reference,
    errors=[
        (
            _call("conv2d", (1, 3, 5, 5), (2, 4, 3, 3)),
            RuntimeError,
            "Given groups=1, weight of size [2, 4, 3, 3], expected "
            "input[1, 3, 5, 5] to have 4 channels, but got 3 channels instead",
        ),
        (
            _call("conv2d", (1, 3, 2, 2), (2, 3, 3, 3)),
            RuntimeError,
            "Calculated padded input size per channel: (2 x 2). Kernel "
            "size: (3 x 3). Kernel size can't be greater than actual input size",
        ),
        (
            _call("conv2d", (5, 5), (2, 3, 3, 3)),
            RuntimeError,
            "Expected 3D (unbatched) or 4D (batched) input to conv2d",
        ),
        (_call("conv2d", (1, 3, 5, 5), (2, 3, 3, 3), stride=0), RuntimeError, "non-positive stride is not supported"),
        (_call("conv2d", (1, 3, 5, 5), (2, 3, 3, 3), padding=-1), RuntimeError, "negative padding is not supported"),
        (_call("conv2d", (1, 3, 5, 5), (2, 3, 3, 3), dilation=0), RuntimeError, "dilation should be greater than zero"),
        (_call("conv2d", (1, 3, 5, 5), (2, 3, 3, 3), groups=0), RuntimeError, "non-positive groups is not supported"),
        (_call("conv2d", (1, 4, 5, 5), (3, 2, 3, 3), groups=2), RuntimeError, "expected weight to be divisible by 2"),
        (
            _call("conv2d", (1, 3, 5, 5), (2, 3, 3, 3), (3,)),
            RuntimeError,
            "expected bias to be 1-dimensional with 2 elements",
        ),
        (_call("conv2d", (1, 3, 5, 5), (2, 3, 3, 3), stride=(1, 2, 3)), RuntimeError, "a list of 2 values"),
        (
            _call("conv2d", (1, 3, 0, 5), (2, 3, 3, 3), padding=2),
            RuntimeError,
            "Only zero batch or zero channel inputs",
        ),
        (_call("conv2d", (1, 3, 5, 5), (2, 3, 0, 3)), RuntimeError, "kernel size should be greater than zero"),
    ],
    doc="Cross-correlation of images (N, C, H, W) or (C, H, W) with weight (O, C / groups, kH, kW). " + _TAIL,
)

op(
    'aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str padding="valid", '
    "int[2] dilation=1, int groups=1) -> Tensor",
    batch=batching_layers.convolution("conv2d", ".padding"),
    kernel="conv2d",
    types="int float complex",
    variants="function",
    holomorphic=True,
    grad=_RULES,
    jvp="each",
    samples=_samples_named,
    reference=_reference,
    errors=[
        (
            _call("conv2d", (1, 3, 5, 5), (2, 3, 3, 3), padding="same", stride=2),
            RuntimeError,
            "padding='same' is not supported",
        ),
        (_call("conv2d", (1, 3, 5, 5), (2, 3, 3, 3), padding="no"), RuntimeError, "Invalid padding string: 'no'"),
    ],
    doc="conv2d with padding 'valid' (none) or 'same' (output as large as the input).",
)

op(
    "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
    "int[1] dilation=1, int groups=1) -> Tensor",
    batch=batching_layers.convolution("conv1d"),
    kernel="conv1d",
    types="int float complex",
    variants="function",
    holomorphic=True,
    grad=_RULES,
    jvp="each",
    samples=_samples1d,
    reference=_reference,
    errors=[
        (_call("conv1d", (1, 3, 5), (2, 4, 3)), RuntimeError, "expected input[1, 3, 5] to have 4 channels, but got 3"),
        (
            _call("conv1d", (1, 3, 1), (2, 3, 3)),
            RuntimeError,
            "Calculated padded input size per channel: (1). Kernel size: (3)",
        ),
        (
            _call("conv1d", (1, 3, 5, 5), (2, 3, 3)),
            RuntimeError,
            "Expected 2D (unbatched) or 3D (batched) input to conv1d",
        ),
    ],
    doc="Cross-correlation of signals (N, C, L) or (C, L) with weight (O, C / groups, k). " + _TAIL,
)

op(
    'aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str padding="valid", '
    "int[1] dilation=1, int groups=1) -> Tensor",
    batch=batching_layers.convolution("conv1d", ".padding"),
    kernel="conv1d",
    types="int float complex",
    variants="function",
    holomorphic=True,
    grad=_RULES,
    jvp="each",
    samples=_samples1d_named,
    reference=_reference,
    doc="conv1d with padding 'valid' (none) or 'same' (output as long as the input).",
)

op(
    "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
    "int[3] dilation=1, int groups=1) -> Tensor",
    batch=batching_layers.convolution("conv3d"),
    kernel="conv3d",
    types="int float complex",
    variants="function",
    holomorphic=True,
    grad=_RULES,
    jvp="each",
    samples=_samples3d,
    reference=_reference,
    errors=[
        (_call("conv3d", (1, 3, 4, 4, 4), (2, 2, 2, 2, 2)), RuntimeError, "to have 2 channels, but got 3 channels"),
        (
            _call("conv3d", (1, 2, 1, 4, 4), (2, 2, 2, 2, 2)),
            RuntimeError,
            "input size per channel: (1 x 4 x 4). Kernel size: (2 x 2 x 2). Kernel size can't be greater than actual",
        ),
        (
            _call("conv3d", (4, 4, 4), (2, 3, 3, 3, 3)),
            RuntimeError,
            "Expected 4D (unbatched) or 5D (batched) input to conv3d",
        ),
        (_call("conv3d", (1, 2, 4, 4, 4), (2, 2, 0, 2, 2)), RuntimeError, "kernel size should be greater than zero"),
    ],
    doc="Cross-correlation of volumes (N, C, D, H, W) or (C, D, H, W) with weight (O, C / groups, kD, kH, kW). "
    + _TAIL,
)

op(
    'aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str padding="valid", '
    "int[3] dilation=1, int groups=1) -> Tensor",
    batch=batching_layers.convolution("conv3d", ".padding"),
    kernel="conv3d",
    types="int float complex",
    variants="function",
    holomorphic=True,
    grad=_RULES,
    jvp="each",
    samples=_samples3d_named,
    reference=_reference,
    errors=[
        (
            _call("conv3d", (1, 2, 4, 4, 4), (2, 2, 2, 2, 2), padding="same", stride=2),
            RuntimeError,
            "padding='same' is not supported for strided convolutions",
        ),
    ],
    doc="conv3d with padding 'valid' (none) or 'same' (output as large as the input).",
)


# ---- the maps that make up the derivatives: each is linear in both tensors, and its derivative is the other two ----

_WINDOW = "int[] stride, int[] padding, int[] dilation, int groups"
_EXAMPLES = (
    ((2, 2, 5, 4), (2, 1, 3, 2), (2, 1), (1, 2), (1, 2), 2, (3, 6)),
    ((3, 5), (2, 3, 2), (2,), (0,), (1,), 1, (2,)),
    ((2, 2, 4, 3, 3), (2, 1, 3, 2, 2), (2, 1, 2), (1, 1, 0), (1, 1, 2), 2, (2, 4, 1)),
)


def _samples_window(make):
    for x, w, *window, size in _EXAMPLES:
        yield Sample(make(*x), make(*w), *window, size)


def _images(x, w, size):
    return (*x[: 1 - len(w)], w[0], *size)


def _samples_input_grad(make):
    for x, w, *window, size in _EXAMPLES:
        yield Sample(make(*_images(x, w, size)), make(*w), x, *window)


def _samples_weight_grad(make):
    for x, w, *window, size in _EXAMPLES:
        yield Sample(make(*_images(x, w, size)), make(*x), w, *window)


op(
    f"aten::_conv_window(Tensor self, Tensor weight, {_WINDOW}, int[] size) -> Tensor",
    batch=batching_layers.conv_window,
    kernel="conv_window",
    types="float complex",
    variants="method",
    holomorphic=True,
    samples=_samples_window,
    grad={
        "self": lambda grad, weight, self_shape, stride, padding, dilation, groups: grad._conv_input_grad(
            weight, self_shape, stride, padding, dilation, groups
        ),
        "weight": lambda grad, self, weight_shape, stride, padding, dilation, groups: grad._conv_weight_grad(
            self, weight_shape, stride, padding, dilation, groups
        ),
    },
    jvp="each",
    doc="Convolution for which the padding in front and the size of the output are given.",
)

op(
    f"aten::_conv_input_grad(Tensor self, Tensor weight, int[] input_size, {_WINDOW}) -> Tensor",
    batch=batching_layers.conv_input_grad,
    kernel="conv_input_grad",
    types="float complex",
    variants="method",
    holomorphic=True,
    samples=_samples_input_grad,
    grad={
        "self": lambda grad, weight, self_shape, stride, padding, dilation, groups: grad._conv_window(
            weight, stride, padding, dilation, groups, self_shape[2 - weight.dim() :]
        ),
        "weight": lambda grad, self, weight_shape, stride, padding, dilation, groups: self._conv_weight_grad(
            grad, weight_shape, stride, padding, dilation, groups
        ),
    },
    jvp="each",
    doc="Gradient of a convolution by its input, from the gradient of its output.",
)

op(
    f"aten::_conv_weight_grad(Tensor self, Tensor input, int[] weight_size, {_WINDOW}) -> Tensor",
    batch=batching_layers.conv_weight_grad,
    kernel="conv_weight_grad",
    types="float complex",
    variants="method",
    holomorphic=True,
    samples=_samples_weight_grad,
    grad={
        "self": lambda grad, input, self_shape, stride, padding, dilation, groups: input._conv_window(
            grad, stride, padding, dilation, groups, self_shape[2 - grad.dim() :]
        ),
        "input": lambda grad, self, input_shape, stride, padding, dilation, groups: self._conv_input_grad(
            grad, input_shape, stride, padding, dilation, groups
        ),
    },
    jvp="each",
    doc="Gradient of a convolution by its weight, from the gradient of its output.",
)
