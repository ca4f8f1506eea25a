"""`Tensor.storage()`: the memory behind a tensor as numbers of its dtype, one after the other."""

from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.data.dtype import get_default_dtype
from tinygrad_ext.core.data.tensor import Tensor


class TypedStorage:
    """The elements of a tensor's whole memory, which the tensor may show a part of; deprecated in favour of bytes.

    Args:
        content: the tensor to show the memory of, the number of elements of a new one, not set, or a sequence of them.
        wrap_storage: an UntypedStorage to show instead.
        dtype: of the elements where no tensor says it, the default dtype if left out.
    """

    __slots__ = ("_shown",)

    def __init__(self, content=0, *, wrap_storage=None, dtype=None, device=None):
        tensor = content
        if not isinstance(content, Tensor):
            tensor = _made(content, wrap_storage, dtype or get_default_dtype(), device)
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

    def clone(self):
        """Another one with the same numbers."""
        return TypedStorage(self._shown.clone())

    def copy_(self, source, non_blocking=None):
        """Write the numbers of another one of as many."""
        self._shown.copy_(source._shown)
        return self

    def fill_(self, value):
        """Write one number to all places."""
        self._shown.fill_(value)
        return self

    def type(self, dtype=None):
        """The name of the legacy type of tensors of this kind; a copy of another dtype where one is given."""
        return self._shown.type() if dtype is None else TypedStorage(self._shown.to(dtype))

    def is_shared(self):
        """Whether other processes may share the memory."""
        return self.untyped().is_shared()

    def __repr__(self):
        return f"[TypedStorage of {self.dtype} and size {len(self)}]"


def _made(count, wrap_storage, dtype, device):
    """The tensor behind a storage that is not made of one."""
    empty = functions["empty"](0 if wrap_storage is not None or not isinstance(count, int) else count, dtype=dtype)
    if device is not None and str(device) != "cpu":
        raise NotImplementedError(f"TypedStorage: new memory is made on the cpu, not on {device}")
    if wrap_storage is not None:
        return empty.set_(wrap_storage)
    if isinstance(count, int):
        return empty
    return empty.new_tensor(list(count), dtype=dtype)
