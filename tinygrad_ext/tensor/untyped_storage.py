"""The memory behind a tensor as bytes: `Tensor.untyped_storage()`."""

import sys

from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.call.construct import lender
from tinygrad_ext.core.call.elsewhere import class_name
from tinygrad_ext.core.data import storage as _storage
from tinygrad_ext.core.data.devices import copy_of
from tinygrad_ext.core.data.dtype import by_name, device, get_default_dtype
from tinygrad_ext.core.data.shared import block_of
from tinygrad_ext.tensor import sharing, unset
from tinygrad_ext.tensor.interop import from_numpy, frombuffer
from tinygrad_ext.tensor.typed_storage import TypedStorage, contiguous_place, new_storage, require_place


class UntypedStorage:
    """The block of memory behind a tensor, as bytes.

    Args:
        storage: the number of bytes of a new one, which are not set, or the bytes as a sequence of ints.
        device: the cpu, or meta, where a storage has a size and no bytes.
    """

    def __init__(self, storage=0, *, device=None):
        meta = require_place("UntypedStorage", device)
        self._storage = storage if isinstance(storage, _storage.Storage) else new_storage(storage)
        if meta:
            self._bytes, self._storage = self.nbytes(), None

    def new(self):
        """One of no bytes."""
        return UntypedStorage(device=self.device)

    def data_ptr(self):
        """Address of the first byte."""
        return _storage.storage_facts(self._storage)[0] if self._storage is not None else 0

    def nbytes(self):
        """Number of bytes."""
        return _storage.storage_facts(self._storage)[1] if self._storage is not None else self._bytes

    size = __len__ = nbytes

    @staticmethod
    def from_file(filename, shared=False, nbytes=0):
        """The first bytes of a file; written back to it where they are shared, which makes a file that is not there."""
        from tinygrad_ext.tensor.mapped_files import mapped_file  # lazy: most programs map no files

        mapped = mapped_file(filename, shared, nbytes)
        return UntypedStorage(0) if mapped is None else frombuffer(mapped, dtype=by_name["uint8"]).untyped_storage()

    @property
    def filename(self):
        """The name of the file that from_file shows where it is shared, else None."""
        return None if self._storage is None else getattr(lender(self._storage), "shared_name", None)

    _bytes = 0  # of one on meta

    def untyped(self):
        """Itself: it is one already."""
        return self

    def __array__(self, dtype=None, copy=None):
        found = self._array()
        return found.astype(dtype or found.dtype, copy=bool(copy)) if copy or dtype is not None else found

    def __getitem__(self, at):
        found = self._array()[contiguous_place(at)]
        if not isinstance(at, slice):
            return int(found)
        return from_numpy(found).untyped_storage()

    def __setitem__(self, at, value):
        if self._storage is not None:
            self._array()[at] = value

    def __iter__(self):
        return iter(self.tolist())

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return self.clone() if self._storage is None else UntypedStorage(copy_of(self._storage, memo))

    @property
    def device(self):
        """Where the bytes are: the cpu, or meta where there are none."""
        return device("meta" if self._storage is None else "cpu")

    is_cuda = property(lambda self: False)

    def element_size(self):
        """1."""
        return 1

    def cpu(self):
        """Itself: it is on the cpu. NotImplementedError on meta."""
        return self._readable()

    def _readable(self):
        if self._storage is None:
            raise NotImplementedError("Cannot copy out of meta tensor; no data! The storage has a size alone")
        return self

    def clone(self):
        """Another block with the same bytes."""
        if self._storage is None:
            return UntypedStorage(self._bytes, device="meta")
        return from_numpy(self._array().copy()).untyped_storage()

    def copy_(self, source, non_blocking=None):
        """Write as many bytes of another block to this one. RuntimeError for blocks of another size."""
        if not isinstance(source, (UntypedStorage, TypedStorage)):
            raise TypeError(f"UntypedStorage.copy_: argument 'src' must be a storage, not {class_name(source)}")
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"UntypedStorage.copy_: size does not match, self was {self.nbytes()} bytes but src was "
                f"{source.nbytes()} bytes"
            )
        if self._storage is not None:
            self._array()[:] = source.untyped()._readable()._array()
        return self

    def fill_(self, value):
        """Write one int, modulo 256, to all bytes. RuntimeError for anything else."""
        if not isinstance(value, int):
            raise RuntimeError(f"UntypedStorage.fill_: fill_ expects int, but got {type(value).__name__}")
        if self._storage is not None:
            self._array()[:] = value & 255
        return self

    def resize_(self, size):
        """Another number of bytes; new ones are not set. Tensors over it keep their sizes.

        NotImplementedError for more bytes than the memory has room for, while tensors are over it: they point into it.
        """
        before = self.nbytes()
        if not isinstance(size, int):
            raise TypeError(f"UntypedStorage.resize_: resize_ expects an int, but got {class_name(size)}")
        if size < 0:
            raise RuntimeError(f"UntypedStorage.resize_: the number of bytes must not be negative, but is {size}")
        if self._storage is None:
            self._bytes = size
        if self._storage is None or size == before:
            return self
        if not self._storage.resize(size):
            if sys.getrefcount(self._storage) > 2:  # this one's, and that of the question
                raise NotImplementedError(
                    f"UntypedStorage.resize_: there are {before} bytes, and {size} are wanted: a tensor over them "
                    "keeps its memory. Drop the tensor, or call its resize_()"
                )
            grown = new_storage(size)
            memoryview(grown)[:before] = memoryview(self._storage)
            self._storage = grown
        if size > before and unset.fills():
            self._array()[before:] = 255
        return self

    def resizable(self):
        """Whether the memory is this library's, so that it may change its size."""
        return self._storage is None or _storage.is_own(self._storage)

    def byteswap(self, dtype):
        """Turn the order of the bytes of each number of this dtype, in place; of complex ones of each part.

        RuntimeError for a part of a number at the end.
        """
        size = dtype.itemsize // (2 if dtype.is_complex else 1)
        if self.nbytes() % dtype.itemsize:
            raise RuntimeError(
                f"UntypedStorage.byteswap: the length of the data, {self.nbytes()}, is not a multiple of "
                f"{dtype.itemsize}"
            )
        if size > 1:
            self._array().view(f"u{size}").byteswap(inplace=True)

    @property
    def _cdata(self):
        """A number that storages over the same memory have in common."""
        return 0 if self._storage is None else id(self._storage)

    def _shown_as(self, dtype):
        """The memory as whole numbers of a dtype (None: the default dtype), which `tensor` copies."""
        dtype = dtype or get_default_dtype()
        count = self.nbytes() // dtype.itemsize
        return _core.window(self._storage, dtype, (count,), (1,), 0)

    def tolist(self):
        """The bytes as a list."""
        return self._array().tolist()

    def _array(self):
        import numpy as np

        if self._storage is None:
            raise NotImplementedError("Not available for 'meta' device type: the storage has a size and no bytes")
        if not self.nbytes():
            return np.empty(0, "u1")
        return np.frombuffer(self._storage, "u1")  # holds the memory, which so is not replaced by resize_()

    def is_shared(self):
        """Whether other processes may share the memory."""
        return self._storage is not None and block_of(self._storage) is not None

    def share_memory_(self):
        """Move the memory, with all tensors over it, into one that other processes share."""
        if self._storage is None:
            raise RuntimeError("_share_fd_: only available on CPU; the storage of a meta tensor has no memory")
        sharing.share_storage(self._storage, self.nbytes())
        return self

    def _share_fd_cpu_(self):
        """RuntimeError: what names shared memory is not given out."""
        self.share_memory_()
        raise NotImplementedError("_share_fd_: shared memory has no handle here; send a tensor by multiprocessing")

    _share_filename_cpu_ = _share_fd_cpu_

    def _write_file(self, f, is_real_file, save_size, element_size):
        """Write the bytes to a file, behind the number of elements in 8 bytes where it is asked for."""
        self._readable()
        if save_size:
            f.write((self.nbytes() // element_size).to_bytes(8, "little"))
        f.write(self._array().tobytes())

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._storage is other._storage

    def __hash__(self):
        return hash(id(self._storage))

    def __repr__(self):
        return f"[UntypedStorage of size {self.nbytes()}]"


def storage_over(block, nbytes=0):
    """What shows a block of memory; None on meta, with as many bytes as there would be."""
    made = UntypedStorage.__new__(UntypedStorage)
    made._storage = block
    if block is None:
        made._bytes = nbytes
    return made
