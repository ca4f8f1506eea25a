"""Tensor methods in Python that are no ops."""

from tinygrad_ext import interop
from tinygrad_ext.core.tensor import Tensor, set_slot


def install():
    """Put them on Tensor."""
    set_slot("iter", lambda t: iter(t.unbind(0)))
    for name, fn in {**_METHODS, **interop.METHODS}.items():
        setattr(Tensor, name, fn)


def _reversed_dims(self):
    """All dimensions in the opposite order: the transpose of a matrix."""
    if self.dim() == 2:
        return self.t()
    import warnings

    warnings.warn(f"The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated: this one has "
                  f"{self.dim()}. Consider `x.mT` to transpose batches of matrices, or permute.", UserWarning, stacklevel=2)
    return self.permute(tuple(range(self.dim() - 1, -1, -1)))


def _matrix_transpose(self):
    """The last two dimensions exchanged."""
    if self.dim() == 1:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor. "
                           "A vector has no transpose; unsqueeze it first.")
    return self.transpose(-2, -1)


_METHODS = {
    "T": property(_reversed_dims),
    "mT": property(_matrix_transpose),
    "is_complex": lambda self: self.dtype.is_complex,
    "is_floating_point": lambda self: self.dtype.is_floating_point,
    "is_signed": lambda self: self.dtype.is_signed,
    "is_cuda": property(lambda self: False),
    "is_meta": property(lambda self: self.device.type == "meta"),
}
