"""x * w + b as an autograd.Function, in each of the three styles."""

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function


def point(*values):
    return tg.tensor(list(values), dtype=tg.float64, requires_grad=True)


class Affine(Function):
    """x * w + b, ctx style."""

    @staticmethod
    def forward(ctx, x, w, b=None):
        ctx.save_for_backward(x, w)
        return x * w if b is None else x * w + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x, g if ctx.needs_input_grad[2] else None


class AffineSeparate(Function):
    """The same with setup_context, and a dict of gradients."""

    @staticmethod
    def forward(x, w, *, b=None):
        return x * w if b is None else x * w + b

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, b = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return {"x": g * w, "w": g * x, "b": g if ctx.needs_input_grad[2] else None}


class AffineLegacy(Function):
    """The same on instances."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def forward(self, x, w, b=None):
        self.save_for_backward(x, w)
        return (x * w if b is None else x * w + b) * self.scale

    def backward(self, g):
        x, w = self.saved_tensors
        g = g * self.scale
        return g * w, g * x, g if self.needs_input_grad[2] else None


STYLES = {
    "ctx": Affine.apply,
    "setup_context": lambda x, w, b=None: AffineSeparate.apply(x, w, b=b),
    "legacy": AffineLegacy(2.0),
}
