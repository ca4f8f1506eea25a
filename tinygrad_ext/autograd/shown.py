"""What `Tensor.set_` leaves behind where gradients are asked for: a node that says that there are none."""

from tinygrad_ext.autograd.function import Function


class Set(Function):
    """Shows the memory of a source from now on; that no gradient goes on from there is told when one arrives."""

    @staticmethod
    def forward(ctx, self, shown):
        self.data = shown
        ctx.mark_dirty(self)
        return self

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("derivative for set_ is not implemented: no gradient goes through it, detach() its tensors")
