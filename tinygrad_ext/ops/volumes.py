"""Pooling of volumes, power-mean pooling, and max pooling undone: written with the pooling of images."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _each(value, dims, name, argument):
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    values = values * dims if len(values) == 1 else values
    if len(values) != dims:
        raise RuntimeError(f"{name}: {argument} must either be a single int, or a tuple of {dims} ints, got {value}")
    return values


def _stacked(name, self):
    """Volumes as (count, D, H, W)."""
    if self.dim() not in (4, 5):
        raise RuntimeError(f"{name}(): Expected 4D or 5D tensor, but got: {list(self.shape)}; use (N, C, D, H, W)")
    return self.reshape(-1, *self.shape[-3:]) if self.dim() == 5 else self


def _check_sizes(name, self):
    """Only the batch may be empty."""
    sizes = self.shape[-4:]
    if 0 in tuple(sizes):
        raise RuntimeError(
            f"{name}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{list(self.shape)}"
        )


def _shaped(self, y, depth, height, width):
    return y.reshape(*self.shape[:-3], depth, height, width)


def _largest(self, kernel_size, stride, padding, dilation, ceil_mode):
    pool = functions["nn.functional.max_pool2d_with_indices"]
    name = "max_pool3d"
    x, kernel = _stacked(name, self), _each(kernel_size, 3, name, "kernel_size")
    _check_sizes(name, self)
    stride = kernel if stride is None or stride in ((), []) else _each(stride, 3, name, "stride")
    padding, dilation = _each(padding, 3, name, "padding"), _each(dilation, 3, name, "dilation")
    count, layers, *plane = x.shape
    values, places = pool(x, kernel[1:], stride[1:], padding[1:], dilation[1:], ceil_mode)
    height, width = values.shape[-2:]
    rows = values.reshape(count, 1, layers, height * width)
    values, chosen = pool(rows, (kernel[0], 1), (stride[0], 1), (padding[0], 0), (dilation[0], 1), ceil_mode)
    depth, area = values.shape[2], height * width
    chosen = chosen.reshape(count, depth * area)
    within = places.reshape(count, layers * area).gather(1, chosen)
    places = (chosen // max(area, 1)) * (plane[0] * plane[1]) + within
    return _shaped(self, values, depth, height, width), _shaped(self, places, depth, height, width)


def _maybe_indices(self, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    values, places = _largest(self, kernel_size, stride, padding, dilation, ceil_mode)
    return (values, places) if return_indices else values


def _mean(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    pool = functions["nn.functional.avg_pool2d"]
    name = "avg_pool3d"
    x, kernel = _stacked(name, self), _each(kernel_size, 3, name, "kernel_size")
    stride = kernel if stride is None or stride in ((), []) else _each(stride, 3, name, "stride")
    _check_sizes(name, self)
    padding = _each(padding, 3, name, "padding")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero: avg_pool3d got divisor_override=0")
    if x.dtype == tg.int64:  # means of integers are cut; an error of rounding must not cut one off an exact mean
        y = _mean(self.double(), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return (y + y.sign() * 1e-9).to(tg.int64)
    one = None if divisor_override is None else 1
    planes = pool(x, kernel[1:], stride[1:], padding[1:], ceil_mode, count_include_pad, one)
    height, width = planes.shape[-2:]
    rows = planes.reshape(x.shape[0], 1, x.shape[1], height * width)
    y = pool(rows, (kernel[0], 1), (stride[0], 1), (padding[0], 0), ceil_mode, count_include_pad, one)
    y = _shaped(self, y, y.shape[2], height, width)
    return y if one is None else y / divisor_override


_WINDOW = "int[3] kernel_size, int[3]? stride=None, int[3] padding=0, int[3] dilation=1, bool ceil_mode=False"


def _max_samples(make):
    yield Sample(make.distinct(1, 2, 4, 4, 5), 2)
    yield Sample(make.distinct(2, 5, 4, 3), (3, 2, 2), 2, 1)
    yield Sample(make.distinct(1, 1, 5, 5, 4), 2, 1, 0, 2)
    yield Sample(make.distinct(1, 1, 3, 5, 4), 2, ceil_mode=True)


op(
    f"aten::max_pool3d_with_indices(Tensor self, {_WINDOW}) -> (Tensor values, Tensor indices)",
    compose=_largest,
    types="float",
    variants="function",
    where="nn.functional",
    samples=_max_samples,
    doc="Largest element of each window of a volume (N, C, D, H, W) or (C, D, H, W), and its place: the "
    "number of an element "
    "in its volume.",
)

op(
    f"aten::max_pool3d.return_indices(Tensor self, {_WINDOW}, bool return_indices=False) -> Tensor",
    compose=_maybe_indices,
    types="float",
    variants="function",
    where="nn.functional",
    samples=_max_samples,
    errors=[
        (lambda: _maybe_indices(zeros(2), 2, None, 0, 1, False, False), RuntimeError, "Expected 4D or 5D tensor"),
        (lambda: _maybe_indices(zeros(0, 1, 2, 2), 1, None, 0, 1, 0, 0), RuntimeError, "to have positive length"),
    ],
    doc="Largest element of each window of a volume; with return_indices also its place.",
)

op(
    f"aten::max_pool3d(Tensor self, {_WINDOW}) -> Tensor",
    compose=lambda *args: _largest(*args)[0],
    types="float",
    variants="function",
    samples=_max_samples,
    doc="Largest element of each window of a volume.",
)

op(
    "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    compose=_mean,
    types="float",
    variants="function out",
    where="nn.functional",
    samples=lambda make: [
        Sample(make(1, 2, 4, 4, 5), 2),
        Sample(make(2, 5, 4, 3), (3, 2, 2), 2, 1, count_include_pad=False),
        Sample(make(1, 1, 3, 5, 4), 2, ceil_mode=True),
        Sample(make(1, 1, 3, 3, 4), 2, 1, 1, divisor_override=3),
    ],
    errors=[
        (lambda: _mean(zeros(2), 2, None, 0, False, True, None), RuntimeError, "Expected 4D or 5D tensor"),
        (lambda: _mean(zeros(0, 1, 2, 2), 1, None, 0, False, True, None), RuntimeError, "to have positive length"),
    ],
    doc="Mean of each window of a volume (N, C, D, H, W) or (C, D, H, W).",
)


# ---- power means ---------------------------------------------------------------------------------------------------


def _lp_pool(dims):
    mean = {1: "avg_pool1d", 2: "nn.functional.avg_pool2d", 3: "nn.functional.avg_pool3d"}[dims]

    def run(input, norm_type, kernel_size, stride, ceil_mode):
        if not norm_type:
            raise ZeroDivisionError(
                f"lp_pool{dims}d: norm_type is 0, and the sum of each window is taken to the power of 1 / norm_type; "
                "give another power, or inf"
            )
        kernel = _each(kernel_size, dims, f"lp_pool{dims}d", "kernel_size")
        step = None if stride is None or stride in ((), []) else stride
        y = functions[mean](input.pow(norm_type), kernel, step, 0, ceil_mode)
        return (y.sign() * y.abs().relu()).mul(math.prod(kernel)).pow(1.0 / norm_type)

    return run


for _dims in (1, 2, 3):
    op(
        f"aten::lp_pool{_dims}d(Tensor input, float norm_type, int[{_dims}] kernel_size, int[{_dims}]? stride=None, "
        "bool ceil_mode=False) -> Tensor",
        compose=_lp_pool(_dims),
        types="float",
        variants="function",
        where="nn.functional",
        domain=(0.5, 3),
        samples=lambda make, d=_dims: [
            Sample(make(2, 2, *[4] * d), 2.0, 2),
            Sample(make(2, *[5] * d), 3.0, 2, 1, ceil_mode=True),
        ],
        doc=f"(sum of x ** norm_type) ** (1 / norm_type) of each window of {_dims} dimension{'s' * (_dims > 1)}.",
    )


# ---- max pooling undone --------------------------------------------------------------------------------------------


def _sizes(name, input, kernel, stride, padding, output_size, dims):
    default = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(input.shape[-dims:], stride, kernel, padding)]
    if output_size is None:
        return default
    sizes = list(output_size)
    sizes = sizes[-dims:] if len(sizes) == dims + 2 else sizes
    if len(sizes) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a "
            f"length of '{len(sizes)}'"
        )
    for n, d, s in zip(sizes, default, stride):
        if not d - s < n < d + s:
            raise ValueError(
                f'invalid output_size "{sizes}" (dim must be between {[a - b for a, b in zip(default, stride)]} and '
                f"{[a + b for a, b in zip(default, stride)]})"
            )
    return sizes


def _max_unpool(dims):
    name = f"max_unpool{dims}d"

    def run(input, indices, kernel_size, stride, padding, output_size):
        kernel, padding = _each(kernel_size, dims, name, "kernel_size"), _each(padding, dims, name, "padding")
        step = kernel if stride is None or stride in ((), []) else _each(stride, dims, name, "stride")
        if input.shape != indices.shape or indices.dtype != tg.int64:
            raise RuntimeError(
                f"{name}: elements in indices should be type int64 and as many as in input: got {indices.dtype} of "
                f"{list(indices.shape)} for {list(input.shape)}"
            )
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"{name}: Input to {name} should be a {dims + 1}d or {dims + 2}d Tensor, but got {list(input.shape)}"
            )
        sizes = _sizes(name, input, kernel, step, padding, output_size, dims)
        lead = input.shape[:-dims]
        start = input.new_zeros(*lead, math.prod(sizes))
        flat = [t.reshape(*lead, math.prod(input.shape[-dims:])) for t in (indices, input)]
        return start.scatter(-1, *flat).reshape(*lead, *sizes)

    return run


for _dims in (1, 2, 3):
    _run = _max_unpool(_dims)
    op(
        f"aten::max_unpool{_dims}d(Tensor input, Tensor indices, int[{_dims}] kernel_size, int[{_dims}]? stride=None, "
        f"int[{_dims}] padding=0, int[]? output_size=None) -> Tensor",
        compose=_run,
        types="float",
        variants="function",
        where="nn.functional",
        samples=lambda make, d=_dims: [
            Sample(make(2, *[2] * d), tg.arange(2**d).mul(2).reshape(1, *[2] * d).expand(2, *[2] * d).contiguous(), 2),
            Sample(
                make(1, 2, *[2] * d),
                tg.arange(2**d).reshape(1, 1, *[2] * d).expand(1, 2, *[2] * d).contiguous(),
                3,
                2,
                1,
                output_size=[4] * d,
            ),
        ],
        errors=[
            (
                lambda run=_run, d=_dims: run(zeros(1, *[2] * d), zeros(1, *[2] * d).long(), 2, 2, 0, [9] * d),
                ValueError,
                "invalid output_size",
            ),
        ],
        doc="Zeros with the elements of input put to the places that max_pool with return_indices named.",
    )


# ---- windows of random places --------------------------------------------------------------------------------------


def _starts(samples, size, out, kernel):
    """Where the windows begin along one dimension (Graham 2014): steps of alpha, shifted by a random number."""
    i = tg.arange(out, device=samples.device, dtype=samples.dtype)
    if out == 1:
        return tg.full((*samples.shape, 1), size - kernel, device=samples.device)
    alpha = (size - kernel) / (out - 1)
    shift = samples.unsqueeze(-1)
    starts = ((i + shift) * alpha).to(tg.int64) - (shift * alpha).to(tg.int64)
    return fused.where(i == out - 1, size - kernel, starts)


def _fractional(dims):
    name = f"fractional_max_pool{dims}d"

    def run(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
        kernel = _each(kernel_size, dims, name, "kernel_size")
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = _each(output_ratio, dims, name, "output_ratio")
            output_size = [int(n * r) for n, r in zip(input.shape[-dims:], ratio)]
        out = _each(output_size, dims, name, "output_size")
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(f"{name}: Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(input.shape)}")
        x = input if input.dim() == dims + 2 else input.unsqueeze(0)
        n, channels, *size = x.shape
        for length, k, o in zip(size, kernel, out):
            if o + k - 1 > length - (dims == 3):  # three dimensions want one place more, as in PyTorch
                raise RuntimeError(
                    f"{name}: pool size {kernel} and output size {out} are too large relative to the input's {size}"
                )
        if _random_samples is None:
            _random_samples = tg.rand(n, channels, dims, dtype=x.dtype, device=x.device)
        drawn = _random_samples.shape
        if len(drawn) != 3 or drawn[0] < n or drawn[1] != channels or drawn[2] != dims:
            raise RuntimeError(
                f"{name}: Expect _random_samples of at least {n} batches, {channels} channels and {dims} numbers each; "
                f"got {list(drawn)}"
            )
        _random_samples = _random_samples[:n]
        at = tg.zeros(n, channels, *[1] * (2 * dims), dtype=tg.int64, device=x.device)
        for d in range(dims):
            # of the samples the last dimension comes first, as in PyTorch
            begin = _starts(_random_samples[..., dims - 1 - d if dims == 2 else d], size[d], out[d], kernel[d])
            place = begin.reshape(n, channels, *[out[d] if i == d else 1 for i in range(dims)], *[1] * dims)
            window = tg.arange(kernel[d], device=x.device).reshape([kernel[d] if i == d else 1 for i in range(dims)])
            at = at * size[d] + place + window
        area = math.prod(kernel)
        at = at.reshape(n, channels, math.prod(out), area)
        windows = x.reshape(n, channels, -1).gather(2, at.reshape(n, channels, -1)).reshape(at.shape)
        values, which = windows.max(-1)
        places = at.gather(-1, which.unsqueeze(-1)).squeeze(-1)
        values, places = [t.reshape(n, channels, *out) for t in (values, places)]
        if input.dim() == dims + 1:
            values, places = values.squeeze(0), places.squeeze(0)
        return (values, places) if return_indices else values

    return run


for _dims in (2, 3):
    _run = _fractional(_dims)
    _arguments = (
        f"Tensor input, int[{_dims}] kernel_size, int[{_dims}]? output_size=None, Any output_ratio=None, "
        "bool return_indices=False, Tensor? _random_samples=None"
    )
    op(
        f"aten::fractional_max_pool{_dims}d({_arguments}) -> Tensor",
        compose=_run,
        types="float",
        variants="function",
        where="nn.functional",
        samples=lambda make, d=_dims: [
            Sample(make.distinct(1, 2, *[5] * d), 2, 3, _random_samples=make(1, 2, d, low=0, high=0.99).detach()),
            Sample(
                make.distinct(2, *[4] * d), 2, output_size=2, _random_samples=make(1, 2, d, low=0, high=0.9).detach()
            ),
        ],
        errors=[
            (
                lambda run=_run, d=_dims: run(zeros(1, 1, *[4] * d), 2, None, None, False, None),
                ValueError,
                "requires specifying either an output_size or an output_ratio",
            ),
            (
                lambda run=_run, d=_dims: run(zeros(1, 1, *[4] * d), 2, 6 - d, None, False, None),
                RuntimeError,
                "are too large relative to the input's",
            ),
            (
                lambda run=_run, d=_dims: run(zeros(2, 1, *[4] * d), 2, 2, None, False, zeros(1, 1, d)),
                RuntimeError,
                "at least 2 batches",
            ),
        ],
        doc="Largest element of windows at places that are drawn, as many as output_size says, or "
        "output_ratio times the "
        "input's size (Graham 2014).",
    )
    op(
        f"aten::fractional_max_pool{_dims}d_with_indices({_arguments}) -> (Tensor values, Tensor indices)",
        compose=lambda input, kernel, size, ratio, return_indices, drawn, run=_run: run(
            input, kernel, size, ratio, True, drawn
        ),
        types="float",
        variants="function",
        where="nn.functional",
        samples=lambda make, d=_dims: [
            Sample(make.distinct(1, 2, *[5] * d), 2, 3, _random_samples=make(1, 2, d, low=0, high=0.99).detach()),
        ],
        doc=f"fractional_max_pool{_dims}d with the places of its elements.",
    )
