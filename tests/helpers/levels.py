"""Levels, and a Function, that tests look at programs with."""

import tinygrad_ext as tg
from tinygrad_ext.overrides import Level, Observer


class Recorder(Observer):
    """Notes operations; what it passes is opened when it is a composite."""

    def __init__(self, passes=False):
        self.passes, self.seen = passes, []

    def process(self, operation, args):
        self.seen.append((operation, args))
        return NotImplemented if self.passes else operation(*args)

    @property
    def names(self):
        return [operation.name for operation, _ in self.seen]


class Box(Level):
    """Carries tensors as they are; works out every operation on what it holds."""

    def wrap(self, tensor):
        return self.carry(tensor, tensor.shape, tensor.dtype)

    def unwrap(self, value):
        return value.value if getattr(value, "level", None) is self else value

    def process(self, operation, args):
        flat = [[self.unwrap(v) for v in a] if isinstance(a, (list, tuple)) else self.unwrap(a) for a in args]
        result = operation(*flat)
        return self.wrap(result) if isinstance(result, tg.Tensor) else result


class Cube(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x, *, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * ctx.scale * x**2, None
