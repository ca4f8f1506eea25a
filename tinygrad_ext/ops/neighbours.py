"""Normalisation by neighbouring channels."""

from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _local_response_norm(input, size, alpha, beta, k):
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions): local_response_norm() takes "
            "(N, C, ...)"
        )
    if size < 1:
        raise RuntimeError(f"local_response_norm(): size must be positive, but got {size}: how many channels are taken")
    if input.numel() == 0:
        return input
    channels = input.shape[1]
    before, after = min(size // 2, channels), min((size - 1) // 2, channels)  # beyond are none
    squares = input.square().constant_pad_nd([0, 0] * (input.dim() - 2) + [before, after])
    total = squares.narrow(1, 0, channels)
    for i in range(1, before + 1 + after):
        total = total + squares.narrow(1, i, channels)
    whole = not (input.is_floating_point() or input.is_complex())
    mean = total.div(size, rounding_mode="floor") if whole else total / size  # integers: as PyTorch's average pool
    return input / (mean * alpha + k) ** beta


def _reference(x, size, alpha=1e-4, beta=0.75, k=1.0):
    import numpy as np

    squares, n, whole = x * x, x.shape[1], x.dtype.kind in "iu"
    sums = [squares[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1].sum(1) for c in range(n)]
    means = [s // size if whole else s / size for s in sums]
    return x / (k + alpha * np.stack(means, 1)) ** beta


op(
    "aten::local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Tensor",
    compose=_local_response_norm,
    variants="function",
    where="nn.functional",
    types="float",
    samples=lambda make: [
        Sample(make(2, 4, 3), 3, 0.5),
        Sample(make(1, 3, 2, 2), 2, alpha=0.3, beta=0.5, k=2.0),
        Sample(make(1, 2, 2), 5, 1.0),
    ],
    reference=_reference,
    errors=[
        (lambda: _call(zeros(2, 3), 2), ValueError, "Expected 3D or higher dimensionality input"),
        (lambda: _call(zeros(2, 3, 2), 0), RuntimeError, "size must be positive"),
    ],
    doc="input (N, C, ...) divided by (k + alpha m) ** beta, m the mean square of `size` neighbouring channels, zeros "
    "beyond the first and last.",
)


def _call(*args):
    return functions["nn.functional.local_response_norm"](*args)
