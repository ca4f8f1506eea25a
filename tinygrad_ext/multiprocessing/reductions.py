"""How tensors travel between processes: as a descriptor of the file in memory that they lie in, and a window on it."""

import os
import weakref
from multiprocessing import reduction

from tinygrad_ext.core.data.shared import SharedBlock
from tinygrad_ext.core.data.storage import Storage, storage_facts
from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.tensor.copying import reduce_tensor as _reduce_window
from tinygrad_ext.tensor.sharing import share_storage, share_tensor

_known = weakref.WeakValueDictionary()  # file -> the storage over it in this process, so that it is mapped once


def _key(fd):
    facts = os.fstat(fd)
    return facts.st_dev, facts.st_ino


def reduce_tensor(tensor, share=True):
    """Function and arguments from which another process makes the tensor, over the same memory if ``share``.

    Raises:
        RuntimeError: the tensor was computed from others that require grad; their graph stays here.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "a tensor that requires grad and is no leaf cannot be sent to another process, since autograd ends at the "
            "border of a process: send tensor.detach()"
        )
    if share and tensor.device.type == "cpu":
        share_tensor(tensor, sendable=True)
    return _reduce_window(tensor)


def reduce_storage(storage):
    """Function and arguments from which another process maps the storage; moves it into shared memory first."""
    nbytes = storage_facts(storage)[1]
    block = share_storage(storage, nbytes, sendable=True)
    _known[_key(block.fd)] = storage
    return rebuild_storage, (reduction.DupFd(block.fd), nbytes)


def rebuild_storage(handle, nbytes):
    """The storage over a file that another process sent; the same one as long as it is in use here."""
    fd = handle.detach()
    try:
        key = _key(fd)
        known = _known.get(key)
        if known is not None:
            os.close(fd)
            return known
        block = SharedBlock(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise
    _known[key] = storage = block.storage(0, nbytes)
    return storage


def init_reductions():
    """Let multiprocessing's pickler send tensors by these rules."""
    for kind in (Tensor, Parameter):
        reduction.ForkingPickler.register(kind, reduce_tensor)
    reduction.ForkingPickler.register(Storage, reduce_storage)
