"""Transposed convolution, written with the derivatives of convolution, and convolution of series."""

import tinygrad_ext as tg
from tinygrad_ext.ops.formats import kept_format
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def each(value, dims, name, argument):
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    values = values * dims if len(values) == 1 else values
    if len(values) != dims:
        raise RuntimeError(
            f"{name}: expected {argument} to be a single integer value or a list of {dims} values, got {value}"
        )
    return values


def _batched(name, input, weight, dims):
    if weight.dim() != dims + 2:
        raise RuntimeError(f"{name}: expected weight to be {dims + 2}-dimensional, but got {list(weight.shape)}")
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    return input if input.dim() == dims + 2 else input.unsqueeze(0)


def _check_channels(input, weight, own, needed, transposed, groups):
    if own != needed:
        raise RuntimeError(
            f"Given transposed={transposed}, weight of size {list(weight.shape)}, expected "
            f"input{list(input.shape)} to have "
            f"{needed} channels, but got {own} channels instead (groups={groups})"
        )


def _check_numbers(name, stride, padding, dilation, groups):
    if min(stride) <= 0:
        raise RuntimeError(f"{name}: non-positive stride is not supported, got {stride}")
    if min(padding) < 0:
        raise RuntimeError(f"{name}: negative padding is not supported, got {padding}")
    if min(dilation) <= 0:
        raise RuntimeError(f"{name}: dilation should be greater than zero, got {dilation}")
    if groups <= 0:
        raise RuntimeError(f"{name}: non-positive groups is not supported, got {groups}")


def _check_dtypes(name, input, weight, bias, dims):
    """The weight has the dtype of the input; so has the bias of volumes, as in PyTorch."""
    for t, what in ((weight, "weight"), (bias if dims == 3 else None, "bias")):
        if t is not None and t.dtype != input.dtype:
            wanted, found = [x.type().rpartition(".")[2].removesuffix("Tensor") for x in (input, t)]
            raise RuntimeError(
                f"expected scalar type {wanted} but found {found}: {name}() needs input and {what} of one dtype; "
                "convert one, for example with .to(input.dtype)"
            )


def _with_bias(y, bias, channels, dims):
    if bias is None:
        return y
    if tuple(bias.shape) != (channels,):
        raise RuntimeError(
            f"expected bias to be 1-dimensional with {channels} elements, but got bias of size {list(bias.shape)}"
        )
    if bias.dtype.is_complex and not y.dtype.is_complex:
        found, wanted = [x.type().rpartition(".")[2].removesuffix("Tensor") for x in (bias, y)]
        raise RuntimeError(
            f"result type {found} can't be cast to the desired output type {wanted}: the bias of a transposed "
            "convolution of real numbers must be real"
        )
    return (y + bias.reshape(channels, *[1] * dims)).to(y.dtype)


def cropped(y, padding, output_padding):
    """Take `padding` off each edge of the last dimensions, and leave output_padding more at the end."""
    edges = []
    for p, more in zip(reversed(padding), reversed(output_padding)):
        edges += [-p, more - p]
    return tg.constant_pad_nd(y, edges) if any(edges) else y


# ---- transposed ----------------------------------------------------------------------------------------------------


def _windows(x, weight, stride, padding, more, dilation, groups):
    """Transposed convolution: the gradient of a convolution that has that padding."""
    front = (x.shape[0], weight.shape[1] * groups)
    sizes = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(x.shape[2:], stride, dilation, weight.shape[2:])]
    inner = [n - 2 * p + m for n, p, m in zip(sizes, padding, more)]
    if all(n > 0 for n in inner) and all(m < s for m, s in zip(more, stride)):
        return x._conv_input_grad(weight, (*front, *inner), stride, padding, dilation, groups)
    # of so many elements the convolution would have more windows, or there is none
    y = x._conv_input_grad(weight, (*front, *sizes), stride, [0] * len(stride), dilation, groups)
    return cropped(y, padding, more)


def _check_out(x, weight, stride, padding, more, dilation):
    given, kernel = list(x.shape[2:]), weight.shape[2:]
    out = [
        (n - 1) * s + d * (k - 1) + 1 - 2 * p + m
        for n, s, d, k, p, m in zip(given, stride, dilation, kernel, padding, more)
    ]
    if any(size <= 0 for size in out):
        given, out = [" x ".join(map(str, sizes)) for sizes in (given, out)]
        raise RuntimeError(
            f"Given input size per channel: ({given}). Calculated output size per channel: ({out}). Output size is too "
            "small"
        )


def _volume_format(x, weight):
    """Of doubles PyTorch's volumes are row-major."""
    return tg.contiguous_format if x.dtype == tg.float64 else kept_format(x, weight)


def _transposed(dims):
    name = f"conv_transpose{dims}d"

    def run(input, weight, bias, stride, padding, output_padding, groups, dilation):
        _check_dtypes(name, input, weight, bias, dims)
        if input.dtype == tg.int64:  # exact to 2^53
            wide = None if bias is None else bias.double()
            y = run(input.double(), weight.double(), wide, stride, padding, output_padding, groups, dilation)
            return y.to(tg.int64)
        if input.dtype in (tg.float16, tg.bfloat16):  # planes and bias are added up, which rounds once like this
            wide = None if bias is None else bias.float()
            y = run(input.float(), weight.float(), wide, stride, padding, output_padding, groups, dilation)
            return y.to(input.dtype)
        x = _batched(name, input, weight, dims)
        numbers = (("stride", stride), ("padding", padding), ("output_padding", output_padding), ("dilation", dilation))
        stride, padding, more, dilation = [each(v, dims, name, argument) for argument, v in numbers]
        _check_numbers(name, stride, padding, dilation, groups)
        _check_channels(input, weight, x.shape[1], weight.shape[0], 1, groups)
        if weight.shape[0] % groups:
            raise RuntimeError(
                f"{name}: expected weight's first size {weight.shape[0]} to be divisible by groups={groups}"
            )
        for m, s, d in zip(more, stride, dilation):
            if m < 0 or m >= max(s, d):
                raise RuntimeError(
                    f"output padding must be smaller than either stride or dilation, but got output_padding: {more}, "
                    f"stride: {stride}, dilation: {dilation}"
                )
        if x.shape[0]:
            if x.shape[1] and 0 in x.shape[2:]:
                raise RuntimeError(
                    f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}: "
                    f"{name} needs a position to spread"
                )
            _check_out(x, weight, stride, padding, more, dilation)
        y = _windows(x, weight, stride, padding, more, dilation, groups)
        y = _with_bias(y, bias, weight.shape[1] * groups, dims)
        y = y.contiguous(memory_format=_volume_format(x, weight)) if dims == 3 else y
        return y if input.dim() == dims + 2 else y.squeeze(0)

    return run


def _transposed_samples(dims):
    size = (4, 3, 2)[:dims]

    def samples(make):
        yield Sample(make(2, 3, *size), make(3, 2, *[2] * dims), make(2))
        yield Sample(make(4, *size), make(4, 1, *[3] * dims), None, 2, 1, 1, 2)
        yield Sample(
            make(1, 2, *size), make(2, 2, *[2] * dims), make(2), stride=1, dilation=2, padding=1, output_padding=1
        )

    return samples


def _transposed_reference(dims):
    def reference(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        """Every element of the input writes a window."""
        import itertools

        import numpy

        x = input if input.ndim == dims + 2 else input[None]
        s, p, m, d = [[v] * dims for v in (stride, padding, output_padding, dilation)]
        kernel, per = weight.shape[2:], weight.shape[0] // groups
        full = [(n - 1) * a + b * (k - 1) + 1 + c for n, a, b, k, c in zip(x.shape[2:], s, d, kernel, m)]
        out = numpy.zeros((x.shape[0], groups, weight.shape[1], *full))
        for g in range(groups):
            part, w = x[:, g * per : (g + 1) * per], weight[g * per : (g + 1) * per]
            for tap in itertools.product(*map(range, kernel)):
                at = tuple(slice(t * b, t * b + (n - 1) * a + 1, a) for t, b, n, a in zip(tap, d, x.shape[2:], s))
                out[(slice(None), g, slice(None), *at)] += numpy.einsum("nc...,co->no...", part, w[(..., *tap)])
        out = out.reshape(x.shape[0], -1, *full)
        out = out[(..., *[slice(q, n - q) for q, n in zip(p, full)])]
        out = out if bias is None else out + bias.reshape(-1, *[1] * dims)
        return out if input.ndim == dims + 2 else out[0]

    return reference


for _dims in (1, 2, 3):
    _name, _run = f"conv_transpose{_dims}d", _transposed(_dims)
    op(
        f"aten::{_name}(Tensor input, Tensor weight, Tensor? bias=None, int[{_dims}] stride=1, int[{_dims}] padding=0, "
        f"int[{_dims}] output_padding=0, int groups=1, int[{_dims}] dilation=1) -> Tensor",
        compose=_run,
        types="float",
        variants="function",
        samples=_transposed_samples(_dims),
        reference=_transposed_reference(_dims),
        errors=[
            (
                lambda run=_run, d=_dims: run(zeros(1, 3, *[4] * d), zeros(2, 2, *[2] * d), None, 1, 0, 0, 1, 1),
                RuntimeError,
                "to have 2 channels, but got 3 channels instead",
            ),
            (
                lambda run=_run, d=_dims: run(zeros(1, 2, *[4] * d), zeros(2, 2, *[2] * d), None, 1, 0, 1, 1, 1),
                RuntimeError,
                "output padding must be smaller than either stride or dilation",
            ),
            (
                lambda run=_run, d=_dims: run(zeros(1, 2, *[1] * d), zeros(2, 2, *[2] * d), None, 1, 1, 0, 1, 1),
                RuntimeError,
                f"Calculated output size per channel: ({' x '.join('0' * _dims)}). Output size is too small",
            ),
            (
                lambda run=_run, d=_dims: run(*[zeros(2, 2, *[2] * d)] * 2, zeros(2).cfloat(), 1, 0, 0, 1, 1),
                RuntimeError,
                "expected scalar type" if _dims == 3 else "can't be cast to the desired output type Float",
            ),
            (
                lambda run=_run: run(zeros(2), zeros(2), None, 1, 0, 0, 1, 1),
                RuntimeError,
                "expected weight",
            ),
        ],
        doc=f"Transposed convolution in {_dims} dimension{'s' * (_dims > 1)}: every element of the input adds a window "
        "weighted by it; weight is (C, O / groups, ...). `padding` is taken off the result's edges, "
        "output_padding added to "
        "its ends.",
    )


# ---- series --------------------------------------------------------------------------------------------------------


def _conv_tbc(self, weight, bias, pad):
    if self.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            "conv_tbc: Input must have 3 dims: time, batch, in_channel; weight 3: kernel width, "
            "in_channels, out_channels; "
            f"bias 1; got {self.dim()}, {weight.dim()}, {bias.dim()}"
        )
    return tg.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


op(
    "aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    compose=_conv_tbc,
    types="float",
    variants="function",
    samples=lambda make: [
        Sample(make(5, 2, 3), make(2, 3, 4), make(4)),
        Sample(make(3, 1, 2), make(3, 2, 2), make(2), 1),
    ],
    errors=[(lambda: _conv_tbc(zeros(2), zeros(2), zeros(2), 0), RuntimeError, "conv_tbc: Input must have 3 dims")],
    doc="conv1d of (time, batch, channels) with weight (width, in, out).",
)
