"""Images read at the points of a grid: kernels for the elements and both gradients, formulas for what comes after."""

import itertools
import math
import warnings

import tinygrad_ext as tg
from tinygrad_ext.ops.forward import plus
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.resize import cubic
from tinygrad_ext.ops.samples import Sample, zeros

# ---- corners of points, by ops -------------------------------------------------------------------------------------


def _reflected(x, low, span):
    """x, mirrored at low and low + span until it lies between them, and the sign of its slope."""
    turn = (x - low).abs()
    flips = (turn / span).floor()
    rest, odd = turn - flips * span, flips.remainder(2) != 0
    sign = fused.where((x < low).logical_xor(odd), -1.0, 1.0)
    return fused.where(odd, span - rest + low, rest + low), sign


def _bounded(x, size, padding_mode, align):
    """x within the image, for paddings that make it so, and its slope."""
    if padding_mode == "zeros":
        return x, 1.0
    if size == 1:
        return x * 0, 0.0
    inside, sign = x, 1.0
    if padding_mode == "reflection":
        inside, sign = _reflected(x, 0.0, size - 1.0) if align else _reflected(x, -0.5, float(size))
    slope = ((inside > 0) & (inside < size - 1)).to(x.dtype) * sign
    return inside.clamp(0, size - 1), slope


def _cubic_slopes(t, a=-0.75):
    """First and second derivatives of the four weights of cubic()."""
    far, u, rest = t + 1, 1 - t, 2 - t
    outer = [(3 * a * x - 10 * a) * x + 8 * a for x in (far, rest)]
    inner = [(3 * (a + 2) * x - 2 * (a + 3)) * x for x in (t, u)]
    second = [6 * a * far - 10 * a, 6 * (a + 2) * t - 2 * (a + 3), 6 * (a + 2) * u - 2 * (a + 3), 6 * a * rest - 10 * a]
    return [outer[0], inner[0], -inner[1], -outer[1]], second


def _taps(x, size, mode, padding_mode, align):
    """For coordinates x of one dimension: [places], and [weights], with their first and second derivatives by x."""
    scale = (size - 1) / 2 if align else size / 2
    p = (x + 1) * scale if align else ((x + 1) * size - 1) / 2
    if mode == "bicubic":
        low = p.floor().detach()
        first, second = _cubic_slopes(p - low)
        places = [_bounded(low + k, size, padding_mode, align)[0] for k in (-1, 0, 1, 2)]
        return places, [cubic(p - low), [f * scale for f in first], [s * scale**2 for s in second]]
    p, slope = _bounded(p, size, padding_mode, align)
    low, slope = p.floor().detach(), slope * scale
    slope = slope if isinstance(slope, tg.Tensor) else tg.full_like(low, slope)
    flat = tg.zeros_like(low)
    return [low, low + 1], [[low + 1 - p, p - low], [-slope, slope], [flat, flat]]


def _corners(grid, sizes, *how):
    """For each corner: where it lies in a plane, whether it is inside, and a function of the orders of derivatives."""
    dims = len(sizes)
    lines = [_taps(grid[..., dims - 1 - d], n, *how) for d, n in enumerate(sizes)]
    for taps in itertools.product(*[range(len(places)) for places, _ in lines]):
        inside, at = None, 0
        for (places, _), k, n in zip(lines, taps, sizes):
            here = (places[k] >= 0) & (places[k] <= n - 1)
            inside = here if inside is None else inside & here
            at = at * n + fused.where(here, places[k], 0).to(tg.int64)

        def weight(orders, taps=taps):
            return math.prod(weights[order][k] for (_, weights), order, k in zip(lines, orders, taps))

        yield at.reshape(at.shape[0], 1, -1), inside.unsqueeze(1), weight


def _along(weight, tangent, dims, *by):
    """The slope of a corner's weight along the tangent of the grid, and by one more of its coordinates."""
    total = None
    for d in range(dims):
        orders = [(e == d) + sum(e == f for f in by) for e in range(dims)]
        total = plus(total, weight(orders) * tangent[..., dims - 1 - d])
    return total


def _at(x, places, inside):
    """x (N, C, ...) at places of its planes; zeros outside."""
    n, channels = x.shape[:2]
    found = x.reshape(n, channels, -1).gather(2, places.expand(n, channels, -1))
    return fused.where(inside, found.reshape(n, channels, *inside.shape[2:]), 0.0)


@rounded_once
def _turned(input, grid, tangent, *how):
    """How what is read changes along a tangent of the grid."""
    total = None if how[0] != "nearest" else input.new_zeros((*input.shape[:2], *grid.shape[1:-1]))
    for places, inside, weight in [] if how[0] == "nearest" else _corners(grid, list(input.shape[2:]), *how):
        by = _along(weight, tangent, grid.shape[-1]).unsqueeze(1)
        total = plus(total, _at(input, places, inside) * by)
    return total


@rounded_once
def _turned_back(grad_output, grid, size, tangent, *how):
    """The transpose of _turned in its input."""
    n, channels = grad_output.shape[:2]
    total = grad_output.new_zeros((n, channels, math.prod(size)))
    for places, inside, weight in [] if how[0] == "nearest" else _corners(grid, size, *how):
        by = _along(weight, tangent, len(size)).unsqueeze(1)
        each = fused.where(inside, grad_output * by, 0.0).reshape(n, channels, -1)
        total = total.scatter_add(2, places.expand(n, channels, -1), each)
    return total.reshape(n, channels, *size)


@rounded_once
def _turned_twice(grad_output, input, grid, tangent, *how):
    """How the gradient by grid changes along a tangent of the grid."""
    dims, sums = grid.shape[-1], [None] * grid.shape[-1]
    if how[0] == "nearest":
        return tg.zeros_like(grid)
    for places, inside, weight in _corners(grid, list(input.shape[2:]), *how):
        dot = (grad_output * _at(input, places, inside)).sum(1)
        for d in range(dims):
            sums[d] = plus(sums[d], dot * _along(weight, tangent, dims, d))
    return tg.stack(sums[::-1], -1)


# ---- for the tests -------------------------------------------------------------------------------------------------


def _np_line(x, n, mode, padding, align):
    """(places, weights, slopes) of one dimension, each of (taps, points)."""
    import numpy as np

    scale = (n - 1) / 2 if align else n / 2
    p = (x + 1) * scale if align else ((x + 1) * n - 1) / 2
    low, span = (0, n - 1) if align else (-0.5, n)

    def bounded(p):
        inside = low + abs((p - low + span) % (2 * span) - span) if padding == "reflection" and n > 1 else p
        return p if padding == "zeros" else inside.clip(0, n - 1)

    step = 1e-6  # slopes are differences: polynomials of third degree at most, in double precision
    point = (lambda p: p) if mode == "bicubic" else bounded
    first = np.round(point(p)) if mode == "nearest" else np.floor(point(p))
    taps = {"nearest": [0], "bilinear": [0, 1], "bicubic": [-1, 0, 1, 2]}[mode]
    places = np.stack([bounded(first + k) if mode == "bicubic" else first + k for k in taps])

    def weights(p):
        t = point(p) - first
        return np.stack({"nearest": lambda t: [t * 0 + 1], "bilinear": lambda t: [1 - t, t], "bicubic": cubic}[mode](t))

    return places, weights(p), (weights(p + step) - weights(p - step)) / (2 * step) * scale


def _np_matrix(grid, sizes, how, by=None):
    """(images, points, elements of a plane): the weights, or their slopes by a coordinate of the grid."""
    import numpy as np

    n, dims, size = len(grid), len(sizes), math.prod(sizes)
    grid = grid.reshape(n, -1, dims).astype(np.float64)
    matrix = np.zeros((n, grid.shape[1], size))
    for i, j in np.ndindex(*matrix.shape[:2]):
        lines = [_np_line(grid[i, j, dims - 1 - d], s, *how) for d, s in enumerate(sizes)]
        for taps in itertools.product(*[range(len(line[0])) for line in lines]):
            at = [int(line[0][k]) for line, k in zip(lines, taps)]
            if all(0 <= a < s for a, s in zip(at, sizes)):
                parts = [line[2 if by == dims - 1 - d else 1][k] for d, (line, k) in enumerate(zip(lines, taps))]
                matrix[i, j, np.ravel_multi_index(at, sizes)] += math.prod(parts)
    return matrix


def _np_read(x, grid, *how):
    found = x.reshape(*x.shape[:2], -1) @ _np_matrix(grid, x.shape[2:], how).swapaxes(1, 2)
    return found.reshape(*x.shape[:2], *grid.shape[1:-1])


def _np_to_input(grad, grid, size, *how):
    return (grad.reshape(*grad.shape[:2], -1) @ _np_matrix(grid, size, how)).reshape(*grad.shape[:2], *size)


def _np_to_grid(grad, x, grid, *how):
    import numpy as np

    flat, grad = x.reshape(*x.shape[:2], -1), grad.reshape(*x.shape[:2], -1)
    slopes = [_np_matrix(grid, x.shape[2:], how, by) for by in range(grid.shape[-1])]
    return np.stack([(grad * (flat @ s.swapaxes(1, 2))).sum(1) for s in slopes], -1).reshape(grid.shape)


def _ways(make):
    """(input, grid, how, like what is read)."""
    yield make(2, 2, 3, 4), make(2, 2, 3, 2), ("bilinear", "zeros", False), make(2, 2, 2, 3)
    yield make(1, 1, 3, 4), make(1, 2, 2, 2, low=-1.3, high=1.3), ("bilinear", "border", True), make(1, 1, 2, 2)
    yield make(1, 1, 3, 4), make(1, 2, 2, 2, low=-1.7, high=1.7), ("bilinear", "reflection", False), make(1, 1, 2, 2)
    yield make(1, 1, 5, 4), make(1, 2, 2, 2), ("bicubic", "reflection", True), make(1, 1, 2, 2)
    yield make(1, 1, 5, 4), make(1, 2, 2, 2), ("nearest", "zeros", False), make(1, 1, 2, 2)
    yield make(1, 1, 2, 3, 2), make(1, 2, 1, 2, 3), ("bilinear", "zeros", True), make(1, 1, 2, 1, 2)


# ---- records of the kernels ----------------------------------------------------------------------------------------


def _folded(name, tensors):
    """Under vmap the batch is more images."""

    def rule(b, *args):
        whole = [b.whole(a) for a in args[:tensors]]
        images = whole[0].shape[1]
        flat = [t.reshape((t.shape[0] * t.shape[1], *t.shape[2:])) for t in whole]
        found = getattr(fused, name)(*flat, *args[tensors:])
        return found.reshape((b.size, images, *found.shape[1:]))

    return rule


_HOW = "str mode, str padding_mode, bool align) -> Tensor"


def _read_forward(input, input_tangent, grid, grid_tangent, mode, padding_mode, align):
    how, total = (mode, padding_mode, align), None
    if input_tangent is not None:
        total = fused._grid_sample(input_tangent, grid, *how)
    return total if grid_tangent is None else plus(total, _turned(input, grid, grid_tangent, *how))


def _to_input_forward(grad_output, grad_output_tangent, grid, grid_tangent, size, mode, padding_mode, align):
    how, total = (mode, padding_mode, align), None
    if grad_output_tangent is not None:
        total = fused._grid_sample_to_input(grad_output_tangent, grid, size, *how)
    return total if grid_tangent is None else plus(total, _turned_back(grad_output, grid, size, grid_tangent, *how))


def _to_grid_forward(
    grad_output, grad_output_tangent, input, input_tangent, grid, grid_tangent, mode, padding_mode, align
):
    how, total = (mode, padding_mode, align), None
    if grad_output_tangent is not None:
        total = fused._grid_sample_to_grid(grad_output_tangent, input, grid, *how)
    if input_tangent is not None:
        total = plus(total, fused._grid_sample_to_grid(grad_output, input_tangent, grid, *how))
    return total if grid_tangent is None else plus(total, _turned_twice(grad_output, input, grid, grid_tangent, *how))


_KERNELS = {"variants": "function", "where": "_fused", "domain": (-0.9, 0.9)}

op(
    f"aten::_grid_sample(Tensor input, Tensor grid, {_HOW}",
    kernel="grid_sample",
    batch=_folded("_grid_sample", 2),
    jvp=_read_forward,
    samples=lambda make: [Sample(x, grid, *how) for x, grid, how, _ in _ways(make)],
    reference=_np_read,
    grad={
        "input": lambda grad, input_shape, grid, mode, padding_mode, align: fused._grid_sample_to_input(
            grad, grid, list(input_shape[2:]), mode, padding_mode, align
        ),
        "grid": lambda grad, input, grid, mode, padding_mode, align: fused._grid_sample_to_grid(
            grad, input, grid, mode, padding_mode, align
        ),
    },
    doc="grid_sample of floats, without defaults.",
    **_KERNELS,
)

op(
    f"aten::_grid_sample_to_input(Tensor grad_output, Tensor grid, int[] size, {_HOW}",
    kernel="grid_sample_to_input",
    batch=_folded("_grid_sample_to_input", 2),
    jvp=_to_input_forward,
    samples=lambda make: [Sample(read, grid, tuple(x.shape[2:]), *how) for x, grid, how, read in _ways(make)],
    reference=_np_to_input,
    grad={
        "grad_output": lambda grad, grid, mode, padding_mode, align: fused._grid_sample(
            grad, grid, mode, padding_mode, align
        ),
        "grid": lambda grad, grad_output, grid, mode, padding_mode, align: fused._grid_sample_to_grid(
            grad_output, grad, grid, mode, padding_mode, align
        ),
    },
    doc="The gradient of grid_sample by its input, whose images have `size`.",
    **_KERNELS,
)

op(
    f"aten::_grid_sample_to_grid(Tensor grad_output, Tensor input, Tensor grid, {_HOW}",
    kernel="grid_sample_to_grid",
    batch=_folded("_grid_sample_to_grid", 3),
    jvp=_to_grid_forward,
    samples=lambda make: [Sample(read, x, grid, *how) for x, grid, how, read in _ways(make)],
    reference=_np_to_grid,
    grad={
        "grad_output": lambda grad, input, grid, mode, padding_mode, align: _turned(
            input, grid, grad, mode, padding_mode, align
        ),
        "input": lambda grad, grad_output, input_shape, grid, mode, padding_mode, align: _turned_back(
            grad_output, grid, list(input_shape[2:]), grad, mode, padding_mode, align
        ),
        "grid": lambda grad, grad_output, input, grid, mode, padding_mode, align: _turned_twice(
            grad_output, input, grid, grad, mode, padding_mode, align
        ),
    },
    doc="The gradient of grid_sample by its grid.",
    **_KERNELS,
)

# ---- the public op -------------------------------------------------------------------------------------------------


@rounded_once
def _grid_sample(input, grid, mode, padding_mode, align_corners):
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0: "
            "say align_corners",
            stacklevel=3,
        )
    return fused._grid_sample(input, grid, mode, padding_mode, bool(align_corners))


op(
    'aten::grid_sample(Tensor input, Tensor grid, str mode="bilinear", str padding_mode="zeros", bool? '
    "align_corners=None)"
    " -> Tensor",
    compose=_grid_sample,
    types="float",
    variants="function",
    where="nn.functional",
    domain=((-2, 2), (-0.9, 0.9)),
    samples=lambda make: [
        Sample(make(2, 2, 3, 4), make(2, 2, 3, 2), align_corners=False),
        Sample(make(1, 1, 3, 4), make(1, 2, 2, 2, low=-1.3, high=1.3), "bilinear", "border", True),
        Sample(make(1, 1, 3, 4), make(1, 2, 2, 2, low=-1.7, high=1.7), "bilinear", "reflection", False),
        Sample(make(1, 1, 5, 4), make(1, 2, 2, 2), "bicubic", "zeros", False),
        Sample(make(1, 1, 5, 4), make(1, 2, 2, 2), "nearest", "zeros", False),
        Sample(make(1, 1, 2, 3, 2), make(1, 2, 1, 2, 3), align_corners=True),
    ],
    errors=[
        (
            lambda: _grid_sample(zeros(1, 1, 2, 2), zeros(1, 2, 2, 3), "bilinear", "zeros", True),
            RuntimeError,
            "grid_sampler()",
        ),
        (
            lambda: _grid_sample(zeros(1, 1, 2, 2), zeros(1, 2, 2, 2), "linear", "zeros", True),
            ValueError,
            "expected mode",
        ),
    ],
    doc="Images (N, C, H, W) read at the points of a grid (N, h, w, 2) from -1 to 1, x before y, or volumes "
    "at (N, d, h, w, 3); "
    "padding_mode says what lies outside.",
)
