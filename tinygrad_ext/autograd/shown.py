"""What `Tensor.set_` leaves behind where its source asks for a gradient: a node that says that there is none."""

from tinygrad_ext.autograd.function import Function


class Set(Function):
    """Shows the memory of a source from now on; that no gradient goes there is told when one arrives."""

    @staticmethod
    def forward(ctx, self, source, shown):
        self.data = shown
        ctx.mark_dirty(self)
        return self

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("derivative for set_ is not implemented: no gradient reaches its source, detach() it")
