"""`Tensor.storage()`: the memory behind a tensor as numbers of its dtype, one after the other."""

import copy
import functools
from collections.abc import Sequence

from tinygrad_ext.core.call.elsewhere import class_name
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.data import storage as _storage
from tinygrad_ext.core.data.dtype import by_name, device, get_default_dtype
from tinygrad_ext.core.data.table import NAMED
from tinygrad_ext.core.data.tensor import Tensor

TITLES = {row.name: row.title for row in NAMED}


class TypedStorage:
    """The elements of a tensor's whole memory, which the tensor may show a part of; deprecated in favour of bytes.

    Args:
        content: the number of elements of a new one, which are not set, or a sequence of them.
        wrap_storage: an UntypedStorage to show instead.
        dtype: of the elements, the default dtype if left out.
        device: the cpu, or meta, where a storage has a size and no numbers.
    """

    __slots__ = ("_shown",)

    def __init__(self, content=0, *, wrap_storage=None, dtype=None, device=None):
        dtype = dtype or get_default_dtype()
        meta = require_place("TypedStorage", device)
        if wrap_storage is not None:
            self._shown = functions["empty"](0, dtype=dtype).set_(wrap_storage)
        elif (count := size_asked(content)) is not None or isinstance(content, bool):
            self._shown = functions["empty"](int(content) if count is None else count, dtype=dtype)
        elif isinstance(content, Sequence) and not isinstance(content, (str, bytes)):
            self._shown = functions["empty"](0, dtype=dtype).new_tensor(list(content), dtype=dtype).reshape(-1)
        else:
            raise TypeError(
                "TypedStorage(): argument 'content' must be a number of elements or a sequence of them, not "
                f"{class_name(content)}: storage() of a tensor shows what it has"
            )
        if meta and wrap_storage is None:
            self._shown = self._shown.to("meta")

    dtype = property(lambda self: self._shown.dtype)
    device = property(lambda self: self._shown.device)

    def __len__(self):
        return len(self._shown)

    size = __len__

    def __getitem__(self, at):
        found = self._there()[at]
        return found.tolist() if isinstance(at, slice) else found.item()

    def __setitem__(self, at, value):
        self._shown[at] = value

    def tolist(self):
        """The numbers as a list."""
        return self._there().tolist()

    def _there(self):
        if self._shown.is_meta:
            raise NotImplementedError("Not available for 'meta' device type: the storage has a size and no numbers")
        return self._shown

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
        return storage_shown(self._shown.clone())

    def copy_(self, source, non_blocking=None):
        """Write the bytes of another one, or of an UntypedStorage, of as many; RuntimeError for another count."""
        self.untyped().copy_(source)
        return self

    def fill_(self, value):
        """Write one number to all places."""
        self._shown.fill_(value)
        return self

    def type(self, dtype=None):
        """The name of the legacy type of this kind; a copy of another dtype where one is given."""
        if dtype is not None:
            return storage_shown(self._shown.to(dtype))
        return self._shown.type().replace("Tensor", "Storage") if self._shown.is_cpu else "torch.storage.TypedStorage"

    def is_shared(self):
        """Whether other processes may share the memory."""
        return self.untyped().is_shared()

    def share_memory_(self):
        """Move the memory, with all tensors over it, into one that other processes share."""
        self.untyped().share_memory_()
        return self

    def _share_fd_cpu_(self):
        return self.untyped()._share_fd_cpu_()

    _share_filename_cpu_ = _share_fd_cpu_

    def _write_file(self, *args):
        return self.untyped()._write_file(*args)

    def resizable(self):
        """Whether the memory is this library's, so that it may change its size."""
        return self.untyped().resizable()

    def resize_(self, size):
        """Another number of elements; see UntypedStorage.resize_."""
        memory = self.untyped()
        if self._shown.is_meta:
            self._shown = functions["empty"](size, dtype=self.dtype, device="meta")
            return self
        self._shown = functions["empty"](0, dtype=self.dtype)  # lets go of the memory, which may be another one then
        try:
            memory.resize_(size * self.element_size())
        finally:
            self._shown.set_(memory)
        return self

    def __iter__(self):
        return iter(self.tolist())

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self.untyped() == other.untyped()

    def __hash__(self):
        return hash(self.untyped())

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return TypedStorage(wrap_storage=copy.deepcopy(self.untyped(), memo), dtype=self.dtype)

    _untyped_storage = property(lambda self: self.untyped())
    _cdata = property(lambda self: self.untyped()._cdata)
    filename = property(lambda self: self.untyped().filename)
    is_cuda = property(lambda self: False)

    def cpu(self):
        """Itself: it is on the cpu. NotImplementedError on meta."""
        self.untyped().cpu()
        return self

    def _shown_as(self, dtype):
        if dtype not in (None, self.dtype):
            wanted, got = (TITLES.get(d.name, d.name) for d in (dtype, self.dtype))
            raise RuntimeError(
                f"Expected a Storage of type {wanted} or an UntypedStorage, but got {got}: convert the storage first"
            )
        return self._shown

    def _to(self, dtype):
        return storage_shown(self._shown.to(dtype))

    def __repr__(self):
        return f"[TypedStorage of {self.dtype} and size {len(self)}]"


for _name, _dtype in {
    **{name: name for name in ("bool", "double", "float", "half", "int", "long", "short", "bfloat16")},
    "byte": "uint8",
    "char": "int8",
    "complex_float": "complex64",
    "complex_double": "complex128",
}.items():
    setattr(TypedStorage, _name, functools.partialmethod(TypedStorage._to, by_name[_dtype]))


def storage_shown(tensor):
    """The whole memory behind a tensor, as numbers of its dtype."""
    made = TypedStorage.__new__(TypedStorage)
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    lying = tensor._conj() if tensor.is_conj() else tensor
    lying = lying._neg_view() if tensor.is_neg() else lying
    made._shown = lying.detach().as_strided((count,), (1,), 0)
    return made


# ---- what both kinds of storage ask of their arguments -------------------------------------------------------------


def require_place(name, place):
    """Whether new memory is asked for on meta. Refuse it anywhere else but on the cpu, where it is by default."""
    kind = "cpu" if place is None else device(place).type
    if kind not in ("cpu", "meta"):
        raise NotImplementedError(f"{name}: new memory is made on the cpu or on meta, not on {place}")
    return kind == "meta"


def size_asked(value):
    """The int that a size is, of Python or NumPy; None for a bool and for what is no int."""
    from numbers import Integral  # lazy: nothing else that the import brings needs it

    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def new_storage(value):
    """Memory of so many bytes, which are not set, or with the bytes of a sequence of ints."""
    if isinstance(value, Tensor) and value.dim() == 0:
        value = value.item()
    size = size_asked(value)
    if size is not None:
        if size < 0:
            raise RuntimeError(f"UntypedStorage: the number of bytes must not be negative, but is {size}")
        return _storage.empty_storage(size)
    # arrays and storages are read too, as all that has a length and items, but no tensor
    if isinstance(value, (Tensor, dict)) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        raise RuntimeError(
            f"UntypedStorage(): Expected a sequence type, but got {class_name(value)}: pass a number of "
            "bytes, or a sequence of ints"
        )
    for item in value:
        if not isinstance(item, int):
            raise RuntimeError(
                f"UntypedStorage(): tried to construct a storage from a sequence ({class_name(value)}), but one of the "
                f"items was of type {class_name(item)} instead of int"
            )
    return _storage.storage_of_bytes(bytes([item & 255 for item in value]))


def contiguous_place(at):
    """A place in a storage or a slice of it; RuntimeError for a slice that leaves bytes out."""
    if isinstance(at, slice) and at.step not in (None, 1):
        raise RuntimeError(
            f"UntypedStorage: Trying to slice with a step of {at.step}, but only a step of 1 is supported: "
            "tolist() gives the bytes as a list"
        )
    return at
