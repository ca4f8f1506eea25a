# cython: language_level=3
"""Memory of the devices that plugins bring.

A device is its name, who brought it, and an object with three methods, which is all that the core needs of one. Addresses
are numbers that only that object understands: nothing here reads behind them, so memory of a card works like the memory of
this process. Kernels stand with the op, a row for each device (Op.rows, call/rows.pyx), so that a device is looked up only
for a tensor that is on one.

Rejected: a C interface of function pointers first (a device in Python could not be written or tested, and what a card
costs is the copy, not the call), and a subclass of Tensor for each device (views, autograd and printing would all have
to be written again).
"""
from cpython.buffer cimport PyObject_CheckBuffer
from libc.string cimport memset
from tinygrad_ext.core.data.dtype cimport CPU, device_of
from tinygrad_ext.core.data.storage cimport Storage, borrow_storage, new_storage

from contextlib import suppress
from copy import deepcopy

from tinygrad_ext.core.data.dtype import add_device, drop_device

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef dict _rows = {}            # device number -> (memory, owner)


def bring(str name, memory, owner):
    """Make a device of a name, and let an object serve its memory; owner is told in messages. Returns its number."""
    number = add_device(name)
    _rows[number] = memory, owner
    return number


def take_back(str name):
    """Undo `bring`. Tensors that are on the device keep their memory, and nobody can read it any more."""
    number = drop_device(name)
    _rows.pop(number, None)


def owner_of(int device):
    """Who brought a device."""
    return _rows[device][1] if device in _rows else None


cdef object _memory(int device):
    row = _rows.get(device)
    if row is None:
        raise RuntimeError(f"the device {device_of(device)} is gone: what brought it was unloaded. Load it again: "
                           "plugins.enable(name), or library.register_device()")
    return row[0]


cdef object _memory_behind(Storage s):
    """What allocated a block. When a device went and came back, that is another object than serves it now."""
    _memory(s.device_id)
    return (<tuple>s.owner)[0]


cdef int check_here(int device) except -1:
    _memory(device)
    return 0


cdef bint is_of_now(Storage s) except -1:
    return s.nbytes == 0 or _memory_behind(s) is _memory(s.device_id)


cdef Storage storage_on(int device, size_t nbytes):
    """A block of a device's memory, which goes when its last tensor does."""
    cdef Storage s
    cdef object address = 0, owner = None
    memory = _memory(device)
    if nbytes:
        got = memory.allocate(nbytes)
        if type(got) is not tuple or len(got) != 2 or type(got[0]) is not int or not 0 < got[0] <= PY_SSIZE_T_MAX - nbytes:
            raise TypeError(f"allocate({nbytes}) of the device {device_of(device)} must return (address, owner), the address a "
                            f"number above 0 and below 2**63, not {_shown(got)}")
        address, owner = got
        _check_room(device, owner, nbytes)
    s = borrow_storage(<char *><size_t>address, nbytes, (memory, owner), False)
    s.device_id = device
    return s


cdef str _shown(object got):
    try:
        return repr(got)
    except Exception:
        return f"a {type(got).__name__}"


cdef int _check_room(int device, object owner, size_t nbytes) except -1:
    """Refuse a block that can be seen to be too small."""
    if PyObject_CheckBuffer(owner):
        with memoryview(owner) as block:
            if <size_t>block.nbytes < nbytes:
                raise RuntimeError(f"allocate({nbytes}) of the device {device_of(device)} returned a block of {block.nbytes} bytes: "
                                   "it must have as many as were asked for")
    return 0


cdef int read_from(Storage s, const char *address, Storage into, size_t nbytes) except -1:
    """Copy bytes from a device to the start of memory of this process."""
    memset(into.data, 0, nbytes)                # what read leaves out is not what was there before
    if nbytes:
        _lend(_memory_behind(s).read, address, memoryview(into)[:nbytes])
    return 0


cdef int write_to(Storage s, const char *address, Storage data, size_t nbytes) except -1:
    """Copy bytes from the start of memory of this process to a device."""
    if nbytes:
        _lend(_memory_behind(s).write, address, memoryview(data)[:nbytes].toreadonly())
    return 0


cdef int copy_bytes(Storage to, Storage source, size_t offset, size_t nbytes) except -1:
    cdef Storage here = new_storage(nbytes)
    read_from(source, source.data + offset, here, nbytes)
    return write_to(to, to.data, here, nbytes)


def copy_of(Storage s, dict memo not None):
    """A storage with a copy of the bytes of another, once in a deepcopy."""
    cdef Storage made
    if s is None or s.device_id == CPU:
        return deepcopy(s, memo)
    made = memo.get(id(s))
    if made is None:
        made = storage_on(s.device_id, s.nbytes)
        copy_bytes(made, s, 0, s.nbytes)
        memo[id(s)] = made
    return made


cdef int _lend(object method, const char *address, object view) except -1:
    """Call method(address, view). The view ends with the call; whoever keeps another of it keeps the memory, too."""
    try:
        method(<size_t>address, view)
    finally:
        with suppress(BufferError):
            view.release()
    return 0
