"""Grids of affine maps, for grid_sample."""

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
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
