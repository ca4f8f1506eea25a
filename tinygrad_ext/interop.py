"""Tensors and other libraries' arrays: NumPy, DLPack, the buffer protocol."""


def _numpy(self, *, force=False):
    """A NumPy array over the tensor's memory.

    force=True detaches, and copies where sharing is impossible.
    Raises RuntimeError for a tensor that requires grad, TypeError for a dtype NumPy has not.
    """
    global _asarray
    if _asarray is None:
        from numpy import asarray as _asarray
    if self.requires_grad:
        if not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        self = self.detach()
    if self.dtype.name == "bfloat16":
        raise TypeError("Got unsupported ScalarType BFloat16: NumPy has no such dtype. Convert first, for example with .float().")
    if self.is_meta:
        raise TypeError("can't convert meta device type tensor to numpy: it has no data. Make it on the cpu.")
    return _asarray(memoryview(self))


_asarray = None


def _array(self, dtype=None, copy=None):
    """What numpy.asarray(tensor) and numpy.array(tensor) call."""
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"unable to avoid copy: converting {array.dtype} to {dtype} needs one")
        return array.astype(dtype)
    return array.copy() if copy else array


METHODS = {
    "numpy": _numpy,
    "__array__": _array,
    "__array_priority__": 1000,
}
