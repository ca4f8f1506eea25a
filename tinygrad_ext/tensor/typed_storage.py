"""`Tensor.storage()`: the memory behind a tensor as numbers of its dtype, one after the other."""


class TypedStorage:
    """The elements of a tensor's whole memory, which the tensor may show a part of; deprecated in favour of bytes."""

    __slots__ = ("_shown",)

    def __init__(self, tensor):
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        lying = tensor._conj() if tensor.is_conj() else tensor
        lying = lying._neg_view() if tensor.is_neg() else lying
        self._shown = lying.detach().as_strided((count,), (1,), 0)

    dtype = property(lambda self: self._shown.dtype)
    device = property(lambda self: self._shown.device)

    def __len__(self):
        return len(self._shown)

    size = __len__

    def __getitem__(self, at):
        found = self._shown[at]
        return found.tolist() if isinstance(at, slice) else found.item()

    def __setitem__(self, at, value):
        self._shown[at] = value

    def tolist(self):
        """The numbers as a list."""
        return self._shown.tolist()

    def data_ptr(self):
        """Address of the first byte."""
        return self.untyped().data_ptr()

    def element_size(self):
        """Bytes of a number."""
        return self._shown.element_size()

    def nbytes(self):
        """Bytes of all numbers."""
        return len(self) * self.element_size()

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def untyped(self):
        """The same memory as bytes."""
        return self._shown.untyped_storage()

    def is_shared(self):
        """Whether other processes may share the memory."""
        return self.untyped().is_shared()

    def __repr__(self):
        return f"[TypedStorage of {self.dtype} and size {len(self)}]"
