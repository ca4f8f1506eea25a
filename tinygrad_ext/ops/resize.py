"""Images of another size, and images read at points of a grid: sums of few elements with weights."""

import functools
import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.formats import kept_format
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_RANK = {"nearest": None, "nearest-exact": None, "area": None, "linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}
_RANK["lanczos"] = 4


# ---- along one dimension -------------------------------------------------------------------------------------------


def _step(size, out, factor, align):
    """How far apart in the input two neighbours of the output lie."""
    if align:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / factor if factor else size / out


def _nearest(x, dim, out, factor, exact):
    if x.is_floating_point():
        return fused._resample(x, dim, out, factor, "nearest-exact" if exact else "nearest", False)
    size = x.shape[dim]
    i = tg.arange(out, device=x.device, dtype=tg.float32)
    at = ((i + 0.5 if exact else i) * _step(size, out, factor, False)).floor().to(tg.int64)
    return x.index_select(dim, at.clamp(0, size - 1))


def _linear(x, dim, out, factor, align):
    return x if x.shape[dim] == out else fused._resample(x, dim, out, factor, "linear", align)


def cubic(t, a=-0.75):
    """Weights of the elements at -1, 0, 1 and 2 for a point t behind 0 (Keys 1981)."""
    u, far, rest = 1 - t, t + 1, 2 - t
    return (
        ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
        ((a + 2) * t - (a + 3)) * t * t + 1,
        ((a + 2) * u - (a + 3)) * u * u + 1,
        ((a * rest - 5 * a) * rest + 8 * a) * rest - 4 * a,
    )


def _cubic(x, dim, out, factor, align):
    return fused._resample(x, dim, out, factor, "cubic", align)


def _smooth(window, x, dim, out, factor, align):
    """A triangle, Keys's cubic with -1/2 or Lanczos's window, as wide as the step where the image shrinks."""
    return fused._resample(x, dim, out, factor, window, align)


def _bytes(x, dim, out, factor, align, line):
    """Of bytes the weights are integers, as many bits as fit in 16, and each dimension is rounded for itself."""
    weight = line(tg.eye(x.shape[dim], dtype=tg.float64, device=x.device), 0, out, factor, align)
    bits = min(14 - math.frexp(weight.max().item())[1] + 1, 22)
    whole = (weight * 2.0**bits + 0.5 * weight.sign()).trunc()
    y = (x.to(tg.float64).transpose(dim, -1) @ whole.t() + 2.0 ** (bits - 1)) * 2.0**-bits
    return y.floor().clamp(0, 255).to(tg.uint8).transpose(dim, -1)


_PLAIN = {"linear": _linear, "bilinear": _linear, "trilinear": _linear, "bicubic": _cubic}
_SMOOTH = {"bilinear": functools.partial(_smooth, "triangle"), "bicubic": functools.partial(_smooth, "keys")}
_SMOOTH["lanczos"] = functools.partial(_smooth, "lanczos")


def _sinc(t):
    import numpy

    return numpy.sinc(t)


_HEIGHTS = {
    "triangle": (1, lambda t: 1 - t),
    "keys": (2, lambda t: (((t - 5) * t + 8) * t - 4) * -0.5 * (t >= 1) + ((1.5 * t - 2.5) * t * t + 1) * (t < 1)),
    "lanczos": (3, lambda t: _sinc(t) * _sinc(t / 3)),
}


def _np_windows(size, out, step, mode):
    """The weight of each element for each place."""
    import numpy

    reach, height = _HEIGHTS[mode]
    width = max(step, 1.0)
    center, at = (numpy.arange(out)[:, None] + 0.5) * step, numpy.arange(size)
    t = abs((at - center + 0.5) / width)
    inside = (at >= (center - reach * width + 0.5).astype(int)) & (at < (center + reach * width + 0.5).astype(int))
    weight = numpy.where(inside & (t < reach), height(t), 0)
    return weight / weight.sum(1, keepdims=True)


def _np_resample(x, dim, out, factor, mode, align):
    import numpy

    size, i = x.shape[dim], numpy.arange(out)
    step = _step(size, out, factor, align)
    if mode in _HEIGHTS:
        return numpy.moveaxis(numpy.moveaxis(x, dim, -1) @ _np_windows(size, out, step, mode).T, -1, dim)
    if mode.startswith("nearest"):
        places = numpy.floor((i + 0.5 * (mode != "nearest")) * numpy.float32(step))
        places, weights = places[None], numpy.ones((1, out))
    else:
        at = i * step if align else (i + 0.5) * step - 0.5
        at = at.clip(0) if mode == "linear" else at
        low = numpy.floor(at)
        weights = numpy.stack([1 - (at - low), at - low] if mode == "linear" else cubic(at - low))
        places = low + numpy.arange(2 if mode == "linear" else 4)[:, None] - (mode == "cubic")
    places = places.astype(int).clip(0, size - 1)
    weights = weights.reshape(len(weights), -1, *[1] * (x.ndim - 1 - dim % x.ndim))
    return sum(x.take(p, dim) * w for p, w in zip(places, weights))


def _np_resample_back(grad, dim, size, factor, mode, align):
    import numpy

    each = _np_resample(numpy.eye(size), 0, grad.shape[dim], factor, mode, align)
    return numpy.moveaxis(numpy.moveaxis(grad, dim, -1) @ each, -1, dim)


def _lines(make):
    yield Sample(make(2, 5, 3), 1, 7, None, "linear", False)
    yield Sample(make(2, 5), -1, 3, None, "linear", True)
    yield Sample(make(6), 0, 9, 1.6, "cubic", False)
    yield Sample(make(5, 2), 0, 4, None, "nearest", False)
    yield Sample(make(2, 5), 1, 10, 2.0, "nearest-exact", False)
    yield Sample(make(2, 9, 2), 1, 4, None, "triangle", False)
    yield Sample(make(3, 7), 1, 3, None, "keys", False)
    yield Sample(make(8), 0, 11, None, "lanczos", False)


for _name, _self, _reference, _doc in (
    ("_resample", "self", _np_resample, "One dimension of interpolate."),
    ("_resample_backward", "grad_output", _np_resample_back, "The transpose of _resample, to `size` elements."),
):
    op(
        f"aten::{_name}(Tensor {_self}, int dim, int size, float? factor, str mode, bool align) -> Tensor",
        kernel=_name[1:],
        batch="dims",
        jvp="linear",
        variants="function",
        where="_fused",
        samples=_lines,
        reference=_reference,
        grad={
            _self: (
                lambda grad, self_shape, dim, factor, mode, align: fused._resample_backward(
                    grad, dim, self_shape[dim], factor, mode, align
                )
            )
            if _self == "self"
            else (
                lambda grad, grad_output_shape, dim, factor, mode, align: fused._resample(
                    grad, dim, grad_output_shape[dim], factor, mode, align
                )
            )
        },
        doc=_doc,
    )


# ---- all dimensions ------------------------------------------------------------------------------------------------


def _output(input, size, factor, recompute):
    """(sizes, factors that the steps follow from, or Nones)."""
    dims = input.dim() - 2
    if (size is None) == (factor is None):
        raise ValueError(
            "only one of size or scale_factor should be defined, and one has to be: interpolate got both or none"
        )
    given = (
        list(size if size is not None else factor)
        if isinstance(size if size is not None else factor, (tuple, list))
        else None
    )
    if given is not None and len(given) != dims:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with spatial "
            "dimensions of "
            f"{list(input.shape[2:])} and {'output size' if size is not None else 'scale_factor'} of {given}."
        )
    given = [size if size is not None else factor] * dims if given is None else given
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if any(isinstance(n, float) or (isinstance(n, tg.Tensor) and n.is_floating_point()) for n in given):
            raise TypeError(
                "interpolate: expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], "
                f"but got size with types {[type(n).__name__ for n in given]}: scale_factor takes fractions"
            )
        return [int(n) for n in given], [None] * dims
    if any(type(f) is float and not math.isfinite(f) for f in given):
        raise RuntimeError(
            f"value cannot be converted to type int64_t without overflow: interpolate got scale_factor {given}; give "
            "finite factors"
        )
    sizes = [math.floor(float(n) * f) for n, f in zip(input.shape[2:], given)]
    return sizes, [None] * dims if recompute else [float(f) for f in given]


@rounded_once
def _interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    if mode not in _RANK:
        raise NotImplementedError(f"interpolate: mode {mode!r} is unknown; there are {', '.join(_RANK)}")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if input.dim() not in (3, 4, 5) or _RANK[mode] not in (None, input.dim()):
        raise NotImplementedError(
            f"Got {input.dim()}D input, but {mode} mode needs {_RANK[mode] or '3D, 4D or 5'}D input: batch, "
            f"channels, sizes"
        )
    if antialias and mode not in _SMOOTH:
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError(
            f"Lanczos mode {'does not support align_corners=True' if align_corners else 'requires antialias=True'}: "
            "its window is as wide as the step between the centers of elements"
        )
    sizes, factors = _output(input, size, scale_factor, recompute_scale_factor)
    _check_sizes(input, sizes)
    if mode == "area":
        pool = {
            3: "adaptive_avg_pool1d",
            4: "nn.functional.adaptive_avg_pool2d",
            5: "nn.functional.adaptive_avg_pool3d",
        }
        return functions[pool[input.dim()]](input, sizes)
    return _resized(input, sizes, factors, mode, bool(align_corners), antialias)


def _check_sizes(input, sizes):
    if min(sizes) <= 0 or 0 in input.shape[1:]:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(input.shape)} and output "
            f"size {sizes}"
        )


def _resized(input, sizes, factors, mode, align, antialias):
    """One dimension after the other, from the last on. No order rounds nearest elements otherwise: of them
    those that shrink come first, from the front on, where whole rows are left out."""
    dims = [*reversed(range(2, input.dim()))]
    if mode.startswith("nearest"):
        dims.sort(key=lambda dim: dim if sizes[dim - 2] < input.shape[dim] else len(sizes) + 2)
    order = [] if antialias or input.is_contiguous() else _order_in_memory(input, sizes)
    y = input.permute(order) if order else input
    for dim in dims:
        out, factor, place = sizes[dim - 2], factors[dim - 2], order.index(dim) if order else dim
        if mode.startswith("nearest"):
            y = _nearest(y, place, out, factor, mode != "nearest")
            continue
        line = (_SMOOTH if antialias else _PLAIN)[mode]
        y = (_bytes if input.dtype == tg.uint8 else line)(
            y, place, out, factor, align, *[line] * (input.dtype == tg.uint8)
        )
    y = y.permute([order.index(dim) for dim in range(len(order))]) if order else y
    return y.contiguous(memory_format=kept_format(input)) if order or input.dtype == tg.uint8 else y


def _order_in_memory(input, sizes):
    """The order of dimensions in which images that shrink are read where they lie; of those that grow the images are
    put in order, which moves fewer elements than to do so with the result. Of channels_last ones the kernel knows."""
    strides = input.stride()
    order = sorted(range(len(strides)), key=lambda dim: -strides[dim])
    grows = math.prod(sizes) >= math.prod(input.shape[2:])
    return [] if grows or order == sorted(order) or order == [0, *range(2, len(order)), 1] else order


def _samples(make):
    yield Sample(make(1, 2, 5), 3)
    yield Sample(make(1, 2, 3, 4), (5, 3), mode="nearest-exact")
    yield Sample(make(1, 2, 3, 4), scale_factor=2.0, mode="bilinear", align_corners=False)
    yield Sample(make(1, 1, 3, 4), (5, 2), mode="bilinear", align_corners=True)
    yield Sample(make(1, 1, 4, 5), (3, 7), mode="bicubic", align_corners=False)
    yield Sample(make(1, 1, 7, 6), (3, 4), mode="bilinear", antialias=True)
    yield Sample(make(1, 1, 7, 6), (9, 4), mode="bicubic", antialias=True)
    yield Sample(make(1, 1, 7, 6), (9, 4), mode="lanczos", antialias=True)
    yield Sample(make(1, 2, 5), scale_factor=1.7, mode="linear")
    yield Sample(make(1, 1, 2, 3, 2), 3, mode="trilinear")
    yield Sample(make(1, 1, 5, 4), (2, 3), mode="area")


_SCHEMA = '(Tensor input, Any size=None, Any scale_factor=None, str mode="nearest", bool? align_corners=None'
op(
    f"aten::interpolate{_SCHEMA}, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
    compose=_interpolate,
    types="float",
    variants="function",
    where="nn.functional",
    samples=_samples,
    errors=[
        (
            lambda: functions["nn.functional.interpolate"](zeros(1, 1, 4)),
            ValueError,
            "only one of size or scale_factor",
        ),
        (lambda: _output(zeros(1, 1, 4), (tg.tensor(2.0),), None, False), TypeError, "expected size to be one of int"),
        (
            lambda: functions["nn.functional.interpolate"](zeros(1, 1, 4), 2, mode="cubic"),
            NotImplementedError,
            "unknown",
        ),
        (
            lambda: functions["nn.functional.interpolate"](zeros(1, 1, 4), 2, mode="bilinear"),
            NotImplementedError,
            "Got 3D input, but bilinear mode needs 4D",
        ),
        (
            lambda: functions["nn.functional.interpolate"](zeros(1, 1, 4), 2, align_corners=True),
            ValueError,
            "align_corners option can only be set",
        ),
    ],
    doc="Images (N, C, ...) of another size, or scale_factor times the size, by the nearest element, by "
    "linear or cubic sums, or by means of areas; align_corners makes the outer elements keep their places, antialias "
    "widens the sums where the image shrinks; lanczos is six elements wide and needs antialias.",
)

op(
    f"aten::upsample{_SCHEMA}) -> Tensor",
    compose=lambda input, size, factor, mode, align: _interpolate(input, size, factor, mode, align, None, False),
    types="float",
    variants="function",
    where="nn.functional",
    samples=lambda make: [Sample(make(1, 2, 3), 5), Sample(make(1, 1, 2, 3), scale_factor=2, mode="bilinear")],
    doc="interpolate by its older name.",
)

for _name, _mode, _align in (("upsample_nearest", "nearest", None), ("upsample_bilinear", "bilinear", True)):
    op(
        f"aten::{_name}(Tensor input, Any size=None, Any scale_factor=None) -> Tensor",
        compose=lambda input, size, factor, mode=_mode, align=_align: _interpolate(
            input, size, factor, mode, align, None, False
        ),
        types="float",
        variants="function",
        where="nn.functional",
        samples=lambda make: [Sample(make(1, 2, 2, 3), (3, 5)), Sample(make(1, 1, 2, 3), scale_factor=2)],
        doc=f"interpolate with mode {_mode}"
        + (" and align_corners, by its older name." if _align else ", by its older name."),
    )


# ---- under the names that PyTorch gives to one of them -------------------------------------------------------------


@rounded_once
def _to_sizes(self, output_size, align_corners, scales_h, scales_w, mode):
    """The sizes come from one argument, how far apart the places lie from another: they need not fit."""
    title = f"_upsample_{mode}2d_aa"
    if self.dim() != 4:
        raise RuntimeError(f"{title}: Expected 4D images (N, C, H, W), got {list(self.shape)}")
    if len(output_size) != 2:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(output_size)}: height and width")
    _check_sizes(self, output_size)
    scales = [scale if scale is not None and scale > 0 else None for scale in (scales_h, scales_w)]  # else by the sizes
    if float("inf") in scales:
        raise RuntimeError(f"{title}: scales_h={scales_h} and scales_w={scales_w} have to be finite")
    return _resized(self, output_size, scales, mode, align_corners, True)


for _mode in ("bilinear", "bicubic", "lanczos"):
    op(
        f"aten::_upsample_{_mode}2d_aa(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, "
        "float? scales_w=None) -> Tensor",
        compose=lambda *arguments, mode=_mode: _to_sizes(*arguments, mode),
        types="float",
        variants="function",
        where="_fused",
        samples=lambda make: [Sample(make(1, 1, 4, 5), (2, 3), False)],
        doc=f"nn.functional.interpolate of images, {_mode} and with antialias, to a size.",
    )
    op(
        f"aten::_upsample_{_mode}2d_aa.vec(Tensor input, int[]? output_size, bool align_corners, float[]? "
        "scale_factors) -> Tensor",
        compose=lambda input, size, align, scales, mode=_mode: _interpolate(
            input, size, scales, mode, align, None, True
        ),
        types="float",
        variants="function",
        where="_fused",
        samples=lambda make: [Sample(make(1, 1, 4, 5), (2, 3), False, None)],
        doc=f"nn.functional.interpolate of images, {_mode} and with antialias.",
    )
