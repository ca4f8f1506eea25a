"""A toy of vmap: functions of one sample applied to a batch, for pointwise ops and sums.

>>> import tinygrad_ext as tg
>>> batched(lambda row: (row * 2).sum())(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
tensor([ 6., 14.])
"""

from tinygrad_ext import Tensor
from tinygrad_ext.overrides import Level


class Batch(Level):
    """Carries tensors whose first dimension the program does not see."""

    def __init__(self, size):
        self.size = size

    def wrap(self, tensor):
        return self.carry(tensor, tensor.shape[1:], tensor.dtype)

    def owns(self, value):
        return getattr(value, "level", None) is self

    def whole(self, value):
        """The value with the batch in front, of an unbatched one too."""
        return value.value if self.owns(value) else value.expand(self.size, *value.shape)

    def process(self, operation, args):
        name, _, _ = operation.name.partition(".")
        if operation.composite:
            return NotImplemented
        if getattr(operation, "record", None) is not None and operation.record.scalar is not None:
            return self.pointwise(operation, args)
        if name == "aten::expand" and self.owns(args[0]):
            sizes = [*args[0].shape]
            inner = args[0].value.reshape([self.size, *[1] * (len(args[1]) - len(sizes)), *sizes])
            return self.wrap(inner.expand([self.size, *args[1]]))
        if operation.name == "aten::sum" and self.owns(args[0]):
            dims = list(range(1, args[0].value.dim()))
            return self.wrap(args[0].value.sum(dims) if dims else args[0].value)
        return NotImplemented

    def pointwise(self, operation, args):
        """Align the shapes behind the batch dimension, and let broadcasting do the rest."""
        rank = max(a.dim() for a in args if isinstance(a, Tensor))
        return self.wrap(operation(*(self.aligned(a, rank) if self.owns(a) else a for a in args)))

    def aligned(self, value, rank):
        sizes = value.value.shape
        return value.value.reshape([self.size, *[1] * (rank - value.dim()), *sizes[1:]])


def batched(function, in_dims=None):
    """function over the first dimension of the arguments; in_dims: 0 for those that have one, None for the others."""

    def run(*tensors):
        mapped = in_dims or (0,) * len(tensors)
        size = next(t.shape[0] for t, d in zip(tensors, mapped) if d == 0)
        with Batch(size) as level:
            result = function(*(level.wrap(t) if d == 0 else t for t, d in zip(tensors, mapped)))
            return level.whole(result)

    return run
