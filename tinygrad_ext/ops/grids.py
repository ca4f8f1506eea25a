"""Images read at the points of a grid, and the grids of affine maps."""

import warnings

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.resize import cubic
from tinygrad_ext.ops.samples import Sample, zeros


def _affine_grid(theta, size, align_corners):
    size = list(size)
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got "
            f"size {size}."
        )
    if not theta.is_floating_point():
        raise TypeError(f"affine_grid: Expected theta to have floating point type, but got {theta.dtype}")
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got "
            f"{list(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    spread = []
    for n in size[2:]:
        line = tg.linspace(-1, 1, n, dtype=theta.dtype, device=theta.device) if n > 1 else theta.new_zeros(1)
        spread.append(line if align_corners or n == 1 else line * ((n - 1) / n))
    axes = list(tg.meshgrid(*spread, indexing="ij"))[::-1]
    base = tg.stack([*axes, axes[0].new_ones(axes[0].shape)], -1).reshape(1, -1, dims + 1)
    return (base @ theta.transpose(1, 2)).reshape(size[0], *size[2:], dims)


op(
    "aten::affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor",
    compose=_affine_grid,
    types="float",
    variants="function",
    where="nn.functional",
    samples=lambda make: [
        Sample(make(2, 2, 3), (2, 1, 3, 4), align_corners=False),
        Sample(make(1, 2, 3), (1, 1, 2, 1), align_corners=True),
        Sample(make(1, 3, 4), (1, 1, 2, 3, 2), align_corners=False),
    ],
    errors=[
        (lambda: _affine_grid(zeros(1, 2, 3), (1, 1, 2), False), NotImplementedError, "only supports 4D and 5D sizes")
    ],
    doc="The grid of points that grid_sample takes, for affine maps theta (N, 2, 3) or (N, 3, 4) and an output size.",
)


def _reflected(x, low, high):
    """x, mirrored at both edges until it lies between them."""
    if high == low:
        return x * 0
    span = high - low
    turn = (x - low).abs()
    rest = turn.fmod(span)
    flips = (turn / span).floor()
    return fused.where(flips.remainder(2) == 0, rest + low, span - rest + low)


def _bounded(x, size, padding_mode, align):
    if padding_mode == "reflection":
        x = _reflected(x, 0.0, size - 1.0) if align else _reflected(x, -0.5, size - 0.5)
    return x if padding_mode == "zeros" else x.clamp(0, size - 1)


def _read(x, places, sizes):
    """x (N, C, ...) at places (lists of whole-number coordinates, slowest first); zeros outside."""
    inside, at = None, 0
    for p, n in zip(places, sizes):
        here = (p >= 0) & (p <= n - 1)
        inside = here if inside is None else inside & here
        at = at * n + fused.where(here, p, 0).to(tg.int64)
    n, channels = x.shape[:2]
    flat = x.reshape(n, channels, -1).gather(2, at.reshape(n, 1, -1).expand(n, channels, -1))
    return flat.reshape(n, channels, *at.shape[1:]) * inside.unsqueeze(1).to(x.dtype)


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
    dims = input.dim() - 2
    if dims not in (2, 3) or grid.dim() != input.dim() or grid.shape[-1] != dims or grid.shape[0] != input.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions and batch "
            "size, and a grid whose "
            f"last dimension counts the spatial ones, but got input with sizes {list(input.shape)} and grid with sizes "
            f"{list(grid.shape)}"
        )
    if mode == "bicubic" and dims == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0: "
            "say align_corners",
            stacklevel=3,
        )
    align, sizes = bool(align_corners), list(input.shape[2:])
    points = [grid[..., dims - 1 - d] for d in range(dims)]
    points = [(p + 1) * ((n - 1) / 2) if align else ((p + 1) * n - 1) / 2 for p, n in zip(points, sizes)]
    if mode == "bicubic":
        return _grid_cubic(input, points, sizes, padding_mode, align)
    points = [_bounded(p, n, padding_mode, align) for p, n in zip(points, sizes)]
    if mode == "nearest":
        return _read(input, [p.round() for p in points], sizes)
    low = [p.floor().detach() for p in points]
    total = None
    for corner in range(2**dims):
        places, weight = [], None
        for d, (p, first) in enumerate(zip(points, low)):
            far = corner >> d & 1
            part = p - first if far else first + 1 - p
            places.append(first + far)
            weight = part if weight is None else weight * part
        term = _read(input, places, sizes) * weight.unsqueeze(1)
        total = term if total is None else total + term
    return total


def _grid_cubic(input, points, sizes, padding_mode, align):
    low = [p.floor().detach() for p in points]
    (rows, columns), total = [cubic(p - first) for p, first in zip(points, low)], None
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            places = [first + k - 1 for first, k in zip(low, (i, j))]
            places = [_bounded(p, n, padding_mode, align) for p, n in zip(places, sizes)]
            term = _read(input, places, sizes) * (row * column).unsqueeze(1)
            total = term if total is None else total + term
    return total


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
