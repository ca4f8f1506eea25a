"""Arithmetic of shapes, without tensors."""

from collections.abc import Sequence

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.core.data.dtype import Size

__all__ = ["broadcast_shapes"]


@_boundary
def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to.

    Args:
        shapes: tuples or lists of sizes; an int stands for one dimension.

    Raises RuntimeError where they do not broadcast, ValueError for a negative size, TypeError for what is no int.

        >>> import tinygrad_ext as tg
        >>> tg.broadcast_shapes((2, 1), (3,), 1)
        torch.Size([2, 3])
    """
    shapes = [_as_sizes(shape) for shape in shapes]
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for place, shape in enumerate(shapes):
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] == 1 or shape[i] == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(
                    f"broadcast_shapes(): Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching "
                    f"argument at index {place} had {shape}; but expected shape should be broadcastable to {result}"
                )
            result[i] = shape[i]
    return Size(result)


def _as_sizes(shape):
    """A shape as a tuple of ints that are not negative."""
    if type(shape) is Size:
        return shape
    if not isinstance(shape, Sequence) and not hasattr(shape, "__index__"):
        raise RuntimeError(
            f"broadcast_shapes(): Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}"
        )
    shape = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    for i, size in enumerate(shape):
        if not hasattr(size, "__index__"):
            raise TypeError(f"broadcast_shapes(): a shape takes ints, item {i} of {shape} is {type(size).__name__}")
        if size.__index__() < 0:
            raise ValueError(
                f"broadcast_shapes(): Attempting to broadcast a dimension with negative length! Got {shape}"
            )
    return tuple(size.__index__() for size in shape)
