"""Adaptive pooling of volumes. The kernel is that of images; here the sizes are read, in PyTorch's words."""

from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops import batching_layers, forward
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.pool import adaptive_rule, max_rule
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _samples(make):
    for shape, size in (
        ((2, 2, 3, 2, 5), (2, 3, 2)),
        ((3, 4, 6, 3), 2),
        ((1, 2, 2, 3, 3), (5, 1, 4)),
        ((1, 2, 3, 4, 5), (None, 2, None)),
        ((0, 2, 4, 4, 4), 1),
    ):
        yield Sample(make.distinct(*shape), size)


def _errors(name):
    def call(shape, *size):
        def run():
            return functions["nn.functional." + name](zeros(*shape), *size)

        return run

    return [
        (call((5,), 2), RuntimeError, f"{name}(): Expected 4D or 5D tensor, but got: [5]"),
        (call((1, 2, 3, 4, 5, 6), 2), RuntimeError, "Expected 4D or 5D tensor"),
        (call((1, 2, 3, 4, 5), (2, 2)), RuntimeError, "output_size must be 3"),
        (call((1, 2, 3, 4, 5), -1), RuntimeError, "must be greater than or equal to 0"),
        (call((1, 2, 3, 4, 5), 1 << 40), RuntimeError, "below 2**31"),
        (call((1, 2, 3, 4, 5), 1.5), TypeError, "argument 'output_size' (position 2) must be tuple of ints"),
        (call((1, 2, 3, 4, 5), (1, "a", 1)), TypeError, "found element of type str at pos 1"),
        (call((1, 2, 0, 4, 5), 1), RuntimeError, "Expected input to have non-zero size for non-batch dimensions"),
    ]


def _out_sizes(name, shape, output_size):
    """Three sizes from a number or three of them; None keeps the input's."""
    listed = isinstance(output_size, (tuple, list))
    if len(shape) <= 3 and listed:
        raise ValueError(
            f"Input dimension should be at least 4, got {len(shape)}: {name}() takes (N, C, D, H, W) or "
            f"(C, D, H, W), this one is {list(shape)}"
        )
    if len(shape) not in (4, 5):
        raise RuntimeError(
            f"{name}(): Expected 4D or 5D tensor, but got: {list(shape)}. The input is (C, D, H, W) or (N, C, D, H, W)."
        )
    given = output_size if listed else (output_size,) * 3
    if len(given) != 3:
        raise RuntimeError(f"{name}: output_size must be 3: one number, or 3 numbers, got {len(given)}")
    return [
        kept if size is None and listed else _size(name, i, size)
        for i, (size, kept) in enumerate(zip(given, shape[-3:]))
    ]


def _size(name, place, size):
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(
            f"{name}(): argument 'output_size' (position 2) must be tuple of ints, but found element of type "
            f"{type(size).__name__} at pos {place}"
        )
    size = size.__index__()
    if size < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {size}; a result would "
            "have a negative dimension"
        )
    if size > 1 << 31:
        raise RuntimeError(f"{name}: output_size={size} is out of range: it must be below 2**31")
    return size


def _check_not_empty(name, shape):
    for place in range(1, len(shape)):  # the first is the batch, or channels of which there are none
        if shape[place] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {place} being empty"
            )


def _sizes(name, self, output_size):
    shape = tuple(self.shape)
    sizes = _out_sizes(name, shape, output_size)
    _check_not_empty(name, shape)
    return sizes


@rounded_once
def _mean(self, output_size):
    return fused._adaptive_avg_pool3d(self, _sizes("adaptive_avg_pool3d", self, output_size))


@rounded_once
def _largest(self, output_size):
    return fused._adaptive_max_pool3d(self, _sizes("adaptive_max_pool3d", self, output_size))


def _maybe_indices(self, output_size, return_indices):
    values, places = _largest(self, output_size)
    return (values, places) if return_indices else values


def _private(make):
    yield Sample(make.distinct(2, 2, 3, 2, 5), (2, 3, 2))
    yield Sample(make.distinct(3, 4, 6, 3), (5, 1, 4))


op(
    "aten::_adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
    batch=batching_layers.pool("_adaptive_avg_pool3d", 3),
    kernel="adaptive_avg_pool3d",
    variants="function",
    where="_fused",
    samples=_private,
    grad=adaptive_rule(3),
    jvp="linear",
    doc="adaptive_avg_pool3d to three sizes.",
)

op(
    "aten::_adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor values, Tensor indices)",
    batch=batching_layers.pool("_adaptive_max_pool3d", 3),
    kernel="adaptive_max_pool3d",
    variants="function",
    where="_fused",
    samples=_private,
    grad=max_rule(3),
    jvp=forward.pooled(3),
    doc="adaptive_max_pool3d_with_indices to three sizes.",
)

op(
    "aten::adaptive_avg_pool3d(Tensor self, Any output_size) -> Tensor",
    compose=_mean,
    types="float",
    variants="function",
    where="nn.functional",
    samples=_samples,
    errors=_errors("adaptive_avg_pool3d"),
    doc="Mean of each of output_size windows that cover the volume evenly; None keeps a size. The input is "
    "(N, C, D, H, W) or (C, D, H, W).",
)

op(
    "aten::adaptive_max_pool3d_with_indices(Tensor self, Any output_size) -> (Tensor values, Tensor indices)",
    compose=_largest,
    types="float",
    variants="function",
    where="nn.functional",
    samples=_samples,
    doc="Largest element of each of output_size windows that cover the volume evenly, and its place. A place is the "
    "number of an element in its volume.",
)

op(
    "aten::adaptive_max_pool3d.return_indices(Tensor self, Any output_size, bool return_indices=False) -> Tensor",
    compose=_maybe_indices,
    types="float",
    variants="function",
    where="nn.functional",
    samples=_samples,
    errors=_errors("adaptive_max_pool3d"),
    doc="Largest element of each of output_size windows that cover the volume evenly; with return_indices also its "
    "place. None keeps a size.",
)
