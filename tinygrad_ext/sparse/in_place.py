"""What writes to a tensor of the layout sparse_coo, or a sparse tensor to a plain one, by the function's name."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.data.dtype import sparse_coo

from .coo import SparseTensor
from .handlers import HANDLERS, add, handler


@handler("add_", "__iadd__")
def add_(self, other, *, alpha=1):
    """Sparse to plain: where something is stored. Sparse to sparse: what the other stores comes behind."""
    if not isinstance(self, SparseTensor):
        if self.shape != other.shape:
            raise RuntimeError(
                f"add_(): expected a sparse tensor of self's size {list(self.shape)}, but got {list(other.shape)}"
            )
        places, values, _ = other._parts
        if other.sparse_dim() == 1:
            return self.index_add_(0, places[0], values, alpha=alpha)
        return self.index_put_(tuple(places.unbind(0)), values if alpha == 1 else values * alpha, accumulate=True)
    if not isinstance(other, SparseTensor):
        raise RuntimeError(
            "add_(): add(sparse, dense) is not supported. Use add(dense, sparse) instead: what is stored of a sparse "
            "tensor cannot take up a plain one"
        )
    found = add(self, other, alpha=alpha)
    if self.layout is not sparse_coo:
        return HANDLERS["copy_"](self, found.to_sparse(layout=self.layout))
    # a sum over many steps stays no longer than twice the number of places
    self._parts = (found.coalesce() if found._nnz() > 2 * math.prod(self.shape[: self.sparse_dim()]) else found)._parts
    return self


@handler("sub_", "__isub__")
def sub_(self, other, *, alpha=1):
    """As `add_`."""
    return add_(self, other, alpha=-alpha)


def _on_values(name, once):
    """The method of that name of the values; once: after what stands in one place was added up."""

    def call(self, *args, **kwargs):
        if not isinstance(self, SparseTensor) or any(isinstance(arg, tg.Tensor) and arg.dim() for arg in args):
            raise NotImplementedError(f"{name}(): tensors of the sparse layouts are written to with numbers only")
        indices, values, coalesced = (self.coalesce() if once and self.layout is sparse_coo else self)._parts
        getattr(values, name)(*args, **kwargs)
        self._parts = indices, values, coalesced
        return self

    return call


for _name in ["mul_", "multiply_", "neg_", "negative_"]:
    HANDLERS[_name] = _on_values(_name, once=False)
for _name in ["div_", "divide_", "true_divide_", "abs_", "sqrt_", "square_", "sign_"]:
    HANDLERS[_name] = _on_values(_name, once=True)
HANDLERS.update(__imul__=HANDLERS["mul_"], __itruediv__=HANDLERS["div_"])


@handler("clamp_", "clip_")
def clamp_(self, min=None, max=None):
    """Between two numbers on either side of zero, which so stays what it is."""
    if (min is not None and min > 0) or (max is not None and max < 0):
        raise RuntimeError(f"clamp_(): zero must lie within the range of a sparse tensor, but got {min} to {max}")
    return _on_values("clamp_", once=True)(self, min, max)


@handler("detach_")
def detach_(self):
    """Cut the values off their history."""
    self._parts = self._parts[0], self._parts[1].detach(), self._parts[2]
    return self
