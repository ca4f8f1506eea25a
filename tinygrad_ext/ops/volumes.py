"""Pooling of volumes, power-mean pooling, max pooling undone, and pooling at places that are drawn."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops import batching_layers, forward
from tinygrad_ext.ops.formats import kept_format
from tinygrad_ext.ops.pool_values import largest, largest_or_places
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _each(value, dims, name, argument, spread=True, error=RuntimeError):
    """A number for each dimension. Not all of PyTorch's ops `spread` the only one of a tuple."""
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    values = values * dims if len(values) == 1 and (spread or isinstance(value, int)) else values
    if len(values) != dims:
        raise error(f"{name}: {argument} must either be a single int, or a tuple of {dims} ints, got {value}")
    return values


def _largest(*args):
    return functions["nn.functional.max_pool3d_with_indices"](*args)


def _average(*args, **kwargs):
    return functions["nn.functional.avg_pool3d"](*args, **kwargs)


def _mean_rule(grad, self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return grad._avg_pool_backward(
        self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 3
    )


_WINDOW = "int[3] kernel_size, int[3]? stride=None, int[3] padding=0, int[3] dilation=1, bool ceil_mode=False"


def _max_samples(make):
    yield Sample(make.distinct(1, 2, 4, 4, 5), 2)
    yield Sample(make.distinct(2, 5, 4, 3), (3, 2, 2), 2, 1)
    yield Sample(make.distinct(1, 1, 5, 5, 4), 2, 1, 0, 2)
    yield Sample(make.distinct(1, 1, 3, 5, 4), 2, ceil_mode=True)


op(
    f"aten::max_pool3d_with_indices(Tensor self, {_WINDOW}) -> (Tensor values, Tensor indices)",
    batch=batching_layers.pool("max_pool3d_with_indices", 3),
    kernel="max_pool3d",
    types="int float",
    variants="function",
    where="nn.functional",
    samples=_max_samples,
    grad={"self": lambda grad_values, indices, self_shape: grad_values._max_pool_backward(indices, self_shape, 3)},
    jvp=forward.pooled(3),
    doc="Largest element of each window of a volume (N, C, D, H, W) or (C, D, H, W), and its place: the number of an "
    "element in its volume. Padding never wins; NaN does.",
)

op(
    f"aten::max_pool3d.return_indices(Tensor self, {_WINDOW}, bool return_indices=False) -> Tensor",
    compose=largest_or_places(3),
    types="int float",
    variants="function",
    where="nn.functional",
    samples=_max_samples,
    errors=[
        (lambda: _largest(zeros(2), 2, None, 0, 1, False), RuntimeError, "non-empty 4D or 5D"),
        (lambda: _largest(zeros(0, 1, 2, 2), 1, None, 0, 1, False), RuntimeError, "to have positive length"),
    ],
    doc="Largest element of each window of a volume; with return_indices also its place.",
)

op(
    f"aten::max_pool3d(Tensor self, {_WINDOW}) -> Tensor",
    compose=largest(3),
    types="int float",
    variants="function",
    samples=_max_samples,
    doc="Largest element of each window of a volume.",
)

op(
    "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    batch=batching_layers.pool("avg_pool3d", 3),
    kernel="avg_pool3d",
    types="int float",
    variants="function out",
    where="nn.functional",
    grad={"self": _mean_rule},
    jvp="linear",
    samples=lambda make: [
        Sample(make(1, 2, 4, 4, 5), 2),
        Sample(make(2, 5, 4, 3), (3, 2, 2), 2, 1, count_include_pad=False),
        Sample(make(1, 1, 3, 5, 4), 2, ceil_mode=True),
        Sample(make(1, 1, 3, 3, 4), 2, 1, 1, divisor_override=3),
    ],
    errors=[
        (lambda: _average(zeros(2), 2), RuntimeError, "non-empty 4D or 5D"),
        (lambda: _average(zeros(0, 1, 2, 2), 1), RuntimeError, "to have positive length"),
        (lambda: _average(zeros(1, 2, 2, 2), 1, divisor_override=0), RuntimeError, "divisor must be not zero"),
        (
            lambda: _average(zeros(1, 2, 3, 3), 3, padding=1),
            RuntimeError,
            "smaller than kernel size (kT: 3 kH: 3 kW: 3)",
        ),
    ],
    doc="Mean of each window of a volume (N, C, D, H, W) or (C, D, H, W).",
)


# ---- power means ---------------------------------------------------------------------------------------------------


def _lp_pool(dims):
    mean = {1: "avg_pool1d", 2: "nn.functional.avg_pool2d", 3: "nn.functional.avg_pool3d"}[dims]
    largest = f"max_pool{dims}d"

    def run(input, norm_type, kernel_size, stride, ceil_mode):
        if not norm_type:
            raise ZeroDivisionError(
                f"lp_pool{dims}d: norm_type is 0, and the sum of each window is taken to the power of 1 / norm_type; "
                "give another power, or inf"
            )
        kernel = _each(kernel_size, dims, f"lp_pool{dims}d", "kernel_size")
        step = None if stride is None or stride in ((), []) else stride
        if math.isinf(norm_type):
            sizes = input.abs() if norm_type > 0 else -input.abs()
            found = functions[largest](sizes, kernel, step, 0, 1, ceil_mode)
            return found if norm_type > 0 else -found
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
            Sample(make(2, *[5] * d), math.inf, 2),
        ],
        doc=f"(sum of x ** norm_type) ** (1 / norm_type) of each window of {_dims} dimension{'s' * (_dims > 1)}; "
        "the largest or least absolute value for inf or -inf.",
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
        y = start.scatter(-1, *flat).reshape(*lead, *sizes)
        return y.contiguous(memory_format=kept_format(input)) if dims == 2 and not input.is_contiguous() else y

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


def _fractional(dims):
    name = f"fractional_max_pool{dims}d"

    def run(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
        kernel = _each(kernel_size, dims, name, "kernel_size", False)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = _each(output_ratio, dims, name, "output_ratio", error=ValueError)
            output_size = [int(n * r) for n, r in zip(input.shape[-dims:], ratio)]
        out = _each(output_size, dims, name, "output_size", False)
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(f"{name}: Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(input.shape)}")
        if 0 in tuple(input.shape[-dims - 1 :]):
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got {list(input.shape)}"
            )
        x = input if input.dim() == dims + 2 else input.unsqueeze(0)
        n, channels, *size = x.shape
        for length, k, o in zip(size, kernel, out):
            if o + k - 1 > length - (dims == 3):  # three dimensions want one place more, as in PyTorch
                raise RuntimeError(
                    f"{name}: pool size {kernel} and output size {out} are too large relative to the input's {size}"
                )
        if _random_samples is None:
            _random_samples = x.detach().new_empty((n, channels, dims)).uniform_()
        drawn = _random_samples.shape
        if len(drawn) != 3 or drawn[0] < n or drawn[1] != channels or drawn[2] != dims:
            raise RuntimeError(
                f"{name}: Expect _random_samples of at least {n} batches, {channels} channels and {dims} numbers each; "
                f"got {list(drawn)}"
            )
        values, places = x._fractional_max_pool(_random_samples[:n], kernel, out, x.dtype)
        if input.dim() == dims + 1:
            values, places = values.squeeze(0), places.squeeze(0)
        return (values, places) if return_indices else values

    return run


def _drawn_windows(make):
    for d in (2, 3):
        yield Sample(
            make.distinct(2, 1, *[5] * d), make(2, 1, d, low=0, high=0.99).detach(), [2] * d, [3] * d, tg.float32
        )


op(
    "aten::_fractional_max_pool(Tensor self, Tensor samples, int[] kernel_size, int[] output_size, ScalarType dtype) "
    "-> (Tensor values, Tensor indices)",
    kernel="fractional_max_pool",
    batch="leading",
    types="float",
    variants="method",
    samples=_drawn_windows,
    grad={
        "self": lambda grad_values, indices, self_shape, kernel_size: grad_values._max_pool_backward(
            indices, self_shape, len(kernel_size)
        )
    },
    jvp=lambda self_tangent, indices, kernel_size: (
        self_tangent._max_pool_gather(indices, len(kernel_size)),
        None,
    ),
    doc="Largest element, and its place, of windows that samples, numbers for each plane or volume, put to places. "
    "Each step of their calculation is rounded to dtype.",
)


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
        tags="draws",
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
        tags="draws",
        variants="function",
        where="nn.functional",
        samples=lambda make, d=_dims: [
            Sample(make.distinct(1, 2, *[5] * d), 2, 3, _random_samples=make(1, 2, d, low=0, high=0.99).detach()),
        ],
        doc=f"fractional_max_pool{_dims}d with the places of its elements.",
    )
