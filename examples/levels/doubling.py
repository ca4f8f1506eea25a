"""The smallest transform: the result of every operation on one of its values is doubled.

Nested, the outer one doubles the sum, and the doubling too that the inner one does.

    >>> import tinygrad_ext as tg
    >>> twice = doubled(lambda x: x + 1)
    >>> twice(tg.ones(2))
    tensor([4., 4.])
    >>> doubled(twice)(tg.ones(2))
    tensor([16., 16.])
"""

from tinygrad_ext import Tensor
from tinygrad_ext.overrides import Level


class Doubling(Level):
    """Doubles what operations return when they are given a value of this level."""

    def process(self, operation, args):
        result = operation(*map(self.unwrap, args))
        return self.wrap(result * 2) if isinstance(result, Tensor) else result

    def wrap(self, tensor):
        return self.carry(tensor, tensor.shape, tensor.dtype)

    def unwrap(self, value):
        return value.value if getattr(value, "level", None) is self else value


def doubled(function):
    """function with every operation on its arguments doubled."""

    def run(*tensors):
        with Doubling() as level:
            return level.unwrap(function(*map(level.wrap, tensors)))

    return run
