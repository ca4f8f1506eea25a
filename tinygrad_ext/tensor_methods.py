"""Tensor methods in Python that are no ops."""

from tinygrad_ext.core.tensor import Tensor


def install():
    """Put them on Tensor."""
    for name, fn in _METHODS.items():
        setattr(Tensor, name, fn)


def _is_contiguous(self, memory_format=None):
    """Whether the elements lie in memory in row-major order without gaps."""
    expected = 1
    for size, stride in zip(reversed(self.shape), reversed(self.stride())):
        if size != 1 and stride != expected:
            return self.numel() == 0
        expected *= size
    return True


_METHODS = {
    "is_contiguous": _is_contiguous,
    "is_cuda": property(lambda self: False),
    "is_meta": property(lambda self: self.device.type == "meta"),
}
