"""Sending batches between processes: the elements in one file in memory, which the receiver maps.

The file goes over the socket with the message and has no name, so it is gone when nobody has it any more, whoever was
killed. Messages stay short, since what is long lies in the file too: neither side waits for the other to read.
Rejected: multiprocessing's queues, where a process that is killed while it holds the lock stops all others.
"""

import contextlib
import io
import os
import pickle
import socket
from multiprocessing.reduction import ForkingPickler

import tinygrad_ext as tg
from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.data.shared import SharedBlock
from tinygrad_ext.core.data.storage import Storage, empty_storage, storage_facts, storage_of_bytes
from tinygrad_ext.multiprocessing import reductions
from tinygrad_ext.tensor.copying import reduce_tensor
from tinygrad_ext.tensor.sharing import new_block

_SHORT = 4096  # bytes of a message that goes without a file
_ALIGNMENT = 64


class Channel:
    """One end of a connection, for objects with tensors and arrays in them."""

    def __init__(self, connection):
        self.connection = connection
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))

    def fileno(self):
        """Descriptor to wait for."""
        return self.connection.fileno()

    def close(self):
        """Let the other side see the end, also where another process has inherited this one."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.connection.close()

    def send(self, value):
        """Send an object. It raises what pickle raises before anything was sent."""
        buffers, text = [], io.BytesIO()
        _Pickler(text, pickle.HIGHEST_PROTOCOL, True, buffers.append).dump(value)
        parts = [text.getbuffer(), *(b.raw() for b in buffers)]
        if sum(part.nbytes for part in parts) <= _SHORT:
            self.connection.send_bytes(pickle.dumps((False, [bytes(part) for part in parts])))
            return
        block = new_block(sum(_rounded(part.nbytes) for part in parts))
        at = 0
        for part in parts:
            block.write(at, part)
            at += _rounded(part.nbytes)
        self.connection.send_bytes(pickle.dumps((True, [part.nbytes for part in parts])))
        socket.send_fds(self._socket, [b"f"], [block.fd])

    def receive(self):
        """Wait for an object. EOFError or OSError when the other side is gone."""
        in_file, parts = pickle.loads(self.connection.recv_bytes())
        if not in_file:
            views = [_bytes_over(storage_of_bytes(part), len(part)) for part in parts[1:]]
            return pickle.loads(parts[0], buffers=views)
        fds = socket.recv_fds(self._socket, 1, 1)[1]
        if not fds:
            if _is_closed(self._socket):
                raise EOFError
            raise RuntimeError(
                "DataLoader: Too many open files: a batch cannot be received; raise the limit by `ulimit -n`, or close "
                "files"
            )
        try:
            block = SharedBlock(fds[0], sum(map(_rounded, parts)))
        except BaseException:
            os.close(fds[0])
            raise
        block.forget_file()
        views, at = [], 0
        for nbytes in parts:
            views.append(_bytes_over(block.storage(at, nbytes), nbytes))
            at += _rounded(nbytes)
        return pickle.loads(memoryview(views[0]), buffers=views[1:])


class _Pickler(ForkingPickler):
    """Leaves memory of tensors and arrays out, for the file."""

    def __init__(self, *args):
        super().__init__(*args)
        self.dispatch_table[Storage] = _reduce_storage
        self.dispatch_table[tg.Tensor] = _reduce_tensor


def _reduce_storage(storage):
    if not storage_facts(storage)[1]:
        return empty_storage, (0,)
    return _storage_in, (pickle.PickleBuffer(storage),)


def _reduce_tensor(t):
    storage = _core.storage_of(t)
    # of a row of a large table the row is sent, not the table
    if storage is not None and storage_facts(storage)[1] > 2 * t.numel() * t.element_size() and t.is_leaf:
        t = t.detach().clone().requires_grad_(t.requires_grad)
        return reduce_tensor(t)
    return reductions.reduce_tensor(t, share=False)


def _storage_in(buffer):
    return _core.storage_of(buffer) if isinstance(buffer, tg.Tensor) else storage_of_bytes(buffer)


def _bytes_over(storage, nbytes):
    return _core.window(storage, tg.uint8, (nbytes,), (1,), 0)


def _rounded(nbytes):
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _is_closed(connection):
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
