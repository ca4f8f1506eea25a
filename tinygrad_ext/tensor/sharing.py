"""Memory that several processes share."""

import gc
import os

from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.data import shared as _shared
from tinygrad_ext.core.data.tracking import untracked_objects


def new_file(nbytes):
    """Descriptor of a file in memory that has no name: the kernel frees it with the last process that has it."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("tinygrad_ext")
    else:
        import tempfile  # lazy: only where the system has no files without a name

        fd, path = tempfile.mkstemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        os.unlink(path)
    try:
        os.truncate(fd, nbytes)
    except OSError as error:
        os.close(fd)
        raise RuntimeError(f"unable to allocate {nbytes} bytes of shared memory: {error.strerror}") from None
    return fd


def new_block(nbytes):
    """A new shared block."""
    fd = new_file(nbytes)
    try:
        return _shared.SharedBlock(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise


def share_storage(storage, nbytes, sendable=False, tensors=None):
    """Move a storage, and all tensors over it, into shared memory; the block it lies in then.

    sendable: not one whose file was forgotten, since that cannot be sent on. tensors: those over it, where known.
    """
    block = _shared.block_of(storage)
    if block is None or (sendable and block.fd < 0):
        block = new_block(nbytes)
        _shared.move(storage, block, _tensors_over(storage) if tensors is None else tensors)
    return block


def _tensors_over(storage):
    return _shared.tensors_over(storage, [*untracked_objects(), *gc.get_objects()])


def share_tensor(tensor, sendable=False):
    """Move what a tensor lies in, and with it all others that do."""
    alone = _shared.is_alone(tensor)  # mostly: a look at all objects is saved
    storage, nbytes = _core.storage_of(tensor), tensor.untyped_storage().nbytes()
    share_storage(storage, nbytes, sendable, [tensor] if alone else None)


def _share_memory_(self):
    """Move the tensor's memory into one that other processes share, with all its views, and return the tensor.

    A tensor that is sent to another process is moved there by itself.
    """
    if _core.storage_of(self) is None:
        raise RuntimeError(f"_share_fd_: only available on CPU, not on {self.device}: move it first, with cpu()")
    share_tensor(self)
    return self


def _is_shared(self):
    """Whether other processes may share the tensor's memory."""
    storage = _core.storage_of(self)
    return storage is not None and _shared.block_of(storage) is not None


METHODS = {"share_memory_": _share_memory_, "is_shared": _is_shared}
